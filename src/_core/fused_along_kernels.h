/* Loops along one dimension, for one floating-point type: see fused_both_types.h. An array has `outer` blocks of `length` times `inner`
 * numbers; the dimension is that of `length`. */

/* Running sums or products. They are kept in double precision, as torch keeps them; `totals` has room for `inner` of them. */
#define DEFINE_RUNNING(name, operation)                                                                 \
    CLONES static void FN(name)(const REAL *x, REAL *out, double *totals, npy_intp outer, npy_intp length, npy_intp inner) \
    {                                                                                                   \
        npy_intp o = 0;                                                                                 \
        for (; inner == 1 && o + 4 <= outer; o += 4, x += 4 * length, out += 4 * length) { /* four rows at a time */ \
            double a = x[0], b = x[length], c = x[2 * length], d = x[3 * length];                       \
            out[0] = x[0], out[length] = x[length], out[2 * length] = x[2 * length], out[3 * length] = x[3 * length]; \
            for (npy_intp k = 1; k < length; k++) {                                                     \
                a = a operation x[k];                                                                   \
                b = b operation x[length + k];                                                          \
                c = c operation x[2 * length + k];                                                      \
                d = d operation x[3 * length + k];                                                      \
                out[k] = (REAL)a;                                                                       \
                out[length + k] = (REAL)b;                                                              \
                out[2 * length + k] = (REAL)c;                                                          \
                out[3 * length + k] = (REAL)d;                                                          \
            }                                                                                           \
        }                                                                                               \
        for (; o < outer; o++, x += length * inner, out += length * inner) {                            \
            for (npy_intp j = 0; j < inner; j++) {                                                      \
                totals[j] = out[j] = x[j];                                                              \
            }                                                                                           \
            for (npy_intp k = 1; k < length; k++) {                                                     \
                const REAL *next = x + k * inner;                                                       \
                REAL *to = out + k * inner;                                                             \
                INDEPENDENT                                                                             \
                for (npy_intp j = 0; j < inner; j++) {                                                  \
                    totals[j] = totals[j] operation next[j];                                            \
                    to[j] = (REAL)totals[j];                                                            \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }

DEFINE_RUNNING(running_sums, +)
DEFINE_RUNNING(running_products, *)

#undef DEFINE_RUNNING

/* The largest number so far (or the smallest, if `sign` is -1) and its place; of equal ones the last, and NaN is larger than all. */
static void FN(running_extremes)(const REAL *x, REAL *out, npy_int64 *places, REAL sign, npy_intp outer, npy_intp length,
                                 npy_intp inner)
{
    for (npy_intp o = 0; o < outer; o++) {
        for (npy_intp j = 0; j < inner; j++) {
            npy_intp first = o * length * inner + j;
            REAL best = x[first];
            npy_int64 place = 0;
            for (npy_intp k = 0; k < length; k++) {
                REAL next = x[first + k * inner];
                if (next != next || (best == best && next * sign >= best * sign)) {
                    best = next, place = k;
                }
                out[first + k * inner] = best;
                places[first + k * inner] = place;
            }
        }
    }
}

/* One number per row, in lanes as in FN(fill_lanes) of fused_row_kernels.h; `lanes` has room for n / 128 + 128 numbers. */
#define DEFINE_LANES(name, of_number, operation)                                                        \
    CLONES static npy_intp FN(name)(const REAL *x, REAL *lanes, npy_intp n)                              \
    {                                                                                                   \
        npy_intp count = 0;                                                                             \
        while (n >= LANES) {                                                                            \
            npy_intp steps = n / LANES < LANE_STEPS ? n / LANES : LANE_STEPS;                           \
            REAL kept[LANES];                                                                           \
            for (int j = 0; j < LANES; j++) {                                                           \
                REAL number = x[j];                                                                     \
                kept[j] = (of_number);                                                                  \
            }                                                                                           \
            for (npy_intp k = 1; k < steps; k++) {                                                      \
                const REAL *next = x + k * LANES;                                                       \
                INDEPENDENT                                                                             \
                for (int j = 0; j < LANES; j++) {                                                       \
                    REAL number = next[j], so_far = kept[j];                                            \
                    number = (of_number);                                                               \
                    kept[j] = (operation);                                                              \
                }                                                                                       \
            }                                                                                           \
            memcpy(lanes + count, kept, sizeof kept);                                                   \
            count += LANES, x += steps * LANES, n -= steps * LANES;                                     \
        }                                                                                               \
        for (npy_intp j = 0; j < n; j++) {                                                              \
            REAL number = x[j];                                                                         \
            lanes[count + j] = (of_number);                                                             \
        }                                                                                               \
        return count + n;                                                                               \
    }

DEFINE_LANES(square_lanes, number *number, so_far + number)
DEFINE_LANES(product_lanes, number, so_far *number)
DEFINE_LANES(maximum_lanes, number, number > so_far || number != number ? number : so_far)
DEFINE_LANES(minimum_lanes, number, number < so_far || number != number ? number : so_far)

#undef DEFINE_LANES

/* What NumPy's inner loop of a ufunc gives for the lanes of each row. */
static void FN(reduce_rows)(const REAL *x, REAL *out, REAL *lanes, int kind, npy_intp rows, npy_intp cols)
{
    npy_intp (*const fill[])(const REAL *, REAL *, npy_intp) = {FN(square_lanes), FN(product_lanes), FN(maximum_lanes),
                                                                FN(minimum_lanes)};
    const Loop *loops[] = {&LOOP(add), &LOOP(multiply), &LOOP(maximum), &LOOP(minimum)};
    for (npy_intp i = 0; i < rows; i++, x += cols) {
        npy_intp n = fill[kind](x, lanes, cols);
        REAL start = lanes[0];
        const REAL *rest = lanes + 1;
        if (kind == SQUARES) { /* NumPy's sums start from 0 */
            start = 0, rest = lanes, n += 1;
        }
        n -= 1;
        char *pointers[3] = {(char *)&start, (char *)rest, (char *)&start};
        npy_intp steps[3] = {0, sizeof(REAL), 0};
        if (n) {
            loops[kind]->function(pointers, &n, steps, loops[kind]->data);
        }
        out[i] = start;
    }
}
