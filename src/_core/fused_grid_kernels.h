/* Sampling images at positions, for one floating-point type: see fused_both_types.h. `Corners` of _ops/grid_sample.py is the definition. */

typedef struct {
    npy_intp place; /* in the image, or -1 outside of it */
    REAL weight, slope;
} FN(Tap);

/* The taps of all dimensions of one position, and the factors of their derivatives. */
typedef struct {
    FN(Tap) taps[3][4];
    REAL scales[3];
} FN(Position);

static REAL FN(reflected)(REAL u, npy_intp size, int align, REAL *sign)
{
    REAL low = align ? 0 : (REAL)-0.5, span = align ? (REAL)(size - 1) : (REAL)size;
    if (span == 0) {
        *sign = 0;
        return 0;
    }
    REAL away = u - low;
    *sign = away < 0 ? -1 : 1;
    away = FABS(away);
    REAL turns = FLOOR(away / span), rest = FMOD(away, span);
    int odd = FMOD(turns, 2) != 0; /* NaN is odd, as in NumPy */
    *sign = odd ? -*sign : *sign;
    return (odd ? span - rest : rest) + low;
}

/* A position after the padding mode is applied; `slope` is the derivative of that. */
static REAL FN(bounded)(REAL u, npy_intp size, const Sampler *s, REAL *slope)
{
    REAL sign = 1, last = (REAL)(size - 1);
    *slope = 1;
    if (s->padding == PAD_ZEROS) {
        return u;
    }
    if (s->padding == PAD_REFLECTION) {
        u = FN(reflected)(u, size, s->align, &sign);
    }
    *slope = sign * (REAL)(u > 0 && u < last ? 1 : 0);
    if (u != u) {
        return s->dims == 2 ? 0 : last;
    }
    u = u > 0 ? u : 0;
    return u < last ? u : last;
}

static FN(Tap) FN(tap_at)(REAL place, npy_intp size, REAL weight, REAL slope)
{
    int inside = place >= 0 && place <= (REAL)(size - 1);
    FN(Tap) tap = {inside ? (npy_intp)place : -1, weight, slope};
    return tap;
}

static REAL FN(near_weight)(REAL x)
{
    return ((REAL)1.25 * x - (REAL)2.25) * x * x + 1;
}

static REAL FN(near_slope)(REAL x)
{
    return ((REAL)3.75 * x - (REAL)4.5) * x;
}

static REAL FN(far_weight)(REAL x)
{
    return (((REAL)-0.75 * x + (REAL)3.75) * x - 6) * x + 3;
}

static REAL FN(far_slope)(REAL x)
{
    return ((REAL)-2.25 * x + (REAL)7.5) * x - 6;
}

static void FN(taps_of)(REAL c, npy_intp size, const Sampler *s, FN(Tap) *taps, REAL *scale)
{
    REAL u, slope;
    if (s->align) {
        u = (c + 1) / 2 * (REAL)(size - 1);
        *scale = (REAL)(size - 1) / 2;
    }
    else {
        u = ((c + 1) * (REAL)size - 1) / 2;
        *scale = (REAL)size / 2;
    }
    if (s->mode == BICUBIC) {
        REAL first = FLOOR(u), t = u - first;
        const REAL weights[4] = {FN(far_weight)(t + 1), FN(near_weight)(t), FN(near_weight)(1 - t), FN(far_weight)(2 - t)};
        const REAL slopes[4] = {FN(far_slope)(t + 1), FN(near_slope)(t), -FN(near_slope)(1 - t), -FN(far_slope)(2 - t)};
        for (int k = 0; k < 4; k++) {
            taps[k] = FN(tap_at)(FN(bounded)(first + (REAL)(k - 1), size, s, &slope), size, weights[k], slopes[k]);
        }
        return;
    }
    u = FN(bounded)(u, size, s, &slope);
    if (s->dims == 3 && !(FABS(u) < (REAL)2147483648.0)) {
        u = -100;
    }
    if (s->mode == NEAREST) {
        taps[0] = FN(tap_at)(RINT(u), size, 1, 0);
        *scale = 0;
        return;
    }
    REAL first = FLOOR(u), t = u - first;
    taps[0] = FN(tap_at)(first, size, 1 - t, -1);
    taps[1] = FN(tap_at)(first + 1, size, t, 1);
    *scale = *scale * slope;
}

/* Where each corner of a position is in a plane (-1: outside), and its weight, or the weight differentiated along dimension `along`. */
static int FN(corners_of)(const FN(Position) *p, const Sampler *s, int along, npy_intp *places, REAL *weights)
{
    int count = 0, n = s->taps;
    for (int a = 0; a < n; a++) {
        const FN(Tap) *deep = &p->taps[0][a];
        for (int b = 0; b < n; b++) {
            const FN(Tap) *down = &p->taps[1][b];
            npy_intp row = deep->place < 0 || down->place < 0 ? -1 : deep->place * s->sizes[1] + down->place;
            REAL deep_weight = along == 0 ? deep->slope : deep->weight, down_weight = along == 1 ? down->slope : down->weight;
            if (s->dims == 2) {
                places[count] = row;
                weights[count++] = down_weight * deep_weight; /* the last dimension first, as the twin does */
                continue;
            }
            for (int c = 0; c < n; c++) {
                const FN(Tap) *across = &p->taps[2][c];
                places[count] = row < 0 || across->place < 0 ? -1 : row * s->sizes[2] + across->place;
                weights[count++] = (along == 2 ? across->slope : across->weight) * down_weight * deep_weight;
            }
        }
    }
    return count;
}

static void FN(position_at)(const REAL *grid, const Sampler *s, FN(Position) *p)
{
    for (int d = 0; d < s->dims; d++) {
        FN(taps_of)(grid[s->dims - 1 - d], s->sizes[d], s, p->taps[d], &p->scales[d]);
    }
}

static void FN(sample)(const REAL *x, const REAL *grid, REAL *out, const Sampler *s)
{
    npy_intp places[MOST_CORNERS];
    REAL weights[MOST_CORNERS];
    FN(Position) position;
    for (npy_intp b = 0; b < s->batch; b++, x += s->channels * s->volume, out += s->channels * s->count) {
        for (npy_intp i = 0; i < s->count; i++, grid += s->dims) {
            FN(position_at)(grid, s, &position);
            int corners = FN(corners_of)(&position, s, -1, places, weights);
            const REAL *plane = x;
            for (npy_intp c = 0; c < s->channels; c++, plane += s->volume) {
                REAL sum = 0;
                for (int k = 0; k < corners; k++) {
                    sum += weights[k] * (places[k] < 0 ? 0 : plane[places[k]]);
                }
                out[c * s->count + i] = sum;
            }
        }
    }
}

/* The gradients by the image, which is zero before, and by the grid; either may be NULL. */
static void FN(sample_backward)(const REAL *g, const REAL *x, const REAL *grid, REAL *to_image, REAL *to_grid, const Sampler *s)
{
    npy_intp places[MOST_CORNERS];
    REAL weights[MOST_CORNERS], dots[MOST_CORNERS];
    FN(Position) position;
    npy_intp image = s->channels * s->volume;
    for (npy_intp b = 0; b < s->batch; b++, x += image, g += s->channels * s->count) {
        for (npy_intp i = 0; i < s->count; i++, grid += s->dims) {
            FN(position_at)(grid, s, &position);
            int corners = FN(corners_of)(&position, s, -1, places, weights);
            if (to_image != NULL) {
                for (npy_intp c = 0; c < s->channels; c++) {
                    REAL value = g[c * s->count + i];
                    for (int k = 0; k < corners; k++) {
                        if (places[k] >= 0) {
                            to_image[c * s->volume + places[k]] += weights[k] * value;
                        }
                    }
                }
            }
            if (to_grid == NULL) {
                continue;
            }
            for (int k = 0; k < corners; k++) {
                REAL dot = 0;
                for (npy_intp c = 0; c < s->channels; c++) {
                    dot += (places[k] < 0 ? 0 : x[c * s->volume + places[k]]) * g[c * s->count + i];
                }
                dots[k] = dot;
            }
            for (int d = 0; d < s->dims; d++) {
                REAL sum = 0;
                FN(corners_of)(&position, s, d, places, weights);
                for (int k = 0; k < corners; k++) {
                    sum += weights[k] * dots[k];
                }
                to_grid[s->dims - 1 - d] = sum * position.scales[d];
            }
            to_grid += s->dims;
        }
        if (to_image != NULL) {
            to_image += image;
        }
    }
}
