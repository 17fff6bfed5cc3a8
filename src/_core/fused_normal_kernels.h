/* Normal random numbers from uniform ones, for one instruction set: included with TARGET (attributes of a function), VARIANT(name)
 * (the name of a function for it) and FMA(a, b, c) (a * b + c of float32, rounded once) defined. `_Float32Math` of _sampling.py is the
 * definition. */

/* sqrt(-2 log(u)) for u in (0, 1]. */
TARGET static void VARIANT(radius_loop)(const float *uniforms, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        float u = 1.0f - uniforms[i], x, y, z;
        npy_int32 bits;
        memcpy(&bits, &u, sizeof bits);
        npy_int32 exponent = bits >> 23;
        bits &= 0x7FFFFF;
        npy_int32 upper = bits >= 0x3504F3; /* the mantissa of sqrt(1/2): below it [1, 2), from it on [1/2, 1) */
        exponent += upper - 127;
        bits = bits - (upper << 23) + 0x3F800000;
        memcpy(&x, &bits, sizeof x);
        x = x - 1.0f;
        z = x * x;
        y = FMA(x, 7.0376836292e-2f, -1.1514610310e-1f);
        y = FMA(y, x, 1.1676998740e-1f);
        y = FMA(y, x, -1.2420140846e-1f);
        y = FMA(y, x, 1.4249322787e-1f);
        y = FMA(y, x, -1.6668057665e-1f);
        y = FMA(y, x, 2.0000714765e-1f);
        y = FMA(y, x, -2.4999993993e-1f);
        y = FMA(y, x, 3.3333331174e-1f);
        y = y * x;
        float e = (float)exponent;
        y = FMA(y, z, e * -2.12194440e-4f);
        y = FMA(z, -0.5f, y);
        x = x + y;
        x = FMA(e, 0.693359375f, x);
        out[i] = sqrtf(x * -2.0f);
    }
}

/* cos and sin of 2 pi u for u in [0, 1). */
TARGET static void VARIANT(circle_loop)(const float *uniforms, float *cos, float *sin, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        float x = uniforms[i] * 6.283185307179586f;
        float y = x * 1.2732395447351628f;
        npy_int32 octant = ((npy_int32)y + 1) & -2;
        float j = (float)octant;
        x = FMA(j, -0.78515625f, x);
        x = FMA(j, -2.4187564849853515625e-4f, x);
        x = FMA(j, -3.77489497744594108e-8f, x);
        float z = x * x;
        float c = FMA(z, 2.443315711809948e-5f, -1.388731625493765e-3f);
        c = FMA(c, z, 4.166664568298827e-2f);
        c = c * z;
        c = FMA(c, z, z * -0.5f);
        c = c + 1.0f;
        float s = FMA(z, -1.9515295891e-4f, 8.3321608736e-3f);
        s = FMA(s, z, -1.6666654611e-1f);
        s = s * z;
        s = FMA(s, x, x);
        int swapped = (octant & 2) != 0;
        float from_cos = swapped ? s : c, from_sin = swapped ? c : s;
        cos[i] = ((octant + 2) & 4) != 0 ? -from_cos : from_cos;
        sin[i] = (octant & 4) != 0 ? -from_sin : from_sin;
    }
}

TARGET static void VARIANT(scaled_products)(const float *a, const float *b, float mean, float std, float *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = FMA(a[i] * b[i], std, mean);
    }
}

#define NORMAL_ROWS 64

/* Rows of 16 uniforms to rows of 16 normals: eight radii, eight angles. */
static void VARIANT(normals_loop)(const float *u, float mean, float std, float *out, npy_intp rows)
{
    float first[8 * NORMAL_ROWS], second[8 * NORMAL_ROWS], radius[8 * NORMAL_ROWS];
    for (npy_intp i = 0; i < rows; i += NORMAL_ROWS) {
        npy_intp part = rows - i < NORMAL_ROWS ? rows - i : NORMAL_ROWS;
        for (npy_intp k = 0; k < part; k++) {
            memcpy(first + 8 * k, u + 16 * (i + k), 8 * sizeof(float));
            memcpy(second + 8 * k, u + 16 * (i + k) + 8, 8 * sizeof(float));
        }
        VARIANT(radius_loop)(first, radius, 8 * part);
        VARIANT(circle_loop)(second, first, second, 8 * part);
        VARIANT(scaled_products)(first, radius, mean, std, first, 8 * part);
        VARIANT(scaled_products)(second, radius, mean, std, second, 8 * part);
        for (npy_intp k = 0; k < part; k++) {
            memcpy(out + 16 * (i + k), first + 8 * k, 8 * sizeof(float));
            memcpy(out + 16 * (i + k) + 8, second + 8 * k, 8 * sizeof(float));
        }
    }
}
