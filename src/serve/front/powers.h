// Powers of ten for converting numbers: the leading 128 bits of 10^q.
//
// 10^q = 10^(28 j) * 5^i * 2^i with i = 0 ... 27, and 5^i fits into 64 bits: 25 rows of 128 bits,
// rounded down, and 28 exact ones give every power that a double needs.
#ifndef RUNNEL_SERVE_FRONT_POWERS_H_
#define RUNNEL_SERVE_FRONT_POWERS_H_

#include <stdint.h>

#define RN_POWER_MIN (-364)
#define RN_POWER_MAX 335

typedef unsigned __int128 rn_u128_t;

// value = (bits + d) * 2^exponent with 0 <= d <= error; the top bit of |bits| is set.
typedef struct rn_power_t {
  rn_u128_t bits;
  int exponent;
  unsigned error;
} rn_power_t;

// 10^(28 j) for j = -13 ... 11: high and low half of the mantissa.
static const uint64_t rn_power_coarse_[][2] = {
    {0xe1afa13afbd14d6d, 0x82189c09a3a1ec21}, {0xe3e27a444d8d98b7, 0xfd1b1b2308169b25},
    {0xe61acf033d1a45df, 0x6fb92487298e33bd}, {0xe858ad248f5c22c9, 0xd1b3400f8f9cff68},
    {0xea9c227723ee8bcb, 0x465e15a979c1cadc}, {0xece53cec4a314ebd, 0xa4f8bf5635246428},
    {0xef340a98172aace4, 0x86fb897116c87c34}, {0xf18899b1bc3f8ca1, 0xdc44e6c3cb279ac1},
    {0xf3e2f893dec3f126, 0x5a89dba3c3efccfa}, {0xf64335bcf065d37d, 0x4d4617b5ff4a16d5},
    {0xf8a95fcf88747d94, 0x75a44c6397ce912a}, {0xfb158592be068d2e, 0xeed6e2f0f0d56712},
    {0xfd87b5f28300ca0d, 0x8bca9d6e188853fc}, {0x8000000000000000, 0x0000000000000000},
    {0x813f3978f8940984, 0x4000000000000000}, {0x82818f1281ed449f, 0xbff8f10e7a8921a4},
    {0x83c7088e1aab65db, 0x792667c6da79e0fa}, {0x850fadc09923329e, 0x03e2cf6bc604ddb0},
    {0x865b86925b9bc5c2, 0x0b8a2392ba45a9b2}, {0x87aa9aff79042286, 0x90fb44d2f05d0842},
    {0x88fcf317f22241e2, 0x441fece3bdf81f03}, {0x8a5296ffe33cc92f, 0x82bd6b70d99aaa6f},
    {0x8bab8eefb6409c1a, 0x1ad089b6c2f7548e}, {0x8d07e33455637eb2, 0xdb0b487b6423e1e8},
    {0x8e679c2f5e44ff8f, 0x570f09eaa7ea7648},
};
// 5^i for i = 0 ... 27, shifted so that the top bit is set.
static const uint64_t rn_power_fine_[] = {
    0x8000000000000000, 0xa000000000000000, 0xc800000000000000, 0xfa00000000000000,
    0x9c40000000000000, 0xc350000000000000, 0xf424000000000000, 0x9896800000000000,
    0xbebc200000000000, 0xee6b280000000000, 0x9502f90000000000, 0xba43b74000000000,
    0xe8d4a51000000000, 0x9184e72a00000000, 0xb5e620f480000000, 0xe35fa931a0000000,
    0x8e1bc9bf04000000, 0xb1a2bc2ec5000000, 0xde0b6b3a76400000, 0x8ac7230489e80000,
    0xad78ebc5ac620000, 0xd8d726b7177a8000, 0x878678326eac9000, 0xa968163f0a57b400,
    0xd3c21bcecceda100, 0x84595161401484a0, 0xa56fa5b99019a5c8, 0xcecb8f27f4200f3a,
};
// The leading 64 bits of 10^q for q = -27 ... -1, rounded down: the powers that most numbers need.
static const uint64_t rn_power_near_[] = {
    0x9e74d1b791e07e48, 0xc612062576589dda, 0xf79687aed3eec551, 0x9abe14cd44753b52,
    0xc16d9a0095928a27, 0xf1c90080baf72cb1, 0x971da05074da7bee, 0xbce5086492111aea,
    0xec1e4a7db69561a5, 0x9392ee8e921d5d07, 0xb877aa3236a4b449, 0xe69594bec44de15b,
    0x901d7cf73ab0acd9, 0xb424dc35095cd80f, 0xe12e13424bb40e13, 0x8cbccc096f5088cb,
    0xafebff0bcb24aafe, 0xdbe6fecebdedd5be, 0x89705f4136b4a597, 0xabcc77118461cefc,
    0xd6bf94d5e57a42bc, 0x8637bd05af6c69b5, 0xa7c5ac471b478423, 0xd1b71758e219652b,
    0x83126e978d4fdf3b, 0xa3d70a3d70a3d70a, 0xcccccccccccccccc,
};

// floor(log2(10^q)) for |q| < 400.
static inline int rn_power_log2(int q) { return (int)((int64_t)q * 217706 >> 16); }

// The leading 64 bits of 10^q for |q| <= RN_POWER_NEAR, rounded down.
#define RN_POWER_NEAR 27
static inline uint64_t rn_power_near(int q) {
  return q < 0 ? rn_power_near_[q + RN_POWER_NEAR] : rn_power_fine_[q];
}

// 10^q for q in RN_POWER_MIN ... RN_POWER_MAX.
static inline rn_power_t rn_power_of_ten(int q) {
  int j = (q - RN_POWER_MIN) / 28, i = (q - RN_POWER_MIN) % 28;
  uint64_t fine = rn_power_fine_[i];
  rn_u128_t low = (rn_u128_t)fine * rn_power_coarse_[j][1];
  rn_u128_t bits = (rn_u128_t)fine * rn_power_coarse_[j][0] + (uint64_t)(low >> 64);
  // Both factors have their top bits set: the product is at most one bit short.
  unsigned shift = !(bits >> 127);
  // Below 2^63 in |low|, a shift moves a known bit in.
  bits = bits << shift | (shift ? (uint64_t)low >> 63 : 0);
  return (rn_power_t){
      .bits = bits, .exponent = rn_power_log2(q) - 127, .error = q >= 0 && q < 28 ? 0 : 3};
}

#endif  // RUNNEL_SERVE_FRONT_POWERS_H_
