/* The groups of the trace reader: the records of the events of one category in, rows of a table out.

   Rows are written behind those of the table and belong to it only when the count is raised. */

#include "reader.h"

#include <math.h>
#include <string.h>

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
int add_host(reader_t *reader, const category_t *group, int kind, int refuse_devices)
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

int add_runtime(reader_t *reader, const category_t *group, int kind)
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

int add_frames(reader_t *reader, const category_t *group)
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

int add_device(reader_t *reader, const category_t *group, int kind)
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
int add_memory(reader_t *reader, const category_t *group)
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
