/* Operators of tensors, `x + y`: called by the interpreter without a frame of Python in between while something records.

   The twin is the function that an operator is made of (`Op.operator`), which does the same and is called in all other cases: while nothing
   records, for operands that the recorder does not know, and while overrides guard the function. */

#include "operators.h"

#include <stdbool.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *owner, *name; /* the class and its attribute that this is */
    PyObject *op;
    PyFunctionObject *function;
    PyObject *generated; /* co_filename of the code that was generated for the op */
    PyObject *code;      /* the function's code when `is_plain` was last found out; NULL: not yet */
    bool is_plain;       /* whether that is the generated code, and no stub and no guard */
    Py_ssize_t uid, n_defaults;
    PyObject *defaults[2]; /* of the arguments after the first two */
} Operator;

enum { MOST_ARGUMENTS = 4 };

static Py_ssize_t n_recorded; /* calls of probes, in all */

static PyObject *recorder; /* the list of probes of the recording that sees ops; NULL: nothing records, or not by probes */

/* Find out whether the function may be bypassed: once per code that it gets. */
static int look_at_code(Operator *self)
{
    PyCodeObject *code = (PyCodeObject *)self->function->func_code;
    int is_plain = PyObject_RichCompareBool(code->co_filename, self->generated, Py_EQ);
    PyObject *defaults = is_plain == 1 ? PyObject_GetAttrString(self->op, "operator_defaults") : NULL;
    if (is_plain < 0 || (is_plain && defaults == NULL))
        return -1;
    self->is_plain = is_plain && PyTuple_Check(defaults) && PyTuple_GET_SIZE(defaults) <= MOST_ARGUMENTS - 2;
    if (self->is_plain) {
        self->n_defaults = PyTuple_GET_SIZE(defaults);
        for (Py_ssize_t i = 0; i < self->n_defaults; i++)
            Py_XSETREF(self->defaults[i], Py_NewRef(PyTuple_GET_ITEM(defaults, i)));
    }
    Py_XDECREF(defaults);
    Py_XSETREF(self->code, Py_NewRef((PyObject *)code));
    return 0;
}

/* Whether the op takes this operand, a tensor or a Python number; others are left to the function. */
static inline bool is_operand(Operator *self, PyObject *value)
{
    return PyObject_TypeCheck(value, (PyTypeObject *)self->owner) || PyFloat_CheckExact(value) || PyLong_CheckExact(value)
           || PyBool_Check(value);
}

static inline PyObject *call_function(Operator *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    return self->function->vectorcall((PyObject *)self->function, arguments, flags, names);
}

static PyObject *operator_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names)
{
    Operator *self = (Operator *)object;
    if (recorder == NULL)
        return call_function(self, arguments, flags, names);
    if (self->code != self->function->func_code && look_at_code(self) < 0)
        return NULL;
    PyObject *probes = recorder; /* read again: looking at the code runs Python code */
    if (probes == NULL || !self->is_plain || PyVectorcall_NARGS(flags) != 2 || names != NULL || !is_operand(self, arguments[1])
        || self->uid >= PyList_GET_SIZE(probes))
        return call_function(self, arguments, flags, names);
    n_recorded++;
    PyObject *probe = Py_NewRef(PyList_GET_ITEM(probes, self->uid));
    PyObject *all[MOST_ARGUMENTS] = {arguments[0], arguments[1]};
    for (Py_ssize_t i = 0; i < self->n_defaults; i++)
        all[2 + i] = self->defaults[i];
    PyObject *result = PyObject_Vectorcall(probe, all, (size_t)(2 + self->n_defaults), NULL);
    Py_DECREF(probe);
    return result;
}

static PyObject *operator_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* What an operator has not itself is the function's: its signature, annotations, code. */
static PyObject *operator_getattr(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr((PyObject *)((Operator *)self)->function, name);
}

static PyObject *operator_repr(PyObject *object)
{
    Operator *self = (Operator *)object;
    return PyUnicode_FromFormat("<operator '%U' of '%s' objects>", self->name, ((PyTypeObject *)self->owner)->tp_name);
}

/* Pickled and copied as the attribute of its class. */
static PyObject *operator_reduce(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    Operator *self = (Operator *)object;
    PyObject *getattr = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
    if (getattr == NULL)
        return PyErr_Format(PyExc_RuntimeError, "there is no getattr among the builtins");
    return Py_BuildValue("O(OO)", getattr, self->owner, self->name);
}

static PyObject *operator_doc(PyObject *self, void *closure)
{
    (void)closure;
    return PyObject_GetAttrString((PyObject *)((Operator *)self)->function, "__doc__");
}

static PyObject *operator_module(PyObject *self, void *closure)
{
    (void)closure;
    return PyObject_GetAttrString((PyObject *)((Operator *)self)->function, "__module__");
}

static PyObject *operator_qualname(PyObject *object, void *closure)
{
    (void)closure;
    Operator *self = (Operator *)object;
    return PyUnicode_FromFormat("%s.%U", ((PyTypeObject *)self->owner)->tp_name, self->name);
}

/* Operator(owner, name, op) */
static PyObject *operator_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    PyObject *owner, *name, *op;
    if (named != NULL && PyDict_GET_SIZE(named) != 0)
        return PyErr_Format(PyExc_TypeError, "Operator() takes no keyword arguments");
    if (!PyArg_ParseTuple(arguments, "O!UO:Operator", &PyType_Type, &owner, &name, &op))
        return NULL;
    Operator *self = (Operator *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = operator_call;
    self->owner = Py_NewRef(owner);
    self->name = Py_NewRef(name);
    self->op = Py_NewRef(op);
    self->function = (PyFunctionObject *)PyObject_GetAttrString(op, "operator");
    PyObject *full_name = PyObject_GetAttrString(op, "full_name"), *uid = PyObject_GetAttrString(op, "uid");
    if (self->function != NULL && full_name != NULL && uid != NULL) {
        self->generated = PyUnicode_FromFormat("<op %U>", full_name);
        self->uid = PyLong_AsSsize_t(uid);
        if (!PyFunction_Check(self->function))
            PyErr_SetString(PyExc_TypeError, "Operator() needs an op whose operator is a function");
        else if (self->uid < 0 && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "Operator() needs an op with a uid");
    }
    Py_XDECREF(full_name);
    Py_XDECREF(uid);
    if (PyErr_Occurred())
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int operator_traverse(PyObject *object, visitproc visit, void *arg)
{
    Operator *self = (Operator *)object;
    Py_VISIT(self->owner);
    Py_VISIT(self->op);
    Py_VISIT(self->function);
    Py_VISIT(self->code);
    Py_VISIT(self->defaults[0]);
    Py_VISIT(self->defaults[1]);
    return 0;
}

/* No tp_clear: the class and the op, which refer to all of it, can break the cycle. */
static void operator_dealloc(PyObject *object)
{
    Operator *self = (Operator *)object;
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->owner);
    Py_XDECREF(self->name);
    Py_XDECREF(self->op);
    Py_XDECREF(self->function);
    Py_XDECREF(self->generated);
    Py_XDECREF(self->code);
    Py_XDECREF(self->defaults[0]);
    Py_XDECREF(self->defaults[1]);
    Py_TYPE(object)->tp_free(object);
}

static PyMemberDef operator_members[] = {
    {"__name__", T_OBJECT, offsetof(Operator, name), READONLY, NULL},
    {"__objclass__", T_OBJECT, offsetof(Operator, owner), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef operator_attributes[] = {
    {"__doc__", operator_doc, NULL, NULL, NULL},
    {"__module__", operator_module, NULL, NULL, NULL},
    {"__qualname__", operator_qualname, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef operator_methods[] = {
    {"__reduce__", operator_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject OperatorType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._slots.Operator",
    .tp_basicsize = sizeof(Operator),
    .tp_dealloc = operator_dealloc,
    .tp_vectorcall_offset = offsetof(Operator, vectorcall),
    .tp_repr = operator_repr,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = operator_getattr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = operator_traverse,
    .tp_methods = operator_methods,
    .tp_members = operator_members,
    .tp_getset = operator_attributes,
    .tp_descr_get = operator_get,
    .tp_new = operator_new,
};

static PyObject *set_recorder(PyObject *module, PyObject *probes)
{
    (void)module;
    PyObject *list = PyList_CheckExact(probes) ? Py_NewRef(probes) : NULL;
    Py_XSETREF(recorder, list);
    Py_RETURN_NONE;
}

static PyObject *recorded_operators(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyLong_FromSsize_t(n_recorded);
}

static PyMethodDef functions[] = {
    {"recorded_operators", recorded_operators, METH_NOARGS, "How many times operators have called probes in this process."},
    {"set_recorder", set_recorder, METH_O, "Let operators call the probes of a list; of anything else, none."},
    {NULL, NULL, 0, NULL},
};

int add_operators(PyObject *module)
{
    if (PyType_Ready(&OperatorType) < 0 || PyModule_AddFunctions(module, functions) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Operator", (PyObject *)&OperatorType);
}
