// CRC-32C. See crc32c.h.
//
// A checksum is a polynomial over GF(2) modulo P, its bits in reverse: bit 31 is the coefficient of
// x^0. Appending n zero bits multiplies by x^n, which is how the sums of adjacent stretches are
// combined.
#include "base/crc32c.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u  // 0x1EDC6F41 in reverse, of RFC 3720

// Checksums of the sixteen half bytes.
static const uint32_t nibbles[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t extend_portable(uint32_t state, const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    state ^= data[i];
    state = nibbles[state & 15] ^ (state >> 4);
    state = nibbles[state & 15] ^ (state >> 4);
  }
  return state;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2,pclmul")))

static inline uint64_t word(const uint8_t* data) {
  uint64_t value;
  memcpy(&value, data, sizeof value);
  return value;
}

// |state| times |power|, which is x^(n - 33): the product of two reversed polynomials comes out one
// bit off, and the instruction that reduces it multiplies by x^32.
TARGET static inline uint64_t shifted(uint64_t state, uint32_t power) {
  __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state), _mm_cvtsi32_si128((int)power), 0);
  return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

// Three adjacent stretches of |length| bytes at once: the instruction accepts one word per cycle
// but has a latency of three. |one| and |two| move a sum over one and two stretches.
TARGET static inline uint64_t three(uint64_t state, const uint8_t* data, size_t length,
                                    uint32_t one, uint32_t two) {
  uint64_t a = state, b = 0, c = 0;
  for (size_t i = 0; i < length; i += 8) {
    a = _mm_crc32_u64(a, word(data + i));
    b = _mm_crc32_u64(b, word(data + length + i));
    c = _mm_crc32_u64(c, word(data + 2 * length + i));
  }
  return shifted(a, two) ^ shifted(b, one) ^ c;
}

TARGET static uint32_t extend_sse42(uint32_t start, const uint8_t* data, size_t size) {
  uint64_t state = start;
  for (; size >= 3 * 2048; data += 3 * 2048, size -= 3 * 2048)
    state = three(state, data, 2048, 0xa51b6135u, 0x82f89c77u);
  for (; size >= 3 * 256; data += 3 * 256, size -= 3 * 256)
    state = three(state, data, 256, 0xb9e02b86u, 0xdd7e3b0cu);
  for (; size >= 8; data += 8, size -= 8) state = _mm_crc32_u64(state, word(data));
  for (; size; ++data, --size) state = _mm_crc32_u8((uint32_t)state, *data);
  return (uint32_t)state;
}

#define WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

// x^(n + 31) and x^(n - 33), which move the halves of 16 bytes on by n bits.
#define BY_256_BYTES 0xdcb17aa4u, 0xb9e02b86u
#define BY_64_BYTES 0x740eef02u, 0x9e4addf8u
#define BY_48_BYTES 0x1c291d04u, 0xddc0152bu
#define BY_32_BYTES 0x3da6d0cbu, 0xba4fc28eu
#define BY_16_BYTES 0xf20c0dfeu, 0x493c7d27u

WIDE static inline __m512i powers(uint32_t low, uint32_t high) {
  return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

// The combined checksum of |sum|, shifted by |by|, and of |next|; 16 bytes per lane.
WIDE static inline __m512i folded(__m512i sum, __m512i by, __m512i next) {
  __m512i low = _mm512_clmulepi64_epi128(sum, by, 0x00);
  __m512i high = _mm512_clmulepi64_epi128(sum, by, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // low ^ high ^ next
}

// |lane| moved on by the powers |low| and |high|.
WIDE static inline __m128i moved(__m128i lane, uint32_t low, uint32_t high) {
  __m128i by = _mm_set_epi64x(high, low);
  return _mm_xor_si128(_mm_clmulepi64_si128(lane, by, 0x00), _mm_clmulepi64_si128(lane, by, 0x11));
}

// 256 bytes at a time, in four registers whose multiplications overlap; |size| is no less.
WIDE static uint32_t extend_wide(uint32_t start, const uint8_t* data, size_t size) {
  const __m512i far = powers(BY_256_BYTES), near = powers(BY_64_BYTES);
  __m512i a = _mm512_loadu_si512(data), b = _mm512_loadu_si512(data + 64);
  __m512i c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
  a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)start)));
  for (data += 256, size -= 256; size >= 256; data += 256, size -= 256) {
    a = folded(a, far, _mm512_loadu_si512(data));
    b = folded(b, far, _mm512_loadu_si512(data + 64));
    c = folded(c, far, _mm512_loadu_si512(data + 128));
    d = folded(d, far, _mm512_loadu_si512(data + 192));
  }
  d = folded(folded(folded(a, near, b), near, c), near, d);
  for (; size >= 64; data += 64, size -= 64) d = folded(d, near, _mm512_loadu_si512(data));
  __m128i sum = _mm512_extracti32x4_epi32(d, 3);
  sum = _mm_xor_si128(sum, moved(_mm512_extracti32x4_epi32(d, 2), BY_16_BYTES));
  sum = _mm_xor_si128(sum, moved(_mm512_extracti32x4_epi32(d, 1), BY_32_BYTES));
  sum = _mm_xor_si128(sum, moved(_mm512_castsi512_si128(d), BY_48_BYTES));
  uint64_t state = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum));
  state = _mm_crc32_u64(state, (uint64_t)_mm_extract_epi64(sum, 1));
  _mm256_zeroupper();  // not every compiler does so before a call in tail position
  return extend_sse42((uint32_t)state, data, size);
}

static bool has_sse42(void) {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
static bool has_wide(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

static uint32_t extend(uint32_t state, const uint8_t* data, size_t size) {
  if (size >= 256 && has_wide()) return extend_wide(state, data, size);
  return has_sse42() ? extend_sse42(state, data, size) : extend_portable(state, data, size);
}
#else
static uint32_t extend(uint32_t state, const uint8_t* data, size_t size) {
  return extend_portable(state, data, size);
}
#endif

uint32_t rn_crc32c(uint32_t crc, const void* data, size_t size) {
  return ~extend(~crc, (const uint8_t*)data, size);
}

static uint32_t times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
    if (a & bit) product ^= b;
    b = b & 1 ? (b >> 1) ^ POLYNOMIAL : b >> 1;
  }
  return product;
}

uint32_t rn_crc32c_combine(uint32_t a, uint32_t b, uint64_t size) {
  uint32_t power = 1u << 23;  // x^8
  for (; size; size >>= 1) {
    if (size & 1) a = times(a, power);
    power = times(power, power);
  }
  return a ^ b;
}
