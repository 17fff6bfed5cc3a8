/* The parts of the module of the tensors' slots: operators of tensors, ranges of annotations, attributes per thread. */

#ifndef MINDTORCH_OPERATORS_H
#define MINDTORCH_OPERATORS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

int add_operators(PyObject *module);
int add_annotations(PyObject *module);
int add_per_thread(PyObject *module);

#endif
