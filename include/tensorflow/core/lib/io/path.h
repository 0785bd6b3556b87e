// Paths of files.
#ifndef TENSORFLOW_CORE_LIB_IO_PATH_H_
#define TENSORFLOW_CORE_LIB_IO_PATH_H_

#include <initializer_list>
#include <string>

#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace io {

inline bool IsAbsolutePath(StringPiece path) { return !path.empty() && path[0] == '/'; }

// Joins parts with one slash between each two.
template <typename... Parts>
std::string JoinPath(const Parts&... parts) {
  std::string path;
  for (StringPiece part : {StringPiece(parts)...}) {
    if (part.empty()) continue;
    if (path.empty()) {
      path = std::string(part);
      continue;
    }
    if (part[0] == '/') part.remove_prefix(1);
    if (path.back() != '/') path += '/';
    path.append(part.data(), part.size());
  }
  return path;
}
inline StringPiece Basename(StringPiece path) {
  size_t slash = path.rfind('/');
  return slash == StringPiece::npos ? path : path.substr(slash + 1);
}
inline StringPiece Dirname(StringPiece path) {
  size_t slash = path.rfind('/');
  if (slash == StringPiece::npos) return StringPiece();
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}
inline StringPiece Extension(StringPiece path) {
  StringPiece base = Basename(path);
  size_t dot = base.rfind('.');
  return dot == StringPiece::npos ? StringPiece() : base.substr(dot + 1);
}

}  // namespace io
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_LIB_IO_PATH_H_
