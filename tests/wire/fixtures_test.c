// Messages written by stock protobuf (cross_check.py --record): decoding and encoding gives the
// same bytes, from binary and from text.
#include <stdio.h>

#include "proto/messages.pb.h"
#include "util.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

static void load(const char* name, const char* suffix, rn_strbuf_t* buf) {
  char path[1024], chunk[4096];
  snprintf(path, sizeof path, "%s/%s%s", RN_FIXTURES, name, suffix);
  FILE* in = fopen(path, "rb");
  cr_assert_not_null(in, "%s", path);
  rn_strbuf_init(buf, rn_allocator_system());
  for (size_t size = 0; (size = fread(chunk, 1, sizeof chunk, in)) > 0;) {
    rn_strbuf_append_n(buf, chunk, size);
  }
  fclose(in);
}

static void check(const char* name) {
  const rn_pb_message_desc_t* desc = NULL;
  for (size_t i = 0; i < rn_pb_message_count; ++i) {
    const char* dot = strrchr(rn_pb_messages[i]->name, '.');
    if (strcmp(dot + 1, name) == 0) desc = rn_pb_messages[i];
  }
  cr_assert_not_null(desc, "%s", name);
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  rn_strbuf_t binary, text, out[3];
  load(name, ".pb", &binary);
  load(name, ".txt", &text);
  for (int i = 0; i < 3; ++i) rn_strbuf_init(&out[i], rn_allocator_system());
  const rn_pb_encode_options_t sorted = {.sort_maps = true};
  void* message = NULL;
  OK(rn_pb_decode(desc, rn_strbuf_view(&binary), NULL, &arena, &message));
  OK(rn_pb_encode(desc, message, NULL, &out[0]));
  cr_assert_eq(out[0].size, binary.size, "%s", name);
  cr_assert_arr_eq(out[0].data, binary.data, binary.size, "%s", name);
  OK(rn_pb_encode(desc, message, &sorted, &out[1]));
  cr_assert_eq(out[1].size, binary.size, "%s", name);
  OK(rn_pb_parse(desc, rn_strbuf_view(&text), NULL, &arena, &message));
  OK(rn_pb_encode(desc, message, &sorted, &out[2]));
  cr_assert_eq(out[2].size, binary.size, "%s", name);
  cr_assert_arr_eq(out[2].data, out[1].data, binary.size, "%s", name);
  for (int i = 0; i < 3; ++i) rn_strbuf_clear(&out[i]);
  rn_strbuf_clear(&binary);
  rn_strbuf_clear(&text);
  rn_arena_clear(&arena);
}

Test(fixtures, come_back_as_they_were) {
  static const char* const names[] = {
      "GraphDef",  "AttrValue",      "TensorProto",     "OpDef",       "FunctionDef",
      "KernelDef", "ConfigProto",    "RunOptions",      "RunMetadata", "ApiDef",
      "ServerDef", "GraphDebugInfo", "DeviceAttributes"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) check(names[i]);
}
