// strings::StrCat and strings::StrAppend: Abseil's, which take tstrings, too.
#ifndef TENSORFLOW_CORE_PLATFORM_STRCAT_H_
#define TENSORFLOW_CORE_PLATFORM_STRCAT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow {
namespace strings {

using absl::AlphaNum;

namespace internal {
template <typename T>
const T& Piece(const T& value) {
  return value;
}
inline absl::string_view Piece(const tstring& text) { return text; }
}  // namespace internal

template <typename... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(internal::Piece(args)...);
}
template <typename... Args>
void StrAppend(std::string* to, const Args&... args) {
  absl::StrAppend(to, internal::Piece(args)...);
}

}  // namespace strings
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_STRCAT_H_
