// See scan.h.
#include "wire/scan.h"

rn_str_t rn_field_bytes(rn_str_t message, uint32_t number) {
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  rn_str_t found = RN_STR("");
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == number && field.wire == RN_PB_WIRE_LENGTH) found = field.bytes;
  return found;
}

uint64_t rn_field_value(rn_str_t message, uint32_t number) {
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  uint64_t found = 0;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == number && field.wire != RN_PB_WIRE_LENGTH) found = field.value;
  return found;
}
