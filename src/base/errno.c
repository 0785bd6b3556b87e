// The system's error numbers as statuses: one table for files, sockets and the C API.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // strerrordesc_np: errno's text without a shared buffer
#endif
#include <errno.h>
#include <string.h>

#include "base/fs.h"

// As TensorFlow sorts errno's numbers.
rn_code_t rn_code_of_errno(int error) {
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

rn_status_t rn_status_of_errno(const char* context, int error) {
  const char* text = strerrordesc_np(error);
  rn_code_t code = rn_code_of_errno(error);
  return text ? rn_status_make(code, "%s; %s", context, text)
              : rn_status_make(code, "%s; Unknown error %d", context, error);
}
