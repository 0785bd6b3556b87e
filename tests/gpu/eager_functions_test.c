// Functions that are called eagerly with a GPU, emulated here: where their arguments and results
// are, what is copied, and what the placement policy says.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/status.h"
#include "eager/eager.h"
#include "emulated_driver.h"
#include "function/function.h"
#include "runnel/control_flow.h"
#include "runnel/ops.h"

#define TASK "/job:localhost/replica:0/task:0"
#define CPU TASK "/device:CPU:0"
#define GPU TASK "/device:GPU:0"
enum { EXPLICIT = 0, WARN = 1, SILENT = 2, SILENT_FOR_INT32 = 3 };  // placement policies

static uint64_t to_host(void) { return rn_emulated_count("cuMemcpyDtoHAsync_v2"); }
static uint64_t to_device(void) { return rn_emulated_count("cuMemcpyHtoDAsync_v2"); }

// A log that keeps the last line and counts them.
static struct {
  int lines;
  char last[1024];
} said;
static void log_line(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level;
  said.lines++;
  snprintf(said.last, sizeof said.last, "%s", message);
}

static rn_env_t env;
static rn_eager_t* begin(bool is_async) {
  rn_eager_options_t options = {.is_async = is_async, .policy = SILENT};
  rn_session_options_init(&options.session);
  options.session.allow_soft_placement = true;
  rn_eager_t* eager = NULL;
  env = *rn_env_system();
  env.log = log_line;
  OK(rn_eager_create(&options, &env, rn_allocator_system(), &eager));
  find_emulator();
  return eager;
}

static void end(rn_eager_t* eager) {
  rn_eager_close(eager);
  rn_eager_release(eager);
}

static rn_eager_handle_t* floats(int64_t count, const float* values) {
  rn_tensor_t tensor = {0};
  rn_eager_handle_t* made = NULL;
  OK(rn_tensor_create(rn_allocator_default(), RN_FLOAT, (rn_shape_t){1, &count}, &tensor));
  memcpy(tensor.data, values, rn_tensor_bytes(&tensor));
  OK(rn_eager_handle_create(&tensor, &made));
  rn_tensor_clear(&tensor);
  return made;
}

static rn_eager_handle_t* on_gpu(rn_eager_t* eager, rn_eager_handle_t* value) {
  rn_device_t* device = NULL;
  rn_eager_handle_t* out = NULL;
  OK(rn_eager_device(eager, RN_STR("/gpu:0"), &device));
  OK(rn_eager_handle_copy_to(value, eager, device, &out));
  return out;
}

#define RESULTS 4
// f(x, y) = (x + y, its shape, x, -y computed on the CPU)
static void add_function(rn_eager_t* eager) {
  rn_graph_t* graph = NULL;
  rn_function_t* function = NULL;
  OK(rn_graph_create(rn_allocator_system(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t inputs[] = {rn_Placeholder(s, RN_FLOAT), rn_Placeholder(s, RN_FLOAT)};
  rn_edge_t outputs[RESULTS] = {rn_AddV2(s, inputs[0], inputs[1])};
  outputs[1] = rn_Shape(s, outputs[0]);
  outputs[2] = inputs[0];
  rn_scope_set_device(s, "/cpu:0");
  outputs[3] = rn_Neg(s, inputs[1]);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  const rn_str_t names[] = {RN_STR("sum"), RN_STR("shape"), RN_STR("same"), RN_STR("neg")};
  rn_function_spec_t spec = {.graph = graph,
                             .name = RN_STR("f"),
                             .node_count = -1,
                             .inputs = inputs,
                             .input_count = 2,
                             .outputs = outputs,
                             .output_names = names,
                             .output_count = RESULTS};
  OK(rn_function_create(&spec, &function));
  OK(rn_eager_add_function(eager, function));
  rn_function_release(function);
  rn_scope_destroy(s);
  rn_graph_release(graph);
}

static void call(rn_eager_t* eager, const char* device, rn_eager_handle_t* x, rn_eager_handle_t* y,
                 rn_eager_handle_t** out) {
  rn_eager_op_t* op = NULL;
  int32_t room = RESULTS;
  OK(rn_eager_op_create(eager, RN_STR("f"), &op));
  if (device) OK(rn_eager_op_set_device(op, rn_str(device)));
  OK(rn_eager_op_add_input(op, x));
  OK(rn_eager_op_add_input(op, y));
  OK(rn_eager_execute(op, out, &room));
  cr_assert_eq(room, RESULTS);
  rn_eager_op_destroy(op);
}

static void drop(rn_eager_handle_t** all, size_t count) {
  for (size_t i = 0; i < count; ++i) rn_eager_handle_release(all[i]);
}

static void is_on(rn_eager_handle_t* value, const char* device, const char* memory) {
  cr_assert_str_eq(rn_eager_handle_device(value), device);
  cr_assert_str_eq(rn_eager_handle_backing_device(value), memory);
}

static void has(rn_eager_handle_t* value, float first, float second) {
  const rn_tensor_t* tensor = NULL;
  OK(rn_eager_handle_value(value, &tensor));
  cr_assert_eq(tensor->dtype, RN_FLOAT);
  cr_assert_eq(RN_DATA(tensor, float)[0], first);
  cr_assert_eq(RN_DATA(tensor, float)[1], second);
}

static void has_shape(rn_eager_handle_t* value) {
  const rn_tensor_t* tensor = NULL;
  OK(rn_eager_handle_value(value, &tensor));
  cr_assert_eq(tensor->dtype, RN_INT32);
  cr_assert_eq(*RN_DATA(tensor, int32_t), 2);
}

static void check(bool is_async, const char* device) {
  rn_eager_t* eager = begin(is_async);
  add_function(eager);
  rn_eager_handle_t *host = floats(2, (float[]){1, 2}), *far = on_gpu(eager, host);
  rn_eager_handle_t* args[][2] = {{host, host}, {host, far}, {far, host}, {far, far}};
  for (int turn = 0; turn < 3; ++turn)
    for (size_t a = 0; a < 4; ++a) {
      rn_eager_handle_t* out[RESULTS];
      call(eager, device, args[a][0], args[a][1], out);
      is_on(out[0], GPU, GPU);
      is_on(out[1], GPU, CPU);
      if (args[a][0] == far) is_on(out[2], GPU, GPU);
      is_on(out[3], CPU, CPU);
      has(out[0], 2, 4);
      has_shape(out[1]);
      has(out[2], 1, 2);
      has(out[3], -1, -2);
      drop(out, RESULTS);
    }
  rn_eager_handle_release(host);
  rn_eager_handle_release(far);
  end(eager);
}

Test(gpu_eager_functions, results_are_where_they_are_computed, .timeout = 60) {
  check(false, NULL);
}
Test(gpu_eager_functions, on_the_gpu, .timeout = 60) { check(false, "/gpu:0"); }
Test(gpu_eager_functions, asynchronous, .timeout = 60) { check(true, NULL); }

Test(gpu_eager_functions, on_the_cpu, .timeout = 60) {
  rn_eager_t* eager = begin(false);
  add_function(eager);
  rn_eager_handle_t *host = floats(2, (float[]){1, 2}), *far = on_gpu(eager, host), *out[RESULTS];
  call(eager, "/cpu:0", far, host, out);
  is_on(out[0], CPU, CPU);
  has(out[0], 2, 4);
  is_on(out[2], GPU, GPU);  // no node of the function touches it
  has(out[2], 1, 2);
  drop(out, RESULTS);
  rn_eager_handle_release(host);
  rn_eager_handle_release(far);
  end(eager);
}

// Values that go from call to call stay on the GPU.
Test(gpu_eager_functions, nothing_is_copied_between_calls, .timeout = 60) {
  rn_eager_t* eager = begin(false);
  rn_graph_t* graph = NULL;
  rn_function_t* function = NULL;
  OK(rn_graph_create(rn_allocator_system(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT), y = rn_Mul(s, rn_AddV2(s, x, x), x);
  rn_function_spec_t spec = {.graph = graph,
                             .name = RN_STR("g"),
                             .node_count = -1,
                             .inputs = &x,
                             .input_count = 1,
                             .outputs = &y,
                             .output_count = 1};
  OK(rn_function_create(&spec, &function));
  OK(rn_eager_add_function(eager, function));
  rn_eager_handle_t *host = floats(2, (float[]){1, 0.5f}), *value = on_gpu(eager, host);
  rn_eager_handle_release(host);
  float a = 1, b = 0.5f;
  uint64_t up = 0, down = 0;
  for (int i = 0; i < 5; ++i) {
    rn_eager_op_t* op = NULL;
    rn_eager_handle_t* next = NULL;
    int32_t room = 1;
    OK(rn_eager_op_create(eager, RN_STR("g"), &op));
    OK(rn_eager_op_add_input(op, value));
    OK(rn_eager_execute(op, &next, &room));
    rn_eager_op_destroy(op);
    rn_eager_handle_release(value);
    value = next;
    is_on(value, GPU, GPU);
    a *= 2 * a;
    b *= 2 * b;
    if (i == 0) up = to_device(), down = to_host();  // the first call may upload constants
  }
  cr_assert_eq(to_device(), up);
  cr_assert_eq(to_host(), down);
  has(value, a, b);
  rn_eager_handle_release(value);
  rn_function_release(function);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  end(eager);
}

static rn_edge_t below_four(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 4));
}

static void sum_up(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_Cumsum(s, values[1], rn_const_int32(s, 0));
}

// Makes the function "sums" of a vector: four running sums of running sums, so that some of its
// work can be recorded.
static void add_sums(rn_eager_t* eager, bool has_loop) {
  rn_graph_t* graph = NULL;
  rn_function_t* function = NULL;
  const int64_t four = 4;
  OK(rn_graph_create(rn_allocator_system(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT, .shape = RN_SET_SHAPE(&four, 1)), y = x;
  rn_edge_t starts[2] = {rn_const_int32(s, 0), x}, ends[2];
  for (int i = 0; i < 4 && !has_loop; ++i) y = rn_Cumsum(s, y, rn_const_int32(s, 0));
  if (has_loop && rn_while(s, below_four, sum_up, NULL, starts, ends, 2)) y = ends[1];
  rn_function_spec_t spec = {.graph = graph,
                             .name = RN_STR("sums"),
                             .node_count = -1,
                             .inputs = &x,
                             .input_count = 1,
                             .outputs = &y,
                             .output_count = 1};
  OK(rn_function_create(&spec, &function));
  OK(rn_eager_add_function(eager, function));
  rn_function_release(function);
  rn_scope_destroy(s);
  rn_graph_release(graph);
}

// Work that was recorded for an argument must not read it there when another one is elsewhere; it
// is replayed all the same.
static void call_with_arguments_elsewhere(bool has_loop) {
  enum { CALLS = 6 };
  rn_eager_t* eager = begin(false);
  add_sums(eager, has_loop);
  rn_eager_handle_t* values[CALLS];
  for (int i = 0; i < CALLS; ++i) {  // all at once, so that each has a place of its own
    rn_eager_handle_t* host = floats(4, (float[]){(float)i, 1, 2, 3});
    values[i] = on_gpu(eager, host);
    rn_eager_handle_release(host);
  }
  const uint64_t before = rn_emulated_count("cuGraphLaunch");
  for (int i = 0; i < CALLS; ++i) {
    rn_eager_op_t* op = NULL;
    rn_eager_handle_t* out = NULL;
    int32_t room = 1;
    OK(rn_eager_op_create(eager, RN_STR("sums"), &op));
    OK(rn_eager_op_add_input(op, values[i]));
    OK(rn_eager_execute(op, &out, &room));
    rn_eager_op_destroy(op);
    has(out, (float)i, 4 * (float)i + 1);
    rn_eager_handle_release(out);
  }
  cr_assert_eq(rn_emulated_count("cuGraphLaunch") - before, CALLS - 1);
  for (int i = 0; i < CALLS; ++i) rn_eager_handle_release(values[i]);
  end(eager);
}

Test(gpu_eager_functions, arguments_elsewhere, .timeout = 60) {
  call_with_arguments_elsewhere(false);
  call_with_arguments_elsewhere(true);
}

static rn_status_t add(rn_eager_t* eager, const char* op_name, rn_eager_handle_t* x,
                       rn_eager_handle_t* y) {
  rn_eager_op_t* op = NULL;
  rn_eager_handle_t* out = NULL;
  int32_t room = 1;
  OK(rn_eager_op_create(eager, rn_str(op_name), &op));
  OK(rn_eager_op_set_device(op, RN_STR("/gpu:0")));
  OK(rn_eager_op_add_input(op, x));
  OK(rn_eager_op_add_input(op, y));
  rn_status_t status = rn_eager_execute(op, &out, &room);
  rn_eager_op_destroy(op);
  rn_eager_handle_release(out);
  return status;
}

// A function takes its arguments where they are, whatever the policy; an op does not.
Test(gpu_eager_functions, policies, .timeout = 60) {
  rn_eager_t* eager = begin(false);
  add_function(eager);
  rn_eager_handle_t *host = floats(2, (float[]){1, 2}), *far = on_gpu(eager, host);
  static const int all[] = {EXPLICIT, WARN, SILENT, SILENT_FOR_INT32};
  for (int i = 0; i < 4; ++i) {
    rn_eager_handle_t* out[RESULTS];
    rn_eager_set_policy(eager, all[i]);
    said.lines = 0;
    call(eager, "/gpu:0", host, far, out);
    has(out[0], 2, 4);
    cr_assert_eq(said.lines, 0, "%s", said.last);
    drop(out, RESULTS);
    bool may = all[i] == WARN || all[i] == SILENT;
    if (may)
      OK(add(eager, "AddV2", far, host));
    else
      FAILS_WITH(add(eager, "AddV2", far, host), INVALID_ARGUMENT,
                 "cannot compute AddV2 as input #1 was expected to be on " GPU
                 " but is actually on " CPU " (operation running on " GPU ")");
    cr_assert_eq(said.lines, all[i] == WARN);
  }
  cr_assert(strstr(said.last, "before computing AddV2 input #1 was expected to be on " GPU
                              " but is actually on " CPU " (operation running on " GPU
                              "). This triggers a copy which can be a performance bottleneck."),
            "%s", said.last);
  rn_eager_handle_release(host);
  rn_eager_handle_release(far);
  end(eager);
}

// A value on another context's GPU is no argument that a plan of this one could read.
Test(gpu_eager_functions, values_of_other_contexts, .timeout = 60) {
  rn_eager_t *eager = begin(false), *other = begin(false);
  add_function(eager);
  rn_eager_handle_t *host = floats(2, (float[]){1, 2}), *far = on_gpu(other, host);
  for (int turn = 0; turn < 2; ++turn) {
    rn_eager_handle_t* out[RESULTS];
    call(eager, turn ? "/gpu:0" : NULL, far, host, out);
    is_on(out[0], GPU, GPU);
    has(out[0], 2, 4);
    has(out[2], 1, 2);
    drop(out, RESULTS);
  }
  rn_eager_handle_release(host);
  rn_eager_handle_release(far);
  end(other);
  end(eager);
}
