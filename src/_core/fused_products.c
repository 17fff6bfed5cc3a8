/* Fused loops around matrix products: convolutions and LSTM layers. */

#include "fused.h"

/* How a convolution of stride 1 reads its padded images, see `_Grid` in _ops/convolution.py. */
typedef struct {
    npy_intp images, channels, total, filters, places, length;
    const npy_int64 *offsets; /* of each kernel place in a flat channel */
} Grid;

#define FAMILY "fused_product_kernels.h"
#include "fused_both_types.h"

/* ---------------------------------------------------------------------------------------------- LSTM, float32 */

/* The gates of one step after tanh, the first three as sigmoids: sigmoid(z) = (tanh(z / 2) + 1) / 2. Then the new cells. */
CLONES static void lstm_cells(float *gates, const float *cells, float *after, npy_intp batch, npy_intp size)
{
    for (npy_intp b = 0; b < batch; b++, gates += 4 * size, cells += size, after += size) {
        float *in = gates, *forget = gates + size, *out = gates + 2 * size, *new = gates + 3 * size;
        INDEPENDENT
        for (npy_intp j = 0; j < size; j++) {
            in[j] = (in[j] + 1.0f) * 0.5f;
            forget[j] = (forget[j] + 1.0f) * 0.5f;
            out[j] = (out[j] + 1.0f) * 0.5f;
            after[j] = forget[j] * cells[j] + in[j] * new[j];
        }
    }
}

CLONES static void lstm_hidden(const float *gates, const float *curve, float *hidden, npy_intp batch, npy_intp size)
{
    for (npy_intp b = 0; b < batch; b++, gates += 4 * size, curve += size, hidden += size) {
        const float *out = gates + 2 * size;
        INDEPENDENT
        for (npy_intp j = 0; j < size; j++) {
            hidden[j] = out[j] * curve[j];
        }
    }
}

/* Gradients of one step's sums in torch's order of gates (i, f, g, o), from those of its hidden and cell states; to_cell becomes that
 * of the cells before the step. */
CLONES static void lstm_gate_gradients(const float *to_hidden, float *to_cell, const float *gates, const float *cells,
                                       const float *curve, float *to_gates, npy_intp batch, npy_intp size)
{
    for (npy_intp b = 0; b < batch; b++) {
        const float *in = gates, *forget = gates + size, *out = gates + 2 * size, *new = gates + 3 * size;
        float *to_in = to_gates, *to_forget = to_gates + size, *to_new = to_gates + 2 * size, *to_out = to_gates + 3 * size;
        INDEPENDENT
        for (npy_intp j = 0; j < size; j++) {
            float i = in[j], f = forget[j], o = out[j], n = new[j], c = curve[j], dh = to_hidden[j];
            float dc = to_cell[j] + dh * (o * (1.0f - c * c));
            to_in[j] = ((n * i) * (1.0f - i)) * dc;
            to_forget[j] = ((cells[j] * f) * (1.0f - f)) * dc;
            to_new[j] = (i * (1.0f - n * n)) * dc;
            to_out[j] = dh * ((c * o) * (1.0f - o));
            to_cell[j] = dc * f;
        }
        gates += 4 * size, to_gates += 4 * size;
        to_hidden += size, to_cell += size, cells += size, curve += size;
    }
}

static void lstm_forward_loop(float *gates, const float *recurrent, const float *hidden, float *cells, float *curves, float *out,
                              float *product, npy_intp steps, npy_intp batch, npy_intp size)
{
    npy_intp n = batch * size;
    for (npy_intp step = 0; step < steps; step++, gates += 4 * n, cells += n, curves += n, out += n) {
        product_float(hidden, size, 1, recurrent, 4 * size, 1, product, batch, size, 4 * size);
        add_to_float(gates, product, 4 * n);
        apply(&tanh_f32, gates, gates, 4 * n, sizeof(float));
        lstm_cells(gates, cells, cells + n, batch, size);
        apply(&tanh_f32, cells + n, curves, n, sizeof(float));
        lstm_hidden(gates, curves, out, batch, size);
        hidden = out;
    }
}

static void lstm_backward_loop(const float *flowing, float *to_hidden, float *to_cell, const float *gates, const float *cells,
                               const float *curves, const float *recurrent, float *to_gates, npy_intp steps, npy_intp batch,
                               npy_intp size)
{
    npy_intp n = batch * size;
    for (npy_intp step = steps - 1; step >= 0; step--) {
        if (flowing != NULL) {
            add_to_float(to_hidden, flowing + step * n, n);
        }
        lstm_gate_gradients(to_hidden, to_cell, gates + step * 4 * n, cells + step * n, curves + step * n,
                            to_gates + step * 4 * n, batch, size);
        product_float(to_gates + step * 4 * n, 4 * size, 1, recurrent, size, 1, to_hidden, batch, 4 * size, size);
    }
}

/* ---------------------------------------------------------------------------------------------- functions */

/* lstm_forward(gates, recurrent, hidden, cells, curves, out) -> True: all steps of `_lstm_steps` in _ops/rnn.py. */
static PyObject *fused_lstm_forward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 6, "lstm_forward")) {
        return NULL;
    }
    PyObject *gates = args[0];
    if (!is_plain(gates) || TYPE(gates) != NPY_FLOAT || NDIM(gates) != 3 || DIM(gates, 2) % 4) {
        Py_RETURN_NONE;
    }
    npy_intp steps = DIM(gates, 0), batch = DIM(gates, 1), size = DIM(gates, 2) / 4, n = batch * size;
    if (!has(args[1], NPY_FLOAT, size * 4 * size) || !has(args[2], NPY_FLOAT, n) ||
        !has(args[3], NPY_FLOAT, (steps + 1) * n) || !has(args[4], NPY_FLOAT, steps * n) ||
        !has(args[5], NPY_FLOAT, steps * n) || !is_writeable(gates) || !is_writeable(args[3]) || !is_writeable(args[4]) ||
        !is_writeable(args[5])) {
        Py_RETURN_NONE;
    }
    float *product = malloc((size_t)n * 4 * sizeof(float) + 1);
    if (product == NULL) {
        return PyErr_NoMemory();
    }
    void *recurrent = DATA(args[1]), *hidden = DATA(args[2]), *cells = DATA(args[3]), *curves = DATA(args[4]);
    void *sums = DATA(gates), *out = DATA(args[5]);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    lstm_forward_loop(sums, recurrent, hidden, cells, curves, out, product, steps, batch, size);
    NPY_END_THREADS;
    free(product);
    Py_RETURN_TRUE;
}

/* lstm_backward(flowing, to_hidden, to_cell, gates, cells, curves, recurrent, to_gates) -> True: all steps of `_lstm_steps_back`. */
static PyObject *fused_lstm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *flowing;
    (void)module;
    if (!takes(count, 8, "lstm_backward")) {
        return NULL;
    }
    PyObject *gates = args[3];
    if (!is_plain(gates) || TYPE(gates) != NPY_FLOAT || NDIM(gates) != 3 || DIM(gates, 2) % 4) {
        Py_RETURN_NONE;
    }
    npy_intp steps = DIM(gates, 0), batch = DIM(gates, 1), size = DIM(gates, 2) / 4, n = batch * size;
    if (!optional(args[0], NPY_FLOAT, steps * n, &flowing) || !has(args[1], NPY_FLOAT, n) || !has(args[2], NPY_FLOAT, n) ||
        !has(args[4], NPY_FLOAT, (steps + 1) * n) || !has(args[5], NPY_FLOAT, steps * n) ||
        !has(args[6], NPY_FLOAT, size * 4 * size) || !has(args[7], NPY_FLOAT, steps * 4 * n) || !is_writeable(args[1]) ||
        !is_writeable(args[2]) || !is_writeable(args[7])) {
        Py_RETURN_NONE;
    }
    void *to_hidden = DATA(args[1]), *to_cell = DATA(args[2]), *after = DATA(gates), *cells = DATA(args[4]);
    void *curves = DATA(args[5]), *recurrent = DATA(args[6]), *to_gates = DATA(args[7]);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    lstm_backward_loop(flowing, to_hidden, to_cell, after, cells, curves, recurrent, to_gates, steps, batch, size);
    NPY_END_THREADS;
    Py_RETURN_TRUE;
}

/* Fill in a grid from flat images (images, channels, total), offsets, and the length of columns; 0 unless they fit together. */
static int describe_grid(PyObject *images, PyObject *offsets, PyObject *length, Grid *grid)
{
    if (!is_real(images) || NDIM(images) != 3 || !is_plain(offsets) || TYPE(offsets) != NPY_INT64 || NDIM(offsets) != 1) {
        return 0;
    }
    grid->length = PyLong_AsSsize_t(length);
    if (grid->length < 0) {
        return 0;
    }
    grid->images = DIM(images, 0);
    grid->channels = DIM(images, 1);
    grid->total = DIM(images, 2);
    grid->places = SIZE(offsets);
    grid->offsets = DATA(offsets);
    return are_inside(grid->offsets, grid->places, grid->total - grid->length + 1);
}

/* convolve(images, offsets, length, weight) -> (images, filters, length): the weight is (filters, channels * places). */
static PyObject *fused_convolve(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Grid grid;
    (void)module;
    if (!takes(count, 4, "convolve")) {
        return NULL;
    }
    if (!describe_grid(args[0], args[1], args[2], &grid)) {
        return none_unless_error();
    }
    int type = TYPE(args[0]);
    npy_intp inner = grid.channels * grid.places;
    if (!is_plain(args[3]) || TYPE(args[3]) != type || NDIM(args[3]) != 2 || DIM(args[3], 1) != inner) {
        Py_RETURN_NONE;
    }
    grid.filters = DIM(args[3], 0);
    npy_intp shape[3] = {grid.images, grid.filters, grid.length};
    void *scratch = scratch_for(inner * grid.length, type);
    PyObject *out = scratch == NULL ? NULL : PyArray_SimpleNew(3, shape, type);
    if (out == NULL) {
        free(scratch);
        return NULL;
    }
    void *from = DATA(args[0]), *weight = DATA(args[3]), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    if (type == NPY_FLOAT) {
        convolve_float(from, weight, to, scratch, &grid);
    }
    else {
        convolve_double(from, weight, to, scratch, &grid);
    }
    NPY_END_THREADS;
    free(scratch);
    return out;
}

/* convolve_weight(images, offsets, length, g) -> (filters, channels * places): g is (images, filters, length). */
static PyObject *fused_convolve_weight(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Grid grid;
    (void)module;
    if (!takes(count, 4, "convolve_weight")) {
        return NULL;
    }
    if (!describe_grid(args[0], args[1], args[2], &grid)) {
        return none_unless_error();
    }
    int type = TYPE(args[0]);
    PyObject *g = args[3];
    if (!is_plain(g) || TYPE(g) != type || NDIM(g) != 3 || DIM(g, 0) != grid.images || DIM(g, 2) != grid.length) {
        Py_RETURN_NONE;
    }
    grid.filters = DIM(g, 1);
    npy_intp inner = grid.channels * grid.places, shape[2] = {grid.filters, inner};
    if (grid.filters * inner < 2) { /* NumPy adds up a single column in pairs */
        Py_RETURN_NONE;
    }
    void *scratch = scratch_for(inner * (grid.length + grid.filters), type);
    PyObject *out = scratch == NULL ? NULL : PyArray_ZEROS(2, shape, type, 0);
    if (out == NULL) {
        free(scratch);
        return NULL;
    }
    void *from = DATA(args[0]), *given = DATA(g), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    if (type == NPY_FLOAT) {
        convolve_weight_float(from, given, to, scratch, &grid);
    }
    else {
        convolve_weight_double(from, given, to, scratch, &grid);
    }
    NPY_END_THREADS;
    free(scratch);
    return out;
}

/* convolve_input(images, offsets, length, weight, g) -> True: adds to flat images, which are zero before. */
static PyObject *fused_convolve_input(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Grid grid;
    (void)module;
    if (!takes(count, 5, "convolve_input")) {
        return NULL;
    }
    if (!describe_grid(args[0], args[1], args[2], &grid)) {
        return none_unless_error();
    }
    int type = TYPE(args[0]);
    npy_intp inner = grid.channels * grid.places;
    PyObject *weight = args[3], *g = args[4];
    if (!is_writeable(args[0]) || !is_plain(weight) || TYPE(weight) != type || NDIM(weight) != 2 || DIM(weight, 1) != inner) {
        Py_RETURN_NONE;
    }
    grid.filters = DIM(weight, 0);
    if (!has(g, type, grid.images * grid.filters * grid.length)) {
        Py_RETURN_NONE;
    }
    void *scratch = scratch_for(inner * grid.length, type);
    if (scratch == NULL) {
        return NULL;
    }
    void *to = DATA(args[0]), *by = DATA(weight), *given = DATA(g);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    if (type == NPY_FLOAT) {
        convolve_input_float(given, by, to, scratch, &grid);
    }
    else {
        convolve_input_double(given, by, to, scratch, &grid);
    }
    NPY_END_THREADS;
    free(scratch);
    Py_RETURN_TRUE;
}

PyMethodDef product_functions[] = {
    FAST(convolve),
    FAST(convolve_weight),
    FAST(convolve_input),
    FAST(lstm_forward),
    FAST(lstm_backward),
    {NULL, NULL, 0, NULL},
};
