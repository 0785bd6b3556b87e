// Fuzzes what a container sends: a stream of frames. Replies are read against the signatures of the
// last HELLO, with the input's own bytes as shared memory.
#include "fuzz/util.h"
#include "serve/model/container_wire.h"

#define MOST_OUTPUTS 1024

static void check_hello(const rn_container_hello_t* hello) {
  fuzz_check(hello->lanes >= 1 && hello->lanes <= RN_CONTAINER_MAX_LANES);
  fuzz_check(hello->signature_count >= 1);
  fuzz_check(rn_container_hello_same(hello, hello));
  for (int i = 0; i < hello->signature_count; ++i) {
    const rn_serve_signature_t* signature = &hello->signatures[i];
    fuzz_check(signature->output_count >= 1 && signature->output_count <= MOST_OUTPUTS);
    for (int k = 0; k < signature->output_count; ++k)
      fuzz_check(rn_serve_port(signature->outputs, signature->output_count,
                               signature->outputs[k].name) == k);
  }
}

static void read_reply(rn_str_t payload, const rn_serve_signature_t* signature, uint64_t id,
                       const rn_container_region_t* region) {
  rn_tensor_t* outputs = NULL;
  bool* wanted = NULL;
  size_t count = (size_t)signature->output_count, inlined;
  rn_allocator_t memory = rn_allocator_system();
  fuzz_must(RN_NEW_ARRAY(memory, count, &outputs));
  fuzz_must(RN_NEW_ARRAY(memory, count, &wanted));
  for (size_t i = 0; i < count; ++i) wanted[i] = id >> (i % 64) & 1;
  int64_t rows = signature->is_batched ? (int64_t)(id >> 56) : -1;
  if (id >> 55 & 1) rows = RN_CONTAINER_ANY_ROWS;
  rn_status_t status =
      rn_container_reply_read(payload, signature, wanted, rows, region, memory, outputs, &inlined);
  for (size_t i = 0; i < count; ++i) {
    fuzz_check(rn_tensor_is_set(&outputs[i]) == (rn_ok(status) && wanted[i]));
    if (rn_tensor_is_set(&outputs[i])) {
      const rn_serve_port_t* port = &signature->outputs[i];
      fuzz_check(outputs[i].dtype == port->dtype);
      if (rows != RN_CONTAINER_ANY_ROWS)
        fuzz_check(rn_shape_compatible(rn_tensor_shape(&outputs[i]), port->shape));
      if (rows >= 0) fuzz_check(rn_tensor_dim(&outputs[i], 0) == rows);
    }
    rn_tensor_clear(&outputs[i]);
  }
  rn_status_free(status);
  RN_FREE_ARRAY(memory, outputs, count);
  RN_FREE_ARRAY(memory, wanted, count);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  arena.limit = (size_t)64 << 20;
  rn_container_hello_t hello = {0}, last = {0};
  const rn_container_region_t region = {.data = (char*)data, .size = size};
  for (size_t at = 0; at < size;) {
    rn_container_frame_t frame;
    size_t taken;
    rn_str_t rest = rn_str_n((const char*)data + at, size - at);
    rn_status_t status = rn_container_frame_read(rest, &frame, &taken);
    fuzz_check(taken >= RN_CONTAINER_HEADER);
    if (!rn_ok(status) || taken > rest.size) {
      rn_status_free(status);
      break;
    }
    at += taken;
    if (frame.kind == RN_CONTAINER_HELLO) {
      status = rn_container_hello_read(frame.payload, &arena, &hello);
      if (rn_ok(status)) {
        check_hello(&hello);
        last = hello;
      }
      rn_status_free(status);
    } else if (frame.kind == RN_CONTAINER_ERROR) {
      status = rn_container_error_read(frame.payload);
      fuzz_check(!rn_ok(status));
      rn_status_free(status);
    } else if (frame.kind == RN_CONTAINER_REPLY && last.signature_count) {
      int index = (int)(frame.id >> 48 & 0xff) % last.signature_count;
      read_reply(frame.payload, &last.signatures[index], frame.id, &region);
    }
  }
  rn_arena_clear(&arena);
  return 0;
}
