// See kernel_calls.h.
#include "kernels/cpu/function/kernel_calls.h"

#include <stdatomic.h>

void rn_kernel_calls_destroy(void* state) {
  rn_kernel_calls_t* calls = state;
  if (!calls->arena.allocator.fn) return;
  for (int32_t i = 0; i < calls->target_count; ++i)
    rn_function_forget(calls->functions, calls->targets[i].instance);
  for (size_t i = 0; i < calls->values.count; ++i) rn_attr_value_clear(&calls->values.items[i]);
  rn_vec_free(&calls->values, calls->arena.allocator);
  rn_arena_clear(&calls->arena);
}

rn_status_t rn_kernel_calls_begin(const rn_kernel_init_t* init, rn_kernel_calls_t* calls,
                                  int32_t count) {
  if (!init->functions)
    return rn_failed_precondition("The runtime has no function library: node '%.*s' (%s)",
                                  RN_STR_ARGS(init->node), init->op->name);
  calls->functions = init->functions;
  rn_arena_init(&calls->arena, init->allocator);
  RN_RETURN_IF_ERROR(rn_arena_str(&calls->arena, init->device_name, &calls->device));
  return RN_ARENA_ARRAY(&calls->arena, (size_t)count, &calls->targets);
}

rn_status_t rn_kernel_calls_add(rn_kernel_calls_t* calls, const rn_func_attr_t* function) {
  rn_attr_value_t from = {.kind = RN_ATTR_FUNC, .func = function}, copy;
  rn_allocator_t allocator = calls->arena.allocator;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&calls->values, allocator, calls->values.count + 1));
  RN_RETURN_IF_ERROR(rn_attr_value_copy(&calls->arena, &from, &copy));
  calls->values.items[calls->values.count++] = copy;
  calls->targets[calls->target_count++].function = copy.func;
  return RN_OK;
}

rn_status_t rn_kernel_calls_add_named(rn_kernel_calls_t* calls, const rn_kernel_init_t* init,
                                      const char* attr) {
  const rn_attr_value_t* value = rn_init_attr(init, attr);
  if (value->kind != RN_ATTR_FUNC || value->is_list || !value->func)
    return rn_invalid_argument("Attribute '%s' is not a function", attr);
  return rn_kernel_calls_add(calls, value->func);
}

rn_status_t rn_kernel_calls_check(const rn_instance_t* instance, rn_called_as_t as, int32_t args,
                                  int32_t results) {
  int32_t made = instance->result_count;
  if (instance->arg_count != args && as == RN_AS_BATCH)
    return rn_invalid_argument("Function takes %d argument(s) but %d argument(s) were passed",
                               instance->arg_count, args);
  if (instance->arg_count != args)
    return rn_invalid_argument("Expects %d arguments, but %d is provided", instance->arg_count,
                               args);
  if (made == results) return RN_OK;
  switch (as) {
    case RN_AS_COND:
      return rn_invalid_argument(
          "Expected a single scalar return value from WhileOp cond, got %d tensors.", made);
    case RN_AS_WHILE_BODY:
    case RN_AS_FOR_BODY:
      return rn_invalid_argument("%s loop body returned %d arguments. Expected: %d",
                                 as == RN_AS_FOR_BODY ? "For" : "While", made, results);
    default:
      return rn_internal("Expect to produce %d tensors, but only get %d", results, made);
  }
}

rn_status_t rn_kernel_calls_instance(rn_kernel_calls_t* calls, int32_t i, rn_called_as_t as,
                                     int32_t args, int32_t results, rn_instance_t** out) {
  rn_kernel_calls_target_t* target = &calls->targets[i];
  *out = target->instance;
  if (*out) return RN_OK;
  rn_instance_t *made = NULL, *seen = NULL;
  RN_RETURN_IF_ERROR(rn_function_prepare(calls->functions, target->function, calls->device, &made));
  rn_status_t status = rn_kernel_calls_check(made, as, args, results);
  if (!rn_ok(status)) {
    rn_function_forget(calls->functions, made);
    return status;
  }
  if (!atomic_compare_exchange_strong(&target->instance, &seen, made)) {
    rn_function_forget(calls->functions, made);
    made = seen;
  }
  *out = made;
  return RN_OK;
}
