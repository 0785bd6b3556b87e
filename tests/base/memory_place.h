// What tests on a file system in memory share: a place of their own, and what statuses must be.
#ifndef TESTS_BASE_MEMORY_PLACE_H_
#define TESTS_BASE_MEMORY_PLACE_H_

#include <criterion/criterion.h>

#include "memory_fs.h"

static inline void good(rn_status_t status) {
  cr_assert(rn_ok(status), "%s: %s", rn_code_name(rn_status_code(status)),
            rn_status_message(status));
}

// |status| is such a failure, whose message has |words|.
static inline void bad(rn_status_t status, rn_code_t code, const char* words) {
  cr_assert_eq(rn_status_code(status), code, "%s: %s", rn_code_name(rn_status_code(status)),
               rn_status_message(status));
  cr_assert(strstr(rn_status_message(status), words), "%s", rn_status_message(status));
  rn_status_free(status);
}

// An environment of its own file system.
typedef struct place_t {
  rn_env_t env;
  rn_memory_fs_t* fs;
} place_t;

static inline void open_place(place_t* place) {
  place->env = *rn_env_system();
  good(rn_memory_fs_create(place->env.allocator, &place->fs));
  rn_memory_fs_install(place->fs, &place->env);
}

#endif  // TESTS_BASE_MEMORY_PLACE_H_
