// TF_Status: how a call ended. A code, a message, and optional payloads (key and value strings).
//
// A status belongs to the thread that uses it. Functions that take one overwrite it: OK on success,
// code and message on failure. A NULL status is allowed everywhere; the outcome is then lost.

#ifndef TENSORFLOW_C_TF_STATUS_H_
#define TENSORFLOW_C_TF_STATUS_H_

#include "tensorflow/c/c_api_macros.h"
#include "xla/tsl/c/tsl_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TSL_Status TF_Status;
typedef TSL_Code TF_Code;

#define TF_OK TSL_OK
#define TF_CANCELLED TSL_CANCELLED
#define TF_UNKNOWN TSL_UNKNOWN
#define TF_INVALID_ARGUMENT TSL_INVALID_ARGUMENT
#define TF_DEADLINE_EXCEEDED TSL_DEADLINE_EXCEEDED
#define TF_NOT_FOUND TSL_NOT_FOUND
#define TF_ALREADY_EXISTS TSL_ALREADY_EXISTS
#define TF_PERMISSION_DENIED TSL_PERMISSION_DENIED
#define TF_UNAUTHENTICATED TSL_UNAUTHENTICATED
#define TF_RESOURCE_EXHAUSTED TSL_RESOURCE_EXHAUSTED
#define TF_FAILED_PRECONDITION TSL_FAILED_PRECONDITION
#define TF_ABORTED TSL_ABORTED
#define TF_OUT_OF_RANGE TSL_OUT_OF_RANGE
#define TF_UNIMPLEMENTED TSL_UNIMPLEMENTED
#define TF_INTERNAL TSL_INTERNAL
#define TF_UNAVAILABLE TSL_UNAVAILABLE
#define TF_DATA_LOSS TSL_DATA_LOSS

#define TF_PayloadVisitor TSL_PayloadVisitor

// A status that says OK. The caller deletes it. NULL when out of memory.
TF_CAPI_EXPORT TF_Status* TF_NewStatus(void);

// NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteStatus(TF_Status* status);

// Replaces code and message and drops the payloads. |msg| is copied; NULL means "". With TF_OK the
// message is dropped.
TF_CAPI_EXPORT void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg);

// Adds a payload, or replaces the one of the same key. Does nothing on an OK status.
TF_CAPI_EXPORT void TF_SetPayload(TF_Status* s, const char* key, const char* value);

// Calls |visitor| for every payload.
TF_CAPI_EXPORT void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture);

// Sets the code that fits |error_code|, an errno value, and the message "|context|; <its text>".
TF_CAPI_EXPORT void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context);

// The code; TF_OK for NULL.
TF_CAPI_EXPORT TF_Code TF_GetCode(const TF_Status* s);

// The message, "" when OK. Lent until the status changes or is deleted.
TF_CAPI_EXPORT const char* TF_Message(const TF_Status* s);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_STATUS_H_
