// Fuzzes what gRPC clients of a model server send: tensors in requests, model specs, examples and
// the heads of messages. The first byte picks one. A tensor must read the same in place as through
// its message, and again after it was sent back in either form.
#include "fuzz/util.h"
#include "net/tensor_codec.h"
#include "serve/front/classify.h"
#include "serve/front/rpc.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/scan.h"

#define MAX_BYTES (1 << 20)  // of a tensor that is larger than its message
#define MAX_MEMORY (64 << 20)

static bool is_same(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->dtype != b->dtype || !rn_tensor_same_shape(a, b)) return false;
  if (rn_dtype_is_plain(a->dtype))
    return !a->count || memcmp(a->data, b->data, rn_tensor_bytes(a)) == 0;
  for (int64_t i = 0; a->dtype == RN_STRING && i < a->count; ++i)
    if (!rn_str_eq(rn_tstring_view(&RN_DATA(a, rn_tstring_t)[i]),
                   rn_tstring_view(&RN_DATA(b, rn_tstring_t)[i])))
      return false;
  return true;
}

// Memory may be short: then nothing is compared.
static bool is_short(rn_status_t status) {
  return rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED;
}

static void send_back(const rn_tensor_t* tensor, rn_tensor_form_t form, rn_allocator_t allocator) {
  rn_message_t message;
  rn_encoder_t encoder;
  rn_strbuf_t bytes;
  rn_tensor_t back = {0};
  rn_message_init(&message, allocator);
  rn_strbuf_init(&bytes, allocator);
  rn_encoder_open(&encoder, &message);
  rn_encode_named_tensor(&encoder, 1, RN_STR("x"), tensor, form);
  rn_status_t status = rn_encoder_close(&encoder);
  for (size_t i = 0; i < message.pieces.count; ++i)
    rn_strbuf_append(&bytes, message.pieces.items[i].bytes);
  if (rn_ok(status)) status = rn_strbuf_status(&bytes);
  if (rn_ok(status)) {
    rn_str_t named = rn_field_bytes(rn_strbuf_view(&bytes), 1);
    fuzz_check(rn_str_is(rn_field_bytes(named, 1), "x"));
    status = rn_decode_tensor(rn_field_bytes(named, 2), NULL, RN_TENSOR_ANY_SIZE, allocator, &back);
    fuzz_check(is_short(status) || (rn_ok(status) && is_same(tensor, &back)));
  }
  rn_status_free(status);
  rn_tensor_clear(&back);
  rn_strbuf_clear(&bytes);
  rn_message_clear(&message);
}

static void read_tensor(fuzz_bytes_t* in, rn_allocator_t allocator) {
  size_t offset = (size_t)fuzz_pick(in, 8);
  rn_buffer_t* buffer = NULL;
  rn_arena_t arena;
  rn_pb_TensorProto_t* proto = NULL;
  rn_tensor_t quick = {0}, slow = {0};
  fuzz_must(rn_buffer_create(rn_allocator_system(), RN_UINT8, in->left + 8, &buffer));
  if (in->left) memcpy((char*)buffer->data + offset, in->at, in->left);
  rn_str_t bytes = rn_str_n((char*)buffer->data + offset, in->left);
  rn_status_t first = rn_decode_tensor(bytes, buffer, MAX_BYTES, allocator, &quick);
  rn_arena_init(&arena, allocator);
  rn_status_t second = RN_PB_DECODE(TensorProto, bytes, NULL, &arena, &proto);
  if (rn_ok(second)) second = rn_tensor_from_proto(proto, MAX_BYTES, allocator, &slow);
  // Bytes that are all there need no limit.
  if (!is_short(first) && !is_short(second)) {
    fuzz_check(rn_status_code(first) == rn_status_code(second));
    fuzz_check(!rn_ok(first) || is_same(&quick, &slow));
  }
  if (rn_ok(first) && quick.dtype != RN_RESOURCE && quick.dtype != RN_VARIANT) {
    send_back(&quick, RN_TENSOR_CONTENT, allocator);
    send_back(&quick, RN_TENSOR_TYPED, allocator);
  }
  rn_status_free(first);
  rn_status_free(second);
  rn_tensor_clear(&quick);
  rn_tensor_clear(&slow);
  rn_arena_clear(&arena);
  rn_buffer_release(buffer);
}

static void read_spec(rn_str_t bytes, rn_allocator_t allocator) {
  rn_rpc_spec_t spec, back;
  rn_strbuf_t again;
  rn_strbuf_init(&again, allocator);
  rn_status_t status = rn_rpc_spec_read(bytes, 1, &spec);
  if (rn_ok(status)) {
    int64_t version = spec.model.version < 0 ? 0 : spec.model.version;
    rn_rpc_spec_write(&again, 1, spec.model.name, version, &spec.signature);
    if (!again.failed) {
      fuzz_must(rn_rpc_spec_read(rn_strbuf_view(&again), 1, &back));
      fuzz_check(rn_str_eq(back.model.name, spec.model.name) && back.model.version == version);
    }
  }
  rn_status_free(status);
  rn_strbuf_clear(&again);
}

static void read_examples(rn_str_t bytes, rn_allocator_t allocator) {
  rn_tensor_t examples = {0};
  rn_status_t status = rn_infer_examples(bytes, allocator, &examples);
  fuzz_check(!rn_ok(status) || (examples.dtype == RN_STRING && examples.rank == 1));
  rn_status_free(status);
  rn_tensor_clear(&examples);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, MAX_MEMORY);
  fuzz_bytes_t in = {data, size};
  int choice = fuzz_pick(&in, 4);
  rn_str_t bytes = rn_str_n((const char*)in.at, in.left);
  if (choice == 0) read_tensor(&in, allocator);
  if (choice == 1) read_spec(bytes, allocator);
  if (choice == 2) read_examples(bytes, allocator);
  if (choice == 3) fuzz_check(rn_align_content(bytes, SIZE_MAX) <= bytes.size);
  fuzz_check(memory.counting.live_blocks == 0);
  return 0;
}
