// NumPy's .npy files: one array each.
//
//   bytes 0-5   "\x93NUMPY"
//   6, 7        version: 1.0, 2.0 or 3.0
//   8 …         length of the header, little-endian: 2 bytes in version 1, 4 in 2 and 3
//   header      a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, padded
//               with spaces and ended by a newline so that the data starts at a multiple of 64
//   data        the elements in row-major order
//
// Read: booleans, integers, floats of 2, 4 and 8 bytes and complex numbers in either byte order;
// 'V2', which is how NumPy stores a bfloat16; 'S' and 'U' strings. Written: version 1.0,
// little-endian; quantised types as the integers they are stored as, strings as 'S'.
#ifndef RUNNEL_CLI_NPY_H_
#define RUNNEL_CLI_NPY_H_

#include "base/str.h"
#include "tensor/tensor.h"

// A new tensor with the array in |bytes|. INVALID_ARGUMENT, with the reason, for anything else.
RN_MUST_USE rn_status_t rn_npy_read(rn_str_t bytes, rn_allocator_t allocator, rn_tensor_t* out);

// Appends |tensor| as a file. UNIMPLEMENTED for types that NumPy has no name for.
RN_MUST_USE rn_status_t rn_npy_write(const rn_tensor_t* tensor, rn_strbuf_t* out);

#endif  // RUNNEL_CLI_NPY_H_
