// The hashes that TensorFlow's files, keys and ops are defined by.
#ifndef RUNNEL_BASE_HASH_H_
#define RUNNEL_BASE_HASH_H_

#include "base/str.h"

uint64_t rn_farm_fingerprint64(rn_str_t text);                 // FarmHash's Fingerprint64
void rn_farm_fingerprint128(rn_str_t text, uint64_t out[2]);   // its Fingerprint128, low half first
uint64_t rn_fingerprint_cat64(uint64_t a, uint64_t b);         // TensorFlow's FingerprintCat64
uint64_t rn_murmur_hash64(rn_str_t text, uint64_t seed);       // MurmurHash64A
uint64_t rn_sip_hash64(rn_str_t text, const uint64_t key[2]);  // SipHash-2-4

#define RN_HASH64_SEED UINT64_C(0xDECAFCAFFE)  // of TensorFlow's Hash64

#endif  // RUNNEL_BASE_HASH_H_
