// Types of tensors: DataType and the C++ type of each.
#ifndef TENSORFLOW_CORE_FRAMEWORK_TYPES_H_
#define TENSORFLOW_CORE_FRAMEWORK_TYPES_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/numeric_types.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

namespace gtl {
template <typename T>
using ArraySlice = absl::Span<const T>;
template <typename T>
using MutableArraySlice = absl::Span<T>;
template <typename T, int N>
using InlinedVector = absl::InlinedVector<T, N>;
}  // namespace gtl

// Elements that only the runtime reads.
struct ResourceHandle;
class Variant;

enum MemoryType { DEVICE_MEMORY = 0, HOST_MEMORY = 1 };

class DeviceType {
 public:
  DeviceType(const char* type) : type_(type) {}
  explicit DeviceType(absl::string_view type) : type_(type) {}
  const char* type() const { return type_.c_str(); }
  const std::string& type_string() const { return type_; }
  bool operator==(const DeviceType& other) const { return type_ == other.type_; }
  bool operator!=(const DeviceType& other) const { return type_ != other.type_; }
  bool operator<(const DeviceType& other) const { return type_ < other.type_; }

 private:
  std::string type_;
};
inline std::ostream& operator<<(std::ostream& out, const DeviceType& type) {
  return out << type.type();
}

inline constexpr const char* DEVICE_DEFAULT = "DEFAULT";
inline constexpr const char* DEVICE_CPU = "CPU";
inline constexpr const char* DEVICE_GPU = "GPU";

typedef absl::InlinedVector<DataType, 4> DataTypeVector;
typedef absl::Span<const DataType> DataTypeSlice;
typedef absl::InlinedVector<MemoryType, 4> MemoryTypeVector;

enum { kDataTypeRefOffset = 100 };
inline bool IsRefType(DataType type) { return static_cast<int>(type) > kDataTypeRefOffset; }
inline DataType MakeRefType(DataType type) {
  return static_cast<DataType>(type + kDataTypeRefOffset);
}
inline DataType RemoveRefType(DataType type) {
  return static_cast<DataType>(type - kDataTypeRefOffset);
}
inline DataType BaseType(DataType type) { return IsRefType(type) ? RemoveRefType(type) : type; }
inline bool TypesCompatible(DataType expected, DataType actual) {
  return expected == actual || expected == BaseType(actual);
}

// "float", "int32_ref", "INVALID" for DT_INVALID.
inline std::string DataTypeString(DataType type) {
  if (IsRefType(type)) return DataTypeString(RemoveRefType(type)) + "_ref";
  if (type == DT_INVALID) return "INVALID";
  if (!DataType_IsValid(type)) return "unknown dtype enum (" + std::to_string(type) + ")";
  return absl::AsciiStrToLower(DataType_Name(type).substr(3));
}
inline bool DataTypeFromString(absl::string_view name, DataType* type) {
  bool is_ref = name.size() > 4 && name.substr(name.size() - 4) == "_ref";
  if (is_ref) name.remove_suffix(4);
  DataType found;
  if (name == "float32" || name == "float64") name = name == "float32" ? "float" : "double";
  if (!DataType_Parse("DT_" + absl::AsciiStrToUpper(name), &found)) return false;
  *type = is_ref ? MakeRefType(found) : found;
  return true;
}
inline std::string DataTypeSliceString(DataTypeSlice types) {
  std::string text;
  for (DataType type : types) text += (text.empty() ? "" : ", ") + DataTypeString(type);
  return text;
}

template <typename T>
struct IsValidDataType {
  static constexpr bool value = false;
};
template <typename T>
struct DataTypeToEnum {
  static_assert(IsValidDataType<T>::value, "Specified Data Type not supported");
};
template <DataType kValue>
struct EnumToDataType {};

#define TF_MATCH_TYPE(TYPE, ENUM)                       \
  template <>                                           \
  struct IsValidDataType<TYPE> {                        \
    static constexpr bool value = true;                 \
  };                                                    \
  template <>                                           \
  struct DataTypeToEnum<TYPE> {                         \
    static constexpr DataType value = ENUM;             \
    static constexpr DataType v() { return ENUM; }      \
    static DataType ref() { return MakeRefType(ENUM); } \
  };
#define TF_MATCH_TYPE_AND_ENUM(TYPE, ENUM) \
  TF_MATCH_TYPE(TYPE, ENUM)                \
  template <>                              \
  struct EnumToDataType<ENUM> {            \
    typedef TYPE Type;                     \
  };
TF_MATCH_TYPE_AND_ENUM(float, DT_FLOAT)
TF_MATCH_TYPE_AND_ENUM(double, DT_DOUBLE)
TF_MATCH_TYPE_AND_ENUM(int8, DT_INT8)
TF_MATCH_TYPE_AND_ENUM(int16, DT_INT16)
TF_MATCH_TYPE_AND_ENUM(int32, DT_INT32)
TF_MATCH_TYPE_AND_ENUM(int64, DT_INT64)
TF_MATCH_TYPE_AND_ENUM(uint8, DT_UINT8)
TF_MATCH_TYPE_AND_ENUM(uint16, DT_UINT16)
TF_MATCH_TYPE_AND_ENUM(uint32, DT_UINT32)
TF_MATCH_TYPE_AND_ENUM(uint64, DT_UINT64)
TF_MATCH_TYPE(long long, DT_INT64)
TF_MATCH_TYPE(unsigned long long, DT_UINT64)
TF_MATCH_TYPE_AND_ENUM(bool, DT_BOOL)
TF_MATCH_TYPE_AND_ENUM(tstring, DT_STRING)
TF_MATCH_TYPE_AND_ENUM(complex64, DT_COMPLEX64)
TF_MATCH_TYPE_AND_ENUM(complex128, DT_COMPLEX128)
TF_MATCH_TYPE_AND_ENUM(half, DT_HALF)
TF_MATCH_TYPE_AND_ENUM(bfloat16, DT_BFLOAT16)
TF_MATCH_TYPE_AND_ENUM(qint8, DT_QINT8)
TF_MATCH_TYPE_AND_ENUM(quint8, DT_QUINT8)
TF_MATCH_TYPE_AND_ENUM(qint16, DT_QINT16)
TF_MATCH_TYPE_AND_ENUM(quint16, DT_QUINT16)
TF_MATCH_TYPE_AND_ENUM(qint32, DT_QINT32)
TF_MATCH_TYPE_AND_ENUM(ResourceHandle, DT_RESOURCE)
TF_MATCH_TYPE_AND_ENUM(Variant, DT_VARIANT)
#undef TF_MATCH_TYPE_AND_ENUM
#undef TF_MATCH_TYPE

inline bool DataTypeIsQuantized(DataType type) {
  return type == DT_QINT8 || type == DT_QUINT8 || type == DT_QINT16 || type == DT_QUINT16 ||
         type == DT_QINT32;
}
inline bool DataTypeIsFloating(DataType type) {
  return type == DT_FLOAT || type == DT_DOUBLE || type == DT_HALF || type == DT_BFLOAT16;
}
inline bool DataTypeIsComplex(DataType type) {
  return type == DT_COMPLEX64 || type == DT_COMPLEX128;
}
inline bool DataTypeIsInteger(DataType type) {
  switch (type) {
    case DT_INT8:
    case DT_INT16:
    case DT_INT32:
    case DT_INT64:
    case DT_UINT8:
    case DT_UINT16:
    case DT_UINT32:
    case DT_UINT64:
      return true;
    default:
      return false;
  }
}
inline bool DataTypeIsNumeric(DataType type) {
  return DataTypeIsFloating(type) || DataTypeIsComplex(type) || DataTypeIsInteger(type) ||
         DataTypeIsQuantized(type);
}

// Bytes per element; 0 if elements have no fixed size of plain bytes.
inline int DataTypeSize(DataType type) {
  switch (BaseType(type)) {
    case DT_BOOL:
    case DT_INT8:
    case DT_UINT8:
    case DT_QINT8:
    case DT_QUINT8:
    case DT_FLOAT8_E5M2:
    case DT_FLOAT8_E4M3FN:
    case DT_FLOAT8_E4M3FNUZ:
    case DT_FLOAT8_E4M3B11FNUZ:
    case DT_FLOAT8_E5M2FNUZ:
    case DT_INT4:
    case DT_UINT4:
    case DT_INT2:
    case DT_UINT2:
      return 1;
    case DT_INT16:
    case DT_UINT16:
    case DT_QINT16:
    case DT_QUINT16:
    case DT_HALF:
    case DT_BFLOAT16:
      return 2;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
    case DT_QINT32:
      return 4;
    case DT_DOUBLE:
    case DT_INT64:
    case DT_UINT64:
    case DT_COMPLEX64:
      return 8;
    case DT_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_TYPES_H_
