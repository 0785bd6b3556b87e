// Hashes, each written here from its published definition: FarmHash (Pike, 2014), MurmurHash64A
// (Appleby, 2008) and SipHash-2-4 (Aumasson and Bernstein, 2012). No packaged C library has the
// first in the form that TensorFlow's buckets are defined by. See hash.h.
#include "base/hash.h"

#include <endian.h>
#include <string.h>

static inline uint64_t load64(const char* p) {
  uint64_t value;
  memcpy(&value, p, sizeof value);
  return le64toh(value);
}

static inline uint64_t load32(const char* p) {
  uint32_t value;
  memcpy(&value, p, sizeof value);
  return le32toh(value);
}

static inline uint64_t rotate_right(uint64_t value, int by) {
  return value >> by | value << (64 - by);
}

// FarmHash.
#define FARM_A UINT64_C(0xc3a5c85c97cb3127)
#define FARM_B UINT64_C(0xb492b66fbe98f273)
#define FARM_C UINT64_C(0x9ae16a3b2f90404f)

static inline uint64_t shift_mix(uint64_t value) { return value ^ value >> 47; }

static inline uint64_t fold(uint64_t u, uint64_t v, uint64_t factor) {
  uint64_t a = shift_mix((u ^ v) * factor);
  return shift_mix((v ^ a) * factor) * factor;
}

typedef struct hash_pair_t {
  uint64_t first, second;
} hash_pair_t;

static inline hash_pair_t mix32(const char* s, uint64_t a, uint64_t b) {
  uint64_t w = load64(s), x = load64(s + 8), y = load64(s + 16), z = load64(s + 24);
  a += w;
  b = rotate_right(b + a + z, 21);
  uint64_t c = a;
  a += x + y;
  b += rotate_right(a, 44);
  return (hash_pair_t){a + z, b + c};
}

static uint64_t farm_to_16(const char* s, size_t n) {
  uint64_t factor = FARM_C + n * 2;
  if (n >= 8) {
    uint64_t a = load64(s) + FARM_C, b = load64(s + n - 8);
    return fold(rotate_right(b, 37) * factor + a, (rotate_right(a, 25) + b) * factor, factor);
  }
  if (n >= 4) return fold(n + (load32(s) << 3), load32(s + n - 4), factor);
  if (n == 0) return FARM_C;
  uint32_t low = (uint32_t)(uint8_t)s[0] + ((uint32_t)(uint8_t)s[n >> 1] << 8);
  uint32_t high = (uint32_t)n + ((uint32_t)(uint8_t)s[n - 1] << 2);
  return shift_mix(low * FARM_C ^ high * FARM_A) * FARM_C;
}

static uint64_t farm_to_32(const char* s, size_t n) {
  uint64_t factor = FARM_C + n * 2;
  uint64_t a = load64(s) * FARM_B, b = load64(s + 8);
  uint64_t c = load64(s + n - 8) * factor, d = load64(s + n - 16) * FARM_C;
  return fold(rotate_right(a + b, 43) + rotate_right(c, 30) + d,
              a + rotate_right(b + FARM_C, 18) + c, factor);
}

static uint64_t farm_to_64(const char* s, size_t n) {
  uint64_t factor = FARM_C + n * 2;
  uint64_t a = load64(s) * FARM_C, b = load64(s + 8);
  uint64_t c = load64(s + n - 8) * factor, d = load64(s + n - 16) * FARM_C;
  uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
  uint64_t z = fold(y, a + rotate_right(b + FARM_C, 18) + c, factor);
  uint64_t e = load64(s + 16) * factor, f = load64(s + 24);
  uint64_t g = (y + load64(s + n - 32)) * factor, h = (z + load64(s + n - 24)) * factor;
  return fold(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g,
              factor);
}

typedef struct farm_t {
  uint64_t x, y, z;
  hash_pair_t v, w;
} farm_t;

static inline void farm_block(farm_t* h, const char* s, uint64_t factor, uint64_t weight) {
  h->x = rotate_right(h->x + h->y + h->v.first + load64(s + 8), 37) * factor;
  h->y = rotate_right(h->y + h->v.second + load64(s + 48), 42) * factor;
  h->x ^= h->w.second * weight;
  h->y += h->v.first * weight + load64(s + 40);
  h->z = rotate_right(h->z + h->w.first, 33) * factor;
  h->v = mix32(s, h->v.second * factor, h->x + h->w.first);
  h->w = mix32(s + 32, h->z + h->w.second, h->y + load64(s + 16));
  uint64_t z = h->z;
  h->z = h->x;
  h->x = z;
}

uint64_t rn_farm_fingerprint64(rn_str_t text) {
  const char* s = text.data;
  size_t n = text.size;
  if (n <= 16) return farm_to_16(s, n);
  if (n <= 32) return farm_to_32(s, n);
  if (n <= 64) return farm_to_64(s, n);
  farm_t h = {.x = 81, .y = 81 * FARM_B + 113};
  h.z = shift_mix(h.y * FARM_C + 113) * FARM_C;
  h.x = h.x * FARM_C + load64(s);
  const char* end = s + (n - 1) / 64 * 64;
  for (; s != end; s += 64) farm_block(&h, s, FARM_B, 1);
  // The last 64 bytes, some of them for the second time.
  uint64_t factor = FARM_B + ((h.z & 0xff) << 1);
  h.w.first += (n - 1) & 63;
  h.v.first += h.w.first;
  h.w.first += h.v.first;
  farm_block(&h, text.data + n - 64, factor, 9);
  return fold(fold(h.v.first, h.w.first, factor) + shift_mix(h.y) * FARM_A + h.z,
              fold(h.v.second, h.w.second, factor) + h.x, factor);
}

// The 128 bits are CityHash's, whose short strings are those above.
#define CITY_FACTOR UINT64_C(0x9ddfea08eb382d69)

static hash_pair_t city_murmur(const char* s, size_t n, hash_pair_t seed) {
  uint64_t a = seed.first, b = seed.second, c, d;
  if (n <= 16) {
    a = shift_mix(a * FARM_B) * FARM_B;
    c = b * FARM_B + farm_to_16(s, n);
    d = shift_mix(a + (n >= 8 ? load64(s) : c));
  } else {
    c = fold(load64(s + n - 8) + FARM_B, a, CITY_FACTOR);
    d = fold(b + n, c + load64(s + n - 16), CITY_FACTOR);
    a += d;
    for (const char* end = s + (n - 1) / 16 * 16; s != end; s += 16) {
      a = (a ^ shift_mix(load64(s) * FARM_B) * FARM_B) * FARM_B;
      b ^= a;
      c = (c ^ shift_mix(load64(s + 8) * FARM_B) * FARM_B) * FARM_B;
      d ^= c;
    }
  }
  a = fold(a, c, CITY_FACTOR);
  b = fold(d, b, CITY_FACTOR);
  return (hash_pair_t){a ^ b, fold(b, a, CITY_FACTOR)};
}

static hash_pair_t city_long(const char* s, size_t n, hash_pair_t seed) {
  farm_t h = {.x = seed.first, .y = seed.second, .z = n * FARM_B};
  h.v.first = rotate_right(h.y ^ FARM_B, 49) * FARM_B + load64(s);
  h.v.second = rotate_right(h.v.first, 42) * FARM_B + load64(s + 8);
  h.w.first = rotate_right(h.y + h.z, 35) * FARM_B + h.x;
  h.w.second = rotate_right(h.x + load64(s + 88), 53) * FARM_B;
  for (; n >= 128; n -= 128, s += 128) {
    farm_block(&h, s, FARM_B, 1);
    farm_block(&h, s + 64, FARM_B, 1);
  }
  h.x += rotate_right(h.v.first + h.z, 49) * FARM_A;
  h.y = h.y * FARM_A + rotate_right(h.w.second, 37);
  h.z = h.z * FARM_A + rotate_right(h.w.first, 27);
  h.w.first *= 9;
  h.v.first *= FARM_A;
  // The rest from its end, 32 bytes at a time; the last of them may begin before it.
  const char* end = s + n;
  for (size_t done = 0; done < n; done += 32) {
    const char* at = end - done - 32;
    h.y = rotate_right(h.x + h.y, 42) * FARM_A + h.v.second;
    h.w.first += load64(at + 16);
    h.x = h.x * FARM_A + h.w.first;
    h.z += h.w.second + load64(at);
    h.w.second += h.v.first;
    h.v = mix32(at, h.v.first + h.z, h.v.second);
    h.v.first *= FARM_A;
  }
  uint64_t x = fold(h.x, h.v.first, CITY_FACTOR), y = fold(h.y + h.z, h.w.first, CITY_FACTOR);
  return (hash_pair_t){fold(x + h.v.second, h.w.second, CITY_FACTOR) + y,
                       fold(x + h.w.second, y + h.v.second, CITY_FACTOR)};
}

void rn_farm_fingerprint128(rn_str_t text, uint64_t out[2]) {
  hash_pair_t seed = {FARM_A, FARM_B};
  const char* s = text.data;
  size_t n = text.size;
  if (n >= 16) {
    seed = (hash_pair_t){load64(s), load64(s + 8) + FARM_A};
    s += 16;
    n -= 16;
  }
  hash_pair_t hash = n < 128 ? city_murmur(s, n, seed) : city_long(s, n, seed);
  out[0] = hash.first;
  out[1] = hash.second;
}

uint64_t rn_murmur_hash64(rn_str_t text, uint64_t seed) {
  const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
  const char* s = text.data;
  size_t n = text.size;
  uint64_t h = seed ^ n * factor;
  for (; n >= 8; n -= 8, s += 8) {
    uint64_t k = load64(s) * factor;
    k = (k ^ k >> 47) * factor;
    h = (h ^ k) * factor;
  }
  if (n) {
    for (size_t i = 0; i < n; ++i) h ^= (uint64_t)(uint8_t)s[i] << (8 * i);
    h *= factor;
  }
  h = (h ^ h >> 47) * factor;
  return h ^ h >> 47;
}

// SipHash.
static inline uint64_t rotate_left(uint64_t value, int by) {
  return value << by | value >> (64 - by);
}

static inline void sip_rounds(uint64_t v[4], int rounds) {
  while (rounds-- > 0) {
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
  }
}

uint64_t rn_sip_hash64(rn_str_t text, const uint64_t key[2]) {
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                   key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
  const char* s = text.data;
  size_t n = text.size;
  for (; n >= 8; n -= 8, s += 8) {
    uint64_t word = load64(s);
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
  }
  uint64_t last = (uint64_t)text.size << 56;
  for (size_t i = 0; i < n; ++i) last |= (uint64_t)(uint8_t)s[i] << (8 * i);
  v[3] ^= last;
  sip_rounds(v, 2);
  v[0] ^= last;
  v[2] ^= 0xff;
  sip_rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t rn_fingerprint_cat64(uint64_t a, uint64_t b) {
  const uint64_t multiplier = UINT64_C(0xc6a4a7935bd1e995);
  uint64_t result = (a ^ multiplier ^ shift_mix(b * multiplier) * multiplier) * multiplier;
  return shift_mix(shift_mix(result) * multiplier);
}
