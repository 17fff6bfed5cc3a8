/* Ranges of annotations, the base of `record_function`: entered and left by the interpreter without a frame of Python.

   The twin is `PythonRange` in mindtorch_v2/profiler/record_function.py, which does the same. */

#include "operators.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *name, *args;
    PyObject *run_callbacks_on_exit;
    PyObject *record; /* what `enter` gave; None: not entered, or left */
    PyObject *ranges; /* where it was entered; NULL: not yet */
} Range;

static PyObject *ranges;       /* `_dispatch.ranges`; NULL: nothing records */
static PyObject *not_recorded; /* `record` of a range that was entered while nothing recorded */
static PyObject *str_enter, *str_exit, *str_checked, *no_arguments, *user_scope, *no_sequence, *no_thread;

/* `__init__` is that of record_function, in Python for its signature. */
static PyObject *range_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    (void)arguments;
    (void)named;
    Range *self = (Range *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->run_callbacks_on_exit = Py_NewRef(Py_True);
        self->record = Py_NewRef(Py_None);
    }
    return (PyObject *)self;
}

/* The class whose calls make ranges without a frame of Python, and its `__init__`, which sets the name and the arguments. */
static PyTypeObject *annotation_type;
static PyObject *annotation_init, *str_init;

/* Call the class as the interpreter does for one without `tp_vectorcall`. */
static PyObject *call_class(PyObject *type, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *positional = PyTuple_New(count), *named = PyDict_New(), *result = NULL;
    if (positional == NULL || named == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(positional, i, Py_NewRef(arguments[i]));
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(names, i), arguments[count + i]) < 0)
            goto done;
    result = PyType_Type.tp_call(type, positional, named);
done:
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return result;
}

/* record_function(name) and record_function(name, args); all else is left to `__init__`. Subclasses do not inherit this. */
static PyObject *call_annotation(PyObject *type, PyObject *const *arguments, size_t flags, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (names != NULL || count < 1 || count > 2 || (PyTypeObject *)type != annotation_type
        || _PyType_Lookup(annotation_type, str_init) != annotation_init) /* it may have been replaced */
        return call_class(type, arguments, count, names);
    Range *self = (Range *)range_new(annotation_type, NULL, NULL);
    if (self != NULL) {
        self->name = Py_NewRef(arguments[0]);
        self->args = Py_NewRef(count > 1 ? arguments[1] : Py_None);
    }
    return (PyObject *)self;
}

/* The name as a string, a new reference. */
static PyObject *checked_name(Range *self)
{
    if (self->name == NULL) {
        PyErr_SetString(PyExc_AttributeError, "'record_function' object has no attribute 'name'");
        return NULL;
    }
    if (PyUnicode_CheckExact(self->name) && (self->args == NULL || self->args == Py_None))
        return Py_NewRef(self->name);
    return PyObject_CallMethodNoArgs((PyObject *)self, str_checked);
}

static PyObject *begin_range(Range *self, PyObject *name)
{
    PyObject *inside = Py_NewRef(ranges), *arguments; /* a finalizer inside may end the recording */
    int has_args = self->args == NULL ? 0 : PyObject_IsTrue(self->args);
    if (has_args < 0)
        arguments = NULL;
    else
        arguments = has_args ? PyTuple_Pack(1, self->args) : Py_NewRef(no_arguments);
    PyObject *token = NULL;
    if (arguments != NULL) {
        PyObject *values[] = {inside, name, user_scope, no_sequence, no_thread, arguments};
        token = PyObject_VectorcallMethod(str_enter, values, 6, NULL);
        Py_DECREF(arguments);
    }
    if (token == NULL) {
        Py_DECREF(inside);
        return NULL;
    }
    Py_XSETREF(self->ranges, inside);
    return token;
}

static PyObject *range_enter(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    Range *self = (Range *)object;
    PyObject *name = checked_name(self);
    if (name == NULL)
        return NULL;
    PyObject *record = Py_NewRef(not_recorded);
    if (ranges != NULL) {
        PyObject *token = begin_range(self, name);
        if (token != Py_None) /* also for an error */
            Py_SETREF(record, token);
        else
            Py_DECREF(token);
    }
    Py_DECREF(name);
    if (record == NULL)
        return NULL;
    Py_XSETREF(self->record, record);
    return Py_NewRef(object);
}

static PyObject *range_exit(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    (void)arguments;
    Range *self = (Range *)object;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "__exit__() takes 3 arguments (%zd given)", count);
    if (self->record == not_recorded)
        Py_RETURN_NONE;
    if (self->record == NULL || self->record == Py_None) {
        PyErr_SetString(PyExc_AssertionError, "Expected record to be set");
        return NULL;
    }
    int ends = self->run_callbacks_on_exit == NULL ? 0 : PyObject_IsTrue(self->run_callbacks_on_exit);
    if (ends <= 0 || self->ranges == NULL)
        return ends < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *inside = Py_NewRef(self->ranges), *record = Py_NewRef(self->record);
    PyObject *result = PyObject_CallMethodOneArg(inside, str_exit, record);
    Py_DECREF(inside);
    Py_DECREF(record);
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    Py_XSETREF(self->record, Py_NewRef(Py_None));
    Py_RETURN_NONE;
}

static int range_traverse(PyObject *object, visitproc visit, void *arg)
{
    Range *self = (Range *)object;
    Py_VISIT(self->name);
    Py_VISIT(self->args);
    Py_VISIT(self->run_callbacks_on_exit);
    Py_VISIT(self->record);
    Py_VISIT(self->ranges);
    return 0;
}

static int range_clear(PyObject *object)
{
    Range *self = (Range *)object;
    Py_CLEAR(self->name);
    Py_CLEAR(self->args);
    Py_CLEAR(self->run_callbacks_on_exit);
    Py_CLEAR(self->record);
    Py_CLEAR(self->ranges);
    return 0;
}

static void range_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    range_clear(object);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef range_methods[] = {
    {"__enter__", range_enter, METH_NOARGS, "Begin the range."},
    {"__exit__", (PyCFunction)(void (*)(void))range_exit, METH_FASTCALL, "End the range."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef range_members[] = {
    {"name", T_OBJECT_EX, offsetof(Range, name), 0, NULL},
    {"args", T_OBJECT_EX, offsetof(Range, args), 0, NULL},
    {"run_callbacks_on_exit", T_OBJECT_EX, offsetof(Range, run_callbacks_on_exit), 0, NULL},
    {"record", T_OBJECT_EX, offsetof(Range, record), 0, NULL},
    {"_ranges", T_OBJECT, offsetof(Range, ranges), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject RangeType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._slots.Range",
    .tp_doc = "A named range, a context manager.",
    .tp_basicsize = sizeof(Range),
    .tp_dealloc = range_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_traverse = range_traverse,
    .tp_clear = range_clear,
    .tp_methods = range_methods,
    .tp_members = range_members,
    .tp_new = range_new,
};

static PyObject *set_ranges(PyObject *module, PyObject *value)
{
    (void)module;
    Py_XSETREF(ranges, value == Py_None ? NULL : Py_NewRef(value));
    Py_RETURN_NONE;
}

static PyObject *set_annotation_type(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type) || Py_TYPE(type) != &PyType_Type || !PyType_IsSubtype((PyTypeObject *)type, &RangeType))
        return PyErr_Format(PyExc_TypeError, "%R is no class derived from Range", type);
    Py_XSETREF(annotation_init, PyObject_GetAttr(type, str_init));
    if (annotation_init == NULL)
        return NULL;
    if (annotation_type != NULL)
        annotation_type->tp_vectorcall = NULL;
    Py_XSETREF(annotation_type, (PyTypeObject *)Py_NewRef(type));
    annotation_type->tp_vectorcall = call_annotation;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_annotation_type", set_annotation_type, METH_O,
     "Make instances of this subclass of Range, whose `__init__` sets name and args, without calling it."},
    {"set_ranges", set_ranges, METH_O, "Let ranges be recorded by this object from now on; None: not recorded."},
    {NULL, NULL, 0, NULL},
};

int add_annotations(PyObject *module)
{
    str_enter = PyUnicode_InternFromString("enter");
    str_exit = PyUnicode_InternFromString("exit");
    str_checked = PyUnicode_InternFromString("_checked");
    str_init = PyUnicode_InternFromString("__init__");
    no_arguments = PyTuple_New(0);
    user_scope = PyLong_FromLong(7); /* USER_SCOPE of mindtorch_prof/trace.py */
    no_sequence = PyLong_FromLong(-1);
    no_thread = PyLong_FromLong(0);
    not_recorded = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    if (PyErr_Occurred() || PyType_Ready(&RangeType) < 0 || PyModule_AddFunctions(module, functions) < 0
        || PyModule_AddObjectRef(module, "NOT_RECORDED", not_recorded) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Range", (PyObject *)&RangeType);
}
