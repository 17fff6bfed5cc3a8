/* Memory of tensors: NumPy's allocator tells when it is freed. The arrays that ops return are looked up in a table by the address of
   their memory; all other arrays pass through. Arrays that another allocator made are watched by the Python version, allocations.py. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_recorder_numpy
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include "recorder.h"
#include <string.h>

/* the memory of one tensor */
typedef struct Block {
    struct Block *next; /* a further one in the same array: kernels may return several parts of one */
    uintptr_t address;
    int64_t allocation_id, nbytes;
    bool is_silent; /* memory that is told apart, but whose allocation and free are not recorded */
} Block;

typedef struct {
    uintptr_t owner; /* address of the array that owns the memory; 0: free */
    Block block;
} Owner;

/* All that was allocated by ops while memory was recorded and is not freed. It outlives recordings. */
static struct {
    Owner *owners;
    size_t n_slots, n_used;
} watched;

static Core **listeners;
static size_t n_listeners;
static int n_silent; /* how many cores tell memory apart without recording it */

static PyDataMem_Handler handler;
static PyDataMem_Handler *inner;  /* NumPy's default one, which does the work */
static PyObject *handler_capsule, *default_capsule;
static PyObject *python_allocations; /* the module allocations.py */
static PyObject *python_watched;     /* a set: the arrays that it watches */
static int64_t last_id;

/* ------------------------------------------------------------------------------------------------ the table */

static size_t place_of(uintptr_t owner)
{
    uint64_t hash = (uint64_t)(owner >> 4) * 0x9E3779B97F4A7C15u;
    return (size_t)(hash >> 20) & (watched.n_slots - 1);
}

static Owner *find_owner(uintptr_t owner)
{
    if (watched.n_used == 0 || owner == 0) /* 0 marks free slots */
        return NULL;
    for (size_t place = place_of(owner);; place = (place + 1) & (watched.n_slots - 1)) {
        if (watched.owners[place].owner == owner)
            return &watched.owners[place];
        if (watched.owners[place].owner == 0)
            return NULL;
    }
}

static int grow_owners(void)
{
    size_t n_before = watched.n_slots;
    Owner *before = watched.owners;
    Owner *larger = PyMem_RawCalloc(n_before == 0 ? 256 : n_before * 2, sizeof(Owner));
    if (larger == NULL)
        return -1;
    watched.owners = larger;
    watched.n_slots = n_before == 0 ? 256 : n_before * 2;
    for (size_t i = 0; i < n_before; i++) {
        if (before[i].owner == 0)
            continue;
        size_t place = place_of(before[i].owner);
        while (larger[place].owner != 0)
            place = (place + 1) & (watched.n_slots - 1);
        larger[place] = before[i];
    }
    PyMem_RawFree(before);
    return 0;
}

static Owner *add_owner(uintptr_t owner)
{
    if (watched.n_used * 2 >= watched.n_slots && grow_owners() < 0)
        return NULL;
    size_t place = place_of(owner);
    while (watched.owners[place].owner != 0)
        place = (place + 1) & (watched.n_slots - 1);
    watched.owners[place].owner = owner;
    watched.n_used++;
    return &watched.owners[place];
}

/* Free the slot, and move what follows so that searches still find it. */
static void remove_owner(Owner *gone)
{
    size_t mask = watched.n_slots - 1, hole = (size_t)(gone - watched.owners);
    for (size_t place = (hole + 1) & mask; watched.owners[place].owner != 0; place = (place + 1) & mask) {
        size_t wanted = place_of(watched.owners[place].owner);
        if (((place - wanted) & mask) >= ((place - hole) & mask)) {
            watched.owners[hole] = watched.owners[place];
            hole = place;
        }
    }
    watched.owners[hole].owner = 0;
    watched.n_used--;
}

/* ------------------------------------------------------------------------------------------------ rows */

/* The time, as a number that is given once. */
int64_t next_id(int64_t now)
{
    last_id = now > last_id ? now : last_id + 1;
    return last_id;
}

/* The time, or a little later: after the ids that were given. */
int64_t after_ids(int64_t now)
{
    return now > last_id ? now : last_id + 1;
}

static void add_row(Core *core, int64_t now, int64_t nbytes, int64_t allocation_id)
{
    int64_t *row = log_add(&core->memory_rows, 4);
    if (row != NULL) {
        row[0] = now;
        row[1] = nbytes;
        row[2] = allocation_id;
        row[3] = (int64_t)PyThread_get_thread_ident();
    }
}

static void memory_freed(uintptr_t memory)
{
    Owner *owner = find_owner(memory);
    if (owner == NULL)
        return;
    Block first = owner->block;
    remove_owner(owner);
    for (Block *block = &first; block != NULL;) {
        if (n_listeners > 0 && !block->is_silent) {
            int64_t now = now_ns();
            for (size_t i = 0; i < n_listeners; i++)
                add_row(listeners[i], now, -block->nbytes, block->allocation_id);
        }
        Block *next = block->next;
        if (block != &first)
            PyMem_RawFree(block);
        block = next;
    }
}

/* ------------------------------------------------------------------------------------------------ NumPy's allocator */

static void *observed_malloc(void *context, size_t size)
{
    (void)context;
    return inner->allocator.malloc(inner->allocator.ctx, size);
}

static void *observed_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    return inner->allocator.calloc(inner->allocator.ctx, count, size);
}

static void *observed_realloc(void *context, void *memory, size_t size)
{
    (void)context;
    uintptr_t before = (uintptr_t)memory;
    void *after = inner->allocator.realloc(inner->allocator.ctx, memory, size);
    if (after != NULL && watched.n_used != 0) /* else the array still has its memory */
        memory_freed(before);
    return after;
}

static void observed_free(void *context, void *memory, size_t size)
{
    (void)context;
    if (watched.n_used != 0)
        memory_freed((uintptr_t)memory);
    inner->allocator.free(inner->allocator.ctx, memory, size);
}

int load_memory(void)
{
    if (python_allocations != NULL)
        return 0;
    default_capsule = PyDataMem_DefaultHandler;
    inner = PyCapsule_GetPointer(default_capsule, "mem_handler");
    if (inner == NULL)
        return -1;
    strcpy(handler.name, "mindtorch_v2 profiler");
    handler.version = 1;
    handler.allocator
        = (PyDataMemAllocator){NULL, observed_malloc, observed_calloc, observed_realloc, observed_free};
    if (handler_capsule == NULL)
        handler_capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    if (handler_capsule == NULL)
        return -1;
    python_allocations = PyImport_ImportModule("mindtorch_v2.profiler.record.allocations");
    python_watched = python_allocations == NULL ? NULL : PyObject_GetAttrString(python_allocations, "_watched");
    return python_watched == NULL || !PyAnySet_Check(python_watched) ? -1 : 0;
}

/* Let NumPy allocate through us in this context, or no more. Another package's allocator is left as it is. */
static int set_handler(bool wanted)
{
    PyObject *current = PyDataMem_GetHandler();
    if (current == NULL)
        return -1;
    PyObject *from = wanted ? default_capsule : handler_capsule, *to = wanted ? handler_capsule : default_capsule;
    int result = 0;
    if (current == from) {
        PyObject *before = PyDataMem_SetHandler(to);
        if (before == NULL)
            result = -1;
        Py_XDECREF(before);
    }
    Py_DECREF(current);
    return result;
}

/* Whether the Python version watches any array. */
static bool watches_in_python(void)
{
    return python_watched != NULL && PySet_GET_SIZE(python_watched) != 0;
}

/* Let allocations.py tell the core of frees, or no more. */
static int listen_to_python(Core *core, bool wanted)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)core, "add_memory_rows");
    if (method == NULL)
        return -1;
    PyObject *done = PyObject_CallMethod(python_allocations, wanted ? "listen" : "unlisten", "O", method);
    Py_DECREF(method);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Let allocations.py tell of what was freed since the last time. */
int tell_python_frees(void)
{
    if (!watches_in_python())
        return 0;
    PyObject *done = PyObject_CallMethod(python_allocations, "tell_frees", NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* All or nothing: after an error nothing is listened to. */
int listen_to_memory(Core *core, bool wanted)
{
    if (wanted == core->listens)
        return 0;
    if (wanted) {
        Core **more = PyMem_RawRealloc(listeners, (n_listeners + 1) * sizeof(Core *));
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        listeners = more;
        listeners[n_listeners++] = core;
    } else
        forget_core(core);
    core->listens = wanted;
    if (set_handler(n_listeners > 0 || n_silent > 0) < 0 || listen_to_python(core, wanted) < 0) {
        forget_core(core);
        core->listens = false;
        return -1;
    }
    return 0;
}

void forget_core(Core *core)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_listeners; i++)
        if (listeners[i] != core)
            listeners[kept++] = listeners[i];
    n_listeners = kept;
}

/* ------------------------------------------------------------------------------------------------ arrays */

/* The array that owns the memory. */
PyArrayObject *owner_of(PyArrayObject *array)
{
    for (PyObject *base = PyArray_BASE(array); base != NULL && PyArray_Check(base); base = PyArray_BASE(array))
        array = (PyArrayObject *)base;
    return array;
}

static bool is_ours(PyArrayObject *owner)
{
    return handler_capsule != NULL && PyArray_CHKFLAGS(owner, NPY_ARRAY_OWNDATA) && PyArray_HANDLER(owner) == handler_capsule;
}

int64_t array_bytes(PyObject *array)
{
    return (int64_t)PyArray_NBYTES((PyArrayObject *)array);
}

/* The number that allocations.py answers; -1: an error. */
static int64_t answered(PyObject *answer)
{
    if (answer == NULL)
        return -1;
    int64_t number = PyLong_AsLongLong(answer);
    Py_DECREF(answer);
    return number;
}

/* Watch the memory of an array that is new now; the id of the allocation, which is its time. 0: it has no memory, or is watched already;
   -1: an error. */
static int64_t observe_array(PyObject *object, int64_t now)
{
    if (!PyArray_Check(object) || PyArray_NBYTES((PyArrayObject *)object) == 0)
        return 0;
    PyArrayObject *array = (PyArrayObject *)object, *owner = owner_of(array);
    if (!is_ours(owner)) {
        if (n_listeners > 0 && set_handler(true) < 0)
            return -1; /* a context or thread that began without it: from now on it has it */
        int64_t allocation_id = next_id(now);
        int64_t nbytes = answered(PyObject_CallMethod(python_allocations, "observe", "OL", object, (long long)allocation_id));
        return nbytes > 0 ? allocation_id : nbytes;
    }
    uintptr_t key = (uintptr_t)PyArray_DATA(owner), address = (uintptr_t)PyArray_DATA(array);
    Owner *known = find_owner(key);
    Block block = {NULL, address, 0, (int64_t)PyArray_NBYTES(array), false};
    if (known == NULL) {
        Owner *added = add_owner(key);
        if (added == NULL)
            return 0;
        block.allocation_id = next_id(now);
        added->block = block;
        return block.allocation_id;
    }
    Block *last = &known->block;
    for (Block *each = last; each != NULL; last = each, each = each->next)
        if (each->address == address && !each->is_silent)
            return 0;
    last->next = PyMem_RawMalloc(sizeof(Block));
    if (last->next == NULL)
        return 0;
    block.allocation_id = next_id(now);
    *last->next = block;
    return block.allocation_id;
}

/* Record memory that is new now, unless it is known. tensor: the one that it was allocated for, or NULL. */
void record_allocation(Core *core, PyObject *tensor, PyObject *array, int64_t now)
{
    int64_t allocation_id = observe_array(array, now);
    if (allocation_id > 0) {
        add_row(core, allocation_id, array_bytes(array), allocation_id);
        if (tensor != NULL && core->has_register) {
            PyObject *number = NULL, *done = NULL, *before = get_field(tensor, &field_tensor_id);
            int64_t tensor_id = before == NULL ? -1 : integer_value(before);
            if (!PyErr_Occurred() && tensor_id < core->first_id) {
                number = PyLong_FromLongLong(allocation_id);
                if (number != NULL && PyObject_SetAttr(tensor, field_tensor_id.name, number) < 0)
                    report_error(tensor);
            } else if (!PyErr_Occurred()) /* it has got an id already, as an argument inside the op */
                done = PyObject_CallMethod(core->recording, "tensor_allocated", "OL", tensor,
                                           (long long)allocation_id);
            Py_XDECREF(before);
            Py_XDECREF(number);
            Py_XDECREF(done);
        }
    }
    report_error((PyObject *)core); /* an interrupt stays set */
}

/* The id of the allocation that an array's memory belongs to. 0: it is not watched; -1: an error. */
int64_t allocation_of(PyArrayObject *array)
{
    PyArrayObject *owner = owner_of(array);
    if (!is_ours(owner))
        return watches_in_python() ? answered(PyObject_CallMethod(python_allocations, "allocation_id", "O", array)) : 0;
    uintptr_t address = (uintptr_t)PyArray_DATA(array);
    Owner *known = find_owner((uintptr_t)PyArray_DATA(owner));
    for (Block *block = known == NULL ? NULL : &known->block; block != NULL; block = block->next)
        if (!block->is_silent && block->address <= address && address < block->address + (uintptr_t)block->nbytes)
            return block->allocation_id;
    return 0;
}

/* The id of the memory of an array, where allocations are not recorded: the first one that was given for it, from `first_id` on, or this
   one. 0: the memory is another allocator's. */
int64_t silent_id(PyArrayObject *owner, int64_t first_id, int64_t new_id)
{
    if (!is_ours(owner))
        return 0;
    Owner *known = find_owner((uintptr_t)PyArray_DATA(owner));
    Block *block = known == NULL ? NULL : &known->block;
    while (block != NULL && !block->is_silent)
        block = block->next;
    if (block == NULL) {
        if (known != NULL)
            return 0; /* a recording of memory watches it */
        known = add_owner((uintptr_t)PyArray_DATA(owner));
        if (known == NULL)
            return 0;
        known->block = (Block){NULL, (uintptr_t)PyArray_DATA(owner), new_id, (int64_t)PyArray_NBYTES(owner), true};
        return new_id;
    }
    if (block->allocation_id < first_id)
        block->allocation_id = new_id;
    return block->allocation_id;
}

/* Tell memory apart from now on, also where it is not recorded; or no more. */
int watch_silently(bool wanted)
{
    n_silent += wanted ? 1 : -1;
    return set_handler(n_listeners > 0 || n_silent > 0);
}

PyObject *memory_allocation_id(PyObject *module, PyObject *array)
{
    (void)module;
    if (!PyArray_Check(array)) {
        PyErr_SetString(PyExc_TypeError, "allocation_id() takes an array");
        return NULL;
    }
    int64_t allocation_id = allocation_of((PyArrayObject *)array);
    return allocation_id < 0 ? NULL : PyLong_FromLongLong(allocation_id);
}

static Block *first_block(size_t slot)
{
    return watched.owners[slot].owner == 0 ? NULL : &watched.owners[slot].block;
}

static npy_intp n_audible_blocks(void)
{
    npy_intp count = 0;
    for (size_t i = 0; i < watched.n_slots; i++)
        for (Block *block = first_block(i); block != NULL; block = block->next)
            count += !block->is_silent;
    return count;
}

PyObject *memory_alive(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    npy_intp shape[2] = {n_audible_blocks(), 3};
    PyObject *own = PyArray_SimpleNew(2, shape, NPY_INT64);
    int64_t *row = own == NULL ? NULL : PyArray_DATA((PyArrayObject *)own);
    for (size_t i = 0; row != NULL && i < watched.n_slots; i++)
        for (Block *block = first_block(i); block != NULL; block = block->next)
            if (!block->is_silent) {
                *row++ = block->allocation_id;
                *row++ = (int64_t)block->address;
                *row++ = block->nbytes;
            }
    PyObject *others = own == NULL ? NULL : PyObject_CallMethod(python_allocations, "alive", NULL);
    PyObject *both = others == NULL ? NULL : PyTuple_Pack(2, own, others);
    PyObject *all = both == NULL ? NULL : PyArray_Concatenate(both, 0);
    Py_XDECREF(own);
    Py_XDECREF(others);
    Py_XDECREF(both);
    return all;
}
