/* Loops around matrix products, for one floating-point type: see fused_both_types.h. */

/* out = a @ b for matrices of (m, n) and (n, p), given how far apart their rows and columns are; `out` is contiguous. */
static void FN(product)(const REAL *a, npy_intp a_row, npy_intp a_col, const REAL *b, npy_intp b_row, npy_intp b_col, REAL *out,
                        npy_intp m, npy_intp n, npy_intp p)
{
    const npy_intp size = sizeof(REAL);
    char *pointers[3] = {(char *)a, (char *)b, (char *)out};
    npy_intp dimensions[4] = {1, m, n, p};
    npy_intp steps[9] = {0, 0, 0, a_row * size, a_col * size, b_row * size, b_col * size, p * size, size};
    LOOP(matmul).function(pointers, dimensions, steps, LOOP(matmul).data);
}

CLONES static void FN(add_to)(REAL *out, const REAL *other, npy_intp n)
{
    INDEPENDENT
    for (npy_intp i = 0; i < n; i++) {
        out[i] += other[i];
    }
}

/* The columns of one image: (channels, places, length) from (channels, total). */
static void FN(columns)(const REAL *image, const Grid *grid, REAL *columns)
{
    for (npy_intp c = 0; c < grid->channels; c++, image += grid->total) {
        for (npy_intp k = 0; k < grid->places; k++, columns += grid->length) {
            memcpy(columns, image + grid->offsets[k], (size_t)grid->length * sizeof(REAL));
        }
    }
}

static void FN(convolve)(const REAL *images, const REAL *weight, REAL *out, REAL *scratch, const Grid *grid)
{
    npy_intp inner = grid->channels * grid->places, length = grid->length;
    for (npy_intp i = 0; i < grid->images; i++, images += grid->channels * grid->total, out += grid->filters * length) {
        FN(columns)(images, grid, scratch);
        FN(product)(weight, inner, 1, scratch, length, 1, out, grid->filters, inner, length);
    }
}

/* `out` is zero before; `scratch` has room for columns and for a weight. */
static void FN(convolve_weight)(const REAL *images, const REAL *g, REAL *out, REAL *scratch, const Grid *grid)
{
    npy_intp inner = grid->channels * grid->places, length = grid->length;
    REAL *one = scratch + inner * length;
    for (npy_intp i = 0; i < grid->images; i++, images += grid->channels * grid->total, g += grid->filters * length) {
        FN(columns)(images, grid, scratch);
        FN(product)(g, length, 1, scratch, 1, length, one, grid->filters, length, inner);
        FN(add_to)(out, one, grid->filters * inner);
    }
}

/* `images` are zero before. */
static void FN(convolve_input)(const REAL *g, const REAL *weight, REAL *images, REAL *scratch, const Grid *grid)
{
    npy_intp inner = grid->channels * grid->places, length = grid->length;
    for (npy_intp i = 0; i < grid->images; i++, g += grid->filters * length) {
        const REAL *columns = scratch;
        FN(product)(weight, 1, inner, g, length, 1, scratch, inner, grid->filters, length);
        for (npy_intp c = 0; c < grid->channels; c++, images += grid->total) {
            for (npy_intp k = 0; k < grid->places; k++, columns += length) {
                FN(add_to)(images + grid->offsets[k], columns, length);
            }
        }
    }
}
