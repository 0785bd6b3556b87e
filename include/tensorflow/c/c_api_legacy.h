// Names that clients still ask for and that no header of today's TensorFlow declares.

#ifndef TENSORFLOW_C_C_API_LEGACY_H_
#define TENSORFLOW_C_C_API_LEGACY_H_

#include <stddef.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Strings as TensorFlow kept them before 2.4: a varint length, then the bytes
//
// Tensors of today hold TF_TString (tf_tstring.h) and do not understand these.

// Writes the coded form of |src| to |dst|, which has room for |dst_len| bytes, and returns how many
// it took. 0 and TF_INVALID_ARGUMENT when there is too little room.
TF_CAPI_EXPORT size_t TF_StringEncode(const char* src, size_t src_len, char* dst, size_t dst_len,
                                      TF_Status* status);

// Reads one coded string from at most |src_len| bytes: |*dst| points into |src|. Returns the number
// of bytes read; 0 and TF_INVALID_ARGUMENT when the bytes are cut short or wrong.
TF_CAPI_EXPORT size_t TF_StringDecode(const char* src, size_t src_len, const char** dst,
                                      size_t* dst_len, TF_Status* status);

// Bytes that a string of |len| bytes takes when coded.
TF_CAPI_EXPORT size_t TF_StringEncodedSize(size_t len);

// --- Others

// As TF_FinishWhile, except that |params| keeps what it holds.
TF_CAPI_EXPORT void TF_FinishWhileHelper(const TF_WhileParams* params, TF_Status* status,
                                         TF_Output* outputs);

// There is no XLA here: changes nothing.
TF_CAPI_EXPORT void TFE_OpSetXLACompilation(TFE_Op* op, unsigned char enable);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_C_API_LEGACY_H_
