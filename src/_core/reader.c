/* The trace reader: slices of the text of a trace file in, columns of numbers out.

   The Python code in mindtorch_prof/load/collect.py is the definition of what is read; this is a faster way to the same columns.
   A slice is tokenized as a whole (reader_json.c). Then its events are added category by category, as Python does it: the events
   of a category either all here, if each of them has every field in its usual type, or all by Python, from their text. Tables of
   names, threads, inputs and so on belong to Python; the numbers that they gave to a text are cached (reader_spans.c).

   The `handler` is the Python object that is called for everything that is new or unusual; see _reader.pyi. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <math.h>
#include <string.h>

#include "reader_json.h"
#include "reader_spans.h"

/* ---------------------------------------------------------------------------------------------------- columns */

enum {
    FLUSH_ROWS = 16384,     /* rows at which a table is handed to Python */
    FIRST_ROWS = 20480,     /* rows for which there is room at first: those, and the events of a usual slice */
    MOST_COLUMNS = 16
};

/* tables, and their columns, in the order of the lists below */
enum { HOST, FRAMES, DEVICE, MEMORY, TABLES };
enum { NAME, THREAD, START, LENGTH, KIND };
enum {
    HOST_EXTERNAL = KIND + 1, HOST_SEQUENCE, HOST_FORWARD, HOST_INPUTS, HOST_STACK, HOST_EXTRA, HOST_FLOPS, HOST_CORRELATION,
    HOST_UNFINISHED, HOST_SYNTHETIC
};
enum { FRAME_OWN = LENGTH + 1, FRAME_PARENT, FRAME_MODULE };
enum { DEVICE_DEVICE = KIND + 1, DEVICE_STREAM, DEVICE_EXTERNAL, DEVICE_CORRELATION, DEVICE_EXTRA };
enum { MEMORY_THREAD, MEMORY_START, MEMORY_NBYTES, MEMORY_ADDRESS, MEMORY_TOTAL, MEMORY_DEVICE };

typedef struct {
    const char *name;
    int type;
} column_kind;

typedef struct {
    const char *name;
    int column_count;
    column_kind columns[MOST_COLUMNS];
} table_kind;

#define EVENT_COLUMNS {"name", NPY_INT32}, {"thread", NPY_INT32}, {"start", NPY_INT64}, {"length", NPY_INT64}

static const table_kind TABLE_KINDS[TABLES] = {
    {"host", 15, {EVENT_COLUMNS, {"kind", NPY_INT8}, {"external", NPY_INT64}, {"sequence", NPY_INT64}, {"forward", NPY_INT64},
                  {"inputs", NPY_INT32}, {"stack", NPY_INT32}, {"extra", NPY_INT32}, {"flops", NPY_INT64},
                  {"correlation", NPY_INT64}, {"unfinished", NPY_BOOL}, {"synthetic", NPY_INT8}}},
    {"frames", 7, {EVENT_COLUMNS, {"own", NPY_INT64}, {"parent", NPY_INT64}, {"module", NPY_INT64}}},
    {"device", 10, {EVENT_COLUMNS, {"kind", NPY_INT8}, {"device", NPY_INT64}, {"stream", NPY_INT64}, {"external", NPY_INT64},
                    {"correlation", NPY_INT64}, {"extra", NPY_INT32}}},
    {"memory", 6, {{"thread", NPY_INT32}, {"start", NPY_INT64}, {"nbytes", NPY_INT64}, {"address", NPY_INT64},
                   {"total", NPY_INT64}, {"device", NPY_INT64}}},
};

typedef struct {
    void *columns[MOST_COLUMNS];
    size_t count, capacity;
    int coarse; /* whether all times are whole microseconds, or so far from 0 that a double holds no more */
} table_t;

static size_t item_size(int type)
{
    switch (type) {
    case NPY_INT64: return 8;
    case NPY_INT32: return 4;
    default: return 1;
    }
}

static void table_free(table_t *table)
{
    for (int i = 0; i < MOST_COLUMNS; i++) {
        PyMem_Free(table->columns[i]);
        table->columns[i] = NULL;
    }
    table->count = table->capacity = 0;
}

/* Make room for more rows. */
static int table_reserve(table_t *table, int which, size_t more)
{
    if (table->count + more <= table->capacity) {
        return 0;
    }
    size_t capacity = table->capacity ? table->capacity : FIRST_ROWS;
    while (capacity < table->count + more) {
        capacity *= 2;
    }
    const table_kind *kind = &TABLE_KINDS[which];
    for (int i = 0; i < kind->column_count; i++) {
        void *larger = PyMem_Realloc(table->columns[i], capacity * item_size(kind->columns[i].type));
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        table->columns[i] = larger;
    }
    table->capacity = capacity;
    return 0;
}

#define I8(table, column) ((int8_t *)(table)->columns[column])
#define I32(table, column) ((int32_t *)(table)->columns[column])
#define I64(table, column) ((int64_t *)(table)->columns[column])

/* ---------------------------------------------------------------------------------------------------- the reader */

/* arguments that are looked for by their keys */
enum {
    ARG_CONCRETE, ARG_TYPE, ARG_STRIDES, ARG_DIMS, /* the inputs, in the order of their lists */
    ARG_EXTERNAL, ARG_SEQUENCE, ARG_FORWARD, ARG_SYNTHETIC, ARG_ALLOCATES, ARG_STACK, ARG_FINISHED,
    ARG_FLOPS, ARG_FLOPS_2, ARG_FLOPS_3, ARG_OLD_EXTERNAL, ARG_CORRELATION, ARG_DEVICE, ARG_STREAM, ARG_STREAM_ID,
    ARG_PYTHON_ID, ARG_PYTHON_PARENT, ARG_PYTHON_MODULE, ARG_BYTES, ARG_ADDRESS, ARG_TOTAL, ARG_DEVICE_TYPE, ARG_DEVICE_ID,
    ARG_KERNEL,
    ARGUMENTS
};
enum { INPUTS = 4 };

static const char *const ARGUMENT_KEYS[ARGUMENTS] = {
    "Concrete Inputs", "Input type", "Input Strides", "Input Dims",
    "External id", "Sequence number", "Fwd thread id", NULL, NULL, "Call stack", "finished", /* two names come from Python */
    "flops", "FLOPs", "Flops", "external id", "correlation", "device", "stream", "Stream Id",
    "Python id", "Python parent id", "Python module id", "Bytes", "Addr", "Total Allocated", "Device Type", "Device Id",
    "kernel",
};

/* What the keys of arguments say: where the arguments stand. */
typedef struct {
    int16_t place[ARGUMENTS]; /* -1: not there */
    int16_t count;
    int is_odd;               /* keys occur twice or hold escapes: Python reads events that have them */
    int has_inputs, has_rare, has_synthetic;
    int16_t *rest, *device_rest; /* places of arguments without a column, for ops and for events of devices */
    int16_t rest_count, device_rest_count;
} layout_t;

/* numbers of pairs of pid and tid, and the last pair in the text of the present slice */
typedef struct {
    const char *method;
    spans_t cache;
    span_t recent[2];
    int32_t recent_thread;
} places_t;

/* how the events of a category are added */
enum { BY_PYTHON, IGNORED, AS_HOST, AS_RUNTIME, AS_FRAMES, AS_DEVICE, BY_PHASE };

typedef struct {
    int how, kind;
    PyObject *text; /* str or None; NULL: not asked for yet */
} meaning_t;

typedef struct {
    PyObject_HEAD
    PyObject *handler;
    PyObject *synthetic_key, *allocates_key; /* str */
    tokens_t tokens;
    table_t tables[TABLES];
    spans_t names, inputs, stacks, extras, device_extras;
    layout_t *layouts;
    size_t layout_count, layout_capacity;
    meaning_t *meanings; /* by category */
    size_t meaning_count;
    places_t host_places, device_places;
    uint64_t seed;
    uint32_t group;
    int64_t merged_from; /* pids from here on are devices of merged files */
    int busy;
} reader_t;

#define TEXT(reader, value) ((const char *)(reader)->tokens.text + (value)->start)
#define SPAN(reader, value) ((span_t){(reader)->tokens.text + (value)->start, (value)->length})

/* A number that Python gives to a text. */
static int32_t ask(reader_t *reader, const char *method, PyObject *text)
{
    if (text == NULL) {
        return -1;
    }
    PyObject *answer = PyObject_CallMethod(reader->handler, method, "(O)", text);
    Py_DECREF(text);
    if (answer == NULL) {
        return -1;
    }
    long number = PyLong_AsLong(answer);
    Py_DECREF(answer);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (number < 0 || number > INT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s() gave %ld; expected a number from 0 to 2**31 - 1", method, number);
        return -1;
    }
    return (int32_t)number;
}

/* Join spans to the JSON of a list. */
static PyObject *list_text(const span_t *spans, size_t count)
{
    size_t length = 2;
    for (size_t i = 0; i < count; i++) {
        length += spans[i].length + (i > 0);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
    if (bytes == NULL) {
        return NULL;
    }
    char *p = PyBytes_AS_STRING(bytes);
    *p++ = '[';
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *p++ = ',';
        }
        memcpy(p, spans[i].text, spans[i].length);
        p += spans[i].length;
    }
    *p = ']';
    return bytes;
}

/* The number of one value: a name or a stack. -1: an error. */
static int32_t number_of_value(reader_t *reader, spans_t *cache, const char *method, const value_t *value)
{
    span_t span = SPAN(reader, value);
    uint64_t hash = spans_hash(reader->seed, &span, 1);
    int32_t number = spans_find(cache, hash, &span, 1);
    if (number == SPAN_NEW) {
        /* a text without escapes is decoded here: its JSON would be a copy, which may have many MB */
        PyObject *text = value->flags & VALUE_ESCAPED
                             ? PyBytes_FromStringAndSize((const char *)span.text, (Py_ssize_t)span.length)
                             : PyUnicode_DecodeUTF8((const char *)span.text + 1, (Py_ssize_t)span.length - 2, NULL);
        number = ask(reader, method, text);
        if (number >= 0) {
            spans_add(cache, hash, &span, 1, number);
        }
    }
    return number;
}

/* The number of a list of values: a thread or inputs. */
static int32_t number_of_list(reader_t *reader, spans_t *cache, const char *method, const span_t *spans, size_t count)
{
    uint64_t hash = spans_hash(reader->seed, spans, count);
    int32_t number = spans_find(cache, hash, spans, count);
    if (number == SPAN_NEW) {
        number = ask(reader, method, list_text(spans, count));
        if (number >= 0) {
            spans_add(cache, hash, spans, count, number);
        }
    }
    return number;
}

/* The number of the arguments that have no column: Python gets all arguments, and takes those of the layout. */
static int32_t number_of_rest(reader_t *reader, spans_t *cache, const char *method, const event_t *event, int layout_number,
                              const int16_t *places, int count)
{
    span_t spans[257]; /* arguments, see MOST_ARGUMENTS in reader_json.c, and the layout */
    for (int i = 0; i < count; i++) {
        spans[i] = SPAN(reader, &reader->tokens.values[event->first_value + (uint32_t)places[i]]);
    }
    spans[count] = (span_t){(const uint8_t *)&layout_number, sizeof layout_number};
    uint64_t hash = spans_hash(reader->seed, spans, (size_t)count + 1);
    int32_t number = spans_find(cache, hash, spans, (size_t)count + 1);
    if (number == SPAN_NEW) {
        number = ask(reader, method, PyBytes_FromStringAndSize(TEXT(reader, &event->args), (Py_ssize_t)event->args.length));
        if (number >= 0) {
            spans_add(cache, hash, spans, (size_t)count + 1, number);
        }
    }
    return number;
}

/* ---------------------------------------------------------------------------------------------------- layouts */

/* Places of arguments, of which there are `limit`. */
static int16_t *places_from(PyObject *sequence, int limit, int16_t *count)
{
    PyObject *items = PySequence_Tuple(sequence);
    if (items == NULL) {
        return NULL;
    }
    Py_ssize_t length = PyTuple_GET_SIZE(items);
    int16_t *places = PyMem_Malloc((size_t)(length ? length : 1) * sizeof *places);
    if (places == NULL) {
        Py_DECREF(items);
        PyErr_NoMemory();
        return NULL;
    }
    int valid = length <= limit;
    for (Py_ssize_t i = 0; valid && i < length; i++) {
        long place = PyLong_AsLong(PyTuple_GET_ITEM(items, i));
        valid = place >= 0 && place < limit;
        places[i] = (int16_t)place;
    }
    Py_DECREF(items);
    if (!valid) {
        PyMem_Free(places);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "layout() gave places that are not those of arguments");
        }
        return NULL;
    }
    *count = (int16_t)length;
    return places;
}

/* The keys from the root to a node as a tuple of str. */
static PyObject *keys_of(reader_t *reader, int32_t node, int count)
{
    const tokens_t *tokens = &reader->tokens;
    PyObject *keys = PyTuple_New(count);
    for (int place = count - 1; keys != NULL && place >= 0; place--) {
        const node_t *each = &tokens->nodes[node];
        PyObject *key = PyUnicode_DecodeUTF8((const char *)tokens->keys + each->key_start, each->key_length - 1, NULL);
        if (key == NULL) {
            Py_CLEAR(keys);
            break;
        }
        PyTuple_SET_ITEM(keys, place, key);
        node = each->parent;
    }
    return keys;
}

static int fill_layout(reader_t *reader, int32_t node, layout_t *layout)
{
    const tokens_t *tokens = &reader->tokens;
    memset(layout, 0, sizeof *layout);
    for (int i = 0; i < ARGUMENTS; i++) {
        layout->place[i] = -1;
    }
    layout->count = (int16_t)tokens->nodes[node].depth;
    for (int32_t each = node; each > 0; each = tokens->nodes[each].parent) {
        const node_t *one = &tokens->nodes[each];
        layout->is_odd |= one->escaped;
        for (int32_t other = one->parent; other > 0; other = tokens->nodes[other].parent) {
            const node_t *two = &tokens->nodes[other];
            layout->is_odd |= one->key_length == two->key_length &&
                              memcmp(tokens->keys + one->key_start, tokens->keys + two->key_start, one->key_length) == 0;
        }
    }
    if (layout->is_odd) {
        return 0;
    }
    PyObject *keys = keys_of(reader, node, layout->count);
    if (keys == NULL) {
        return -1;
    }
    for (int i = 0; i < ARGUMENTS; i++) {
        PyObject *wanted = i == ARG_SYNTHETIC   ? Py_NewRef(reader->synthetic_key)
                           : i == ARG_ALLOCATES ? Py_NewRef(reader->allocates_key)
                                                : PyUnicode_FromString(ARGUMENT_KEYS[i]);
        for (int place = 0; wanted != NULL && place < layout->count; place++) {
            if (PyUnicode_Compare(wanted, PyTuple_GET_ITEM(keys, place)) == 0) {
                layout->place[i] = (int16_t)place;
            }
        }
        Py_XDECREF(wanted);
    }
    PyObject *answer = PyErr_Occurred() ? NULL : PyObject_CallMethod(reader->handler, "layout", "(O)", keys);
    Py_DECREF(keys);
    PyObject *rest, *device_rest;
    int done = answer != NULL && PyArg_ParseTuple(answer, "pOO", &layout->has_rare, &rest, &device_rest) &&
               (layout->rest = places_from(rest, layout->count, &layout->rest_count)) != NULL &&
               (layout->device_rest = places_from(device_rest, layout->count, &layout->device_rest_count)) != NULL;
    Py_XDECREF(answer);
    for (int i = 0; i < INPUTS; i++) {
        layout->has_inputs |= layout->place[i] >= 0;
    }
    layout->has_synthetic = layout->place[ARG_SYNTHETIC] >= 0;
    return done ? 0 : -1;
}

/* The number of the layout of an event's arguments; -1: an error. */
static int32_t layout_of(reader_t *reader, int32_t place)
{
    node_t *node = &reader->tokens.nodes[place];
    if (node->layout >= 0) {
        return node->layout;
    }
    if (reader->layout_count == reader->layout_capacity) {
        size_t capacity = reader->layout_capacity ? reader->layout_capacity * 2 : 32;
        layout_t *larger = PyMem_Realloc(reader->layouts, capacity * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        reader->layouts = larger;
        reader->layout_capacity = capacity;
    }
    layout_t *layout = &reader->layouts[reader->layout_count];
    if (fill_layout(reader, place, layout) < 0) {
        PyMem_Free(layout->rest);
        PyMem_Free(layout->device_rest);
        return -1;
    }
    return node->layout = (int32_t)reader->layout_count++;
}

/* ---------------------------------------------------------------------------------------------------- values of events */

/* An event with the values and the layout of its arguments. */
typedef struct {
    const event_t *event;
    const value_t *values;
    const layout_t *layout;
} row_t;

static inline const value_t *argument(const row_t *row, int which)
{
    int place = row->layout->place[which];
    return place < 0 ? NULL : &row->values[place];
}

/* A whole number among the arguments; 0: it is there and is none. */
static inline int whole_argument(const row_t *row, int which, int64_t missing, int64_t *number)
{
    const value_t *value = argument(row, which);
    if (value == NULL) {
        *number = missing;
        return 1;
    }
    if (value->type != VALUE_INT) {
        return 0;
    }
    *number = value->number.integer;
    return 1;
}

static const double LARGEST_US = 9.0e15;               /* as in collect.py */
static const double PRECISE_US = 9007199254740992e-3; /* 2**53 nanoseconds: beyond, a double holds no nanoseconds */

/* Microseconds as whole nanoseconds; 0: no plain time. */
static inline int nanoseconds(const value_t *value, int64_t *ns, int *coarse)
{
    double us;
    if (!real_value(value, &us) || !(fabs(us) < LARGEST_US)) {
        return 0;
    }
    double whole = floor(us), rest = us - whole;
    *coarse &= rest == 0 || us > PRECISE_US;
    *ns = (int64_t)whole * 1000 + (int64_t)rint(rest * 1000);
    return 1;
}

static inline int is_plain_key(const value_t *value)
{
    return value->type == VALUE_INT || value->type == VALUE_STRING;
}

/* Start and length of an event, if it has all that every event of a category has; 0: it does not. */
static inline int common_fields(const event_t *event, table_t *table, size_t row, int *coarse)
{
    int64_t start, length;
    if (event->name.type != VALUE_STRING || !is_plain_key(&event->pid) || !is_plain_key(&event->tid) ||
        !nanoseconds(&event->ts, &start, coarse) || !nanoseconds(&event->dur, &length, coarse) || length < 0) {
        return 0;
    }
    I64(table, START)[row] = start;
    I64(table, LENGTH)[row] = length;
    return 1;
}

static inline int32_t thread_of(reader_t *reader, places_t *places, const event_t *event)
{
    span_t spans[2] = {SPAN(reader, &event->pid), SPAN(reader, &event->tid)};
    const span_t *recent = places->recent;
    if (recent[0].length == spans[0].length && recent[1].length == spans[1].length &&
        same_text(recent[0].text, spans[0].text, spans[0].length) && same_text(recent[1].text, spans[1].text, spans[1].length)) {
        return places->recent_thread; /* that of the event before, mostly */
    }
    int32_t thread = number_of_list(reader, &places->cache, places->method, spans, 2);
    if (thread >= 0) {
        memcpy(places->recent, spans, sizeof spans);
        places->recent_thread = thread;
    }
    return thread;
}

static inline int name_and_thread(reader_t *reader, places_t *places, const event_t *event, table_t *table, size_t row)
{
    int32_t name = number_of_value(reader, &reader->names, "name", &event->name);
    if (name < 0) {
        return -1;
    }
    int32_t thread = thread_of(reader, places, event);
    if (thread < 0) {
        return -1;
    }
    I32(table, NAME)[row] = name;
    I32(table, THREAD)[row] = thread;
    return 0;
}

/* ---------------------------------------------------------------------------------------------------- groups */

/* Each of these adds the events of a category to a table, all or none: ADDED, or NOT_PLAIN where an event has something unusual
   and Python has to add them all, or FAILED with an exception set. Rows are written behind those of the table and belong to it
   only when the count is raised. */
enum { ADDED = 1, NOT_PLAIN = 0, FAILED = -1 };

static int row_of(reader_t *reader, int32_t number, row_t *row)
{
    const event_t *event = &reader->tokens.events[number];
    if (event->node < 0 || (event->args.type != VALUE_OBJECT && event->args.type != VALUE_MISSING)) {
        return NOT_PLAIN;
    }
    int32_t layout = layout_of(reader, event->node);
    if (layout < 0) {
        return FAILED;
    }
    row->event = event;
    row->values = reader->tokens.values + (event->args.type == VALUE_OBJECT ? event->first_value : 0);
    row->layout = &reader->layouts[layout];
    return row->layout->is_odd ? NOT_PLAIN : ADDED;
}

/* The same of an event that `row_of` has accepted before. */
static inline row_t accepted_row(const reader_t *reader, int32_t number)
{
    const event_t *event = &reader->tokens.events[number];
    const value_t *values = reader->tokens.values + (event->args.type == VALUE_OBJECT ? event->first_value : 0);
    return (row_t){event, values, &reader->layouts[reader->tokens.nodes[event->node].layout]};
}

/* The columns of an op that need no table. */
static int host_numbers(const row_t *each, table_t *table, size_t row)
{
    const layout_t *layout = each->layout;
    int64_t external, sequence, forward, flops = -1;
    int old = layout->place[ARG_OLD_EXTERNAL] >= 0;
    if (!whole_argument(each, ARG_EXTERNAL, 0, &external) || !whole_argument(each, ARG_SEQUENCE, -1, &sequence) ||
        !whole_argument(each, ARG_FORWARD, 0, &forward) || (old && !whole_argument(each, ARG_OLD_EXTERNAL, 0, &external))) {
        return 0;
    }
    for (int which = ARG_FLOPS_3; which >= ARG_FLOPS; which--) { /* the first one counts */
        const value_t *value = argument(each, which);
        if (value == NULL || value->type == VALUE_STRING || value->type == VALUE_NULL || value->type == VALUE_ARRAY ||
            value->type == VALUE_OBJECT) {
            continue;
        }
        if (value->type != VALUE_INT) {
            return 0;
        }
        flops = value->number.integer;
    }
    int64_t synthetic = 0;
    if (layout->has_synthetic) {
        const value_t *levels = argument(each, ARG_SYNTHETIC), *allocates = argument(each, ARG_ALLOCATES);
        if (levels->type == VALUE_INT && levels->number.integer > 0 && levels->number.integer < 128 &&
            I64(table, LENGTH)[row] == 0) {
            double length;
            if (!real_value(&each->event->dur, &length) || length != 0 ||
                (allocates != NULL && allocates->type != VALUE_TRUE && allocates->type != VALUE_FALSE)) {
                return 0;
            }
            synthetic = allocates != NULL && allocates->type == VALUE_TRUE ? -levels->number.integer : levels->number.integer;
        }
    }
    const value_t *finished = argument(each, ARG_FINISHED);
    I64(table, HOST_EXTERNAL)[row] = external;
    I64(table, HOST_SEQUENCE)[row] = sequence;
    I64(table, HOST_FORWARD)[row] = forward;
    I64(table, HOST_FLOPS)[row] = flops;
    I64(table, HOST_CORRELATION)[row] = -1;
    I8(table, HOST_UNFINISHED)[row] = finished != NULL && finished->type == VALUE_FALSE;
    I8(table, HOST_SYNTHETIC)[row] = (int8_t)synthetic;
    I32(table, HOST_INPUTS)[row] = I32(table, HOST_STACK)[row] = I32(table, HOST_EXTRA)[row] = -1;
    return 1;
}

static int host_tables(reader_t *reader, const row_t *each, int32_t layout_number, table_t *table, size_t row)
{
    const layout_t *layout = each->layout;
    if (layout->has_inputs) {
        span_t spans[INPUTS];
        for (int i = 0; i < INPUTS; i++) {
            const value_t *value = argument(each, ARG_CONCRETE + i);
            spans[i] = value == NULL ? (span_t){(const uint8_t *)"null", 4} : SPAN(reader, value);
        }
        int32_t inputs = number_of_list(reader, &reader->inputs, "inputs", spans, INPUTS);
        if (inputs < 0) {
            return -1;
        }
        I32(table, HOST_INPUTS)[row] = inputs;
    }
    if (layout->has_rare) {
        const value_t *stack = argument(each, ARG_STACK);
        if (stack != NULL && stack->type == VALUE_STRING && stack->length > 2) {
            int32_t number = number_of_value(reader, &reader->stacks, "stack", stack);
            if (number < 0) {
                return -1;
            }
            I32(table, HOST_STACK)[row] = number;
        }
        if (layout->rest_count) {
            int32_t extra = number_of_rest(reader, &reader->extras, "extra", each->event, layout_number, layout->rest,
                                           layout->rest_count);
            if (extra < 0) {
                return -1;
            }
            I32(table, HOST_EXTRA)[row] = extra;
        }
    }
    return name_and_thread(reader, &reader->host_places, each->event, table, row);
}

/* Ops and annotations: events whose arguments have the same keys stand together, in the order in which the keys first occur. */
static int add_host(reader_t *reader, const category_t *group, int kind, int refuse_devices)
{
    tokens_t *tokens = &reader->tokens;
    table_t *table = &reader->tables[HOST];
    int32_t first_node = -1, last_node = -1;
    if (++reader->group == 0 || table_reserve(table, HOST, (size_t)group->count) < 0) {
        return reader->group == 0 ? NOT_PLAIN : FAILED;
    }
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next) {
        row_t each;
        int status = row_of(reader, number, &each);
        if (status != ADDED) {
            return status;
        }
        const int16_t *place = each.layout->place;
        if (refuse_devices && (each.event->phase != 'X' || place[ARG_STREAM_ID] >= 0 ||
                               (place[ARG_STREAM] >= 0 && place[ARG_DEVICE] >= 0))) {
            return NOT_PLAIN;
        }
        int32_t node_number = each.event->node;
        node_t *node = &tokens->nodes[node_number];
        tokens->events[number].next_in_layout = -1;
        if (node->group == reader->group) {
            tokens->events[node->last_event].next_in_layout = number;
        }
        else {
            node->group = reader->group;
            node->first_event = number;
            node->next_node = -1;
            if (last_node >= 0) {
                tokens->nodes[last_node].next_node = node_number;
            }
            else {
                first_node = node_number;
            }
            last_node = node_number;
        }
        node->last_event = number;
    }
    int coarse = table->coarse;
    size_t row = table->count;
    for (int32_t node = first_node; node >= 0; node = tokens->nodes[node].next_node) {
        for (int32_t number = tokens->nodes[node].first_event; number >= 0; number = tokens->events[number].next_in_layout) {
            row_t each = accepted_row(reader, number);
            if (!common_fields(each.event, table, row, &coarse) || !host_numbers(&each, table, row)) {
                return NOT_PLAIN;
            }
            I8(table, KIND)[row] = (int8_t)kind;
            row++;
        }
    }
    row = table->count;
    for (int32_t node = first_node; node >= 0; node = tokens->nodes[node].next_node) {
        for (int32_t number = tokens->nodes[node].first_event; number >= 0; number = tokens->events[number].next_in_layout) {
            row_t each = accepted_row(reader, number);
            if (host_tables(reader, &each, tokens->nodes[node].layout, table, row) < 0) {
                return FAILED;
            }
            row++;
        }
    }
    table->coarse = coarse;
    table->count = row;
    return ADDED;
}

/* Whether all events of a group have an argument. */
static int all_have(reader_t *reader, const category_t *group, int which)
{
    for (int32_t number = group->first_event; number >= 0; number = reader->tokens.events[number].next) {
        row_t each;
        if (row_of(reader, number, &each) != ADDED || argument(&each, which) == NULL) {
            return 0;
        }
    }
    return 1;
}

/* The id of the op of a runtime call or of a device's event. Where some have none, 0 counts as none. */
static inline int external_id(const row_t *row, int all, int64_t *external)
{
    if (!whole_argument(row, ARG_EXTERNAL, 0, external)) {
        return 0;
    }
    return all || *external != 0 || whole_argument(row, ARG_OLD_EXTERNAL, 0, external);
}

static int add_runtime(reader_t *reader, const category_t *group, int kind)
{
    tokens_t *tokens = &reader->tokens;
    table_t *table = &reader->tables[HOST];
    if (table_reserve(table, HOST, (size_t)group->count) < 0) {
        return FAILED;
    }
    int all = all_have(reader, group, ARG_EXTERNAL), coarse = table->coarse;
    size_t row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        row_t each;
        int status = row_of(reader, number, &each);
        if (status != ADDED) {
            return status;
        }
        if (!common_fields(each.event, table, row, &coarse) || !external_id(&each, all, &I64(table, HOST_EXTERNAL)[row]) ||
            !whole_argument(&each, ARG_CORRELATION, -1, &I64(table, HOST_CORRELATION)[row])) {
            return NOT_PLAIN;
        }
        I8(table, KIND)[row] = (int8_t)kind;
        I64(table, HOST_SEQUENCE)[row] = I64(table, HOST_FLOPS)[row] = -1;
        I64(table, HOST_FORWARD)[row] = 0;
        I32(table, HOST_INPUTS)[row] = I32(table, HOST_STACK)[row] = I32(table, HOST_EXTRA)[row] = -1;
        I8(table, HOST_UNFINISHED)[row] = I8(table, HOST_SYNTHETIC)[row] = 0;
    }
    row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        row_t each = accepted_row(reader, number);
        const value_t *kernel = argument(&each, ARG_KERNEL);
        if (kernel != NULL && kernel->type == VALUE_STRING && kernel->length > 2) {
            int32_t extra = number_of_value(reader, &reader->extras, "launched_kernel", kernel);
            if (extra < 0) {
                return FAILED;
            }
            I32(table, HOST_EXTRA)[row] = extra;
        }
        if (name_and_thread(reader, &reader->host_places, each.event, table, row) < 0) {
            return FAILED;
        }
    }
    table->coarse = coarse;
    table->count = row;
    return ADDED;
}

static int add_frames(reader_t *reader, const category_t *group)
{
    tokens_t *tokens = &reader->tokens;
    table_t *table = &reader->tables[FRAMES];
    if (table_reserve(table, FRAMES, (size_t)group->count) < 0) {
        return FAILED;
    }
    int coarse = table->coarse;
    size_t row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        row_t each;
        int status = row_of(reader, number, &each);
        if (status != ADDED) {
            return status;
        }
        const value_t *parent = argument(&each, ARG_PYTHON_PARENT);
        if (parent != NULL && parent->type == VALUE_NULL) {
            I64(table, FRAME_PARENT)[row] = -1;
        }
        else if (!whole_argument(&each, ARG_PYTHON_PARENT, -1, &I64(table, FRAME_PARENT)[row])) {
            return NOT_PLAIN;
        }
        if (!common_fields(each.event, table, row, &coarse) ||
            !whole_argument(&each, ARG_PYTHON_ID, -1, &I64(table, FRAME_OWN)[row]) ||
            !whole_argument(&each, ARG_PYTHON_MODULE, -1, &I64(table, FRAME_MODULE)[row])) {
            return NOT_PLAIN;
        }
    }
    row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        if (name_and_thread(reader, &reader->host_places, &tokens->events[number], table, row) < 0) {
            return FAILED;
        }
    }
    table->coarse = coarse;
    table->count = row;
    return ADDED;
}

/* The device or stream of an event: an argument, or else its process or thread. */
static inline int device_or_stream(const row_t *row, int which, const value_t *otherwise, int64_t *number)
{
    if (argument(row, which) != NULL) {
        return whole_argument(row, which, 0, number);
    }
    if (otherwise->type != VALUE_INT) {
        return 0;
    }
    *number = otherwise->number.integer;
    return 1;
}

static int add_device(reader_t *reader, const category_t *group, int kind)
{
    tokens_t *tokens = &reader->tokens;
    table_t *table = &reader->tables[DEVICE];
    if (table_reserve(table, DEVICE, (size_t)group->count) < 0) {
        return FAILED;
    }
    int all = all_have(reader, group, ARG_EXTERNAL), coarse = table->coarse;
    int same_count = 1, same_layout = 1, first_count = -1;
    int32_t first_node = tokens->events[group->first_event].node;
    size_t row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        row_t each;
        int status = row_of(reader, number, &each);
        if (status != ADDED) {
            return status;
        }
        int64_t *device = &I64(table, DEVICE_DEVICE)[row];
        if (!common_fields(each.event, table, row, &coarse) || !external_id(&each, all, &I64(table, DEVICE_EXTERNAL)[row]) ||
            !whole_argument(&each, ARG_CORRELATION, -1, &I64(table, DEVICE_CORRELATION)[row]) ||
            !device_or_stream(&each, ARG_DEVICE, &each.event->pid, device) ||
            !device_or_stream(&each, ARG_STREAM, &each.event->tid, &I64(table, DEVICE_STREAM)[row])) {
            return NOT_PLAIN;
        }
        if (each.event->pid.type == VALUE_INT && each.event->pid.number.integer >= reader->merged_from) {
            *device = each.event->pid.number.integer;
        }
        I8(table, KIND)[row] = (int8_t)kind;
        first_count = first_count < 0 ? each.layout->count : first_count;
        same_count &= each.layout->count == first_count;
        same_layout &= each.event->node == first_node;
    }
    if (same_count && !same_layout) {
        return NOT_PLAIN; /* Python takes them all for events of the first one's layout, if they have its keys */
    }
    row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        row_t each = accepted_row(reader, number);
        int32_t extra = -1;
        if (each.layout->device_rest_count) {
            extra = number_of_rest(reader, &reader->device_extras, "device_extra", each.event, tokens->nodes[each.event->node].layout,
                                   each.layout->device_rest, each.layout->device_rest_count);
            if (extra < 0) {
                return FAILED;
            }
        }
        I32(table, DEVICE_EXTRA)[row] = extra;
        if (name_and_thread(reader, &reader->device_places, each.event, table, row) < 0) {
            return FAILED;
        }
    }
    table->coarse = coarse;
    table->count = row;
    return ADDED;
}

/* Allocations and frees: instants of one name. */
static int add_memory(reader_t *reader, const category_t *group)
{
    static const char name[] = "\"[memory]\"";
    tokens_t *tokens = &reader->tokens;
    table_t *table = &reader->tables[MEMORY];
    if (table_reserve(table, MEMORY, (size_t)group->count) < 0) {
        return FAILED;
    }
    int coarse = table->coarse;
    size_t row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        row_t each;
        int status = row_of(reader, number, &each);
        if (status != ADDED) {
            return status;
        }
        const event_t *event = each.event;
        int64_t index, type;
        if (event->phase != 'i' || event->name.type != VALUE_STRING || event->name.length != sizeof name - 1 ||
            memcmp(TEXT(reader, &event->name), name, sizeof name - 1) != 0 || !is_plain_key(&event->pid) ||
            !is_plain_key(&event->tid) || !nanoseconds(&event->ts, &I64(table, MEMORY_START)[row], &coarse) ||
            !whole_argument(&each, ARG_BYTES, 0, &I64(table, MEMORY_NBYTES)[row]) ||
            !whole_argument(&each, ARG_ADDRESS, 0, &I64(table, MEMORY_ADDRESS)[row]) ||
            !whole_argument(&each, ARG_TOTAL, -1, &I64(table, MEMORY_TOTAL)[row]) ||
            !whole_argument(&each, ARG_DEVICE_ID, -1, &index) || !whole_argument(&each, ARG_DEVICE_TYPE, 0, &type)) {
            return NOT_PLAIN;
        }
        I64(table, MEMORY_DEVICE)[row] = type == 0 ? -1 : index > 0 ? index : 0;
    }
    row = table->count;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next, row++) {
        int32_t thread = thread_of(reader, &reader->host_places, &tokens->events[number]);
        if (thread < 0) {
            return FAILED;
        }
        I32(table, MEMORY_THREAD)[row] = thread;
    }
    table->coarse = coarse;
    table->count = row;
    return ADDED;
}

/* ---------------------------------------------------------------------------------------------------- handing over */

/* Give the rows of a table to Python and empty it. */
static int flush_table(reader_t *reader, int which)
{
    table_t *table = &reader->tables[which];
    const table_kind *kind = &TABLE_KINDS[which];
    if (table->count == 0) {
        return 0;
    }
    PyObject *columns = PyDict_New();
    if (columns == NULL) {
        return -1;
    }
    npy_intp count = (npy_intp)table->count;
    for (int i = 0; i < kind->column_count; i++) {
        PyObject *array = PyArray_SimpleNew(1, &count, kind->columns[i].type);
        if (array == NULL || PyDict_SetItemString(columns, kind->columns[i].name, array) < 0) {
            Py_XDECREF(array);
            Py_DECREF(columns);
            return -1;
        }
        memcpy(PyArray_DATA((PyArrayObject *)array), table->columns[i], table->count * item_size(kind->columns[i].type));
        Py_DECREF(array);
    }
    PyObject *done = PyObject_CallMethod(reader->handler, "columns", "sOO", kind->name, columns, table->coarse ? Py_True : Py_False);
    Py_DECREF(columns);
    if (done == NULL) {
        return -1;
    }
    Py_DECREF(done);
    table->count = 0;
    table->coarse = 1;
    return 0;
}

static int flush_all(reader_t *reader)
{
    for (int which = 0; which < TABLES; which++) {
        if (flush_table(reader, which) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Let Python add the events of a category, from their text. Rows of before come first, so they are handed over before. */
static int add_by_python(reader_t *reader, const category_t *group, PyObject *category)
{
    const tokens_t *tokens = &reader->tokens;
    if (flush_all(reader) < 0) {
        return -1;
    }
    span_t *spans = PyMem_Malloc((size_t)group->count * sizeof *spans);
    if (spans == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    size_t count = 0;
    for (int32_t number = group->first_event; number >= 0; number = tokens->events[number].next) {
        const event_t *event = &tokens->events[number];
        spans[count++] = (span_t){tokens->text + event->start, event->length};
    }
    PyObject *text = list_text(spans, count);
    PyMem_Free(spans);
    if (text == NULL) {
        return -1;
    }
    PyObject *done = PyObject_CallMethod(reader->handler, "group", "OO", category, text);
    Py_DECREF(text);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* What a category means, asked for when it first occurs. */
static meaning_t *meaning_of(reader_t *reader, int32_t place)
{
    const tokens_t *tokens = &reader->tokens;
    if (reader->meaning_count < tokens->category_count) {
        meaning_t *larger = PyMem_Realloc(reader->meanings, tokens->category_count * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        memset(larger + reader->meaning_count, 0, (tokens->category_count - reader->meaning_count) * sizeof *larger);
        reader->meanings = larger;
        reader->meaning_count = tokens->category_count;
    }
    meaning_t *meaning = &reader->meanings[place];
    if (meaning->text != NULL) {
        return meaning;
    }
    const category_t *category = &tokens->categories[place];
    PyObject *text = place == 0 ? Py_NewRef(Py_None)
                                : PyUnicode_DecodeUTF8((const char *)tokens->keys + category->start, category->length, NULL);
    PyObject *answer = text == NULL ? NULL : PyObject_CallMethod(reader->handler, "meaning", "(O)", text);
    const char *how;
    int done = answer != NULL && PyArg_ParseTuple(answer, "si", &how, &meaning->kind);
    if (done) {
        meaning->how = strcmp(how, "ignored") == 0   ? IGNORED
                       : strcmp(how, "host") == 0    ? AS_HOST
                       : strcmp(how, "runtime") == 0 ? AS_RUNTIME
                       : strcmp(how, "frames") == 0  ? AS_FRAMES
                       : strcmp(how, "device") == 0  ? AS_DEVICE
                       : strcmp(how, "phase") == 0   ? BY_PHASE
                                                     : BY_PYTHON;
        meaning->text = text;
    }
    else {
        Py_XDECREF(text);
    }
    Py_XDECREF(answer);
    return done ? meaning : NULL;
}

static int add_group(reader_t *reader, int32_t place)
{
    const meaning_t *meaning = meaning_of(reader, place);
    if (meaning == NULL) {
        return -1;
    }
    const category_t *group = &reader->tokens.categories[place];
    int status = NOT_PLAIN;
    switch (meaning->how) {
    case IGNORED:
        return 0;
    case AS_HOST:
        status = add_host(reader, group, meaning->kind, 0);
        break;
    case AS_RUNTIME:
        status = add_runtime(reader, group, meaning->kind);
        break;
    case AS_FRAMES:
        status = add_frames(reader, group);
        break;
    case AS_DEVICE:
        status = add_device(reader, group, meaning->kind);
        break;
    case BY_PHASE:
        if (reader->tokens.events[group->first_event].phase == 'i') {
            status = add_memory(reader, group);
            if (status == ADDED) {
                return 0; /* instants are not counted */
            }
        }
        else {
            status = add_host(reader, group, meaning->kind, 1);
        }
        break;
    default:
        break;
    }
    if (status == FAILED) {
        return -1;
    }
    if (status == NOT_PLAIN) {
        return add_by_python(reader, group, meaning->text);
    }
    PyObject *done = PyObject_CallMethod(reader->handler, "counted", "Oi", meaning->text, (int)group->count);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* ---------------------------------------------------------------------------------------------------- the type */

static int read_slice(reader_t *reader, const uint8_t *text, size_t length, size_t end)
{
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = tokens_read(&reader->tokens, text, length, end);
    Py_END_ALLOW_THREADS
    if (status == TOKENS_NO_MEMORY) {
        PyErr_NoMemory();
        return -1;
    }
    if (status == TOKENS_REFUSED) {
        return 0;
    }
    memset(reader->host_places.recent, 0, sizeof reader->host_places.recent);
    memset(reader->device_places.recent, 0, sizeof reader->device_places.recent);
    for (size_t i = 0; i < reader->tokens.group_count; i++) {
        if (add_group(reader, reader->tokens.groups[i]) < 0) {
            return -1;
        }
    }
    for (int which = 0; which < TABLES; which++) {
        if (reader->tables[which].count >= FLUSH_ROWS && flush_table(reader, which) < 0) {
            return -1;
        }
    }
    return 1;
}

static PyObject *reader_take(PyObject *self, PyObject *args)
{
    reader_t *reader = (reader_t *)self;
    PyObject *text;
    Py_ssize_t end;
    if (!PyArg_ParseTuple(args, "Sn:take", &text, &end)) {
        return NULL;
    }
    if (end < 0 || end > PyBytes_GET_SIZE(text)) {
        PyErr_Format(PyExc_ValueError, "take(): the end %zd is outside of %zd bytes", end, PyBytes_GET_SIZE(text));
        return NULL;
    }
    if (reader->busy) {
        PyErr_SetString(PyExc_RuntimeError, "take(): another slice is being read");
        return NULL;
    }
    reader->busy = 1;
    int status = read_slice(reader, (const uint8_t *)PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text), (size_t)end);
    reader->busy = 0;
    if (status < 0) {
        return NULL;
    }
    if (status == 0) {
        Py_RETURN_NONE;
    }
    return PyLong_FromSize_t(reader->tokens.event_count);
}

static PyObject *reader_flush(PyObject *self, PyObject *Py_UNUSED(args))
{
    reader_t *reader = (reader_t *)self;
    if (reader->busy) {
        PyErr_SetString(PyExc_RuntimeError, "flush(): a slice is being read");
        return NULL;
    }
    reader->busy = 1;
    int status = flush_all(reader);
    reader->busy = 0;
    if (status < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"handler", "synthetic", "allocates", "merged_from", NULL};
    PyObject *handler, *synthetic, *allocates;
    long long merged_from;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OUUL:Reader", names, &handler, &synthetic, &allocates, &merged_from)) {
        return NULL;
    }
    reader_t *reader = (reader_t *)type->tp_alloc(type, 0);
    if (reader == NULL) {
        return NULL;
    }
    reader->handler = Py_NewRef(handler);
    reader->synthetic_key = Py_NewRef(synthetic);
    reader->allocates_key = Py_NewRef(allocates);
    reader->merged_from = merged_from;
    reader->host_places.method = "thread";
    reader->device_places.method = "device_thread";
    for (int which = 0; which < TABLES; which++) {
        reader->tables[which].coarse = 1;
    }
    /* Python's own hashes are seeded at random */
    Py_hash_t seed = PyObject_Hash(synthetic);
    reader->seed = (uint64_t)seed ^ UINT64_C(0xD6E8FEB86659FD93);
    if (seed == -1 || tokens_init(&reader->tokens) != TOKENS_READ) {
        Py_DECREF(reader);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)reader;
}

static int reader_traverse(PyObject *self, visitproc visit, void *arg)
{
    reader_t *reader = (reader_t *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reader->handler);
    return 0;
}

static int reader_clear(PyObject *self)
{
    Py_CLEAR(((reader_t *)self)->handler);
    return 0;
}

static void reader_dealloc(PyObject *self)
{
    reader_t *reader = (reader_t *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    reader_clear(self);
    Py_CLEAR(reader->synthetic_key);
    Py_CLEAR(reader->allocates_key);
    tokens_free(&reader->tokens);
    for (int which = 0; which < TABLES; which++) {
        table_free(&reader->tables[which]);
    }
    spans_t *caches[] = {&reader->names,  &reader->inputs,        &reader->stacks,
                         &reader->extras, &reader->device_extras, &reader->host_places.cache,
                         &reader->device_places.cache};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        spans_free(caches[i]);
    }
    for (size_t i = 0; i < reader->layout_count; i++) {
        PyMem_Free(reader->layouts[i].rest);
        PyMem_Free(reader->layouts[i].device_rest);
    }
    PyMem_Free(reader->layouts);
    for (size_t i = 0; i < reader->meaning_count; i++) {
        Py_XDECREF(reader->meanings[i].text);
    }
    PyMem_Free(reader->meanings);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef reader_methods[] = {
    {"take", reader_take, METH_VARARGS,
     "take(text, end)\n--\n\nAdd the events of text[:end]; how many they are. None: they are not plainly valid JSON, and none was added."},
    {"flush", reader_flush, METH_NOARGS, "flush()\n--\n\nHand all rows to the handler."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reader(handler, synthetic, allocates, merged_from)\n--\n\nReads slices of the events of a trace into columns."},
    {Py_tp_new, reader_new},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "mindtorch_prof.load._reader.Reader",
    .basicsize = sizeof(reader_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};

static int module_exec(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0) {
        return -1;
    }
    PyObject *type = PyType_FromSpec(&reader_spec);
    if (type == NULL) {
        return -1;
    }
    int status = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return status;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static PyModuleDef reader_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_prof.load._reader",
    .m_doc = "The compiled reader of trace files; mindtorch_prof/load/core.py chooses between it and the Python code.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__reader(void)
{
    return PyModuleDef_Init(&reader_module);
}
