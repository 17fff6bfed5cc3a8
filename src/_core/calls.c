/* Python and C calls, through the interpreter's profile function: every call of the traced threads is logged. */

#include "recorder.h"

#include <string.h>

enum { RETURN = 0, HIDDEN = 1, MODULE = -1, CALL_SITE = 32 }; /* as in functions.py and mindtorch_prof/sealing/python_calls.py */

/* ------------------------------------------------------------------------------------------------ what ops call */

/* Whether the interpreter calls a trace function too: a debugger or a coverage tool, which must go on seeing what ops call. */
static bool is_also_traced(PyThreadState *state, Thread *thread)
{
    return state->c_tracefunc != NULL || thread->other != NULL;
}

Suspended suspend_calls(Core *core, Thread *thread)
{
    Suspended suspended = {NULL, 0};
    if (!core->calls)
        return suspended;
    suspended.thread = thread;
    thread->untraced++;
    PyThreadState *state = PyThreadState_Get();
    if (thread->traces && !is_also_traced(state, thread)) {
#if PY_VERSION_HEX < 0x030C0000
        suspended.saved = state->cframe->use_tracing;
        state->cframe->use_tracing = 0;
#else
        suspended.saved = state->c_profilefunc != NULL;
        state->c_profilefunc = NULL;
#endif
    }
    return suspended;
}

static int on_event(PyObject *self, PyFrameObject *frame, int event, PyObject *argument);

void resume_calls(Core *core, Suspended suspended)
{
    Thread *thread = suspended.thread;
    if (thread == NULL)
        return;
    thread->untraced--;
    if (!suspended.saved)
        return;
    PyThreadState *state = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030C0000
    (void)core;
    if (state->c_profilefunc != NULL || state->c_tracefunc != NULL)
        state->cframe->use_tracing = suspended.saved;
#else
    if (thread->traces && state->c_profileobj == (PyObject *)core)
        state->c_profilefunc = on_event;
#endif
}

/* Call arguments[0], a function of the user, from inside an op or a function of the library. */
PyObject *call_traced(Core *core, Thread *thread, PyObject *const *arguments, Py_ssize_t count)
{
    if (thread == NULL || !thread->traces || thread->untraced == 0)
        return PyObject_Vectorcall(arguments[0], arguments + 1, (size_t)count - 1, NULL);
    int untraced = thread->untraced;
    thread->untraced = 0;
    PyThreadState *state = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030C0000
    int before = state->cframe->use_tracing;
    if (state->c_profilefunc != NULL)
        state->cframe->use_tracing = 255;
#else
    bool is_off = state->c_profilefunc == NULL && state->c_profileobj == (PyObject *)core;
    if (is_off)
        state->c_profilefunc = on_event;
#endif
    PyObject *result = PyObject_Vectorcall(arguments[0], arguments + 1, (size_t)count - 1, NULL);
#if PY_VERSION_HEX < 0x030C0000
    (void)core;
    if (state->c_profilefunc != NULL || before == 0)
        state->cframe->use_tracing = before;
#else
    if (is_off && state->c_profilefunc == on_event && state->c_profileobj == (PyObject *)core) /* still ours */
        state->c_profilefunc = NULL;
#endif
    thread->untraced = untraced;
    return result;
}

/* ------------------------------------------------------------------------------------------------ events */

enum { FAILED = -2 }; /* instead of a number: an interrupt is set */

/* Ask the Recorder's `functions` for a number. has_failed: the number is not worth keeping. */
static int64_t ask_number(Core *core, const char *method, PyObject *about, bool *has_failed)
{
    core->n_asked++;
    PyObject *answer = PyObject_CallMethod(core->functions, method, "O", about);
    int64_t number = answer == NULL ? -1 : PyLong_AsLongLong(answer);
    Py_XDECREF(answer);
    *has_failed = number == -1 && PyErr_Occurred();
    if (*has_failed)
        number = report_error(about) < 0 ? FAILED : HIDDEN;
    return number;
}

/* Whether `functions` keeps this code alive, so that its address is not reused: it keeps only one of several equal ones. */
static bool is_kept(Core *core, PyObject *code)
{
    PyObject *answer = PyObject_CallMethod(core->functions, "keeps_code", "O", code);
    if (answer == NULL)
        PyErr_Clear();
    Py_XDECREF(answer);
    return answer == Py_True;
}

static int64_t number_of_frame(Core *core, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int64_t key[1] = {(int64_t)(intptr_t)code}, number;
    uint64_t hash = hash_words(key, 1);
    const int64_t *known = table_get(&core->codes, key, 1, hash);
    bool has_failed = false;
    if (known != NULL)
        number = *known;
    else {
        number = ask_number(core, "number_of_code", (PyObject *)code, &has_failed);
        if (!has_failed && is_kept(core, (PyObject *)code))
            table_set(&core->codes, key, 1, hash, number);
    }
    Py_DECREF(code);
    return number == MODULE ? ask_number(core, "number_of_frame", (PyObject *)frame, &has_failed) : number;
}

static int64_t number_of_c_function(Core *core, PyObject *function)
{
    bool has_failed;
    if (!PyCFunction_Check(function))
        return ask_number(core, "number_of_c_function", function, &has_failed);
    PyObject *self = PyCFunction_GET_SELF(function);
    PyObject *type = self == NULL || PyModule_Check(self) ? NULL : (PyObject *)Py_TYPE(self);
    /* `functions` keeps the function or the class of the method alive: the addresses are not reused */
    int64_t key[2] = {(int64_t)(intptr_t)((PyCFunctionObject *)function)->m_ml, (int64_t)(intptr_t)type};
    uint64_t hash = hash_words(key, 2);
    const int64_t *known = table_get(&core->codes, key, 2, hash);
    if (known != NULL)
        return *known;
    int64_t number = ask_number(core, "number_of_c_function", function, &has_failed);
    if (!has_failed)
        table_set(&core->codes, key, 2, hash, number);
    return number;
}

static void log_call(Thread *thread, int64_t number, int offset)
{
    int64_t *row = log_add(&thread->calls, 2);
    if (row != NULL) {
        row[0] = number | (int64_t)(offset + 1) << CALL_SITE;
        row[1] = now_ns();
        thread->n_open_calls++;
    }
}

/* The first event of a thread: log what it is in already. */
static Thread *first_event(Core *core, PyFrameObject *frame, int event)
{
    Thread *thread = this_thread(core);
    if (thread == NULL)
        thread = new_thread(core, PyThread_get_thread_ident());
    if (thread == NULL)
        return NULL;
    thread->traces = true;
    PyObject *within = event == PyTrace_CALL ? (PyObject *)PyFrame_GetBack(frame) : Py_NewRef((PyObject *)frame);
    PyObject *done = PyObject_CallMethod(core->recording, "thread_begins_calls", "O", within == NULL ? Py_None : within);
    int result = done == NULL ? report_error((PyObject *)core) : 0;
    Py_XDECREF(done);
    Py_XDECREF(within);
    return result < 0 ? NULL : thread;
}

/* Whether a return is that of `begin_calls`, whose call was not logged: an event where the interpreter called a profile function already. */
static bool is_return_of_begin(PyObject *self, PyObject *function)
{
    return function != NULL && PyCFunction_Check(function) && PyCFunction_GET_SELF(function) == self
           && strcmp(((PyCFunctionObject *)function)->m_ml->ml_name, "begin_calls") == 0;
}

/* Call the other profile function of the thread, which may end it and us. */
static int call_other(Thread *thread, PyFrameObject *frame, int event, PyObject *argument)
{
    PyObject *other_argument = Py_XNewRef(thread->other_argument);
    int result = thread->other(other_argument, frame, event, argument);
    Py_XDECREF(other_argument);
    return result;
}

/* -1: an interrupt is set. The call does not take place then, and so is not logged. returned: is set to the time of a return. */
static int log_event(Core *core, Thread *thread, PyFrameObject *frame, int event, PyObject *argument, int64_t *returned)
{
    switch (event) {
    case PyTrace_CALL: {
        int64_t number = number_of_frame(core, frame);
        if (number == FAILED)
            return -1;
        PyFrameObject *caller = PyFrame_GetBack(frame);
        log_call(thread, number, caller == NULL ? -1 : frame_offset(caller));
        Py_XDECREF(caller);
        break;
    }
    case PyTrace_C_CALL: {
        int64_t number = number_of_c_function(core, argument);
        if (number == FAILED)
            return -1;
        log_call(thread, number, frame_offset(frame));
        break;
    }
    case PyTrace_C_RETURN:
        if (is_return_of_begin((PyObject *)core, argument))
            break;
        /* fall through */
    case PyTrace_RETURN:
    case PyTrace_C_EXCEPTION: {
        int64_t *row = log_add(&thread->calls, 2);
        if (row != NULL) {
            row[0] = RETURN;
            row[1] = *returned = now_ns();
            if (thread->n_open_calls > 0)
                thread->n_open_calls--;
        }
        break;
    }
    default:
        break;
    }
    return 0;
}

/* The profile function. What it calls may stop the recording and drop it: the interpreter does not keep the core alive, we do. */
static int on_event(PyObject *self, PyFrameObject *frame, int event, PyObject *argument)
{
    Core *core = (Core *)self;
    if (!core->traces) { /* of a thread that `end_calls` could not reach */
        PyEval_SetProfile(NULL, NULL);
        return 0;
    }
    CostSamples *samples = is_sampled(&core->costs[COST_CALL]) ? &core->costs[COST_CALL] : NULL;
    int64_t began = samples == NULL ? 0 : now_ns();
    uint64_t n_asked = core->n_asked;
    int64_t returned = 0;
    Py_INCREF(core);
    Thread *thread = this_thread(core);
    bool is_first = thread == NULL || !thread->traces;
    if (is_first)
        thread = first_event(core, frame, event);
    /* the call of a C function that the thread was in already is not in the log: nor is its return */
    bool is_logged = !is_first || (event != PyTrace_C_RETURN && event != PyTrace_C_EXCEPTION);
    int result = thread == NULL && PyErr_Occurred() ? -1 : 0;
    if (thread != NULL && thread->other != NULL)
        result = call_other(thread, frame, event, argument);
    if (result == 0 && thread != NULL && thread->traces && thread->untraced == 0 && is_logged)
        result = log_event(core, thread, frame, event, argument, &returned);
    if (samples != NULL && n_asked == core->n_asked && (thread == NULL || thread->other == NULL))
        add_sample(samples, now_ns() - began);
    give_way(core, returned);
    Py_DECREF(core);
    return result;
}

/* ------------------------------------------------------------------------------------------------ begin and end */

#if PY_VERSION_HEX >= 0x030C0000
static bool has_foreign_profile_function(void)
{
    PyThreadState *own = PyThreadState_Get();
    for (PyThreadState *state = PyInterpreterState_ThreadHead(own->interp); state != NULL; state = PyThreadState_Next(state))
        if (state != own && state->c_profilefunc != NULL)
            return true;
    return false;
}
#endif

static int trace_other_threads(Core *core)
{
    PyThreadState *own = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030C0000
    for (PyThreadState *state = PyInterpreterState_ThreadHead(own->interp); state != NULL; state = PyThreadState_Next(state))
        if (state != own && state->c_profilefunc == NULL && _PyEval_SetProfile(state, on_event, (PyObject *)core) < 0)
            return -1;
#else
    (void)own;
    if (!has_foreign_profile_function())
        PyEval_SetProfileAllThreads(on_event, (PyObject *)core);
#endif
    return 0;
}

/* The profile function, in Python, of threads that start later: at its first event the thread gets the one in C. */
int begin_thread(Core *core, PyObject *frame, const char *event, PyObject *argument)
{
    static const struct {
        const char *name;
        int event;
    } events[] = {{"call", PyTrace_CALL}, {"return", PyTrace_RETURN}, {"c_call", PyTrace_C_CALL},
                  {"c_return", PyTrace_C_RETURN}, {"c_exception", PyTrace_C_EXCEPTION}};
    if (!PyFrame_Check(frame)) {
        PyErr_SetString(PyExc_TypeError, "first_event() takes a frame");
        return -1;
    }
    PyEval_SetProfile(on_event, (PyObject *)core);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        if (strcmp(event, events[i].name) == 0)
            return on_event((PyObject *)core, (PyFrameObject *)frame, events[i].event, argument);
    return 0;
}

/* Trace this thread and those that run; functions that run already are logged as called now. */
int begin_calls(Core *core)
{
    Thread *thread = this_thread(core);
    if (thread == NULL)
        thread = new_thread(core, PyThread_get_thread_ident());
    if (thread == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyThreadState *state = PyThreadState_Get();
    Py_tracefunc other = state->c_profilefunc == on_event ? NULL : state->c_profilefunc;
    PyObject *other_argument = Py_XNewRef(state->c_profileobj);
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    PyObject *done = PyObject_CallMethod(core->recording, "enter_stack", "Ok", frame == NULL ? Py_None : frame, thread->ident);
    if (done == NULL || trace_other_threads(core) < 0) {
        Py_XDECREF(done);
        Py_XDECREF(other_argument);
        return -1;
    }
    Py_DECREF(done);
    thread->other = other;
    Py_XSETREF(thread->other_argument, other_argument);
    thread->traces = true;
    PyEval_SetProfile(on_event, (PyObject *)core);
    return 0;
}

void end_calls(Core *core)
{
    Thread *thread = this_thread(core);
    PyThreadState *own = PyThreadState_Get();
    bool is_ours = own->c_profileobj == (PyObject *)core;
#if PY_VERSION_HEX >= 0x030C0000
    /* stopped inside an op: the interpreter counts the threads that have a profile function */
    for (PyThreadState *state = PyInterpreterState_ThreadHead(own->interp); state != NULL; state = PyThreadState_Next(state))
        if (state->c_profilefunc == NULL && state->c_profileobj == (PyObject *)core)
            state->c_profilefunc = on_event;
#endif
#if PY_VERSION_HEX < 0x030C0000
    for (PyThreadState *state = PyInterpreterState_ThreadHead(own->interp); state != NULL; state = PyThreadState_Next(state))
        if (state != own && state->c_profilefunc == on_event && state->c_profileobj == (PyObject *)core
            && _PyEval_SetProfile(state, NULL, NULL) < 0)
            PyErr_WriteUnraisable((PyObject *)core);
#else
    bool is_alone = true;
    for (PyThreadState *state = PyInterpreterState_ThreadHead(own->interp); state != NULL; state = PyThreadState_Next(state))
        if (state->c_profileobj == (PyObject *)core)
            state->c_profilefunc = on_event; /* in an op it is NULL: the interpreter counts the threads that have one */
        else if (state != own && state->c_profilefunc != NULL)
            is_alone = false;
    if (is_alone)
        PyEval_SetProfileAllThreads(NULL, NULL);
#endif
    if (is_ours) {
        if (thread != NULL && thread->other != NULL)
            PyEval_SetProfile(thread->other, thread->other_argument);
        else
            PyEval_SetProfile(NULL, NULL);
    }
    for (Thread *each = core->threads; each != NULL; each = each->next) {
        each->traces = false;
        each->other = NULL;
        Py_CLEAR(each->other_argument);
    }
}

/* Calls that have not returned end now. */
void close_calls(Core *core, int64_t now)
{
    for (Thread *thread = core->threads; thread != NULL; thread = thread->next)
        for (; thread->n_open_calls > 0; thread->n_open_calls--) {
            int64_t *row = log_add(&thread->calls, 2);
            if (row != NULL) {
                row[0] = RETURN;
                row[1] = now;
            }
        }
}
