// CRC-32C: known values, every length, checksums of concatenated parts, and each implementation.
// Includes the source file to reach the implementations that this processor does not select.
#include "base/crc32c.c"

#include <criterion/criterion.h>
#include <stdlib.h>

// Bit by bit: the definition.
static uint32_t slow(const uint8_t* data, size_t size) {
  uint32_t state = 0xffffffffu;
  for (size_t i = 0; i < size; ++i) {
    state ^= data[i];
    for (int bit = 0; bit < 8; ++bit) state = state & 1 ? (state >> 1) ^ 0x82f63b78u : state >> 1;
  }
  return ~state;
}

// RFC 3720, B.4.
Test(crc32c, known_answers) {
  uint8_t data[32] = {0};
  cr_assert_eq(rn_crc32c(0, data, 32), 0x8a9136aau);
  for (int i = 0; i < 32; ++i) data[i] = 0xff;
  cr_assert_eq(rn_crc32c(0, data, 32), 0x62a8ab43u);
  for (int i = 0; i < 32; ++i) data[i] = (uint8_t)i;
  cr_assert_eq(rn_crc32c(0, data, 32), 0x46dd794eu);
  for (int i = 0; i < 32; ++i) data[i] = (uint8_t)(31 - i);
  cr_assert_eq(rn_crc32c(0, data, 32), 0x113fdb5cu);
  cr_assert_eq(rn_crc32c(0, "123456789", 9), 0xe3069283u);
  cr_assert_eq(rn_crc32c(7, NULL, 0), 7u);
}

enum { SIZE = 14000 };

static uint8_t* some_bytes(void) {
  uint8_t* data = malloc(SIZE);
  uint32_t seed = 1;
  for (int i = 0; i < SIZE; ++i) data[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
  return data;
}

Test(crc32c, ways) {
  uint8_t* data = some_bytes();
  for (size_t size = 0; size < SIZE; size += size < 2000 ? 1 : 997) {
    uint32_t sum = slow(data, size);
    cr_assert_eq(~extend_portable(~0u, data, size), sum, "%zu bytes", size);
#if defined(__x86_64__)
    if (has_sse42()) cr_assert_eq(~extend_sse42(~0u, data, size), sum, "%zu bytes", size);
    if (has_wide() && size >= 256)
      cr_assert_eq(~extend_wide(~0u, data, size), sum, "%zu bytes", size);
#endif
  }
  free(data);
}

Test(crc32c, lengths_and_parts) {
  uint8_t* data = some_bytes();
  for (size_t size = 0; size < SIZE; size += size < 2000 ? 1 : 997) {
    uint32_t whole = slow(data, size);
    cr_assert_eq(rn_crc32c(0, data, size), whole, "%zu bytes", size);
    for (size_t cut = 0; cut <= size; cut += 1 + size / 3) {
      uint32_t a = rn_crc32c(0, data, cut), b = rn_crc32c(0, data + cut, size - cut);
      cr_assert_eq(rn_crc32c(a, data + cut, size - cut), whole, "%zu of %zu", cut, size);
      cr_assert_eq(rn_crc32c_combine(a, b, size - cut), whole, "%zu of %zu", cut, size);
    }
  }
  free(data);
}

Test(crc32c, mask) {
  uint32_t crc = rn_crc32c(0, "foo", 3);
  cr_assert_neq(rn_crc32c_mask(crc), crc);
  cr_assert_eq(rn_crc32c_unmask(rn_crc32c_mask(crc)), crc);
  cr_assert_eq(rn_crc32c_mask(0xcfc4ae1du), 0xfebe8a61u);
}
