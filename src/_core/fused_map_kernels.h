/* Loops that map the elements of one, two or three arrays and some numbers to those of a new array, for one floating-point type: see
 * fused_both_types.h. `in` are the arrays, `numbers` what else the function depends on. Those with exp or log exist for float32 only. */

#define MAP_OF_ONE(name, expression)                                                                     \
    CLONES static void FN(name)(const REAL *const *in, const REAL *numbers, REAL *out, npy_intp n)       \
    {                                                                                                    \
        const REAL *first = in[0];                                                                       \
        const REAL p = numbers[0], q = numbers[1], r = numbers[2];                                       \
        (void)p, (void)q, (void)r;                                                                       \
        INDEPENDENT                                                                                      \
        for (npy_intp i = 0; i < n; i++) {                                                               \
            REAL x = first[i];                                                                           \
            out[i] = (expression);                                                                       \
        }                                                                                                \
    }

/* `g` is the element of the first array, `x` that of the second. */
#define MAP_OF_TWO(name, expression)                                                                     \
    CLONES static void FN(name)(const REAL *const *in, const REAL *numbers, REAL *out, npy_intp n)       \
    {                                                                                                    \
        const REAL *first = in[0], *second = in[1];                                                      \
        const REAL p = numbers[0], q = numbers[1], r = numbers[2];                                       \
        (void)p, (void)q, (void)r;                                                                       \
        INDEPENDENT                                                                                      \
        for (npy_intp i = 0; i < n; i++) {                                                               \
            REAL g = first[i], x = second[i];                                                            \
            out[i] = (expression);                                                                       \
        }                                                                                                \
    }

/* NaN stays NaN. */
ALWAYS_INLINE REAL FN(bounded)(REAL x, REAL low, REAL high)
{
    REAL above = x <= low ? low : x;
    return above >= high ? high : above;
}

ALWAYS_INLINE REAL FN(smooth_l1_of)(REAL size, REAL beta, REAL half_beta)
{
    return size < beta ? (REAL)0.5 * size * size / beta : size - half_beta;
}

MAP_OF_ONE(sign, (REAL)(x > 0) - (REAL)(x < 0))
MAP_OF_ONE(reciprocal, 1 / x)
MAP_OF_ONE(rsqrt, 1 / SQRT(x))
MAP_OF_ONE(leaky_relu, x > 0 ? x : x * p)
MAP_OF_ONE(hardswish, x *(FN(bounded)(x + 3, 0, 6) / 6))

MAP_OF_TWO(leaky_relu_backward, x > 0 ? g : g * p)
MAP_OF_TWO(hardtanh_backward, x <= p || x >= q ? 0 : g)
MAP_OF_TWO(hardswish_backward, x <= -3 ? 0 : x >= 3 ? g : g * (x / 3 + (REAL)0.5))
MAP_OF_TWO(sigmoid_backward, ((1 - x) * x) * g)
MAP_OF_TWO(tanh_backward, (1 - x * x) * g)
MAP_OF_TWO(squared_difference, (g - x) * (g - x))
MAP_OF_TWO(smooth_l1, FN(smooth_l1_of)(FABS(g - x), p, q))

CLONES static void FN(lerp_by)(const REAL *const *in, const REAL *numbers, REAL *out, npy_intp n)
{
    const REAL *start = in[0], *end = in[1], *weights = in[2];
    (void)numbers;
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        REAL step = end[i] - start[i], weight = weights[i];
        out[i] = FABS(weight) < (REAL)0.5 ? start[i] + weight * step : end[i] - step * (1 - weight);
    }
}

/* Planes of n numbers, or single numbers of which those of all channels stand in a row. */
CLONES static void FN(planes_affine)(const REAL *x, const REAL *center, const REAL *scale, const REAL *shift, REAL *out,
                                     npy_intp planes, npy_intp channels, npy_intp n)
{
    if (n == 1) {
        for (npy_intp i = 0; i < planes; i += channels, x += channels, out += channels) {
            INDEPENDENT
            for (npy_intp c = 0; c < channels; c++) {
                REAL scaled = (x[c] - center[c]) * scale[c];
                out[c] = shift == NULL ? scaled : scaled + shift[c];
            }
        }
        return;
    }
    for (npy_intp i = 0; i < planes; i++, x += n, out += n) {
        REAL less = center[i % channels], factor = scale[i % channels];
        if (shift == NULL) {
            INDEPENDENT
            for (npy_intp j = 0; j < n; j++) {
                out[j] = (x[j] - less) * factor;
            }
        }
        else {
            REAL more = shift[i % channels];
            INDEPENDENT
            for (npy_intp j = 0; j < n; j++) {
                out[j] = (x[j] - less) * factor + more;
            }
        }
    }
}

#ifndef IS_DOUBLE
MAP_OF_ONE(log, log_of(x))
MAP_OF_ONE(log1p, log1p_of(x))
MAP_OF_ONE(expm1, expm1_of(x))
MAP_OF_ONE(erf, erf_of(x))
MAP_OF_ONE(elu, x < 0 ? p * expm1_of(x * r) : x * q)
MAP_OF_ONE(softplus, x *p > q ? x : log1p_of(exp_of(x * p)) / p)
MAP_OF_ONE(mish, x *tanh_of_softplus(x))

MAP_OF_TWO(elu_backward, g *(x <= 0 ? p * exp_of(x * r) : q))
MAP_OF_TWO(softplus_backward, x *p > q ? g : g * sigmoid_of(x * p))
MAP_OF_TWO(silu_backward, (g * sigmoid_of(x)) * (x * (1 - sigmoid_of(x)) + 1))
MAP_OF_TWO(mish_backward, g *(tanh_of_softplus(x) + (x * sigmoid_of(x)) * (1 - tanh_of_softplus(x) * tanh_of_softplus(x))))
#endif

#undef MAP_OF_ONE
#undef MAP_OF_TWO
