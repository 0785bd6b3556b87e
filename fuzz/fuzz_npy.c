// Fuzzes inputs of the command. The first byte selects an .npy file, which, if accepted, must be
// written and read again as the same array, or a value of the command line.
#include "cli/npy.h"
#include "cli/value.h"
#include "fuzz/util.h"

static rn_strbuf_t written(const rn_tensor_t* tensor, bool* out_ok) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  rn_status_t status = rn_npy_write(tensor, &bytes);
  *out_ok = rn_ok(status);  // some strings cannot be written
  rn_status_free(status);
  return bytes;
}

static void write_and_read(const rn_tensor_t* tensor) {
  bool is_written = false;
  rn_strbuf_t once = written(tensor, &is_written);
  if (is_written) {
    rn_tensor_t back;
    fuzz_must(rn_npy_read(rn_strbuf_view(&once), rn_allocator_system(), &back));
    fuzz_check(rn_tensor_same_shape(tensor, &back));
    rn_strbuf_t twice = written(&back, &is_written);
    fuzz_check(is_written && rn_str_eq(rn_strbuf_view(&once), rn_strbuf_view(&twice)));
    rn_strbuf_clear(&twice);
    rn_tensor_clear(&back);
  }
  rn_strbuf_clear(&once);
}

static void show(const rn_tensor_t* tensor) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_cli_show(&text, tensor);
  fuzz_must(rn_strbuf_status(&text));
  rn_strbuf_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  rn_env_t env = fuzz_env();
  rn_cli_t cli = {.env = &env, .allocator = rn_allocator_system()};
  rn_str_t bytes = rn_str_n((const char*)data + 1, size - 1);
  rn_tensor_t tensor;
  rn_status_t status = data[0] & 1
                           ? rn_cli_value(&cli, bytes, (data[0] >> 1) % RN_DTYPE_COUNT, &tensor)
                           : rn_npy_read(bytes, rn_allocator_system(), &tensor);
  if (rn_ok(status)) {
    write_and_read(&tensor);
    show(&tensor);
    rn_tensor_clear(&tensor);
  }
  rn_status_free(status);
  return 0;
}
