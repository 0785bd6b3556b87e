// Values as text, the way TensorFlow prints them in messages and summaries.
#ifndef RUNNEL_TENSOR_PRINT_H_
#define RUNNEL_TENSOR_PRINT_H_

#include "tensor/tensor.h"

// The fewer of 6 or 9 (15 or 17) digits that read back as the same number; "inf", "nan", "-nan".
void rn_print_float(rn_strbuf_t* buf, float value);
void rn_print_double(rn_strbuf_t* buf, double value);

// |text| with C escapes: \n \r \t \" \' \\, three octal digits for other bytes that do not print.
// |keep_utf8| leaves bytes from 0x80 up as they are.
void rn_print_escaped(rn_strbuf_t* buf, rn_str_t text, bool keep_utf8);

// The first |limit| elements in row-major order: "1 2 3...", "[0 1][2...]...". Types that
// TensorFlow has no text for (complex, qint32, float8_e4m3fnuz, ...) show as "?".
void rn_print_values(rn_strbuf_t* buf, const rn_tensor_t* tensor, int64_t limit);

#endif  // RUNNEL_TENSOR_PRINT_H_
