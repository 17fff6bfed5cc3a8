/* Fused loops of grid_sample: images and positions in, sampled images or gradients out. */

#include "fused.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };
#define MOST_CORNERS 16

/* What is sampled, and how; `sizes` are those of an image, first dimension first. */
typedef struct {
    npy_intp batch, channels, volume, count, sizes[3];
    int dims, mode, padding, align, taps;
} Sampler;

#define FAMILY "fused_grid_kernels.h"
#include "fused_both_types.h"

/* Fill in a sampler from an image (batch, channels, ...) and a grid (batch, ..., dims); 0 if NumPy has to look at them. */
static int describe_sampler(PyObject *x, PyObject *grid, PyObject *mode, PyObject *padding, PyObject *align, Sampler *s)
{
    if (!is_real(x) || !is_plain(grid) || TYPE(grid) != TYPE(x) || NDIM(grid) != NDIM(x) || NDIM(x) < 4 || NDIM(x) > 5 ||
        !PyLong_CheckExact(mode) || !PyLong_CheckExact(padding) || !PyBool_Check(align)) {
        return 0;
    }
    s->dims = NDIM(x) - 2;
    s->batch = DIM(x, 0);
    s->channels = DIM(x, 1);
    s->volume = s->count = 1;
    for (int d = 0; d < s->dims; d++) {
        s->sizes[d] = DIM(x, d + 2);
        s->volume *= DIM(x, d + 2);
        s->count *= DIM(grid, d + 1);
    }
    s->mode = (int)PyLong_AsLong(mode);
    s->padding = (int)PyLong_AsLong(padding);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    s->align = align == Py_True;
    s->taps = s->mode == NEAREST ? 1 : s->mode == BICUBIC ? 4 : 2;
    return s->volume > 0 && s->mode >= BILINEAR && s->mode <= BICUBIC && s->padding >= PAD_ZEROS &&
           s->padding <= PAD_REFLECTION && (s->mode != BICUBIC || s->dims == 2) && DIM(grid, 0) == s->batch &&
           DIM(grid, NDIM(grid) - 1) == s->dims;
}

/* grid_sample(x, grid, mode, padding, align) */
static PyObject *fused_grid_sample(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Sampler s;
    (void)module;
    if (!takes(count, 5, "grid_sample")) {
        return NULL;
    }
    if (!describe_sampler(args[0], args[1], args[2], args[3], args[4], &s)) {
        Py_RETURN_NONE;
    }
    int type = TYPE(args[0]);
    npy_intp shape[5] = {s.batch, s.channels};
    for (int d = 0; d < s.dims; d++) {
        shape[d + 2] = DIM(args[1], d + 1);
    }
    PyObject *out = PyArray_SimpleNew(s.dims + 2, shape, type);
    if (out == NULL) {
        return NULL;
    }
    void *x = DATA(args[0]), *grid = DATA(args[1]), *to = DATA(out);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(out));
    if (type == NPY_FLOAT) {
        sample_float(x, grid, to, &s);
    }
    else {
        sample_double(x, grid, to, &s);
    }
    NPY_END_THREADS;
    return out;
}

/* grid_sample_backward(g, x, grid, mode, padding, align, to_image, to_grid): the gradients that are asked for, None for the others. */
static PyObject *fused_grid_sample_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Sampler s;
    (void)module;
    if (!takes(count, 8, "grid_sample_backward")) {
        return NULL;
    }
    PyObject *g = args[0], *x = args[1], *grid = args[2];
    if (!describe_sampler(x, grid, args[3], args[4], args[5], &s) || !has(g, TYPE(x), s.batch * s.channels * s.count)) {
        Py_RETURN_NONE;
    }
    PyObject *to_image = args[6] == Py_True ? PyArray_ZEROS(NDIM(x), PyArray_DIMS((PyArrayObject *)x), TYPE(x), 0) : Py_NewRef(Py_None);
    PyObject *to_grid = args[7] == Py_True ? PyArray_ZEROS(NDIM(grid), PyArray_DIMS((PyArrayObject *)grid), TYPE(x), 0) : Py_NewRef(Py_None);
    if (to_image == NULL || to_grid == NULL) {
        Py_XDECREF(to_image);
        Py_XDECREF(to_grid);
        return NULL;
    }
    void *image = to_image == Py_None ? NULL : DATA(to_image);
    void *positions = to_grid == Py_None || s.mode == NEAREST ? NULL : DATA(to_grid);
    void *given = DATA(g), *from = DATA(x), *at = DATA(grid);
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(SIZE(g));
    if (TYPE(x) == NPY_FLOAT) {
        sample_backward_float(given, from, at, image, positions, &s);
    }
    else {
        sample_backward_double(given, from, at, image, positions, &s);
    }
    NPY_END_THREADS;
    return Py_BuildValue("(NN)", to_image, to_grid);
}

PyMethodDef grid_functions[] = {
    FAST(grid_sample),
    FAST(grid_sample_backward),
    {NULL, NULL, 0, NULL},
};
