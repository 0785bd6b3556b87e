// Snappy's raw format: a varint with the size, then elements that start with a tag.
//
//   tag & 3 = 0  literal of (tag >> 2) + 1 bytes; 60 … 63: the size - 1 follows in 1 … 4 bytes
//             1  copy of 4 + (tag >> 2 & 7) bytes from (tag >> 5) << 8 | next byte back
//             2  copy of (tag >> 2) + 1 bytes from the next two bytes back
//             3  the same with four bytes
#include "io/snappy.h"

#include "wire/scan.h"

bool rn_snappy_size(rn_str_t input, uint64_t* out_size) {
  rn_pb_scan_t scan = rn_pb_scan(input);
  return rn_pb_scan_varint(&scan, out_size) && *out_size <= UINT32_MAX;
}

// A little-endian number of |bytes| bytes.
static bool number(rn_pb_scan_t* scan, size_t bytes, size_t* out) {
  uint64_t value = 0;
  if (!rn_pb_scan_fixed(scan, bytes, &value)) return false;
  *out = (size_t)value;
  return true;
}

static bool literal(rn_pb_scan_t* scan, size_t tag, char* out, size_t room, size_t* out_length) {
  size_t length = tag >> 2;
  if (length >= 60 && !number(scan, length - 59, &length)) return false;
  length += 1;
  if (length > room || length > (size_t)(scan->end - scan->next)) return false;
  memcpy(out, scan->next, length);
  scan->next += length;
  *out_length = length;
  return true;
}

// Copies may overlap what they write: byte by byte.
static bool copy(rn_pb_scan_t* scan, size_t tag, char* out, size_t done, size_t room,
                 size_t* out_length) {
  size_t length = (tag >> 2) + 1, back = 0;
  if (!number(scan, (size_t)1 << ((tag & 3) - 1), &back)) return false;
  if ((tag & 3) == 1) {
    length = 4 + (tag >> 2 & 7);
    back |= tag >> 5 << 8;
  }
  if (back == 0 || back > done || length > room) return false;
  const char* from = out - back;
  for (size_t i = 0; i < length; ++i) out[i] = from[i];
  *out_length = length;
  return true;
}

bool rn_snappy_unfold(rn_str_t input, char* out, size_t size) {
  rn_pb_scan_t scan = rn_pb_scan(input);
  uint64_t said = 0;
  if (!rn_pb_scan_varint(&scan, &said) || said != size) return false;
  size_t done = 0, length = 0;
  while (scan.next < scan.end) {
    size_t tag = (uint8_t)*scan.next++;
    bool is_good = (tag & 3) == 0 ? literal(&scan, tag, out + done, size - done, &length)
                                  : copy(&scan, tag, out + done, done, size - done, &length);
    if (!is_good) return false;
    done += length;
  }
  return done == size;
}
