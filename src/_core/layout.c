/* Where the elements of arrays lie: the layout of a pointwise result, which is the order of its operands' dimensions in memory as torch's
 * TensorIterator chooses it; copies between layouts; addresses. The twins are in _ops/_layout.py and _tensor_slots.py. */

#include "layout.h"

#include <stdbool.h>

#include <numpy/arrayobject.h>

#define MOST_DIMS 64 /* NumPy's own limit */
#define MOST_OPERANDS 4

typedef struct {
    int ndim, count;
    int same_shape; /* no operand is broadcast */
    const npy_intp *shape;
    npy_intp strides[MOST_OPERANDS][MOST_DIMS]; /* in bytes, 0 where an operand is broadcast */
    npy_intp sizes[MOST_OPERANDS];              /* of an element */
} Operands;

/* Whether dimension a, which is inside of b, has to go outside of it: 1 yes, -1 no, 0 if no operand tells. */
static int compare(const Operands *operands, int a, int b)
{
    for (int i = 0; i < operands->count; i++) {
        npy_intp first = operands->strides[i][a], second = operands->strides[i][b];
        if (first == 0 || second == 0) {
            continue;
        }
        if (first != second) {
            return first > second ? 1 : -1;
        }
        if (operands->shape[a] > operands->shape[b]) {
            return 1;
        }
    }
    return 0;
}

/* The steps of dense memory, in elements, whose dimensions lie from inside to outside as `order` says. */
static void dense_steps(const npy_intp *shape, int ndim, const int *order, npy_intp *steps)
{
    npy_intp step = 1;
    for (int i = 0; i < ndim; i++) {
        steps[order[i]] = step;
        step *= shape[order[i]];
    }
}

static int has_steps(const Operands *operands, int operand, const npy_intp *steps)
{
    for (int d = 0; d < operands->ndim; d++) {
        if (operands->shape[d] != 1 && operands->strides[operand][d] != steps[d] * operands->sizes[operand]) {
            return 0;
        }
    }
    return 1;
}

/* Whether all operands have one and the same strides, which fill their memory without gaps or repeats. */
static int are_dense_alike(const Operands *operands, npy_intp *steps)
{
    int order[MOST_DIMS], ndim = operands->ndim;
    for (int d = 0; d < ndim; d++) {
        steps[d] = operands->strides[0][d] / operands->sizes[0];
        int place = d;
        for (; place > 0 && steps[order[place - 1]] > steps[d]; place--) {
            order[place] = order[place - 1];
        }
        order[place] = d;
    }
    npy_intp expected = 1;
    for (int i = 0; i < ndim; i++) {
        npy_intp length = operands->shape[order[i]];
        if (length != 1) {
            if (steps[order[i]] != expected) {
                return 0;
            }
            expected *= length;
        }
    }
    for (int i = 1; i < operands->count; i++) {
        for (int d = 0; d < ndim; d++) {
            if (operands->strides[i][d] != steps[d] * operands->sizes[i]) {
                return 0;
            }
        }
    }
    return 1;
}

static void find_steps(const Operands *operands, npy_intp *steps)
{
    static const int channels_last[4] = {1, 3, 2, 0};
    int order[MOST_DIMS], ndim = operands->ndim;
    if (operands->same_shape) {
        if (ndim == 4) {
            int all = 1;
            dense_steps(operands->shape, ndim, channels_last, steps);
            for (int i = 0; i < operands->count; i++) {
                all = all && has_steps(operands, i, steps);
            }
            if (all) {
                return;
            }
        }
        if (are_dense_alike(operands, steps)) {
            return;
        }
    }
    for (int i = 0; i < ndim; i++) {
        order[i] = ndim - 1 - i;
        int place = i;
        for (int j = i - 1; j >= 0; j--) {
            int swap = compare(operands, order[j], order[place]);
            if (swap < 0) {
                break;
            }
            if (swap > 0) {
                int outer = order[place];
                order[place] = order[j];
                order[j] = outer;
                place = j;
            }
        }
    }
    dense_steps(operands->shape, ndim, order, steps);
}

/* The operands of a result that are arrays; 0 if one does not broadcast to it. */
static int read_operands(PyArrayObject *result, PyObject *const *args, Py_ssize_t count, Operands *operands)
{
    operands->ndim = PyArray_NDIM(result);
    operands->shape = PyArray_DIMS(result);
    operands->same_shape = 1;
    operands->count = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (!PyArray_Check(args[k])) {
            operands->same_shape = 0; /* a number: a tensor without dimensions */
            continue;
        }
        PyArrayObject *array = (PyArrayObject *)args[k];
        int ndim = PyArray_NDIM(array), i = operands->count++, skipped = operands->ndim - ndim;
        if (skipped < 0) {
            return 0;
        }
        operands->sizes[i] = PyArray_ITEMSIZE(array);
        operands->same_shape = operands->same_shape && skipped == 0;
        for (int d = 0; d < operands->ndim; d++) {
            npy_intp length = d < skipped ? 1 : PyArray_DIM(array, d - skipped);
            if (length != operands->shape[d]) {
                if (length != 1) {
                    return 0;
                }
                operands->same_shape = 0;
                operands->strides[i][d] = 0;
            }
            else {
                operands->strides[i][d] = d < skipped ? 0 : PyArray_STRIDE(array, d - skipped);
            }
        }
    }
    return operands->count > 0;
}

/* ---------------------------------------------------------------------------------------------- copies across */

#define LARGE (1 << 15) /* bytes; below it, NumPy's loops are as fast */
#define TILE 16          /* elements along either side of a part that is copied at once: a cache line of float32 */

/* The dimension of an array whose neighbours are closest in memory; -1 if it has no two elements, or repeats some. */
static int innermost(PyArrayObject *array)
{
    int best = -1;
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        npy_intp step = PyArray_STRIDE(array, d);
        if (PyArray_DIM(array, d) == 1) {
            continue;
        }
        if (step <= 0) {
            return -1;
        }
        if (best < 0 || step < PyArray_STRIDE(array, best)) {
            best = d;
        }
    }
    return best;
}

/* Whether two arrays of one shape and many elements have different innermost dimensions, so that one pass cannot follow both memories. */
static bool cross(PyArrayObject *a, PyArrayObject *b)
{
    if (PyArray_NDIM(a) < 2 || PyArray_NBYTES(a) < LARGE || !PyArray_SAMESHAPE(a, b)) {
        return false;
    }
    int first = innermost(a), second = innermost(b);
    return first >= 0 && second >= 0 && first != second;
}

/* Through a buffer: lines of memory whose distance is a power of two share few places in the cache, so each is read and written once. */
#define COPY_PLANE(type)                                                                                                          \
    static inline __attribute__((always_inline)) void copy_tile_##type(char *to, const char *from, npy_intp n, npy_intp m, npy_intp to_step, npy_intp from_step)        \
    {                                                                                                                             \
        type buffer[TILE][TILE];                                                                                                  \
        for (npy_intp j = 0; j < m; j++) {                                                                                        \
            const type *line = (const type *)(from + j * from_step);                                                              \
            for (npy_intp i = 0; i < n; i++) {                                                                                    \
                buffer[i][j] = line[i];                                                                                           \
            }                                                                                                                     \
        }                                                                                                                         \
        for (npy_intp i = 0; i < n; i++) {                                                                                        \
            memcpy(to + i * to_step, buffer[i], (size_t)m * sizeof(type));                                                        \
        }                                                                                                                         \
    }                                                                                                                             \
    static void copy_plane_##type(char *to, const char *from, npy_intp n, npy_intp m, npy_intp to_step, npy_intp from_step)       \
    {                                                                                                                             \
        const npy_intp size = sizeof(type);                                                                                       \
        for (npy_intp i = 0; i < n; i += TILE) {                                                                                  \
            for (npy_intp j = 0; j < m; j += TILE) {                                                                              \
                char *target = to + i * to_step + j * size;                                                                       \
                const char *source = from + j * from_step + i * size;                                                             \
                if (i + TILE <= n && j + TILE <= m) { /* a known number of steps */                                               \
                    copy_tile_##type(target, source, TILE, TILE, to_step, from_step);                                             \
                }                                                                                                                 \
                else {                                                                                                            \
                    copy_tile_##type(target, source, n - i < TILE ? n - i : TILE, m - j < TILE ? m - j : TILE, to_step, from_step); \
                }                                                                                                                 \
            }                                                                                                                     \
        }                                                                                                                         \
    }

COPY_PLANE(npy_uint8)
COPY_PLANE(npy_uint16)
COPY_PLANE(npy_uint32)
COPY_PLANE(npy_uint64)
COPY_PLANE(npy_cdouble)

typedef void (*CopyPlane)(char *, const char *, npy_intp, npy_intp, npy_intp, npy_intp);

static CopyPlane copy_plane_of(npy_intp size)
{
    return size == 1 ? copy_plane_npy_uint8 : size == 2 ? copy_plane_npy_uint16 : size == 4 ? copy_plane_npy_uint32
           : size == 8 ? copy_plane_npy_uint64 : size == 16 ? copy_plane_npy_cdouble : NULL;
}

/* Copy between memories whose innermost dimensions differ, in square tiles; false if this is not such a copy. */
static bool copy_across(PyArrayObject *to, PyArrayObject *from)
{
    npy_intp size = PyArray_ITEMSIZE(to);
    CopyPlane copy_plane = copy_plane_of(size);
    if (copy_plane == NULL || PyArray_TYPE(to) != PyArray_TYPE(from) || !PyArray_ISBEHAVED(to) || !PyArray_ISBEHAVED_RO(from)
        || PyDataType_REFCHK(PyArray_DESCR(to)) || !cross(to, from)) {
        return false;
    }
    int columns = innermost(to), rows = innermost(from), ndim = PyArray_NDIM(to);
    if (PyArray_STRIDE(to, columns) != size || PyArray_STRIDE(from, rows) != size) {
        return false;
    }
    const npy_intp *shape = PyArray_DIMS(to);
    npy_intp at[MOST_DIMS] = {0};
    char *target = PyArray_BYTES(to);
    const char *source = PyArray_BYTES(from);
    for (int d = 0; d >= 0;) {
        copy_plane(target, source, shape[rows], shape[columns], PyArray_STRIDE(to, rows), PyArray_STRIDE(from, columns));
        for (d = ndim - 1; d >= 0; d--) { /* the next plane */
            if (d == rows || d == columns) {
                continue;
            }
            target += PyArray_STRIDE(to, d), source += PyArray_STRIDE(from, d);
            if (++at[d] < shape[d]) {
                break;
            }
            target -= shape[d] * PyArray_STRIDE(to, d), source -= shape[d] * PyArray_STRIDE(from, d);
            at[d] = 0;
        }
    }
    return true;
}

/* Whether the spans of two arrays overlap. */
static bool shares_memory(PyArrayObject *a, PyArrayObject *b)
{
    const char *bounds[2][2];
    PyArrayObject *arrays[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        bounds[k][0] = bounds[k][1] = PyArray_BYTES(arrays[k]);
        for (int d = 0; d < PyArray_NDIM(arrays[k]); d++) {
            npy_intp reach = (PyArray_DIM(arrays[k], d) - 1) * PyArray_STRIDE(arrays[k], d);
            bounds[k][reach > 0] += reach;
        }
    }
    return bounds[0][0] <= bounds[1][1] && bounds[1][0] <= bounds[0][1];
}

/* ---------------------------------------------------------------------------------------------- functions */

/* The result itself, or its values in memory ordered as torch orders those of a pointwise op. */
static PyObject *laid_out(PyObject *const *args, Py_ssize_t count)
{
    int plain = 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        plain = plain && (!PyArray_Check(args[i]) || PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[i]));
    }
    Operands operands;
    if (plain || !PyArray_CheckExact(args[0]) || PyArray_SIZE((PyArrayObject *)args[0]) == 0 ||
        !read_operands((PyArrayObject *)args[0], args + 1, count - 1, &operands)) {
        return Py_NewRef(args[0]);
    }
    PyArrayObject *result = (PyArrayObject *)args[0];
    npy_intp steps[MOST_DIMS], size = PyArray_ITEMSIZE(result);
    find_steps(&operands, steps);
    int same = 1, same_places = 1;
    for (int d = 0; d < operands.ndim; d++) {
        steps[d] *= size;
        same = same && steps[d] == PyArray_STRIDE(result, d);
        same_places = same_places && (operands.shape[d] == 1 || steps[d] == PyArray_STRIDE(result, d));
    }
    if (same || (same_places && PyArray_IS_C_CONTIGUOUS(result))) {
        return Py_NewRef(args[0]);
    }
    PyArray_Descr *type = PyArray_DESCR(result);
    Py_INCREF(type);
    PyObject *out = PyArray_NewFromDescr(&PyArray_Type, type, operands.ndim, PyArray_DIMS(result), steps,
                                         same_places ? PyArray_DATA(result) : NULL,
                                         same_places ? NPY_ARRAY_WRITEABLE : 0, NULL);
    if (out == NULL) {
        return NULL;
    }
    int failed = same_places ? PyArray_SetBaseObject((PyArrayObject *)out, Py_NewRef(args[0]))
                 : copy_across((PyArrayObject *)out, result) ? 0
                                                             : PyArray_CopyInto((PyArrayObject *)out, result);
    if (failed < 0) {
        Py_DECREF(out);
        return NULL;
    }
    return out;
}

static bool takes_operands(Py_ssize_t count, const char *name)
{
    if (count < 1 || count > 1 + MOST_OPERANDS) {
        PyErr_Format(PyExc_TypeError, "%s() takes a result and up to four operands", name);
        return false;
    }
    return true;
}

PyObject *result_array(PyObject *const *args, Py_ssize_t count)
{
    if (!takes_operands(count, "new_result")) {
        return NULL;
    }
    PyObject *array = count == 1 ? Py_NewRef(args[0]) : laid_out(args, count);
    if (array == NULL || PyArray_CheckExact(array)) {
        return array;
    }
    return PyArray_EnsureArray(array); /* takes the reference */
}

/* laid_out(result, *operands) */
static PyObject *layout_laid_out(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    return takes_operands(count, "laid_out") ? laid_out(args, count) : NULL;
}

static bool are_arrays(PyObject *const *args, Py_ssize_t count, Py_ssize_t expected, const char *name)
{
    bool right = count == expected;
    for (Py_ssize_t i = 0; i < count; i++) {
        right = right && PyArray_Check(args[i]);
    }
    if (!right) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd array%s", name, expected, expected == 1 ? "" : "s");
    }
    return right;
}

/* unlike(a, b): whether two operands have to be converted before a kernel takes them: to one dtype, or to one order in memory. */
static PyObject *layout_unlike(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arrays(args, count, 2, "unlike")) {
        return NULL;
    }
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    if (PyArray_DESCR(a) != PyArray_DESCR(b)) {
        Py_RETURN_TRUE;
    }
    if (PyArray_IS_C_CONTIGUOUS(a) && PyArray_IS_C_CONTIGUOUS(b)) {
        Py_RETURN_FALSE;
    }
    return PyBool_FromLong(cross(a, b));
}

/* copy_across(to, from): copy in tiles between memories of different order; False if nothing was copied, as NumPy does it as well. */
static PyObject *layout_copy_across(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arrays(args, count, 2, "copy_across")) {
        return NULL;
    }
    PyArrayObject *to = (PyArrayObject *)args[0], *from = (PyArrayObject *)args[1];
    return PyBool_FromLong(PyArray_ISWRITEABLE(to) && !shares_memory(to, from) && copy_across(to, from));
}

/* address(array): that of its first element. */
static PyObject *layout_address(PyObject *module, PyObject *array)
{
    (void)module;
    if (!are_arrays(&array, 1, 1, "address")) {
        return NULL;
    }
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array));
}

/* strides(array, is_fresh): in elements, as torch counts them where NumPy's mean nothing. */
static PyObject *layout_strides(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arrays(args, count < 1 ? count : 1, 1, "strides")) {
        return NULL;
    }
    if (count != 2 || !PyBool_Check(args[1])) {
        return PyErr_Format(PyExc_TypeError, "strides() takes an array and a bool");
    }
    PyArrayObject *array = (PyArrayObject *)args[0];
    npy_intp size = PyArray_ITEMSIZE(array), step = 1;
    bool plain = PyArray_SIZE(array) == 0 || (args[1] == Py_True && PyArray_IS_C_CONTIGUOUS(array));
    PyObject *strides = PyTuple_New(PyArray_NDIM(array));
    for (int d = PyArray_NDIM(array) - 1; strides != NULL && d >= 0; d--) {
        npy_intp length = PyArray_DIM(array, d), stride = size == 0 ? 0 : PyArray_STRIDE(array, d) / size;
        if (plain || (length == 1 && stride == 0)) {
            stride = step;
        }
        step = (length > 1 ? length : 1) * stride;
        PyObject *number = PyLong_FromSsize_t(stride);
        if (number == NULL) {
            Py_CLEAR(strides);
        }
        else {
            PyTuple_SET_ITEM(strides, d, number);
        }
    }
    return strides;
}

#define FAST(name, doc) {#name, (PyCFunction)(void (*)(void))layout_##name, METH_FASTCALL, doc}

static PyMethodDef functions[] = {
    FAST(laid_out, "A pointwise result in memory ordered as torch orders it."),
    FAST(unlike, "Whether two operands differ in dtype or, with many elements, in the order of their memory."),
    FAST(copy_across, "Copy between memories of different order in tiles; False if this is not such a copy."),
    FAST(strides, "The strides of an array in elements."),
    {"address", layout_address, METH_O, "The address of an array's first element."},
    {NULL, NULL, 0, NULL},
};

int add_layout(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
