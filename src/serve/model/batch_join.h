// Joins the tensors of several requests along dimension 0, and cuts the results apart again.
#ifndef RUNNEL_SERVE_MODEL_BATCH_JOIN_H_
#define RUNNEL_SERVE_MODEL_BATCH_JOIN_H_

#include "device/device.h"

// Copies |count| tensors of one type and rank into a new one of |rows| rows, one below the other.
// The rows that they do not fill, if any, are copies of the first. Their other dimensions must be
// equal, unless |pads|: then smaller tensors are filled up with their own first element, as
// TensorFlow Serving does. Strings are copied, too. |device| will read the result (NULL: a
// processor): it is in the host memory that the device copies from fastest.
RN_MUST_USE rn_status_t rn_batch_join(const rn_tensor_t* const* tensors, int count, int64_t rows,
                                      bool pads, const rn_device_t* device,
                                      rn_allocator_t allocator, rn_tensor_t* out);

// Rows |begin| to |begin| + |rows| of |tensor|, which has them. Shares its bytes; borrowed bytes
// stay borrowed.
RN_MUST_USE rn_status_t rn_batch_rows(const rn_tensor_t* tensor, int64_t begin, int64_t rows,
                                      rn_tensor_t* out);

// Whether the tensors could be joined: same type and rank and, unless |pads|, same dimensions
// behind the first.
bool rn_batch_joinable(const rn_tensor_t* a, const rn_tensor_t* b, bool pads);

#endif  // RUNNEL_SERVE_MODEL_BATCH_JOIN_H_
