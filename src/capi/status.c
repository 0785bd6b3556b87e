// TF_Status: a rn_status_t that a client holds.
#include <errno.h>

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
  // |msg| may be the message of |s| itself: the old one goes last.
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

// As TensorFlow sorts errno's numbers.
static rn_code_t code_of_errno(int error) {
  switch (error) {
    case 0:
      return RN_CODE_OK;
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EDESTADDRREQ:
    case EDOM:
    case EFAULT:
    case EILSEQ:
    case ENOPROTOOPT:
    case ENOSTR:
    case ENOTSOCK:
    case ENOTTY:
    case EPROTOTYPE:
    case ESPIPE:
      return RN_CODE_INVALID_ARGUMENT;
    case ETIMEDOUT:
    case ETIME:
      return RN_CODE_DEADLINE_EXCEEDED;
    case ENODEV:
    case ENOENT:
    case ENXIO:
    case ESRCH:
      return RN_CODE_NOT_FOUND;
    case EEXIST:
    case EADDRNOTAVAIL:
    case EALREADY:
      return RN_CODE_ALREADY_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS:
      return RN_CODE_PERMISSION_DENIED;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EADDRINUSE:
    case EBADF:
    case EBUSY:
    case ECHILD:
    case EISCONN:
    case ENOTBLK:
    case ENOTCONN:
    case EPIPE:
    case ESHUTDOWN:
    case ETXTBSY:
      return RN_CODE_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case EMLINK:
    case ENFILE:
    case ENOBUFS:
    case ENODATA:
    case ENOMEM:
    case ENOSR:
    case EUSERS:
      return RN_CODE_RESOURCE_EXHAUSTED;
    case EFBIG:
    case EOVERFLOW:
    case ERANGE:
      return RN_CODE_OUT_OF_RANGE;
    case ENOSYS:
    case ENOTSUP:
    case EAFNOSUPPORT:
    case EPFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ESOCKTNOSUPPORT:
    case EXDEV:
      return RN_CODE_UNIMPLEMENTED;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNABORTED:
    case ECONNRESET:
    case EINTR:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOLCK:
    case ENOLINK:
      return RN_CODE_UNAVAILABLE;
    case EDEADLK:
    case ESTALE:
      return RN_CODE_ABORTED;
    case ECANCELED:
      return RN_CODE_CANCELLED;
    default:
      return RN_CODE_UNKNOWN;
  }
}

void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context) {
  if (!s) return;
  rn_code_t code = code_of_errno(error_code);
  if (code == RN_CODE_OK) {
    rn_capi_set(s, RN_OK);
    return;
  }
  rn_capi_set(s, rn_status_make(code, "%s; %s", context ? context : "", strerror(error_code)));
}

TF_Code TF_GetCode(const TF_Status* s) { return s ? (TF_Code)rn_status_code(s->rep) : TF_OK; }

const char* TF_Message(const TF_Status* s) { return s ? rn_status_message(s->rep) : ""; }

void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg) {
  TF_SetStatus(status, TF_INTERNAL, errMsg);
}
