// TF_Status: a rn_status_t that a client holds.
#include "base/fs.h"
#include "capi/internal.h"
#include "tensorflow/c/c_api_experimental.h"

rn_status_t rn_capi_null(const char* function, const char* argument) {
  return rn_invalid_argument("%s: '%s' must not be NULL", function, argument);
}

TF_Status* TF_NewStatus(void) {
  TF_Status* status = NULL;
  rn_status_t made = RN_NEW(rn_capi_allocator(), &status);
  if (!rn_ok(made)) rn_status_free(made);
  return status;
}

void TF_DeleteStatus(TF_Status* status) {
  if (!status) return;
  rn_status_free(status->rep);
  RN_FREE(rn_capi_allocator(), status);
}

void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg) {
  if (!s) return;
  rn_status_t status = RN_OK;
  // |msg| may be the message of |s| itself, so frees the old status last.
  if (code != TF_OK) {
    status = rn_status_make_n((rn_code_t)code, msg ? msg : "", msg ? strlen(msg) : 0);
  }
  rn_capi_set(s, status);
}

void TF_SetPayload(TF_Status* s, const char* key, const char* value) {
  if (s && key && value) rn_status_set_payload(s->rep, key, value);
}

void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture) {
  if (s && visitor) rn_status_each_payload(s->rep, visitor, capture);
}

void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context) {
  if (!s) return;
  rn_capi_set(s, error_code ? rn_status_of_errno(context ? context : "", error_code) : RN_OK);
}

TF_Code TF_GetCode(const TF_Status* s) { return s ? (TF_Code)rn_status_code(s->rep) : TF_OK; }

const char* TF_Message(const TF_Status* s) { return s ? rn_status_message(s->rep) : ""; }

void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg) {
  TF_SetStatus(status, TF_INTERNAL, errMsg);
}
