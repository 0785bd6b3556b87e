// Op definitions made in C by a plug-in, and the shape inference of such ops.
//
// TF_NewOpDefinitionBuilder, then the Add and Set functions, then TF_RegisterOpDefinition. Specs
// are the strings of TensorFlow's op registration: "x: T" for inputs and outputs, "T: {float,
// int32}" or "axis: int = 0" for attributes. The first bad spec is reported at registration.

#ifndef TENSORFLOW_C_OPS_H_
#define TENSORFLOW_C_OPS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_DimensionHandle TF_DimensionHandle;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;

// --- Definition

// For an op named |op_name| (CamelCase).
TF_CAPI_EXPORT TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name);

// Registers the op and consumes |builder|, also on failure.
TF_CAPI_EXPORT void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status);

// For a builder that was not registered. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder);

// Adds an attribute, input or output, written as in TensorFlow's op definitions: "T: {float,
// int32}", "x: T".
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder,
                                                  const char* attr_spec);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder,
                                                   const char* input_spec);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder,
                                                    const char* output_spec);

// f(a, b) = f(b, a).
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder,
                                                           bool is_commutative);

// Takes N inputs of one type and gives one of that type, in any order and grouping.
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder,
                                                         bool is_aggregate);

// Has state or side effects: never merged, folded or shared.
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder,
                                                        bool is_stateful);

// Reference inputs need not be initialized (as for Assign).
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool allows_uninitialized_input);

// Not to be used in graphs of version |version| or later.
TF_CAPI_EXPORT void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version,
                                                     const char* explanation);

// |shape_inference_func| sets the shapes of all outputs, or its status. It may be called on several
// threads at once; the context lives for the call.
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status));

// --- Shape inference

// The number of inputs.
TF_CAPI_EXPORT int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx);

// An unknown shape, to be filled by the functions below. The caller deletes it.
TF_CAPI_EXPORT TF_ShapeHandle* TF_NewShapeHandle(void);

// Copies the shape of input |i| to |handle|.
TF_CAPI_EXPORT void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i,
                                                     TF_ShapeHandle* handle, TF_Status* status);

// Sets the shape of output |i|. Handles keep belonging to the caller.
TF_CAPI_EXPORT void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i,
                                                      TF_ShapeHandle* handle, TF_Status* status);

// New handles, which the caller deletes.
TF_CAPI_EXPORT TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx);
TF_CAPI_EXPORT TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* ctx,
                                                                      size_t size);

// An unknown dimension. The caller deletes it.
TF_CAPI_EXPORT TF_DimensionHandle* TF_NewDimensionHandle(void);

// The value of a type attribute.
TF_CAPI_EXPORT void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx,
                                                         const char* attr_name, TF_DataType* val,
                                                         TF_Status* status);

// The rank, -1 when unknown; and whether it is known.
TF_CAPI_EXPORT int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx,
                                                    TF_ShapeHandle* handle);
TF_CAPI_EXPORT int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx,
                                                     TF_ShapeHandle* handle);

// |*result| is |handle| if its rank fits, or, where the rank was unknown, one of |rank| unknown
// dimensions. TF_INVALID_ARGUMENT when it does not fit.
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx,
                                                     TF_ShapeHandle* handle, int64_t rank,
                                                     TF_ShapeHandle* result, TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx,
                                                            TF_ShapeHandle* handle, int64_t rank,
                                                            TF_ShapeHandle* result,
                                                            TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx,
                                                           TF_ShapeHandle* handle, int64_t rank,
                                                           TF_ShapeHandle* result,
                                                           TF_Status* status);

// Dimension |i| (negative: from the end); unknown where the rank is.
TF_CAPI_EXPORT void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx,
                                                TF_ShapeHandle* shape_handle, int64_t i,
                                                TF_DimensionHandle* result);

// Dimensions [start, end), negative numbers counting from the end.
TF_CAPI_EXPORT void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx,
                                                     TF_ShapeHandle* shape_handle, int64_t start,
                                                     int64_t end, TF_ShapeHandle* result,
                                                     TF_Status* status);

// All outputs get unknown shapes.
TF_CAPI_EXPORT void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx,
                                                            TF_Status* status);

// 1 if the size is known, else 0.
TF_CAPI_EXPORT int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle);

// The size, -1 when unknown.
TF_CAPI_EXPORT int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle);

// The dimensions of |first|, then those of |second|.
TF_CAPI_EXPORT void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx,
                                                              TF_ShapeHandle* first,
                                                              TF_ShapeHandle* second,
                                                              TF_ShapeHandle* result,
                                                              TF_Status* status);

// NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteShapeHandle(TF_ShapeHandle* handle);
TF_CAPI_EXPORT void TF_DeleteDimensionHandle(TF_DimensionHandle* handle);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_OPS_H_
