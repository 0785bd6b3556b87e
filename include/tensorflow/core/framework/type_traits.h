// Properties of the C++ types of elements.
#ifndef TENSORFLOW_CORE_FRAMEWORK_TYPE_TRAITS_H_
#define TENSORFLOW_CORE_FRAMEWORK_TYPE_TRAITS_H_

#include <complex>
#include <limits>
#include <type_traits>

#include "tensorflow/core/framework/types.h"

namespace tensorflow {

template <typename T>
struct is_quantized : std::false_type {};
template <typename Integer, int kTag>
struct is_quantized<Quantized<Integer, kTag>> : std::true_type {};

template <typename T>
struct is_complex : std::false_type {};
template <typename T>
struct is_complex<std::complex<T>> : std::true_type {};

// Elements that can be copied as bytes.
template <typename T>
struct is_simple_type {
  static constexpr bool value = std::is_trivial<T>::value || std::is_same<T, Eigen::half>::value ||
                                std::is_same<T, bfloat16>::value || is_complex<T>::value ||
                                is_quantized<T>::value;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_TYPE_TRAITS_H_
