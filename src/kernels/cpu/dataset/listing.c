// What a pipeline consists of: see listing.h.
#include "kernels/cpu/dataset/listing.h"

#include "base/map.h"
#include "kernels/cpu/dataset/remake.h"

// Where the address of a dataset is kept: in an input, or by the caller.
typedef RN_VEC(rn_dataset_t* const*) slots_t;

static rn_status_t push_inputs(const rn_dataset_t* dataset, slots_t* stack) {
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && dataset->inputs && i < dataset->node->input_count; ++i) {
    const rn_tensor_t* input = &dataset->inputs[i];
    if (rn_data_in(input))
      status = rn_vec_push(stack, dataset->node->allocator, RN_DATA(input, rn_dataset_t* const));
  }
  return status;
}

rn_status_t rn_data_list(rn_dataset_t* dataset, rn_data_list_t* out) {
  rn_allocator_t allocator = dataset->node->allocator;
  slots_t stack = {0};
  rn_map_t met;  // by the bytes of addresses
  *out = (rn_data_list_t){0};
  rn_map_init(&met, allocator);
  rn_status_t status = rn_vec_push(&stack, allocator, &dataset);
  while (rn_ok(status) && stack.count) {
    rn_dataset_t* const* slot = stack.items[--stack.count];
    rn_str_t key = rn_str_n((const char*)slot, sizeof *slot);
    if (rn_map_get(&met, key)) continue;
    status = rn_map_put(&met, key, *slot);
    if (rn_ok(status)) status = rn_vec_push(out, allocator, *slot);
    if (rn_ok(status)) status = push_inputs(*slot, &stack);
  }
  rn_map_clear(&met);
  rn_vec_free(&stack, allocator);
  return status;
}
