// TString elements, in TensorFlow's layout.
#include "tensor/tstring.h"

enum { FORM_SMALL, FORM_LARGE, FORM_OFFSET, FORM_VIEW };

#define SMALL_CAPACITY 22  // inline bytes, without the size byte and the NUL

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the form bits are the low bits of the first byte");

static int form_of(const rn_tstring_t* str) { return str->small[0] & 3; }

static char* small_data(rn_tstring_t* str) { return (char*)str->small + 1; }

void rn_tstring_init(rn_tstring_t* str) { *str = (rn_tstring_t){{0}}; }

void rn_tstring_clear(rn_tstring_t* str) {
  if (form_of(str) == FORM_LARGE) free(str->large.data);
  rn_tstring_init(str);
}

rn_str_t rn_tstring_view(const rn_tstring_t* str) {
  switch (form_of(str)) {
    case FORM_SMALL:
      return rn_str_n((const char*)str->small + 1, str->small[0] >> 2);
    case FORM_LARGE:
      return rn_str_n(str->large.data, str->large.size >> 2);
    case FORM_OFFSET:
      return rn_str_n((const char*)str + str->offset.offset, str->offset.size >> 2);
    default:
      return rn_str_n(str->view.data, str->view.size >> 2);
  }
}

// Allocates the bytes of a LARGE string: the size that malloc would round up to anyway, including
// the NUL.
static char* new_bytes(size_t size, size_t* out_capacity) {
  size_t rounded;
  if (size > SIZE_MAX >> 2 || !rn_add_ok(size, 16, &rounded)) return NULL;
  rounded &= ~(size_t)15;
  *out_capacity = rounded - 1;
  return malloc(rounded);
}

static void set_large(rn_tstring_t* str, char* data, size_t size, size_t capacity) {
  data[size] = '\0';
  str->large.size = (uint64_t)size << 2 | FORM_LARGE;
  str->large.capacity = capacity;
  str->large.data = data;
}

bool rn_tstring_assign(rn_tstring_t* str, const char* data, size_t size) {
  // |data| may point into |str| itself, so the old bytes are freed last.
  if (size <= SMALL_CAPACITY && form_of(str) == FORM_SMALL) {
    if (size) memmove(small_data(str), data, size);
    small_data(str)[size] = '\0';
    str->small[0] = (uint8_t)(size << 2);
    return true;
  }
  if (size <= SMALL_CAPACITY) {
    rn_tstring_t small = {{0}};
    small.small[0] = (uint8_t)(size << 2);
    if (size) memcpy(small_data(&small), data, size);
    rn_tstring_clear(str);
    *str = small;
    return true;
  }
  if (form_of(str) == FORM_LARGE && str->large.capacity >= size) {
    memmove(str->large.data, data, size);
    set_large(str, str->large.data, size, str->large.capacity);
    return true;
  }
  size_t capacity;
  char* bytes = new_bytes(size, &capacity);
  if (!bytes) return false;
  memcpy(bytes, data, size);
  rn_tstring_clear(str);
  set_large(str, bytes, size, capacity);
  return true;
}

char* rn_tstring_resize(rn_tstring_t* str, size_t size) {
  rn_str_t old = rn_tstring_view(str);
  size_t common = old.size < size ? old.size : size;
  if (size <= SMALL_CAPACITY) {
    rn_tstring_t small = {{0}};
    small.small[0] = (uint8_t)(size << 2);
    if (common) memcpy(small_data(&small), old.data, common);
    rn_tstring_clear(str);
    *str = small;
    return small_data(str);
  }
  if (form_of(str) != FORM_LARGE || str->large.capacity < size) {
    size_t capacity;
    char* bytes = new_bytes(size, &capacity);
    if (!bytes) return NULL;
    if (common) memcpy(bytes, old.data, common);
    rn_tstring_clear(str);
    set_large(str, bytes, size, capacity);
  } else {
    set_large(str, str->large.data, size, str->large.capacity);
  }
  return str->large.data;
}
