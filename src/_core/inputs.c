/* Descriptions of arguments. Shapes, strides and types are read straight from the arrays and looked up in a table; the Recorder describes
   only what is new, and what is no tensor, number or list of those. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_recorder_numpy
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include "recorder.h"
#include <string.h>

enum { MOST_WORDS = 256, DEEPEST_LIST = 3 };

/* the first word of an argument: what it is */
enum { A_TENSOR = 1, A_NONE, A_TRUE, A_FALSE, AN_INT, A_FLOAT, A_LIST, AN_OBJECT };

typedef struct {
    int64_t words[MOST_WORDS];
    size_t length;
    PyObject *objects[4]; /* whose addresses are among the words; kept alive while Python code may run */
    int n_objects;
} Description;

/* classes whose objects are constants: dtypes, layouts, memory formats, devices */
static PyObject *constant_types;
static PyObject *str_inputs_of;

int load_inputs(void)
{
    if (constant_types != NULL)
        return 0;
    if (str_inputs_of == NULL)
        str_inputs_of = PyUnicode_InternFromString("inputs_of");
    if (str_inputs_of == NULL)
        return -1;
    PyObject *dtype = PyImport_ImportModule("mindtorch_v2._dtype");
    PyObject *device = dtype == NULL ? NULL : PyImport_ImportModule("mindtorch_v2._device");
    if (dtype != NULL && device != NULL) {
        PyObject *const owners[4] = {dtype, dtype, dtype, device};
        static const char *const names[4] = {"dtype", "layout", "memory_format", "device"};
        PyObject *types = PyTuple_New(4);
        for (int i = 0; types != NULL && i < 4; i++) {
            PyObject *type = PyObject_GetAttrString(owners[i], names[i]);
            if (type == NULL)
                Py_CLEAR(types);
            else
                PyTuple_SET_ITEM(types, i, type);
        }
        constant_types = types;
    }
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    return constant_types == NULL ? -1 : 0;
}

/* Where the words of a description go, one by one: false if the word does not fit, or is not the one that is expected. */
typedef bool (*PutWord)(void *to, int64_t word);

static inline bool add_word(void *to, int64_t word)
{
    Description *description = to;
    if (description->length == MOST_WORDS)
        return false;
    description->words[description->length++] = word;
    return true;
}

/* A description that was made before, as far as it was not compared yet. */
typedef struct {
    const int64_t *next, *end;
} Expected;

static inline bool is_next_word(void *to, int64_t word)
{
    Expected *expected = to;
    return expected->next < expected->end && *expected->next++ == word;
}

static inline bool put_array(PyArrayObject *array, void *to, PutWord put)
{
    int ndim = PyArray_NDIM(array);
    const npy_intp *shape = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    bool is_put = put(to, A_TENSOR | (int64_t)PyArray_DESCR(array)->type_num << 8) && put(to, ndim);
    for (int d = 0; is_put && d < ndim; d++)
        is_put = put(to, shape[d]) && put(to, strides[d]);
    return is_put;
}

/* Describe a value as most ops have: a tensor, None, a bool or an integer. It runs no Python code. is_plain: set to false for others. */
static inline bool put_plain(PyObject *value, void *to, PutWord put, bool *is_plain)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == tensor_type || type == parameter_type) {
        PyObject *array = *(PyObject **)((char *)value + field_array.offset);
        if (array != NULL && PyArray_Check(array))
            return put_array((PyArrayObject *)array, to, put);
    } else if (value == Py_None)
        return put(to, A_NONE);
    else if (type == &PyBool_Type)
        return put(to, value == Py_True ? A_TRUE : A_FALSE);
    else if (type == &PyLong_Type) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && put(to, AN_INT) && put(to, number);
    }
    *is_plain = false;
    return false;
}

static bool describe_other(Description *description, PyObject *value, int depth);

static bool describe_value(Description *description, PyObject *value, int depth)
{
    bool is_plain = true, is_put = put_plain(value, description, add_word, &is_plain);
    return is_plain ? is_put : describe_other(description, value, depth);
}

static bool describe_other(Description *description, PyObject *value, int depth)
{
    if (PyObject_TypeCheck(value, tensor_type)) {
        PyObject *array = get_field(value, &field_array);
        if (array == NULL) { /* sparse, or a meta tensor; an interrupt stays set */
            if (PyErr_ExceptionMatches(PyExc_Exception))
                PyErr_Clear();
            return false;
        }
        bool described = PyArray_Check(array) && put_array((PyArrayObject *)array, description, add_word);
        Py_DECREF(array);
        return described;
    }
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        int64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return add_word(description, A_FLOAT) && add_word(description, bits);
    }
    if (PyList_CheckExact(value) || PyTuple_Check(value)) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
        if (depth == DEEPEST_LIST || !add_word(description, A_LIST) || !add_word(description, count))
            return false;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(value, i));
            bool described = describe_value(description, item, depth + 1);
            Py_DECREF(item);
            if (!described || count != PySequence_Fast_GET_SIZE(value))
                return false;
        }
        return true;
    }
    bool is_constant = PyUnicode_CheckExact(value) && PyUnicode_CHECK_INTERNED(value);
    for (Py_ssize_t i = 0; !is_constant && i < PyTuple_GET_SIZE(constant_types); i++)
        is_constant = (PyObject *)Py_TYPE(value) == PyTuple_GET_ITEM(constant_types, i);
    if (!is_constant || description->n_objects == 4)
        return false;
    description->objects[description->n_objects++] = Py_NewRef(value);
    return add_word(description, AN_OBJECT) && add_word(description, (int64_t)(intptr_t)value);
}

/* The Recorder describes the arguments and gives the index; -1: they cannot be described. */
static int64_t ask_recorder(Core *core, PyObject *op, PyObject *const *arguments, Py_ssize_t count)
{
    int64_t index = -1;
    core->n_asked++;
    PyObject *tuple = PyTuple_New(count);
    if (tuple != NULL) {
        for (Py_ssize_t i = 0; i < count; i++)
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(arguments[i]));
        PyObject *answer = PyObject_CallMethodObjArgs(core->recording, str_inputs_of, op, tuple, NULL);
        Py_DECREF(tuple);
        if (answer != NULL) {
            index = PyLong_AsLongLong(answer);
            Py_DECREF(answer);
        }
    }
    if (index < 0)
        report_error(op);
    return index;
}

static void remember(Remembered *last, const Core *core, const Description *description, int64_t index)
{
    if (last != NULL && description->length <= REMEMBERED_WORDS) {
        last->serial = core->serial;
        last->length = description->length;
        last->index = index;
        memcpy(last->words, description->words, description->length * sizeof(int64_t));
    }
}

/* Whether the arguments, all of them plain, are described as those of the last call were. Compared one by one: most calls end here, and
   to write a description down before it is compared takes twice as long. */
static inline bool are_last(const Remembered *last, PyObject *const *arguments, Py_ssize_t count)
{
    Expected expected = {last->words + 1, last->words + last->length}; /* the first word is the op */
    bool is_plain = true;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!put_plain(arguments[i], &expected, is_next_word, &is_plain))
            return false;
    return expected.next == expected.end;
}

/* The index of what the description says; last: as of `inputs_of`. */
static int64_t index_of(Core *core, const Description *description, PyObject *op, PyObject *const *arguments, Py_ssize_t count,
                        Remembered *last)
{
    const int64_t *words = description->words;
    size_t length = description->length;
    uint64_t hash = hash_words(words, length);
    const int64_t *known = table_get(&core->descriptions, words, length, hash);
    if (known != NULL) {
        remember(last, core, description, *known);
        return *known;
    }
    int64_t index = ask_recorder(core, op, arguments, count);
    if (index < 0)
        return index;
    for (int i = 0; i < description->n_objects; i++)
        if (PyList_Append(core->kept, description->objects[i]) < 0) {
            PyErr_Clear();
            return index; /* its address may be reused: not for the table */
        }
    table_set(&core->descriptions, words, length, hash, index);
    return index;
}

/* The index of the inputs of an op, or of a range: op None, uid -1. last: remembers this call for the next, or NULL. */
int64_t inputs_of(Core *core, PyObject *op, int64_t uid, PyObject *const *arguments, Py_ssize_t count, Remembered *last)
{
    if (last != NULL && last->serial == core->serial && last->length != 0 && are_last(last, arguments, count))
        return last->index;
    Description description;
    description.length = 0;
    description.n_objects = 0;
    add_word(&description, uid);
    bool is_described = true;
    for (Py_ssize_t i = 0; i < count && is_described; i++)
        is_described = describe_value(&description, arguments[i], 0);
    int64_t index = -1;
    if (is_described)
        index = index_of(core, &description, op, arguments, count, last);
    else if (!PyErr_Occurred())
        index = ask_recorder(core, op, arguments, count);
    for (int i = 0; i < description.n_objects; i++)
        Py_DECREF(description.objects[i]);
    return index;
}
