// Fuzzes the decoder with any message type; the first four bytes select the type. An accepted
// message must encode to bytes that decode and encode to the same bytes. Tensors and attributes are
// converted too.
#include "framework/attr_proto.h"
#include "fuzz/messages.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

#define MAX_TENSOR_BYTES (1 << 20)

static void convert(const rn_pb_message_desc_t* desc, const void* message, rn_arena_t* arena) {
  if (desc == &rn_pb_TensorProto_desc) {
    rn_tensor_t tensor;
    rn_pb_TensorProto_t back;
    rn_status_t status =
        rn_tensor_from_proto(message, MAX_TENSOR_BYTES, rn_allocator_system(), &tensor);
    if (rn_ok(status)) fuzz_must(rn_tensor_to_proto(&tensor, RN_TENSOR_AUTO, arena, &back));
    rn_tensor_clear(&tensor);
    rn_status_free(status);
  } else if (desc == &rn_pb_AttrValue_desc) {
    rn_attr_value_t value;
    rn_pb_AttrValue_t back;
    rn_status_t status = rn_attr_value_from_proto(message, MAX_TENSOR_BYTES, arena, &value);
    if (rn_ok(status)) {
      fuzz_must(rn_attr_value_to_proto(&value, arena, &back));
      rn_attr_value_clear(&value);
    }
    rn_status_free(status);
  }
}

static void again(const rn_pb_message_desc_t* desc, void* message, rn_arena_t* arena) {
  rn_strbuf_t out[4];
  for (int i = 0; i < 4; ++i) rn_strbuf_init(&out[i], rn_allocator_system());
  fuzz_must(rn_pb_encode(desc, message, NULL, &out[0]));
  fuzz_must(rn_pb_print(desc, message, &out[2]));
  fuzz_must(rn_pb_decode(desc, rn_strbuf_view(&out[0]), NULL, arena, &message));
  fuzz_must(rn_pb_encode(desc, message, NULL, &out[1]));
  fuzz_must(rn_pb_parse(desc, rn_strbuf_view(&out[2]), NULL, arena, &message));
  fuzz_must(rn_pb_print(desc, message, &out[3]));
  for (int i = 0; i < 4; i += 2) {
    fuzz_check(rn_str_eq(rn_strbuf_view(&out[i]), rn_strbuf_view(&out[i + 1])));
  }
  for (int i = 0; i < 4; ++i) rn_strbuf_clear(&out[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_bytes_t bytes = {data, size};
  const rn_pb_message_desc_t* desc = fuzz_message(&bytes);
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  void* message = NULL;
  rn_status_t status = rn_pb_decode(desc, fuzz_take(&bytes, size), NULL, &arena, &message);
  if (rn_ok(status)) {
    convert(desc, message, &arena);
    again(desc, message, &arena);
  }
  rn_status_free(status);
  rn_arena_clear(&arena);
  return 0;
}
