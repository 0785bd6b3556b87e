// CRC-32C (Castagnoli): the checksum of records, tables and checkpoints.
//
// Uses the CPU's CRC instruction on three streams at a time and, for longer data, carry-less
// multiplication of 64 bytes, where the CPU has them.
#ifndef RUNNEL_BASE_CRC32C_H_
#define RUNNEL_BASE_CRC32C_H_

#include <stddef.h>
#include <stdint.h>

// Extends the checksum |crc| by |data|. Starts at 0: rn_crc32c(rn_crc32c(0, a), b) is the checksum
// of a followed by b.
uint32_t rn_crc32c(uint32_t crc, const void* data, size_t size);

// The checksum of a followed by b, from those of each; b has |size| bytes. Lets several threads
// share the work.
uint32_t rn_crc32c_combine(uint32_t a, uint32_t b, uint64_t size);

// Files hold checksums masked, because the checksum of bytes that contain their own checksum is
// constant.
static inline uint32_t rn_crc32c_mask(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
static inline uint32_t rn_crc32c_unmask(uint32_t masked) {
  uint32_t turned = masked - 0xa282ead8u;
  return (turned >> 17) | (turned << 15);
}

#endif  // RUNNEL_BASE_CRC32C_H_
