/* Fused loops over windows of images: max and average pools, adaptive ones, and their gradients; patches of convolutions.
 *
 * Images have one to three dimensions after their planes; missing ones are dimensions of size 1 before them. */

#include "fused.h"

#define MOST_DIMS 3
#define LARGEST_SIZE ((npy_intp)1 << 31) /* of a dimension or a setting: products of two fit */

/* The windows along one dimension. Adaptive ones have no stride: they start and end at fractions of n. */
typedef struct {
    npy_intp n, out, kernel, stride, padding, dilation;
    int adaptive;
    npy_int64 *counts;       /* how many numbers each window counts for in an average */
    const npy_int64 *starts; /* of each window, which is `kernel` long; NULL: computed */
} Window;

/* A window's part inside the image. */
typedef struct {
    npy_intp start, end;
} Span;

ALWAYS_INLINE Span span_of(const Window *w, npy_intp o)
{
    Span span;
    if (w->starts != NULL) {
        span.start = w->starts[o];
        span.end = span.start + w->kernel;
        return span;
    }
    if (w->adaptive) {
        span.start = o * w->n / w->out;
        span.end = ((o + 1) * w->n + w->out - 1) / w->out;
        return span;
    }
    npy_intp start = o * w->stride - w->padding, end = start + (w->kernel - 1) * w->dilation + 1;
    if (start < 0) {
        start += (-start + w->dilation - 1) / w->dilation * w->dilation;
    }
    span.start = start;
    span.end = end < w->n ? end : w->n;
    return span;
}

/* Which windows lie inside the image from their first to their last number. Of adaptive ones, and of those that start anywhere: none. */
static Span inside_of(const Window *w)
{
    Span none = {0, 0}, inside;
    npy_intp last = w->n - 1 - (w->kernel - 1) * w->dilation + w->padding; /* of the starts, from the padding on */
    if (w->starts != NULL || w->adaptive || last < 0) {
        return none;
    }
    inside.start = (w->padding + w->stride - 1) / w->stride;
    inside.end = last / w->stride + 1;
    if (inside.end > w->out) {
        inside.end = w->out;
    }
    return inside.start < inside.end ? inside : none;
}

#define FAMILY "fused_window_kernels.h"
#include "fused_both_types.h"

/* ---------------------------------------------------------------------------------------------- settings */

/* An entry of a tuple of ints; -1 for anything else, or if it is not from `least` to LARGEST_SIZE. */
static npy_intp entry_of(PyObject *tuple, Py_ssize_t index, npy_intp least)
{
    PyObject *item = PyTuple_GET_ITEM(tuple, index);
    if (!PyLong_CheckExact(item)) {
        return -1;
    }
    npy_intp value = PyLong_AsSsize_t(item);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    return value < least || value > LARGEST_SIZE ? -1 : value;
}

static int is_tuple_of(PyObject *object, Py_ssize_t count)
{
    return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == count;
}

static const Window single = {1, 1, 1, 1, 0, 1, 0, NULL, NULL};

/* How many windows fit; in ceil mode the last must start inside the image or the padding before it. */
static npy_intp pooled_size(const Window *w, int ceil_mode)
{
    npy_intp room = w->n + 2 * w->padding - w->dilation * (w->kernel - 1) - 1;
    if (room < 0) {
        return 0; /* perhaps one window in ceil mode: NumPy decides */
    }
    npy_intp out = (room + (ceil_mode ? w->stride - 1 : 0)) / w->stride + 1;
    return ceil_mode && (out - 1) * w->stride >= w->n + w->padding ? out - 1 : out;
}

/* The windows of a pool over the last dimensions of `sizes`; how many dimensions, or 0 if NumPy has to look at the settings. */
static int describe_pool(const npy_intp *sizes, int ndim, PyObject *kernel, PyObject *stride, PyObject *padding,
                         PyObject *dilation, Window *w)
{
    if (!PyTuple_CheckExact(kernel)) {
        return 0;
    }
    Py_ssize_t dims = PyTuple_GET_SIZE(kernel);
    if (dims < 1 || dims > MOST_DIMS || ndim <= dims || !is_tuple_of(stride, dims) || !is_tuple_of(padding, dims) ||
        (dilation != NULL && !is_tuple_of(dilation, dims))) {
        return 0;
    }
    w[0] = w[1] = w[2] = single;
    for (Py_ssize_t i = 0; i < dims; i++) {
        Window *window = &w[MOST_DIMS - dims + i];
        window->n = sizes[ndim - dims + i];
        window->kernel = entry_of(kernel, i, 1);
        window->stride = entry_of(stride, i, 1);
        window->padding = entry_of(padding, i, 0);
        window->dilation = dilation == NULL ? 1 : entry_of(dilation, i, 1);
        if (window->n < 1 || window->n > LARGEST_SIZE || window->kernel < 1 || window->stride < 1 || window->padding < 0 ||
            window->dilation < 1 || window->padding > window->kernel / 2) {
            return 0;
        }
    }
    return (int)dims;
}

/* The windows of an adaptive pool; how many dimensions, or 0. */
static int describe_adaptive(const npy_intp *sizes, int ndim, PyObject *out, Window *w)
{
    if (!PyTuple_CheckExact(out)) {
        return 0;
    }
    Py_ssize_t dims = PyTuple_GET_SIZE(out);
    if (dims < 1 || dims > MOST_DIMS || ndim <= dims) {
        return 0;
    }
    w[0] = w[1] = w[2] = single;
    for (Py_ssize_t i = 0; i < dims; i++) {
        Window *window = &w[MOST_DIMS - dims + i];
        window->n = sizes[ndim - dims + i];
        window->out = entry_of(out, i, 1);
        window->adaptive = 1;
        if (window->n < 1 || window->n > LARGEST_SIZE || window->out < 1) {
            return 0;
        }
    }
    return (int)dims;
}

static int has_empty_windows(const Window *w)
{
    for (int i = 0; i < MOST_DIMS; i++) {
        for (npy_intp o = 0; o < w[i].out; o++) {
            Span span = span_of(&w[i], o);
            if (span.end <= span.start) {
                return 1;
            }
        }
    }
    return w[0].out < 1 || w[1].out < 1 || w[2].out < 1;
}

/* How many numbers each window counts for, as `_divisors` of _ops/average_pooling.py; 0 with an error set. */
static int count_windows(Window *w, int include_pad)
{
    npy_intp total = w[0].out + w[1].out + w[2].out;
    npy_int64 *counts = malloc((size_t)total * sizeof(npy_int64));
    if (counts == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (int i = 0; i < MOST_DIMS; counts += w[i].out, i++) {
        w[i].counts = counts;
        for (npy_intp o = 0; o < w[i].out; o++) {
            Span span = span_of(&w[i], o);
            npy_intp start = o * w[i].stride - w[i].padding, end = start + w[i].kernel, limit = w[i].n + w[i].padding;
            counts[o] = include_pad && !w[i].adaptive ? (end < limit ? end : limit) - start : span.end - span.start;
        }
    }
    return 1;
}

static npy_intp planes_of(PyObject *array, int dims)
{
    npy_intp planes = 1;
    for (int i = 0; i < NDIM(array) - dims; i++) {
        planes *= DIM(array, i);
    }
    return planes;
}

/* A new array with the planes of `array` and the given sizes after them. */
static PyObject *image_like(PyObject *array, int dims, const Window *w, int type)
{
    npy_intp shape[NPY_MAXDIMS];
    int lead = NDIM(array) - dims;
    for (int i = 0; i < lead; i++) {
        shape[i] = DIM(array, i);
    }
    for (int i = 0; i < dims; i++) {
        shape[lead + i] = w[MOST_DIMS - dims + i].out;
    }
    return PyArray_SimpleNew(lead + dims, shape, type);
}

/* ---------------------------------------------------------------------------------------------- functions */

static PyObject *maxima_of(PyObject *x, int dims, const Window *w)
{
    PyObject *out = image_like(x, dims, w, TYPE(x));
    PyObject *places = out == NULL ? NULL : image_like(x, dims, w, NPY_INT64);
    if (places == NULL) {
        Py_XDECREF(out);
        return NULL;
    }
    npy_intp planes = planes_of(x, dims);
    void *from = DATA(x), *to = DATA(out);
    npy_int64 *numbers = DATA(places);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(x));
    if (TYPE(x) == NPY_FLOAT) {
        max_windows_float(from, to, numbers, planes, w);
    }
    else {
        max_windows_double(from, to, numbers, planes, w);
    }
    NPY_END_THREADS;
    return Py_BuildValue("(NN)", out, places);
}

/* max_pool(x, kernel, stride, padding, dilation, ceil_mode) -> (maxima, places): tuples of one entry per dimension. */
static PyObject *fused_max_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 6, "max_pool")) {
        return NULL;
    }
    PyObject *x = args[0];
    Window w[MOST_DIMS];
    int dims = is_real(x) ? describe_pool(PyArray_DIMS((PyArrayObject *)x), NDIM(x), args[1], args[2], args[3], args[4], w) : 0;
    if (dims == 0) {
        Py_RETURN_NONE;
    }
    for (int i = 0; i < MOST_DIMS; i++) {
        w[i].out = pooled_size(&w[i], args[5] == Py_True);
    }
    if (has_empty_windows(w)) {
        Py_RETURN_NONE;
    }
    return maxima_of(x, dims, w);
}

/* adaptive_max_pool(x, size) -> (maxima, places) */
static PyObject *fused_adaptive_max_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "adaptive_max_pool")) {
        return NULL;
    }
    Window w[MOST_DIMS];
    int dims = is_real(args[0]) ? describe_adaptive(PyArray_DIMS((PyArrayObject *)args[0]), NDIM(args[0]), args[1], w) : 0;
    if (dims == 0) {
        Py_RETURN_NONE;
    }
    return maxima_of(args[0], dims, w);
}

/* max_pool_at(x, starts, kernel, size) -> (maxima, places): `starts` (planes, sum of size) are those of the windows, one dimension
 * after the other. */
static PyObject *fused_max_pool_at(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 4, "max_pool_at")) {
        return NULL;
    }
    PyObject *x = args[0], *starts = args[1], *kernel = args[2];
    Window w[MOST_DIMS];
    int dims = is_real(x) ? describe_adaptive(PyArray_DIMS((PyArrayObject *)x), NDIM(x), args[3], w) : 0;
    if (dims == 0 || !is_tuple_of(kernel, dims)) {
        Py_RETURN_NONE;
    }
    npy_intp planes = planes_of(x, dims), total = 0;
    for (int i = MOST_DIMS - dims; i < MOST_DIMS; i++) {
        w[i].kernel = entry_of(kernel, i - (MOST_DIMS - dims), 1);
        total += w[i].out;
    }
    if (!has(starts, NPY_INT64, planes * total)) {
        Py_RETURN_NONE;
    }
    const npy_int64 *start = DATA(starts);
    for (npy_intp plane = 0; plane < planes; plane++) {
        for (int i = MOST_DIMS - dims; i < MOST_DIMS; start += w[i].out, i++) {
            if (w[i].kernel < 1 || w[i].kernel > w[i].n || !are_inside(start, w[i].out, w[i].n - w[i].kernel + 1)) {
                Py_RETURN_NONE;
            }
        }
    }
    PyObject *out = image_like(x, dims, w, TYPE(x));
    PyObject *places = out == NULL ? NULL : image_like(x, dims, w, NPY_INT64);
    if (places == NULL) {
        Py_XDECREF(out);
        return NULL;
    }
    npy_intp volume = w[0].n * w[1].n * w[2].n, each = w[0].out * w[1].out * w[2].out;
    start = DATA(starts);
    for (npy_intp plane = 0; plane < planes; plane++) {
        for (int i = MOST_DIMS - dims; i < MOST_DIMS; start += w[i].out, i++) {
            w[i].starts = start;
        }
        npy_int64 *numbers = (npy_int64 *)DATA(places) + plane * each;
        if (TYPE(x) == NPY_FLOAT) {
            max_windows_float((float *)DATA(x) + plane * volume, (float *)DATA(out) + plane * each, numbers, 1, w);
        }
        else {
            max_windows_double((double *)DATA(x) + plane * volume, (double *)DATA(out) + plane * each, numbers, 1, w);
        }
    }
    return Py_BuildValue("(NN)", out, places);
}

static PyObject *averages_of(PyObject *x, int dims, const Window *w, double divisor)
{
    int type = TYPE(x);
    npy_intp planes = planes_of(x, dims);
    npy_intp first = planes * w[0].out * w[1].n * w[2].n, second = planes * w[0].out * w[1].out * w[2].n;
    PyObject *out = image_like(x, dims, w, type);
    void *scratch = out == NULL ? NULL : scratch_for(dims > 2 ? first : 0, type);
    void *other = scratch == NULL ? NULL : scratch_for(dims > 1 ? second : 0, type);
    if (other == NULL) {
        Py_XDECREF(out);
        free(scratch);
        return NULL;
    }
    void *from = DATA(x), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(x));
    if (type == NPY_FLOAT) {
        average_windows_float(from, to, scratch, other, planes, w, divisor);
    }
    else {
        average_windows_double(from, to, scratch, other, planes, w, divisor);
    }
    NPY_END_THREADS;
    free(scratch);
    free(other);
    return out;
}

/* avg_pool(x, kernel, stride, padding, ceil_mode, include_pad, divisor): the divisor is a number other than 0, or None. */
static PyObject *fused_avg_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 7, "avg_pool")) {
        return NULL;
    }
    PyObject *x = args[0];
    Window w[MOST_DIMS];
    double divisor = 0;
    int dims = is_real(x) ? describe_pool(PyArray_DIMS((PyArrayObject *)x), NDIM(x), args[1], args[2], args[3], NULL, w) : 0;
    if (dims == 0 || (args[6] != Py_None && (!is_number(args[6], &divisor) || divisor == 0))) {
        Py_RETURN_NONE;
    }
    for (int i = 0; i < MOST_DIMS; i++) {
        w[i].out = pooled_size(&w[i], args[4] == Py_True);
        if (w[i].out < 1) {
            Py_RETURN_NONE;
        }
    }
    if (!count_windows(w, args[5] == Py_True)) {
        return NULL;
    }
    PyObject *out = averages_of(x, dims, w, divisor);
    free(w[0].counts);
    return out;
}

/* adaptive_avg_pool(x, size) */
static PyObject *fused_adaptive_avg_pool(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 2, "adaptive_avg_pool")) {
        return NULL;
    }
    Window w[MOST_DIMS];
    int dims = is_real(args[0]) ? describe_adaptive(PyArray_DIMS((PyArrayObject *)args[0]), NDIM(args[0]), args[1], w) : 0;
    if (dims == 0) {
        Py_RETURN_NONE;
    }
    if (!count_windows(w, 0)) {
        return NULL;
    }
    PyObject *out = averages_of(args[0], dims, w, 0);
    free(w[0].counts);
    return out;
}

/* The gradient of averages for an image of `sizes`; the windows have their `out` from g. */
static PyObject *gradient_of_averages(PyObject *g, int dims, Window *w, double divisor)
{
    int type = TYPE(g);
    npy_intp planes = planes_of(g, dims), size = type == NPY_FLOAT ? sizeof(float) : sizeof(double);
    npy_intp first = planes * w[0].n * w[1].out * w[2].out, second = planes * w[0].n * w[1].n * w[2].out;
    Window image[MOST_DIMS] = {w[0], w[1], w[2]};
    for (int i = 0; i < MOST_DIMS; i++) {
        image[i].out = w[i].n;
    }
    PyObject *out = image_like(g, dims, image, type);
    void *scaled = calloc((size_t)SIZE(g) + 1, size);
    void *scratch = calloc((size_t)(dims > 2 ? first : 0) + 1, size);
    void *other = calloc((size_t)(dims > 1 ? second : 0) + 1, size);
    if (out == NULL || scaled == NULL || scratch == NULL || other == NULL) {
        Py_CLEAR(out);
        PyErr_NoMemory();
    }
    else {
        void *from = DATA(g), *to = DATA(out);
        memset(to, 0, PyArray_NBYTES((PyArrayObject *)out));
        NPY_BEGIN_THREADS_DEF;
        NPY_BEGIN_THREADS_THRESHOLDED(SIZE(out));
        if (type == NPY_FLOAT) {
            average_windows_backward_float(from, to, scaled, scratch, other, planes, w, divisor);
        }
        else {
            average_windows_backward_double(from, to, scaled, scratch, other, planes, w, divisor);
        }
        NPY_END_THREADS;
    }
    free(scaled);
    free(scratch);
    free(other);
    return out;
}

/* The sizes in a tuple of as many ints as `g` has dimensions, where those before the last `dims` are g's own; 0 for anything else. */
static int sizes_for(PyObject *g, PyObject *shape, npy_intp *sizes)
{
    if (NDIM(g) < 1 || !is_tuple_of(shape, NDIM(g))) {
        return 0;
    }
    for (int i = 0; i < NDIM(g); i++) {
        sizes[i] = entry_of(shape, i, 0);
        if (sizes[i] < 0) {
            return 0;
        }
    }
    return 1;
}

static int has_planes_of(PyObject *g, const npy_intp *sizes, int dims)
{
    for (int i = 0; i < NDIM(g) - dims; i++) {
        if (sizes[i] != DIM(g, i)) {
            return 0;
        }
    }
    return 1;
}

/* avg_pool_backward(g, shape, kernel, stride, padding, include_pad, divisor) */
static PyObject *fused_avg_pool_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 7, "avg_pool_backward")) {
        return NULL;
    }
    PyObject *g = args[0];
    Window w[MOST_DIMS];
    npy_intp sizes[NPY_MAXDIMS];
    double divisor = 0;
    if (!is_real(g) || !sizes_for(g, args[1], sizes) ||
        (args[6] != Py_None && (!is_number(args[6], &divisor) || divisor == 0))) {
        Py_RETURN_NONE;
    }
    int dims = describe_pool(sizes, NDIM(g), args[2], args[3], args[4], NULL, w);
    if (dims == 0 || !has_planes_of(g, sizes, dims)) {
        Py_RETURN_NONE;
    }
    for (int i = 0; i < dims; i++) {
        Window *window = &w[MOST_DIMS - dims + i];
        window->out = DIM(g, NDIM(g) - dims + i);
        if (window->out < 1 || (window->out - 1) * window->stride >= window->n + window->padding) {
            Py_RETURN_NONE;
        }
    }
    if (!count_windows(w, args[5] == Py_True)) {
        return NULL;
    }
    PyObject *out = gradient_of_averages(g, dims, w, divisor);
    free(w[0].counts);
    return out;
}

/* adaptive_avg_pool_backward(g, shape, dims) */
static PyObject *fused_adaptive_avg_pool_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 3, "adaptive_avg_pool_backward")) {
        return NULL;
    }
    PyObject *g = args[0];
    npy_intp sizes[NPY_MAXDIMS];
    Py_ssize_t dims = PyLong_AsSsize_t(args[2]);
    if (dims == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_real(g) || dims < 1 || dims > MOST_DIMS || NDIM(g) <= dims || !sizes_for(g, args[1], sizes) ||
        !has_planes_of(g, sizes, (int)dims)) {
        Py_RETURN_NONE;
    }
    Window w[MOST_DIMS] = {single, single, single};
    for (int i = 0; i < dims; i++) {
        Window *window = &w[MOST_DIMS - dims + i];
        window->n = sizes[NDIM(g) - dims + i];
        window->out = DIM(g, NDIM(g) - dims + i);
        window->adaptive = 1;
        if (window->n < 1 || window->out < 1 || window->out > LARGEST_SIZE) {
            Py_RETURN_NONE;
        }
    }
    if (!count_windows(w, 0)) {
        return NULL;
    }
    PyObject *out = gradient_of_averages(g, (int)dims, w, 0);
    free(w[0].counts);
    return out;
}

/* scatter_planes(g, places, shape, dims, overlapping): zeros of `shape`, with g at places of its last `dims` dimensions. */
static PyObject *fused_scatter_planes(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 5, "scatter_planes")) {
        return NULL;
    }
    PyObject *g = args[0], *places = args[1];
    npy_intp sizes[NPY_MAXDIMS], volume = 1;
    Py_ssize_t dims = PyLong_AsSsize_t(args[3]);
    if (dims == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!is_real(g) || dims < 1 || dims > MOST_DIMS || NDIM(g) <= dims || !sizes_for(g, args[2], sizes) ||
        !has_planes_of(g, sizes, (int)dims) || !is_plain(places) || TYPE(places) != NPY_INT64 ||
        !PyArray_SAMESHAPE((PyArrayObject *)g, (PyArrayObject *)places)) {
        Py_RETURN_NONE;
    }
    for (int i = NDIM(g) - (int)dims; i < NDIM(g); i++) {
        if (sizes[i] != 0 && volume > NPY_MAX_INTP / 16 / sizes[i]) {
            Py_RETURN_NONE;
        }
        volume *= sizes[i];
    }
    npy_intp planes = planes_of(g, (int)dims), each = planes == 0 ? 0 : SIZE(g) / planes;
    const npy_int64 *numbers = DATA(places);
    if (!are_inside(numbers, SIZE(places), volume)) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(NDIM(g), sizes, TYPE(g));
    double *sums = args[4] == Py_True ? malloc((size_t)volume * sizeof(double) + 1) : NULL;
    if (out == NULL || (sums == NULL && args[4] == Py_True)) {
        Py_XDECREF(out);
        free(sums);
        return PyErr_NoMemory();
    }
    void *from = DATA(g), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(out));
    if (TYPE(g) == NPY_FLOAT) {
        scatter_planes_float(from, numbers, to, sums, planes, each, volume);
    }
    else {
        scatter_planes_double(from, numbers, to, sums, planes, each, volume);
    }
    NPY_END_THREADS;
    free(sums);
    return out;
}

/* The windows of a convolution over padded images (N, C, *spatial) with these sizes of kernel and output; 0 if one would end outside. */
static int describe_convolution(PyObject *images, const npy_intp *kernel, const npy_intp *out, PyObject *stride, PyObject *dilation,
                                Window *w)
{
    int dims = NDIM(images) - 2;
    for (int i = 0; i < MOST_DIMS; i++) {
        int d = i - (MOST_DIMS - dims);
        w[i] = single;
        if (d >= 0) {
            w[i].n = DIM(images, 2 + d);
            w[i].kernel = kernel[d];
            w[i].out = out[d];
            w[i].stride = entry_of(stride, d, 0);
            w[i].dilation = entry_of(dilation, d, 0);
        }
        if (w[i].stride < 1 || w[i].dilation < 1 || w[i].kernel < 1 || w[i].out < 1 || w[i].kernel > LARGEST_SIZE ||
            w[i].out > LARGEST_SIZE || (w[i].kernel - 1) * w[i].dilation + (w[i].out - 1) * w[i].stride >= w[i].n) {
            return 0;
        }
    }
    return 1;
}

/* Whether `out` (N, C, *out) and padded images (N, C, *spatial) are those of a convolution with one filter per channel. */
static int are_depthwise(PyObject *out, PyObject *images, PyObject *stride, PyObject *dilation)
{
    if (!is_real(out) || !is_real(images) || TYPE(out) != TYPE(images) || NDIM(out) != NDIM(images) || shares(out, images)) {
        return 0;
    }
    int dims = NDIM(images) - 2;
    return dims >= 1 && dims <= MOST_DIMS && DIM(out, 0) == DIM(images, 0) && DIM(out, 1) == DIM(images, 1) && DIM(out, 1) > 0 &&
           is_tuple_of(stride, dims) && is_tuple_of(dilation, dims);
}

/* depthwise(out, images, weight, stride, dilation, adds): out += images * weight with one filter (C, *kernel) per channel, or, if
 * `adds`, images += out * weight. Images are padded. */
static PyObject *fused_depthwise(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 6, "depthwise")) {
        return NULL;
    }
    PyObject *out = args[0], *images = args[1], *weight = args[2];
    int adds = args[5] == Py_True;
    if (!are_depthwise(out, images, args[3], args[4]) || !is_plain(weight) || TYPE(weight) != TYPE(out) ||
        NDIM(weight) != NDIM(out) - 1 || DIM(weight, 0) != DIM(out, 1) || !is_writeable(adds ? images : out) ||
        shares(adds ? images : out, weight)) {
        Py_RETURN_NONE;
    }
    Window w[MOST_DIMS];
    if (!describe_convolution(images, PyArray_DIMS((PyArrayObject *)weight) + 1, PyArray_DIMS((PyArrayObject *)out) + 2, args[3],
                              args[4], w)) {
        Py_RETURN_NONE;
    }
    npy_intp channels = DIM(out, 1), planes = DIM(out, 0) * channels;
    void *made = DATA(out), *pixels = DATA(images);
    const void *filters = DATA(weight);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(images));
    if (TYPE(out) == NPY_FLOAT) {
        depthwise_float(made, pixels, filters, planes, channels, w, adds);
    }
    else {
        depthwise_double(made, pixels, filters, planes, channels, w, adds);
    }
    NPY_END_THREADS;
    Py_RETURN_TRUE;
}

/* depthwise_weight(g, images, kernel, stride, dilation): the gradient (C, *kernel) of the filters. Images are padded. */
static PyObject *fused_depthwise_weight(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 5, "depthwise_weight")) {
        return NULL;
    }
    PyObject *g = args[0], *images = args[1];
    if (!are_depthwise(g, images, args[3], args[4]) || !is_tuple_of(args[2], NDIM(images) - 2) || DIM(g, 0) == 0) {
        Py_RETURN_NONE;
    }
    npy_intp shape[1 + MOST_DIMS] = {DIM(g, 1)};
    for (int d = 0; d < NDIM(images) - 2; d++) {
        shape[1 + d] = entry_of(args[2], d, 1);
    }
    Window w[MOST_DIMS];
    if (!describe_convolution(images, shape + 1, PyArray_DIMS((PyArrayObject *)g) + 2, args[3], args[4], w)) {
        Py_RETURN_NONE;
    }
    npy_intp n = w[0].out * w[1].out * w[2].out;
    if (n > longest_row) {
        Py_RETURN_NONE;
    }
    PyObject *out = PyArray_SimpleNew(NDIM(images) - 1, shape, TYPE(g));
    void *products = scratch_for(n, TYPE(g));
    if (out == NULL || products == NULL) {
        Py_XDECREF(out);
        free(products);
        return NULL;
    }
    const void *given = DATA(g), *pixels = DATA(images);
    void *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(images));
    if (TYPE(g) == NPY_FLOAT) {
        depthwise_weight_float(given, pixels, to, products, DIM(g, 0), DIM(g, 1), w);
    }
    else {
        depthwise_weight_double(given, pixels, to, products, DIM(g, 0), DIM(g, 1), w);
    }
    NPY_END_THREADS;
    free(products);
    return out;
}

/* move_columns(columns, images, stride, dilation, adds): patches of images (N, C, *spatial) as columns (N, C, *kernel, *out), or,
 * if `adds`, the columns added to the images where patches were taken from. */
static PyObject *fused_move_columns(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!takes(count, 5, "move_columns")) {
        return NULL;
    }
    PyObject *columns = args[0], *images = args[1];
    int adds = args[4] == Py_True;
    if (!is_real(columns) || !is_real(images) || TYPE(columns) != TYPE(images) || !is_writeable(adds ? images : columns) ||
        shares(columns, images)) {
        Py_RETURN_NONE;
    }
    int dims = NDIM(images) - 2;
    if (dims < 1 || dims > MOST_DIMS || NDIM(columns) != 2 + 2 * dims || DIM(columns, 0) != DIM(images, 0) ||
        DIM(columns, 1) != DIM(images, 1) || !is_tuple_of(args[2], dims) || !is_tuple_of(args[3], dims)) {
        Py_RETURN_NONE;
    }
    Window w[MOST_DIMS];
    const npy_intp *sizes = PyArray_DIMS((PyArrayObject *)columns) + 2;
    if (!describe_convolution(images, sizes, sizes + dims, args[2], args[3], w)) {
        Py_RETURN_NONE;
    }
    npy_intp planes = DIM(images, 0) * DIM(images, 1);
    void *patches = DATA(columns), *pixels = DATA(images);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(columns));
    if (TYPE(images) == NPY_FLOAT) {
        move_columns_float(patches, pixels, planes, w, adds);
    }
    else {
        move_columns_double(patches, pixels, planes, w, adds);
    }
    NPY_END_THREADS;
    Py_RETURN_TRUE;
}

PyMethodDef window_functions[] = {
    FAST(move_columns),
    FAST(depthwise),
    FAST(depthwise_weight),
    FAST(max_pool),
    FAST(adaptive_max_pool),
    FAST(max_pool_at),
    FAST(avg_pool),
    FAST(avg_pool_backward),
    FAST(adaptive_avg_pool),
    FAST(adaptive_avg_pool_backward),
    FAST(scatter_planes),
    {NULL, NULL, 0, NULL},
};
