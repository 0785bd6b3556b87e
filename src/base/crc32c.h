// CRC-32C (Castagnoli): the checksum of records, tables and checkpoints.
//
// Uses the processor's instruction, three streams at a time, where there is one, and for longer
// stretches carry-less products of 64 bytes, where there are such.
#ifndef RUNNEL_BASE_CRC32C_H_
#define RUNNEL_BASE_CRC32C_H_

#include <stddef.h>
#include <stdint.h>

// The checksum of what |crc| is the checksum of, followed by |data|. Starts at 0:
// rn_crc32c(rn_crc32c(0, a), b) is that of a and b together.
uint32_t rn_crc32c(uint32_t crc, const void* data, size_t size);

// The checksum of a and b together, from those of each, where b has |size| bytes: so that several
// threads can share the work.
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
