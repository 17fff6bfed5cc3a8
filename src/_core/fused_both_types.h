/* The loops in the file that FAMILY names, for both floating-point types. That file is included once per type with these macros
 * defined: REAL the C type, FN(name) the name of a function for that type, LOOP(name) NumPy's inner loop of a ufunc for that type.
 *
 * Every loop does, element by element, the operations of its NumPy twin in the same order, so the results are equal to the last bit:
 * sums, exp, log and tanh are taken by NumPy's own inner loops, and the compiler must not contract a * b + c (see setup.py). */

#define REAL float
#define SQRT sqrtf
#define FABS fabsf
#define FLOOR floorf
#define RINT rintf
#define FMOD fmodf
#define FN(name) name##_float
#define LOOP(name) name##_f32
#include FAMILY
#undef REAL
#undef SQRT
#undef FABS
#undef FLOOR
#undef RINT
#undef FMOD
#undef FN
#undef LOOP

#define IS_DOUBLE
#define REAL double
#define SQRT sqrt
#define FABS fabs
#define FLOOR floor
#define RINT rint
#define FMOD fmod
#define FN(name) name##_double
#define LOOP(name) name##_f64
#include FAMILY
#undef REAL
#undef SQRT
#undef FABS
#undef FLOOR
#undef RINT
#undef FMOD
#undef FN
