// Short names of integers and strings in the namespace tensorflow.
#ifndef TENSORFLOW_CORE_PLATFORM_TYPES_H_
#define TENSORFLOW_CORE_PLATFORM_TYPES_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow {

typedef std::int8_t int8;
typedef std::int16_t int16;
typedef std::int32_t int32;
typedef std::int64_t int64;
typedef std::uint8_t uint8;
typedef std::uint16_t uint16;
typedef std::uint32_t uint32;
typedef std::uint64_t uint64;
using std::string;
using StringPiece = absl::string_view;

static const uint8 kuint8max = std::numeric_limits<uint8>::max();
static const uint16 kuint16max = std::numeric_limits<uint16>::max();
static const uint32 kuint32max = std::numeric_limits<uint32>::max();
static const uint64 kuint64max = std::numeric_limits<uint64>::max();
static const int32 kint32min = std::numeric_limits<int32>::min();
static const int32 kint32max = std::numeric_limits<int32>::max();
static const int64_t kint64min = std::numeric_limits<int64_t>::min();
static const int64_t kint64max = std::numeric_limits<int64_t>::max();

namespace internal {}
}  // namespace tensorflow

namespace tsl {
using tensorflow::int16;
using tensorflow::int32;
using tensorflow::int64;
using tensorflow::int8;
using tensorflow::string;
using tensorflow::StringPiece;
using tensorflow::uint16;
using tensorflow::uint32;
using tensorflow::uint64;
using tensorflow::uint8;
}  // namespace tsl

#endif  // TENSORFLOW_CORE_PLATFORM_TYPES_H_
