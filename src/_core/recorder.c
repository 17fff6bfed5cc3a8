/* The compiled core of a recording: op calls, ranges, memory and Python calls in, rows of integers out.

   The same as python_core.py, which is the definition and explains the protocol. An op is called through its probe, which reads the clock
   twice and appends one row to the rows of its thread. */

#include "recorder.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_recorder_numpy
#include <numpy/arrayobject.h>
#include <stddef.h>
#include <string.h>

PyTypeObject *tensor_type, *parameter_type;
Field field_array, field_tensor_id, field_storage, field_base;
PyObject *str_keeps, *str_is_sparse, *str_root;

static PyObject *str_range_key, *str_optimizer_stepped, *str_note_foreign_thread;
static PyObject *own_grad_state;         /* of _graph.py */
static PyTypeObject *grad_state_type;    /* of what it returns: with fields, or a dict */
static Field field_seq, field_enabled;   /* of the grad state */
static PyObject *is_of_a_signal_handler; /* of program_errors.py */
static PyObject *probes;         /* by uid: what is called instead of an op */
static Core *active;             /* the core that records now, or NULL */
static uint64_t n_cores;

/* ------------------------------------------------------------------------------------------------ errors */

/* Whether a signal handler of the program raised the present error, a timeout say. The error stays set. */
static bool error_is_of_a_signal_handler(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(value, traceback);
    PyObject *answer = traceback == NULL ? NULL : PyObject_CallOneArg(is_of_a_signal_handler, value);
    bool is_of_handler = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return is_of_handler;
}

/* Report an error of the recorder itself, which is none of the program's, and go on. What is meant to end the program, such as
   KeyboardInterrupt or what a signal handler raises, happened while the recorder ran but is not its error: it stays set, and -1 is
   returned. */
int report_error(PyObject *about)
{
    if (PyErr_Occurred() == NULL)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || error_is_of_a_signal_handler())
        return -1;
    PyErr_WriteUnraisable(about);
    return 0;
}

/* ------------------------------------------------------------------------------------------------ threads */

/* the last thread that was looked for on this one */
static FAST_THREAD_LOCAL struct {
    uint64_t serial;
    Thread *thread;
} here;

Thread *find_thread(Core *core, unsigned long ident)
{
    for (Thread *thread = core->threads; thread != NULL; thread = thread->next)
        if (thread->ident == ident)
            return thread;
    return NULL;
}

/* This thread; NULL if nothing of it is recorded. */
Thread *this_thread(Core *core)
{
    if (here.serial != core->serial) {
        Thread *thread = find_thread(core, PyThread_get_thread_ident());
        if (thread == NULL)
            return NULL;
        unsigned long native = PyThread_get_thread_native_id();
        if (thread->native != native && thread->native != 0) {
            int64_t *row = log_add(&core->takeovers, 4);
            if (row != NULL) { /* without memory the two threads are shown as one */
                row[0] = (int64_t)thread->ident;
                row[1] = (int64_t)thread->native;
                row[2] = (int64_t)native;
                row[3] = now_ns();
            }
        }
        thread->native = native;
        Py_CLEAR(thread->grad_state); /* it may be that of a thread which has ended, and whose identity this one has got */
        here.thread = thread;
        here.serial = core->serial;
    }
    return here.thread;
}

Thread *new_thread(Core *core, unsigned long ident)
{
    Thread *thread = PyMem_RawCalloc(1, sizeof(Thread));
    if (thread == NULL)
        return NULL;
    thread->ident = ident;
    if (ident == PyThread_get_thread_ident())
        thread->native = PyThread_get_thread_native_id();
    thread->next = core->threads;
    core->threads = thread;
    return thread;
}

/* Record the ops of this thread from now on. */
static Thread *record_thread(Core *core)
{
    Thread *thread = this_thread(core);
    if (thread == NULL)
        thread = new_thread(core, PyThread_get_thread_ident());
    if (thread == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (thread->grad_state == NULL) {
        PyObject *state = PyObject_CallNoArgs(own_grad_state);
        if (state != NULL && Py_TYPE(state) != grad_state_type) {
            PyErr_SetString(PyExc_TypeError, "the grad state of this thread is of another type than that of others");
            Py_CLEAR(state);
        }
        if (state == NULL)
            return NULL;
        Py_XSETREF(thread->grad_state, state); /* an op that ran inside may have set it */
    }
    thread->records = true;
    return thread;
}

/* The thread whose ops are to be recorded, this one; NULL: it is not, or an error. */
static inline Thread *recorded_thread(Core *core)
{
    Thread *thread = this_thread(core);
    bool is_recorded = thread != NULL && thread->records;
    if (is_recorded && thread->grad_state != NULL)
        return thread;
    return is_recorded || core->all_threads ? record_thread(core) : NULL;
}

static void thread_free(Thread *thread)
{
    log_free(&thread->rows);
    log_free(&thread->calls);
    PyMem_RawFree(thread->open);
    Py_XDECREF(thread->grad_state);
    Py_XDECREF(thread->other_argument);
    PyMem_RawFree(thread);
}

/* ------------------------------------------------------------------------------------------------ parts of a row */

/* A value of the thread's grad state, borrowed; NULL: none. */
static inline PyObject *grad_value(Thread *thread, const Field *field)
{
    if (field->offset != 0)
        return *(PyObject **)((char *)thread->grad_state + field->offset);
    return PyDict_GetItemWithError(thread->grad_state, field->name);
}

static inline int64_t sequence_of(Thread *thread)
{
    if (grad_value(thread, &field_enabled) != Py_True) /* also if it is missing */
        return -1;
    PyObject *number = grad_value(thread, &field_seq);
    return number == NULL || !PyLong_CheckExact(number) ? -1 : PyLong_AsLongLong(number);
}

/* The ids of one op's tensors. They are written to the core's log in one go: giving ids runs Python code, and so ops of other threads. */
typedef struct {
    int64_t few[16], *ids;
    size_t count, capacity;
    bool is_incomplete; /* there was no memory for all */
} Ids;

static bool grow_ids(Ids *ids)
{
    int64_t *larger = PyMem_RawMalloc(ids->capacity * 2 * sizeof(int64_t));
    if (larger == NULL) {
        ids->is_incomplete = true;
        return false;
    }
    memcpy(larger, ids->ids, ids->count * sizeof(int64_t));
    if (ids->ids != ids->few)
        PyMem_RawFree(ids->ids);
    ids->ids = larger;
    ids->capacity *= 2;
    return true;
}

static inline void begin_ids(Ids *ids)
{
    ids->ids = ids->few;
    ids->count = 0;
    ids->capacity = sizeof ids->few / sizeof ids->few[0];
    ids->is_incomplete = false;
}

static int add_id(Core *core, Ids *ids, PyObject *value)
{
    if (ids->count == ids->capacity && !grow_ids(ids))
        return 0;
    int64_t tensor_id = id_of_tensor(core, value);
    if (tensor_id < 0) {
        tensor_id = 0;
        if (report_error(value) < 0)
            return -1;
    }
    ids->ids[ids->count++] = tensor_id;
    return 0;
}

static int add_ids_in_list(Core *core, Ids *ids, PyObject *list, bool only_tensors)
{
    int result = 0;
    for (Py_ssize_t i = 0; result == 0 && i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(list, i)); /* the list may change meanwhile */
        if (!only_tensors || PyObject_TypeCheck(item, tensor_type))
            result = add_id(core, ids, item);
        Py_DECREF(item);
    }
    return result;
}

/* Write the ids into the log; where they begin, or -1. */
static int64_t log_ids(Core *core, Ids *ids)
{
    int64_t first = ids->is_incomplete ? -1 : (int64_t)core->tensor_ids.total;
    if (ids->count > 0 && first >= 0) {
        int64_t *place = log_add(&core->tensor_ids, ids->count);
        if (place == NULL)
            first = -1;
        else
            memcpy(place, ids->ids, ids->count * sizeof(int64_t));
    }
    if (ids->ids != ids->few)
        PyMem_RawFree(ids->ids);
    return first;
}

/* The id of a tensor that has got one in this recording; 0 for None, -1 for anything else. It runs no Python code. */
static inline int64_t known_id(Core *core, PyObject *value)
{
    if (Py_TYPE(value) != tensor_type && Py_TYPE(value) != parameter_type)
        return value == Py_None ? 0 : -1;
    PyObject *known = *(PyObject **)((char *)value + field_tensor_id.offset);
    int64_t tensor_id = known != NULL && PyLong_CheckExact(known) ? integer_value(known) : -1;
    return tensor_id >= core->first_id ? tensor_id : -1;
}

/* Log the tensors among an op's arguments if all of them have ids: most often. Where they begin in the log; -1: not all have. */
static inline int64_t log_known_tensors(Core *core, const char *letters, PyObject *const *arguments, Py_ssize_t count)
{
    size_t n_tensors = 0;
    for (Py_ssize_t i = 0; i < count && letters[i] != 0; i++)
        if (letters[i] != '-') {
            if (letters[i] == 'L' || known_id(core, arguments[i]) < 0)
                return -1;
            n_tensors++;
        }
    int64_t first = (int64_t)core->tensor_ids.total;
    int64_t *place = n_tensors == 0 ? NULL : log_add(&core->tensor_ids, n_tensors);
    if (place == NULL)
        return n_tensors == 0 ? first : -1;
    for (Py_ssize_t i = 0; i < count && letters[i] != 0; i++)
        if (letters[i] != '-')
            *place++ = known_id(core, arguments[i]);
    return first;
}

/* Log the tensors among an op's arguments; where they begin in the log. letters: the op's `tensor_places`. */
static int64_t log_tensors(Core *core, const char *letters, PyObject *const *arguments, Py_ssize_t count)
{
    int64_t first = log_known_tensors(core, letters, arguments, count);
    if (first >= 0)
        return first;
    Ids ids;
    begin_ids(&ids);
    int result = 0;
    for (Py_ssize_t i = 0; result == 0 && i < count && letters[i] != 0; i++) {
        if (letters[i] == 'L') {
            if (PyList_CheckExact(arguments[i]) || PyTuple_CheckExact(arguments[i]))
                result = add_ids_in_list(core, &ids, arguments[i], false);
        } else if (letters[i] != '-')
            result = add_id(core, &ids, arguments[i]);
    }
    return log_ids(core, &ids);
}

/* Log the tensors among a range's arguments, and in lists among them; where they begin in the log. */
static int64_t log_tensors_of_range(Core *core, PyObject *arguments)
{
    Ids ids;
    begin_ids(&ids);
    int result = 0;
    for (Py_ssize_t i = 0; result == 0 && i < PyTuple_GET_SIZE(arguments); i++) {
        PyObject *value = PyTuple_GET_ITEM(arguments, i);
        if (PyObject_TypeCheck(value, tensor_type)) {
            PyObject *array = get_field(value, &field_array);
            if (array != NULL)
                result = add_id(core, &ids, value);
            else if (PyErr_ExceptionMatches(PyExc_Exception))
                PyErr_Clear(); /* a meta tensor */
            else
                result = -1;
            Py_XDECREF(array);
        } else if (PyList_Check(value) || PyTuple_Check(value))
            result = add_ids_in_list(core, &ids, value, true);
    }
    return log_ids(core, &ids);
}

static inline void write_row(Core *core, Thread *thread, int64_t key, int64_t start, int64_t end, int64_t sequence,
                             const int64_t *details)
{
    int64_t *row = log_add(&thread->rows, core->width);
    if (row == NULL)
        return;
    row[0] = key;
    row[1] = start;
    row[2] = end;
    row[3] = sequence;
    for (size_t i = 4; i < core->width; i++)
        row[i] = details[i - 4];
}

/* ------------------------------------------------------------------------------------------------ probes */

/* Called instead of an op's `run` while something records. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *op, *run;
    int64_t uid;
    int allocates;      /* the op's attribute; -1: not asked yet */
    PyObject *letters;  /* the op's `tensor_places`, as bytes; NULL: not asked yet */
    Remembered inputs;
} Probe;

static int ask_allocates(Probe *probe)
{
    PyObject *value = PyObject_GetAttrString(probe->op, "allocates");
    if (value == NULL)
        return -1;
    long allocates = PyLong_AsLong(value);
    Py_DECREF(value);
    if (PyErr_Occurred())
        return -1;
    probe->allocates = (int)allocates;
    return 0;
}

static int ask_letters(Probe *probe)
{
    PyObject *text = PyObject_GetAttrString(probe->op, "tensor_places");
    if (text == NULL)
        return -1;
    PyObject *letters = PyUnicode_AsASCIIString(text);
    Py_DECREF(text);
    if (probe->letters == NULL) /* still: another thread may have asked meanwhile, and uses the answer */
        probe->letters = letters;
    else
        Py_XDECREF(letters);
    return letters == NULL ? -1 : 0;
}

/* What an op needs to know about itself, asked before it is timed for the first time. */
static int prepare_probe(Core *core, Probe *probe)
{
    if (core->memory && probe->allocates < 0 && ask_allocates(probe) < 0 && report_error(probe->op) < 0)
        return -1;
    if (core->tensors && probe->letters == NULL && ask_letters(probe) < 0)
        return report_error(probe->op);
    return 0;
}

/* now: when the op ended, which is the time of the allocation */
static void record_result(Core *core, Probe *probe, PyObject *tensor, PyObject *const *arguments, Py_ssize_t count, int64_t now)
{
    if (!PyObject_TypeCheck(tensor, tensor_type))
        return;
    PyObject *array = get_field(tensor, &field_array), *storage = NULL, *other = NULL;
    if (array == NULL || array == Py_None)
        goto done;
    if (Py_TYPE(tensor) != tensor_type) {
        other = PyObject_GetAttr(tensor, str_is_sparse);
        if (other == NULL || other == Py_True)
            goto done;
        Py_CLEAR(other);
    }
    if (probe->allocates == 2) {
        other = get_field(tensor, &field_base);
        if (other != Py_None)
            goto done; /* a view */
        Py_CLEAR(other);
        for (Py_ssize_t i = 0; i < count; i++)
            if (arguments[i] == tensor)
                goto done;
    }
    if (probe->allocates != 1) /* else the tensor was made around its array a moment ago, and has no storage yet */
        storage = get_field(tensor, &field_storage);
    if (PyErr_Occurred())
        goto done;
    if (storage != NULL && storage != Py_None) {
        other = PyObject_GetAttr(storage, str_keeps);
        if (other != Py_None)
            goto done; /* an alias of another one */
        Py_SETREF(array, PyObject_GetAttr(storage, str_root));
        if (array == NULL)
            goto done;
    }
    record_allocation(core, tensor, array, now);
done:
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* a tensor without one of these attributes */
    Py_XDECREF(array);
    Py_XDECREF(storage);
    Py_XDECREF(other);
}

static void record_results(Core *core, Probe *probe, PyObject *result, PyObject *const *arguments, Py_ssize_t count, int64_t now)
{
    if (PyTuple_Check(result) || PyList_Check(result)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result) && !PyErr_Occurred(); i++) {
            PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(result, i)); /* the list may change meanwhile */
            record_result(core, probe, item, arguments, count, now);
            Py_DECREF(item);
        }
    } else
        record_result(core, probe, result, arguments, count, now);
}

/* Run an op on a thread that is not recorded. */
static PyObject *run_unrecorded(Core *core, Probe *probe, PyObject *const *arguments, size_t flags, PyObject *names)
{
    if (report_error(probe->op) < 0)
        return NULL;
    PyObject *noted = PyObject_CallMethodNoArgs(core->recording, str_note_foreign_thread);
    if (noted == NULL && report_error(probe->op) < 0)
        return NULL;
    Py_XDECREF(noted);
    Thread *thread = this_thread(core);
    if (thread == NULL) {
        PyObject *result = PyObject_Vectorcall(probe->run, arguments, flags, names);
        give_way(core, now_ns());
        return result;
    }
    Suspended suspended = suspend_calls(core, thread);
    PyObject *result = PyObject_Vectorcall(probe->run, arguments, flags, names);
    give_way(core, now_ns());
    resume_calls(core, suspended);
    return result;
}

/* The columns of a row that only some recordings have. -1: an interrupt is set. */
static int describe_call(Core *core, Thread *thread, Probe *probe, PyObject *const *arguments, Py_ssize_t count, int64_t *details)
{
    int64_t inputs = -1, tensors = -1;
    if (core->inputs) {
        inputs = inputs_of(core, probe->op, probe->uid, arguments, count, &probe->inputs);
        if (inputs < 0 && PyErr_Occurred())
            return -1;
        *details++ = inputs;
    }
    if (core->calls)
        *details++ = (int64_t)thread->calls.total / 2;
    if (core->tensors) {
        if (inputs >= 0 && probe->letters != NULL)
            tensors = log_tensors(core, PyBytes_AS_STRING(probe->letters), arguments, count);
        *details++ = tensors;
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *probe_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    Probe *probe = (Probe *)self;
    Core *core = active;
    if (core == NULL)
        return PyObject_Vectorcall(probe->run, arguments, flags, names);
    Py_INCREF(core);
    PyObject *result;
    Thread *thread = recorded_thread(core);
    if (thread == NULL) {
        result = run_unrecorded(core, probe, arguments, flags, names);
        Py_DECREF(core);
        return result;
    }
    CostSamples *samples = is_sampled(&core->costs[COST_OP]) ? &core->costs[COST_OP] : NULL;
    int64_t began = samples == NULL ? 0 : now_ns();
    uint64_t n_asked = core->n_asked;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    int64_t sequence = sequence_of(thread), details[3] = {0};
    result = NULL;
    if (prepare_probe(core, probe) < 0 || describe_call(core, thread, probe, arguments, count, details) < 0)
        goto done;
    Suspended suspended = {NULL, 0};
    if (core->calls)
        suspended = suspend_calls(core, thread);
    if (n_asked != core->n_asked)
        samples = NULL;
    int64_t start = now_ns();
    result = PyObject_Vectorcall(probe->run, arguments, flags, names);
    int64_t ran = now_ns(), end = ran;
    if (core->memory && probe->allocates > 0 && result != NULL) {
        record_results(core, probe, result, arguments, count, ran);
        if (PyErr_Occurred()) /* an interrupt */
            Py_CLEAR(result);
        end = after_ids(ran); /* what an op allocates is inside it */
    }
    write_row(core, thread, probe->uid, start, end, sequence, details);
    if (give_way(core, end))
        samples = NULL;
    if (core->calls)
        resume_calls(core, suspended);
    if (samples != NULL)
        add_sample(samples, start - began + now_ns() - ran);
done:
    Py_DECREF(core);
    return result;
}

static PyObject *probe_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    PyObject *op;
    if (named != NULL && PyDict_GET_SIZE(named) != 0) {
        PyErr_SetString(PyExc_TypeError, "Probe() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O:Probe", &op))
        return NULL;
    Probe *probe = (Probe *)type->tp_alloc(type, 0);
    if (probe == NULL)
        return NULL;
    probe->vectorcall = probe_call;
    probe->op = Py_NewRef(op);
    probe->run = PyObject_GetAttrString(op, "run");
    PyObject *uid = probe->run == NULL ? NULL : PyObject_GetAttrString(op, "uid");
    probe->uid = uid == NULL ? -1 : PyLong_AsLongLong(uid);
    probe->allocates = -1;
    Py_XDECREF(uid);
    if (PyErr_Occurred()) {
        Py_DECREF(probe);
        return NULL;
    }
    return (PyObject *)probe;
}

static int probe_traverse(PyObject *self, visitproc visit, void *arg)
{
    Probe *probe = (Probe *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(probe->op);
    Py_VISIT(probe->run);
    return 0;
}

static void probe_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Probe *probe = (Probe *)self;
    Py_XDECREF(probe->op);
    Py_XDECREF(probe->run);
    Py_XDECREF(probe->letters);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef probe_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(Probe, vectorcall), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* No tp_clear, here and below: the objects that a probe or a core refers to can break all cycles, and so its parts never go missing
   while something still calls it. */
static PyType_Slot probe_slots[] = {
    {Py_tp_doc, "Probe(op)(*arguments) runs an op, and records it in the core that is active."},
    {Py_tp_new, probe_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, probe_traverse},
    {Py_tp_dealloc, probe_dealloc},
    {Py_tp_members, probe_members},
    {0, NULL},
};

static PyType_Spec probe_spec = {
    .name = "mindtorch_v2.profiler.record._core.Probe",
    .basicsize = sizeof(Probe),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = probe_slots,
};

/* ------------------------------------------------------------------------------------------------ the core */

static bool wants(PyObject *wanted, const char *name)
{
    PyObject *value = PyErr_Occurred() ? NULL : PyObject_GetAttrString(wanted, name);
    bool is_wanted = value != NULL && PyObject_IsTrue(value) == 1;
    Py_XDECREF(value);
    return is_wanted;
}

static int begin_core(Core *core, PyObject *recording)
{
    PyObject *wanted = PyObject_GetAttrString(recording, "wanted");
    if (wanted == NULL)
        return -1;
    core->all_threads = wants(wanted, "all_threads");
    core->inputs = wants(wanted, "inputs");
    core->calls = wants(wanted, "calls");
    core->tensors = wants(wanted, "tensors");
    core->memory = wants(wanted, "memory");
    Py_DECREF(wanted);
    if (PyErr_Occurred())
        return -1;
    core->width = 4 + (size_t)core->inputs + (size_t)core->calls + (size_t)core->tensors;
    core->recording = Py_NewRef(recording);
    core->range_keys = PyObject_GetAttrString(recording, "range_keys");
    core->functions = core->range_keys == NULL ? NULL : PyObject_GetAttrString(recording, "functions");
    core->kept = core->functions == NULL ? NULL : PyList_New(0);
    core->serial = ++n_cores;
    for (int kind = 0; kind < N_COSTS; kind++)
        core->costs[kind].most_between = 63;
    core->owner = PyThread_get_thread_ident();
    core->turn.due = NEVER_DUE;
    if (core->kept == NULL)
        return -1;
    if (!PyDict_Check(core->range_keys)) {
        PyErr_SetString(PyExc_TypeError, "the keys of ranges are no dict");
        return -1;
    }
    return record_thread(core) == NULL ? -1 : 0;
}

/* All is done here and nothing in tp_init: there is no core that serves no recording. */
static PyObject *core_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *names[] = {"recording", NULL};
    PyObject *recording;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O:Core", names, &recording))
        return NULL;
    if (probes == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "load_library() comes before the first recording");
        return NULL;
    }
    Core *core = (Core *)type->tp_alloc(type, 0);
    if (core != NULL && begin_core(core, recording) < 0)
        Py_CLEAR(core);
    return (PyObject *)core;
}

static int core_traverse(PyObject *self, visitproc visit, void *arg)
{
    Core *core = (Core *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(core->recording);
    Py_VISIT(core->range_keys);
    Py_VISIT(core->functions);
    Py_VISIT(core->assign_id);
    Py_VISIT(core->storages);
    Py_VISIT(core->storage_at);
    Py_VISIT(core->kept);
    for (Thread *thread = core->threads; thread != NULL; thread = thread->next) {
        Py_VISIT(thread->grad_state);
        Py_VISIT(thread->other_argument);
    }
    return 0;
}

static void core_dealloc(PyObject *self)
{
    Core *core = (Core *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    forget_core(core);
    if (core->watches_silently && watch_silently(false) < 0)
        PyErr_WriteUnraisable(NULL);
    Py_XDECREF(core->recording);
    Py_XDECREF(core->range_keys);
    Py_XDECREF(core->functions);
    Py_XDECREF(core->assign_id);
    Py_XDECREF(core->storages);
    Py_XDECREF(core->storage_at);
    Py_XDECREF(core->kept);
    for (int i = 0; i < LAST_RANGES; i++)
        Py_XDECREF(core->last_ranges[i].name);
    while (core->threads != NULL) {
        Thread *next = core->threads->next;
        thread_free(core->threads);
        core->threads = next;
    }
    log_free(&core->memory_rows);
    log_free(&core->tensor_ids);
    log_free(&core->takeovers);
    table_free(&core->descriptions);
    table_free(&core->codes);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *core_recorder(PyObject *self, void *closure)
{
    (void)self;
    (void)closure;
    return Py_NewRef(probes);
}

static PyObject *core_activate(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    Core *core = (Core *)self;
    PyObject *reg = PyObject_GetAttrString(core->recording, "register");
    if (reg == NULL)
        return NULL;
    core->has_register = reg != Py_None;
    if (core->has_register) {
        core->first_id = 0;
        PyObject *first = PyObject_GetAttrString(reg, "first_id");
        if (first != NULL)
            core->first_id = PyLong_AsLongLong(first);
        Py_XDECREF(first);
        Py_XSETREF(core->assign_id, PyErr_Occurred() ? NULL : PyObject_GetAttrString(reg, "assign_id"));
        Py_XSETREF(core->storages, PyErr_Occurred() ? NULL : PyObject_GetAttrString(reg, "storages"));
        Py_XSETREF(core->storage_at, PyErr_Occurred() ? NULL : PyObject_GetAttrString(reg, "storage_at"));
        if (!PyErr_Occurred() && !(PyList_Check(core->storages) && PyDict_Check(core->storage_at)))
            PyErr_SetString(PyExc_TypeError, "the tensor register has other attributes than the core knows");
    }
    Py_DECREF(reg);
    if (PyErr_Occurred())
        return NULL;
    if (core->tensors && !core->memory && !core->watches_silently) {
        core->watches_silently = true;
        if (watch_silently(true) < 0)
            return NULL;
    }
    Py_INCREF(core);
    Py_XSETREF(active, core);
    Py_RETURN_NONE;
}

static PyObject *core_deactivate(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    Core *core = (Core *)self;
    if (active == core)
        Py_CLEAR(active);
    if (core->watches_silently) {
        core->watches_silently = false;
        if (watch_silently(false) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static OpenRange *add_open(Thread *thread)
{
    if (thread->n_open == thread->open_capacity) {
        size_t capacity = thread->open_capacity * 2 + 16;
        OpenRange *larger = PyMem_RawRealloc(thread->open, capacity * sizeof(OpenRange));
        if (larger == NULL)
            return NULL;
        thread->open = larger;
        thread->open_capacity = capacity;
    }
    return &thread->open[thread->n_open++];
}

static int64_t range_key(Core *core, PyObject *name, PyObject *scope, PyObject *forward_thread)
{
    int64_t of_scope = PyLong_AsLongLong(scope), of_thread = integer_value(forward_thread);
    if (PyErr_Occurred())
        return -1;
    RangeKey *last = &core->last_ranges[((uintptr_t)name >> 4) % LAST_RANGES];
    if (last->name == name && last->scope == of_scope && last->forward_thread == of_thread)
        return last->key; /* the same object: constant names are */
    PyObject *described = PyTuple_Pack(3, name, scope, forward_thread);
    if (described == NULL)
        return -1;
    PyObject *key = PyDict_GetItemWithError(core->range_keys, described);
    Py_XINCREF(key);
    Py_DECREF(described);
    if (key == NULL && !PyErr_Occurred()) {
        core->n_asked++;
        key = PyObject_CallMethodObjArgs(core->recording, str_range_key, name, scope, forward_thread, NULL);
    }
    int64_t number = key == NULL ? -1 : PyLong_AsLongLong(key);
    Py_XDECREF(key);
    if (number >= 0) {
        Py_XSETREF(last->name, Py_NewRef(name));
        last->scope = of_scope;
        last->forward_thread = of_thread;
        last->key = number;
    }
    return number;
}

static int describe_range(Core *core, Thread *thread, PyObject *arguments, int64_t *details)
{
    int64_t inputs = -1, tensors = -1;
    if (core->inputs) {
        inputs = inputs_of(core, Py_None, -1, &PyTuple_GET_ITEM(arguments, 0), PyTuple_GET_SIZE(arguments), NULL);
        if (inputs < 0 && PyErr_Occurred())
            return -1;
        *details++ = inputs;
    }
    if (core->calls)
        *details++ = (int64_t)thread->calls.total / 2;
    if (core->tensors) {
        if (inputs >= 0)
            tensors = log_tensors_of_range(core, arguments);
        *details++ = tensors;
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *core_enter(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Core *core = (Core *)self;
    if (count != 5 || !PyTuple_Check(arguments[4])) {
        PyErr_SetString(PyExc_TypeError, "enter(name, scope, sequence, forward_thread, arguments: tuple)");
        return NULL;
    }
    Thread *thread = recorded_thread(core);
    if (thread == NULL) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    CostSamples *samples = &core->costs[COST_RANGE];
    int64_t began = is_sampled(samples) ? now_ns() : 0;
    uint64_t n_asked = core->n_asked;
    OpenRange range = {.token = ++core->next_token, .cost = -1};
    range.sequence = PyLong_AsLongLong(arguments[2]);
    if (range.sequence == -1 && PyErr_Occurred())
        return NULL;
    range.key = range_key(core, arguments[0], arguments[1], arguments[3]);
    if (range.key < 0 && PyErr_Occurred())
        return NULL;
    if (describe_range(core, thread, arguments[4], range.details) < 0)
        return NULL;
    OpenRange *place = add_open(thread);
    if (place == NULL)
        return PyErr_NoMemory();
    range.start = now_ns();
    if (began != 0 && n_asked == core->n_asked)
        range.cost = range.start - began;
    *place = range;
    return PyLong_FromUnsignedLongLong(range.token);
}

static bool end_range(Core *core, Thread *thread, uint64_t token, int64_t now)
{
    for (size_t i = thread->n_open; i > 0; i--) { /* ranges of asynchronous code end in any order */
        OpenRange *range = &thread->open[i - 1];
        if (range->token == token) {
            int64_t cost = range->cost;
            write_row(core, thread, range->key, range->start, now, range->sequence, range->details);
            thread->n_open--;
            for (; i <= thread->n_open; i++)
                thread->open[i - 1] = thread->open[i];
            if (cost >= 0)
                add_sample(&core->costs[COST_RANGE], cost + now_ns() - now);
            return true;
        }
    }
    return false;
}

static PyObject *core_exit(PyObject *self, PyObject *token)
{
    Core *core = (Core *)self;
    int64_t now = now_ns();
    if (token == Py_None)
        Py_RETURN_NONE;
    uint64_t number = PyLong_AsUnsignedLongLong(token);
    if (PyErr_Occurred())
        return NULL;
    Thread *own = this_thread(core);
    if (own == NULL || !end_range(core, own, number, now))
        for (Thread *thread = core->threads; thread != NULL; thread = thread->next)
            if (end_range(core, thread, number, now))
                break;
    give_way(core, now);
    Py_RETURN_NONE;
}

static PyObject *core_stepped(PyObject *self, PyObject *optimizer)
{
    return PyObject_CallMethodOneArg(((Core *)self)->recording, str_optimizer_stepped, optimizer);
}

static PyObject *core_end_ranges(PyObject *self, PyObject *now)
{
    Core *core = (Core *)self;
    int64_t end = PyLong_AsLongLong(now);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t n_ended = 0;
    for (Thread *thread = core->threads; thread != NULL; thread = thread->next)
        for (; thread->n_open > 0; thread->n_open--, n_ended++) {
            OpenRange *range = &thread->open[thread->n_open - 1];
            write_row(core, thread, range->key, range->start, end, range->sequence, range->details);
        }
    return PyLong_FromSsize_t(n_ended);
}

/* ---- Python calls */

static PyObject *core_begin_calls(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    ((Core *)self)->traces = true;
    if (begin_calls((Core *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *core_end_calls(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    ((Core *)self)->traces = false;
    end_calls((Core *)self);
    Py_RETURN_NONE;
}

static PyObject *core_first_event(PyObject *self, PyObject *arguments)
{
    PyObject *frame, *argument;
    const char *event;
    if (!PyArg_ParseTuple(arguments, "OsO:first_event", &frame, &event, &argument))
        return NULL;
    if (!((Core *)self)->traces)
        PyEval_SetProfile(NULL, NULL);
    else if (begin_thread((Core *)self, frame, event, argument) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *core_close_calls(PyObject *self, PyObject *now)
{
    int64_t end = PyLong_AsLongLong(now);
    if (PyErr_Occurred())
        return NULL;
    close_calls((Core *)self, end);
    Py_RETURN_NONE;
}

static PyObject *core_log_call(PyObject *self, PyObject *arguments)
{
    Core *core = (Core *)self;
    unsigned long ident;
    long long number, call_site, now;
    if (!PyArg_ParseTuple(arguments, "kLLL:log_call", &ident, &number, &call_site, &now))
        return NULL;
    Thread *thread = find_thread(core, ident);
    if (thread == NULL)
        thread = new_thread(core, ident);
    int64_t *row = thread == NULL ? NULL : log_add(&thread->calls, 2);
    if (row == NULL)
        return PyErr_NoMemory();
    row[0] = number | (int64_t)((uint64_t)(call_site + 1) << 32);
    row[1] = now;
    thread->n_open_calls++;
    Py_RETURN_NONE;
}

static PyObject *core_call_untraced(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call_untraced(function, *arguments)");
        return NULL;
    }
    Core *core = (Core *)self;
    Thread *thread = this_thread(core);
    if (thread == NULL)
        return PyObject_Vectorcall(arguments[0], arguments + 1, (size_t)count - 1, NULL);
    Py_INCREF(core);
    Suspended suspended = suspend_calls(core, thread);
    PyObject *result = PyObject_Vectorcall(arguments[0], arguments + 1, (size_t)count - 1, NULL);
    resume_calls(core, suspended);
    Py_DECREF(core);
    return result;
}

static PyObject *core_call_traced(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call_traced(function, *arguments)");
        return NULL;
    }
    Core *core = (Core *)self;
    Py_INCREF(core);
    PyObject *result = call_traced(core, this_thread(core), arguments, count);
    Py_DECREF(core);
    return result;
}

/* ---- memory */

static PyObject *core_listen_to_memory(PyObject *self, PyObject *wanted)
{
    int is_wanted = PyObject_IsTrue(wanted);
    if (is_wanted < 0 || listen_to_memory((Core *)self, is_wanted) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *core_record_allocation(PyObject *self, PyObject *array)
{
    record_allocation((Core *)self, NULL, array, now_ns());
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *core_add_memory_rows(PyObject *self, PyObject *rows)
{
    Core *core = (Core *)self;
    if (!PyList_CheckExact(rows) || PyList_GET_SIZE(rows) % 4 != 0) {
        PyErr_SetString(PyExc_TypeError, "add_memory_rows() takes a list of four integers per row");
        return NULL;
    }
    for (Py_ssize_t first = 0; first + 4 <= PyList_GET_SIZE(rows); first += 4) {
        int64_t items[4];
        for (int i = 0; i < 4; i++)
            items[i] = PyLong_AsLongLong(PyList_GET_ITEM(rows, first + i));
        if (PyErr_Occurred())
            return NULL;
        int64_t *place = log_add(&core->memory_rows, 4);
        if (place == NULL)
            return PyErr_NoMemory();
        memcpy(place, items, sizeof items);
    }
    Py_RETURN_NONE;
}

/* ---- handing over */

/* Take one log into the dict, under (kind, ident). */
static int take_log(PyObject *blocks, Log *log, const char *kind, unsigned long ident)
{
    if (log->first == NULL)
        return 0;
    PyObject *list = PyList_New(0), *key = list == NULL ? NULL : Py_BuildValue("sk", kind, ident);
    /* in the dict first: what is taken is not lost if memory runs out */
    int result = key == NULL || PyDict_SetItem(blocks, key, list) < 0 || log_take(log, list) < 0 ? -1 : 0;
    Py_XDECREF(list);
    Py_XDECREF(key);
    return result;
}

static int add_native(PyObject *natives, Thread *thread)
{
    PyObject *ident = PyLong_FromUnsignedLong(thread->ident), *native = PyLong_FromUnsignedLong(thread->native);
    int result = ident == NULL || native == NULL || PyDict_SetItem(natives, ident, native) < 0 ? -1 : 0;
    Py_XDECREF(ident);
    Py_XDECREF(native);
    return result;
}

/* Rows come before what they refer to, so that a row which is taken refers to nothing that is left. */
static int take_logs(Core *core, PyObject *blocks, PyObject *natives)
{
    if (tell_python_frees() < 0) /* first: what a signal handler raises in it loses nothing */
        return -1;
    for (Thread *thread = core->threads; thread != NULL; thread = thread->next)
        if (thread->records && (add_native(natives, thread) < 0 || take_log(blocks, &thread->rows, "rows", thread->ident) < 0))
            return -1;
    for (Thread *thread = core->threads; thread != NULL; thread = thread->next)
        if (take_log(blocks, &thread->calls, "calls", thread->ident) < 0)
            return -1;
    return take_log(blocks, &core->tensor_ids, "tensors", 0) < 0 || take_log(blocks, &core->memory_rows, "memory", 0) < 0
                   || take_log(blocks, &core->takeovers, "takeovers", 0) < 0
               ? -1
               : 0;
}

static PyObject *core_take(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    PyObject *blocks = PyDict_New(), *natives = blocks == NULL ? NULL : PyDict_New();
    if (natives == NULL || (take_logs((Core *)self, blocks, natives) < 0 && PyDict_GET_SIZE(blocks) == 0)) {
        Py_XDECREF(blocks);
        Py_XDECREF(natives);
        return NULL;
    }
    PyErr_Clear(); /* without memory for all of it: the rest comes next time */
    return Py_BuildValue("NN", blocks, natives);
}

static PyObject *open_rows(Core *core, Thread *thread, int64_t now)
{
    npy_intp size = (npy_intp)(thread->n_open * core->width);
    size_t n_open = thread->n_open;
    PyObject *array = PyArray_SimpleNew(1, &size, NPY_INT64);
    if (array == NULL)
        return NULL;
    int64_t *row = PyArray_DATA((PyArrayObject *)array);
    for (size_t i = n_open; i > 0; i--, row += core->width) {
        static const OpenRange none = {0};
        const OpenRange *range = i <= thread->n_open ? &thread->open[i - 1] : &none;
        row[0] = range->key;
        row[1] = range->start;
        row[2] = now;
        row[3] = range->sequence;
        for (size_t j = 4; j < core->width; j++)
            row[j] = range->details[j - 4];
    }
    return array;
}

static PyObject *core_open_ranges(PyObject *self, PyObject *now)
{
    Core *core = (Core *)self;
    int64_t end = PyLong_AsLongLong(now);
    PyObject *open = PyErr_Occurred() ? NULL : PyDict_New();
    for (Thread *thread = core->threads; open != NULL && thread != NULL; thread = thread->next) {
        if (thread->n_open == 0)
            continue;
        PyObject *rows = open_rows(core, thread, end), *ident = PyLong_FromUnsignedLong(thread->ident);
        if (rows == NULL || ident == NULL || PyDict_SetItem(open, ident, rows) < 0)
            Py_CLEAR(open);
        Py_XDECREF(rows);
        Py_XDECREF(ident);
    }
    return open;
}

static PyObject *core_n_rows(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    Core *core = (Core *)self;
    Thread *thread = find_thread(core, core->owner);
    return PyLong_FromSize_t(thread == NULL ? 0 : thread->rows.total / core->width);
}

static PyObject *core_sample_all_costs(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    for (int kind = 0; kind < N_COSTS; kind++)
        ((Core *)self)->costs[kind] = (CostSamples){.most_between = 0};
    Py_RETURN_NONE;
}

/* By kind of event: the samples of what the recorder took. */
static PyObject *core_cost_samples(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    static const char *const names[N_COSTS] = {"op", "range", "call"};
    PyObject *by_kind = PyDict_New();
    for (int kind = 0; by_kind != NULL && kind < N_COSTS; kind++) {
        CostSamples *samples = &((Core *)self)->costs[kind];
        npy_intp count = samples->n_sampled < COST_SAMPLES ? (npy_intp)samples->n_sampled : COST_SAMPLES;
        PyObject *array = PyArray_SimpleNew(1, &count, NPY_INT32);
        if (array != NULL)
            memcpy(PyArray_DATA((PyArrayObject *)array), samples->ns, (size_t)count * sizeof(int32_t));
        if (array == NULL || PyDict_SetItemString(by_kind, names[kind], array) < 0)
            Py_CLEAR(by_kind);
        Py_XDECREF(array);
    }
    return by_kind;
}

static PyObject *core_n_calls(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    Core *core = (Core *)self;
    Thread *thread = find_thread(core, core->owner);
    int64_t n_rows = thread == NULL ? 0 : (int64_t)thread->calls.total / 2;
    return PyLong_FromLongLong(thread == NULL ? 0 : (n_rows - thread->n_open_calls) / 2);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef core_methods[] = {
    {"activate", core_activate, METH_NOARGS, "Record from now on: `_dispatch.recorder` and `ranges` are this core's."},
    {"deactivate", core_deactivate, METH_NOARGS, "Record no more."},
    {"enter", FAST(core_enter), METH_FASTCALL, "Begin a range; returns a token for `exit`."},
    {"exit", core_exit, METH_O, "End a range."},
    {"stepped", core_stepped, METH_O, "Called after each optimizer step."},
    {"end_ranges", core_end_ranges, METH_O, "End the ranges that are open; how many there were."},
    {"first_event", core_first_event, METH_VARARGS, "The profile function of a thread until its first event."},
    {"begin_calls", core_begin_calls, METH_NOARGS, "Trace the calls of all threads from now on."},
    {"end_calls", core_end_calls, METH_NOARGS, "Trace no more."},
    {"close_calls", core_close_calls, METH_O, "Calls that have not returned end now."},
    {"log_call", core_log_call, METH_VARARGS, "Log a call that began before its thread was traced."},
    {"call_untraced", FAST(core_call_untraced), METH_FASTCALL, "Call a function of the library."},
    {"call_traced", FAST(core_call_traced), METH_FASTCALL, "Call a function of the user from inside an op."},
    {"listen_to_memory", core_listen_to_memory, METH_O, "Record frees, or no more."},
    {"record_allocation", core_record_allocation, METH_O, "Record new memory, unless it is known."},
    {"add_memory_rows", core_add_memory_rows, METH_O, "Add rows about memory that the Python version watches, from a list of integers."},
    {"take", core_take, METH_NOARGS, "Hand over what was recorded since the last time: blocks by log and thread, and native ids."},
    {"open_ranges", core_open_ranges, METH_O, "By thread: the rows of the ranges that are open, as if they ended now."},
    {"set_turn", core_set_turn, METH_O, "Threads that record something later than this give way to this thread; None: never."},
    {"waits", core_waits, METH_NOARGS, "How often threads have given way, and for how many nanoseconds in all."},
    {"n_rows", core_n_rows, METH_NOARGS, "How many rows the thread that began the recording has."},
    {"n_calls", core_n_calls, METH_NOARGS, "How many of its Python calls have returned."},
    {"sample_all_costs", core_sample_all_costs, METH_NOARGS, "From now on measure all events instead of some, for `cost_samples`."},
    {"cost_samples", core_cost_samples, METH_NOARGS, "By kind of event: nanoseconds that the recorder took, at some events."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef core_attributes[] = {
    {"recorder", core_recorder, NULL, "The value of `_dispatch.recorder`.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot core_slots[] = {
    {Py_tp_doc, "The rows of one recording, see python_core.py."},
    {Py_tp_new, core_new},
    {Py_tp_traverse, core_traverse},
    {Py_tp_dealloc, core_dealloc},
    {Py_tp_methods, core_methods},
    {Py_tp_getset, core_attributes},
    {0, NULL},
};

static PyType_Spec core_spec = {
    .name = "mindtorch_v2.profiler.record._core.Core",
    .basicsize = sizeof(Core),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = core_slots,
};

/* ------------------------------------------------------------------------------------------------ the module */

static PyObject *attribute_of(const char *module, const char *name)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *value = imported == NULL ? NULL : PyObject_GetAttrString(imported, name);
    Py_XDECREF(imported);
    return value;
}

/* Find the offset of a slot of a class. */
static int find_field(PyTypeObject *type, Field *field)
{
    PyObject *descriptor = PyObject_GetAttr((PyObject *)type, field->name);
    bool is_slot = descriptor != NULL && Py_TYPE(descriptor) == &PyMemberDescr_Type && PyDescr_TYPE(descriptor) == type
                   && ((PyMemberDescrObject *)descriptor)->d_member->type == Py_T_OBJECT_EX;
    if (is_slot)
        field->offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    else if (descriptor != NULL)
        PyErr_Format(PyExc_ImportError, "%R is no slot of %R", field->name, type);
    Py_XDECREF(descriptor);
    return is_slot ? 0 : -1;
}

/* Look up how the values of a grad state are read. */
static int find_grad_state(void)
{
    Py_XSETREF(own_grad_state, attribute_of("mindtorch_v2._graph", "own_grad_state"));
    PyObject *state = own_grad_state == NULL ? NULL : PyObject_CallNoArgs(own_grad_state);
    if (state == NULL)
        return -1;
    Py_XSETREF(grad_state_type, (PyTypeObject *)Py_NewRef(Py_TYPE(state)));
    Py_DECREF(state);
    if (grad_state_type == &PyDict_Type)
        return 0;
    return find_field(grad_state_type, &field_seq) < 0 || find_field(grad_state_type, &field_enabled) < 0 ? -1 : 0;
}

/* What the core needs of the library: looked up by the first recording, when all of it is imported. */
static PyObject *load_library(PyObject *module, PyObject *nothing)
{
    (void)nothing;
    if (probes != NULL)
        Py_RETURN_NONE;
    tensor_type = (PyTypeObject *)attribute_of("mindtorch_v2._dispatch", "Tensor");
    Py_XSETREF(is_of_a_signal_handler,
               attribute_of("mindtorch_v2.profiler.record.program_errors", "is_of_a_signal_handler"));
    if (is_of_a_signal_handler == NULL || tensor_type == NULL || find_grad_state() < 0 || load_inputs() < 0 || load_memory() < 0)
        return NULL;
    if (!PyType_Check(tensor_type)) {
        PyErr_SetString(PyExc_ImportError, "mindtorch_v2 is not imported yet");
        return NULL;
    }
    Field *fields[] = {&field_array, &field_tensor_id, &field_storage, &field_base};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (find_field(tensor_type, fields[i]) < 0)
            return NULL;
    parameter_type = (PyTypeObject *)attribute_of("mindtorch_v2.nn.parameter", "Parameter");
    if (parameter_type == NULL)
        return NULL;
    PyObject *probe_type = PyObject_GetAttrString(module, "Probe");
    PyObject *install = attribute_of("mindtorch_v2._dispatch", "install_probes");
    if (probe_type != NULL && install != NULL)
        probes = PyObject_CallOneArg(install, probe_type);
    Py_XDECREF(probe_type);
    Py_XDECREF(install);
    if (probes == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"load_library", load_library, METH_NOARGS, "Look up what the core needs of the library, once."},
    {"allocation_id", memory_allocation_id, METH_O, "The id of the allocation that an array's memory belongs to, or 0."},
    {"alive", memory_alive, METH_NOARGS, "What is watched now: rows of allocation id, address, bytes."},
    {NULL, NULL, 0, NULL},
};

static int intern_strings(void)
{
    struct {
        PyObject **place;
        const char *text;
    } strings[] = {
        {&field_array.name, "_array"}, {&field_tensor_id.name, "_tensor_id"}, {&field_storage.name, "_storage"},
        {&field_base.name, "_base"}, {&str_keeps, "_keeps"}, {&str_root, "_root"}, {&str_is_sparse, "is_sparse"},
        {&field_seq.name, "seq"}, {&field_enabled.name, "enabled"}, {&str_range_key, "range_key"},
        {&str_optimizer_stepped, "optimizer_stepped"}, {&str_note_foreign_thread, "note_foreign_thread"},
    };
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        *strings[i].place = PyUnicode_InternFromString(strings[i].text);
        if (*strings[i].place == NULL)
            return -1;
    }
    return 0;
}

static int fill_module(PyObject *module)
{
    /* what this file keeps in variables belongs to the interpreter that imported it first */
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "the compiled core records in the main interpreter only");
        return -1;
    }
    import_array1(-1);
    if (field_array.name == NULL) {
        start_clock();
        if (intern_strings() < 0)
            return -1;
    }
    PyObject *probe_type = PyType_FromSpec(&probe_spec);
    PyObject *core_type = probe_type == NULL ? NULL : PyType_FromSpec(&core_spec);
    int result = 0;
    if (core_type == NULL || PyModule_AddStringConstant(module, "NAME", "c") < 0
        || PyModule_AddObjectRef(module, "REACHES_RUNNING_THREADS", Py_True) < 0
        || PyModule_AddObjectRef(module, "Probe", probe_type) < 0 || PyModule_AddObjectRef(module, "Core", core_type) < 0)
        result = -1;
    Py_XDECREF(probe_type);
    Py_XDECREF(core_type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill_module},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_v2.profiler.record._core",
    .m_doc = "The compiled core of a recording; python_core.py is its definition.",
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module_definition);
}
