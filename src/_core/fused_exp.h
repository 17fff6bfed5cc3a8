/* exp of float32, spelled out: its twin, _ops/_exp.py, does the same operations in the same order. */

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
