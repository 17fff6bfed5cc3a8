/* Giving way: threads that record let the thread that takes their rows have its turn, if it has waited for too long. */

#include "recorder.h"

#ifdef _WIN32
#include <process.h>
#include <windows.h>
#define getpid _getpid
#else
#include <unistd.h>
#endif

/* As in python_core.py: nanoseconds that a thread waits at once, also where too many integers wait to be taken. */
static const int64_t LONGEST_WAIT = 100 * 1000 * 1000, LONGEST_WAIT_IF_FULL = 10LL * 1000 * 1000 * 1000;
static const size_t MOST_UNTAKEN = 1 << 25;

static void sleep_a_little(void)
{
#ifdef _WIN32
    Sleep(1);
#else
    const struct timespec pause = {0, 200 * 1000};
    nanosleep(&pause, NULL);
#endif
}

static bool is_full(Core *core)
{
    size_t size = log_size(&core->memory_rows) + log_size(&core->tensor_ids);
    for (const Thread *thread = core->threads; thread != NULL; thread = thread->next)
        size += log_size(&thread->rows) + log_size(&thread->calls);
    return size > MOST_UNTAKEN;
}

/* Wait, without the interpreter's lock, until the turn is over. Runs no Python code: no signal handler comes between an op and its caller. */
static void wait_at_most(Turn *turn, int64_t most)
{
    uint64_t number = turn->number;
    int64_t began = now_ns();
    Py_BEGIN_ALLOW_THREADS
    while (turn->number == number && now_ns() - began < most)
        sleep_a_little();
    Py_END_ALLOW_THREADS
    int64_t now = now_ns();
    turn->n_waits++;
    turn->waited += now - began;
    if (turn->number == number) {
        turn->is_late = true;
        turn->due = now + LONGEST_WAIT;
    }
}

void wait_for_turn(Core *core)
{
    Turn *turn = &core->turn;
    if (turn->process != (long)getpid())
        turn->due = NEVER_DUE; /* the thread that takes rows is not in this process, which was forked */
    else if (turn->ident == PyThread_get_thread_ident())
        return;
    else if (is_full(core))
        wait_at_most(turn, LONGEST_WAIT_IF_FULL);
    else if (!turn->is_late)
        wait_at_most(turn, LONGEST_WAIT);
    else
        turn->due = now_ns() + LONGEST_WAIT; /* it is not us that it waits for */
}

PyObject *core_set_turn(PyObject *self, PyObject *due)
{
    Turn *turn = &((Core *)self)->turn;
    int64_t due_ns = due == Py_None ? NEVER_DUE : PyLong_AsLongLong(due);
    if (PyErr_Occurred())
        return NULL;
    turn->ident = PyThread_get_thread_ident();
    turn->process = (long)getpid();
    turn->due = due_ns;
    turn->is_late = false;
    turn->number++;
    Py_RETURN_NONE;
}

PyObject *core_waits(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    const Turn *turn = &((Core *)self)->turn;
    return Py_BuildValue("KL", (unsigned long long)turn->n_waits, (long long)turn->waited);
}
