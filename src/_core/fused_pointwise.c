/* Fused loops over elements: arithmetic of several arrays, and activations. */

#include "fused.h"
#include "fused_exp.h"

#define FAMILY "fused_pointwise_kernels.h"
#include "fused_both_types.h"

/* ---------------------------------------------------------------------------------------------- exp and its kin, float32 */

CLONES static void exp_loop(const float *x, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = exp_of(x[i]);
    }
}

CLONES static void sigmoid_loop(const float *x, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = 1.0f / (exp_of(-x[i]) + 1.0f);
    }
}

CLONES static void silu_loop(const float *x, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = x[i] * (1.0f / (exp_of(-x[i]) + 1.0f));
    }
}

/* ---------------------------------------------------------------------------------------------- gelu, float32 */

static const float root_half = 0.70710678118654752f, density_factor = 0.39894228040143268f;

CLONES static void gelu_loop(const float *x, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = ((erf_of(x[i] * root_half) + 1.0f) * x[i]) * 0.5f;
    }
}

/* The distribution function at x into `out`, the exponent of the density into `exponent`. */
CLONES static void gelu_parts(const float *x, float *out, float *exponent, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        float scaled = x[i] * root_half;
        out[i] = (erf_of(scaled) + 1.0f) * 0.5f;
        exponent[i] = -(scaled * scaled);
    }
}

CLONES static void gelu_slope(const float *g, const float *x, const float *power, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (out[i] + (power[i] * density_factor) * x[i]) * g[i];
    }
}

static void gelu_backward_loop(const float *g, const float *x, float *out, npy_intp n)
{
    float power[BLOCK];
    for (npy_intp i = 0; i < n; i += BLOCK) {
        npy_intp part = n - i < BLOCK ? n - i : BLOCK;
        gelu_parts(x + i, out + i, power, part);
        apply(&exp_f32, power, power, part, sizeof(float));
        gelu_slope(g + i, x + i, power, out + i, part);
    }
}

/* ---------------------------------------------------------------------------------------------- functions */

typedef void (*BinaryFloat)(const float *, const float *, float, float *, npy_intp);
typedef void (*BinaryDouble)(const double *, const double *, double, double *, npy_intp);

/* A loop over two arrays of one shape and a number. */
static PyObject *binary(PyObject *a, PyObject *b, PyObject *scalar, PyObject *given_out, BinaryFloat of_float,
                        BinaryDouble of_double)
{
    double number;
    if (!is_real(a) || !is_like(b, a) || !is_number(scalar, &number)) {
        Py_RETURN_NONE;
    }
    PyObject *const inputs[2] = {a, b};
    PyObject *out = output_for(given_out, a, inputs, 2);
    if (out == NULL) {
        return none_unless_error();
    }
    npy_intp n = SIZE(out);
    void *first = DATA(a), *second = DATA(b), *result = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (TYPE(out) == NPY_FLOAT) {
        of_float(first, second, (float)number, result, n);
    }
    else {
        of_double(first, second, number, result, n);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_add_scaled(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 4, "add_scaled")) {
        return NULL;
    }
    return binary(args[0], args[1], args[2], args[3], add_scaled_float, add_scaled_double);
}

static PyObject *fused_threshold_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "threshold_backward")) {
        return NULL;
    }
    return binary(args[0], args[1], args[2], Py_None, threshold_backward_float, threshold_backward_double);
}

/* masked_fill(x, mask, value, out): the mask has the last dimensions of x, the value is an array of one element. */
static PyObject *fused_masked_fill(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 4, "masked_fill")) {
        return NULL;
    }
    PyObject *x = args[0], *mask = args[1], *value = args[2];
    if (!is_real(x) || !is_plain(mask) || TYPE(mask) != NPY_BOOL || NDIM(mask) > NDIM(x) || !has(value, TYPE(x), 1)) {
        Py_RETURN_NONE;
    }
    for (int d = 0, lead = NDIM(x) - NDIM(mask); d < NDIM(mask); d++) {
        if (DIM(mask, d) != DIM(x, lead + d)) {
            Py_RETURN_NONE;
        }
    }
    PyObject *const inputs[3] = {x, mask, value};
    PyObject *out = output_for(args[3], x, inputs, 3);
    if (out == NULL) {
        return none_unless_error();
    }
    npy_intp n = SIZE(mask), times = n ? SIZE(x) / n : 0;
    void *from = DATA(x), *chosen = DATA(mask), *to = DATA(out);
    double filled = TYPE(x) == NPY_FLOAT ? *(float *)DATA(value) : *(double *)DATA(value);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n * times);
    if (TYPE(x) == NPY_FLOAT) {
        masked_fill_float(from, chosen, (float)filled, to, times, n);
    }
    else {
        masked_fill_double(from, chosen, filled, to, times, n);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_lerp(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    double weight;
    (void)module;
    if (!takes(count, 4, "lerp")) {
        return NULL;
    }
    if (!is_real(args[0]) || !is_like(args[1], args[0]) || !is_number(args[2], &weight)) {
        Py_RETURN_NONE;
    }
    PyObject *out = output_for(args[3], args[0], args, 2);
    if (out == NULL) {
        return none_unless_error();
    }
    npy_intp n = SIZE(out);
    void *start = DATA(args[0]), *end = DATA(args[1]), *result = DATA(out);
    int near = fabs(weight) < 0.5;
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (TYPE(out) == NPY_FLOAT) {
        if (near) {
            lerp_near_float(start, end, (float)weight, result, n);
        }
        else {
            lerp_far_float(start, end, 1.0f - (float)weight, result, n);
        }
    }
    else if (near) {
        lerp_near_double(start, end, weight, result, n);
    }
    else {
        lerp_far_double(start, end, 1.0 - weight, result, n);
    }
    NPY_END_THREADS;
    return out;
}

typedef void (*TernaryFloat)(const float *, const float *, const float *, float, float *, npy_intp);
typedef void (*TernaryDouble)(const double *, const double *, const double *, double, double *, npy_intp);

static PyObject *ternary(PyObject *const *args, Py_ssize_t count, const char *name, TernaryFloat of_float,
                         TernaryDouble of_double)
{
    double value;
    if (!takes(count, 5, name)) {
        return NULL;
    }
    if (!is_real(args[0]) || !is_like(args[1], args[0]) || !is_like(args[2], args[0]) || !is_number(args[3], &value)) {
        Py_RETURN_NONE;
    }
    PyObject *out = output_for(args[4], args[0], args, 3);
    if (out == NULL) {
        return none_unless_error();
    }
    npy_intp n = SIZE(out);
    void *self = DATA(args[0]), *a = DATA(args[1]), *b = DATA(args[2]), *result = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (TYPE(out) == NPY_FLOAT) {
        of_float(self, a, b, (float)value, result, n);
    }
    else {
        of_double(self, a, b, value, result, n);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_addcmul(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    return ternary(args, count, "addcmul", addcmul_float, addcmul_double);
}

static PyObject *fused_addcdiv(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    return ternary(args, count, "addcdiv", addcdiv_float, addcdiv_double);
}

/* clamp(x, low, high, out): a bound is a number or None. */
static PyObject *fused_clamp(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 4, "clamp")) {
        return NULL;
    }
    double low = -INFINITY, high = INFINITY;
    PyObject *x = args[0];
    if (!is_real(x) || (args[1] != Py_None && !is_number(args[1], &low)) || (args[2] != Py_None && !is_number(args[2], &high)) ||
        low != low || high != high) {
        Py_RETURN_NONE;
    }
    PyObject *out = output_for(args[3], x, &x, 1);
    if (out == NULL) {
        return none_unless_error();
    }
    npy_intp n = SIZE(x);
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (TYPE(x) == NPY_FLOAT) {
        clamp_float(from, (float)low, (float)high, to, n);
    }
    else {
        clamp_double(from, low, high, to, n);
    }
    NPY_END_THREADS;
    return out;
}

/* A loop over one float32 array. */
static PyObject *unary(PyObject *x, void (*loop)(const float *, float *, npy_intp))
{
    if (!is_plain(x) || TYPE(x) != NPY_FLOAT) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = SIZE(x);
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    loop(from, to, n);
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_exp(PyObject *module, PyObject *x)
{
    (void)module;
    return unary(x, exp_loop);
}

static PyObject *fused_sigmoid(PyObject *module, PyObject *x)
{
    (void)module;
    return unary(x, sigmoid_loop);
}

static PyObject *fused_silu(PyObject *module, PyObject *x)
{
    (void)module;
    return unary(x, silu_loop);
}

static PyObject *fused_gelu(PyObject *module, PyObject *x)
{
    (void)module;
    return unary(x, gelu_loop);
}

static PyObject *fused_gelu_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "gelu_backward")) {
        return NULL;
    }
    PyObject *g = args[0], *x = args[1];
    if (!is_plain(x) || TYPE(x) != NPY_FLOAT || !is_like(g, x)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = SIZE(x);
    void *given = DATA(g), *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    gelu_backward_loop(given, from, to, n);
    NPY_END_THREADS;
    return out;
}

/* Whether a view of these sizes and steps stays within the memory of an array: from its first element to its last. */
static int stays_inside(PyArrayObject *array, int ndim, const npy_intp *shape, const npy_intp *steps)
{
    npy_intp low = 0, high = 0, room_low = 0, room_high = 0;
    int is_empty = 0;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) {
            return 0;
        }
        is_empty |= shape[i] == 0;
    }
    for (int i = 0; i < ndim && !is_empty; i++) {
        npy_intp reach;
        if (__builtin_mul_overflow(shape[i] - 1, steps[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return 0;
        }
    }
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
        *(reach < 0 ? &room_low : &room_high) += reach;
    }
    return PyArray_SIZE(array) > 0 && low >= room_low && high <= room_high;
}

/* strided(array, shape, strides): a view of other sizes and steps in bytes; None if it would leave the memory of the array. */
static PyObject *fused_strided(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "strided")) {
        return NULL;
    }
    if (!PyArray_CheckExact(args[0]) || !PyTuple_CheckExact(args[1]) || !PyTuple_CheckExact(args[2]) ||
        PyTuple_GET_SIZE(args[1]) != PyTuple_GET_SIZE(args[2]) || PyTuple_GET_SIZE(args[1]) > 32) {
        Py_RETURN_NONE;
    }
    PyArrayObject *array = (PyArrayObject *)args[0];
    int ndim = (int)PyTuple_GET_SIZE(args[1]);
    npy_intp shape[32], steps[32];
    for (int i = 0; i < ndim; i++) {
        shape[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(args[1], i), PyExc_OverflowError);
        steps[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(args[2], i), PyExc_OverflowError);
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (!stays_inside(array, ndim, shape, steps)) {
        Py_RETURN_NONE;
    }
    PyArray_Descr *type = PyArray_DESCR(array);
    Py_INCREF(type);
    int writeable = PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE;
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, type, ndim, shape, steps, PyArray_DATA(array), writeable, NULL);
    if (view == NULL) {
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(args[0])) < 0) {
        Py_DECREF(view);
        return NULL;
    }
    return view;
}

#define DEFINE_ARE_BETWEEN(type)                                                                   \
    CLONES static int are_between_##type(const type *values, npy_intp n, npy_int64 low, npy_int64 high) \
    {                                                                                              \
        int outside = 0;                                                                           \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            outside |= values[i] < low || values[i] >= high;                                       \
        }                                                                                          \
        return !outside;                                                                           \
    }

DEFINE_ARE_BETWEEN(npy_int32)
DEFINE_ARE_BETWEEN(npy_int64)

/* inside(index, low, high): whether all integers of an array are from `low` to below `high`. */
static PyObject *fused_inside(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "inside")) {
        return NULL;
    }
    int type = is_plain(args[0]) ? TYPE(args[0]) : NPY_NOTYPE;
    if ((type != NPY_INT32 && type != NPY_INT64) || !PyLong_CheckExact(args[1]) || !PyLong_CheckExact(args[2])) {
        Py_RETURN_NONE;
    }
    npy_int64 low = PyLong_AsLongLong(args[1]), high = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* too large: NumPy decides */
        Py_RETURN_NONE;
    }
    return PyBool_FromLong(type == NPY_INT32 ? are_between_npy_int32(DATA(args[0]), SIZE(args[0]), low, high)
                                             : are_between_npy_int64(DATA(args[0]), SIZE(args[0]), low, high));
}

PyMethodDef pointwise_functions[] = {
    FAST(strided),
    FAST(inside),
    FAST(add_scaled),
    FAST(threshold_backward),
    FAST(masked_fill),
    FAST(lerp),
    FAST(addcmul),
    FAST(addcdiv),
    FAST(clamp),
    {"exp", fused_exp, METH_O, NULL},
    {"sigmoid", fused_sigmoid, METH_O, NULL},
    {"silu", fused_silu, METH_O, NULL},
    {"gelu", fused_gelu, METH_O, NULL},
    FAST(gelu_backward),
    {NULL, NULL, 0, NULL},
};
