/* The tokenizer of the trace reader: the text of a slice of events in, one record per event out.

   A record says where the fields of an event stand in the text and holds the numbers among them. Nothing here touches
   Python: the lock is not needed. Text that is not plainly well-formed JSON is refused as a whole; the caller then reads the
   slice by another way, which decides what it is. */

#ifndef MINDTORCH_READER_JSON_H
#define MINDTORCH_READER_JSON_H

#include <stddef.h>
#include <stdint.h>

enum value_type {
    VALUE_MISSING = 0,
    VALUE_INT,      /* `integer` holds it */
    VALUE_FLOAT,    /* +-mantissa * 10**exponent, see `real_value` */
    VALUE_NUMBER,   /* a valid number that the two above cannot hold: long, or far from 1 */
    VALUE_STRING,   /* start and length include the quotes */
    VALUE_TRUE,
    VALUE_FALSE,
    VALUE_NULL,
    VALUE_ARRAY,
    VALUE_OBJECT
};

enum { VALUE_NEGATIVE = 1, VALUE_ESCAPED = 2 };

typedef struct {
    uint32_t start, length; /* of the text of the value, counted from the start of the slice */
    union {
        int64_t integer;
        uint64_t mantissa;
    } number;
    int16_t exponent;
    uint8_t type;
    uint8_t flags;
} value_t;

/* The keys of the arguments of events, as a tree: a node is the sequence of keys from the root to it, so that the node at
   which an event's arguments end stands for all their keys in order. */
typedef struct {
    uint32_t key_start, key_length; /* in `keys`; the text without its opening quote, with its closing one */
    int32_t parent, first_child, sibling, recent; /* recent: the child that was met last */
    int32_t children, depth;
    int32_t layout;                               /* of the reader; -1: not made yet */
    uint32_t slice, start, length;                /* the last array that stood under this key, and in which slice */
    uint32_t group;                               /* of the reader: the group in which the next three are valid */
    int32_t first_event, last_event, next_node;
    uint8_t escaped;
} node_t;

/* A category as it stands in files, and the events of the present slice that have it. */
typedef struct {
    uint32_t start, length; /* in `keys`, without quotes */
    uint32_t slice;         /* in which the next three are valid */
    int32_t first_event, last_event, count;
} category_t;

enum { PHASE_OTHER = 0 }; /* the phase of an event that is not one character */

typedef struct {
    uint32_t start, length; /* of the event's text */
    value_t name, pid, tid, ts, dur, args;
    uint32_t first_value; /* of its arguments */
    int32_t node;         /* of the keys of its arguments; -1: too many different ones were met */
    int32_t next;         /* event of the same category; -1: none */
    int32_t next_in_layout;
    uint8_t phase;
} event_t;

typedef struct {
    const uint8_t *text, *limit; /* of the present slice; *limit is 0 */
    event_t *events;
    size_t event_count, event_capacity;
    value_t *values;
    size_t value_count, value_capacity;
    node_t *nodes;
    size_t node_count, node_capacity;
    uint8_t *keys; /* texts of nodes and categories */
    size_t keys_length, keys_capacity;
    category_t *categories; /* the first one stands for none */
    size_t category_count, category_capacity;
    int32_t *groups; /* categories of the present slice, in the order in which they first occur */
    size_t group_count;
    int32_t recent_category;
    uint32_t slice; /* number of the present slice */
} tokens_t;

enum { TOKENS_READ = 0, TOKENS_REFUSED = 1, TOKENS_NO_MEMORY = -1 };

int tokens_init(tokens_t *tokens);
void tokens_free(tokens_t *tokens);

/* Read the events of text[0:end]; text[length] is 0. */
int tokens_read(tokens_t *tokens, const uint8_t *text, size_t length, size_t end);

/* The double nearest to a number; 0: the value is no number that can be told exactly. */
int real_value(const value_t *value, double *real);

#endif
