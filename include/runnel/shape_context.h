// What shape functions of plug-ins need beyond tensorflow/c/ops.h: outputs of any shape, attributes
// of any type, and inputs whose values are known.
//
// All functions may be called only from within a shape function, with the context that it got.
#ifndef RUNNEL_SHAPE_CONTEXT_H_
#define RUNNEL_SHAPE_CONTEXT_H_

#include <stdint.h>

#include "runnel/api.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// The name of the op, such as "MatMul".
RN_API const char* rn_shape_context_op(TF_ShapeInferenceContext* ctx);
RN_API int rn_shape_context_output_count(TF_ShapeInferenceContext* ctx);
RN_API TF_DataType rn_shape_context_input_type(TF_ShapeInferenceContext* ctx, int i);

// Sets output |i|: |rank| is -1 and |dims| NULL if nothing is known, and a dim of -1 is unknown.
// INVALID_ARGUMENT if there is no such output or a dim is below -1.
RN_API void rn_shape_context_set_output(TF_ShapeInferenceContext* ctx, int i, const int64_t* dims,
                                        int rank, TF_Status* status);

// Puts the attribute's value into |out|, a serialized AttrValue. NOT_FOUND if the op has no such
// attribute.
RN_API void rn_shape_context_attr(TF_ShapeInferenceContext* ctx, const char* name, TF_Buffer* out,
                                  TF_Status* status);

// The value of input |i|, which the caller deletes; NULL if it is not constant.
RN_API TF_Tensor* rn_shape_context_input_value(TF_ShapeInferenceContext* ctx, int i);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_SHAPE_CONTEXT_H_
