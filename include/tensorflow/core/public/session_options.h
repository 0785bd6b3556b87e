// Options of sessions.
#ifndef TENSORFLOW_CORE_PUBLIC_SESSION_OPTIONS_H_
#define TENSORFLOW_CORE_PUBLIC_SESSION_OPTIONS_H_

#include <string>

#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {

class Env;

struct SessionOptions {
  Env* env = nullptr;  // not used
  std::string target;  // "" or "local": this process; "grpc://host:port": a task of a cluster
  ConfigProto config;
};

namespace thread {
struct ThreadPoolOptions;
}  // namespace thread

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_PUBLIC_SESSION_OPTIONS_H_
