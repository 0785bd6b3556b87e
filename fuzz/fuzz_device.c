// Fuzzes the parsers of names in graphs and options: devices, types, numbers. A parsed device must
// match itself.
#include "device/device.h"
#include "fuzz/util.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rn_str_t text = rn_str_n((const char*)data, size);
  rn_device_spec_t spec;
  if (rn_device_spec_parse(text, &spec)) fuzz_check(rn_device_spec_matches(&spec, &spec));
  rn_dtype_t dtype = rn_dtype_parse(text);
  if (dtype != RN_INVALID) {
    fuzz_check(rn_dtype_is_valid(dtype));
    fuzz_check(rn_dtype_parse(rn_str(rn_dtype_name(dtype))) == dtype);
    fuzz_check(rn_dtype_parse(rn_str(rn_dtype_proto_name(dtype))) == dtype);
  }
  int64_t whole;
  double number;
  if (rn_str_to_i64(text, &whole)) fuzz_check(size > 0);
  if (rn_str_to_f64(text, &number)) fuzz_check(size > 0);
  return 0;
}
