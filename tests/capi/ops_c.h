// tensorflow/c/ops.h for C: some versions of it name their types without the typedefs that C needs.
#ifndef TESTS_CAPI_OPS_C_H_
#define TESTS_CAPI_OPS_C_H_

typedef struct TF_DimensionHandle TF_DimensionHandle;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;

#include "tensorflow/c/ops.h"

#endif  // TESTS_CAPI_OPS_C_H_
