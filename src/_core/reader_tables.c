/* The tables of the trace reader: rows of columns, which are handed to Python as NumPy arrays. */

#include "reader.h"

#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_reader_numpy
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include <string.h>

enum { FIRST_ROWS = 20480 }; /* rows for which there is room at first: FLUSH_ROWS, and the events of a usual slice */

typedef struct {
    const char *name;
    int type;
} column_kind;

typedef struct {
    const char *name;
    int column_count;
    column_kind columns[MOST_COLUMNS];
} table_kind;

#define EVENT_COLUMNS {"name", NPY_INT32}, {"thread", NPY_INT32}, {"start", NPY_INT64}, {"length", NPY_INT64}

static const table_kind TABLE_KINDS[TABLES] = {
    {"host", 15, {EVENT_COLUMNS, {"kind", NPY_INT8}, {"external", NPY_INT64}, {"sequence", NPY_INT64}, {"forward", NPY_INT64},
                  {"inputs", NPY_INT32}, {"stack", NPY_INT32}, {"extra", NPY_INT32}, {"flops", NPY_INT64},
                  {"correlation", NPY_INT64}, {"unfinished", NPY_BOOL}, {"synthetic", NPY_INT8}}},
    {"frames", 7, {EVENT_COLUMNS, {"own", NPY_INT64}, {"parent", NPY_INT64}, {"module", NPY_INT64}}},
    {"device", 10, {EVENT_COLUMNS, {"kind", NPY_INT8}, {"device", NPY_INT64}, {"stream", NPY_INT64}, {"external", NPY_INT64},
                    {"correlation", NPY_INT64}, {"extra", NPY_INT32}}},
    {"memory", 6, {{"thread", NPY_INT32}, {"start", NPY_INT64}, {"nbytes", NPY_INT64}, {"address", NPY_INT64},
                   {"total", NPY_INT64}, {"device", NPY_INT64}}},
};

static size_t item_size(int type)
{
    switch (type) {
    case NPY_INT64: return 8;
    case NPY_INT32: return 4;
    default: return 1;
    }
}

void table_free(table_t *table)
{
    for (int i = 0; i < MOST_COLUMNS; i++) {
        PyMem_Free(table->columns[i]);
        table->columns[i] = NULL;
    }
    table->count = table->capacity = 0;
}

int table_reserve(table_t *table, int which, size_t more)
{
    if (table->count + more <= table->capacity) {
        return 0;
    }
    size_t capacity = table->capacity ? table->capacity : FIRST_ROWS;
    while (capacity < table->count + more) {
        capacity *= 2;
    }
    const table_kind *kind = &TABLE_KINDS[which];
    for (int i = 0; i < kind->column_count; i++) {
        void *larger = PyMem_Realloc(table->columns[i], capacity * item_size(kind->columns[i].type));
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        table->columns[i] = larger;
    }
    table->capacity = capacity;
    return 0;
}

int table_flush(table_t *table, int which, PyObject *handler)
{
    const table_kind *kind = &TABLE_KINDS[which];
    if (table->count == 0) {
        return 0;
    }
    PyObject *columns = PyDict_New();
    if (columns == NULL) {
        return -1;
    }
    npy_intp count = (npy_intp)table->count;
    for (int i = 0; i < kind->column_count; i++) {
        PyObject *array = PyArray_SimpleNew(1, &count, kind->columns[i].type);
        if (array == NULL || PyDict_SetItemString(columns, kind->columns[i].name, array) < 0) {
            Py_XDECREF(array);
            Py_DECREF(columns);
            return -1;
        }
        memcpy(PyArray_DATA((PyArrayObject *)array), table->columns[i], table->count * item_size(kind->columns[i].type));
        Py_DECREF(array);
    }
    PyObject *done = PyObject_CallMethod(handler, "columns", "sOO", kind->name, columns, table->coarse ? Py_True : Py_False);
    Py_DECREF(columns);
    if (done == NULL) {
        return -1;
    }
    Py_DECREF(done);
    table->count = 0;
    table->coarse = 1;
    return 0;
}
