// Export mark and small macros shared by every header of the C API.

#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#include <stddef.h>

// TF_CAPI_EXPORT marks a public function. Wrapper generators see nothing; a client that defines
// TF_CAPI_WEAK gets weak references, so that it starts even where the library lacks a name.
#if defined(SWIG)
#define TF_CAPI_EXPORT
#elif defined(_WIN32) && defined(TF_COMPILE_LIBRARY)
#define TF_CAPI_EXPORT __declspec(dllexport)
#elif defined(_WIN32)
#define TF_CAPI_EXPORT __declspec(dllimport)
#elif defined(TF_CAPI_WEAK)
#define TF_CAPI_EXPORT __attribute__((visibility("default"), weak))
#else
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif

// One byte, 0 or 1: the same on every compiler and in every language.
#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

// Bytes from the start of TYPE to the end of MEMBER. Structs that grow over time carry this number
// for their last known member in `struct_size`.
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))
#endif

#endif  // TENSORFLOW_C_C_API_MACROS_H_
