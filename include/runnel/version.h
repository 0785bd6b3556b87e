// Which release of Runnel this is. TF_Version() tells the TensorFlow release whose API it has.
#ifndef RUNNEL_VERSION_H_
#define RUNNEL_VERSION_H_

#ifdef __cplusplus
extern "C" {
#endif

#define RN_VERSION_MAJOR 0
#define RN_VERSION_MINOR 1
#define RN_VERSION_PATCH 0
#define RN_VERSION_STRING "0.1.0"

// The version of the library that is running, "major.minor.patch". Never freed.
__attribute__((visibility("default"))) const char* rn_version(void);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_VERSION_H_
