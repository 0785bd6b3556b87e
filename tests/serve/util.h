// Helpers of the serving tests: models, tensors, folders.
#ifndef TESTS_SERVE_UTIL_H_
#define TESTS_SERVE_UTIL_H_

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/fs.h"
#include "serve/model/tf_backend.h"

#define SERVE_UNUSED __attribute__((unused))

// The folder of the models that are carried along; make_models.py made them.
#define SERVE_TWO SERVE_MODELS "/half_plus_two"
#define SERVE_THREE SERVE_MODELS "/half_plus_three"
#define SERVE_BOTH SERVE_MODELS "/half_plus_two_2_versions"

// A new folder; the caller removes it with serve_remove.
static SERVE_UNUSED void serve_folder(char out[64]) {
  strcpy(out, "/tmp/runnel_serve_XXXXXX");
  cr_assert(mkdtemp(out));
}

static SERVE_UNUSED void serve_remove(const char* folder) {
  int64_t files, folders;
  OK(rn_fs_remove_tree(rn_env_system(), folder, &files, &folders));
}

// Copies a folder with everything in it.
static SERVE_UNUSED void serve_copy(const char* from, const char* to) {
  char command[600];
  snprintf(command, sizeof command, "mkdir -p '%s' && cp -r '%s/.' '%s'", to, from, to);
  cr_assert_eq(system(command), 0);
}

static SERVE_UNUSED void serve_write(const char* folder, const char* name, rn_str_t data) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  char parent[400];
  rn_str_t directory = rn_path_directory(rn_str(path));
  snprintf(parent, sizeof parent, "%.*s", RN_STR_ARGS(directory));
  OK(rn_fs_make_directories(rn_env_system(), parent));
  OK(rn_fs_write(rn_env_system(), path, data));
}

// A float tensor of shape [count, 1].
static SERVE_UNUSED rn_tensor_t serve_column(const float* values, int64_t count) {
  rn_tensor_t tensor;
  int64_t dims[2] = {count, 1};
  OK(rn_tensor_create(rn_allocator_default(), RN_FLOAT, (rn_shape_t){2, dims}, &tensor));
  memcpy(tensor.data, values, (size_t)count * sizeof *values);
  return tensor;
}

// Loads a version's folder.
static SERVE_UNUSED rn_status_t serve_load(const char* folder, const rn_env_t* env,
                                           rn_backend_t** out) {
  rn_tf_backend_options_t options = {
      .folder = folder, .env = env, .allocator = rn_allocator_default()};
  rn_session_options_init(&options.session);
  return rn_tf_backend_create(&options, out);
}

typedef struct serve_run_t {
  rn_backend_run_t run;  // first
  rn_tensor_t outputs[8];
  rn_status_t status;
  bool is_done;
} serve_run_t;

static SERVE_UNUSED void serve_done(rn_backend_run_t* run, rn_status_t status) {
  serve_run_t* own = (serve_run_t*)run;
  own->status = status;
  own->is_done = true;
}

// Runs a signature on a backend that blocks.
static SERVE_UNUSED rn_status_t serve_run(rn_backend_t* backend, const char* signature,
                                          const rn_tensor_t* inputs, serve_run_t* own) {
  int index = rn_backend_signature(backend, rn_str(signature));
  cr_assert(index >= 0);
  own->run.signature = index;
  own->run.inputs = inputs;
  own->run.outputs = own->outputs;
  if (!own->run.deadline_ns) own->run.deadline_ns = INT64_MAX;
  own->run.done = serve_done;
  own->is_done = false;
  backend->vtable->run(backend, &own->run);
  cr_assert(own->is_done);
  return own->status;
}

#endif  // TESTS_SERVE_UTIL_H_
