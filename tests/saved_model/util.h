// Helpers of the SavedModel tests: temporary folders, arrays from files.
#ifndef TESTS_SAVED_MODEL_UTIL_H_
#define TESTS_SAVED_MODEL_UTIL_H_

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/fs.h"
#include "cli/npy.h"

#define SM_UNUSED __attribute__((unused))
// A path below the folder of the models that are carried along.
static SM_UNUSED const char* sm_data(const char* name) {
  static char path[400];
  snprintf(path, sizeof path, "%s/%s", getenv("RUNNEL_TEST_MODELS"), name);
  return path;
}

static SM_UNUSED rn_tensor_t sm_array(const char* path) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_default());
  OK(rn_fs_read(rn_env_system(), path, SIZE_MAX, &bytes));
  rn_tensor_t value;
  OK(rn_npy_read(rn_strbuf_view(&bytes), rn_allocator_default(), &value));
  rn_strbuf_clear(&bytes);
  return value;
}

// A new folder; the caller removes it with sm_remove.
static SM_UNUSED void sm_folder(char out[64]) {
  strcpy(out, "/tmp/runnel_model_XXXXXX");
  cr_assert(mkdtemp(out));
}

static SM_UNUSED void sm_remove(const char* folder) {
  int64_t files, folders;
  OK(rn_fs_remove_tree(rn_env_system(), folder, &files, &folders));
}

static SM_UNUSED void sm_expect_close(const rn_tensor_t* got, const rn_tensor_t* wanted) {
  cr_assert(rn_tensor_same_shape(got, wanted));
  cr_assert_eq(got->dtype, RN_FLOAT);
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < wanted->count; ++i) {
    double a = RN_DATA(got, float)[i], b = RN_DATA(wanted, float)[i];
    cr_assert(isfinite(a));
    largest = fmax(largest, fabs(b));
    worst = fmax(worst, fabs(a - b));
  }
  cr_assert(worst <= 1e-5 * largest, "differs by %g of %g", worst, largest);
}

#endif  // TESTS_SAVED_MODEL_UTIL_H_
