// Eigen's tensors, with threads, which kernels need: the first include of Eigen decides.
//
// Debian has them in /usr/include/eigen3, which need not be in the include path.
#ifndef TENSORFLOW_CORE_PLATFORM_EIGEN_H_
#define TENSORFLOW_CORE_PLATFORM_EIGEN_H_

#ifndef EIGEN_USE_THREADS
#define EIGEN_USE_THREADS
#endif

#if __has_include("unsupported/Eigen/CXX11/Tensor")
#include "unsupported/Eigen/CXX11/Tensor"
#else
#include "eigen3/unsupported/Eigen/CXX11/Tensor"
#endif

#endif  // TENSORFLOW_CORE_PLATFORM_EIGEN_H_
