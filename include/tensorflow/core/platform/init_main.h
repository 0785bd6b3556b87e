// What main() of TensorFlow's programs calls first.
#ifndef TENSORFLOW_CORE_PLATFORM_INIT_MAIN_H_
#define TENSORFLOW_CORE_PLATFORM_INIT_MAIN_H_

namespace tensorflow {
namespace port {

// Nothing needs to be initialized.
inline void InitMain(const char*, int*, char***) {}

}  // namespace port
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PLATFORM_INIT_MAIN_H_
