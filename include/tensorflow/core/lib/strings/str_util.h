// Functions on strings: strings::StrCat, str_util::Split and others, over Abseil's.
#ifndef TENSORFLOW_CORE_LIB_STRINGS_STR_UTIL_H_
#define TENSORFLOW_CORE_LIB_STRINGS_STR_UTIL_H_

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace strings {

inline bool safe_strto32(StringPiece text, int32* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strto64(StringPiece text, int64* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strtou32(StringPiece text, uint32* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strtou64(StringPiece text, uint64* value) { return absl::SimpleAtoi(text, value); }
inline bool safe_strtof(StringPiece text, float* value) { return absl::SimpleAtof(text, value); }
inline bool safe_strtod(StringPiece text, double* value) { return absl::SimpleAtod(text, value); }

__attribute__((format(printf, 1, 2))) inline std::string Printf(const char* format, ...) {
  std::va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int size = std::vsnprintf(nullptr, 0, format, arguments);
  std::string text(size < 0 ? 0 : static_cast<size_t>(size), '\0');
  if (size > 0) std::vsnprintf(&text[0], text.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

}  // namespace strings

namespace str_util {

struct AllowEmpty {
  bool operator()(StringPiece) const { return true; }
};
using SkipEmpty = absl::SkipEmpty;
using SkipWhitespace = absl::SkipWhitespace;

inline std::vector<std::string> Split(StringPiece text, StringPiece delimiters) {
  return text.empty() ? std::vector<std::string>()
                      : absl::StrSplit(text, absl::ByAnyChar(delimiters));
}
inline std::vector<std::string> Split(StringPiece text, char delimiter) {
  return Split(text, StringPiece(&delimiter, 1));
}
template <typename Delimiter, typename Predicate>
std::vector<std::string> Split(StringPiece text, Delimiter delimiter, Predicate predicate) {
  std::vector<std::string> kept;
  for (const std::string& part : Split(text, delimiter)) {
    if (predicate(part)) kept.push_back(part);
  }
  return kept;
}
template <typename Parts>
std::string Join(const Parts& parts, const char* separator) {
  return absl::StrJoin(parts, separator);
}
inline std::string Lowercase(StringPiece text) { return absl::AsciiStrToLower(text); }
inline std::string Uppercase(StringPiece text) { return absl::AsciiStrToUpper(text); }
inline bool StartsWith(StringPiece text, StringPiece prefix) {
  return absl::StartsWith(text, prefix);
}
inline bool EndsWith(StringPiece text, StringPiece suffix) { return absl::EndsWith(text, suffix); }
inline bool StrContains(StringPiece text, StringPiece part) {
  return absl::StrContains(text, part);
}
inline bool ConsumePrefix(StringPiece* text, StringPiece prefix) {
  if (!absl::StartsWith(*text, prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}
inline bool ConsumeSuffix(StringPiece* text, StringPiece suffix) {
  if (!absl::EndsWith(*text, suffix)) return false;
  text->remove_suffix(suffix.size());
  return true;
}

}  // namespace str_util
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_LIB_STRINGS_STR_UTIL_H_
