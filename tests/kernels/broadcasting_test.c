// Iteration over operands of different shapes, compared with computing one coordinate at a time.
#include "kernels/cpu/broadcasting.h"

#include <criterion/criterion.h>

#include "../support/status.h"

static void mix(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  (void)arg;
  const int32_t *a = in[0], *b = in[1], *c = in[2];
  for (int64_t i = 0; i < n; ++i)
    ((int32_t*)out)[i] = a[steps[0] * i] * 10007 + b[steps[1] * i] * 31 + c[steps[2] * i];
}

static uint32_t next(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static rn_tensor_t tensor_of(int rank, const int64_t* dims, uint32_t* state) {
  rn_tensor_t tensor;
  cr_assert(
      rn_ok(rn_tensor_create(rn_allocator_system(), RN_INT32, (rn_shape_t){rank, dims}, &tensor)));
  for (int64_t i = 0; i < tensor.count; ++i)
    RN_DATA(&tensor, int32_t)[i] = (int32_t)(next(state) % 1000);
  return tensor;
}

// Element |e| of the result, looked up in |tensor|.
static int32_t element(const rn_tensor_t* tensor, const rn_broadcast_t* broadcast, int64_t e) {
  int64_t offset = 0, stride = 1;
  for (int d = broadcast->shape_rank - 1; d >= 0; --d) {
    int64_t at = e % broadcast->shape_dims[d];
    e /= broadcast->shape_dims[d];
    int own = d - (broadcast->shape_rank - tensor->rank);
    if (own < 0) continue;
    if (rn_tensor_dim(tensor, own) != 1) offset += at * stride;
    stride *= rn_tensor_dim(tensor, own);
  }
  return RN_DATA(tensor, int32_t)[offset];
}

static void check_random(rn_pool_t* pool, uint32_t* state) {
  int rank = (int)(next(state) % 7);
  int64_t dims[8], own[8], count = 1;
  for (int d = 0; d < rank; ++d) {
    dims[d] = next(state) % (next(state) % 4 ? 6 : 70);
    if (dims[d] == 0 && next(state) % 4) dims[d] = 1;
    if (count * dims[d] > 20000) dims[d] = 1;
    count *= dims[d] ? dims[d] : 1;
  }
  rn_tensor_t tensors[3];
  const rn_tensor_t* operands[3];
  for (int k = 0; k < 3; ++k) {
    int skipped = (int)(next(state) % (uint32_t)(rank + 1));
    for (int d = skipped; d < rank; ++d) own[d - skipped] = next(state) % 3 ? dims[d] : 1;
    tensors[k] = tensor_of(rank - skipped, own, state);
    operands[k] = &tensors[k];
  }
  rn_broadcast_t broadcast;
  cr_assert(rn_broadcast_make(operands, 3, &broadcast));
  int32_t* out = calloc((size_t)broadcast.count + 1, sizeof *out);
  rn_broadcast_walk_t run = {.in = {tensors[0].data, tensors[1].data, tensors[2].data},
                             .in_size = {4, 4, 4},
                             .out = out,
                             .out_size = 4,
                             .fn = mix};
  rn_broadcast_run(pool, 1 + next(state) % 3000, &broadcast, &run);
  for (int64_t e = 0; e < broadcast.count; ++e) {
    int32_t want = element(operands[0], &broadcast, e) * 10007 +
                   element(operands[1], &broadcast, e) * 31 + element(operands[2], &broadcast, e);
    cr_assert_eq(out[e], want, "element %lld", (long long)e);
  }
  cr_assert_eq(out[broadcast.count], 0);
  free(out);
  for (int k = 0; k < 3; ++k) rn_tensor_clear(&tensors[k]);
}

Test(broadcasting, random_shapes) {
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_system(), 2, &pool));
  uint32_t state = 12345;
  for (int i = 0; i < 3000; ++i) check_random(pool, &state);
  rn_pool_destroy(pool);
}

Test(broadcasting, shapes_that_do_not_fit) {
  uint32_t state = 1;
  rn_tensor_t a = tensor_of(2, (int64_t[]){2, 3}, &state), b = tensor_of(1, (int64_t[]){4}, &state);
  rn_broadcast_t broadcast;
  cr_assert(!rn_broadcast_make((const rn_tensor_t*[]){&a, &b}, 2, &broadcast));
  rn_tensor_clear(&b);
  b = tensor_of(1, (int64_t[]){0}, &state);
  cr_assert(!rn_broadcast_make((const rn_tensor_t*[]){&a, &b}, 2, &broadcast));
  rn_tensor_clear(&a);
  rn_tensor_clear(&b);
}

Test(broadcasting, sizes_that_overflow) {
  // 2^62 elements each, of which the views below have only one.
  int32_t one = 1;
  rn_tensor_t a = {
      .data = &one, .count = 1, .dtype = RN_INT32, .rank = 2, .inline_dims = {INT64_C(1) << 62, 1}};
  rn_tensor_t b = {
      .data = &one, .count = 1, .dtype = RN_INT32, .rank = 2, .inline_dims = {1, INT64_C(1) << 62}};
  rn_broadcast_t broadcast;
  cr_assert(rn_broadcast_make((const rn_tensor_t*[]){&a, &b}, 2, &broadcast));
  cr_assert_eq(broadcast.count, INT64_MAX);
}
