/* An object whose attributes each thread has for itself, from a dict of their defaults. The twin is `threading.local`, whose attributes
   take three times as long; ops that build the autograd graph read several. */

#include "operators.h"
#include "thread_local.h"

#include <stdint.h>
#include <structmember.h>

/* The values of one thread. Its dict of objects owns them. */
typedef struct {
    PyObject_HEAD
    PyObject *values[]; /* none is NULL */
} Values;

typedef struct {
    PyObject_HEAD
    PyTypeObject *type; /* of `Values`: its members have the names */
    PyObject *names;    /* interned */
    PyObject *defaults;
} PerThread;

/* the values that this thread asked for last */
static FAST_THREAD_LOCAL struct {
    PerThread *of;
    uint64_t thread; /* Python's number of the thread, which is given once */
    Values *values;
} last;

/* ------------------------------------------------------------------------------------------------ the values of a thread */

static Py_ssize_t n_values(PyTypeObject *type)
{
    return (type->tp_basicsize - (Py_ssize_t)sizeof(Values)) / (Py_ssize_t)sizeof(PyObject *);
}

static int values_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    for (Py_ssize_t i = 0; i < n_values(Py_TYPE(object)); i++)
        Py_VISIT(((Values *)object)->values[i]);
    return 0;
}

/* No tp_clear: nothing that values refer to refers to them. */
static void values_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (last.values == (Values *)object)
        last.of = NULL; /* finalizers that run now get new ones */
    for (Py_ssize_t i = 0; i < n_values(type); i++)
        Py_XDECREF(((Values *)object)->values[i]);
    type->tp_free(object);
    Py_DECREF(type);
}

/* The type of the values, with a member for each name. */
static PyTypeObject *values_type(PyObject *names)
{
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    PyMemberDef *members = PyMem_Calloc((size_t)count + 1, sizeof(PyMemberDef));
    if (members == NULL)
        return (PyTypeObject *)PyErr_NoMemory();
    PyObject *type = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i)); /* which is never freed: see per_thread_new */
        if (name == NULL)
            goto done;
        members[i] = (PyMemberDef){name, T_OBJECT_EX, (Py_ssize_t)sizeof(Values) + i * (Py_ssize_t)sizeof(PyObject *), 0, NULL};
    }
    PyType_Slot slots[] = {
        {Py_tp_doc, "The attributes of a PerThread on one thread; also by subscript, as those of a dict."},
        {Py_tp_traverse, values_traverse},
        {Py_tp_dealloc, values_dealloc},
        {Py_tp_members, members},
        {Py_mp_subscript, PyObject_GenericGetAttr},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "mindtorch_v2._slots.Values",
        .basicsize = (int)(sizeof(Values) + (size_t)count * sizeof(PyObject *)),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    type = PyType_FromSpec(&spec);
done:
    PyMem_Free(members);
    return (PyTypeObject *)type;
}

static Values *new_values(PerThread *self, PyObject *of_thread)
{
    Values *values = (Values *)self->type->tp_alloc(self->type, 0);
    if (values == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n_values(self->type); i++)
        values->values[i] = Py_NewRef(PyTuple_GET_ITEM(self->defaults, i));
    int result = PyDict_SetItem(of_thread, (PyObject *)self, (PyObject *)values);
    Py_DECREF(values);
    return result < 0 ? NULL : values;
}

/* The values of this thread, borrowed from its dict; NULL: an error. */
static inline Values *values_here(PerThread *self)
{
    uint64_t thread = PyThreadState_Get()->id;
    if (last.of == self && last.thread == thread)
        return last.values;
    PyObject *of_thread = PyThreadState_GetDict();
    if (of_thread == NULL)
        return (Values *)PyErr_NoMemory();
    Values *values = (Values *)PyDict_GetItemWithError(of_thread, (PyObject *)self);
    if (values == NULL && !PyErr_Occurred())
        values = new_values(self, of_thread);
    if (values != NULL) {
        last.of = self;
        last.thread = thread;
        last.values = values;
    }
    return values;
}

/* ------------------------------------------------------------------------------------------------ the object */

/* The place of an attribute; -1: it has no such one. */
static inline Py_ssize_t place_of(PerThread *self, PyObject *name)
{
    Py_ssize_t count = PyTuple_GET_SIZE(self->names);
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyTuple_GET_ITEM(self->names, i) == name)
            return i;
    if (!PyUnicode_CHECK_INTERNED(name)) /* of getattr() */
        for (Py_ssize_t i = 0; i < count; i++)
            if (PyUnicode_Compare(PyTuple_GET_ITEM(self->names, i), name) == 0)
                return i;
    return -1;
}

static PyObject *per_thread_getattr(PyObject *object, PyObject *name)
{
    PerThread *self = (PerThread *)object;
    Py_ssize_t place = place_of(self, name);
    if (place < 0)
        return PyObject_GenericGetAttr(object, name);
    Values *values = values_here(self);
    return values == NULL ? NULL : Py_NewRef(values->values[place]);
}

static int per_thread_setattr(PyObject *object, PyObject *name, PyObject *value)
{
    PerThread *self = (PerThread *)object;
    Py_ssize_t place = place_of(self, name);
    if (place < 0)
        return PyObject_GenericSetAttr(object, name, value);
    Values *values = values_here(self);
    if (values == NULL)
        return -1;
    PyObject *before = values->values[place];
    values->values[place] = Py_NewRef(value == NULL ? PyTuple_GET_ITEM(self->defaults, place) : value); /* deleted: as before it was set */
    Py_DECREF(before);
    return 0;
}

static PyObject *per_thread_own(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    Values *values = values_here((PerThread *)object);
    return values == NULL ? NULL : Py_NewRef(values);
}

/* PerThread({name: default}). It is not freed before the process ends: threads refer to it. */
static PyObject *per_thread_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    PyObject *fields, *name, *value;
    if (named != NULL && PyDict_GET_SIZE(named) != 0)
        return PyErr_Format(PyExc_TypeError, "PerThread() takes no keyword arguments");
    if (!PyArg_ParseTuple(arguments, "O!:PerThread", &PyDict_Type, &fields))
        return NULL;
    PerThread *self = (PerThread *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->names = PyTuple_New(PyDict_GET_SIZE(fields));
    self->defaults = PyTuple_New(PyDict_GET_SIZE(fields));
    Py_ssize_t position = 0, i = 0;
    while (self->names != NULL && self->defaults != NULL && PyDict_Next(fields, &position, &name, &value)) {
        if (!PyUnicode_CheckExact(name)) {
            PyErr_SetString(PyExc_TypeError, "PerThread() takes a dict whose keys are names");
            break;
        }
        PyObject *interned = Py_NewRef(name);
        PyUnicode_InternInPlace(&interned);
        PyTuple_SET_ITEM(self->names, i, interned);
        PyTuple_SET_ITEM(self->defaults, i++, Py_NewRef(value));
    }
    if (!PyErr_Occurred())
        self->type = values_type(self->names);
    if (PyErr_Occurred())
        Py_CLEAR(self);
    return (PyObject *)Py_XNewRef((PyObject *)self); /* one reference is never given back */
}

static void per_thread_dealloc(PyObject *object)
{
    PerThread *self = (PerThread *)object; /* of which only a part was made */
    Py_XDECREF(self->type);
    Py_XDECREF(self->names);
    Py_XDECREF(self->defaults);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef per_thread_methods[] = {
    {"own", per_thread_own, METH_NOARGS, "The attributes of this thread: an object that is up to date while the thread runs."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject PerThreadType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._slots.PerThread",
    .tp_doc = "PerThread({name: default}): an object whose attributes each thread has for itself.",
    .tp_basicsize = sizeof(PerThread),
    .tp_dealloc = per_thread_dealloc,
    .tp_getattro = per_thread_getattr,
    .tp_setattro = per_thread_setattr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = per_thread_methods,
    .tp_new = per_thread_new,
};

int add_per_thread(PyObject *module)
{
    if (PyType_Ready(&PerThreadType) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "PerThread", (PyObject *)&PerThreadType);
}
