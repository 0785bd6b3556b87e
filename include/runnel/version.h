// The version of Runnel. TF_Version() returns the TensorFlow release whose API it implements.
//
// This file is the only place that states the version: CMake, the Python package and the
// documentation read the three numbers below.
#ifndef RUNNEL_VERSION_H_
#define RUNNEL_VERSION_H_

#include "runnel/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RN_VERSION_MAJOR 0
#define RN_VERSION_MINOR 1
#define RN_VERSION_PATCH 0
#define RN_VERSION_STRING            \
  RN_VERSION_TEXT_(RN_VERSION_MAJOR) \
  "." RN_VERSION_TEXT_(RN_VERSION_MINOR) "." RN_VERSION_TEXT_(RN_VERSION_PATCH)
#define RN_VERSION_TEXT_(number) RN_VERSION_QUOTED_(number)
#define RN_VERSION_QUOTED_(number) #number

// The version of the library that the program runs with, as "major.minor.patch". The caller must
// not free it.
RN_API const char* rn_version(void);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_VERSION_H_
