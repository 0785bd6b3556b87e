// Flags of programs: --name=value.
//
//   std::vector<Flag> flags = {Flag("graph", &graph, "graph to be executed")};
//   if (!Flags::Parse(&argc, argv, flags)) … Flags::Usage(argv[0], flags) …
#ifndef TENSORFLOW_CORE_UTIL_COMMAND_LINE_FLAGS_H_
#define TENSORFLOW_CORE_UTIL_COMMAND_LINE_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// One flag. The value is converted to the type of |destination|, or a hook gets it; the hook
// returns false if the value is wrong.
class Flag {
 public:
  Flag(const char* name, int32* destination, const std::string& usage, bool* = nullptr)
      : Flag(name, "int32", absl::StrCat(*destination), usage,
             [destination](StringPiece text) { return absl::SimpleAtoi(text, destination); }) {}
  Flag(const char* name, int64* destination, const std::string& usage, bool* = nullptr)
      : Flag(name, "int64", absl::StrCat(*destination), usage,
             [destination](StringPiece text) { return absl::SimpleAtoi(text, destination); }) {}
  Flag(const char* name, float* destination, const std::string& usage, bool* = nullptr)
      : Flag(name, "float", absl::StrCat(*destination), usage,
             [destination](StringPiece text) { return absl::SimpleAtof(text, destination); }) {}
  Flag(const char* name, bool* destination, const std::string& usage, bool* = nullptr)
      : Flag(name, "bool", *destination ? "true" : "false", usage, [destination](StringPiece text) {
          if (text.empty()) return *destination = true;
          return absl::SimpleAtob(text, destination);
        }) {
    is_bool_ = true;
  }
  Flag(const char* name, std::string* destination, const std::string& usage, bool* = nullptr)
      : Flag(name, "string", absl::StrCat("\"", *destination, "\""), usage,
             [destination](StringPiece text) {
               *destination = std::string(text);
               return true;
             }) {}
  Flag(const char* name, std::function<bool(std::string)> hook, const std::string& default_value,
       const std::string& usage)
      : Flag(name, "string", absl::StrCat("\"", default_value, "\""), usage,
             [hook](StringPiece text) { return hook(std::string(text)); }) {}

  // Whether |argument| is this flag; then |*is_valid| says whether its value is.
  bool Parse(StringPiece argument, bool* is_valid) const {
    std::string start = "--" + name_;
    if (argument.substr(0, start.size()) != start) return false;
    argument.remove_prefix(start.size());
    if (argument.empty() && !is_bool_) return false;
    if (!argument.empty() && argument[0] != '=') return false;
    if (!argument.empty()) argument.remove_prefix(1);
    *is_valid = set_(argument);
    return true;
  }
  std::string Usage() const {
    return absl::StrCat("\t--", name_, "=", default_, "\t", type_, "\t", usage_, "\n");
  }
  const std::string& name() const { return name_; }

 private:
  Flag(const char* name, const char* type, std::string default_value, const std::string& usage,
       std::function<bool(StringPiece)> set)
      : name_(name),
        type_(type),
        default_(std::move(default_value)),
        usage_(usage),
        set_(std::move(set)) {}

  std::string name_, type_, default_, usage_;
  std::function<bool(StringPiece)> set_;
  bool is_bool_ = false;
};

class Flags {
 public:
  // Takes the flags that it knows out of |argv|. False if one has a wrong value, or is --help.
  static bool Parse(int* argc, char** argv, const std::vector<Flag>& flags) {
    bool is_good = true;
    int kept = *argc > 0 ? 1 : 0;
    for (int i = 1; i < *argc; ++i) {
      StringPiece argument(argv[i]);
      if (argument == "--") {
        while (i < *argc) argv[kept++] = argv[i++];
        break;
      }
      bool is_found = false;
      for (size_t f = 0; !is_found && f < flags.size(); ++f) {
        bool is_valid = true;
        is_found = flags[f].Parse(argument, &is_valid);
        if (!is_valid)
          LOG(ERROR) << "Couldn't interpret value " << argument << " for flag " << flags[f].name()
                     << ".";
        is_good = is_good && is_valid;
      }
      if (!is_found) argv[kept++] = argv[i];
    }
    *argc = kept;
    return is_good && (kept < 2 || StringPiece(argv[1]) != "--help");
  }
  static std::string Usage(const std::string& command, const std::vector<Flag>& flags) {
    std::string text = absl::StrCat("usage: ", command, "\n");
    if (!flags.empty()) text += "Flags:\n";
    for (const Flag& flag : flags) text += flag.Usage();
    return text;
  }
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_UTIL_COMMAND_LINE_FLAGS_H_
