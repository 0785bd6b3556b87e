// Assigns the variables of a cluster to parameter servers: round robin, by load, or by the client's
// function.
#include "runnel/cluster.h"
#include "train/store.h"
#include "train/words.h"

struct rn_setter_t {
  const char *device, *worker_device;  // in the store's arena
  int tasks, next;
  int64_t* loads;  // bytes on each task
  rn_spread_t spread;
  int (*choose)(void* arg, const char* name, int dtype, const int64_t* dims, int rank);
  void* arg;
};

static rn_status_t make_setter(rn_store_t* store, const rn_spread_options_t* options,
                               rn_setter_t** out) {
  rn_str_t device, worker;
  const char* of_tasks = options->device ? options->device : "/job:ps";
  const char* of_worker = options->worker_device ? options->worker_device : "/job:worker";
  if (options->tasks < 0)
    return rn_invalid_argument("rn_spread_variables: bad number of parameter servers: %d",
                               options->tasks);
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&store->arena, out));
  RN_RETURN_IF_ERROR(rn_arena_str(&store->arena, rn_str(of_tasks), &device));
  RN_RETURN_IF_ERROR(rn_arena_str(&store->arena, rn_str(of_worker), &worker));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&store->arena, (size_t)options->tasks, &(*out)->loads));
  (*out)->device = device.data;
  (*out)->worker_device = worker.data;
  (*out)->tasks = options->tasks;
  (*out)->spread = options->spread;
  (*out)->choose = options->choose;
  (*out)->arg = options->arg;
  return RN_OK;
}

RN_API void rn_spread_variables_(rn_scope_t* scope, rn_spread_options_t options) {
  rn_store_t* store = rn_store_of(scope);
  if (!store) return;
  rn_setter_t* setter = NULL;
  rn_status_t status = make_setter(store, &options, &setter);
  if (rn_ok(status)) status = rn_variable_frame_set_setter(scope, setter);
  if (rn_ok(status))
    rn_scope_set_device(scope, setter->worker_device);
  else
    rn_scope_fail(scope, status);
}

// Bytes of the variable. An element without a fixed size counts as one byte, and an empty variable
// too, so that every variable counts.
static int64_t size_of(const rn_var_t* v) {
  size_t each = rn_dtype_size((rn_dtype_t)v->dtype);
  int64_t bytes = each ? (int64_t)each : 1;
  for (int i = 0; i < v->rank; ++i)
    if (!rn_mul_i64_ok(bytes, v->dims[i], &bytes)) return INT64_MAX;
  return bytes > 0 ? bytes : 1;
}

static int lightest(const rn_setter_t* setter) {
  int best = 0;
  for (int i = 1; i < setter->tasks; ++i)
    if (setter->loads[i] < setter->loads[best]) best = i;
  return best;
}

static rn_status_t choose_task(rn_setter_t* setter, const char* name, const rn_var_t* v, int* out) {
  int task = setter->choose ? setter->choose(setter->arg, name, v->dtype, v->dims, v->rank) : -1;
  if (task >= setter->tasks)
    return rn_invalid_argument("Variable %s: the chosen task %d is not one of %d", name, task,
                               setter->tasks);
  if (task < 0 && setter->spread == RN_SPREAD_BY_LOAD) task = lightest(setter);
  if (task < 0) {
    task = setter->next;
    setter->next = (setter->next + 1) % setter->tasks;
  }
  int64_t* load = &setter->loads[task];
  if (!rn_add_i64_ok(*load, size_of(v), load)) *load = INT64_MAX;
  *out = task;
  return RN_OK;
}

rn_status_t rn_setter_place(rn_scope_t* scope, rn_str_t name, const rn_var_t* variable,
                            bool is_local, rn_scope_t* const* inner, int count) {
  rn_setter_t* setter = rn_variable_frame_of(scope)->setter;
  if (!setter || !setter->tasks || is_local ||
      !rn_str_is(rn_scope_device(scope), setter->worker_device))
    return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_scope_allocator(scope));
  rn_strbuf_append(&text, name);
  rn_status_t status = rn_strbuf_status(&text);
  int task = 0;
  if (rn_ok(status)) status = choose_task(setter, text.data, variable, &task);
  text.size = 0;
  rn_strbuf_printf(&text, "%s/task:%d", setter->device, task);
  if (rn_ok(status)) status = rn_strbuf_status(&text);
  for (int i = 0; rn_ok(status) && i < count; ++i) rn_scope_set_device(inner[i], text.data);
  rn_strbuf_clear(&text);
  return status;
}
