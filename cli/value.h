// Values on the command line and on the screen.
#ifndef RUNNEL_CLI_VALUE_H_
#define RUNNEL_CLI_VALUE_H_

#include "cli/cli.h"
#include "tensor/tensor.h"

// Parses |text| into a tensor:
//   @file.npy                     a file of NumPy's
//   1.5  true  "text"  1+2j       a scalar; in strings \n \t \" \\ \xHH are escapes
//   [1,2,3]  [[1,2],[3,4]]  []    an array
// All but a file may be followed by a type, as in ":int32". Without one the type is |wanted|, or,
// if that is RN_INVALID, follows from the elements: string, bool, int32 (int64 for large ones) or
// float. INVALID_ARGUMENT says what could not be read.
RN_MUST_USE rn_status_t rn_cli_value(const rn_cli_t* cli, rn_str_t text, rn_dtype_t wanted,
                                     rn_tensor_t* out);

// Appends the elements the way NumPy prints an array: aligned, at most eight digits after the
// point, long arrays with their middle left out. Ends with a newline.
void rn_cli_show(rn_strbuf_t* buf, const rn_tensor_t* tensor);

// Element |i| as a double: of floats, int32, int64 or uint8; 0 for other types.
double rn_cli_number_at(const rn_tensor_t* tensor, int64_t i);

#endif  // RUNNEL_CLI_VALUE_H_
