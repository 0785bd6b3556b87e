// Composite tensors (sparse, ragged and others), as their variants describe them.
#ifndef RUNNEL_TENSOR_COMPOSITE_H_
#define RUNNEL_TENSOR_COMPOSITE_H_

#include "base/str.h"

// The class of the composite tensor that |metadata|, a CompositeTensorVariantMetadata, describes: a
// number of TypeSpecProto.TypeSpecClass. INVALID_ARGUMENT if that is no such message.
RN_MUST_USE rn_status_t rn_composite_class(rn_allocator_t allocator, rn_str_t metadata,
                                           int32_t* out);
// "RAGGED_TENSOR_SPEC"; "" if there is no such class.
const char* rn_composite_class_name(int32_t number);

#endif  // RUNNEL_TENSOR_COMPOSITE_H_
