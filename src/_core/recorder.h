/* The compiled core of a recording: what its files share. The plain Python version, python_core.py, is the definition of all of it. */

#ifndef MINDTORCH_RECORDER_H
#define MINDTORCH_RECORDER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "thread_local.h"

/* ------------------------------------------------------------------------------------------------ versions of Python */

#if PY_VERSION_HEX < 0x030B0000
static inline int frame_offset(PyFrameObject *frame)
{
    return frame->f_lasti < 0 ? -1 : frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
}
#else
static inline int frame_offset(PyFrameObject *frame)
{
    return PyFrame_GetLasti(frame);
}
#endif

#if PY_VERSION_HEX < 0x030C0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_T_OBJECT_EX T_OBJECT_EX
#define Py_READONLY READONLY
#endif

/* The value of a Python integer, which is a time or an identity most often: two digits. -1 with an error set: it is none, or too large. */
static inline int64_t integer_value(PyObject *number)
{
#if PY_VERSION_HEX < 0x030C0000
    if (PyLong_CheckExact(number) && Py_SIZE(number) == 2) /* PyLong_AsLongLong takes 10 ns for more than one */
        return (int64_t)((PyLongObject *)number)->ob_digit[1] << PyLong_SHIFT | (int64_t)((PyLongObject *)number)->ob_digit[0];
#endif
    return PyLong_AsLongLong(number);
}

/* ------------------------------------------------------------------------------------------------ clock.c: time */

#if defined(__x86_64__) && defined(__linux__)
#include <x86intrin.h>
#define HAS_COUNTER 1
#endif

/* The processor's counter, tied to the system's clock. Reading it takes 10 ns instead of 25. */
typedef struct {
    uint64_t ticks;      /* of the counter at the last look at the system's clock */
    uint64_t most_ticks; /* the counter is trusted for so long after it; 0: not at all */
    uint64_t ns_per_tick; /* times 2**32 */
    int64_t ns;          /* the system's clock at that time */
} Counter;

extern Counter counter;

void start_clock(void);
int64_t look_at_clock(void);

/* The time of time.perf_counter_ns. */
static inline int64_t now_ns(void)
{
#ifdef HAS_COUNTER
    uint64_t ticks = __rdtsc() - counter.ticks;
    if (ticks < counter.most_ticks)
        return counter.ns + (int64_t)(((unsigned __int128)ticks * counter.ns_per_tick) >> 32);
#endif
    return look_at_clock();
}

/* ------------------------------------------------------------------------------------------------ log.c: growing rows */

typedef struct Chunk {
    struct Chunk *next;
    size_t used, capacity;
    int64_t items[];
} Chunk;

/* Rows of integers. Grows by chunks, so that no row is ever copied while recording. */
typedef struct {
    Chunk *first, *last;
    size_t total; /* integers that were ever added, also those that `log_take` has handed over */
} Log;

int64_t *log_grow(Log *log, size_t count);

/* Room for `count` integers, which are never divided between chunks; NULL without memory. */
static inline int64_t *log_add(Log *log, size_t count)
{
    Chunk *last = log->last;
    if (last == NULL || last->capacity - last->used < count)
        return log_grow(log, count);
    int64_t *items = last->items + last->used;
    last->used += count;
    log->total += count;
    return items;
}

void log_free(Log *log);
size_t log_size(const Log *log);
int log_take(Log *log, PyObject *list);

/* ------------------------------------------------------------------------------------------------ table.c: words -> a number */

/* From sequences of integers to numbers: descriptions of arguments, functions. */
typedef struct {
    uint64_t hash;
    size_t first, length; /* of the key in `words`; length 0: free */
    int64_t value;
} Slot;

typedef struct {
    Slot *slots;
    size_t n_slots, n_used;
    int64_t *words;
    size_t n_words, words_capacity;
} Table;

uint64_t hash_words(const int64_t *words, size_t length);
const int64_t *table_get(const Table *table, const int64_t *words, size_t length, uint64_t hash);
int table_set(Table *table, const int64_t *words, size_t length, uint64_t hash, int64_t value);
void table_free(Table *table);

/* ------------------------------------------------------------------------------------------------ recorder.c */

typedef struct {
    uint64_t token;
    int64_t key, start, sequence, details[3];
    int64_t cost; /* nanoseconds that it took to enter; -1: not measured */
} OpenRange;

/* What is recorded of one thread. */
typedef struct Thread {
    struct Thread *next;
    unsigned long ident, native;
    bool records; /* whether its ops are recorded */
    bool traces;  /* whether its calls are logged */
    int untraced; /* how many ops and functions of the library are under way: what they call is not logged */
    Log rows, calls;
    int64_t n_open_calls; /* calls in the log that have not returned */
    OpenRange *open;
    size_t n_open, open_capacity;
    PyObject *grad_state;      /* this thread's grad state, as of `own_grad_state` */
    Py_tracefunc other;        /* another profile function of the thread, which is called too */
    PyObject *other_argument;
} Thread;

/* A range that was entered lately, and its key. */
typedef struct {
    PyObject *name;
    int64_t scope, forward_thread, key;
} RangeKey;

enum { LAST_RANGES = 64 };

/* What the recorder itself takes, measured at some events: ops, ranges, calls and returns. */
enum { COST_OP, COST_RANGE, COST_CALL, N_COSTS };
enum { COST_SAMPLES = 1024 };

typedef struct {
    uint32_t until_next; /* events that are not measured until the next one that is */
    uint32_t random;
    uint32_t most_between; /* such events between two that are measured: 63, or 0 for all */
    uint64_t n_sampled;
    int32_t ns[COST_SAMPLES]; /* of the last samples */
} CostSamples;

/* Whose turn it is: the thread that takes rows waits for the interpreter's lock, and threads that record have it most of the time. */
typedef struct {
    int64_t due; /* ns: who records something that ended later gives way; NEVER_DUE: nobody does */
    volatile uint64_t number;
    unsigned long ident; /* the thread that takes rows */
    long process;
    bool is_late;     /* threads have given way in this turn, in vain */
    uint64_t n_waits; /* how often threads have given way, */
    int64_t waited;   /* and for how many nanoseconds in all */
} Turn;

#define NEVER_DUE INT64_MAX

typedef struct {
    PyObject_HEAD
    PyObject *recording; /* the Recorder */
    PyObject *range_keys, *functions;
    PyObject *assign_id, *storages, *storage_at; /* of the tensor register, or NULL */
    bool all_threads, inputs, calls, tensors, memory, has_register;
    size_t width;
    int64_t first_id; /* ids of tensors below are of earlier recordings */
    uint64_t serial, next_token;
    unsigned long owner; /* the thread that began the recording */
    Thread *threads;
    Log memory_rows, tensor_ids;
    Log takeovers; /* rows of (identity, native id before and now, time): a thread got the identity of one that had ended */
    Table descriptions; /* of arguments -> index of the Recorder's inputs */
    Table codes;        /* of Python and C functions -> their numbers */
    PyObject *kept;     /* objects whose addresses are in `descriptions` */
    uint64_t n_asked; /* how often the Recorder was asked for what was new: such events are no samples */
    bool listens, traces, watches_silently;
    CostSamples costs[N_COSTS];
    RangeKey last_ranges[LAST_RANGES];
    Turn turn;
} Core;

extern PyTypeObject *tensor_type;    /* mindtorch_v2.Tensor */
extern PyTypeObject *parameter_type; /* mindtorch_v2.nn.Parameter */
extern PyObject *str_keeps, *str_is_sparse, *str_root;

/* An internal field of tensors, or of a grad state: a slot of their class. */
typedef struct {
    PyObject *name;
    Py_ssize_t offset; /* in a Tensor or Parameter; other subclasses may compute the attribute */
} Field;

extern Field field_array, field_tensor_id, field_storage, field_base;

/* A new reference to what a tensor has there; NULL: an error, AttributeError where it has nothing. */
static inline PyObject *get_field(PyObject *tensor, const Field *field)
{
    if (Py_TYPE(tensor) == tensor_type || Py_TYPE(tensor) == parameter_type) {
        PyObject *value = *(PyObject **)((char *)tensor + field->offset);
        if (value != NULL)
            return Py_NewRef(value);
    }
    return PyObject_GetAttr(tensor, field->name);
}

/* Whether to measure this event: one of 32 on average, at random, as a program repeats itself. */
static inline bool is_sampled(CostSamples *samples)
{
    if (samples->until_next > 0) {
        samples->until_next--;
        return false;
    }
    samples->random = samples->random * 1664525u + 1013904223u;
    samples->until_next = samples->random >> 26 & samples->most_between;
    return true;
}

static inline void add_sample(CostSamples *samples, int64_t ns)
{
    samples->ns[samples->n_sampled++ % COST_SAMPLES] = ns > INT32_MAX ? INT32_MAX : (int32_t)ns;
}

int report_error(PyObject *about);
Thread *find_thread(Core *core, unsigned long ident);
Thread *new_thread(Core *core, unsigned long ident);
Thread *this_thread(Core *core);

/* ------------------------------------------------------------------------------------------------ turns.c */

void wait_for_turn(Core *core);
PyObject *core_set_turn(PyObject *self, PyObject *due);
PyObject *core_waits(PyObject *self, PyObject *nothing);

/* Called where a thread has recorded something: `now` is when it ended. Whether it has given way. */
static inline bool give_way(Core *core, int64_t now)
{
    if (now <= core->turn.due)
        return false;
    wait_for_turn(core);
    return true;
}

/* ------------------------------------------------------------------------------------------------ inputs.c */

/* The last description of an op's arguments: most calls of an op have the same. */
enum { REMEMBERED_WORDS = 24 };

typedef struct {
    uint64_t serial; /* of the core */
    size_t length;   /* 0: none */
    int64_t index;
    int64_t words[REMEMBERED_WORDS];
} Remembered;

/* -1: not described, or an interrupt is set. */
int64_t inputs_of(Core *core, PyObject *op, int64_t uid, PyObject *const *arguments, Py_ssize_t count, Remembered *last);
int load_inputs(void);

/* ------------------------------------------------------------------------------------------------ memory.c */

int load_memory(void);
int64_t next_id(int64_t now);
int64_t after_ids(int64_t now);
int listen_to_memory(Core *core, bool wanted);
int tell_python_frees(void);
void forget_core(Core *core);
void record_allocation(Core *core, PyObject *tensor, PyObject *array, int64_t now);
PyObject *memory_allocation_id(PyObject *module, PyObject *array);
PyObject *memory_alive(PyObject *module, PyObject *nothing);
int64_t array_bytes(PyObject *array);
#ifdef NPY_FEATURE_VERSION
PyArrayObject *owner_of(PyArrayObject *array);
int64_t allocation_of(PyArrayObject *array);
int64_t silent_id(PyArrayObject *owner, int64_t first_id, int64_t new_id);
#endif
int watch_silently(bool wanted);

/* ------------------------------------------------------------------------------------------------ tensors.c */

int64_t id_of_tensor(Core *core, PyObject *value);

/* ------------------------------------------------------------------------------------------------ calls.c */

/* While an op runs, the interpreter does not call the profile function at all: what was on before `suspend_calls`. */
typedef struct {
    Thread *thread; /* NULL: calls of this thread are not traced */
    int saved;
} Suspended;

Suspended suspend_calls(Core *core, Thread *thread);
void resume_calls(Core *core, Suspended suspended);
int begin_calls(Core *core);
int begin_thread(Core *core, PyObject *frame, const char *event, PyObject *argument);
void end_calls(Core *core);
void close_calls(Core *core, int64_t now);
PyObject *call_traced(Core *core, Thread *thread, PyObject *const *arguments, Py_ssize_t count);

#endif
