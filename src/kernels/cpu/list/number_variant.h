// Numbers in variants: int, float, double and bool, as constants may contain them.
#ifndef RUNNEL_KERNELS_CPU_LIST_NUMBER_VARIANT_H_
#define RUNNEL_KERNELS_CPU_LIST_NUMBER_VARIANT_H_

#include "base/str.h"
#include "tensor/variant.h"

typedef struct rn_number_variant_t rn_number_variant_t;

// |object| as a number; NULL if it is not one.
rn_number_variant_t* rn_number_variant_from(rn_object_t* object);
// A zero of the type of |like|.
RN_MUST_USE rn_status_t rn_number_variant_zero(const rn_number_variant_t* like, rn_object_t** out);
// The sum of two numbers; INTERNAL if their types differ.
RN_MUST_USE rn_status_t rn_number_variant_add(const rn_number_variant_t* a,
                                              const rn_number_variant_t* b, rn_object_t** out);
void rn_number_variant_print(const rn_number_variant_t* number, rn_strbuf_t* buf);

#endif  // RUNNEL_KERNELS_CPU_LIST_NUMBER_VARIANT_H_
