// Replaces malloc, calloc and realloc of this program, so that any allocation of the library under
// test can be made to fail.
//
// It counts, and makes fail, calls from libtensorflow and those that the C library and PCRE2 make
// on its behalf. Calls from the test itself, the dynamic linker and libraries that are loaded later
// (oneDNN, which is C++ and throws) always succeed. One sweep uses it at a time; allocations may
// come from any thread.
#ifndef RUNNEL_TESTS_FAULTS_INJECT_H_
#define RUNNEL_TESTS_FAULTS_INJECT_H_

#include <stdbool.h>
#include <stdint.h>

// Learns where the libraries lie. Before anything else here; false: their allocations cannot be
// seen.
bool inject_start(void);

// Counts from 1 again and fails the |nth| allocation (0: none) and, if |for_good|, all after it.
void inject_arm(int64_t nth, bool for_good);
// No failures from now on.
void inject_disarm(void);

// Allocations since inject_arm; whether one failed; blocks of the library that are not freed.
int64_t inject_count(void);
bool inject_fired(void);
int64_t inject_live(void);

// The stack of the first allocation that failed, on standard error.
void inject_print_stack(void);

#endif  // RUNNEL_TESTS_FAULTS_INJECT_H_
