// Fuzzes the text format with any message type: the first four bytes select the type, the next one
// the form with multi-line strings. An accepted message must print to text that parses and prints
// the same.
#include "fuzz/messages.h"
#include "wire/text.h"

static void again(const rn_pb_message_desc_t* desc, void* message, rn_arena_t* arena) {
  rn_strbuf_t first, second;
  rn_strbuf_init(&first, rn_allocator_system());
  rn_strbuf_init(&second, rn_allocator_system());
  fuzz_must(rn_pb_print(desc, message, &first));
  fuzz_must(rn_pb_parse(desc, rn_strbuf_view(&first), NULL, arena, &message));
  fuzz_must(rn_pb_print(desc, message, &second));
  fuzz_check(rn_str_eq(rn_strbuf_view(&first), rn_strbuf_view(&second)));
  rn_strbuf_clear(&first);
  rn_strbuf_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_bytes_t bytes = {data, size};
  const rn_pb_message_desc_t* desc = fuzz_message(&bytes);
  bool is_multiline = fuzz_byte(&bytes) & 1;
  rn_str_t text = fuzz_take(&bytes, size);
  rn_arena_t arena;
  rn_strbuf_t plain;
  rn_arena_init(&arena, rn_allocator_system());
  rn_strbuf_init(&plain, rn_allocator_system());
  rn_status_t status = RN_OK;
  if (is_multiline) {
    status = rn_pb_text_from_multiline(text, &plain);
    text = rn_strbuf_view(&plain);
  }
  void* message = NULL;
  if (rn_ok(status)) status = rn_pb_parse(desc, text, NULL, &arena, &message);
  if (rn_ok(status)) again(desc, message, &arena);
  rn_status_free(status);
  rn_strbuf_clear(&plain);
  rn_arena_clear(&arena);
  return 0;
}
