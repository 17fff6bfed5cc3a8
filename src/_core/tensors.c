/* Ids of tensors and of their memory, as tensor_ids.py defines them. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_recorder_numpy
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include "recorder.h"

static int64_t ask_register(Core *core, PyObject *tensor)
{
    PyObject *answer = PyObject_CallOneArg(core->assign_id, tensor);
    int64_t tensor_id = answer == NULL ? -1 : PyLong_AsLongLong(answer);
    Py_XDECREF(answer);
    return tensor_id;
}

/* Whether a weak reference is to this object. */
static bool refers_to(PyObject *reference, PyObject *object)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *target = NULL;
    if (PyWeakref_GetRef(reference, &target) < 0)
        PyErr_Clear();
    Py_XDECREF(target);
    return target == object;
#else
    return PyWeakref_GetObject(reference) == object;
#endif
}

/* The id of the memory that an array owns, from the register's `storage_at`; 0: none in this recording, -1: an error. */
static int64_t known_storage(Core *core, PyObject *key, PyObject *owner)
{
    PyObject *entry = PyDict_GetItemWithError(core->storage_at, key);
    if (entry == NULL)
        return PyErr_Occurred() ? -1 : 0;
    if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 2 || !refers_to(PyTuple_GET_ITEM(entry, 0), owner))
        return 0;
    int64_t storage_id = PyLong_AsLongLong(PyTuple_GET_ITEM(entry, 1));
    return storage_id >= core->first_id ? storage_id : 0;
}

static int remember_storage(Core *core, PyObject *key, PyObject *owner, PyObject *storage_id)
{
    PyObject *reference = PyWeakref_NewRef(owner, NULL);
    PyObject *entry = reference == NULL ? NULL : PyTuple_Pack(2, reference, storage_id);
    int result = entry == NULL ? -1 : PyDict_SetItem(core->storage_at, key, entry);
    Py_XDECREF(reference);
    Py_XDECREF(entry);
    return result;
}

static int add_storage(Core *core, PyObject *tensor_id, PyObject *storage_id, PyObject *address)
{
    return PyList_Append(core->storages, tensor_id) < 0 || PyList_Append(core->storages, storage_id) < 0
                   || PyList_Append(core->storages, address) < 0
               ? -1
               : 0;
}

/* Give an id to a tensor with memory that has none in this recording. */
static int64_t assign_id(Core *core, PyObject *tensor, PyArrayObject *array)
{
    PyObject *owner = Py_NewRef((PyObject *)owner_of(array));
    int64_t tensor_id = next_id(now_ns());
    int64_t silent = core->memory ? 0 : silent_id((PyArrayObject *)owner, core->first_id, tensor_id);
    int64_t storage_id = silent != 0 ? silent : allocation_of(array);
    PyObject *number = PyLong_FromLongLong(tensor_id), *of_storage = NULL, *zero = PyLong_FromLong(0);
    PyObject *key = PyLong_FromVoidPtr(owner), *address = NULL; /* the owner's id() */
    int result = -1;
    if (number == NULL || zero == NULL || key == NULL || storage_id < 0)
        goto done;
    if (storage_id < core->first_id)
        storage_id = known_storage(core, key, owner);
    if (storage_id < 0 || PyObject_SetAttr(tensor, field_tensor_id.name, number) < 0)
        goto done;
    if (storage_id == tensor_id) { /* silently watched from now on */
        address = PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)owner));
        if (address != NULL)
            result = add_storage(core, number, number, address);
    } else if (storage_id != 0) {
        of_storage = PyLong_FromLongLong(storage_id);
        if (of_storage != NULL)
            result = add_storage(core, number, of_storage, zero);
    } else if (remember_storage(core, key, owner, number) == 0) {
        address = PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)owner));
        if (address != NULL)
            result = add_storage(core, number, number, address);
    }
done:
    Py_DECREF(owner);
    Py_XDECREF(number);
    Py_XDECREF(of_storage);
    Py_XDECREF(zero);
    Py_XDECREF(key);
    Py_XDECREF(address);
    return result < 0 ? -1 : tensor_id;
}

/* The id of a tensor, a new one if it has none in this recording; 0 for anything else; -1: an error. */
int64_t id_of_tensor(Core *core, PyObject *value)
{
    if (!PyObject_TypeCheck(value, tensor_type))
        return 0;
    PyObject *known = get_field(value, &field_tensor_id);
    if (known == NULL)
        return -1;
    int64_t tensor_id = integer_value(known);
    Py_DECREF(known);
    if (tensor_id >= core->first_id)
        return tensor_id;
    if (tensor_id < 0) /* its memory was replaced, or an error */
        return PyErr_Occurred() ? -1 : ask_register(core, value);
    PyObject *array = get_field(value, &field_array);
    if (array == NULL)
        PyErr_Clear(); /* sparse, or a meta tensor */
    if (array == NULL || !PyArray_Check(array) || PyArray_NBYTES((PyArrayObject *)array) == 0)
        tensor_id = ask_register(core, value);
    else
        tensor_id = assign_id(core, value, (PyArrayObject *)array);
    Py_XDECREF(array);
    return tensor_id;
}
