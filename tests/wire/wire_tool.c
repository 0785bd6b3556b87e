// wire_tool MODE MESSAGE: converts one message from stdin to stdout, for cross-checks by scripts.
//
//   b2b  binary to binary      b2s  the same with sorted maps      t2b  text to binary
//   b2t  binary to text        b2l  binary to one line             m2b  multi-line text to binary
//   list  (no MESSAGE) the rows of every table, one per line
//
// If the input is invalid, prints the reason to stderr and exits with 1.
#include <stdio.h>

#include "proto/messages.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

static void list_messages(void) {
  for (size_t i = 0; i < rn_pb_message_count; ++i) {
    const rn_pb_message_desc_t* desc = rn_pb_messages[i];
    printf("message %s\n", desc->name);
    for (size_t k = 0; k < desc->field_count; ++k) {
      const rn_pb_field_desc_t* field = &desc->fields[k];
      printf("field %s.%s %u %d %d\n", desc->name, field->name, (unsigned)field->number,
             field->type, field->flags);
    }
  }
}

static rn_status_t convert(const char* mode, const rn_pb_message_desc_t* desc, rn_str_t in,
                           rn_arena_t* arena, rn_strbuf_t* out) {
  void* message = NULL;
  rn_strbuf_t plain;
  rn_strbuf_init(&plain, arena->allocator);
  rn_status_t status = RN_OK;
  if (mode[0] == 'm') {
    status = rn_pb_text_from_multiline(in, &plain);
    in = rn_strbuf_view(&plain);
  }
  if (rn_ok(status)) {
    status = mode[0] == 'b' ? rn_pb_decode(desc, in, NULL, arena, &message)
                            : rn_pb_parse(desc, in, NULL, arena, &message);
  }
  if (rn_ok(status) && mode[2] == 't') status = rn_pb_print(desc, message, out);
  if (rn_ok(status) && mode[2] == 'l') status = rn_pb_print_short(desc, message, out);
  if (rn_ok(status) && (mode[2] == 'b' || mode[2] == 's')) {
    rn_pb_encode_options_t options = {.sort_maps = mode[2] == 's'};
    status = rn_pb_encode(desc, message, &options, out);
  }
  rn_strbuf_clear(&plain);
  return status;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "list") == 0) {
    list_messages();
    return 0;
  }
  const rn_pb_message_desc_t* desc = NULL;
  for (size_t i = 0; argc == 3 && i < rn_pb_message_count; ++i) {
    if (strcmp(rn_pb_messages[i]->name, argv[2]) == 0) desc = rn_pb_messages[i];
  }
  if (!desc || strlen(argv[1]) != 3) {
    fprintf(stderr, "usage: wire_tool MODE MESSAGE\n");
    return 2;
  }
  rn_arena_t arena;
  rn_strbuf_t in, out;
  rn_arena_init(&arena, rn_allocator_system());
  rn_strbuf_init(&in, rn_allocator_system());
  rn_strbuf_init(&out, rn_allocator_system());
  char chunk[4096];
  for (size_t size = 0; (size = fread(chunk, 1, sizeof chunk, stdin)) > 0;) {
    rn_strbuf_append_n(&in, chunk, size);
  }
  rn_status_t status = rn_strbuf_status(&in);
  if (rn_ok(status)) status = convert(argv[1], desc, rn_strbuf_view(&in), &arena, &out);
  if (rn_ok(status)) fwrite(out.data ? out.data : "", 1, out.size, stdout);
  if (!rn_ok(status)) fprintf(stderr, "%s\n", rn_status_message(status));
  int rc = !rn_ok(status);
  rn_status_free(status);
  rn_strbuf_clear(&in);
  rn_strbuf_clear(&out);
  rn_arena_clear(&arena);
  return rc;
}
