/* exp, log, erf and their kin of float32, spelled out: their twins in _ops/_exp.py, _log.py and _erf.py do the same operations in the same
 * order. */

ALWAYS_INLINE float from_bits(npy_uint32 bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* exp(r) - 1 for x = n ln(2) + r, where n is an integer and |r| <= ln(2) / 2. The constants are those of _ops/_exp.py. */
ALWAYS_INLINE float exp_of_rest(float x, npy_int32 *exponent)
{
    const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float n = (x * 1.44269504f + to_integer) - to_integer;
    float r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = r * 1.9875691500e-4f;
    p = (p + 1.3981999507e-3f) * r;
    p = (p + 8.3334519073e-3f) * r;
    p = (p + 4.1665795894e-2f) * r;
    p = (p + 1.6666665459e-1f) * r;
    p = (p + 5.0000001201e-1f) * (r * r);
    *exponent = (npy_int32)(n == n ? n : 0.0f);
    return p + r;
}

/* exp(x) = 2^n exp(r) */
ALWAYS_INLINE float exp_of(float x)
{
    float bounded = x < -104.0f ? 0.0f : x; /* not -104: numbers that underflow take long to multiply, and masks have many */
    bounded = bounded > 89.0f ? 89.0f : bounded;
    npy_int32 exponent;
    float p = exp_of_rest(bounded, &exponent) + 1.0f;
    npy_int32 half = exponent >> 1; /* in two steps: the result may be a denormal number, or overflow */
    float scaled = p * from_bits((npy_uint32)(half + 127) << 23);
    scaled = scaled * from_bits((npy_uint32)(exponent - half + 127) << 23);
    return x < -104.0f ? 0.0f : scaled;
}

ALWAYS_INLINE npy_uint32 bits_of(float value)
{
    npy_uint32 bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

ALWAYS_INLINE float sigmoid_of(float x)
{
    return 1.0f / (exp_of(-x) + 1.0f);
}

/* exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1). Above 30 the 1 does not count. */
ALWAYS_INLINE float expm1_of(float x)
{
    float bounded = x < -35.0f ? -35.0f : x;
    bounded = bounded > 30.0f ? 30.0f : bounded;
    npy_int32 exponent;
    float p = exp_of_rest(bounded, &exponent);
    float scale = from_bits((npy_uint32)(exponent + 127) << 23);
    float result = scale * p + (scale - 1.0f);
    result = x > 30.0f ? exp_of(x) : result;
    return x == 0.0f ? x : result;
}

/* log(u) + rest for a positive normal number u = 2^e (1 + f), where 1 + f is between sqrt(1/2) and sqrt(2). */
ALWAYS_INLINE float log_of_parts(float u, float rest, float more_exponent)
{
    npy_int32 exponent = (npy_int32)(bits_of(u) - 0x3f3504f3u) >> 23;
    float f = from_bits(bits_of(u) - ((npy_uint32)exponent << 23)) - 1.0f;
    float e = (float)exponent + more_exponent;
    float square = f * f;
    float p = f * 0.0674649178981781f;
    p = (p + -0.11675615608692169f) * f;
    p = (p + 0.11888211220502853f) * f;
    p = (p + -0.12405597418546677f) * f;
    p = (p + 0.142195463180542f) * f;
    p = (p + -0.16667994856834412f) * f;
    p = (p + 0.2000211924314499f) * f;
    p = (p + -0.25000008940696716f) * f;
    p = (p + 0.3333331346511841f) * (f * square);
    p = p + e * -2.12194440e-4f;
    p = p - square * 0.5f;
    p = p + rest;
    return (f + p) + e * 0.693359375f;
}

ALWAYS_INLINE float log_of(float x)
{
    int is_small = x < 1.17549435e-38f; /* denormal, zero or negative */
    float result = log_of_parts(is_small ? x * 33554432.0f : x, 0.0f, is_small ? -25.0f : 0.0f);
    result = x == 0.0f ? -INFINITY : result;
    result = x < 0.0f ? NAN : result;
    return x < INFINITY ? result : x; /* infinity and NaN */
}

/* log(1 + x): the rounding of 1 + x is made good by a term of first order. */
ALWAYS_INLINE float log1p_of(float x)
{
    float u = 1.0f + x;
    float lost = x >= 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    float result = log_of_parts(u, lost / u, 0.0f);
    result = x == 0.0f ? x : result;
    result = x == -1.0f ? -INFINITY : result;
    result = x < -1.0f ? NAN : result;
    return x < INFINITY ? result : x;
}

/* tanh(log(1 + exp(x))) = t / (t + 2) with t = exp(x) (exp(x) + 2); 1 from 20 on. */
ALWAYS_INLINE float tanh_of_softplus(float x)
{
    float e = exp_of(x > 20.0f ? 20.0f : x);
    float t = e * (e + 2.0f);
    return t / (t + 2.0f);
}

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
