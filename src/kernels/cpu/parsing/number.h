// Parses numbers as stock does, independent of the host program's locale.
#ifndef RUNNEL_KERNELS_CPU_PARSING_NUMBER_H_
#define RUNNEL_KERNELS_CPU_PARSING_NUMBER_H_

#include "tensor/tensor.h"

// The scratch state of one thread.
typedef struct rn_number_reader_t {
  rn_strbuf_t text;  // the C library needs a NUL after a number
  void* locale;
} rn_number_reader_t;

RN_MUST_USE rn_status_t rn_number_reader_init(rn_number_reader_t* reader, rn_allocator_t allocator);
void rn_number_reader_clear(rn_number_reader_t* reader);

// Parses |text|, ignoring blanks around it, into element |i| of a float, double, int32 or int64
// tensor; |*out_ok| is false if it is not such a number.
RN_MUST_USE rn_status_t rn_number_read(rn_number_reader_t* reader, rn_str_t text, rn_tensor_t* out,
                                       int64_t i, bool* out_ok);

#endif  // RUNNEL_KERNELS_CPU_PARSING_NUMBER_H_
