/* Fused loops over rows and columns: sums, softmax, layer norm, and losses of classes. */

#include "fused.h"
#include "fused_exp.h"

#define BLOCK_ROWS 256

static npy_intp block_rows(npy_intp cols)
{
    npy_intp rows = BLOCK / cols;
    return rows < 1 ? 1 : rows > BLOCK_ROWS ? BLOCK_ROWS : rows;
}

#define LEAST_LANE_COLUMNS 512 /* shorter rows are summed by NumPy */
#define MOST_LANE_COLUMNS (1 << 16)

/* Rows that are summed here as NumPy would, without calling its inner loop for each. */
#define LEAST_SHORT_COLUMNS 8
#define MOST_SHORT_COLUMNS 128
static int short_sums_are_equal; /* whether NumPy's are: else its loop is called */

/* out = exp(x - less), row by row. */
CLONES static void shifted_exp_loop(const float *x, const float *less, float *out, npy_intp rows, npy_intp cols)
{
    for (npy_intp i = 0; i < rows; i++, x += cols, out += cols) {
        float difference = less[i];
        INDEPENDENT
        for (npy_intp j = 0; j < cols; j++) {
            out[j] = exp_of(x[j] - difference);
        }
    }
}

#define FAMILY "fused_row_kernels.h"
#include "fused_both_types.h"

void compare_short_sums(void)
{
    short_sums_are_equal = short_sums_are_equal_float() && short_sums_are_equal_double();
}

/* ---------------------------------------------------------------------------------------------- functions */

/* nll_losses(x, target): -x[i, target[i]] for a matrix. */
static PyObject *fused_nll_losses(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "nll_losses")) {
        return NULL;
    }
    PyObject *x = args[0], *target = args[1];
    if (!is_real(x) || NDIM(x) != 2 || !has(target, NPY_INT64, DIM(x, 0)) || NDIM(target) != 1) {
        Py_RETURN_NONE;
    }
    npy_intp n = DIM(x, 0), classes = DIM(x, 1);
    const npy_int64 *place = DATA(target);
    if (!are_inside(place, n, classes)) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(1, &n, TYPE(x));
    if (out == NULL) {
        return NULL;
    }
    for (npy_intp i = 0; i < n; i++) {
        if (TYPE(x) == NPY_FLOAT) {
            ((float *)DATA(out))[i] = -((const float *)DATA(x))[i * classes + place[i]];
        }
        else {
            ((double *)DATA(out))[i] = -((const double *)DATA(x))[i * classes + place[i]];
        }
    }
    return out;
}

/* multilabel_margins(rows, targets): for each row the sum of violated margins, and which classes are labels. */
static PyObject *fused_multilabel_margins(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "multilabel_margins")) {
        return NULL;
    }
    PyObject *x = args[0], *targets = args[1];
    if (!is_real(x) || NDIM(x) != 2 || !has(targets, NPY_INT64, SIZE(x)) || NDIM(targets) != 2 || DIM(targets, 0) != DIM(x, 0) ||
        DIM(x, 1) > longest_row) {
        Py_RETURN_NONE;
    }
    npy_intp n = DIM(x, 0), cols = DIM(x, 1), size = SIZE(x);
    const npy_int64 *places = DATA(targets);
    for (npy_intp i = 0; i < size; i++) {
        if (places[i] >= cols) {
            Py_RETURN_NONE;
        }
    }
    PyObject *losses = PyArray_SimpleNew(1, &n, TYPE(x)), *is_target = PyArray_ZEROS(2, PyArray_DIMS((PyArrayObject *)x), NPY_BOOL, 0);
    void *gaps = scratch_for(cols, TYPE(x));
    if (losses == NULL || is_target == NULL || gaps == NULL) {
        Py_XDECREF(losses);
        Py_XDECREF(is_target);
        free(gaps);
        return NULL;
    }
    if (TYPE(x) == NPY_FLOAT) {
        multilabel_margins_float(DATA(x), places, DATA(losses), DATA(is_target), gaps, n, cols);
    }
    else {
        multilabel_margins_double(DATA(x), places, DATA(losses), DATA(is_target), gaps, n, cols);
    }
    free(gaps);
    return Py_BuildValue("(NN)", losses, is_target);
}

/* nll_gradient(target, classes, value): a matrix that is zero but for the value (an array of one element) at [i, target[i]]. */
static PyObject *fused_nll_gradient(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "nll_gradient")) {
        return NULL;
    }
    PyObject *target = args[0], *value = args[2];
    npy_intp classes = PyLong_AsSsize_t(args[1]);
    if (classes == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_plain(target) || TYPE(target) != NPY_INT64 || NDIM(target) != 1 || !is_real(value) || SIZE(value) != 1) {
        Py_RETURN_NONE;
    }
    npy_intp n = DIM(target, 0), shape[2] = {n, classes};
    const npy_int64 *place = DATA(target);
    if (classes < 0 || !are_inside(place, n, classes)) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_ZEROS(2, shape, TYPE(value), 0);
    if (out == NULL) {
        return NULL;
    }
    for (npy_intp i = 0; i < n; i++) {
        if (TYPE(value) == NPY_FLOAT) {
            ((float *)DATA(out))[i * classes + place[i]] = *(const float *)DATA(value);
        }
        else {
            ((double *)DATA(out))[i * classes + place[i]] = *(const double *)DATA(value);
        }
    }
    return out;
}

static PyObject *fused_add_row(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "add_row")) {
        return NULL;
    }
    PyObject *matrix = args[0], *row = args[1];
    if (!is_real(matrix) || NDIM(matrix) != 2 || !is_writeable(matrix) || !is_plain(row) || NDIM(row) != 1 ||
        !has(row, TYPE(matrix), DIM(matrix, 1)) || shares(matrix, row)) {
        Py_RETURN_NONE;
    }
    npy_intp rows = DIM(matrix, 0), cols = DIM(matrix, 1);
    void *data = DATA(matrix), *added = DATA(row);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(matrix) == NPY_FLOAT) {
        add_row_float(data, added, rows, cols);
    }
    else {
        add_row_double(data, added, rows, cols);
    }
    NPY_END_THREADS;
    return Py_NewRef(matrix);
}

static PyObject *fused_sum_columns(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "sum_columns")) {
        return NULL;
    }
    PyObject *matrix = args[0];
    int keepdim = PyObject_IsTrue(args[1]);
    if (keepdim < 0) {
        return NULL;
    }
    /* NumPy adds up a single column in pairs. */
    if (!is_real(matrix) || NDIM(matrix) != 2 || DIM(matrix, 1) < 2) {
        Py_RETURN_NONE;
    }
    npy_intp rows = DIM(matrix, 0), cols = DIM(matrix, 1);
    npy_intp shape[2] = {1, cols};
    PyObject *out = keepdim ? PyArray_ZEROS(2, shape, TYPE(matrix), 0) : PyArray_ZEROS(1, &cols, TYPE(matrix), 0);
    if (out == NULL) {
        return NULL;
    }
    void *data = DATA(matrix), *sums = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(matrix) == NPY_FLOAT) {
        sum_columns_float(data, sums, rows, cols);
    }
    else {
        sum_columns_double(data, sums, rows, cols);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_sum_at_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "sum_at_rows")) {
        return NULL;
    }
    PyObject *rows = args[0], *places = args[1];
    npy_intp table_rows = PyLong_AsSsize_t(args[2]);
    if (table_rows == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_real(rows) || NDIM(rows) != 2 || table_rows < 0 || !has(places, NPY_INT64, DIM(rows, 0))) {
        Py_RETURN_NONE;
    }
    const npy_int64 *place = DATA(places);
    npy_intp n = DIM(rows, 0);
    if (!are_inside(place, n, table_rows)) {
        Py_RETURN_NONE;
    }
    npy_intp shape[2] = {table_rows, DIM(rows, 1)};
    PyObject *out = PyArray_ZEROS(2, shape, TYPE(rows), 0);
    if (out == NULL) {
        return NULL;
    }
    void *data = DATA(rows), *table = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n * shape[1]);
    if (TYPE(rows) == NPY_FLOAT) {
        add_at_rows_float(table, place, data, n, shape[1]);
    }
    else {
        add_at_rows_double(table, place, data, n, shape[1]);
    }
    NPY_END_THREADS;
    return out;
}

/* The product of the last `dims` dimensions. */
static npy_intp trailing(PyObject *array, Py_ssize_t dims)
{
    npy_intp n = 1;
    for (Py_ssize_t d = NDIM(array) - dims; d < NDIM(array); d++) {
        n *= DIM(array, d);
    }
    return n;
}

/* Whether the last `dims` dimensions are rows that can be worked on. */
static int has_rows(PyObject *array, Py_ssize_t dims)
{
    return is_real(array) && dims > 0 && NDIM(array) >= dims && SIZE(array) > 0 && trailing(array, dims) <= longest_row &&
           trailing(array, dims) <= MOST_LANE_COLUMNS;
}

static PyObject *fused_softmax(PyObject *module, PyObject *x)
{
    (void)module;
    if (!has_rows(x, 1)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        return NULL;
    }
    npy_intp cols = DIM(x, NDIM(x) - 1), rows = SIZE(x) / cols;
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        softmax_float(from, to, rows, cols);
    }
    else {
        softmax_double(from, to, rows, cols);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_log_softmax(PyObject *module, PyObject *x)
{
    (void)module;
    if (!has_rows(x, 1)) {
        Py_RETURN_NONE;
    }
    npy_intp cols = DIM(x, NDIM(x) - 1), rows = SIZE(x) / cols;
    void *scratch = malloc((size_t)(block_rows(cols) * cols) * sizeof(double));
    if (scratch == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *out = empty_like(x);
    if (out == NULL) {
        free(scratch);
        return NULL;
    }
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        log_softmax_float(from, to, scratch, rows, cols);
    }
    else {
        log_softmax_double(from, to, scratch, rows, cols);
    }
    NPY_END_THREADS;
    free(scratch);
    return out;
}

typedef void (*RowsFloat)(const float *, const float *, float *, npy_intp, npy_intp);
typedef void (*RowsDouble)(const double *, const double *, double *, npy_intp, npy_intp);

static PyObject *rows_backward(PyObject *const *args, Py_ssize_t count, const char *name, RowsFloat of_float,
                               RowsDouble of_double)
{
    if (!takes(count, 2, name)) {
        return NULL;
    }
    PyObject *g = args[0], *y = args[1];
    if (!has_rows(y, 1) || !is_like(g, y)) {
        Py_RETURN_NONE;
    }
    PyObject *out = empty_like(y);
    if (out == NULL) {
        return NULL;
    }
    npy_intp cols = DIM(y, NDIM(y) - 1), rows = SIZE(y) / cols;
    void *given = DATA(g), *from = DATA(y), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(y) == NPY_FLOAT) {
        of_float(given, from, to, rows, cols);
    }
    else {
        of_double(given, from, to, rows, cols);
    }
    NPY_END_THREADS;
    return out;
}

static PyObject *fused_softmax_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    return rows_backward(args, count, "softmax_backward", softmax_backward_float, softmax_backward_double);
}

static PyObject *fused_log_softmax_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    return rows_backward(args, count, "log_softmax_backward", log_softmax_backward_float, log_softmax_backward_double);
}

/* layer_norm(x, dims, weight, bias, eps) -> (normalized, mean, rstd) over the last `dims` dimensions. */
static PyObject *fused_layer_norm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    double eps;
    void *weight, *bias;
    (void)module;
    if (!takes(count, 5, "layer_norm")) {
        return NULL;
    }
    PyObject *x = args[0];
    Py_ssize_t dims = PyLong_AsSsize_t(args[1]);
    if (dims == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!has_rows(x, dims) || !is_number(args[4], &eps)) {
        Py_RETURN_NONE;
    }
    npy_intp cols = trailing(x, dims), rows = SIZE(x) / cols, shape[NPY_MAXDIMS];
    if (!optional(args[2], TYPE(x), cols, &weight) || !optional(args[3], TYPE(x), cols, &bias)) {
        Py_RETURN_NONE;
    }
    for (int d = 0; d < NDIM(x); d++) {
        shape[d] = d < NDIM(x) - dims ? DIM(x, d) : 1;
    }
    PyObject *out = empty_like(x), *mean = PyArray_SimpleNew(NDIM(x), shape, TYPE(x));
    PyObject *rstd = PyArray_SimpleNew(NDIM(x), shape, TYPE(x));
    void *scratch = malloc((size_t)cols * sizeof(double));
    if (out == NULL || mean == NULL || rstd == NULL || scratch == NULL) {
        Py_XDECREF(out);
        Py_XDECREF(mean);
        Py_XDECREF(rstd);
        if (scratch == NULL && !PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        free(scratch);
        return NULL;
    }
    void *from = DATA(x), *to = DATA(out), *means = DATA(mean), *rstds = DATA(rstd);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        layer_norm_float(from, weight, bias, (float)eps, to, means, rstds, scratch, rows, cols);
    }
    else {
        layer_norm_double(from, weight, bias, eps, to, means, rstds, scratch, rows, cols);
    }
    NPY_END_THREADS;
    free(scratch);
    return Py_BuildValue("(NNN)", out, mean, rstd);
}

/* layer_norm_backward(g, x, dims, mean, rstd, weight) -> the gradients of the input, the weight and the bias. */
static PyObject *fused_layer_norm_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *weight;
    (void)module;
    if (!takes(count, 6, "layer_norm_backward")) {
        return NULL;
    }
    PyObject *g = args[0], *x = args[1];
    Py_ssize_t dims = PyLong_AsSsize_t(args[2]);
    if (dims == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!has_rows(x, dims) || !is_like(g, x)) {
        Py_RETURN_NONE;
    }
    npy_intp cols = trailing(x, dims), rows = SIZE(x) / cols;
    /* NumPy adds up a single column in pairs. */
    if (cols < 2 || !has(args[3], TYPE(x), rows) || !has(args[4], TYPE(x), rows) ||
        !optional(args[5], TYPE(x), cols, &weight)) {
        Py_RETURN_NONE;
    }
    npy_intp *shape = PyArray_DIMS((PyArrayObject *)x) + NDIM(x) - dims;
    PyObject *to_input = empty_like(x), *to_weight = PyArray_ZEROS((int)dims, shape, TYPE(x), 0);
    PyObject *to_bias = PyArray_ZEROS((int)dims, shape, TYPE(x), 0);
    void *scratch = malloc((size_t)cols * 2 * sizeof(double));
    if (to_input == NULL || to_weight == NULL || to_bias == NULL || scratch == NULL) {
        Py_XDECREF(to_input);
        Py_XDECREF(to_weight);
        Py_XDECREF(to_bias);
        if (scratch == NULL && !PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        free(scratch);
        return NULL;
    }
    void *given = DATA(g), *from = DATA(x), *mean = DATA(args[3]), *rstd = DATA(args[4]);
    void *first = DATA(to_input), *second = DATA(to_weight), *third = DATA(to_bias);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        layer_norm_backward_float(given, from, mean, rstd, weight, first, second, third, scratch, rows, cols);
    }
    else {
        layer_norm_backward_double(given, from, mean, rstd, weight, first, second, third, scratch, rows, cols);
    }
    NPY_END_THREADS;
    free(scratch);
    return Py_BuildValue("(NNN)", to_input, to_weight, to_bias);
}

/* row_sums(x): the sums of the rows of a matrix. */
static PyObject *fused_row_sums(PyObject *module, PyObject *x)
{
    (void)module;
    if (!is_real(x) || NDIM(x) != 2) {
        Py_RETURN_NONE;
    }
    npy_intp rows = DIM(x, 0), cols = DIM(x, 1), room = cols / LANE_STEPS + 2 * LANES;
    if (room > longest_row) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(1, &rows, TYPE(x));
    void *lanes = malloc(room * PyArray_ITEMSIZE((PyArrayObject *)x));
    if (out == NULL || lanes == NULL) {
        Py_XDECREF(out);
        free(lanes);
        return PyErr_NoMemory();
    }
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(rows * cols);
    if (TYPE(x) == NPY_FLOAT) {
        row_sums_float(from, to, lanes, rows, cols);
    }
    else {
        row_sums_double(from, to, lanes, rows, cols);
    }
    NPY_END_THREADS;
    free(lanes);
    return out;
}

#define MOST_OF_TOPK 256 /* more are sorted faster by NumPy */

/* topk(x, k, largest) -> (values, places) of the last dimension. */
static PyObject *fused_topk(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "topk")) {
        return NULL;
    }
    PyObject *x = args[0];
    npy_intp k = PyLong_AsSsize_t(args[1]);
    if (k == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_real(x) || NDIM(x) < 1 || k < 1 || k > MOST_OF_TOPK || k > DIM(x, NDIM(x) - 1)) {
        Py_RETURN_NONE;
    }
    npy_intp shape[NPY_MAXDIMS], cols = DIM(x, NDIM(x) - 1), rows = SIZE(x) / cols;
    memcpy(shape, PyArray_DIMS((PyArrayObject *)x), NDIM(x) * sizeof(npy_intp));
    shape[NDIM(x) - 1] = k;
    PyObject *values = PyArray_SimpleNew(NDIM(x), shape, TYPE(x));
    PyObject *places = values == NULL ? NULL : PyArray_SimpleNew(NDIM(x), shape, NPY_INT64);
    if (places == NULL) {
        Py_XDECREF(values);
        return NULL;
    }
    void *from = DATA(x), *to = DATA(values);
    npy_int64 *numbers = DATA(places);
    int largest = args[2] == Py_True;
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(x));
    if (TYPE(x) == NPY_FLOAT) {
        topk_float(from, to, numbers, rows, cols, k, largest);
    }
    else {
        topk_double(from, to, numbers, rows, cols, k, largest);
    }
    NPY_END_THREADS;
    return Py_BuildValue("(NN)", values, places);
}

PyMethodDef row_functions[] = {
    FAST(topk),
    FAST(nll_losses),
    FAST(multilabel_margins),
    FAST(nll_gradient),
    FAST(add_row),
    FAST(sum_columns),
    FAST(sum_at_rows),
    {"softmax", fused_softmax, METH_O, NULL},
    FAST(softmax_backward),
    {"log_softmax", fused_log_softmax, METH_O, NULL},
    FAST(log_softmax_backward),
    FAST(layer_norm),
    FAST(layer_norm_backward),
    {"row_sums", fused_row_sums, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
