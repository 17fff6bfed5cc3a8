/* Loops over elements, for one floating-point type: see fused_both_types.h. */

CLONES static void FN(lerp_near)(const REAL *start, const REAL *end, REAL weight, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = start[i] + (end[i] - start[i]) * weight;
    }
}

CLONES static void FN(lerp_far)(const REAL *start, const REAL *end, REAL complement, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = end[i] - (end[i] - start[i]) * complement;
    }
}

CLONES static void FN(addcmul)(const REAL *self, const REAL *a, const REAL *b, REAL value, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = self[i] + (a[i] * b[i]) * value;
    }
}

CLONES static void FN(addcdiv)(const REAL *self, const REAL *a, const REAL *b, REAL value, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = self[i] + (a[i] * value) / b[i];
    }
}

CLONES static void FN(add_scaled)(const REAL *self, const REAL *other, REAL alpha, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = self[i] + other[i] * alpha;
    }
}

CLONES static void FN(threshold_backward)(const REAL *g, const REAL *x, REAL threshold, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = x[i] <= threshold ? 0 : g[i]; /* NaN is not below the threshold */
    }
}

CLONES static void FN(clamp)(const REAL *x, REAL low, REAL high, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        REAL bounded = x[i] <= low ? low : x[i]; /* of two zeros the bound, as NumPy's maximum and minimum have it; NaN stays */
        out[i] = bounded >= high ? high : bounded;
    }
}

/* A mask of n elements over `count` times n numbers. */
CLONES static void FN(masked_fill)(const REAL *x, const npy_bool *mask, REAL value, REAL *out, npy_intp count, npy_intp n)
{
    for (npy_intp i = 0; i < count; i++, x += n, out += n) {
        INDEPENDENT
        for (npy_intp j = 0; j < n; j++) {
            out[j] = mask[j] ? value : x[j];
        }
    }
}
