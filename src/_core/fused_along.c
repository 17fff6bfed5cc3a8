/* Fused loops along one dimension: running sums and extremes, reductions of rows, reversed rows, gather and scatter. */

#include "fused.h"

enum { SQUARES, PRODUCTS, LARGEST, SMALLEST, KINDS };

#define FAMILY "fused_along_kernels.h"
#include "fused_both_types.h"

typedef struct {
    npy_intp outer, length, inner;
} Blocks;

/* The blocks of an array along a dimension, a Python int; 0 if there is no such dimension. */
static int blocks_along(PyObject *array, PyObject *dim, Blocks *blocks)
{
    if (!PyLong_CheckExact(dim)) {
        return 0;
    }
    npy_intp axis = PyLong_AsSsize_t(dim);
    if (axis == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    if (axis < 0 || axis >= NDIM(array)) {
        return 0;
    }
    *blocks = (Blocks){1, DIM(array, axis), 1};
    for (int d = 0; d < NDIM(array); d++) {
        if (d < axis) {
            blocks->outer *= DIM(array, d);
        }
        else if (d > axis) {
            blocks->inner *= DIM(array, d);
        }
    }
    return 1;
}

/* accumulated(x, dim, multiplies): running sums or products along a dimension. */
static PyObject *fused_accumulated(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "accumulated")) {
        return NULL;
    }
    PyObject *x = args[0];
    Blocks at;
    int multiplies = PyObject_IsTrue(args[2]);
    if (multiplies < 0) {
        return NULL;
    }
    if (!is_real(x) || !blocks_along(x, args[1], &at)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(x);
    double *totals = malloc((size_t)at.inner * sizeof(double) + 1);
    if (out == NULL || totals == NULL) {
        Py_XDECREF(out);
        free(totals);
        return PyErr_NoMemory();
    }
    npy_intp n = SIZE(x);
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (n == 0) {
    }
    else if (TYPE(x) == NPY_FLOAT) {
        (multiplies ? running_products_float : running_sums_float)(from, to, totals, at.outer, at.length, at.inner);
    }
    else {
        (multiplies ? running_products_double : running_sums_double)(from, to, totals, at.outer, at.length, at.inner);
    }
    NPY_END_THREADS;
    free(totals);
    return out;
}

/* running_extremes(x, dim, largest) -> (values, places) along a dimension. */
static PyObject *fused_running_extremes(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "running_extremes")) {
        return NULL;
    }
    PyObject *x = args[0];
    Blocks at;
    int largest = PyObject_IsTrue(args[2]);
    if (largest < 0) {
        return NULL;
    }
    if (!is_real(x) || !blocks_along(x, args[1], &at) || SIZE(x) == 0) {
        Py_RETURN_NONE;
    }
    PyObject *values = empty_like(x);
    PyObject *places = values == NULL ? NULL : PyArray_SimpleNew(NDIM(x), PyArray_DIMS((PyArrayObject *)x), NPY_INT64);
    if (places == NULL) {
        Py_XDECREF(values);
        return NULL;
    }
    void *from = DATA(x), *to = DATA(values);
    npy_int64 *numbers = DATA(places);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(x));
    if (TYPE(x) == NPY_FLOAT) {
        running_extremes_float(from, to, numbers, largest ? 1.0f : -1.0f, at.outer, at.length, at.inner);
    }
    else {
        running_extremes_double(from, to, numbers, largest ? 1.0 : -1.0, at.outer, at.length, at.inner);
    }
    NPY_END_THREADS;
    return Py_BuildValue("(NN)", values, places);
}

/* reduced_rows(x, kind): sums of squares (0), products (1), largest (2) or smallest (3) numbers of the rows of a matrix. */
static PyObject *fused_reduced_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "reduced_rows")) {
        return NULL;
    }
    PyObject *x = args[0];
    if (!is_real(x) || NDIM(x) != 2 || DIM(x, 1) == 0 || !PyLong_CheckExact(args[1])) {
        Py_RETURN_NONE;
    }
    npy_intp kind = PyLong_AsSsize_t(args[1]), rows = DIM(x, 0), cols = DIM(x, 1), room = cols / LANE_STEPS + 2 * LANES;
    if (kind == -1 && PyErr_Occurred()) {
        PyErr_Clear();
    }
    if (kind < 0 || kind >= KINDS || room > longest_row) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(1, &rows, TYPE(x));
    void *lanes = malloc(room * PyArray_ITEMSIZE((PyArrayObject *)x));
    if (out == NULL || lanes == NULL) {
        Py_XDECREF(out);
        free(lanes);
        return PyErr_NoMemory();
    }
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        reduce_rows_float(from, to, lanes, (int)kind, rows, cols);
    }
    else {
        reduce_rows_double(from, to, lanes, (int)kind, rows, cols);
    }
    NPY_END_THREADS;
    free(lanes);
    return out;
}

/* ---------------------------------------------------------------------------------------------- elements that are moved */

/* Whether elements can be copied as integers of 1, 2, 4 or 8 bytes. */
static int is_movable(PyObject *array)
{
    if (!is_plain(array) || PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)array))) {
        return 0;
    }
    npy_intp size = PyArray_ITEMSIZE((PyArrayObject *)array);
    return size == 1 || size == 2 || size == 4 || size == 8;
}

static PyObject *empty_of(PyObject *like, PyObject *shape)
{
    PyArray_Descr *type = PyArray_DESCR((PyArrayObject *)like);
    Py_INCREF(type);
    return PyArray_NewFromDescr(&PyArray_Type, type, NDIM(shape), PyArray_DIMS((PyArrayObject *)shape), NULL, NULL, 0, NULL);
}

#define DEFINE_MOVES(type)                                                                              \
    CLONES static void reverse_##type(const type *x, type *out, npy_intp rows, npy_intp cols)           \
    {                                                                                                   \
        for (npy_intp i = 0; i < rows; i++, x += cols, out += cols) {                                   \
            INDEPENDENT                                                                                 \
            for (npy_intp j = 0; j < cols; j++) {                                                       \
                out[j] = x[cols - 1 - j];                                                               \
            }                                                                                           \
        }                                                                                               \
    }                                                                                                   \
    static void gather_##type(const type *x, const npy_int64 *index, type *out, Blocks x_at, npy_intp m) \
    {                                                                                                   \
        for (npy_intp o = 0; o < x_at.outer; o++, x += x_at.length * x_at.inner) {                      \
            for (npy_intp k = 0; k < m; k++, index += x_at.inner, out += x_at.inner) {                  \
                for (npy_intp j = 0; j < x_at.inner; j++) {                                             \
                    out[j] = x[index[j] * x_at.inner + j];                                              \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }                                                                                                   \
    static void scatter_##type(type *out, const npy_int64 *index, const type *src, Blocks at, npy_intp m) \
    {                                                                                                   \
        for (npy_intp o = 0; o < at.outer; o++, out += at.length * at.inner) {                          \
            for (npy_intp k = 0; k < m; k++, index += at.inner, src += at.inner) {                      \
                for (npy_intp j = 0; j < at.inner; j++) {                                               \
                    out[index[j] * at.inner + j] = src[j];                                              \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }

DEFINE_MOVES(npy_uint8)
DEFINE_MOVES(npy_uint16)
DEFINE_MOVES(npy_uint32)
DEFINE_MOVES(npy_uint64)

#define DEFINE_SCATTER_ADD(type)                                                                        \
    static void scatter_add_##type(type *out, const npy_int64 *index, const type *src, Blocks at, npy_intp m) \
    {                                                                                                   \
        for (npy_intp o = 0; o < at.outer; o++, out += at.length * at.inner) {                          \
            for (npy_intp k = 0; k < m; k++, index += at.inner, src += at.inner) {                      \
                for (npy_intp j = 0; j < at.inner; j++) {                                               \
                    out[index[j] * at.inner + j] += src[j];                                             \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }

DEFINE_SCATTER_ADD(float)
DEFINE_SCATTER_ADD(double)

/* BY_SIZE(size, loop, arguments): the loop for elements of this size. */
#define BY_SIZE(size, loop, ...)                                                                        \
    do {                                                                                                \
        if ((size) == 1) {                                                                              \
            loop##_npy_uint8(__VA_ARGS__);                                                              \
        }                                                                                               \
        else if ((size) == 2) {                                                                         \
            loop##_npy_uint16(__VA_ARGS__);                                                             \
        }                                                                                               \
        else if ((size) == 4) {                                                                         \
            loop##_npy_uint32(__VA_ARGS__);                                                             \
        }                                                                                               \
        else {                                                                                          \
            loop##_npy_uint64(__VA_ARGS__);                                                             \
        }                                                                                               \
    } while (0)

/* reversed_rows(x): a copy with the order along the last dimension reversed. */
static PyObject *fused_reversed_rows(PyObject *module, PyObject *x)
{
    (void)module;
    if (!is_movable(x) || NDIM(x) < 1 || SIZE(x) == 0) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_of(x, x);
    if (out == NULL) {
        return NULL;
    }
    npy_intp cols = DIM(x, NDIM(x) - 1), rows = SIZE(x) / cols;
    const void *from = DATA(x);
    void *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    BY_SIZE(PyArray_ITEMSIZE((PyArrayObject *)x), reverse, from, to, rows, cols);
    NPY_END_THREADS;
    return out;
}

/* Whether an array of int64 has the shape of `array` but along one dimension, and all its elements are places there. */
static int are_places(PyObject *index, PyObject *array, PyObject *dim, Blocks *at)
{
    if (!is_plain(index) || TYPE(index) != NPY_INT64 || NDIM(index) != NDIM(array) || !blocks_along(array, dim, at)) {
        return 0;
    }
    npy_intp axis = PyLong_AsSsize_t(dim);
    for (int d = 0; d < NDIM(array); d++) {
        if (d != axis && DIM(index, d) != DIM(array, d)) {
            return 0;
        }
    }
    return are_inside(DATA(index), SIZE(index), at->length);
}

/* gathered(x, index, dim): x[..., index[i, k, j], j] along a dimension; None if an index is outside. */
static PyObject *fused_gathered(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "gathered")) {
        return NULL;
    }
    PyObject *x = args[0], *index = args[1];
    Blocks at;
    if (!is_movable(x) || !are_places(index, x, args[2], &at)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_of(x, index);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = SIZE(index), m = n == 0 ? 0 : n / at.outer / at.inner;
    const void *from = DATA(x);
    const npy_int64 *places = DATA(index);
    void *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    BY_SIZE(PyArray_ITEMSIZE((PyArrayObject *)x), gather, from, places, to, at, m);
    NPY_END_THREADS;
    return out;
}

/* scattered(out, index, src, dim, adds): src is written to, or added to, the places of `out` along a dimension, one after another. */
static PyObject *fused_scattered(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 5, "scattered")) {
        return NULL;
    }
    PyObject *out = args[0], *index = args[1], *src = args[2];
    Blocks at;
    int adds = PyObject_IsTrue(args[4]);
    if (adds < 0) {
        return NULL;
    }
    if (!is_movable(out) || !is_writeable(out) || !is_movable(src) || (adds && !is_real(out)) ||
        !PyArray_EquivTypes(PyArray_DESCR((PyArrayObject *)out), PyArray_DESCR((PyArrayObject *)src)) ||
        !are_places(index, out, args[3], &at) || !PyArray_SAMESHAPE((PyArrayObject *)src, (PyArrayObject *)index) ||
        shares(out, src) || shares(out, index)) {
        Py_RETURN_NONE;
    }
    npy_intp n = SIZE(index), m = n == 0 ? 0 : n / at.outer / at.inner;
    void *to = DATA(out);
    const void *from = DATA(src);
    const npy_int64 *places = DATA(index);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (!adds) {
        BY_SIZE(PyArray_ITEMSIZE((PyArrayObject *)out), scatter, to, places, from, at, m);
    }
    else if (TYPE(out) == NPY_FLOAT) {
        scatter_add_float(to, places, from, at, m);
    }
    else {
        scatter_add_double(to, places, from, at, m);
    }
    NPY_END_THREADS;
    return Py_NewRef(out);
}

PyMethodDef along_functions[] = {
    FAST(accumulated),
    FAST(running_extremes),
    FAST(reduced_rows),
    {"reversed_rows", fused_reversed_rows, METH_O, NULL},
    FAST(gathered),
    FAST(scattered),
    {NULL, NULL, 0, NULL},
};
