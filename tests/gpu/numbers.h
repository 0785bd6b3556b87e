// Elements of tensors of any type as numbers.
#ifndef TESTS_GPU_NUMBERS_H_
#define TESTS_GPU_NUMBERS_H_

#include "tensor/float16.h"
#include "util.h"

static RT_UNUSED double number_at(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_HALF:
      return (double)rn_half_to_float(RN_DATA(tensor, uint16_t)[i]);
    case RN_BFLOAT16:
      return (double)rn_bfloat16_to_float(RN_DATA(tensor, uint16_t)[i]);
    case RN_FLOAT:
      return (double)RN_DATA(tensor, float)[i];
    case RN_DOUBLE:
      return RN_DATA(tensor, double)[i];
    case RN_INT64:
      return (double)RN_DATA(tensor, int64_t)[i];
    case RN_BOOL:
      return (double)RN_DATA(tensor, bool)[i];
    default:
      return (double)RN_DATA(tensor, int32_t)[i];
  }
}

#endif  // TESTS_GPU_NUMBERS_H_
