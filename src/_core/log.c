/* Growing rows of integers. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_recorder_numpy
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

#include "recorder.h"
#include <string.h>

enum { FIRST_CHUNK = 1 << 10, LARGEST_CHUNK = 1 << 17 }; /* integers: 8 KB to 1 MB */

int64_t *log_grow(Log *log, size_t count)
{
    size_t capacity = log->last == NULL ? FIRST_CHUNK : log->last->capacity * 2;
    if (capacity > LARGEST_CHUNK)
        capacity = LARGEST_CHUNK;
    if (capacity < count)
        capacity = count;
    Chunk *chunk = PyMem_RawMalloc(sizeof(Chunk) + capacity * sizeof(int64_t));
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->used = count;
    chunk->capacity = capacity;
    if (log->last == NULL)
        log->first = chunk;
    else
        log->last->next = chunk;
    log->last = chunk;
    log->total += count;
    return chunk->items;
}

static void free_chunks(Log *log)
{
    while (log->first != NULL) {
        Chunk *next = log->first->next;
        PyMem_RawFree(log->first);
        log->first = next;
    }
    log->last = NULL;
}

void log_free(Log *log)
{
    free_chunks(log);
    Py_CLEAR(log->sealed);
    log->total = 0;
}

/* All rows as an array. Chunks are freed as they are copied: the rows exist twice only in part. */
PyObject *log_array(Log *log, Py_ssize_t width)
{
    npy_intp shape[2] = {(npy_intp)(log->total / (size_t)width), width};
    if (log->first == NULL && log->sealed != NULL)
        return Py_NewRef(log->sealed);
    PyObject *array = PyArray_SimpleNew(width == 1 ? 1 : 2, shape, NPY_INT64);
    if (array == NULL)
        return NULL;
    int64_t *items = PyArray_DATA((PyArrayObject *)array);
    if (log->sealed != NULL) {
        size_t size = (size_t)PyArray_NBYTES((PyArrayObject *)log->sealed);
        memcpy(items, PyArray_DATA((PyArrayObject *)log->sealed), size);
        items += size / sizeof(int64_t);
    }
    while (log->first != NULL) {
        Chunk *chunk = log->first;
        memcpy(items, chunk->items, chunk->used * sizeof(int64_t));
        items += chunk->used;
        log->first = chunk->next;
        PyMem_RawFree(chunk);
    }
    log->last = NULL;
    Py_XSETREF(log->sealed, Py_NewRef(array));
    return array;
}
