// strings::StrCat and strings::StrAppend, which are Abseil's.
#ifndef TENSORFLOW_CORE_PLATFORM_STRCAT_H_
#define TENSORFLOW_CORE_PLATFORM_STRCAT_H_

#include "absl/strings/str_cat.h"

namespace tensorflow {
namespace strings {

using absl::AlphaNum;
using absl::StrAppend;
using absl::StrCat;

}  // namespace strings
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_STRCAT_H_
