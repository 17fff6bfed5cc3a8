/* Operators of tensors and ranges of annotations, for the module of the tensors' slots. */

#ifndef MINDTORCH_OPERATORS_H
#define MINDTORCH_OPERATORS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

int add_operators(PyObject *module);
int add_annotations(PyObject *module);

#endif
