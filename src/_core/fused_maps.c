/* Fused loops that map elements of arrays to those of a new array: activations, losses, selections, remainders, conversions. */

#include "fused.h"
#include "fused_exp.h"

#define FAMILY "fused_map_kernels.h"
#include "fused_both_types.h"

#define MOST_ARRAYS 3
#define MOST_NUMBERS 3

typedef void (*FloatMap)(const float *const *, const float *, float *, npy_intp);
typedef void (*DoubleMap)(const double *const *, const double *, double *, npy_intp);

/* A loop over arrays of one shape and dtype, and numbers. `of_double` is NULL if there is none for float64. */
static PyObject *mapped(PyObject *const *args, Py_ssize_t count, const char *name, int arrays, int numbers, FloatMap of_float,
                        DoubleMap of_double)
{
    if (!takes(count, arrays + numbers, name)) {
        return NULL;
    }
    PyObject *x = args[0];
    double given[MOST_NUMBERS] = {0};
    if (!is_real(x) || (of_double == NULL && TYPE(x) != NPY_FLOAT)) {
        Py_RETURN_NONE;
    }
    for (int i = 1; i < arrays; i++) {
        if (!is_like(args[i], x)) {
            Py_RETURN_NONE;
        }
    }
    for (int i = 0; i < numbers; i++) {
        if (!is_number(args[arrays + i], &given[i])) {
            Py_RETURN_NONE;
        }
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = SIZE(x);
    void *in[MOST_ARRAYS] = {NULL}, *to = DATA(out);
    for (int i = 0; i < arrays; i++) {
        in[i] = DATA(args[i]);
    }
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (TYPE(x) == NPY_FLOAT) {
        const float singles[MOST_NUMBERS] = {(float)given[0], (float)given[1], (float)given[2]};
        of_float((const float *const *)in, singles, to, n);
    }
    else {
        of_double((const double *const *)in, given, to, n);
    }
    NPY_END_THREADS;
    return out;
}

#define MAPS(name, arrays, numbers, of_float, of_double)                                                \
    static PyObject *fused_##name(PyObject *module, PyObject *const *args, Py_ssize_t count)            \
    {                                                                                                   \
        (void)module;                                                                                   \
        return mapped(args, count, #name, arrays, numbers, of_float, of_double);                        \
    }
#define MAPS_BOTH(name, arrays, numbers) MAPS(name, arrays, numbers, name##_float, name##_double)
#define MAPS_FLOAT(name, arrays, numbers) MAPS(name, arrays, numbers, name##_float, NULL)

MAPS_BOTH(sign, 1, 0)
MAPS_BOTH(reciprocal, 1, 0)
MAPS_BOTH(rsqrt, 1, 0)
MAPS_BOTH(leaky_relu, 1, 1)
MAPS_BOTH(hardswish, 1, 0)
MAPS_BOTH(leaky_relu_backward, 2, 1)
MAPS_BOTH(hardtanh_backward, 2, 2)
MAPS_BOTH(hardswish_backward, 2, 0)
MAPS_BOTH(sigmoid_backward, 2, 0)
MAPS_BOTH(tanh_backward, 2, 0)
MAPS_BOTH(squared_difference, 2, 0)
MAPS_BOTH(smooth_l1, 2, 2)
MAPS_BOTH(lerp_by, 3, 0)
MAPS_FLOAT(log, 1, 0)
MAPS_FLOAT(log1p, 1, 0)
MAPS_FLOAT(expm1, 1, 0)
MAPS_FLOAT(erf, 1, 0)
MAPS_FLOAT(elu, 1, 3)
MAPS_FLOAT(softplus, 1, 2)
MAPS_FLOAT(mish, 1, 0)
MAPS_FLOAT(elu_backward, 2, 3)
MAPS_FLOAT(softplus_backward, 2, 2)
MAPS_FLOAT(silu_backward, 2, 0)
MAPS_FLOAT(mish_backward, 2, 0)

/* planes_affine(x, center, scale, shift): (x - center) * scale + shift for x (N, C, ...) and one number per channel C each; the shift may
 * be None. */
static PyObject *fused_planes_affine(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    void *shift;
    if (!takes(count, 4, "planes_affine")) {
        return NULL;
    }
    PyObject *x = args[0];
    if (!is_real(x) || NDIM(x) < 2 || SIZE(x) == 0) {
        Py_RETURN_NONE;
    }
    npy_intp channels = DIM(x, 1), planes = DIM(x, 0) * channels, n = SIZE(x) / planes;
    if (!has(args[1], TYPE(x), channels) || !has(args[2], TYPE(x), channels) || !optional(args[3], TYPE(x), channels, &shift)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        return NULL;
    }
    const void *from = DATA(x), *center = DATA(args[1]), *scale = DATA(args[2]);
    void *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(x));
    if (TYPE(x) == NPY_FLOAT) {
        planes_affine_float(from, center, scale, shift, to, planes, channels, n);
    }
    else {
        planes_affine_double(from, center, scale, shift, to, planes, channels, n);
    }
    NPY_END_THREADS;
    return out;
}

/* ---------------------------------------------------------------------------------------------- selections */

/* Elements are moved, not looked at: one loop per size of an element. A step is 1, or 0 for an array of one element. */
#define DEFINE_SELECT(type)                                                                             \
    CLONES static void select_##type(const npy_bool *mask, const type *yes, npy_intp yes_step, const type *no, \
                                     npy_intp no_step, type *out, npy_intp n)                           \
    {                                                                                                   \
        if (yes_step && no_step) {                                                                      \
            INDEPENDENT                                                                                 \
            for (npy_intp i = 0; i < n; i++) {                                                          \
                type a = yes[i], b = no[i];                                                             \
                out[i] = mask[i] ? a : b;                                                               \
            }                                                                                           \
        }                                                                                               \
        else if (yes_step) {                                                                            \
            type b = *no;                                                                               \
            INDEPENDENT                                                                                 \
            for (npy_intp i = 0; i < n; i++) {                                                          \
                type a = yes[i];                                                                        \
                out[i] = mask[i] ? a : b;                                                               \
            }                                                                                           \
        }                                                                                               \
        else {                                                                                          \
            type a = *yes;                                                                              \
            INDEPENDENT                                                                                 \
            for (npy_intp i = 0; i < n; i++) {                                                          \
                type b = no[no_step * i];                                                               \
                out[i] = mask[i] ? a : b;                                                               \
            }                                                                                           \
        }                                                                                               \
    }

DEFINE_SELECT(npy_uint8)
DEFINE_SELECT(npy_uint16)
DEFINE_SELECT(npy_uint32)
DEFINE_SELECT(npy_uint64)

/* select(mask, yes, no): elements of `yes` where the mask is true, else of `no`. Both have the shape of the mask, or one element and no
 * dimension. */
static PyObject *fused_select(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "select")) {
        return NULL;
    }
    PyObject *mask = args[0], *yes = args[1], *no = args[2];
    if (!is_plain(mask) || TYPE(mask) != NPY_BOOL || !is_plain(yes) || !is_plain(no)) {
        Py_RETURN_NONE;
    }
    PyArray_Descr *type = PyArray_DESCR((PyArrayObject *)yes);
    npy_intp size = PyArray_ITEMSIZE((PyArrayObject *)yes), n = SIZE(mask);
    if (PyDataType_REFCHK(type) || !PyArray_EquivTypes(type, PyArray_DESCR((PyArrayObject *)no)) ||
        (size != 1 && size != 2 && size != 4 && size != 8)) {
        Py_RETURN_NONE;
    }
    PyObject *const both[2] = {yes, no};
    npy_intp steps[2];
    for (int i = 0; i < 2; i++) {
        steps[i] = NDIM(both[i]) != 0;
        if (steps[i] && !PyArray_SAMESHAPE((PyArrayObject *)both[i], (PyArrayObject *)mask)) {
            Py_RETURN_NONE;
        }
    }
    Py_INCREF(type);
    PyObject *out = PyArray_NewFromDescr(&PyArray_Type, type, NDIM(mask), PyArray_DIMS((PyArrayObject *)mask), NULL, NULL, 0, NULL);
    if (out == NULL) {
        return NULL;
    }
    const void *from = DATA(yes), *other = DATA(no);
    const npy_bool *chosen = DATA(mask);
    void *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (size == 1) {
        select_npy_uint8(chosen, from, steps[0], other, steps[1], to, n);
    }
    else if (size == 2) {
        select_npy_uint16(chosen, from, steps[0], other, steps[1], to, n);
    }
    else if (size == 4) {
        select_npy_uint32(chosen, from, steps[0], other, steps[1], to, n);
    }
    else {
        select_npy_uint64(chosen, from, steps[0], other, steps[1], to, n);
    }
    NPY_END_THREADS;
    return out;
}

/* ---------------------------------------------------------------------------------------------- remainders, float32 */

#define MOST_QUOTIENT 536870912.0 /* 2^29: quotient times divisor is exact in double */

/* a - trunc(a / b) * b, exactly; `is_hard` if that needs more than a double. */
ALWAYS_INLINE float easy_fmod(float a, float b, int *is_hard)
{
    double x = a, y = b, quotient = trunc(x / y);
    double rest = x - quotient * y, size = fabs(y);
    *is_hard |= !(fabs(quotient) < MOST_QUOTIENT) || !(size <= 3.4028234663852886e38);
    rest = rest != 0 && (rest < 0) != (x < 0) ? rest + (x < 0 ? -size : size) : rest; /* the quotient was rounded up */
    rest = fabs(rest) >= size ? rest - (x < 0 ? -size : size) : rest;
    return (float)rest;
}

/* As NumPy has it: the remainder has the sign of the divisor, also where it is zero. */
ALWAYS_INLINE float remainder_from(float rest, float b)
{
    float turned = (b < 0) != (rest < 0) ? rest + b : rest;
    return rest != 0 ? turned : copysignf(0.0f, b);
}

ALWAYS_INLINE float quotient_from(float rest, float a, float b)
{
    float quotient = (a - rest) / b;
    quotient = rest != 0 && (b < 0) != (rest < 0) ? quotient - 1.0f : quotient;
    float whole = floorf(quotient);
    whole = quotient - whole > 0.5f ? whole + 1.0f : whole;
    return quotient != 0 ? whole : copysignf(0.0f, a / b);
}

static float hard_remainder(float a, float b)
{
    return b == 0 ? NAN : remainder_from(fmodf(a, b), b);
}

static float hard_quotient(float a, float b)
{
    return b == 0 ? a / b : quotient_from(fmodf(a, b), a, b);
}

/* Whether all of a block could be divided. A step is 1, or 0 for one number. */
#define DEFINE_DIVISION(name, result)                                                                   \
    CLONES static int name##_block(const float *a, const float *b, npy_intp b_step, float *out, npy_intp n) \
    {                                                                                                   \
        int is_hard = 0;                                                                                \
        INDEPENDENT                                                                                     \
        for (npy_intp i = 0; i < n; i++) {                                                              \
            float x = a[i], y = b[i * b_step], rest = easy_fmod(x, y, &is_hard);                        \
            out[i] = (result);                                                                          \
        }                                                                                               \
        return !is_hard;                                                                                \
    }

DEFINE_DIVISION(remainder, remainder_from(rest, y))
DEFINE_DIVISION(quotient, quotient_from(rest, x, y))

/* remainder(a, b, floor): remainders of float32 arrays, or with `floor` the quotients rounded down; b has the shape of a, or one element. */
static PyObject *fused_remainder(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "remainder")) {
        return NULL;
    }
    PyObject *a = args[0], *b = args[1];
    int floors = PyObject_IsTrue(args[2]);
    if (floors < 0) {
        return NULL;
    }
    if (!is_plain(a) || TYPE(a) != NPY_FLOAT || !is_plain(b) || TYPE(b) != NPY_FLOAT || (NDIM(b) != 0 && !is_like(b, a))) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(a);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = SIZE(a), step = NDIM(b) != 0;
    const float *x = DATA(a), *y = DATA(b);
    float *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    for (npy_intp i = 0; i < n; i += BLOCK) {
        npy_intp part = n - i < BLOCK ? n - i : BLOCK;
        const float *divisors = y + i * step;
        if (!(floors ? quotient_block : remainder_block)(x + i, divisors, step, to + i, part)) {
            for (npy_intp k = 0; k < part; k++) {
                to[i + k] = (floors ? hard_quotient : hard_remainder)(x[i + k], divisors[k * step]);
            }
        }
    }
    NPY_END_THREADS;
    return out;
}

/* ---------------------------------------------------------------------------------------------- conversions to half precision */

CLONES static void to_bfloat16(const float *x, npy_uint16 *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        npy_uint32 bits = bits_of(x[i]);
        npy_uint32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16; /* half to even */
        npy_uint32 nan = ((bits >> 16) & 0x8000u) | 0x7fc0u;
        out[i] = (npy_uint16)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    }
}

CLONES static void from_bfloat16(const npy_uint16 *x, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = from_bits((npy_uint32)x[i] << 16);
    }
}

/* Half to even by the addition of a float whose last bit is the last bit that is kept. Overflow gives infinity, NaN stays NaN. */
CLONES static void to_float16(const float *x, npy_uint16 *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        npy_uint32 bits = bits_of(x[i]), size = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
        npy_uint32 normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
        npy_uint32 denormal = bits_of(from_bits(size) + 0.5f) - 0x3f000000u;
        npy_uint32 half = size < 0x38800000u ? denormal : normal;
        half = size >= 0x477ff000u ? 0x7c00u : half;
        half = size > 0x7f800000u ? 0x7e00u : half;
        out[i] = (npy_uint16)(half | sign);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* The same with the processor's own instruction, 4 times as fast. The last numbers are left to the loop above. */
__attribute__((target("avx,f16c"))) static npy_intp to_float16_by_eights(const float *x, npy_uint16 *out, npy_intp n)
{
    npy_intp i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128((__m128i *)(out + i), halves);
    }
    return i;
}

static void as_float16(const float *x, npy_uint16 *out, npy_intp n)
{
    npy_intp done = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c") ? to_float16_by_eights(x, out, n) : 0;
    to_float16(x + done, out + done, n - done);
}
#else
static void as_float16(const float *x, npy_uint16 *out, npy_intp n)
{
    to_float16(x, out, n);
}
#endif

CLONES static void from_float16(const npy_uint16 *x, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        npy_uint32 size = x[i] & 0x7fffu, sign = (npy_uint32)(x[i] & 0x8000u) << 16;
        npy_uint32 normal = (size << 13) + 0x38000000u;
        normal = size >= 0x7c00u ? normal + 0x38000000u : normal; /* infinity and NaN */
        float denormal = (float)(npy_int32)size * 5.9604644775390625e-08f; /* 2^-24 */
        out[i] = from_bits((size < 0x400u ? bits_of(denormal) : normal) | sign);
    }
}

/* converted(x, like): a float32 array in the half precision of the array `like`, or the reverse. */
static PyObject *fused_converted(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "converted")) {
        return NULL;
    }
    PyObject *x = args[0], *like = args[1];
    if (!is_plain(x) || !PyArray_CheckExact(like)) {
        Py_RETURN_NONE;
    }
    int narrows = TYPE(x) == NPY_FLOAT;
    if (!narrows && TYPE(like) != NPY_FLOAT) {
        Py_RETURN_NONE;
    }
    PyArray_Descr *half = PyArray_DESCR((PyArrayObject *)(narrows ? like : x));
    int is_float16 = half->type_num == NPY_HALF;
    if (!is_float16 && !(PyTypeNum_ISUSERDEF(half->type_num) && PyDataType_ELSIZE(half) == 2 && half->typeobj != NULL &&
                         strstr(half->typeobj->tp_name, "bfloat16") != NULL)) {
        Py_RETURN_NONE;
    }
    PyArray_Descr *type = PyArray_DESCR((PyArrayObject *)like);
    if (!PyArray_ISNBO(type->byteorder)) {
        Py_RETURN_NONE;
    }
    Py_INCREF(type);
    PyObject *out = PyArray_NewFromDescr(&PyArray_Type, type, NDIM(x), PyArray_DIMS((PyArrayObject *)x), NULL, NULL, 0, NULL);
    if (out == NULL) {
        return NULL;
    }
    npy_intp n = SIZE(x);
    const void *from = DATA(x);
    void *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    if (narrows) {
        (is_float16 ? as_float16 : to_bfloat16)(from, to, n);
    }
    else {
        (is_float16 ? from_float16 : from_bfloat16)(from, to, n);
    }
    NPY_END_THREADS;
    return out;
}

PyMethodDef map_functions[] = {
    FAST(sign),
    FAST(reciprocal),
    FAST(rsqrt),
    FAST(leaky_relu),
    FAST(hardswish),
    FAST(leaky_relu_backward),
    FAST(hardtanh_backward),
    FAST(hardswish_backward),
    FAST(sigmoid_backward),
    FAST(tanh_backward),
    FAST(squared_difference),
    FAST(smooth_l1),
    FAST(lerp_by),
    FAST(log),
    FAST(log1p),
    FAST(expm1),
    FAST(erf),
    FAST(elu),
    FAST(softplus),
    FAST(mish),
    FAST(elu_backward),
    FAST(softplus_backward),
    FAST(silu_backward),
    FAST(mish_backward),
    FAST(planes_affine),
    FAST(select),
    FAST(remainder),
    FAST(converted),
    {NULL, NULL, 0, NULL},
};
