// Elements of string tensors, places in UTF-8 text, and blanks.
#ifndef RUNNEL_KERNELS_CPU_STRING_TEXT_H_
#define RUNNEL_KERNELS_CPU_STRING_TEXT_H_

#include "base/status.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tensor/tensor.h"
#include "tensor/tstring.h"

// Element |i| of a string tensor.
static inline rn_str_t rn_text_at(const rn_tensor_t* tensor, int64_t i) {
  return rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i]);
}

// Sets element |i| to a copy of |text|. RESOURCE_EXHAUSTED if out of memory.
RN_MUST_USE static inline rn_status_t rn_text_set(rn_tensor_t* tensor, int64_t i, rn_str_t text) {
  return rn_tstring_assign(&RN_DATA(tensor, rn_tstring_t)[i], text.data, text.size)
             ? RN_OK
             : rn_out_of_memory();
}

// Blanks of the C locale.
static inline bool rn_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The number of characters, counted by their first bytes.
static inline size_t rn_utf8_length(rn_str_t text) {
  size_t length = 0;
  for (size_t i = 0; i < text.size; ++i) length += (text.data[i] & 0xC0) != 0x80;
  return length;
}

// The offset of character |index|; the end if there are fewer.
static inline size_t rn_utf8_offset(rn_str_t text, uint64_t index) {
  uint64_t seen = 0;
  for (size_t i = 0; i < text.size; ++i)
    if ((text.data[i] & 0xC0) != 0x80 && seen++ == index) return i;
  return text.size;
}

#endif  // RUNNEL_KERNELS_CPU_STRING_TEXT_H_
