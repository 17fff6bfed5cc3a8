/* The two loops of longest paths. analysis/longest_path.py holds the Python twins and says what the columns are. */

#include "int64_columns.h"

static PyObject *index_error(Columns *columns)
{
    release(columns);
    PyErr_SetString(PyExc_IndexError, "a number of a node that does not exist");
    return NULL;
}

/* relax(head, tail, length, value): edges in the order of the nodes they lead to; `value` is raised to the longest length. */
static PyObject *relax(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "relax takes 4 columns, not %zd", count);
    Columns taken;
    if (take(&taken, arguments, 4, 1) < 0)
        return NULL;
    const int64_t *head = taken.columns[0], *tail = taken.columns[1], *length = taken.columns[2];
    int64_t *value = taken.columns[3];
    uint64_t nodes = (uint64_t)taken.lengths[3];
    if (taken.lengths[1] != taken.lengths[0] || taken.lengths[2] != taken.lengths[0])
        return index_error(&taken);
    for (Py_ssize_t i = 0; i < taken.lengths[0]; i++) {
        if ((uint64_t)head[i] >= nodes || (uint64_t)tail[i] >= nodes)
            return index_error(&taken);
        int64_t sum = value[tail[i]] + length[i];
        if (sum > value[head[i]])
            value[head[i]] = sum;
    }
    release(&taken);
    Py_RETURN_NONE;
}

/* walk(end, join, edge, tail, crossings, ends): the parts of a path, last first; gives how many there are. */
static PyObject *walk(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 6)
        return PyErr_Format(PyExc_TypeError, "walk takes a node and 5 columns, not %zd arguments", count);
    long long node = PyLong_AsLongLong(arguments[0]);
    if (node == -1 && PyErr_Occurred())
        return NULL;
    Columns taken;
    if (take(&taken, arguments + 1, 5, 2) < 0)
        return NULL;
    const int64_t *join_of = taken.columns[0], *edge_of = taken.columns[1], *tail_of = taken.columns[2];
    int64_t *crossings = taken.columns[3], *ends = taken.columns[4];
    Py_ssize_t nodes = taken.lengths[0];
    for (int i = 1; i < 5; i++)
        if (taken.lengths[i] != nodes)
            return index_error(&taken);
    Py_ssize_t parts = 0;
    for (;;) {
        if (parts >= nodes || node < 0 || node >= nodes)
            return index_error(&taken);
        int64_t join = join_of[node];
        if (join < 0 || join >= nodes)
            return index_error(&taken);
        ends[parts] = node;
        crossings[parts++] = join;
        if (edge_of[join] < 0)
            break;
        node = tail_of[join];
    }
    release(&taken);
    return PyLong_FromSsize_t(parts);
}

static PyMethodDef methods[] = {
    {"relax", (PyCFunction)(void (*)(void))relax, METH_FASTCALL, "Raise the values of nodes to the longest length of their edges."},
    {"walk", (PyCFunction)(void (*)(void))walk, METH_FASTCALL, "The parts of a path, last first."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_longest_path", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__longest_path(void)
{
    return PyModule_Create(&definition);
}
