// Tensors as JSON, for json_oracle_test.py: reads one from the standard input, writes the other.
//
//   serve_json_tool read TYPE     JSON list -> bytes of the elements
//   serve_json_tool write TYPE    bytes of the elements -> JSON list
#include <stdio.h>
#include <stdlib.h>

#include "serve/front/json.h"

static void check(rn_status_t status) {
  if (rn_ok(status)) return;
  fprintf(stderr, "%s\n", rn_status_message(status));
  exit(1);
}

static void read_all(rn_strbuf_t* out) {
  char block[65536];
  for (size_t size; (size = fread(block, 1, sizeof block, stdin)) > 0;)
    rn_strbuf_append_n(out, block, size);
  check(rn_strbuf_status(out));
}

int main(int argc, char** argv) {
  rn_dtype_t dtype = argc == 3 ? rn_dtype_parse(rn_str(argv[2])) : RN_INVALID;
  if (!rn_json_has_dtype(dtype)) return 2;
  rn_allocator_t allocator = rn_allocator_system();
  rn_strbuf_t in, out;
  rn_strbuf_init(&in, allocator);
  rn_strbuf_init(&out, allocator);
  read_all(&in);
  rn_tensor_t tensor;
  if (rn_str_is(rn_str(argv[1]), "read")) {
    rn_arena_t arena;
    rn_arena_init(&arena, allocator);
    rn_json_reader_t json = rn_json_reader(rn_strbuf_view(&in), &arena);
    check(rn_json_tensor(&json, dtype, allocator, &tensor));
    fwrite(tensor.data, 1, rn_tensor_bytes(&tensor), stdout);
    rn_arena_clear(&arena);
  } else {
    int64_t count = (int64_t)(in.size / rn_dtype_size(dtype));
    check(rn_tensor_create(allocator, dtype, (rn_shape_t){1, &count}, &tensor));
    if (in.size) memcpy(tensor.data, in.data, rn_tensor_bytes(&tensor));
    check(rn_json_put_tensor(&out, &tensor, false));
    fwrite(out.data, 1, out.size, stdout);
  }
  rn_tensor_clear(&tensor);
  rn_strbuf_clear(&in);
  rn_strbuf_clear(&out);
  return 0;
}
