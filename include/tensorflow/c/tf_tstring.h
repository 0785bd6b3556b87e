// The elements of TF_STRING tensors, for callers that cannot use the inline functions of
// tensorflow/core/platform/ctstring.h. Both see the same 24 bytes and the same heap.
//
// A TF_TString that holds heap memory must not be copied as bytes and then freed twice. None of
// these functions locks anything. NULL strings read as empty.

#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/core/platform/ctstring.h"

#ifdef __cplusplus
extern "C" {
#endif

// Turns raw memory into an empty string. What was there is not freed.
TF_CAPI_EXPORT void TF_StringInit(TF_TString* t);

// Replaces the value with a copy of |size| bytes. |dst| must be initialized.
TF_CAPI_EXPORT void TF_StringCopy(TF_TString* dst, const char* src, size_t size);

// Replaces the value with a view: the bytes stay the caller's and must outlive |dst|.
TF_CAPI_EXPORT void TF_StringAssignView(TF_TString* dst, const char* src, size_t size);

// The bytes, valid until the string changes.
TF_CAPI_EXPORT const char* TF_StringGetDataPointer(const TF_TString* tstr);

// How the bytes are kept: inline, on the heap, at an offset, or as a view.
TF_CAPI_EXPORT TF_TString_Type TF_StringGetType(const TF_TString* str);

// Length in bytes.
TF_CAPI_EXPORT size_t TF_StringGetSize(const TF_TString* tstr);

// Bytes that fit without a new allocation; 0 for strings that do not own their bytes.
TF_CAPI_EXPORT size_t TF_StringGetCapacity(const TF_TString* str);

// Frees what the string owns and leaves it empty. Safe to call twice.
TF_CAPI_EXPORT void TF_StringDealloc(TF_TString* tstr);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_TSTRING_H_
