/* Fused loops of random numbers: the engine of torch's CPU generator, and uniform and normal numbers from it.
 *
 * The engine is an array of 625 words: the 624 of MT19937, and how many of them were drawn. Its twin is NumPy's; _sampling.py is the
 * twin of the distributions. */

#include "fused.h"

#define N_WORDS 624
#define MIDDLE 397

/* The next 624 words. */
CLONES static void refill(npy_uint32 *words)
{
    /* A loop reads at most one word that it writes, 227 words before: further away than a vector is long. */
    INDEPENDENT
    for (int i = 0; i < N_WORDS - MIDDLE; i++) {
        npy_uint32 y = (words[i] & 0x80000000u) | (words[i + 1] & 0x7FFFFFFFu);
        words[i] = words[i + MIDDLE] ^ (y >> 1) ^ (-(y & 1) & 0x9908B0DFu);
    }
    INDEPENDENT
    for (int i = N_WORDS - MIDDLE; i < N_WORDS - 1; i++) {
        npy_uint32 y = (words[i] & 0x80000000u) | (words[i + 1] & 0x7FFFFFFFu);
        words[i] = words[i + MIDDLE - N_WORDS] ^ (y >> 1) ^ (-(y & 1) & 0x9908B0DFu);
    }
    npy_uint32 y = (words[N_WORDS - 1] & 0x80000000u) | (words[0] & 0x7FFFFFFFu);
    words[N_WORDS - 1] = words[MIDDLE - 1] ^ (y >> 1) ^ (-(y & 1) & 0x9908B0DFu);
}

ALWAYS_INLINE npy_uint32 tempered(npy_uint32 y)
{
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680u;
    y ^= (y << 15) & 0xEFC60000u;
    return y ^ (y >> 18);
}

CLONES static void draws_of(const npy_uint32 *words, npy_uint64 *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = tempered(words[i]);
    }
}

/* The low 24 bits of each draw as a number in [0, 1). */
CLONES static void units_of(const npy_uint32 *words, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (float)(npy_int32)(tempered(words[i]) & 0xFFFFFF) * 5.9604644775390625e-8f;
    }
}

/* ---------------------------------------------------------------------------------------------- normal random numbers */

/* A product of float32 numbers is exact in float64: its sum with a third, rounded to float32, is that of a fused multiply-add. */
#define FMA(a, b, c) ((float)((double)(a) * (double)(b) + (double)(c)))
#define TARGET CLONES
#define VARIANT(name) name##_portable
#include "fused_normal_kernels.h"
#undef FMA
#undef TARGET
#undef VARIANT

#if defined(__x86_64__) && defined(__GNUC__)
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#define TARGET __attribute__((target("avx2,fma")))
#define VARIANT(name) name##_fma
#include "fused_normal_kernels.h"
#undef FMA
#undef TARGET
#undef VARIANT
#define HAS_FMA() (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
#else
#define HAS_FMA() 0
#define normals_loop_fma normals_loop_portable
#endif

/* ---------------------------------------------------------------------------------------------- functions */

/* The words of an engine; NULL with an error set. */
static npy_uint32 *engine_of(PyObject *object)
{
    if (!has(object, NPY_UINT32, N_WORDS + 1) || !is_writeable(object) || ((npy_uint32 *)DATA(object))[N_WORDS] > N_WORDS) {
        PyErr_SetString(PyExc_TypeError, "expected the 625 words of an engine");
        return NULL;
    }
    return DATA(object);
}

/* A new array of a type for the count that is the second of two arguments, and the words; NULL with an error set. */
static PyObject *output_of_draws(PyObject *const *args, Py_ssize_t count, const char *name, int type, npy_uint32 **words)
{
    if (!takes(count, 2, name)) {
        return NULL;
    }
    *words = engine_of(args[0]);
    npy_intp n = *words == NULL ? -1 : PyLong_AsSsize_t(args[1]);
    if (n < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
        }
        return NULL;
    }
    return PyArray_SimpleNew(1, &n, type);
}

/* How many of n words can be drawn without making new ones, which is done first if there are none. */
static npy_intp ready(npy_uint32 *words, npy_intp n)
{
    if (words[N_WORDS] == N_WORDS) {
        refill(words);
        words[N_WORDS] = 0;
    }
    npy_intp left = N_WORDS - (npy_intp)words[N_WORDS];
    return left < n ? left : n;
}

/* seed_engine(words, seed): the words of a seed below 2^32. */
static PyObject *fused_seed_engine(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "seed_engine")) {
        return NULL;
    }
    unsigned long seed = PyLong_AsUnsignedLong(args[1]);
    if (seed == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    npy_uint32 *words = engine_of(args[0]);
    if (words == NULL) {
        return NULL;
    }
    words[0] = (npy_uint32)seed;
    for (npy_uint32 i = 1; i < N_WORDS; i++) {
        words[i] = 1812433253u * (words[i - 1] ^ (words[i - 1] >> 30)) + i;
    }
    words[N_WORDS] = N_WORDS;
    Py_RETURN_NONE;
}

/* draws(words, n): the next n draws of 32 bits, as uint64. */
static PyObject *fused_draws(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    npy_uint32 *words;
    (void)module;
    PyObject *out = output_of_draws(args, count, "draws", NPY_UINT64, &words);
    if (out == NULL) {
        return NULL;
    }
    npy_uint64 *to = DATA(out);
    for (npy_intp n = SIZE(out); n > 0;) { /* no other thread may draw meanwhile: the interpreter's lock is kept */
        npy_intp part = ready(words, n);
        draws_of(words + words[N_WORDS], to, part);
        words[N_WORDS] += (npy_uint32)part, to += part, n -= part;
    }
    return out;
}

/* units(words, n): the low 24 bits of the next n draws as float32 in [0, 1). */
static PyObject *fused_units(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    npy_uint32 *words;
    (void)module;
    PyObject *out = output_of_draws(args, count, "units", NPY_FLOAT, &words);
    if (out == NULL) {
        return NULL;
    }
    float *to = DATA(out);
    for (npy_intp n = SIZE(out); n > 0;) {
        npy_intp part = ready(words, n);
        units_of(words + words[N_WORDS], to, part);
        words[N_WORDS] += (npy_uint32)part, to += part, n -= part;
    }
    return out;
}

static npy_uint32 next_draw(npy_uint32 *words)
{
    ready(words, 1);
    return tempered(words[words[N_WORDS]++]);
}

/* double_units(words, n): the low 53 bits of n draws of 64 bits, the higher half first, as float64 in [0, 1). */
static PyObject *fused_double_units(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    npy_uint32 *words;
    (void)module;
    PyObject *out = output_of_draws(args, count, "double_units", NPY_DOUBLE, &words);
    if (out == NULL) {
        return NULL;
    }
    double *to = DATA(out);
    for (npy_intp n = SIZE(out), i = 0; i < n; i++) {
        npy_int64 high = next_draw(words) & 0x1FFFFF;
        to[i] = (double)(high << 32 | (npy_int64)next_draw(words)) * 1.1102230246251565404e-16;
    }
    return out;
}

/* x * scale + shift, rounded once. */
static void fma_portable(const double *x, double scale, double shift, double *out, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++) {
        out[i] = fma(x[i], scale, shift);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static void fma_fast(const double *x, double scale, double shift, double *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = __builtin_fma(x[i], scale, shift);
    }
}
#else
#define fma_fast fma_portable
#endif

/* fma(x, scale, shift): x * scale + shift in float64, rounded once. */
static PyObject *fused_fma(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "fma")) {
        return NULL;
    }
    double scale, shift;
    if (!is_plain(args[0]) || TYPE(args[0]) != NPY_DOUBLE || !is_number(args[1], &scale) || !is_number(args[2], &shift)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(args[0]);
    if (out == NULL) {
        return NULL;
    }
    (HAS_FMA() ? fma_fast : fma_portable)(DATA(args[0]), scale, shift, DATA(out), SIZE(out));
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
    if (HAS_FMA()) {
        normals_loop_fma(from, (float)mean, (float)std, to, rows);
    }
    else {
        normals_loop_portable(from, (float)mean, (float)std, to, rows);
    }
    NPY_END_THREADS;
    return out;
}

/* normal_pairs(uniforms): uniform numbers, taken two by two, to standard normals, two by two. */
static PyObject *fused_normal_pairs(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 1, "normal_pairs")) {
        return NULL;
    }
    if (!is_plain(args[0]) || TYPE(args[0]) != NPY_DOUBLE || NDIM(args[0]) != 1 || SIZE(args[0]) % 2 != 0) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(args[0]);
    if (out == NULL) {
        return NULL;
    }
    enum { PAIRS = 512 };
    double radius[PAIRS], angle[PAIRS], cosine[PAIRS], sine[PAIRS];
    const double *from = DATA(args[0]);
    double *to = DATA(out);
    for (npy_intp left = SIZE(out) / 2, n; left > 0; left -= n, from += 2 * n, to += 2 * n) {
        n = left < PAIRS ? left : PAIRS;
        for (npy_intp i = 0; i < n; i++) {
            angle[i] = 6.283185307179586 * from[2 * i];
            radius[i] = -from[2 * i + 1];
        }
        apply(&log1p_f64, radius, radius, n, sizeof(double));
        apply(&cos_f64, angle, cosine, n, sizeof(double));
        apply(&sin_f64, angle, sine, n, sizeof(double));
        for (npy_intp i = 0; i < n; i++) {
            double r = sqrt(-2.0 * radius[i]);
            to[2 * i] = r * cosine[i];
            to[2 * i + 1] = r * sine[i];
        }
    }
    return out;
}

/* to_single(x): float64 to float32; what is too large becomes infinite without a warning. */
static PyObject *fused_to_single(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 1, "to_single")) {
        return NULL;
    }
    if (!is_plain(args[0]) || TYPE(args[0]) != NPY_DOUBLE) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(NDIM(args[0]), PyArray_DIMS((PyArrayObject *)args[0]), NPY_FLOAT);
    if (out == NULL) {
        return NULL;
    }
    const double *from = DATA(args[0]);
    float *to = DATA(out);
    for (npy_intp i = 0, n = SIZE(out); i < n; i++) {
        to[i] = (float)from[i];
    }
    return out;
}

PyMethodDef random_functions[] = {
    FAST(normal_pairs),
    FAST(to_single),
    FAST(seed_engine),
    FAST(draws),
    FAST(units),
    FAST(double_units),
    FAST(fma),
    FAST(normals),
    {NULL, NULL, 0, NULL},
};
