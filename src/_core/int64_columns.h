/* Columns of 64-bit integers that Python code hands to a loop, by the buffer protocol. */

#ifndef INT64_COLUMNS_H
#define INT64_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { MOST_COLUMNS = 5 };

typedef struct {
    Py_buffer buffers[MOST_COLUMNS];
    int64_t *columns[MOST_COLUMNS];
    Py_ssize_t lengths[MOST_COLUMNS];
    int count;
} Columns;

static void release(Columns *self)
{
    while (self->count > 0)
        PyBuffer_Release(&self->buffers[--self->count]);
}

/* Take contiguous columns of 64-bit integers; the last `n_written` of them must be writable. */
static int take(Columns *self, PyObject *const *arguments, int count, int n_written)
{
    self->count = 0;
    for (int i = 0; i < count; i++) {
        int flags = i < count - n_written ? PyBUF_ND : PyBUF_ND | PyBUF_WRITABLE;
        if (PyObject_GetBuffer(arguments[i], &self->buffers[i], flags) < 0) {
            release(self);
            return -1;
        }
        self->count = i + 1;
        if (self->buffers[i].itemsize != (Py_ssize_t)sizeof(int64_t)) {
            PyErr_SetString(PyExc_TypeError, "columns of 64-bit integers are needed");
            release(self);
            return -1;
        }
        self->columns[i] = self->buffers[i].buf;
        self->lengths[i] = self->buffers[i].len / (Py_ssize_t)sizeof(int64_t);
    }
    return 0;
}

#endif
