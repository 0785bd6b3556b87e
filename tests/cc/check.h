// Checks of the C++ tests: a failed one prints where it is, and the program ends with 1.
#ifndef RUNNEL_TESTS_CC_CHECK_H_
#define RUNNEL_TESTS_CC_CHECK_H_

#include <iostream>
#include <string>

#include "tensorflow/core/platform/status.h"

namespace test {

inline int& Failures() {
  static int count = 0;
  return count;
}

template <typename A, typename B>
void Equal(const A& a, const B& b, const char* text, int line) {
  if (a == b) return;
  std::cerr << "line " << line << ": " << text << ": got " << a << ", expected " << b << "\n";
  Failures()++;
}

// |status| is an error with |code| whose message contains |part|.
inline void Fails(const absl::Status& status, absl::StatusCode code, const std::string& part,
                  int line) {
  std::string message(status.message());
  if (status.code() == code && message.find(part) != std::string::npos) return;
  std::cerr << "line " << line << ": got " << status << ", expected "
            << absl::StatusCodeToString(code) << ": " << part << "\n";
  Failures()++;
}

}  // namespace test

#define EXPECT_EQ(a, b) test::Equal((a), (b), #a, __LINE__)
#define EXPECT_OK(status) test::Equal(absl::Status(status), absl::OkStatus(), #status, __LINE__)
#define EXPECT_FAILS(status, code, part) \
  test::Fails((status), absl::StatusCode::code, part, __LINE__)

#endif  // RUNNEL_TESTS_CC_CHECK_H_
