// The kinds of variants that can be sent in messages.
#include "tensor/variant.h"

extern const rn_variant_kind_t rn_variant_compressed;
extern const rn_variant_kind_t rn_variant_truth;
extern const rn_variant_kind_t rn_variant_float64;
extern const rn_variant_kind_t rn_variant_float32;
extern const rn_variant_kind_t rn_variant_int32;
extern const rn_variant_kind_t rn_variant_csr;
extern const rn_variant_kind_t rn_variant_iterator_state;
extern const rn_variant_kind_t rn_variant_tensor;
extern const rn_variant_kind_t rn_variant_tensor_list;
extern const rn_variant_kind_t rn_variant_tensor_map;
extern const rn_variant_kind_t rn_variant_ragged;
extern const rn_variant_kind_t rn_variant_composite;

const rn_variant_kind_t* const rn_variant_kinds[] = {&rn_variant_iterator_state,
                                                     &rn_variant_tensor_list,
                                                     &rn_variant_tensor,
                                                     &rn_variant_int32,
                                                     &rn_variant_float32,
                                                     &rn_variant_float64,
                                                     &rn_variant_truth,
                                                     &rn_variant_csr,
                                                     &rn_variant_tensor_map,
                                                     &rn_variant_ragged,
                                                     &rn_variant_composite,
                                                     &rn_variant_compressed,
                                                     NULL};
