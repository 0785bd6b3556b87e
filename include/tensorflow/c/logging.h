// Writing to the library's log from a plug-in.

#ifndef TENSORFLOW_C_LOGGING_H_
#define TENSORFLOW_C_LOGGING_H_

#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TF_LogLevel {
  TF_INFO = 0,
  TF_WARNING = 1,
  TF_ERROR = 2,
  TF_FATAL = 3,
} TF_LogLevel;

// Each formats as printf does and adds one line to the log. TF_VLog lines show only where the
// verbosity is |level| or more, TF_DVLog lines only in debug builds. A NULL |fmt| logs nothing.
// The library never ends the process, not even for TF_FATAL.
TF_CAPI_EXPORT void TF_Log(TF_LogLevel level, const char* fmt, ...);
TF_CAPI_EXPORT void TF_VLog(int level, const char* fmt, ...);
TF_CAPI_EXPORT void TF_DVLog(int level, const char* fmt, ...);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_LOGGING_H_
