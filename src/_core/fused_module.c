/* mindtorch_v2._ops._fused: kernels that make one pass where their NumPy twins make several.
 *
 * A function takes and returns arrays. It returns None for what it is not written for (another dtype, memory that is not contiguous,
 * an output that overlaps an input): its caller then runs the NumPy twin, which is the definition. Results are equal to the last bit.
 *
 * Sums, exp, log, tanh and matrix products are taken by NumPy's own inner loops, found in its ufuncs when the module is loaded: they
 * are vectorised, and the twin uses the same ones. */

#define IMPORTS_NUMPY
#include "fused.h"

Loop add_f32, multiply_f32, maximum_f32, minimum_f32, exp_f32, log_f32, tanh_f32, matmul_f32;
Loop add_f64, multiply_f64, maximum_f64, minimum_f64, exp_f64, log_f64, matmul_f64, log1p_f64, cos_f64, sin_f64;

npy_intp longest_row = NPY_MAX_INTP;
#define FIRST_VERSION_WITH_WHOLE_ROWS 0x14 /* of NumPy's C API: that of 2.3 */
#define BUFFER_SIZE 8192

static int find_loop(PyObject *numpy, const char *name, int type, Loop *loop)
{
    PyObject *object = PyObject_GetAttrString(numpy, name);
    if (object == NULL) {
        return -1;
    }
    if (PyObject_TypeCheck(object, &PyUFunc_Type)) {
        PyUFuncObject *ufunc = (PyUFuncObject *)object;
        for (int i = 0; i < ufunc->ntypes; i++) {
            int matches = 1;
            for (int k = 0; k < ufunc->nargs; k++) {
                matches = matches && ufunc->types[i * ufunc->nargs + k] == type;
            }
            if (matches && ufunc->functions[i] != NULL) {
                loop->function = ufunc->functions[i];
                loop->data = ufunc->data == NULL ? NULL : (void *)ufunc->data[i];
                Py_DECREF(object); /* NumPy's ufuncs live as long as the process */
                return 0;
            }
        }
    }
    Py_DECREF(object);
    PyErr_Format(PyExc_ImportError, "numpy.%s has no inner loop for type number %d", name, type);
    return -1;
}

static int find_loops(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) {
        return -1;
    }
    int failed =
        find_loop(numpy, "add", NPY_FLOAT, &add_f32) < 0 || find_loop(numpy, "add", NPY_DOUBLE, &add_f64) < 0 ||
        find_loop(numpy, "maximum", NPY_FLOAT, &maximum_f32) < 0 || find_loop(numpy, "maximum", NPY_DOUBLE, &maximum_f64) < 0 ||
        find_loop(numpy, "multiply", NPY_FLOAT, &multiply_f32) < 0 || find_loop(numpy, "multiply", NPY_DOUBLE, &multiply_f64) < 0 ||
        find_loop(numpy, "minimum", NPY_FLOAT, &minimum_f32) < 0 || find_loop(numpy, "minimum", NPY_DOUBLE, &minimum_f64) < 0 ||
        find_loop(numpy, "exp", NPY_FLOAT, &exp_f32) < 0 || find_loop(numpy, "exp", NPY_DOUBLE, &exp_f64) < 0 ||
        find_loop(numpy, "log", NPY_FLOAT, &log_f32) < 0 || find_loop(numpy, "log", NPY_DOUBLE, &log_f64) < 0 ||
        find_loop(numpy, "matmul", NPY_FLOAT, &matmul_f32) < 0 || find_loop(numpy, "matmul", NPY_DOUBLE, &matmul_f64) < 0 ||
        find_loop(numpy, "log1p", NPY_DOUBLE, &log1p_f64) < 0 || find_loop(numpy, "cos", NPY_DOUBLE, &cos_f64) < 0 ||
        find_loop(numpy, "sin", NPY_DOUBLE, &sin_f64) < 0 || find_loop(numpy, "tanh", NPY_FLOAT, &tanh_f32) < 0;
    Py_DECREF(numpy);
    return failed ? -1 : 0;
}

static int prepare(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0) {
        return -1;
    }
    if (PyArray_GetNDArrayCFeatureVersion() < FIRST_VERSION_WITH_WHOLE_ROWS) {
        longest_row = BUFFER_SIZE;
    }
    PyMethodDef *const families[] = {pointwise_functions, row_functions, product_functions, random_functions,
                                     window_functions, grid_functions, map_functions, along_functions};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (PyModule_AddFunctions(module, families[i]) < 0) {
            return -1;
        }
    }
    if (find_loops() < 0) {
        return -1;
    }
    compare_short_sums();
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, prepare},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_v2._ops._fused",
    .m_doc = "Fused loops; their NumPy twins are the kernels that call them.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__fused(void)
{
    return PyModuleDef_Init(&definition);
}
