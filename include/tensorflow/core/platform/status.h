// Status: absl::Status, and the names of it that older programs use; errors::InvalidArgument and
// its siblings; conversions to and from the C API's TF_Status.
#ifndef TENSORFLOW_CORE_PLATFORM_STATUS_H_
#define TENSORFLOW_CORE_PLATFORM_STATUS_H_

#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/platform/types.h"
#include "tensorflow/core/protobuf/error_codes.pb.h"

namespace tensorflow {

namespace error {
inline bool operator==(absl::StatusCode a, Code b) { return static_cast<int>(a) == b; }
inline bool operator==(Code a, absl::StatusCode b) { return a == static_cast<int>(b); }
inline bool operator!=(absl::StatusCode a, Code b) { return !(a == b); }
inline bool operator!=(Code a, absl::StatusCode b) { return !(a == b); }
}  // namespace error

// Holds an absl::Status (which no class may derive from) and converts to and from it without a
// word, so that programs of either age compile.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(const absl::Status& status) : status_(status) {}
  Status(absl::Status&& status) : status_(std::move(status)) {}
  Status(absl::StatusCode code, absl::string_view message) : status_(code, message) {}
  Status(error::Code code, absl::string_view message)
      : status_(static_cast<absl::StatusCode>(code), message) {}
  operator const absl::Status&() const { return status_; }

  static Status OK() { return Status(); }
  bool ok() const { return status_.ok(); }
  absl::StatusCode code() const { return status_.code(); }
  int raw_code() const { return status_.raw_code(); }
  absl::string_view message() const { return status_.message(); }
  std::string error_message() const { return std::string(message()); }
  std::string ToString() const { return status_.ToString(); }
  // Keeps the first error.
  void Update(const absl::Status& other) { status_.Update(other); }
  void IgnoreError() const {}
  void SetPayload(absl::string_view url, absl::Cord payload) {
    status_.SetPayload(url, std::move(payload));
  }
  absl::optional<absl::Cord> GetPayload(absl::string_view url) const {
    return status_.GetPayload(url);
  }
  bool operator==(const Status& other) const { return status_ == other.status_; }
  bool operator!=(const Status& other) const { return status_ != other.status_; }

 private:
  absl::Status status_;
};
inline bool operator==(const Status& a, const absl::Status& b) { return a == Status(b); }
inline bool operator==(const absl::Status& a, const Status& b) { return Status(a) == b; }
inline bool operator!=(const Status& a, const absl::Status& b) { return a != Status(b); }
inline bool operator!=(const absl::Status& a, const Status& b) { return Status(a) != b; }
inline std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

template <typename T>
using StatusOr = absl::StatusOr<T>;
using StatusCallback = std::function<void(const Status&)>;
inline Status OkStatus() { return Status(); }
inline std::string error_name(error::Code code) { return error::Code_Name(code); }
inline std::string error_name(absl::StatusCode code) { return absl::StatusCodeToString(code); }
inline const char* NullTerminatedMessage(const absl::Status& status) {
  return status.ok() ? "" : status.message().data();
}

namespace errors {
namespace internal {
inline void Append(std::ostringstream&) {}
template <typename First, typename... Rest>
void Append(std::ostringstream& text, const First& first, const Rest&... rest) {
  text << first;
  Append(text, rest...);
}
template <typename... Args>
TF_ATTRIBUTE_COLD TF_ATTRIBUTE_NOINLINE Status Make(absl::StatusCode code, const Args&... args) {
  std::ostringstream text;
  Append(text, args...);
  return Status(code, text.str());
}
}  // namespace internal

#define TF_ERRORS_DECLARE(Name, kCode)                       \
  template <typename... Args>                                \
  Status Name(const Args&... args) {                         \
    return internal::Make(absl::StatusCode::kCode, args...); \
  }                                                          \
  inline bool Is##Name(const absl::Status& status) {         \
    return status.code() == absl::StatusCode::kCode;         \
  }
TF_ERRORS_DECLARE(Aborted, kAborted)
TF_ERRORS_DECLARE(AlreadyExists, kAlreadyExists)
TF_ERRORS_DECLARE(Cancelled, kCancelled)
TF_ERRORS_DECLARE(DataLoss, kDataLoss)
TF_ERRORS_DECLARE(DeadlineExceeded, kDeadlineExceeded)
TF_ERRORS_DECLARE(FailedPrecondition, kFailedPrecondition)
TF_ERRORS_DECLARE(Internal, kInternal)
TF_ERRORS_DECLARE(InvalidArgument, kInvalidArgument)
TF_ERRORS_DECLARE(NotFound, kNotFound)
TF_ERRORS_DECLARE(OutOfRange, kOutOfRange)
TF_ERRORS_DECLARE(PermissionDenied, kPermissionDenied)
TF_ERRORS_DECLARE(ResourceExhausted, kResourceExhausted)
TF_ERRORS_DECLARE(Unauthenticated, kUnauthenticated)
TF_ERRORS_DECLARE(Unavailable, kUnavailable)
TF_ERRORS_DECLARE(Unimplemented, kUnimplemented)
TF_ERRORS_DECLARE(Unknown, kUnknown)
#undef TF_ERRORS_DECLARE

template <typename... Args>
void AppendToMessage(absl::Status* status, const Args&... args) {
  std::ostringstream text;
  text << status->message() << "\n\t";
  internal::Append(text, args...);
  *status = absl::Status(status->code(), text.str());
}
template <typename... Args>
void AppendToMessage(Status* status, const Args&... args) {
  absl::Status longer = *status;
  AppendToMessage(&longer, args...);
  *status = longer;
}
inline std::string FormatNodeNameForError(absl::string_view name) {
  return "{{node " + std::string(name) + "}}";
}
}  // namespace errors

// A TF_Status for one call of the C API, with room for its answer.
class CStatus {
 public:
  CStatus() : status_(TF_NewStatus()) {}
  ~CStatus() { TF_DeleteStatus(status_); }
  CStatus(const CStatus&) = delete;
  CStatus& operator=(const CStatus&) = delete;
  operator TF_Status*() const { return status_; }
  bool ok() const { return TF_GetCode(status_) == TF_OK; }
  Status Get() const {
    if (ok()) return Status();
    return Status(static_cast<absl::StatusCode>(TF_GetCode(status_)), TF_Message(status_));
  }

 private:
  TF_Status* status_;
};

inline Status StatusFromTF_Status(const TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return Status();
  return Status(static_cast<absl::StatusCode>(TF_GetCode(status)), TF_Message(status));
}
inline void Set_TF_Status_from_Status(TF_Status* out, const absl::Status& status) {
  TF_SetStatus(out, static_cast<TF_Code>(status.code()), std::string(status.message()).c_str());
}

}  // namespace tensorflow

namespace tsl {
using tensorflow::OkStatus;
using tensorflow::Status;
using tensorflow::StatusOr;
namespace errors = tensorflow::errors;
namespace error = tensorflow::error;
}  // namespace tsl

#define TF_RETURN_IF_ERROR(...)                      \
  do {                                               \
    ::tensorflow::Status tf_status_ = (__VA_ARGS__); \
    if (TF_PREDICT_FALSE(!tf_status_.ok())) {        \
      return tf_status_;                             \
    }                                                \
  } while (0)
#define TF_RETURN_WITH_CONTEXT_IF_ERROR(expression, ...)               \
  do {                                                                 \
    ::tensorflow::Status tf_status_ = (expression);                    \
    if (TF_PREDICT_FALSE(!tf_status_.ok())) {                          \
      ::tensorflow::errors::AppendToMessage(&tf_status_, __VA_ARGS__); \
      return tf_status_;                                               \
    }                                                                  \
  } while (0)
#define TF_STATUS_CONCAT_(a, b) a##b
#define TF_STATUS_NAME_(a, b) TF_STATUS_CONCAT_(a, b)
#define TF_ASSIGN_OR_RETURN_(name, lhs, expression) \
  auto name = (expression);                         \
  if (TF_PREDICT_FALSE(!name.ok())) {               \
    return name.status();                           \
  }                                                 \
  lhs = std::move(name).value()
#define TF_ASSIGN_OR_RETURN(lhs, expression) \
  TF_ASSIGN_OR_RETURN_(TF_STATUS_NAME_(tf_status_or_, __COUNTER__), lhs, expression)
// Can be followed by << and a message, as CHECK can.
#define TF_CHECK_OK(value)                                                                   \
  for (const ::tensorflow::Status tf_status_ = (value); TF_PREDICT_FALSE(!tf_status_.ok());) \
  LOG(FATAL) << "Non-OK-status: " #value "\nStatus: " << tf_status_ << " "
#define TF_QCHECK_OK(value) TF_CHECK_OK(value)
#ifdef NDEBUG
#define TF_DCHECK_OK(value) \
  while (false) TF_CHECK_OK(value)
#else
#define TF_DCHECK_OK(value) TF_CHECK_OK(value)
#endif

#endif  // TENSORFLOW_CORE_PLATFORM_STATUS_H_
