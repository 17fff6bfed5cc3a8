/* Layouts of arrays, for the module of the tensors' slots. */

#ifndef MINDTORCH_LAYOUT_H
#define MINDTORCH_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

int add_layout(PyObject *module);

/* The first of some arguments, the result of a kernel, as an array; laid out as a pointwise op's if its operands follow. A new reference. */
PyObject *result_array(PyObject *const *args, Py_ssize_t count);

#endif
