// String elements: TensorFlow's 24-byte TString, whose layout clients read and write inline.
//
// The two low bits of the first byte give the form: 0 SMALL (size << 2 in the first byte, up to 22
// bytes and a NUL inline), 1 LARGE ({size << 2 | 1, capacity, pointer from malloc}), 2 OFFSET ({u32
// size << 2 | 2, u32 offset from the struct's own address, u32 count}), 3 VIEW ({size << 2 | 3,
// pointer}). We write SMALL and LARGE only, and read all four. The bytes of LARGE belong to libc's
// heap, because clients free them inline.
#ifndef RUNNEL_TENSOR_TSTRING_H_
#define RUNNEL_TENSOR_TSTRING_H_

#include "base/str.h"

typedef union rn_tstring_t {
  uint8_t small[24];
  struct {
    uint64_t size, capacity;
    char* data;
  } large;
  struct {
    uint32_t size, offset, count;
  } offset;
  struct {
    uint64_t size;
    const char* data;
    uint64_t unused;
  } view;
} rn_tstring_t;
_Static_assert(sizeof(rn_tstring_t) == 24, "TF_TString is 24 bytes");

void rn_tstring_init(rn_tstring_t* str);  // empty
// Frees a LARGE string's bytes; leaves an empty string.
void rn_tstring_clear(rn_tstring_t* str);
// Replaces the content by a copy; false if memory is short (the string is then unchanged).
bool rn_tstring_assign(rn_tstring_t* str, const char* data, size_t size);
// Resizes to |size| bytes, to be written through the returned pointer; NULL if memory is short.
char* rn_tstring_resize(rn_tstring_t* str, size_t size);
// The bytes, borrowed from |str|. An OFFSET string is read relative to |str| itself: it must not
// have been moved.
rn_str_t rn_tstring_view(const rn_tstring_t* str);
// The number of bytes, without reading where they are.
static inline size_t rn_tstring_size(const rn_tstring_t* str) {
  const uint32_t form = str->small[0] & 3;
  return form == 0 ? str->small[0] >> 2 : form == 2 ? str->offset.size >> 2 : str->large.size >> 2;
}

#endif  // RUNNEL_TENSOR_TSTRING_H_
