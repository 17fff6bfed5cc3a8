/* What the files of mindtorch_v2._ops._fused share: NumPy's inner loops, compiler settings, and checks of arguments. */

#ifndef MINDTORCH_FUSED_H
#define MINDTORCH_FUSED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_fused_numpy
#define PY_UFUNC_UNIQUE_SYMBOL mindtorch_fused_ufuncs
#ifndef IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

/* Loops are compiled for wider vectors too; which ones run is decided when the module is loaded. Needs ifuncs, that is glibc. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

/* The iterations of the next loop do not depend on each other: an output is an input itself, or does not overlap it. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* ---------------------------------------------------------------------------------------------- NumPy's inner loops */

typedef struct {
    PyUFuncGenericFunction function;
    void *data;
} Loop;

/* Written once, when the module is loaded. */
extern Loop add_f32, multiply_f32, maximum_f32, minimum_f32, exp_f32, log_f32, tanh_f32, matmul_f32;
extern Loop add_f64, multiply_f64, maximum_f64, minimum_f64, exp_f64, log_f64, matmul_f64, log1p_f64, cos_f64, sin_f64;

/* Rows up to this length are summed by one call of the inner loop: before NumPy 2.3 its reductions cut longer ones into buffers. */
extern npy_intp longest_row;

/* Rows are reduced in so many lanes, so many steps at a time: those of _ops/_lanes.py. */
#define LANES 64
#define LANE_STEPS 128

/* A loop with one input over n contiguous numbers. */
static inline void apply(const Loop *loop, const void *in, void *out, npy_intp n, npy_intp size)
{
    char *pointers[2] = {(char *)in, (char *)out};
    npy_intp steps[2] = {size, size};
    loop->function(pointers, &n, steps, loop->data);
}

/* Numbers are worked on in blocks of about this many, which stay in the first-level cache. */
#define BLOCK 4096

/* ---------------------------------------------------------------------------------------------- arguments */

#define DATA(array) PyArray_DATA((PyArrayObject *)(array))
#define TYPE(array) PyArray_TYPE((PyArrayObject *)(array))
#define SIZE(array) PyArray_SIZE((PyArrayObject *)(array))
#define NDIM(array) PyArray_NDIM((PyArrayObject *)(array))
#define DIM(array, axis) PyArray_DIM((PyArrayObject *)(array), axis)

static inline int takes(Py_ssize_t given, Py_ssize_t expected, const char *name)
{
    if (given != expected) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", name, expected, given);
        return 0;
    }
    return 1;
}

/* A plain array, contiguous, aligned, in native byte order. */
static inline int is_plain(PyObject *object)
{
    return PyArray_CheckExact(object) && PyArray_ISCARRAY_RO((PyArrayObject *)object);
}

/* A plain array of float32 or float64. */
static inline int is_real(PyObject *object)
{
    return is_plain(object) && (TYPE(object) == NPY_FLOAT || TYPE(object) == NPY_DOUBLE);
}

static inline int is_like(PyObject *object, PyObject *other)
{
    return is_plain(object) && TYPE(object) == TYPE(other) &&
           PyArray_SAMESHAPE((PyArrayObject *)object, (PyArrayObject *)other);
}

/* A plain array of this type with this many elements. */
static inline int has(PyObject *object, int type, npy_intp size)
{
    return is_plain(object) && TYPE(object) == type && SIZE(object) == size;
}

static inline int is_writeable(PyObject *object)
{
    return PyArray_ISWRITEABLE((PyArrayObject *)object);
}

/* Whether two contiguous arrays share memory without being the same memory. */
static inline int overlaps(PyObject *a, PyObject *b)
{
    const char *start = DATA(a), *other = DATA(b);
    return start != other && start < other + PyArray_NBYTES((PyArrayObject *)b) &&
           other < start + PyArray_NBYTES((PyArrayObject *)a);
}

/* Whether two contiguous arrays share memory at all. */
static inline int shares(PyObject *a, PyObject *b)
{
    return DATA(a) == DATA(b) || overlaps(a, b);
}

static inline PyObject *empty_like(PyObject *array)
{
    return PyArray_SimpleNew(NDIM(array), PyArray_DIMS((PyArrayObject *)array), TYPE(array));
}

/* A Python int or float into *number; 0 for anything else. */
static inline int is_number(PyObject *object, double *number)
{
    if (PyFloat_CheckExact(object)) {
        *number = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    if (PyLong_CheckExact(object)) {
        *number = PyLong_AsDouble(object);
        if (*number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear(); /* too large: NumPy decides */
            return 0;
        }
        return 1;
    }
    return 0;
}

/* `out`, or a new array like `self` if it is None; NULL with no error set if the loop must not write there. */
static inline PyObject *output_for(PyObject *out, PyObject *self, PyObject *const *inputs, Py_ssize_t count)
{
    if (out == Py_None) {
        return empty_like(self);
    }
    if (!is_like(out, self) || !is_writeable(out)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (overlaps(out, inputs[i])) {
            return NULL;
        }
    }
    return Py_NewRef(out);
}

static inline PyObject *none_unless_error(void)
{
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Whether all of n places are from 0 to below the limit. */
static inline int are_inside(const npy_int64 *places, npy_intp n, npy_intp limit)
{
    for (npy_intp i = 0; i < n; i++) {
        if (places[i] < 0 || places[i] >= limit) {
            return 0;
        }
    }
    return 1;
}

/* None as NULL; 0 unless it is None or a plain array of this type and size. */
static inline int optional(PyObject *object, int type, npy_intp size, void **data)
{
    *data = NULL;
    if (object == Py_None) {
        return 1;
    }
    if (!has(object, type, size)) {
        return 0;
    }
    *data = DATA(object);
    return 1;
}

/* Memory for a number of elements of a type; NULL with an error set. */
static inline void *scratch_for(npy_intp elements, int type)
{
    void *scratch = malloc((size_t)elements * (type == NPY_FLOAT ? sizeof(float) : sizeof(double)) + 1);
    if (scratch == NULL) {
        PyErr_NoMemory();
    }
    return scratch;
}

/* ---------------------------------------------------------------------------------------------- functions by family */

#define FAST(name) {#name, (PyCFunction)(void (*)(void))fused_##name, METH_FASTCALL, NULL}

extern PyMethodDef pointwise_functions[], row_functions[], product_functions[], random_functions[], window_functions[],
    grid_functions[], map_functions[], along_functions[];

void compare_short_sums(void); /* once NumPy's loops are found */

#endif
