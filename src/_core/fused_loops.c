/* mindtorch_v2._ops._fused: kernels that make one pass where their NumPy twins make several.
 *
 * A function takes and returns arrays. It returns None for what it is not written for (another dtype, memory that is not contiguous,
 * an output that overlaps an input): its caller then runs the NumPy twin, which is the definition. Results are equal to the last bit.
 *
 * Sums, exp, log, tanh and matrix products are taken by NumPy's own inner loops, found in its ufuncs when the module is loaded: they
 * are vectorised, and the twin uses the same ones. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static Loop add_f32, maximum_f32, exp_f32, log_f32, tanh_f32, matmul_f32;
static Loop add_f64, maximum_f64, exp_f64, log_f64, matmul_f64;

/* Rows up to this length are summed by one call of the inner loop: before NumPy 2.3 its reductions cut longer ones into buffers. */
static npy_intp longest_row = NPY_MAX_INTP;
#define FIRST_VERSION_WITH_WHOLE_ROWS 0x14 /* of NumPy's C API: that of 2.3 */
#define BUFFER_SIZE 8192

static int find_loop(PyObject *numpy, const char *name, int type, Loop *loop)
{
    PyObject *object = PyObject_GetAttrString(numpy, name);
    if (object == NULL) {
        return -1;
    }
    if (PyObject_TypeCheck(object, &PyUFunc_Type)) {
        PyUFuncObject *ufunc = (PyUFuncObject *)object;
        for (int i = 0; i < ufunc->ntypes; i++) {
            int matches = 1;
            for (int k = 0; k < ufunc->nargs; k++) {
                matches = matches && ufunc->types[i * ufunc->nargs + k] == type;
            }
            if (matches && ufunc->functions[i] != NULL) {
                loop->function = ufunc->functions[i];
                loop->data = ufunc->data == NULL ? NULL : (void *)ufunc->data[i];
                Py_DECREF(object); /* NumPy's ufuncs live as long as the process */
                return 0;
            }
        }
    }
    Py_DECREF(object);
    PyErr_Format(PyExc_ImportError, "numpy.%s has no inner loop for type number %d", name, type);
    return -1;
}

/* A loop with one input over n contiguous numbers. */
static void apply(const Loop *loop, const void *in, void *out, npy_intp n, npy_intp size)
{
    char *pointers[2] = {(char *)in, (char *)out};
    npy_intp steps[2] = {size, size};
    loop->function(pointers, &n, steps, loop->data);
}

/* How a convolution of stride 1 reads its padded images, see `_Grid` in _ops/convolution.py. */
typedef struct {
    npy_intp images, channels, total, filters, places, length;
    const npy_int64 *offsets; /* of each kernel place in a flat channel */
} Grid;

/* Rows are worked on in blocks of about this many numbers, which stay in the first-level cache. */
#define BLOCK 4096
#define BLOCK_ROWS 256

static npy_intp block_rows(npy_intp cols)
{
    npy_intp rows = BLOCK / cols;
    return rows < 1 ? 1 : rows > BLOCK_ROWS ? BLOCK_ROWS : rows;
}

#define LANES 64
#define LANE_STEPS 128
#define LEAST_LANE_COLUMNS 512 /* shorter rows are summed by NumPy */
#define MOST_LANE_COLUMNS (1 << 16)

#include "fused_float32.h"

/* ---------------------------------------------------------------------------------------------- both types */

#define REAL float
#define SQRT sqrtf
#define FN(name) name##_float
#define LOOP(name) name##_f32
#include "fused_kernels.h"
#undef REAL
#undef SQRT
#undef FN
#undef LOOP

#define IS_DOUBLE
#define REAL double
#define SQRT sqrt
#define FN(name) name##_double
#define LOOP(name) name##_f64
#include "fused_kernels.h"
#undef REAL
#undef SQRT
#undef FN
#undef LOOP

/* ---------------------------------------------------------------------------------------------- gelu, float32 */

/* x between -limit and limit; NaN stays NaN. */
ALWAYS_INLINE float clamped(float x, float limit)
{
    float size = fabsf(x);
    return copysignf(size > limit ? limit : size, x);
}

/* The constants and the order of operations are those of _ops/_erf.py. */
ALWAYS_INLINE float erf_of(float x)
{
    float t = clamped(x, 3.9f);
    float s = t * t;
    float p = s * 2.0664565617672157e-06f;
    p = (p + 0.00028506302608917304f) * s;
    p = (p + 0.003738404987641868f) * s;
    p = (p + 0.0526682682690826f) * s;
    p = (p + 0.18966826376551407f) * s;
    p = (p + 1.1283791476298564f) * t;
    float q = s * 3.826988919136873e-05f;
    q = (q + 0.0011573894091900776f) * s;
    q = (q + 0.014914397441977771f) * s;
    q = (q + 0.11381954810792422f) * s;
    q = (q + 0.5014219038606178f) * s;
    q = q + 1.0f;
    return clamped(p / q, 1.0f);
}

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

/* ---------------------------------------------------------------------------------------------- LSTM, float32 */

/* The gates of one step after tanh, the first three as sigmoids: sigmoid(z) = (tanh(z / 2) + 1) / 2. Then the new cells. */
CLONES static void lstm_cells(float *gates, const float *cells, float *after, npy_intp batch, npy_intp size)
{
    for (npy_intp b = 0; b < batch; b++, gates += 4 * size, cells += size, after += size) {
        float *in = gates, *forget = gates + size, *out = gates + 2 * size, *new = gates + 3 * size;
        INDEPENDENT
        for (npy_intp j = 0; j < size; j++) {
            in[j] = (in[j] + 1.0f) * 0.5f;
            forget[j] = (forget[j] + 1.0f) * 0.5f;
            out[j] = (out[j] + 1.0f) * 0.5f;
            after[j] = forget[j] * cells[j] + in[j] * new[j];
        }
    }
}

CLONES static void lstm_hidden(const float *gates, const float *curve, float *hidden, npy_intp batch, npy_intp size)
{
    for (npy_intp b = 0; b < batch; b++, gates += 4 * size, curve += size, hidden += size) {
        const float *out = gates + 2 * size;
        INDEPENDENT
        for (npy_intp j = 0; j < size; j++) {
            hidden[j] = out[j] * curve[j];
        }
    }
}

/* Gradients of one step's sums in torch's order of gates (i, f, g, o), from those of its hidden and cell states; to_cell becomes that
 * of the cells before the step. */
CLONES static void lstm_gate_gradients(const float *to_hidden, float *to_cell, const float *gates, const float *cells,
                                       const float *curve, float *to_gates, npy_intp batch, npy_intp size)
{
    for (npy_intp b = 0; b < batch; b++) {
        const float *in = gates, *forget = gates + size, *out = gates + 2 * size, *new = gates + 3 * size;
        float *to_in = to_gates, *to_forget = to_gates + size, *to_new = to_gates + 2 * size, *to_out = to_gates + 3 * size;
        INDEPENDENT
        for (npy_intp j = 0; j < size; j++) {
            float i = in[j], f = forget[j], o = out[j], n = new[j], c = curve[j], dh = to_hidden[j];
            float dc = to_cell[j] + dh * (o * (1.0f - c * c));
            to_in[j] = ((n * i) * (1.0f - i)) * dc;
            to_forget[j] = ((cells[j] * f) * (1.0f - f)) * dc;
            to_new[j] = (i * (1.0f - n * n)) * dc;
            to_out[j] = dh * ((c * o) * (1.0f - o));
            to_cell[j] = dc * f;
        }
        gates += 4 * size, to_gates += 4 * size;
        to_hidden += size, to_cell += size, cells += size, curve += size;
    }
}

static void lstm_forward_loop(float *gates, const float *recurrent, const float *hidden, float *cells, float *curves, float *out,
                              float *product, npy_intp steps, npy_intp batch, npy_intp size)
{
    npy_intp n = batch * size;
    for (npy_intp step = 0; step < steps; step++, gates += 4 * n, cells += n, curves += n, out += n) {
        product_float(hidden, size, 1, recurrent, 4 * size, 1, product, batch, size, 4 * size);
        add_to_float(gates, product, 4 * n);
        apply(&tanh_f32, gates, gates, 4 * n, sizeof(float));
        lstm_cells(gates, cells, cells + n, batch, size);
        apply(&tanh_f32, cells + n, curves, n, sizeof(float));
        lstm_hidden(gates, curves, out, batch, size);
        hidden = out;
    }
}

static void lstm_backward_loop(const float *flowing, float *to_hidden, float *to_cell, const float *gates, const float *cells,
                               const float *curves, const float *recurrent, float *to_gates, npy_intp steps, npy_intp batch,
                               npy_intp size)
{
    npy_intp n = batch * size;
    for (npy_intp step = steps - 1; step >= 0; step--) {
        if (flowing != NULL) {
            add_to_float(to_hidden, flowing + step * n, n);
        }
        lstm_gate_gradients(to_hidden, to_cell, gates + step * 4 * n, cells + step * n, curves + step * n,
                            to_gates + step * 4 * n, batch, size);
        product_float(to_gates + step * 4 * n, 4 * size, 1, recurrent, size, 1, to_hidden, batch, 4 * size, size);
    }
}

/* ---------------------------------------------------------------------------------------------- arguments */

#define DATA(array) PyArray_DATA((PyArrayObject *)(array))
#define TYPE(array) PyArray_TYPE((PyArrayObject *)(array))
#define SIZE(array) PyArray_SIZE((PyArrayObject *)(array))
#define NDIM(array) PyArray_NDIM((PyArrayObject *)(array))
#define DIM(array, axis) PyArray_DIM((PyArrayObject *)(array), axis)

static int takes(Py_ssize_t given, Py_ssize_t expected, const char *name)
{
    if (given != expected) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", name, expected, given);
        return 0;
    }
    return 1;
}

/* A plain array, contiguous, aligned, in native byte order. */
static int is_plain(PyObject *object)
{
    return PyArray_CheckExact(object) && PyArray_ISCARRAY_RO((PyArrayObject *)object);
}

/* A plain array of float32 or float64. */
static int is_real(PyObject *object)
{
    return is_plain(object) && (TYPE(object) == NPY_FLOAT || TYPE(object) == NPY_DOUBLE);
}

static int is_like(PyObject *object, PyObject *other)
{
    return is_plain(object) && TYPE(object) == TYPE(other) &&
           PyArray_SAMESHAPE((PyArrayObject *)object, (PyArrayObject *)other);
}

/* A plain array of this type with this many elements. */
static int has(PyObject *object, int type, npy_intp size)
{
    return is_plain(object) && TYPE(object) == type && SIZE(object) == size;
}

static int is_writeable(PyObject *object)
{
    return PyArray_ISWRITEABLE((PyArrayObject *)object);
}

/* Whether two contiguous arrays share memory without being the same memory. */
static int overlaps(PyObject *a, PyObject *b)
{
    const char *start = DATA(a), *other = DATA(b);
    return start != other && start < other + PyArray_NBYTES((PyArrayObject *)b) &&
           other < start + PyArray_NBYTES((PyArrayObject *)a);
}

/* Whether two contiguous arrays share memory at all. */
static int shares(PyObject *a, PyObject *b)
{
    return DATA(a) == DATA(b) || overlaps(a, b);
}

static PyObject *empty_like(PyObject *array)
{
    return PyArray_SimpleNew(NDIM(array), PyArray_DIMS((PyArrayObject *)array), TYPE(array));
}

/* A Python int or float into *number; 0 for anything else. */
static int is_number(PyObject *object, double *number)
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

/* ---------------------------------------------------------------------------------------------- functions */

/* `out`, or a new array like `self` if it is None; NULL with no error set if the loop must not write there. */
static PyObject *output_for(PyObject *out, PyObject *self, PyObject *const *inputs, Py_ssize_t count)
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

static PyObject *none_unless_error(void)
{
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

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

/* Whether all of n places are from 0 to below the limit. */
static int are_inside(const npy_int64 *places, npy_intp n, npy_intp limit)
{
    for (npy_intp i = 0; i < n; i++) {
        if (places[i] < 0 || places[i] >= limit) {
            return 0;
        }
    }
    return 1;
}

/* nll_losses(x, target): -x[i, target[i]] for a matrix. */
static PyObject *fused_nll_losses(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "nll_losses")) {
        return NULL;
    }
    PyObject *x = args[0], *target = args[1];
    if (!is_real(x) || NDIM(x) != 2 || !has(target, NPY_INT64, DIM(x, 0)) || NDIM(target) != 1) {
        Py_RETURN_NONE;
    }
    npy_intp n = DIM(x, 0), classes = DIM(x, 1);
    const npy_int64 *place = DATA(target);
    if (!are_inside(place, n, classes)) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(1, &n, TYPE(x));
    if (out == NULL) {
        return NULL;
    }
    for (npy_intp i = 0; i < n; i++) {
        if (TYPE(x) == NPY_FLOAT) {
            ((float *)DATA(out))[i] = -((const float *)DATA(x))[i * classes + place[i]];
        }
        else {
            ((double *)DATA(out))[i] = -((const double *)DATA(x))[i * classes + place[i]];
        }
    }
    return out;
}

/* nll_gradient(target, classes, value): a matrix that is zero but for the value (an array of one element) at [i, target[i]]. */
static PyObject *fused_nll_gradient(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "nll_gradient")) {
        return NULL;
    }
    PyObject *target = args[0], *value = args[2];
    npy_intp classes = PyLong_AsSsize_t(args[1]);
    if (classes == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_plain(target) || TYPE(target) != NPY_INT64 || NDIM(target) != 1 || !is_real(value) || SIZE(value) != 1) {
        Py_RETURN_NONE;
    }
    npy_intp n = DIM(target, 0), shape[2] = {n, classes};
    const npy_int64 *place = DATA(target);
    if (classes < 0 || !are_inside(place, n, classes)) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_ZEROS(2, shape, TYPE(value), 0);
    if (out == NULL) {
        return NULL;
    }
    for (npy_intp i = 0; i < n; i++) {
        if (TYPE(value) == NPY_FLOAT) {
            ((float *)DATA(out))[i * classes + place[i]] = *(const float *)DATA(value);
        }
        else {
            ((double *)DATA(out))[i * classes + place[i]] = *(const double *)DATA(value);
        }
    }
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

static PyObject *fused_add_row(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "add_row")) {
        return NULL;
    }
    PyObject *matrix = args[0], *row = args[1];
    if (!is_real(matrix) || NDIM(matrix) != 2 || !is_writeable(matrix) || !is_plain(row) || NDIM(row) != 1 ||
        !has(row, TYPE(matrix), DIM(matrix, 1)) || shares(matrix, row)) {
        Py_RETURN_NONE;
    }
    npy_intp rows = DIM(matrix, 0), cols = DIM(matrix, 1);
    void *data = DATA(matrix), *added = DATA(row);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(matrix) == NPY_FLOAT) {
        add_row_float(data, added, rows, cols);
    }
    else {
        add_row_double(data, added, rows, cols);
    }
    NPY_END_THREADS;
    return Py_NewRef(matrix);
}

static PyObject *fused_sum_columns(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "sum_columns")) {
        return NULL;
    }
    PyObject *matrix = args[0];
    int keepdim = PyObject_IsTrue(args[1]);
    if (keepdim < 0) {
        return NULL;
    }
    /* NumPy adds up a single column in pairs. */
    if (!is_real(matrix) || NDIM(matrix) != 2 || DIM(matrix, 1) < 2) {
        Py_RETURN_NONE;
    }
    npy_intp rows = DIM(matrix, 0), cols = DIM(matrix, 1);
    npy_intp shape[2] = {1, cols};
    PyObject *out = keepdim ? PyArray_ZEROS(2, shape, TYPE(matrix), 0) : PyArray_ZEROS(1, &cols, TYPE(matrix), 0);
    if (out == NULL) {
        return NULL;
    }
    void *data = DATA(matrix), *sums = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(matrix) == NPY_FLOAT) {
        sum_columns_float(data, sums, rows, cols);
    }
    else {
        sum_columns_double(data, sums, rows, cols);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_sum_at_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "sum_at_rows")) {
        return NULL;
    }
    PyObject *rows = args[0], *places = args[1];
    npy_intp table_rows = PyLong_AsSsize_t(args[2]);
    if (table_rows == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_real(rows) || NDIM(rows) != 2 || table_rows < 0 || !has(places, NPY_INT64, DIM(rows, 0))) {
        Py_RETURN_NONE;
    }
    const npy_int64 *place = DATA(places);
    npy_intp n = DIM(rows, 0);
    if (!are_inside(place, n, table_rows)) {
        Py_RETURN_NONE;
    }
    npy_intp shape[2] = {table_rows, DIM(rows, 1)};
    PyObject *out = PyArray_ZEROS(2, shape, TYPE(rows), 0);
    if (out == NULL) {
        return NULL;
    }
    void *data = DATA(rows), *table = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n * shape[1]);
    if (TYPE(rows) == NPY_FLOAT) {
        add_at_rows_float(table, place, data, n, shape[1]);
    }
    else {
        add_at_rows_double(table, place, data, n, shape[1]);
    }
    NPY_END_THREADS;
    return out;
}

/* The product of the last `dims` dimensions. */
static npy_intp trailing(PyObject *array, Py_ssize_t dims)
{
    npy_intp n = 1;
    for (Py_ssize_t d = NDIM(array) - dims; d < NDIM(array); d++) {
        n *= DIM(array, d);
    }
    return n;
}

/* Whether the last `dims` dimensions are rows that can be worked on. */
static int has_rows(PyObject *array, Py_ssize_t dims)
{
    return is_real(array) && dims > 0 && NDIM(array) >= dims && SIZE(array) > 0 && trailing(array, dims) <= longest_row &&
           trailing(array, dims) <= MOST_LANE_COLUMNS;
}

static PyObject *fused_softmax(PyObject *module, PyObject *x)
{
    (void)module;
    if (!has_rows(x, 1)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        return NULL;
    }
    npy_intp cols = DIM(x, NDIM(x) - 1), rows = SIZE(x) / cols;
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        softmax_float(from, to, rows, cols);
    }
    else {
        softmax_double(from, to, rows, cols);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_log_softmax(PyObject *module, PyObject *x)
{
    (void)module;
    if (!has_rows(x, 1)) {
        Py_RETURN_NONE;
    }
    npy_intp cols = DIM(x, NDIM(x) - 1), rows = SIZE(x) / cols;
    void *scratch = malloc((size_t)(block_rows(cols) * cols) * sizeof(double));
    if (scratch == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        free(scratch);
        return NULL;
    }
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        log_softmax_float(from, to, scratch, rows, cols);
    }
    else {
        log_softmax_double(from, to, scratch, rows, cols);
    }
    NPY_END_THREADS;
    free(scratch);
    return out;
}

typedef void (*RowsFloat)(const float *, const float *, float *, npy_intp, npy_intp);
typedef void (*RowsDouble)(const double *, const double *, double *, npy_intp, npy_intp);

static PyObject *rows_backward(PyObject *const *args, Py_ssize_t count, const char *name, RowsFloat of_float,
                               RowsDouble of_double)
{
    if (!takes(count, 2, name)) {
        return NULL;
    }
    PyObject *g = args[0], *y = args[1];
    if (!has_rows(y, 1) || !is_like(g, y)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(y);
    if (out == NULL) {
        return NULL;
    }
    npy_intp cols = DIM(y, NDIM(y) - 1), rows = SIZE(y) / cols;
    void *given = DATA(g), *from = DATA(y), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(y) == NPY_FLOAT) {
        of_float(given, from, to, rows, cols);
    }
    else {
        of_double(given, from, to, rows, cols);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_softmax_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    return rows_backward(args, count, "softmax_backward", softmax_backward_float, softmax_backward_double);
}

static PyObject *fused_log_softmax_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    return rows_backward(args, count, "log_softmax_backward", log_softmax_backward_float, log_softmax_backward_double);
}

/* None as NULL; 0 unless it is None or a plain array of this type and size. */
static int optional(PyObject *object, int type, npy_intp size, void **data)
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

/* layer_norm(x, dims, weight, bias, eps) -> (normalized, mean, rstd) over the last `dims` dimensions. */
static PyObject *fused_layer_norm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    double eps;
    void *weight, *bias;
    (void)module;
    if (!takes(count, 5, "layer_norm")) {
        return NULL;
    }
    PyObject *x = args[0];
    Py_ssize_t dims = PyLong_AsSsize_t(args[1]);
    if (dims == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!has_rows(x, dims) || !is_number(args[4], &eps)) {
        Py_RETURN_NONE;
    }
    npy_intp cols = trailing(x, dims), rows = SIZE(x) / cols, shape[NPY_MAXDIMS];
    if (!optional(args[2], TYPE(x), cols, &weight) || !optional(args[3], TYPE(x), cols, &bias)) {
        Py_RETURN_NONE;
    }
    for (int d = 0; d < NDIM(x); d++) {
        shape[d] = d < NDIM(x) - dims ? DIM(x, d) : 1;
    }
    PyObject *out = empty_like(x), *mean = PyArray_SimpleNew(NDIM(x), shape, TYPE(x));
    PyObject *rstd = PyArray_SimpleNew(NDIM(x), shape, TYPE(x));
    void *scratch = malloc((size_t)cols * sizeof(double));
    if (out == NULL || mean == NULL || rstd == NULL || scratch == NULL) {
        Py_XDECREF(out);
        Py_XDECREF(mean);
        Py_XDECREF(rstd);
        if (scratch == NULL && !PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        free(scratch);
        return NULL;
    }
    void *from = DATA(x), *to = DATA(out), *means = DATA(mean), *rstds = DATA(rstd);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        layer_norm_float(from, weight, bias, (float)eps, to, means, rstds, scratch, rows, cols);
    }
    else {
        layer_norm_double(from, weight, bias, eps, to, means, rstds, scratch, rows, cols);
    }
    NPY_END_THREADS;
    free(scratch);
    return Py_BuildValue("(NNN)", out, mean, rstd);
}

/* layer_norm_backward(g, x, dims, mean, rstd, weight) -> the gradients of the input, the weight and the bias. */
static PyObject *fused_layer_norm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *weight;
    (void)module;
    if (!takes(count, 6, "layer_norm_backward")) {
        return NULL;
    }
    PyObject *g = args[0], *x = args[1];
    Py_ssize_t dims = PyLong_AsSsize_t(args[2]);
    if (dims == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!has_rows(x, dims) || !is_like(g, x)) {
        Py_RETURN_NONE;
    }
    npy_intp cols = trailing(x, dims), rows = SIZE(x) / cols;
    /* NumPy adds up a single column in pairs. */
    if (cols < 2 || !has(args[3], TYPE(x), rows) || !has(args[4], TYPE(x), rows) ||
        !optional(args[5], TYPE(x), cols, &weight)) {
        Py_RETURN_NONE;
    }
    npy_intp *shape = PyArray_DIMS((PyArrayObject *)x) + NDIM(x) - dims;
    PyObject *to_input = empty_like(x), *to_weight = PyArray_ZEROS((int)dims, shape, TYPE(x), 0);
    PyObject *to_bias = PyArray_ZEROS((int)dims, shape, TYPE(x), 0);
    void *scratch = malloc((size_t)cols * 2 * sizeof(double));
    if (to_input == NULL || to_weight == NULL || to_bias == NULL || scratch == NULL) {
        Py_XDECREF(to_input);
        Py_XDECREF(to_weight);
        Py_XDECREF(to_bias);
        if (scratch == NULL && !PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        free(scratch);
        return NULL;
    }
    void *given = DATA(g), *from = DATA(x), *mean = DATA(args[3]), *rstd = DATA(args[4]);
    void *first = DATA(to_input), *second = DATA(to_weight), *third = DATA(to_bias);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        layer_norm_backward_float(given, from, mean, rstd, weight, first, second, third, scratch, rows, cols);
    }
    else {
        layer_norm_backward_double(given, from, mean, rstd, weight, first, second, third, scratch, rows, cols);
    }
    NPY_END_THREADS;
    free(scratch);
    return Py_BuildValue("(NNN)", to_input, to_weight, to_bias);
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

/* row_sums(x): the sums of the rows of a matrix. */
static PyObject *fused_row_sums(PyObject *module, PyObject *x)
{
    (void)module;
    if (!is_real(x) || NDIM(x) != 2) {
        Py_RETURN_NONE;
    }
    npy_intp rows = DIM(x, 0), cols = DIM(x, 1), room = cols / LANE_STEPS + 2 * LANES;
    if (room > longest_row) {
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
        row_sums_float(from, to, lanes, rows, cols);
    }
    else {
        row_sums_double(from, to, lanes, rows, cols);
    }
    NPY_END_THREADS;
    free(lanes);
    return out;
}

/* units(draws): the low 24 bits of draws of an integer generator as float32 in [0, 1). */
static PyObject *fused_units(PyObject *module, PyObject *draws)
{
    (void)module;
    if (!is_plain(draws) || TYPE(draws) != NPY_UINT64) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(NDIM(draws), PyArray_DIMS((PyArrayObject *)draws), NPY_FLOAT);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = SIZE(draws);
    void *from = DATA(draws), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    units_loop(from, to, n);
    NPY_END_THREADS;
    return out;
}

/* normals(uniforms, mean, std): rows of 16 uniforms to rows of 16 normals. */
static PyObject *fused_normals(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "normals")) {
        return NULL;
    }
    PyObject *u = args[0];
    double mean, std;
    if (!is_plain(u) || TYPE(u) != NPY_FLOAT || NDIM(u) != 2 || DIM(u, 1) != 16 || !is_number(args[1], &mean) ||
        !is_number(args[2], &std)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(u);
    if (out == NULL) {
        return NULL;
    }
    npy_intp rows = DIM(u, 0);
    void *from = DATA(u), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * 16);
    normals_loop(from, (float)mean, (float)std, to, rows);
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

/* lstm_forward(gates, recurrent, hidden, cells, curves, out) -> True: all steps of `_lstm_steps` in _ops/rnn.py. */
static PyObject *fused_lstm_forward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 6, "lstm_forward")) {
        return NULL;
    }
    PyObject *gates = args[0];
    if (!is_plain(gates) || TYPE(gates) != NPY_FLOAT || NDIM(gates) != 3 || DIM(gates, 2) % 4) {
        Py_RETURN_NONE;
    }
    npy_intp steps = DIM(gates, 0), batch = DIM(gates, 1), size = DIM(gates, 2) / 4, n = batch * size;
    if (!has(args[1], NPY_FLOAT, size * 4 * size) || !has(args[2], NPY_FLOAT, n) ||
        !has(args[3], NPY_FLOAT, (steps + 1) * n) || !has(args[4], NPY_FLOAT, steps * n) ||
        !has(args[5], NPY_FLOAT, steps * n) || !is_writeable(gates) || !is_writeable(args[3]) || !is_writeable(args[4]) ||
        !is_writeable(args[5])) {
        Py_RETURN_NONE;
    }
    float *product = malloc((size_t)n * 4 * sizeof(float) + 1);
    if (product == NULL) {
        return PyErr_NoMemory();
    }
    void *recurrent = DATA(args[1]), *hidden = DATA(args[2]), *cells = DATA(args[3]), *curves = DATA(args[4]);
    void *sums = DATA(gates), *out = DATA(args[5]);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    lstm_forward_loop(sums, recurrent, hidden, cells, curves, out, product, steps, batch, size);
    NPY_END_THREADS;
    free(product);
    Py_RETURN_TRUE;
}

/* lstm_backward(flowing, to_hidden, to_cell, gates, cells, curves, recurrent, to_gates) -> True: all steps of `_lstm_steps_back`. */
static PyObject *fused_lstm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *flowing;
    (void)module;
    if (!takes(count, 8, "lstm_backward")) {
        return NULL;
    }
    PyObject *gates = args[3];
    if (!is_plain(gates) || TYPE(gates) != NPY_FLOAT || NDIM(gates) != 3 || DIM(gates, 2) % 4) {
        Py_RETURN_NONE;
    }
    npy_intp steps = DIM(gates, 0), batch = DIM(gates, 1), size = DIM(gates, 2) / 4, n = batch * size;
    if (!optional(args[0], NPY_FLOAT, steps * n, &flowing) || !has(args[1], NPY_FLOAT, n) || !has(args[2], NPY_FLOAT, n) ||
        !has(args[4], NPY_FLOAT, (steps + 1) * n) || !has(args[5], NPY_FLOAT, steps * n) ||
        !has(args[6], NPY_FLOAT, size * 4 * size) || !has(args[7], NPY_FLOAT, steps * 4 * n) || !is_writeable(args[1]) ||
        !is_writeable(args[2]) || !is_writeable(args[7])) {
        Py_RETURN_NONE;
    }
    void *to_hidden = DATA(args[1]), *to_cell = DATA(args[2]), *after = DATA(gates), *cells = DATA(args[4]);
    void *curves = DATA(args[5]), *recurrent = DATA(args[6]), *to_gates = DATA(args[7]);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    lstm_backward_loop(flowing, to_hidden, to_cell, after, cells, curves, recurrent, to_gates, steps, batch, size);
    NPY_END_THREADS;
    Py_RETURN_TRUE;
}

/* Fill in a grid from flat images (images, channels, total), offsets, and the length of columns; 0 unless they fit together. */
static int describe_grid(PyObject *images, PyObject *offsets, PyObject *length, Grid *grid)
{
    if (!is_real(images) || NDIM(images) != 3 || !is_plain(offsets) || TYPE(offsets) != NPY_INT64 || NDIM(offsets) != 1) {
        return 0;
    }
    grid->length = PyLong_AsSsize_t(length);
    if (grid->length < 0) {
        return 0;
    }
    grid->images = DIM(images, 0);
    grid->channels = DIM(images, 1);
    grid->total = DIM(images, 2);
    grid->places = SIZE(offsets);
    grid->offsets = DATA(offsets);
    return are_inside(grid->offsets, grid->places, grid->total - grid->length + 1);
}

/* Memory for a number of elements of a type; NULL with an error set. */
static void *scratch_for(npy_intp elements, int type)
{
    void *scratch = malloc((size_t)elements * (type == NPY_FLOAT ? sizeof(float) : sizeof(double)) + 1);
    if (scratch == NULL) {
        PyErr_NoMemory();
    }
    return scratch;
}

/* convolve(images, offsets, length, weight) -> (images, filters, length): the weight is (filters, channels * places). */
static PyObject *fused_convolve(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Grid grid;
    (void)module;
    if (!takes(count, 4, "convolve")) {
        return NULL;
    }
    if (!describe_grid(args[0], args[1], args[2], &grid)) {
        return none_unless_error();
    }
    int type = TYPE(args[0]);
    npy_intp inner = grid.channels * grid.places;
    if (!is_plain(args[3]) || TYPE(args[3]) != type || NDIM(args[3]) != 2 || DIM(args[3], 1) != inner) {
        Py_RETURN_NONE;
    }
    grid.filters = DIM(args[3], 0);
    npy_intp shape[3] = {grid.images, grid.filters, grid.length};
    void *scratch = scratch_for(inner * grid.length, type);
    PyObject *out = scratch == NULL ? NULL : PyArray_SimpleNew(3, shape, type);
    if (out == NULL) {
        free(scratch);
        return NULL;
    }
    void *from = DATA(args[0]), *weight = DATA(args[3]), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    if (type == NPY_FLOAT) {
        convolve_float(from, weight, to, scratch, &grid);
    }
    else {
        convolve_double(from, weight, to, scratch, &grid);
    }
    NPY_END_THREADS;
    free(scratch);
    return out;
}

/* convolve_weight(images, offsets, length, g) -> (filters, channels * places): g is (images, filters, length). */
static PyObject *fused_convolve_weight(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Grid grid;
    (void)module;
    if (!takes(count, 4, "convolve_weight")) {
        return NULL;
    }
    if (!describe_grid(args[0], args[1], args[2], &grid)) {
        return none_unless_error();
    }
    int type = TYPE(args[0]);
    PyObject *g = args[3];
    if (!is_plain(g) || TYPE(g) != type || NDIM(g) != 3 || DIM(g, 0) != grid.images || DIM(g, 2) != grid.length) {
        Py_RETURN_NONE;
    }
    grid.filters = DIM(g, 1);
    npy_intp inner = grid.channels * grid.places, shape[2] = {grid.filters, inner};
    if (grid.filters * inner < 2) { /* NumPy adds up a single column in pairs */
        Py_RETURN_NONE;
    }
    void *scratch = scratch_for(inner * (grid.length + grid.filters), type);
    PyObject *out = scratch == NULL ? NULL : PyArray_ZEROS(2, shape, type, 0);
    if (out == NULL) {
        free(scratch);
        return NULL;
    }
    void *from = DATA(args[0]), *given = DATA(g), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    if (type == NPY_FLOAT) {
        convolve_weight_float(from, given, to, scratch, &grid);
    }
    else {
        convolve_weight_double(from, given, to, scratch, &grid);
    }
    NPY_END_THREADS;
    free(scratch);
    return out;
}

/* convolve_input(images, offsets, length, weight, g) -> True: adds to flat images, which are zero before. */
static PyObject *fused_convolve_input(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Grid grid;
    (void)module;
    if (!takes(count, 5, "convolve_input")) {
        return NULL;
    }
    if (!describe_grid(args[0], args[1], args[2], &grid)) {
        return none_unless_error();
    }
    int type = TYPE(args[0]);
    npy_intp inner = grid.channels * grid.places;
    PyObject *weight = args[3], *g = args[4];
    if (!is_writeable(args[0]) || !is_plain(weight) || TYPE(weight) != type || NDIM(weight) != 2 || DIM(weight, 1) != inner) {
        Py_RETURN_NONE;
    }
    grid.filters = DIM(weight, 0);
    if (!has(g, type, grid.images * grid.filters * grid.length)) {
        Py_RETURN_NONE;
    }
    void *scratch = scratch_for(inner * grid.length, type);
    if (scratch == NULL) {
        return NULL;
    }
    void *to = DATA(args[0]), *by = DATA(weight), *given = DATA(g);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    if (type == NPY_FLOAT) {
        convolve_input_float(given, by, to, scratch, &grid);
    }
    else {
        convolve_input_double(given, by, to, scratch, &grid);
    }
    NPY_END_THREADS;
    free(scratch);
    Py_RETURN_TRUE;
}

/* ---------------------------------------------------------------------------------------------- module */

#define FAST(name) {#name, (PyCFunction)(void (*)(void))fused_##name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    FAST(add_scaled),
    FAST(threshold_backward),
    FAST(masked_fill),
    FAST(nll_losses),
    FAST(nll_gradient),
    FAST(lerp),
    FAST(addcmul),
    FAST(addcdiv),
    FAST(add_row),
    FAST(sum_columns),
    FAST(sum_at_rows),
    {"softmax", fused_softmax, METH_O, NULL},
    FAST(softmax_backward),
    {"log_softmax", fused_log_softmax, METH_O, NULL},
    FAST(log_softmax_backward),
    FAST(layer_norm),
    FAST(layer_norm_backward),
    FAST(clamp),
    {"row_sums", fused_row_sums, METH_O, NULL},
    {"units", fused_units, METH_O, NULL},
    FAST(normals),
    {"exp", fused_exp, METH_O, NULL},
    {"sigmoid", fused_sigmoid, METH_O, NULL},
    {"silu", fused_silu, METH_O, NULL},
    {"gelu", fused_gelu, METH_O, NULL},
    FAST(gelu_backward),
    FAST(convolve),
    FAST(convolve_weight),
    FAST(convolve_input),
    FAST(lstm_forward),
    FAST(lstm_backward),
    {NULL, NULL, 0, NULL},
};

static int find_loops(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) {
        return -1;
    }
    int failed =
        find_loop(numpy, "add", NPY_FLOAT, &add_f32) < 0 || find_loop(numpy, "add", NPY_DOUBLE, &add_f64) < 0 ||
        find_loop(numpy, "maximum", NPY_FLOAT, &maximum_f32) < 0 || find_loop(numpy, "maximum", NPY_DOUBLE, &maximum_f64) < 0 ||
        find_loop(numpy, "exp", NPY_FLOAT, &exp_f32) < 0 || find_loop(numpy, "exp", NPY_DOUBLE, &exp_f64) < 0 ||
        find_loop(numpy, "log", NPY_FLOAT, &log_f32) < 0 || find_loop(numpy, "log", NPY_DOUBLE, &log_f64) < 0 ||
        find_loop(numpy, "matmul", NPY_FLOAT, &matmul_f32) < 0 || find_loop(numpy, "matmul", NPY_DOUBLE, &matmul_f64) < 0 ||
        find_loop(numpy, "tanh", NPY_FLOAT, &tanh_f32) < 0;
    Py_DECREF(numpy);
    return failed ? -1 : 0;
}

static int prepare(PyObject *module)
{
    (void)module;
    if (PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0) {
        return -1;
    }
    if (PyArray_GetNDArrayCFeatureVersion() < FIRST_VERSION_WITH_WHOLE_ROWS) {
        longest_row = BUFFER_SIZE;
    }
    return find_loops();
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, prepare},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_v2._ops._fused",
    .m_doc = "Fused loops; their NumPy twins are the kernels that call them.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__fused(void)
{
    return PyModuleDef_Init(&definition);
}
