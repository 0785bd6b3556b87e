// A CUDA part of another version, which must not be used.
#include "device/part.h"

__attribute__((visibility("default"))) const rn_device_part_t* rn_device_part(void);
const rn_device_part_t* rn_device_part(void) {
  static const rn_device_part_t part = {.version = "0.0.0", .sizes = RN_PART_SIZES, .type = "GPU"};
  return &part;
}
