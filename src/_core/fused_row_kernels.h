/* Loops over rows and columns of matrices, for one floating-point type: see fused_both_types.h. */

/* ---------------------------------------------------------------------------------------------- rows and columns */

/* matrix[i] += row, for every row i. */
CLONES static void FN(add_row)(REAL *matrix, const REAL *row, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, matrix += cols) {
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            matrix[j] += row[j];
        }
    }
}

/* out[j] = the sum of column j, added up from the first row to the last as NumPy does. `out` is zero before. */
CLONES static void FN(sum_columns)(const REAL *matrix, REAL *out, npy_intp rows, npy_intp cols)
{
    npy_intp i = 0;
    for (; i + 4 <= rows; i += 4, matrix += 4 * cols) { /* four rows per pass over the sums */
        const REAL *second = matrix + cols, *third = second + cols, *fourth = third + cols;
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] = (((out[j] + matrix[j]) + second[j]) + third[j]) + fourth[j];
        }
    }
    for (; i < rows; i++, matrix += cols) {
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] += matrix[j];
        }
    }
}

/* table[places[i]] += rows[i]; the places were checked. */
CLONES static void FN(add_at_rows)(REAL *table, const npy_int64 *places, const REAL *rows, npy_intp count, npy_intp cols)
{
    for (npy_intp i = 0; i < count; i++, rows += cols) {
        REAL *target = table + places[i] * cols;
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            target[j] += rows[j];
        }
    }
}

/* One number from `first` and n more, by NumPy's inner loop of a ufunc with two inputs. */
static inline REAL FN(reduced)(const Loop *loop, REAL first, const REAL *rest, npy_intp n)
{
    char *pointers[3] = {(char *)&first, (char *)rest, (char *)&first};
    npy_intp steps[3] = {0, sizeof(REAL), 0};
    loop->function(pointers, &n, steps, loop->data);
    return first;
}

static inline REAL FN(row_sum)(const REAL *row, npy_intp n)
{
    return FN(reduced)(&LOOP(add), 0, row, n);
}

/* losses[i] = the sum over the labels of row i (its targets before the first negative one) of the margins that classes which are no labels
 * violate. `is_target` is zero before; `gaps` has room for a row. Targets are below `cols`. */
static void FN(multilabel_margins)(const REAL *rows, const npy_int64 *targets, REAL *losses, npy_bool *is_target, REAL *gaps,
                                   npy_intp n, npy_intp cols)
{
    for (npy_intp i = 0; i < n; i++, rows += cols, targets += cols, is_target += cols) {
        npy_intp labels = 0;
        for (; labels < cols && targets[labels] >= 0; labels++) {
            is_target[targets[labels]] = 1;
        }
        losses[i] = 0;
        for (npy_intp k = 0; k < labels; k++) {
            REAL chosen = rows[targets[k]];
            for (npy_intp j = 0; j < cols; j++) {
                REAL gap = (rows[j] - chosen) + 1;
                gaps[j] = gap > 0 && !is_target[j] ? gap : 0; /* NaN violates no margin */
            }
            losses[i] += FN(row_sum)(gaps, cols);
        }
    }
}

/* The largest number of each row, for softmax: NaN may be passed over, it makes the row's sum NaN. */
CLONES static void FN(largest_of_rows)(const REAL *x, REAL *largest, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, x += cols) {
        REAL most = x[0];
        npy_intp k = 0;
        if (cols >= 16) {
            REAL lanes[16];
            memcpy(lanes, x, sizeof lanes);
            for (k = 16; k + 16 <= cols; k += 16) {
                for (int j = 0; j < 16; j++) {
                    lanes[j] = x[k + j] > lanes[j] ? x[k + j] : lanes[j];
                }
            }
            for (int width = 8; width > 0; width /= 2) {
                for (int j = 0; j < width; j++) {
                    lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
                }
            }
            most = lanes[0];
        }
        for (; k < cols; k++) {
            most = x[k] > most ? x[k] : most;
        }
        largest[i] = most;
    }
}

/* The sums of rows of 8 to 128 numbers, in the order of NumPy's inner loop: eight lanes, then what is left over. */
CLONES static void FN(sum_short_rows)(const REAL *x, REAL *sums, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, x += cols) {
        REAL lanes[8];
        memcpy(lanes, x, sizeof lanes);
        npy_intp k = 8;
        for (; k + 8 <= cols; k += 8) {
            for (int j = 0; j < 8; j++) {
                lanes[j] += x[k + j];
            }
        }
        REAL sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
        for (; k < cols; k++) {
            sum += x[k];
        }
        sums[i] = 0 + sum; /* not -0 */
    }
}

/* Whether NumPy's inner loop adds up in that order. */
static int FN(short_sums_are_equal)(void)
{
    REAL row[MOST_SHORT_COLUMNS];
    for (int i = 0; i < MOST_SHORT_COLUMNS; i++) {
        row[i] = (i % 3 == 0 ? -1 : 1) / (REAL)(i + 1);
    }
    for (npy_intp n = LEAST_SHORT_COLUMNS; n <= MOST_SHORT_COLUMNS; n++) {
        REAL sum;
        FN(sum_short_rows)(row, &sum, 1, n);
        if (sum != FN(row_sum)(row, n)) {
            return 0;
        }
    }
    return 1;
}

/* The sum of n numbers in 64 lanes, as `_ops/_lanes.py` defines it: 128 numbers one after another in each lane, then all lanes and what
 * is left over by NumPy's loop. `lanes` has room for them: n / 128 + 128 numbers. */
CLONES static npy_intp FN(fill_lanes)(const REAL *x, REAL *lanes, npy_intp n)
{
    npy_intp count = 0;
    while (n >= LANES) {
        npy_intp steps = n / LANES < LANE_STEPS ? n / LANES : LANE_STEPS;
        REAL sums[LANES];
        memcpy(sums, x, sizeof sums);
        for (npy_intp k = 1; k < steps; k++) {
            const REAL *next = x + k * LANES;
            INDEPENDENT
            for (int j = 0; j < LANES; j++) {
                sums[j] += next[j];
            }
        }
        memcpy(lanes + count, sums, sizeof sums);
        count += LANES, x += steps * LANES, n -= steps * LANES;
    }
    memcpy(lanes + count, x, n * sizeof(REAL));
    return count + n;
}

static void FN(row_sums)(const REAL *x, REAL *out, REAL *lanes, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++) {
        npy_intp count = FN(fill_lanes)(x + i * cols, lanes, cols);
        out[i] = FN(row_sum)(lanes, count);
    }
}

/* ---------------------------------------------------------------------------------------------- softmax */

/* out = x - less, row by row. */
CLONES static void FN(subtract_by_rows)(const REAL *x, const REAL *less, REAL *out, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, x += cols, out += cols) {
        REAL difference = less[i];
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] = x[j] - difference;
        }
    }
}

#ifdef IS_DOUBLE
static void FN(shifted_exponentials)(const REAL *x, const REAL *less, REAL *out, npy_intp rows, npy_intp cols)
{
    FN(subtract_by_rows)(x, less, out, rows, cols);
    apply(&LOOP(exp), out, out, rows * cols, sizeof(REAL));
}
#else
static void FN(shifted_exponentials)(const REAL *x, const REAL *less, REAL *out, npy_intp rows, npy_intp cols)
{
    shifted_exp_loop(x, less, out, rows, cols);
}
#endif

CLONES static void FN(divide_rows)(REAL *out, const REAL *by, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, out += cols) {
        REAL divisor = by[i];
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] = out[j] / divisor;
        }
    }
}

CLONES static void FN(multiply)(const REAL *a, const REAL *b, REAL *out, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] = a[i] * b[i];
    }
}

/* out = out - y * sums, row by row. */
CLONES static void FN(subtract_scaled)(REAL *out, const REAL *y, const REAL *sums, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, out += cols, y += cols) {
        REAL sum = sums[i];
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] = out[j] - y[j] * sum;
        }
    }
}

/* out = g - out * sums, row by row. */
CLONES static void FN(subtract_product)(REAL *out, const REAL *g, const REAL *sums, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, out += cols, g += cols) {
        REAL sum = sums[i];
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] = g[j] - out[j] * sum;
        }
    }
}

/* `cols` is at most MOST_LANE_COLUMNS. */
static void FN(sum_rows)(const REAL *x, REAL *sums, npy_intp rows, npy_intp cols)
{
    REAL lanes[MOST_LANE_COLUMNS / LANE_STEPS + 2 * LANES];
    if (short_sums_are_equal && cols >= LEAST_SHORT_COLUMNS && cols <= MOST_SHORT_COLUMNS) {
        FN(sum_short_rows)(x, sums, rows, cols);
        return;
    }
    for (npy_intp i = 0; i < rows; i++, x += cols) {
        sums[i] = cols < LEAST_LANE_COLUMNS ? FN(row_sum)(x, cols) : FN(row_sum)(lanes, FN(fill_lanes)(x, lanes, cols));
    }
}

static REAL FN(long_row_sum)(const REAL *x, npy_intp n)
{
    REAL sum;
    FN(sum_rows)(x, &sum, 1, n);
    return sum;
}

static void FN(softmax)(const REAL *x, REAL *out, npy_intp rows, npy_intp cols)
{
    REAL sums[BLOCK_ROWS];
    npy_intp step = block_rows(cols);
    for (npy_intp i = 0; i < rows; i += step, x += step * cols, out += step * cols) {
        npy_intp n = rows - i < step ? rows - i : step;
        FN(largest_of_rows)(x, sums, n, cols);
        FN(shifted_exponentials)(x, sums, out, n, cols);
        FN(sum_rows)(out, sums, n, cols);
        FN(divide_rows)(out, sums, n, cols);
    }
}

/* `scratch` has room for a block of rows. */
static void FN(log_softmax)(const REAL *x, REAL *out, REAL *scratch, npy_intp rows, npy_intp cols)
{
    REAL sums[BLOCK_ROWS];
    npy_intp step = block_rows(cols);
    for (npy_intp i = 0; i < rows; i += step, x += step * cols, out += step * cols) {
        npy_intp n = rows - i < step ? rows - i : step;
        FN(largest_of_rows)(x, sums, n, cols);
        FN(subtract_by_rows)(x, sums, out, n, cols);
        FN(shifted_exponentials)(x, sums, scratch, n, cols);
        FN(sum_rows)(scratch, sums, n, cols);
        apply(&LOOP(log), sums, sums, n, sizeof(REAL));
        FN(subtract_by_rows)(out, sums, out, n, cols);
    }
}

static void FN(softmax_backward)(const REAL *g, const REAL *y, REAL *out, npy_intp rows, npy_intp cols)
{
    REAL sums[BLOCK_ROWS];
    npy_intp step = block_rows(cols);
    for (npy_intp i = 0; i < rows; i += step, g += step * cols, y += step * cols, out += step * cols) {
        npy_intp n = rows - i < step ? rows - i : step;
        FN(multiply)(g, y, out, n * cols);
        FN(sum_rows)(out, sums, n, cols);
        FN(subtract_scaled)(out, y, sums, n, cols);
    }
}

static void FN(log_softmax_backward)(const REAL *g, const REAL *y, REAL *out, npy_intp rows, npy_intp cols)
{
    REAL sums[BLOCK_ROWS];
    npy_intp step = block_rows(cols);
    for (npy_intp i = 0; i < rows; i += step, g += step * cols, y += step * cols, out += step * cols) {
        npy_intp n = rows - i < step ? rows - i : step;
        memset(sums, 0, sizeof sums);
        FN(shifted_exponentials)(y, sums, out, n, cols);
        FN(sum_rows)(g, sums, n, cols);
        FN(subtract_product)(out, g, sums, n, cols);
    }
}

/* ---------------------------------------------------------------------------------------------- layer norm */

/* out = x - mean, squares = out * out. */
CLONES static void FN(center_row)(const REAL *x, REAL mean, REAL *out, REAL *squares, npy_intp n)
{
    INDEPENDENT
    for (npy_intp j = 0; j < n; j++) {
        REAL centered = x[j] - mean;
        out[j] = centered;
        squares[j] = centered * centered;
    }
}

CLONES static void FN(scale_row)(REAL *out, REAL rstd, const REAL *weight, const REAL *bias, npy_intp n)
{
    if (weight != NULL && bias != NULL) {
        INDEPENDENT
        for (npy_intp j = 0; j < n; j++) {
            out[j] = (out[j] * rstd) * weight[j] + bias[j];
        }
        return;
    }
    INDEPENDENT
    for (npy_intp j = 0; j < n; j++) {
        out[j] = out[j] * rstd;
    }
    if (weight != NULL) {
        FN(multiply)(out, weight, out, n);
    }
    if (bias != NULL) {
        FN(add_row)(out, bias, 1, n);
    }
}

/* `scratch` has room for a row. */
static void FN(layer_norm)(const REAL *x, const REAL *weight, const REAL *bias, REAL eps, REAL *out, REAL *mean, REAL *rstd,
                           REAL *scratch, npy_intp rows, npy_intp cols)
{
    REAL count = (REAL)cols;
    for (npy_intp i = 0; i < rows; i++, x += cols, out += cols) {
        mean[i] = FN(long_row_sum)(x, cols) / count;
        FN(center_row)(x, mean[i], out, scratch, cols);
        rstd[i] = 1 / SQRT(FN(long_row_sum)(scratch, cols) / count + eps);
        FN(scale_row)(out, rstd[i], weight, bias, cols);
    }
}

/* normal = (x - mean) * rstd, weighted = g * weight, product = weighted * normal; the sums over rows of g * normal and g. */
CLONES static void FN(weigh_row)(const REAL *g, const REAL *x, const REAL *weight, REAL mean, REAL rstd, REAL *normal,
                                 REAL *weighted, REAL *product, REAL *to_weight, REAL *to_bias, npy_intp n)
{
    INDEPENDENT
    for (npy_intp j = 0; j < n; j++) {
        REAL at = (x[j] - mean) * rstd;
        REAL by = weight == NULL ? g[j] : g[j] * weight[j];
        normal[j] = at;
        weighted[j] = by;
        product[j] = by * at;
        to_weight[j] += g[j] * at;
        to_bias[j] += g[j];
    }
}

CLONES static void FN(unscale_row)(REAL *weighted, const REAL *normal, REAL level, REAL tilt, REAL rstd, npy_intp n)
{
    INDEPENDENT
    for (npy_intp j = 0; j < n; j++) {
        weighted[j] = ((weighted[j] - level) - normal[j] * tilt) * rstd;
    }
}

/* `scratch` has room for two rows; to_weight and to_bias are zero before. */
static void FN(layer_norm_backward)(const REAL *g, const REAL *x, const REAL *mean, const REAL *rstd, const REAL *weight,
                                    REAL *to_input, REAL *to_weight, REAL *to_bias, REAL *scratch, npy_intp rows,
                                    npy_intp cols)
{
    REAL count = (REAL)cols;
    REAL *normal = scratch, *product = scratch + cols;
    for (npy_intp i = 0; i < rows; i++, g += cols, x += cols, to_input += cols) {
        FN(weigh_row)(g, x, weight, mean[i], rstd[i], normal, to_input, product, to_weight, to_bias, cols);
        REAL level = FN(long_row_sum)(to_input, cols) / count;
        REAL tilt = FN(long_row_sum)(product, cols) / count;
        FN(unscale_row)(to_input, normal, level, tilt, rstd[i], cols);
    }
}

/* ---------------------------------------------------------------------------------------------- largest and smallest */

/* Whether a comes before b: NaN counts as the largest number. */
ALWAYS_INLINE int FN(is_before)(REAL a, REAL b, int largest)
{
    return largest ? a > b || (a != a && b == b) : a < b || (b != b && a == a);
}

/* The k largest or smallest numbers of each row in order, and their places; of equal ones those of the first places. 0 < k <= cols. */
static void FN(topk)(const REAL *x, REAL *values, npy_int64 *places, npy_intp rows, npy_intp cols, npy_intp k, int largest)
{
    for (npy_intp row = 0; row < rows; row++, x += cols, values += k, places += k) {
        npy_intp taken = 0;
        for (npy_intp i = 0; i < cols; i++) {
            REAL value = x[i];
            if (taken == k && !FN(is_before)(value, values[k - 1], largest)) {
                continue;
            }
            npy_intp at = taken < k ? taken++ : k - 1;
            for (; at > 0 && FN(is_before)(value, values[at - 1], largest); at--) {
                values[at] = values[at - 1];
                places[at] = places[at - 1];
            }
            values[at] = value;
            places[at] = i;
        }
    }
}
