// Any text, as any message: the first byte picks the type, its top bit the multi-line form. What is
// accepted must print to text that parses and prints the same.
#include "proto/messages.pb.h"
#include "wire/text.h"

static void must(rn_status_t status) {
  if (!rn_ok(status)) __builtin_trap();
}

static void again(const rn_pb_message_desc_t* desc, void* message, rn_arena_t* arena) {
  rn_strbuf_t first, second;
  rn_strbuf_init(&first, rn_allocator_system());
  rn_strbuf_init(&second, rn_allocator_system());
  must(rn_pb_print(desc, message, &first));
  must(rn_pb_parse(desc, rn_strbuf_view(&first), NULL, arena, &message));
  must(rn_pb_print(desc, message, &second));
  if (!rn_str_eq(rn_strbuf_view(&first), rn_strbuf_view(&second))) __builtin_trap();
  rn_strbuf_clear(&first);
  rn_strbuf_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const rn_pb_message_desc_t* desc = rn_pb_messages[(data[0] & 0x7f) % rn_pb_message_count];
  rn_str_t text = rn_str_n((const char*)data + 1, size - 1);
  rn_arena_t arena;
  rn_strbuf_t plain;
  rn_arena_init(&arena, rn_allocator_system());
  rn_strbuf_init(&plain, rn_allocator_system());
  rn_status_t status = RN_OK;
  if (data[0] & 0x80) {
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
