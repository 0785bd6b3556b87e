// CRC-32C, which guards records in files.
#ifndef TENSORFLOW_CORE_LIB_HASH_CRC32C_H_
#define TENSORFLOW_CORE_LIB_HASH_CRC32C_H_

#include <array>
#include <cstddef>

#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace crc32c {
namespace internal {
inline const std::array<uint32, 256>& Table() {
  static const std::array<uint32, 256> table = [] {
    std::array<uint32, 256> made;
    for (uint32 i = 0; i < 256; ++i) {
      uint32 rest = i;
      for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? 0x82f63b78u : 0u);
      made[i] = rest;
    }
    return made;
  }();
  return table;
}
}  // namespace internal

// The checksum of a text whose beginning has the checksum |crc|, followed by |data|.
inline uint32 Extend(uint32 crc, const char* data, size_t size) {
  crc = ~crc;
  for (size_t i = 0; i < size; ++i)
    crc = internal::Table()[(crc ^ static_cast<unsigned char>(data[i])) & 0xff] ^ (crc >> 8);
  return ~crc;
}
inline uint32 Value(const char* data, size_t size) { return Extend(0, data, size); }

// A checksum as files store it: checksums of texts that hold checksums are weak.
inline uint32 Mask(uint32 crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32 Unmask(uint32 masked) {
  uint32 turned = masked - 0xa282ead8u;
  return (turned >> 17) | (turned << 15);
}

}  // namespace crc32c
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_LIB_HASH_CRC32C_H_
