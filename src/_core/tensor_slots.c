/* Allocating tensors and views: new objects whose internal fields have their defaults. _tensor_slots.py holds the Python twin. */

#include "layout.h"
#include "operators.h"

#include <stdbool.h>
#include <structmember.h>

typedef struct {
    Py_ssize_t offset;
    PyObject *value;
} Field;

/* The slots of a class and their defaults, and the offsets of those that a view needs. */
typedef struct {
    PyObject_VAR_HEAD
    PyTypeObject *type;
    Py_ssize_t array, base, rg, views_rg, views, view_link;
    Field fields[1];
} Defaults;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static void defaults_dealloc(PyObject *object)
{
    Defaults *self = (Defaults *)object;
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++)
        Py_XDECREF(self->fields[i].value);
    Py_XDECREF(self->type);
    PyObject_Free(object);
}

static PyTypeObject DefaultsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._slots.Defaults",
    .tp_basicsize = offsetof(Defaults, fields),
    .tp_itemsize = sizeof(Field),
    .tp_dealloc = defaults_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

/* new(cls): an object of `cls`, which is the class of `self` or one derived from it. */
static PyObject *new_tensor(PyObject *object, PyObject *cls)
{
    Defaults *self = (Defaults *)object;
    if (cls != (PyObject *)self->type) {
        if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, self->type))
            return PyErr_Format(PyExc_TypeError, "a class derived from %s is needed, not %R", self->type->tp_name, cls);
    }
    PyTypeObject *type = (PyTypeObject *)cls;
    PyObject *tensor;
    if (type->tp_flags & Py_TPFLAGS_IS_ABSTRACT) { /* raises, and names the abstract methods */
        PyObject *none = PyTuple_New(0);
        tensor = none == NULL ? NULL : PyBaseObject_Type.tp_new(type, none, NULL);
        Py_XDECREF(none);
    } else
        tensor = type->tp_alloc(type, 0);
    if (tensor == NULL)
        return NULL;
    Py_ssize_t count = Py_SIZE(self);
    for (Py_ssize_t i = 0; i < count; i++)
        SLOT(tensor, self->fields[i].offset) = Py_NewRef(self->fields[i].value);
    return tensor;
}

static PyMethodDef new_tensor_method = {
    "new_tensor", new_tensor, METH_O, "A new tensor of a class, whose internal fields have their defaults."};

/* new_result(result, *operands): a tensor of the class of `self` that holds what a kernel returned. */
static PyObject *new_result(PyObject *object, PyObject *const *args, Py_ssize_t n)
{
    Defaults *self = (Defaults *)object;
    PyObject *array = result_array(args, n);
    PyObject *tensor = array == NULL ? NULL : new_tensor(object, (PyObject *)self->type);
    if (tensor == NULL)
        Py_XDECREF(array);
    else
        SLOT(tensor, self->array) = array; /* was not set */
    return tensor;
}

static PyMethodDef new_result_method = {"new_result", (PyCFunction)(void (*)(void))new_result, METH_FASTCALL,
                                        "A new tensor that holds the result of a kernel."};

static void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject *old = SLOT(object, offset);
    SLOT(object, offset) = Py_NewRef(value);
    Py_XDECREF(old);
}

/* The views of a tensor are a ring of links, which costs a quarter of what weak references do. The tensor holds the first link,
 * which has no view, in `_views`; each view holds its own in `_view_link` and with it leaves the ring. */
typedef struct Link {
    PyObject_HEAD
    struct Link *next, *previous;
    PyObject *view; /* borrowed: the view holds this link */
} Link;

static void link_dealloc(PyObject *object)
{
    Link *link = (Link *)object;
    link->next->previous = link->previous;
    link->previous->next = link->next;
    PyObject_Free(object);
}

static PyTypeObject LinkType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._slots.Link",
    .tp_basicsize = sizeof(Link),
    .tp_dealloc = link_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

/* A link for a view, behind `first`; without these the first link of a ring. */
static Link *new_link(Link *first, PyObject *view)
{
    Link *link = PyObject_New(Link, &LinkType);
    if (link == NULL)
        return NULL;
    link->view = view;
    link->next = link->previous = link;
    if (first != NULL) {
        link->next = first->next;
        link->previous = first;
        first->next->previous = link;
        first->next = link;
    }
    return link;
}

static bool is_link(PyObject *value)
{
    return value != NULL && Py_TYPE(value) == &LinkType;
}

/* Make a tensor ready for views: its ring, and the list that is their `_rg`. */
static int prepare_base(Defaults *self, PyObject *base)
{
    if (is_link(SLOT(base, self->views)))
        return 0;
    PyObject *flag = PyList_New(0);
    Link *first = flag == NULL ? NULL : new_link(NULL, NULL);
    if (first != NULL) {
        set_slot(base, self->views, (PyObject *)first);
        set_slot(base, self->views_rg, flag);
    }
    Py_XDECREF(flag);
    Py_XDECREF(first);
    return first == NULL ? -1 : 0;
}

static int add_link(Defaults *self, PyObject *base, PyObject *view)
{
    Link *link = new_link((Link *)SLOT(base, self->views), view);
    if (link == NULL)
        return -1;
    set_slot(view, self->view_link, (PyObject *)link);
    Py_DECREF(link);
    return 0;
}

static bool is_tensor(Defaults *self, PyObject *value)
{
    if (PyObject_TypeCheck(value, self->type))
        return true;
    PyErr_Format(PyExc_TypeError, "a tensor is needed, not %R", (PyObject *)Py_TYPE(value));
    return false;
}

/* add_view(base, view) */
static PyObject *add_view(PyObject *object, PyObject *const *args, Py_ssize_t n)
{
    Defaults *self = (Defaults *)object;
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "add_view() takes 2 arguments (%zd given)", n);
    if (!is_tensor(self, args[0]) || !is_tensor(self, args[1]) || prepare_base(self, args[0]) < 0
        || add_link(self, args[0], args[1]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef add_view_method = {
    "add_view", (PyCFunction)(void (*)(void))add_view, METH_FASTCALL, "Register a view of a tensor."};

/* views_of(tensor) */
static PyObject *views_of(PyObject *object, PyObject *tensor)
{
    Defaults *self = (Defaults *)object;
    PyObject *views = is_tensor(self, tensor) ? PyList_New(0) : NULL;
    if (views == NULL || !is_link(SLOT(tensor, self->views)))
        return views;
    Link *first = (Link *)Py_NewRef(SLOT(tensor, self->views));
    for (Link *link = first->next; link != first; link = link->next) {
        /* a view that is being freed still has its link, but no references */
        if (link->view != NULL && Py_REFCNT(link->view) > 0 && PyList_Append(views, link->view) < 0) {
            Py_CLEAR(views);
            break;
        }
    }
    Py_DECREF(first);
    return views;
}

static PyMethodDef views_of_method = {"views_of", views_of, METH_O, "The views of a tensor that are alive."};

/* new_view(source, array) */
static PyObject *new_view(PyObject *object, PyObject *const *args, Py_ssize_t n)
{
    Defaults *self = (Defaults *)object;
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "new_view() takes 2 arguments (%zd given)", n);
    if (!is_tensor(self, args[0]))
        return NULL;
    PyObject *base = SLOT(args[0], self->base);
    if (base == NULL || base == Py_None)
        base = args[0];
    if (!is_tensor(self, base) || prepare_base(self, base) < 0)
        return NULL;
    PyObject *rg = SLOT(base, self->rg);
    int requires_grad = rg == NULL ? 0 : PyObject_IsTrue(rg);
    PyObject *view = requires_grad < 0 ? NULL : new_tensor(object, (PyObject *)self->type);
    if (view == NULL)
        return NULL;
    set_slot(view, self->array, args[1]);
    set_slot(view, self->base, base);
    if (!requires_grad)
        set_slot(view, self->rg, SLOT(base, self->views_rg));
    if (add_link(self, base, view) < 0)
        Py_CLEAR(view);
    return view;
}

static PyMethodDef new_view_method = {
    "new_view", (PyCFunction)(void (*)(void))new_view, METH_FASTCALL, "A tensor that is a view of another one."};

/* The offset of a slot of `type`; -1: an error. */
static Py_ssize_t offset_of(PyObject *type, PyObject *name)
{
    PyObject *descriptor = PyObject_GetAttr(type, name);
    if (descriptor == NULL)
        return -1;
    PyMemberDef *member = Py_TYPE(descriptor) == &PyMemberDescr_Type ? ((PyMemberDescrObject *)descriptor)->d_member : NULL;
    Py_ssize_t offset = -1;
    if (member == NULL || member->type != T_OBJECT_EX || PyDescr_TYPE(descriptor) != (PyTypeObject *)type)
        PyErr_Format(PyExc_TypeError, "%R is not a slot of %R", name, type);
    else
        offset = member->offset;
    Py_DECREF(descriptor);
    return offset;
}

static Py_ssize_t offset_named(PyObject *type, const char *text)
{
    PyObject *name = PyUnicode_FromString(text);
    Py_ssize_t offset = name == NULL ? -1 : offset_of(type, name);
    Py_XDECREF(name);
    return offset;
}

/* allocators(cls, {slot: default}): the functions new_tensor, new_view, add_view, views_of and new_result for `cls`. */
static PyObject *allocators(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *values;
    if (!PyArg_ParseTuple(args, "O!O!:allocators", &PyType_Type, &type, &PyDict_Type, &values))
        return NULL;
    Py_ssize_t count = PyDict_GET_SIZE(values), filled = 0, position = 0;
    Defaults *self = PyObject_NewVar(Defaults, &DefaultsType, count);
    if (self == NULL)
        return NULL;
    self->type = (PyTypeObject *)Py_NewRef(type);
    memset(self->fields, 0, (size_t)count * sizeof(Field));
    PyObject *name, *value, *functions = NULL;
    self->array = offset_named(type, "_array");
    self->base = offset_named(type, "_base");
    self->rg = offset_named(type, "_rg");
    self->views_rg = offset_named(type, "_views_rg");
    self->views = offset_named(type, "_views");
    self->view_link = offset_named(type, "_view_link");
    if (PyErr_Occurred())
        goto done;
    while (PyDict_Next(values, &position, &name, &value)) {
        Py_ssize_t offset = offset_of(type, name);
        if (offset < 0)
            goto done;
        self->fields[filled++] = (Field){offset, Py_NewRef(value)};
    }
    PyMethodDef *wanted[] = {&new_tensor_method, &new_view_method, &add_view_method, &views_of_method,
                             &new_result_method};
    functions = PyTuple_New(5);
    for (Py_ssize_t i = 0; functions != NULL && i < 5; i++) {
        PyObject *function = PyCFunction_New(wanted[i], (PyObject *)self);
        if (function == NULL)
            Py_CLEAR(functions);
        else
            PyTuple_SET_ITEM(functions, i, function);
    }
done:
    Py_DECREF(self);
    return functions;
}

static PyMethodDef methods[] = {
    {"allocators", allocators, METH_VARARGS, "The functions that allocate tensors and views, from the defaults of their slots."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_slots", .m_doc = "Allocating tensors, their operators, ranges of annotations, attributes per thread.", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__slots(void)
{
    PyObject *module = PyType_Ready(&DefaultsType) < 0 || PyType_Ready(&LinkType) < 0 ? NULL : PyModule_Create(&definition);
    if (module != NULL && (add_operators(module) < 0 || add_annotations(module) < 0 || add_layout(module) < 0
                           || add_per_thread(module) < 0))
        Py_CLEAR(module);
    return module;
}
