/* The layout of a pointwise result: the order of its operands' dimensions in memory, as torch's TensorIterator chooses it. */

#include "fused.h"

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

/* laid_out(result, *operands): the result itself, or its values in memory ordered as torch orders those of a pointwise op. */
static PyObject *fused_laid_out(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count < 2 || count > 1 + MOST_OPERANDS) {
        PyErr_SetString(PyExc_TypeError, "laid_out() takes a result and one to four operands");
        return NULL;
    }
    int plain = 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        plain = plain && (!PyArray_Check(args[i]) || PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[i]));
    }
    Operands operands;
    if (plain || !PyArray_CheckExact(args[0]) || SIZE(args[0]) == 0 ||
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
                             : PyArray_CopyInto((PyArrayObject *)out, result);
    if (failed < 0) {
        Py_DECREF(out);
        return NULL;
    }
    return out;
}

PyMethodDef layout_functions[] = {
    FAST(laid_out),
    {NULL, NULL, 0, NULL},
};
