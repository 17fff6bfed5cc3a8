/* Loops over windows of images, for one floating-point type: see fused_both_types.h. */

/* The maximum of one window and its place in a plane: of equal numbers the first, of several NaN the last. */
ALWAYS_INLINE void FN(max_window)(const REAL *x, REAL *out, npy_int64 *place, const Window *w, Span deep, Span down, Span across)
{
    npy_intp height = w[1].n, width = w[2].n;
    npy_intp best_place = (deep.start * height + down.start) * width + across.start;
    REAL best = x[best_place];
    for (npy_intp d = deep.start; d < deep.end; d += w[0].dilation) {
        for (npy_intp h = down.start; h < down.end; h += w[1].dilation) {
            npy_intp row = (d * height + h) * width;
            for (npy_intp i = across.start; i < across.end; i += w[2].dilation) {
                REAL value = x[row + i];
                if (value > best || value != value) {
                    best = value;
                    best_place = row + i;
                }
            }
        }
    }
    *out = best;
    *place = best_place;
}

/* The same of a row of `count` windows that lie inside the image, the first at column `left`. All windows take their next number in turn,
   without branches: which number is the largest cannot be foreseen. */
CLONES static void FN(max_windows_of_row)(const REAL *x, REAL *restrict out, npy_int64 *restrict places, const Window *w, Span deep,
                                          Span down, npy_intp left, npy_intp count)
{
    npy_intp height = w[1].n, width = w[2].n, stride = w[2].stride;
    npy_intp first = (deep.start * height + down.start) * width + left;
    for (npy_intp j = 0; j < count; j++) {
        places[j] = first + j * stride;
        out[j] = x[places[j]];
    }
    for (npy_intp d = deep.start; d < deep.end; d += w[0].dilation) {
        for (npy_intp h = down.start; h < down.end; h += w[1].dilation) {
            for (npy_intp k = 0; k < w[2].kernel; k++) {
                npy_intp from = (d * height + h) * width + left + k * w[2].dilation;
                INDEPENDENT
                for (npy_intp j = 0; j < count; j++) {
                    REAL value = x[from + j * stride];
                    int is_larger = (value > out[j]) | (value != value);
                    out[j] = is_larger ? value : out[j];
                    places[j] = is_larger ? from + j * stride : places[j];
                }
            }
        }
    }
}

/* The maxima of all windows and their places in a plane. */
static void FN(max_windows)(const REAL *x, REAL *out, npy_int64 *places, npy_intp planes, const Window *w)
{
    npy_intp volume = w[0].n * w[1].n * w[2].n, columns = w[2].out;
    Span inside = inside_of(&w[2]);
    for (npy_intp plane = 0; plane < planes; plane++, x += volume) {
        for (npy_intp od = 0; od < w[0].out; od++) {
            Span deep = span_of(&w[0], od);
            for (npy_intp oh = 0; oh < w[1].out; oh++, out += columns, places += columns) {
                Span down = span_of(&w[1], oh);
                npy_intp ow = 0;
                for (; ow < inside.start; ow++) {
                    FN(max_window)(x, out + ow, places + ow, w, deep, down, span_of(&w[2], ow));
                }
                if (inside.start < inside.end) {
                    npy_intp left = inside.start * w[2].stride - w[2].padding;
                    FN(max_windows_of_row)(x, out + ow, places + ow, w, deep, down, left, inside.end - inside.start);
                    ow = inside.end;
                }
                for (; ow < columns; ow++) {
                    FN(max_window)(x, out + ow, places + ow, w, deep, down, span_of(&w[2], ow));
                }
            }
        }
    }
}

/* Sums of windows along one dimension: (outer, n, inner) to (outer, out, inner), each window added up from its first number. */
CLONES static void FN(window_sums)(const REAL *x, REAL *out, npy_intp outer, npy_intp inner, const Window *w)
{
    for (npy_intp i = 0; i < outer; i++, x += w->n * inner) {
        if (inner == 1) {
            for (npy_intp o = 0; o < w->out; o++) {
                Span span = span_of(w, o);
                REAL sum = 0;
                for (npy_intp k = span.start; k < span.end; k++) {
                    sum += x[k];
                }
                *out++ = sum;
            }
            continue;
        }
        for (npy_intp o = 0; o < w->out; o++, out += inner) {
            Span span = span_of(w, o);
            memset(out, 0, (size_t)inner * sizeof(REAL));
            for (npy_intp k = span.start; k < span.end; k++) {
                const REAL *row = x + k * inner;
                INDEPENDENT
                for (npy_intp j = 0; j < inner; j++) {
                    out[j] += row[j];
                }
            }
        }
    }
}

/* The transpose: (outer, out, inner) to (outer, n, inner), which is zero before; later windows are added first. */
CLONES static void FN(spread_windows)(const REAL *g, REAL *to, npy_intp outer, npy_intp inner, const Window *w)
{
    for (npy_intp i = 0; i < outer; i++, g += w->out * inner, to += w->n * inner) {
        for (npy_intp o = w->out - 1; o >= 0; o--) {
            Span span = span_of(w, o);
            const REAL *row = g + o * inner;
            for (npy_intp k = span.start; k < span.end; k++) {
                REAL *target = to + k * inner;
                INDEPENDENT
                for (npy_intp j = 0; j < inner; j++) {
                    target[j] += row[j];
                }
            }
        }
    }
}

/* out = x / divisors, for each plane of windows. */
static void FN(divide_windows)(const REAL *x, REAL *out, npy_intp planes, const Window *w, double divisor)
{
    for (npy_intp plane = 0; plane < planes; plane++) {
        for (npy_intp od = 0; od < w[0].out; od++) {
            for (npy_intp oh = 0; oh < w[1].out; oh++) {
                double count = (double)(w[0].counts[od] * w[1].counts[oh]);
                for (npy_intp ow = 0; ow < w[2].out; ow++) {
                    *out++ = *x++ / (REAL)(divisor != 0 ? divisor : count * (double)w[2].counts[ow]);
                }
            }
        }
    }
}

/* Sums along all three dimensions, then averages; each of the two scratch arrays has room for what a step gives. */
static void FN(average_windows)(const REAL *x, REAL *out, REAL *scratch, REAL *other, npy_intp planes, const Window *w,
                                double divisor)
{
    const REAL *from = x;
    if (w[0].n > 1 || w[0].out > 1) {
        FN(window_sums)(from, scratch, planes, w[1].n * w[2].n, &w[0]);
        from = scratch;
    }
    if (w[1].n > 1 || w[1].out > 1) {
        FN(window_sums)(from, other, planes * w[0].out, w[2].n, &w[1]);
        from = other;
    }
    FN(window_sums)(from, out, planes * w[0].out * w[1].out, 1, &w[2]);
    FN(divide_windows)(out, out, planes, w, divisor);
}

/* `scratch` and `other` have room for what a step gives and are zero before, as is `out`. */
static void FN(average_windows_backward)(const REAL *g, REAL *out, REAL *scaled, REAL *scratch, REAL *other, npy_intp planes,
                                         const Window *w, double divisor)
{
    FN(divide_windows)(g, scaled, planes, w, divisor);
    const REAL *from = scaled;
    if (w[0].n > 1 || w[0].out > 1) {
        FN(spread_windows)(from, scratch, planes, w[1].out * w[2].out, &w[0]);
        from = scratch;
    }
    if (w[1].n > 1 || w[1].out > 1) {
        FN(spread_windows)(from, other, planes * w[0].n, w[2].out, &w[1]);
        from = other;
    }
    FN(spread_windows)(from, out, planes * w[0].n * w[1].n, 1, &w[2]);
}

/* Gradients at the places of maxima: added up in float64 for windows that overlap. The places were checked. */
static void FN(scatter_planes)(const REAL *g, const npy_int64 *places, REAL *out, double *sums, npy_intp planes, npy_intp count,
                               npy_intp volume)
{
    for (npy_intp plane = 0; plane < planes; plane++, g += count, places += count, out += volume) {
        if (sums == NULL) {
            memset(out, 0, (size_t)volume * sizeof(REAL));
            for (npy_intp i = 0; i < count; i++) {
                out[places[i]] = g[i];
            }
            continue;
        }
        memset(sums, 0, (size_t)volume * sizeof(double));
        for (npy_intp i = 0; i < count; i++) {
            sums[places[i]] += (double)g[i];
        }
        for (npy_intp i = 0; i < volume; i++) {
            out[i] = (REAL)sums[i];
        }
    }
}

/* Patches of an image as columns (kernel, out), or, if `adds`, columns added to the image where they were taken from. */
static void FN(move_columns)(REAL *columns, REAL *image, npy_intp planes, const Window *w, int adds)
{
    npy_intp row = w[2].n, sheet = w[1].n * row, step = w[2].stride;
    for (npy_intp plane = 0; plane < planes; plane++, image += w[0].n * sheet) {
        for (npy_intp i = 0; i < w[0].kernel * w[1].kernel * w[2].kernel; i++) {
            npy_intp c = i % w[2].kernel, b = i / w[2].kernel % w[1].kernel, a = i / w[2].kernel / w[1].kernel;
            REAL *corner = image + a * w[0].dilation * sheet + b * w[1].dilation * row + c * w[2].dilation;
            for (npy_intp y = 0; y < w[0].out * w[1].out; y++, columns += w[2].out) {
                REAL *line = corner + y / w[1].out * w[0].stride * sheet + y % w[1].out * w[1].stride * row;
                if (adds) {
                    for (npy_intp x = 0; x < w[2].out; x++) {
                        line[x * step] += columns[x];
                    }
                }
                else {
                    for (npy_intp x = 0; x < w[2].out; x++) {
                        columns[x] = line[x * step];
                    }
                }
            }
        }
    }
}

/* The first number of an image that output line y meets at a place of the kernel. */
ALWAYS_INLINE npy_intp FN(line_at)(const Window *w, npy_intp place, npy_intp y)
{
    npy_intp row = w[2].n, sheet = w[1].n * row;
    npy_intp c = place % w[2].kernel, b = place / w[2].kernel % w[1].kernel, a = place / w[2].kernel / w[1].kernel;
    npy_intp corner = a * w[0].dilation * sheet + b * w[1].dilation * row + c * w[2].dilation;
    return corner + y / w[1].out * w[0].stride * sheet + y % w[1].out * w[1].stride * row;
}

/* A filter per plane: out += image * weight place by place, or, if `adds`, image += out * weight. `channels` filters repeat. */
CLONES static void FN(depthwise)(REAL *out, REAL *image, const REAL *weight, npy_intp planes, npy_intp channels, const Window *w,
                                 int adds)
{
    npy_intp places = w[0].kernel * w[1].kernel * w[2].kernel, lines = w[0].out * w[1].out, n = w[2].out, step = w[2].stride;
    for (npy_intp plane = 0; plane < planes; plane++, image += w[0].n * w[1].n * w[2].n, out += lines * n) {
        for (npy_intp place = 0; place < places; place++) {
            REAL factor = weight[plane % channels * places + place];
            for (npy_intp y = 0; y < lines; y++) {
                REAL *line = image + FN(line_at)(w, place, y), *made = out + y * n;
                if (adds) {
                    INDEPENDENT
                    for (npy_intp x = 0; x < n; x++) {
                        line[x * step] += made[x] * factor;
                    }
                }
                else if (step == 1) {
                    INDEPENDENT
                    for (npy_intp x = 0; x < n; x++) {
                        made[x] += line[x] * factor;
                    }
                }
                else {
                    for (npy_intp x = 0; x < n; x++) {
                        made[x] += line[x * step] * factor;
                    }
                }
            }
        }
    }
}

/* products = g * image at a place of the kernel, for one plane. */
CLONES static void FN(products_at)(const REAL *g, const REAL *image, REAL *products, const Window *w, npy_intp place)
{
    npy_intp lines = w[0].out * w[1].out, n = w[2].out, step = w[2].stride;
    for (npy_intp y = 0; y < lines; y++, g += n, products += n) {
        const REAL *line = image + FN(line_at)(w, place, y);
        INDEPENDENT
        for (npy_intp x = 0; x < n; x++) {
            products[x] = g[x] * line[x * step];
        }
    }
}

/* out[channel, place] = the sum over the batch of the sums of each plane's products, which NumPy's loop adds up. */
static void FN(depthwise_weight)(const REAL *g, const REAL *images, REAL *out, REAL *products, npy_intp batch, npy_intp channels,
                                 const Window *w)
{
    npy_intp places = w[0].kernel * w[1].kernel * w[2].kernel, n = w[0].out * w[1].out * w[2].out, size = w[0].n * w[1].n * w[2].n;
    for (npy_intp plane = 0; plane < batch * channels; plane++) {
        for (npy_intp place = 0; place < places; place++) {
            REAL total = 0, *to = out + plane % channels * places + place;
            FN(products_at)(g + plane * n, images + plane * size, products, w, place);
            char *pointers[3] = {(char *)&total, (char *)products, (char *)&total};
            npy_intp count = n, steps[3] = {0, sizeof(REAL), 0};
            LOOP(add).function(pointers, &count, steps, LOOP(add).data);
            *to = plane < channels ? total : *to + total;
        }
    }
}
