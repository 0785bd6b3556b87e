// Eigen's tensors, with threads, which kernels need: the first include of Eigen decides.
#ifndef TENSORFLOW_CORE_PLATFORM_EIGEN_H_
#define TENSORFLOW_CORE_PLATFORM_EIGEN_H_

#ifndef EIGEN_USE_THREADS
#define EIGEN_USE_THREADS
#endif

#include "unsupported/Eigen/CXX11/Tensor"

#endif  // TENSORFLOW_CORE_PLATFORM_EIGEN_H_
