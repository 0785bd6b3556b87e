// LOG, VLOG and CHECK.
//
// Lines go to stderr. TF_CPP_MIN_LOG_LEVEL hides levels below it (0: INFO is shown), and
// TF_CPP_MAX_VLOG_LEVEL shows VLOG lines up to it. LOG(FATAL) and a failed CHECK abort.
#ifndef TENSORFLOW_CORE_PLATFORM_LOGGING_H_
#define TENSORFLOW_CORE_PLATFORM_LOGGING_H_

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <sstream>
#include <string>

#include "tensorflow/core/platform/macros.h"

namespace tensorflow {

const int INFO = 0;
const int WARNING = 1;
const int ERROR = 2;
const int FATAL = 3;
const int NUM_SEVERITIES = 4;

namespace internal {

inline int LogLevelOf(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

// One line of the log, written when the object dies.
class LogMessage : public std::basic_ostringstream<char> {
 public:
  TF_ATTRIBUTE_COLD TF_ATTRIBUTE_NOINLINE LogMessage(const char* file, int line, int severity)
      : file_(file), line_(line), severity_(severity) {}
  TF_ATTRIBUTE_COLD TF_ATTRIBUTE_NOINLINE ~LogMessage() override { Write(); }
  static int MaxVLogLevel() {
    static const int level = LogLevelOf("TF_CPP_MAX_VLOG_LEVEL");
    return level;
  }
  static bool VmoduleActivated(const char*, int level) { return level <= MaxVLogLevel(); }

 protected:
  TF_ATTRIBUTE_COLD TF_ATTRIBUTE_NOINLINE void Write() {
    static const int lowest = LogLevelOf("TF_CPP_MIN_LOG_LEVEL");
    if (severity_ < lowest && severity_ != FATAL) return;
    std::timespec now;
    std::timespec_get(&now, TIME_UTC);
    std::tm parts;
    localtime_r(&now.tv_sec, &parts);
    char date[32];
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    std::fprintf(stderr, "%s.%06ld: %c %s:%d] %s\n", date, now.tv_nsec / 1000, "IWEF"[severity_],
                 file_, line_, str().c_str());
  }

 private:
  const char* file_;
  int line_;
  int severity_;
};

class LogMessageFatal : public LogMessage {
 public:
  TF_ATTRIBUTE_COLD TF_ATTRIBUTE_NOINLINE LogMessageFatal(const char* file, int line)
      : LogMessage(file, line, FATAL) {}
  TF_ATTRIBUTE_COLD TF_ATTRIBUTE_NOINLINE TF_ATTRIBUTE_NORETURN ~LogMessageFatal() override {
    Write();
    std::abort();
  }
};

class LogMessageNull : public std::basic_ostringstream<char> {};

// Makes the two sides of a conditional expression void.
struct Voidifier {
  template <typename T>
  void operator&(const T&) const {}
};

// The text of a failed comparison; empty if it holds.
template <typename A, typename B>
TF_ATTRIBUTE_COLD TF_ATTRIBUTE_NOINLINE std::unique_ptr<std::string> CheckText(
    const A& a, const B& b, const char* expression) {
  std::ostringstream text;
  text << "Check failed: " << expression << " (" << a << " vs. " << b << ")";
  return std::make_unique<std::string>(text.str());
}
#define TF_CHECK_COMPARE(name, op)                                                                \
  template <typename A, typename B>                                                               \
  inline std::unique_ptr<std::string> Check##name(const A& a, const B& b,                         \
                                                  const char* expression) {                       \
    _Pragma("GCC diagnostic push") _Pragma(                                                       \
        "GCC diagnostic ignored \"-Wsign-compare\"") if (TF_PREDICT_TRUE(a op b)) return nullptr; \
    _Pragma("GCC diagnostic pop") return CheckText(a, b, expression);                             \
  }
TF_CHECK_COMPARE(_EQ, ==)
TF_CHECK_COMPARE(_NE, !=)
TF_CHECK_COMPARE(_LE, <=)
TF_CHECK_COMPARE(_LT, <)
TF_CHECK_COMPARE(_GE, >=)
TF_CHECK_COMPARE(_GT, >)
#undef TF_CHECK_COMPARE

template <typename T>
T&& CheckNotNull(const char* file, int line, const char* expression, T&& value) {
  if (value == nullptr) LogMessageFatal(file, line) << expression;
  return std::forward<T>(value);
}

}  // namespace internal
}  // namespace tensorflow

#define TF_LOG_INFO_ ::tensorflow::internal::LogMessage(__FILE__, __LINE__, ::tensorflow::INFO)
#define TF_LOG_WARNING_ \
  ::tensorflow::internal::LogMessage(__FILE__, __LINE__, ::tensorflow::WARNING)
#define TF_LOG_ERROR_ ::tensorflow::internal::LogMessage(__FILE__, __LINE__, ::tensorflow::ERROR)
#define TF_LOG_FATAL_ ::tensorflow::internal::LogMessageFatal(__FILE__, __LINE__)
#ifdef NDEBUG
#define TF_LOG_DFATAL_ TF_LOG_ERROR_
#else
#define TF_LOG_DFATAL_ TF_LOG_FATAL_
#endif

#ifndef LOG
#define LOG(severity) TF_LOG_##severity##_
#define LOG_IF(severity, condition) \
  !(condition) ? (void)0 : ::tensorflow::internal::Voidifier() & LOG(severity)
// A counter of its own per place in the program.
#define TF_LOG_COUNT_                 \
  [] {                                \
    static std::atomic<int> count(0); \
    return count.fetch_add(1);        \
  }()
#define LOG_EVERY_N(severity, n) LOG_IF(severity, TF_LOG_COUNT_ % (n) == 0)
#define LOG_FIRST_N(severity, n) LOG_IF(severity, TF_LOG_COUNT_ < (n))
#endif
#define VLOG_IS_ON(level) ((level) <= ::tensorflow::internal::LogMessage::MaxVLogLevel())
#define VLOG(level) \
  !VLOG_IS_ON(level) ? (void)0 : ::tensorflow::internal::Voidifier() & TF_LOG_INFO_
#define DVLOG(level) VLOG(level)

#ifndef CHECK
#define CHECK(condition) \
  if (TF_PREDICT_FALSE(!(condition))) LOG(FATAL) << "Check failed: " #condition " "
#define TF_CHECK_OP_(name, op, a, b)                                                        \
  while (auto tf_check_text = ::tensorflow::internal::Check##name(a, b, #a " " #op " " #b)) \
  TF_LOG_FATAL_ << *tf_check_text
#define CHECK_EQ(a, b) TF_CHECK_OP_(_EQ, ==, a, b)
#define CHECK_NE(a, b) TF_CHECK_OP_(_NE, !=, a, b)
#define CHECK_LE(a, b) TF_CHECK_OP_(_LE, <=, a, b)
#define CHECK_LT(a, b) TF_CHECK_OP_(_LT, <, a, b)
#define CHECK_GE(a, b) TF_CHECK_OP_(_GE, >=, a, b)
#define CHECK_GT(a, b) TF_CHECK_OP_(_GT, >, a, b)
#define CHECK_NOTNULL(value) \
  ::tensorflow::internal::CheckNotNull(__FILE__, __LINE__, "'" #value "' Must be non NULL", (value))
#endif
#define QCHECK(condition) CHECK(condition)
#define QCHECK_EQ(a, b) CHECK_EQ(a, b)
#define QCHECK_NE(a, b) CHECK_NE(a, b)
#define QCHECK_GT(a, b) CHECK_GT(a, b)
#define QCHECK_GE(a, b) CHECK_GE(a, b)
#define QCHECK_LT(a, b) CHECK_LT(a, b)
#define QCHECK_LE(a, b) CHECK_LE(a, b)
#ifdef NDEBUG
#define TF_DCHECK_(check) \
  while (false) check
#else
#define TF_DCHECK_(check) check
#endif
#define DCHECK(condition) TF_DCHECK_(CHECK(condition))
#define DCHECK_EQ(a, b) TF_DCHECK_(CHECK_EQ(a, b))
#define DCHECK_NE(a, b) TF_DCHECK_(CHECK_NE(a, b))
#define DCHECK_LE(a, b) TF_DCHECK_(CHECK_LE(a, b))
#define DCHECK_LT(a, b) TF_DCHECK_(CHECK_LT(a, b))
#define DCHECK_GE(a, b) TF_DCHECK_(CHECK_GE(a, b))
#define DCHECK_GT(a, b) TF_DCHECK_(CHECK_GT(a, b))

#endif  // TENSORFLOW_CORE_PLATFORM_LOGGING_H_
