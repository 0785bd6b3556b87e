// Numbers that C++ has no type for: complex, quantized, half and bfloat16.
#ifndef TENSORFLOW_CORE_FRAMEWORK_NUMERIC_TYPES_H_
#define TENSORFLOW_CORE_FRAMEWORK_NUMERIC_TYPES_H_

#include <complex>

#include "tensorflow/core/platform/eigen.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

typedef std::complex<float> complex64;
typedef std::complex<double> complex128;
typedef Eigen::half half;
typedef Eigen::bfloat16 bfloat16;

// A quantized real number. Arithmetic needs its range, which the type does not hold.
template <typename Integer, int kTag>
struct Quantized {
  Quantized() : value(0) {}
  Quantized(Integer v) : value(v) {}
  operator int() const { return static_cast<int>(value); }
  Integer value;
};
typedef Quantized<int8, 0> qint8;
typedef Quantized<uint8, 1> quint8;
typedef Quantized<int16, 2> qint16;
typedef Quantized<uint16, 3> quint16;
typedef Quantized<int32, 4> qint32;

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_NUMERIC_TYPES_H_
