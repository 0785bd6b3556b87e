// Prints values as TensorFlow does in messages and summaries.
#ifndef RUNNEL_TENSOR_PRINT_H_
#define RUNNEL_TENSOR_PRINT_H_

#include "tensor/tensor.h"

// Prints 6 digits (15 for double) if they parse to the same number, else 9 (17); "inf", "nan",
// "-nan".
void rn_print_float(rn_strbuf_t* buf, float value);
void rn_print_double(rn_strbuf_t* buf, double value);

// |text| with C escapes: \n \r \t \" \' \\, three octal digits for other bytes that do not print.
// |keep_utf8| leaves bytes from 0x80 up as they are.
void rn_print_escaped(rn_strbuf_t* buf, rn_str_t text, bool keep_utf8);

// The first |limit| elements in row-major order: "1 2 3...", "[0 1][2...]...". Types that
// TensorFlow has no text for (complex, qint32, float8_e4m3fnuz, ...) show as "?".
void rn_print_values(rn_strbuf_t* buf, const rn_tensor_t* tensor, int64_t limit);

#endif  // RUNNEL_TENSOR_PRINT_H_
