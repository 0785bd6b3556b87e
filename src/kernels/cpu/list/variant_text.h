// Variants as strings, in the format of TensorFlow's AsString.
#ifndef RUNNEL_KERNELS_CPU_LIST_VARIANT_TEXT_H_
#define RUNNEL_KERNELS_CPU_LIST_VARIANT_TEXT_H_

#include "base/str.h"
#include "tensor/object.h"

// Appends "Variant<type: int value: 5>". |object| is NULL for an empty variant.
void rn_variant_print(rn_strbuf_t* buf, rn_object_t* object);

#endif  // RUNNEL_KERNELS_CPU_LIST_VARIANT_TEXT_H_
