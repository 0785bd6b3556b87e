// Function calls and functional control flow (If, Case, While, For) run by kernels. Functions are
// instantiated on first use, since one may call itself, and run through framework/function.h.
#include <stdatomic.h>

#include "kernels/cpu/function/kernel_calls.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

static rn_status_t call_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(rn_kernel_calls_begin(init, state, 1));
  return rn_kernel_calls_add_named(state, init, "f");
}

static rn_status_t if_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(rn_kernel_calls_begin(init, state, 2));
  RN_RETURN_IF_ERROR(rn_kernel_calls_add_named(state, init, "else_branch"));
  return rn_kernel_calls_add_named(state, init, "then_branch");
}

static rn_status_t case_init(const rn_kernel_init_t* init, void* state) {
  const rn_attr_value_t* branches = rn_init_attr(init, "branches");
  RN_RETURN_IF_ERROR(rn_kernel_calls_begin(init, state, branches->count));
  for (int32_t i = 0; i < branches->count; ++i)
    RN_RETURN_IF_ERROR(rn_kernel_calls_add(state, branches->list_func[i]));
  return RN_OK;
}

static rn_status_t while_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(rn_kernel_calls_begin(init, state, 2));
  RN_RETURN_IF_ERROR(rn_kernel_calls_add_named(state, init, "cond"));
  return rn_kernel_calls_add_named(state, init, "body");
}

static rn_status_t for_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(rn_kernel_calls_begin(init, state, 1));
  return rn_kernel_calls_add_named(state, init, "body");
}

// A call on behalf of a kernel; its results become the kernel's outputs.
typedef struct functional_flight_t {
  rn_function_call_t call;  // first
  rn_kernel_ctx_t* ctx;
  rn_instance_t* instance;
} functional_flight_t;

static void flight_done(rn_function_call_t* call, rn_status_t status) {
  functional_flight_t* flight = (functional_flight_t*)call;
  rn_kernel_ctx_t* ctx = flight->ctx;
  RN_FREE(ctx->kernel->allocator, flight);
  rn_done(ctx, status);
}

// Runs |instance| on the inputs from |first| on and ends the kernel's call with the results.
static void run_instance(rn_kernel_ctx_t* ctx, rn_instance_t* instance, int32_t first,
                         void (*done)(rn_function_call_t* call, rn_status_t status)) {
  functional_flight_t* flight = NULL;
  rn_status_t status = RN_NEW(ctx->kernel->allocator, &flight);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  *flight = (functional_flight_t){.call = {.step = ctx->step,
                                           .args = (const rn_tensor_t* const*)(ctx->in + first),
                                           .results = ctx->out,
                                           .done = done},
                                  .ctx = ctx,
                                  .instance = instance};
  rn_function_run(((rn_kernel_calls_t*)ctx->state)->functions, instance, &flight->call);
}

static void run_target(rn_kernel_ctx_t* ctx, int32_t i, int32_t first) {
  const rn_kernel_t* kernel = ctx->kernel;
  rn_instance_t* instance = NULL;
  rn_status_t status = rn_kernel_calls_instance(
      ctx->state, i, RN_AS_CALL, kernel->input_count - first, kernel->output_count, &instance);
  if (rn_ok(status))
    run_instance(ctx, instance, first, flight_done);
  else
    rn_done(ctx, status);
}

static void call_compute(rn_kernel_ctx_t* ctx) { run_target(ctx, 0, 0); }

static void remote_done(rn_function_call_t* call, rn_status_t status) {
  functional_flight_t* flight = (functional_flight_t*)call;
  rn_function_forget(((rn_kernel_calls_t*)flight->ctx->state)->functions, flight->instance);
  flight_done(call, status);
}

// Input 0 names the device on which the body runs.
static void remote_call_compute(rn_kernel_ctx_t* ctx) {
  rn_kernel_calls_t* calls = ctx->state;
  const rn_tensor_t* target = rn_in(ctx, 0);
  rn_instance_t* instance = NULL;
  rn_status_t status = target->rank == 0 && target->dtype == RN_STRING
                           ? RN_OK
                           : rn_invalid_argument("target must be a scalar string");
  if (rn_ok(status))
    status = rn_function_prepare(calls->functions, calls->targets[0].function,
                                 rn_tstring_view(RN_DATA(target, const rn_tstring_t)), &instance);
  if (rn_ok(status))
    status = rn_kernel_calls_check(instance, RN_AS_CALL, ctx->kernel->input_count - 1,
                                   ctx->kernel->output_count);
  if (rn_ok(status)) {
    run_instance(ctx, instance, 1, remote_done);
    return;
  }
  rn_function_forget(calls->functions, instance);
  rn_done(ctx, status);
}

// Whether a condition is true: a nonzero number or a non-empty string; if not a scalar, whether it
// has elements.
static rn_status_t holds(const rn_tensor_t* value, bool* out) {
  *out = value->count > 0;
  if (value->rank != 0) return RN_OK;
  switch (value->dtype) {
#define CASE(enumerator, type)               \
  case enumerator:                           \
    *out = *RN_DATA(value, const type) != 0; \
    return RN_OK;
    CASE(RN_BOOL, bool)
    CASE(RN_FLOAT, float)
    CASE(RN_DOUBLE, double)
    CASE(RN_INT32, int32_t)
    CASE(RN_UINT8, uint8_t)
    CASE(RN_INT16, int16_t)
    CASE(RN_INT8, int8_t)
    CASE(RN_INT64, int64_t)
#undef CASE
    case RN_STRING:
      *out = rn_tstring_view(RN_DATA(value, const rn_tstring_t)).size > 0;
      return RN_OK;
    default:
      return rn_invalid_argument("%s cannot be converted to a boolean",
                                 rn_dtype_name((rn_dtype_t)value->dtype));
  }
}

static void if_compute(rn_kernel_ctx_t* ctx) {
  bool is_then;
  rn_status_t status = holds(rn_in(ctx, 0), &is_then);
  if (rn_ok(status))
    run_target(ctx, is_then ? 1 : 0, 1);
  else
    rn_done(ctx, status);
}

// An index out of range selects the last branch.
static void case_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* index = rn_in(ctx, 0);
  int32_t count = ((rn_kernel_calls_t*)ctx->state)->target_count;
  if (index->rank != 0 || index->dtype != RN_INT32) {
    rn_done(ctx, rn_invalid_argument("branch_index must be scalar"));
    return;
  }
  int32_t branch = *RN_DATA(index, const int32_t);
  run_target(ctx, branch < 0 || branch >= count ? count - 1 : branch, 1);
}

// A running loop. Its variables are the kernel's inputs at first, then the body's results.
//
// A call may complete before rn_function_run returns, or later on another thread. Whichever comes
// second, the completion or the return, continues the loop; so the stack does not grow.
typedef struct functional_loop_t {
  rn_function_call_t call;  // first
  rn_kernel_ctx_t* ctx;
  rn_instance_t *cond, *body;
  size_t size;
  int32_t count;        // number of variables
  bool is_in_body;      // whether the body runs now, or the condition
  _Atomic bool is_met;  // completion or return has happened
  rn_status_t status;   // of the call that completed
  rn_tensor_t decision;
  int32_t next, limit, delta;   // for a For
  rn_tensor_t number;           // for a For: the argument before the variables
  rn_tensor_t* values;          // Owned; unset in the first iteration
  rn_tensor_t* results;         // Owned
  const rn_tensor_t** args;     // for the body of a For: the number first
  const rn_tensor_t** current;  // the variables among them
} functional_loop_t;

static void loop_end(functional_loop_t* loop, rn_status_t status) {
  rn_kernel_ctx_t* ctx = loop->ctx;
  for (int32_t i = 0; i < loop->count; ++i) {
    if (rn_ok(status)) {
      rn_tensor_clear(&ctx->out[i]);
      if (rn_tensor_is_set(&loop->values[i])) {
        ctx->out[i] = loop->values[i];
        loop->values[i] = (rn_tensor_t){0};
      } else {
        status = rn_tensor_keep(loop->current[i], ctx->kernel->device_memory, &ctx->out[i]);
      }
    }
    rn_tensor_clear(&loop->values[i]);
    rn_tensor_clear(&loop->results[i]);
  }
  rn_tensor_clear(&loop->decision);
  rn_tensor_clear(&loop->number);
  rn_free(ctx->kernel->allocator, loop, loop->size);
  rn_done(ctx, status);
}

static void loop_called(rn_function_call_t* call, rn_status_t status);

static rn_status_t loop_create(rn_kernel_ctx_t* ctx, int32_t first, functional_loop_t** out) {
  const rn_kernel_t* kernel = ctx->kernel;
  size_t count = (size_t)(kernel->input_count - first);
  size_t size = sizeof **out + count * (2 * sizeof(rn_tensor_t) + sizeof(void*)) + sizeof(void*);
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(kernel->allocator, size, (void**)out));
  functional_loop_t* loop = *out;
  loop->size = size;
  loop->ctx = ctx;
  loop->count = (int32_t)count;
  loop->values = (rn_tensor_t*)(loop + 1);
  loop->results = loop->values + count;
  loop->args = (const rn_tensor_t**)(loop->results + count);
  loop->args[0] = &loop->number;
  loop->current = loop->args + (first > 0 ? 1 : 0);
  for (size_t i = 0; i < count; ++i) loop->current[i] = ctx->in[(size_t)first + i];
  loop->call = (rn_function_call_t){.step = ctx->step, .done = loop_called};
  return RN_OK;
}

// Takes over the results of the body.
static void loop_advance(functional_loop_t* loop) {
  for (int32_t i = 0; i < loop->count; ++i) {
    rn_tensor_clear(&loop->values[i]);
    loop->values[i] = loop->results[i];
    loop->results[i] = (rn_tensor_t){0};
    loop->current[i] = &loop->values[i];
  }
}

// Handles a completed call: true if another one follows.
static bool while_step(functional_loop_t* loop, rn_status_t* inout_status) {
  if (!rn_ok(*inout_status)) return false;
  if (loop->is_in_body) {
    loop_advance(loop);
    loop->is_in_body = false;
    return true;
  }
  bool goes_on = false;
  *inout_status = holds(&loop->decision, &goes_on);
  rn_tensor_clear(&loop->decision);
  loop->is_in_body = true;
  return rn_ok(*inout_status) && goes_on;
}

static void while_call(functional_loop_t* loop) {
  rn_kernel_calls_t* calls = loop->ctx->state;
  loop->call.args = loop->args;
  loop->call.results = loop->is_in_body ? loop->results : &loop->decision;
  rn_function_run(calls->functions, loop->is_in_body ? loop->body : loop->cond, &loop->call);
}

static void while_run(functional_loop_t* loop) {
  for (;;) {
    atomic_store(&loop->is_met, false);
    while_call(loop);
    if (!atomic_exchange(&loop->is_met, true)) return;  // the completion continues
    rn_status_t status = loop->status;
    if (while_step(loop, &status)) continue;
    loop_end(loop, status);
    return;
  }
}

static void loop_called(rn_function_call_t* call, rn_status_t status) {
  functional_loop_t* loop = (functional_loop_t*)call;
  loop->status = status;
  if (!atomic_exchange(&loop->is_met, true)) return;  // the caller continues
  if (while_step(loop, &status))
    while_run(loop);
  else
    loop_end(loop, status);
}

static void while_compute(rn_kernel_ctx_t* ctx) {
  rn_kernel_calls_t* calls = ctx->state;
  functional_loop_t* loop = NULL;
  rn_status_t status = loop_create(ctx, 0, &loop);
  if (rn_ok(status))
    status = rn_kernel_calls_instance(calls, 0, RN_AS_COND, loop->count, 1, &loop->cond);
  if (rn_ok(status))
    status =
        rn_kernel_calls_instance(calls, 1, RN_AS_WHILE_BODY, loop->count, loop->count, &loop->body);
  if (rn_ok(status))
    while_run(loop);
  else if (loop)
    loop_end(loop, status);
  else
    rn_done(ctx, status);
}

static void for_called(rn_function_call_t* call, rn_status_t status);

static bool for_goes_on(const functional_loop_t* loop) {
  return loop->delta > 0 ? loop->next < loop->limit : loop->next > loop->limit;
}

static rn_status_t for_call(functional_loop_t* loop) {
  rn_kernel_calls_t* calls = loop->ctx->state;
  rn_tensor_clear(&loop->number);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(loop->ctx->kernel->host_memory, RN_INT32, RN_SHAPE_SCALAR, &loop->number));
  *RN_DATA(&loop->number, int32_t) = loop->next;
  int64_t next = (int64_t)loop->next + loop->delta;
  loop->next = next > INT32_MAX ? loop->limit : next < INT32_MIN ? loop->limit : (int32_t)next;
  rn_function_run(calls->functions, loop->body, &loop->call);
  return RN_OK;
}

static void for_run(functional_loop_t* loop) {
  rn_status_t status = RN_OK;
  while (for_goes_on(loop)) {
    atomic_store(&loop->is_met, false);
    status = for_call(loop);
    if (!rn_ok(status)) break;
    if (!atomic_exchange(&loop->is_met, true)) return;
    status = loop->status;
    if (!rn_ok(status)) break;
    loop_advance(loop);
  }
  loop_end(loop, status);
}

static void for_called(rn_function_call_t* call, rn_status_t status) {
  functional_loop_t* loop = (functional_loop_t*)call;
  loop->status = status;
  if (!atomic_exchange(&loop->is_met, true)) return;
  if (!rn_ok(status)) {
    loop_end(loop, status);
    return;
  }
  loop_advance(loop);
  for_run(loop);
}

// start, limit, delta, then the variables.
static rn_status_t for_begin(rn_kernel_ctx_t* ctx, functional_loop_t* loop) {
  static const char* const names[] = {"start", "limit", "delta"};
  int32_t bounds[3];
  for (int i = 0; i < 3; ++i) {
    const rn_tensor_t* bound = rn_in(ctx, i);
    if (bound->rank != 0 || bound->dtype != RN_INT32)
      return rn_invalid_argument("%s must be a scalar", names[i]);
    bounds[i] = *RN_DATA(bound, const int32_t);
  }
  loop->next = bounds[0];
  loop->limit = bounds[1];
  loop->delta = bounds[2];
  loop->call.args = loop->args;
  loop->call.results = loop->results;
  loop->call.done = for_called;
  bool is_right = (loop->delta > 0 && loop->next <= loop->limit) ||
                  (loop->delta < 0 && loop->next >= loop->limit) ||
                  (loop->delta == 0 && loop->next == loop->limit);
  if (!is_right)
    return rn_invalid_argument("Invalid start/limit/delta: %d %d %d", bounds[0], bounds[1],
                               bounds[2]);
  return rn_kernel_calls_instance(ctx->state, 0, RN_AS_FOR_BODY, loop->count + 1, loop->count,
                                  &loop->body);
}

static void for_compute(rn_kernel_ctx_t* ctx) {
  functional_loop_t* loop = NULL;
  rn_status_t status = loop_create(ctx, 3, &loop);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  status = for_begin(ctx, loop);
  if (rn_ok(status))
    for_run(loop);
  else
    loop_end(loop, status);
}

// FakeParam: a value of given shape and type that is never read.
typedef struct functional_fake_t {
  rn_shape_t shape;
  int64_t dims[RN_MAX_RANK];
} functional_fake_t;

static rn_status_t fake_init(const rn_kernel_init_t* init, void* state) {
  functional_fake_t* fake = state;
  const rn_attr_value_t* shape = rn_init_attr(init, "shape");
  // Unknown dims become 0; no one reads them.
  fake->shape = (rn_shape_t){shape->shape.rank < 0 ? 0 : shape->shape.rank, fake->dims};
  for (int d = 0; d < fake->shape.rank; ++d)
    fake->dims[d] = shape->shape.dims[d] < 0 ? 0 : shape->shape.dims[d];
  return RN_OK;
}

static rn_status_t fake_compute(rn_kernel_ctx_t* ctx) {
  const functional_fake_t* fake = ctx->state;
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->device_memory,
                                      rn_dtype_base(ctx->kernel->output_types[0]), fake->shape,
                                      &value));
  if (rn_dtype_is_plain(value.dtype)) memset(value.data, 0, rn_tensor_bytes(&value));
  rn_set_output(ctx, 0, &value);
  return RN_OK;
}

typedef struct device_index_t {
  int32_t index;
} device_index_t;

// The index of the name that is this device's type; the number of names if none is.
static rn_status_t device_index_init(const rn_kernel_init_t* init, void* state) {
  const rn_attr_value_t* names = rn_init_attr(init, "device_names");
  device_index_t* own = state;
  own->index = names->count;
  for (int32_t i = names->count; i-- > 0;)
    if (rn_str_is(names->list_s[i], init->def->device)) own->index = i;
  return RN_OK;
}

static rn_status_t device_index_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int32_t) = ((const device_index_t*)ctx->state)->index;
  return RN_OK;
}

static rn_status_t to_bool_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  return holds(rn_in(ctx, 0), RN_DATA(out, bool));
}

// _ArrayToList and _ListToArray: the inputs, under types that must be theirs.
static rn_status_t pass_compute(rn_kernel_ctx_t* ctx) {
  const rn_kernel_t* kernel = ctx->kernel;
  if (kernel->input_count != kernel->output_count)
    return rn_internal("#inputs != #outputs : %d vs. %d", kernel->input_count,
                       kernel->output_count);
  for (int i = 0; i < kernel->input_count; ++i) {
    if (kernel->input_types[i] != kernel->output_types[i])
      return rn_internal("Input and output types for position %d do not match: %s vs. %s", i,
                         rn_dtype_name(kernel->input_types[i]),
                         rn_dtype_name(kernel->output_types[i]));
    RN_RETURN_IF_ERROR(rn_forward(ctx, i, i));
  }
  return RN_OK;
}

// Bodies receive the inputs and may return them.
#define CALL(name, init_, function)                                                             \
  {                                                                                             \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_KEEPS_INPUTS,       \
    .state_size = sizeof(rn_kernel_calls_t), .init = init_, .destroy = rn_kernel_calls_destroy, \
    .compute_async = function                                                                   \
  }

static const rn_kernel_def_t rows[] = {
    CALL("PartitionedCall", call_init, call_compute),
    CALL("StatefulPartitionedCall", call_init, call_compute),
    CALL("RemoteCall", call_init, remote_call_compute),
    CALL("If", if_init, if_compute),
    CALL("StatelessIf", if_init, if_compute),
    CALL("_If", if_init, if_compute),
    CALL("Case", case_init, case_compute),
    CALL("StatelessCase", case_init, case_compute),
    CALL("While", while_init, while_compute),
    CALL("StatelessWhile", while_init, while_compute),
    CALL("_While", while_init, while_compute),
    CALL("For", for_init, for_compute),
    {.op = "FakeParam",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(functional_fake_t),
     .init = fake_init,
     .compute = fake_compute},
    {.op = "DeviceIndex",
     .device = "CPU",
     .state_size = sizeof(device_index_t),
     .init = device_index_init,
     .compute = device_index_compute},
    {.op = "ToBool", .device = "CPU", .compute = to_bool_compute},
    {.op = "_ArrayToList", .device = "CPU", .flags = RN_KERNEL_FORWARDS, .compute = pass_compute},
    {.op = "_ListToArray", .device = "CPU", .flags = RN_KERNEL_FORWARDS, .compute = pass_compute},
};
RN_KERNEL_FAMILY(cpu_functional, rows);
