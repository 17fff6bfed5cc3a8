/* Variables of which each thread has its own. */

#ifndef MINDTORCH_THREAD_LOCAL_H
#define MINDTORCH_THREAD_LOCAL_H

/* A few bytes per thread that are read without a call, as variables of the program itself are. */
#if defined(__GNUC__) && defined(__linux__)
#define FAST_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define FAST_THREAD_LOCAL _Thread_local
#endif

#endif
