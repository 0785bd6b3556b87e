// Assertions: conditions that only a bug of ours can break.
//
// Input from outside is checked and answered with a status, never asserted. Debug and sanitizer
// builds check assertions (RN_ASSERTS); in others they cost nothing and are not evaluated.
#ifndef RUNNEL_BASE_ASSERT_H_
#define RUNNEL_BASE_ASSERT_H_

#ifdef RN_ASSERTS
#include <stdio.h>
#include <stdlib.h>
#define RN_ASSERT(condition)                                                                     \
  do {                                                                                           \
    if (__builtin_expect(!(condition), 0)) {                                                     \
      fprintf(stderr, "%s:%d: %s: assertion '%s' does not hold\n", __FILE__, __LINE__, __func__, \
              #condition);                                                                       \
      abort();                                                                                   \
    }                                                                                            \
  } while (0)
#else
#define RN_ASSERT(condition) ((void)sizeof(!(condition)))
#endif

#endif  // RUNNEL_BASE_ASSERT_H_
