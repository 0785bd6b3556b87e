// tstring: the element of DT_STRING tensors, with the interface of std::string where programs use
// it.
//
// The layout is TF_TString's, so that a buffer of tstrings is a buffer of the C API.
#ifndef TENSORFLOW_CORE_PLATFORM_TSTRING_H_
#define TENSORFLOW_CORE_PLATFORM_TSTRING_H_

#include <cstring>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"
#include "tsl/platform/ctstring.h"

namespace tensorflow {

class tstring {
 public:
  enum Type {
    SMALL = TF_TSTR_SMALL,
    LARGE = TF_TSTR_LARGE,
    OFFSET = TF_TSTR_OFFSET,
    VIEW = TF_TSTR_VIEW
  };
  typedef char* iterator;
  typedef const char* const_iterator;
  typedef char value_type;
  static constexpr size_t npos = static_cast<size_t>(-1);

  // Refers to characters that are owned elsewhere.
  struct view {
    view() : data_(nullptr), size_(0) {}
    view(const char* data, size_t size) : data_(data), size_(size) {}
    view(const char* text) : view(text, std::strlen(text)) {}
    view(const std::string& text) : view(text.data(), text.size()) {}
    view(absl::string_view text) : view(text.data(), text.size()) {}
    view(const tstring& text) : view(text.data(), text.size()) {}
    const char* data() const { return data_; }
    size_t size() const { return size_; }

   private:
    const char* data_;
    size_t size_;
  };

  tstring() { TF_TString_Init(&text_); }
  tstring(const tstring& other) : tstring() { TF_TString_Assign(&text_, &other.text_); }
  tstring(tstring&& other) noexcept : tstring() { TF_TString_Move(&text_, &other.text_); }
  tstring(const char* text, size_t size) : tstring() { TF_TString_Copy(&text_, text, size); }
  tstring(const char* text) : tstring(text, std::strlen(text)) {}
  tstring(const std::string& text) : tstring(text.data(), text.size()) {}
  explicit tstring(absl::string_view text) : tstring(text.data(), text.size()) {}
  explicit tstring(std::string_view text) : tstring(text.data(), text.size()) {}
  tstring(size_t count, char c) : tstring() { TF_TString_Resize(&text_, count, c); }
  ~tstring() { TF_TString_Dealloc(&text_); }

  tstring& operator=(const tstring& other) {
    if (this != &other) TF_TString_Assign(&text_, &other.text_);
    return *this;
  }
  tstring& operator=(tstring&& other) noexcept {
    if (this != &other) TF_TString_Move(&text_, &other.text_);
    return *this;
  }
  tstring& operator=(const std::string& text) { return assign(text.data(), text.size()); }
  tstring& operator=(const char* text) { return assign(text, std::strlen(text)); }
  tstring& operator=(absl::string_view text) { return assign(text.data(), text.size()); }
  tstring& operator=(std::string_view text) { return assign(text.data(), text.size()); }
  tstring& operator=(char c) { return assign(&c, 1); }
  tstring& operator=(const view& text) {
    assign_as_view(text.data(), text.size());
    return *this;
  }

  operator std::string() const { return std::string(data(), size()); }
  operator absl::string_view() const { return absl::string_view(data(), size()); }
  explicit operator std::string_view() const { return std::string_view(data(), size()); }

  Type type() const { return static_cast<Type>(TF_TString_GetType(&text_)); }
  size_t size() const { return TF_TString_GetSize(&text_); }
  size_t length() const { return size(); }
  size_t capacity() const { return TF_TString_GetCapacity(&text_); }
  bool empty() const { return size() == 0; }
  const char* data() const { return TF_TString_GetDataPointer(&text_); }
  const char* c_str() const { return data(); }
  char* data() { return TF_TString_GetMutableDataPointer(&text_); }
  char* mdata() { return data(); }
  const char& operator[](size_t i) const { return data()[i]; }
  char& operator[](size_t i) { return data()[i]; }
  const char& back() const { return (*this)[size() - 1]; }
  char& back() { return (*this)[size() - 1]; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size(); }
  iterator begin() { return data(); }
  iterator end() { return data() + size(); }

  void clear() { TF_TString_ResizeUninitialized(&text_, 0); }
  void resize(size_t size, char c = 0) { TF_TString_Resize(&text_, size, c); }
  void resize_uninitialized(size_t size) { TF_TString_ResizeUninitialized(&text_, size); }
  void reserve(size_t size) { TF_TString_Reserve(&text_, size); }
  tstring& assign(const char* text, size_t size) {
    TF_TString_Copy(&text_, text, size);
    return *this;
  }
  tstring& assign(const char* text) { return assign(text, std::strlen(text)); }
  tstring& assign_as_view(const char* text, size_t size) {
    TF_TString_AssignView(&text_, text, size);
    return *this;
  }
  tstring& append(const char* text, size_t size) {
    TF_TString_AppendN(&text_, text, size);
    return *this;
  }
  tstring& append(absl::string_view text) { return append(text.data(), text.size()); }
  void push_back(char c) { append(&c, 1); }
  tstring& operator+=(absl::string_view text) { return append(text.data(), text.size()); }
  int compare(const char* text, size_t size) const {
    return absl::string_view(*this).compare(absl::string_view(text, size));
  }
  size_t find(absl::string_view text, size_t from = 0) const {
    return absl::string_view(*this).find(text, from);
  }
  tstring substr(size_t from, size_t count = npos) const {
    return tstring(absl::string_view(*this).substr(from, count));
  }
  void swap(tstring& other) { std::swap(text_, other.text_); }

 private:
  TF_TString text_;
};
static_assert(sizeof(tstring) == sizeof(TF_TString), "a tstring is a TF_TString");

#define TF_TSTRING_COMPARE(op)                                      \
  inline bool operator op(const tstring& a, const tstring& b) {     \
    return absl::string_view(a) op absl::string_view(b);            \
  }                                                                 \
  inline bool operator op(const tstring& a, const char* b) {        \
    return absl::string_view(a) op absl::string_view(b);            \
  }                                                                 \
  inline bool operator op(const char* a, const tstring& b) {        \
    return absl::string_view(a) op absl::string_view(b);            \
  }                                                                 \
  inline bool operator op(const tstring& a, const std::string& b) { \
    return absl::string_view(a) op absl::string_view(b);            \
  }                                                                 \
  inline bool operator op(const std::string& a, const tstring& b) { \
    return absl::string_view(a) op absl::string_view(b);            \
  }
TF_TSTRING_COMPARE(==)
TF_TSTRING_COMPARE(!=)
TF_TSTRING_COMPARE(<)
TF_TSTRING_COMPARE(>)
#undef TF_TSTRING_COMPARE

inline tstring operator+(const tstring& a, const tstring& b) {
  tstring sum(a);
  return sum.append(b.data(), b.size());
}
inline std::ostream& operator<<(std::ostream& out, const tstring& text) {
  return out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace tensorflow

namespace tsl {
using tensorflow::tstring;
}  // namespace tsl

namespace std {
template <>
struct hash<tensorflow::tstring> {
  size_t operator()(const tensorflow::tstring& text) const {
    return hash<string_view>()(string_view(text));
  }
};
}  // namespace std

#endif  // TENSORFLOW_CORE_PLATFORM_TSTRING_H_
