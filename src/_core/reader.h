/* The parts of the trace reader: the `reader_t` that they share, and what each of them does.

   reader.c            slices of text in, rows handed to Python out: the steps in their order, and the Python type
   reader_json.c       text in, records of events out
   reader_groups.c     the records of the events of a category in, rows of a table out
   reader_answers.c    text and keys in, the numbers and places that Python gave to them out; answers are kept
   reader_spans.c      the cache of such numbers
   reader_tables.c     rows of columns, and how they are handed to Python */

#ifndef MINDTORCH_READER_H
#define MINDTORCH_READER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "reader_json.h"
#include "reader_spans.h"

/* ---------------------------------------------------------------------------------------------------- tables */

enum {
    FLUSH_ROWS = 16384,     /* rows at which a table is handed to Python */
    MOST_COLUMNS = 16
};

/* tables, and their columns, in the order of the lists in reader_tables.c */
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
    void *columns[MOST_COLUMNS];
    size_t count, capacity;
    int coarse; /* whether all times are whole microseconds, or so far from 0 that a double holds no more */
} table_t;

void table_free(table_t *table);

/* Make room for more rows; -1: an error. */
int table_reserve(table_t *table, int which, size_t more);

/* Give the rows of a table to the method `columns` of Python's handler and empty it; -1: an error. */
int table_flush(table_t *table, int which, PyObject *handler);

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

/* ---------------------------------------------------------------------------------------------------- answers of Python */

/* Join spans to the JSON of a list. */
PyObject *list_text(const span_t *spans, size_t count);

/* The number of one value: a name or a stack. -1: an error, here and below. */
int32_t number_of_value(reader_t *reader, spans_t *cache, const char *method, const value_t *value);

/* The number of a list of values: a thread or inputs. */
int32_t number_of_list(reader_t *reader, spans_t *cache, const char *method, const span_t *spans, size_t count);

/* The number of the arguments that have no column: Python gets all arguments, and takes those of the layout. */
int32_t number_of_rest(reader_t *reader, spans_t *cache, const char *method, const event_t *event, int layout_number,
                       const int16_t *places, int count);

/* The number of the layout of an event's arguments, which end at a node. */
int32_t layout_of(reader_t *reader, int32_t place);

/* What a category means; NULL: an error. */
const meaning_t *meaning_of(reader_t *reader, int32_t place);

/* ---------------------------------------------------------------------------------------------------- groups */

/* Each of these adds the events of a category to a table, all or none: ADDED, or NOT_PLAIN where an event has something unusual
   and Python has to add them all, or FAILED with an exception set. */
enum { ADDED = 1, NOT_PLAIN = 0, FAILED = -1 };

int add_host(reader_t *reader, const category_t *group, int kind, int refuse_devices);
int add_runtime(reader_t *reader, const category_t *group, int kind);
int add_frames(reader_t *reader, const category_t *group);
int add_device(reader_t *reader, const category_t *group, int kind);
int add_memory(reader_t *reader, const category_t *group);

#endif
