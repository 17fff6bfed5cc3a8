/* Loops over the events of a tree, in which a parent stands before its children. tree.py holds the NumPy twins. */

#include "int64_columns.h"

/* parents(depth, parent): the last earlier row one level up, -1: none. False: these are no depths of a tree. */
static PyObject *parents(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "parents takes 2 columns, not %zd", count);
    Columns taken;
    if (take(&taken, arguments, 2, 1) < 0)
        return NULL;
    const int64_t *depth = taken.columns[0];
    int64_t *parent = taken.columns[1];
    Py_ssize_t rows = taken.lengths[0];
    int fits = taken.lengths[1] == rows;
    for (Py_ssize_t row = 0; fits && row < rows; row++) {
        if (depth[row] <= 0) {
            fits = depth[row] == 0;
            parent[row] = -1;
            continue;
        }
        int64_t above = row - 1; /* from the row before, up to the one whose child this is */
        while (above >= 0 && depth[above] >= depth[row])
            above = parent[above];
        fits = above >= 0 && depth[above] == depth[row] - 1;
        parent[row] = above;
    }
    release(&taken);
    return PyBool_FromLong(fits);
}

/* nearest(parent, stop, ancestor): the row itself or the nearest above it that stops. False: a parent does not stand before its child. */
static PyObject *nearest(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "nearest takes 3 columns, not %zd", count);
    Py_buffer stop;
    if (PyObject_GetBuffer(arguments[1], &stop, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *const columns[] = {arguments[0], arguments[2]};
    Columns taken;
    if (take(&taken, columns, 2, 1) < 0) {
        PyBuffer_Release(&stop);
        return NULL;
    }
    const int64_t *parent = taken.columns[0];
    const char *stops = stop.buf;
    int64_t *ancestor = taken.columns[1];
    Py_ssize_t rows = taken.lengths[0];
    int fits = taken.lengths[1] == rows && stop.len == rows;
    for (Py_ssize_t row = 0; fits && row < rows; row++) {
        fits = parent[row] < row;
        if (stops[row])
            ancestor[row] = row;
        else if (fits)
            ancestor[row] = parent[row] < 0 ? -1 : ancestor[parent[row]];
    }
    release(&taken);
    PyBuffer_Release(&stop);
    return PyBool_FromLong(fits);
}

/* last_reaching(start, end, above): the last earlier event that ends with a row or later, -1: none. Gives whether events cross. */
static PyObject *last_reaching(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "last_reaching takes 3 columns, not %zd", count);
    Columns taken;
    if (take(&taken, arguments, 3, 1) < 0)
        return NULL;
    const int64_t *start = taken.columns[0], *end = taken.columns[1];
    int64_t *above = taken.columns[2];
    Py_ssize_t rows = taken.lengths[0];
    if (taken.lengths[1] != rows || taken.lengths[2] != rows) {
        release(&taken);
        PyErr_SetString(PyExc_IndexError, "columns of one length are needed");
        return NULL;
    }
    int crosses = 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        int64_t before = row - 1;
        while (before >= 0 && end[before] < end[row]) {
            crosses |= end[before] > start[row];
            before = above[before];
        }
        above[row] = before;
    }
    release(&taken);
    return PyBool_FromLong(crosses);
}

static PyMethodDef methods[] = {
    {"parents", (PyCFunction)(void (*)(void))parents, METH_FASTCALL, "The parents of rows, from depths."},
    {"nearest", (PyCFunction)(void (*)(void))nearest, METH_FASTCALL, "The nearest row, itself or above, that stops."},
    {"last_reaching", (PyCFunction)(void (*)(void))last_reaching, METH_FASTCALL, "The last earlier event that ends as late."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_tree", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__tree(void)
{
    return PyModule_Create(&definition);
}
