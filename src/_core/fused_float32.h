/* Loops over float32 whose arithmetic is spelled out: the exponential function and what is built on it, and normal random numbers.
 * Included once by fused_loops.c. Their twins, _ops/_exp.py and _sampling.py, do the same operations in the same order. */

/* ---------------------------------------------------------------------------------------------- exp */

ALWAYS_INLINE float from_bits(npy_uint32 bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* exp(x) = 2^n exp(r), |r| <= ln(2) / 2. The constants are those of _ops/_exp.py. */
ALWAYS_INLINE float exp_of(float x)
{
    const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float bounded = x < -104.0f ? -104.0f : x;
    bounded = bounded > 89.0f ? 89.0f : bounded;
    float n = (bounded * 1.44269504f + to_integer) - to_integer;
    float r = bounded - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = r * 1.9875691500e-4f;
    p = (p + 1.3981999507e-3f) * r;
    p = (p + 8.3334519073e-3f) * r;
    p = (p + 4.1665795894e-2f) * r;
    p = (p + 1.6666665459e-1f) * r;
    p = (p + 5.0000001201e-1f) * (r * r);
    p = (p + r) + 1.0f;
    npy_int32 exponent = (npy_int32)(n == n ? n : 0.0f);
    npy_int32 half = exponent >> 1; /* in two steps: the result may be a denormal number, or overflow */
    float scaled = p * from_bits((npy_uint32)(half + 127) << 23);
    return scaled * from_bits((npy_uint32)(exponent - half + 127) << 23);
}

CLONES static void exp_loop(const float *x, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = exp_of(x[i]);
    }
}

/* out = exp(x - less), row by row. */
CLONES static void shifted_exp_loop(const float *x, const float *less, float *out, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, x += cols, out += cols) {
        float difference = less[i];
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] = exp_of(x[j] - difference);
        }
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

/* ---------------------------------------------------------------------------------------------- normal random numbers */

/* A sum in float64, rounded to float32: a fused multiply-add of float32 numbers, whose product is exact in float64. */
ALWAYS_INLINE double single(double x)
{
    return (double)(float)x;
}

/* sqrt(-2 log(u)) for u in (0, 1]: `radius` of _sampling.py. */
ALWAYS_INLINE float radius_of(float u)
{
    npy_int32 bits, one_bits;
    memcpy(&bits, &u, sizeof bits);
    npy_int32 exponent = bits >> 23;
    bits &= 0x7FFFFF;
    npy_int32 upper = bits >= 0x3504F3;
    exponent += upper - 127;
    one_bits = bits - (upper << 23) + 0x3F800000;
    float mantissa;
    memcpy(&mantissa, &one_bits, sizeof mantissa);
    double x = (double)mantissa - 1.0;
    double z = single(x * x);
    double y = single(x * (double)7.0376836292e-2f + (double)-1.1514610310e-1f);
    y = single(y * x + (double)1.1676998740e-1f);
    y = single(y * x + (double)-1.2420140846e-1f);
    y = single(y * x + (double)1.4249322787e-1f);
    y = single(y * x + (double)-1.6668057665e-1f);
    y = single(y * x + (double)2.0000714765e-1f);
    y = single(y * x + (double)-2.4999993993e-1f);
    y = single(y * x + (double)3.3333331174e-1f);
    y = single(y * x);
    y = y * z;
    double e = (double)exponent;
    y = single(y + single(e * (double)-2.12194440e-4f));
    y = single(y - z * 0.5);
    x = single(x + y);
    x = single(x + e * (double)0.693359375f);
    return sqrtf((float)(x * -2.0));
}

/* cos and sin of 2 pi u for u in [0, 1): `circle` of _sampling.py. */
ALWAYS_INLINE void circle_of(float u, float *cos, float *sin)
{
    double x = single((double)u * (double)6.283185307179586f);
    double y = single(x * (double)1.2732395447351628f);
    npy_int32 octant = ((npy_int32)y + 1) & -2;
    double j = (double)octant;
    x = single(x + j * (double)-0.78515625f);
    x = single(x + j * (double)-2.4187564849853515625e-4f);
    x = single(x + j * (double)-3.77489497744594108e-8f);
    double z = single(x * x);
    double c = single(z * (double)2.443315711809948e-5f + (double)-1.388731625493765e-3f);
    c = single(c * z + (double)4.166664568298827e-2f);
    c = single(c * z);
    c = single(c * z - z * 0.5);
    c = c + 1.0;
    double s = single(z * (double)-1.9515295891e-4f + (double)8.3321608736e-3f);
    s = single(s * z + (double)-1.6666654611e-1f);
    s = single(s * z);
    s = s * x + x;
    float first = (float)c, second = (float)s;
    int swapped = (octant & 2) != 0;
    float from_cos = swapped ? second : first, from_sin = swapped ? first : second;
    *cos = ((octant + 2) & 4) != 0 ? -from_cos : from_cos;
    *sin = (octant & 4) != 0 ? -from_sin : from_sin;
}

/* The low 24 bits of each draw as a number in [0, 1). */
CLONES static void units_loop(const npy_uint64 *draws, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (float)(npy_int32)(draws[i] & 0xFFFFFF) * 5.9604644775390625e-8f;
    }
}

#define NORMAL_ROWS 64

CLONES static void radius_loop(const float *u, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = radius_of(1.0f - u[i]);
    }
}

CLONES static void circle_loop(const float *u, float *cos, float *sin, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        circle_of(u[i], cos + i, sin + i);
    }
}

CLONES static void scaled_products(const float *a, const float *b, double mean, double std, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (float)((double)(a[i] * b[i]) * std + mean);
    }
}

/* Rows of 16 uniforms to rows of 16 normals: eight radii, eight angles. */
static void normals_loop(const float *u, double mean, double std, float *out, npy_intp rows)
{
    float first[8 * NORMAL_ROWS], second[8 * NORMAL_ROWS], radius[8 * NORMAL_ROWS];
    for (npy_intp i = 0; i < rows; i += NORMAL_ROWS) {
        npy_intp part = rows - i < NORMAL_ROWS ? rows - i : NORMAL_ROWS;
        for (npy_intp k = 0; k < part; k++) {
            memcpy(first + 8 * k, u + 16 * (i + k), 8 * sizeof(float));
            memcpy(second + 8 * k, u + 16 * (i + k) + 8, 8 * sizeof(float));
        }
        radius_loop(first, radius, 8 * part);
        circle_loop(second, first, second, 8 * part);
        scaled_products(first, radius, mean, std, first, 8 * part);
        scaled_products(second, radius, mean, std, second, 8 * part);
        for (npy_intp k = 0; k < part; k++) {
            memcpy(out + 16 * (i + k), first + 8 * k, 8 * sizeof(float));
            memcpy(out + 16 * (i + k) + 8, second + 8 * k, 8 * sizeof(float));
        }
    }
}
