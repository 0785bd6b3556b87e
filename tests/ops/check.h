// Runs one case and compares it with what was recorded.
#ifndef RUNNEL_TESTS_OPS_CHECK_H_
#define RUNNEL_TESTS_OPS_CHECK_H_

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>

#include "build.h"
#include "tensorflow/c/c_api.h"
#include "value.h"

typedef enum { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED } outcome_t;

typedef struct {
  bool is_stock;    // stock TensorFlow: what it is known not to have is skipped
  bool optimize;    // the session keeps its graph rewriting
  bool codes_only;  // messages of errors are not compared
  bool on_gpu;      // the op must run on a GPU; rows whose op has no kernel there are skipped
} check_options_t;

// One case in the hands of the runner. |text| says what failed, or what was measured.
typedef struct {
  const json_t* row;
  const json_t* golden;
  check_options_t options;
  char text[1024];
  bool lacks_gpu_kernel;  // set if the row was skipped because its op has no kernel on the GPU
} check_t;

outcome_t check_eval(check_t* check);
outcome_t check_grad(check_t* check);
outcome_t check_grad2(check_t* check);  // gradients of gradients, against central differences
outcome_t check_perf(check_t* check);

// Helpers that the modes share.

// Says why the case failed. Returns OUTCOME_FAILED.
outcome_t check_fail(check_t* check, const char* format, ...) __attribute__((format(printf, 2, 3)));
// True when the row needs an op that the library does not have, though stock TensorFlow does.
bool check_lacks_op(check_t* check);
// True when an op of the row has no kernel at all: then only building it can be checked.
bool check_lacks_kernel(check_t* check);
// A session on |graph| with one thread, graph rewriting off unless asked for. NULL on failure.
TF_Session* check_open(const check_t* check, TF_Graph* graph, TF_Status* status);
void check_close(TF_Session* session);
// Initialises the variables and runs the nodes of "before".
bool check_prepare(const build_t* build, TF_Session* session);
// One Run with the feeds of the build and |count| fetches; |target| may be NULL.
bool check_run(const build_t* build, TF_Session* session, const TF_Output* fetches, size_t count,
               TF_Operation* target, TF_Tensor** out);
void check_release(TF_Tensor** tensors, size_t count);
// The device that the op under test must run on; NULL: any.
static inline const char* check_device(const check_t* check) {
  return check->options.on_gpu ? "/device:GPU:0" : NULL;
}
// Whether |status| says that the op has no kernel on the GPU; notes it.
bool check_lacks_gpu_kernel(check_t* check, const TF_Status* status);
// The "tol" of the row, or NULL.
const tolerance_t* check_tolerance(const check_t* check, tolerance_t* store);

#endif  // RUNNEL_TESTS_OPS_CHECK_H_
