// DecodeCompressed: one limit applies to the expanded size of all strings of an input together.
#include <zlib.h>

#include "tensor/tstring.h"
#include "util.h"

// A tensor of |count| strings, each |size| zeros as zlib packs them.
static rn_tensor_t packed_zeros(int64_t count, size_t size) {
  unsigned char* zeros = calloc(1, size);
  uLongf bytes = compressBound(size);
  unsigned char* packed = malloc(bytes);
  cr_assert(zeros && packed);
  cr_assert_eq(compress(packed, &bytes, zeros, size), Z_OK);
  rn_tensor_t tensor = {0};
  OK(rn_tensor_create(rn_allocator_system(), RN_STRING, (rn_shape_t){1, &count}, &tensor));
  for (int64_t i = 0; i < count; ++i)
    cr_assert(rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], (char*)packed, bytes));
  free(zeros);
  free(packed);
  return tensor;
}

static rn_status_t decode(rn_tensor_t* packed) {
  rt_t rt = rt_begin(1);
  rn_edge_t in = rn_Placeholder(rt.s, RN_STRING);
  rn_edge_t out = rn_DecodeCompressed(rt.s, in, .compression_type = "ZLIB");
  rt_step_t step = {0};
  rt_feed(&step, in, packed);
  rt_fetch(&step, out);
  rn_status_t status = rt_run(&rt, &step);
  rn_tensor_clear(&step.out[0]);
  rn_tensor_clear(packed);
  rt_end(&rt);
  return status;
}

RT_TEST(decode, strings_share_one_limit) {
  unsetenv("RUNNEL_MAX_UNPACKED");
  rn_tensor_t few = packed_zeros(3, (size_t)20 << 20), many = packed_zeros(4, (size_t)20 << 20);
  OK(decode(&few));
  FAILS_WITH(decode(&many), RESOURCE_EXHAUSTED, "RUNNEL_MAX_UNPACKED");
}
