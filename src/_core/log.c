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

/* Large chunks are mapped: freed ones go back to the system at once, while the rows are being sealed. */
#ifdef __linux__
#include <sys/mman.h>

static bool is_mapped(size_t capacity)
{
    return capacity >= LARGEST_CHUNK;
}

static Chunk *allocate_chunk(size_t capacity)
{
    size_t size = sizeof(Chunk) + capacity * sizeof(int64_t);
    if (!is_mapped(capacity))
        return PyMem_RawMalloc(size);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void free_chunk(Chunk *chunk)
{
    if (is_mapped(chunk->capacity))
        munmap(chunk, sizeof(Chunk) + chunk->capacity * sizeof(int64_t));
    else
        PyMem_RawFree(chunk);
}
#else
static Chunk *allocate_chunk(size_t capacity)
{
    return PyMem_RawMalloc(sizeof(Chunk) + capacity * sizeof(int64_t));
}

static void free_chunk(Chunk *chunk)
{
    PyMem_RawFree(chunk);
}
#endif

int64_t *log_grow(Log *log, size_t count)
{
    size_t capacity = log->last == NULL ? FIRST_CHUNK : log->last->capacity * 2;
    if (capacity > LARGEST_CHUNK)
        capacity = LARGEST_CHUNK;
    if (capacity < count)
        capacity = count;
    Chunk *chunk = allocate_chunk(capacity);
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

/* How many integers there are that were not taken. */
size_t log_size(const Log *log)
{
    size_t size = 0;
    for (const Chunk *chunk = log->first; chunk != NULL; chunk = chunk->next)
        size += chunk->used;
    return size;
}

void log_free(Log *log)
{
    while (log->first != NULL) {
        Chunk *next = log->first->next;
        free_chunk(log->first);
        log->first = next;
    }
    log->last = NULL;
    log->total = 0;
}

static void free_taken(PyObject *capsule)
{
    free_chunk(PyCapsule_GetPointer(capsule, NULL));
}

/* The integers of a chunk that is full to a good part, where they are: the array owns the chunk. */
static PyObject *chunk_as_array(Chunk *chunk)
{
    npy_intp size = (npy_intp)chunk->used;
    PyObject *array = PyArray_SimpleNewFromData(1, &size, NPY_INT64, chunk->items);
    if (array == NULL)
        return NULL;
    PyObject *capsule = PyCapsule_New(chunk, NULL, NULL);
    if (capsule == NULL || PyArray_SetBaseObject((PyArrayObject *)array, capsule) < 0) { /* which takes the capsule, also if it fails */
        Py_DECREF(array);
        return NULL;
    }
    PyCapsule_SetDestructor(capsule, free_taken); /* from here on the array frees the chunk */
    return array;
}

static PyObject *chunk_as_copy(Chunk *chunk)
{
    npy_intp size = (npy_intp)chunk->used;
    PyObject *array = PyArray_SimpleNew(1, &size, NPY_INT64);
    if (array != NULL)
        memcpy(PyArray_DATA((PyArrayObject *)array), chunk->items, chunk->used * sizeof(int64_t));
    return array;
}

/* Append the chunks, as arrays, to a list, and begin anew; `total` goes on. Needs no memory worth mentioning: chunks are handed over as
   they are, except those that are nearly empty. After an error the log has what the list has not. */
int log_take(Log *log, PyObject *list)
{
    while (log->first != NULL) {
        /* off the log first: creating objects may run finalizers, and those ops, which add to the log */
        Chunk *chunk = log->first;
        log->first = chunk->next;
        if (log->first == NULL)
            log->last = NULL;
        bool is_copied = chunk->used * 2 < chunk->capacity;
        PyObject *array = is_copied ? chunk_as_copy(chunk) : chunk_as_array(chunk);
        if (array == NULL) {
            chunk->next = log->first;
            log->first = chunk;
            if (log->last == NULL)
                log->last = chunk;
            return -1;
        }
        if (is_copied)
            free_chunk(chunk);
        int result = PyList_Append(list, array);
        Py_DECREF(array);
        if (result < 0)
            return -1;
    }
    return 0;
}
