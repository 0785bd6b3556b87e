// Any bytes, as any message: the first byte picks the type. What is accepted must encode, and
// decode again to the same bytes; tensors and attributes are converted too.
#include "framework/attr_proto.h"
#include "proto/messages.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

#define MAX_TENSOR_BYTES (1 << 20)

static void must(rn_status_t status) {
  if (!rn_ok(status)) __builtin_trap();
}

static void convert(const rn_pb_message_desc_t* desc, const void* message, rn_arena_t* arena) {
  if (desc == &rn_pb_TensorProto_desc) {
    rn_tensor_t tensor;
    rn_pb_TensorProto_t back;
    rn_status_t status =
        rn_tensor_from_proto(message, MAX_TENSOR_BYTES, rn_allocator_system(), &tensor);
    if (rn_ok(status)) must(rn_tensor_to_proto(&tensor, RN_TENSOR_AUTO, arena, &back));
    rn_tensor_clear(&tensor);
    rn_status_free(status);
  } else if (desc == &rn_pb_AttrValue_desc) {
    rn_attr_value_t value;
    rn_pb_AttrValue_t back;
    rn_status_t status = rn_attr_value_from_proto(message, MAX_TENSOR_BYTES, arena, &value);
    if (rn_ok(status)) {
      must(rn_attr_value_to_proto(&value, arena, &back));
      rn_attr_value_clear(&value);
    }
    rn_status_free(status);
  }
}

static void again(const rn_pb_message_desc_t* desc, void* message, rn_arena_t* arena) {
  rn_strbuf_t out[4];
  for (int i = 0; i < 4; ++i) rn_strbuf_init(&out[i], rn_allocator_system());
  must(rn_pb_encode(desc, message, NULL, &out[0]));
  must(rn_pb_print(desc, message, &out[2]));
  must(rn_pb_decode(desc, rn_strbuf_view(&out[0]), NULL, arena, &message));
  must(rn_pb_encode(desc, message, NULL, &out[1]));
  must(rn_pb_parse(desc, rn_strbuf_view(&out[2]), NULL, arena, &message));
  must(rn_pb_print(desc, message, &out[3]));
  for (int i = 0; i < 4; i += 2) {
    if (!rn_str_eq(rn_strbuf_view(&out[i]), rn_strbuf_view(&out[i + 1]))) __builtin_trap();
  }
  for (int i = 0; i < 4; ++i) rn_strbuf_clear(&out[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const rn_pb_message_desc_t* desc = rn_pb_messages[data[0] % rn_pb_message_count];
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  void* message = NULL;
  rn_status_t status =
      rn_pb_decode(desc, rn_str_n((const char*)data + 1, size - 1), NULL, &arena, &message);
  if (rn_ok(status)) {
    convert(desc, message, &arena);
    again(desc, message, &arena);
  }
  rn_status_free(status);
  rn_arena_clear(&arena);
  return 0;
}
