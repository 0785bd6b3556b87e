// TF_Shape: a shape that may have unknown rank or unknown dimensions.

#ifndef TENSORFLOW_C_TF_SHAPE_H_
#define TENSORFLOW_C_TF_SHAPE_H_

#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_Shape TF_Shape;

// A shape of unknown rank. The caller deletes it. NULL when out of memory.
TF_CAPI_EXPORT TF_Shape* TF_NewShape(void);

// The rank; -1 when it is unknown or |shape| is NULL.
TF_CAPI_EXPORT int TF_ShapeDims(const TF_Shape* shape);

// Size of dimension |d|; -1 when it is unknown, |d| is out of range or |shape| is NULL.
TF_CAPI_EXPORT int64_t TF_ShapeDimSize(const TF_Shape* shape, int d);

// NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteShape(TF_Shape* shape);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_SHAPE_H_
