// TF_TString: the 24-byte string that TF_STRING tensors are made of.
//
// Byte 0 tells the kind in its two lowest bits (the machine is little-endian):
//
//   kind    bytes
//   SMALL   0: size << 2           1-22: characters, then NUL
//   LARGE   0-7: size << 2 | 1     8-15: capacity     16-23: pointer from malloc, NUL-terminated
//   OFFSET  0-3: size << 2 | 2     4-7: distance of the characters from byte 0    8-11: count
//   VIEW    0-7: size << 2 | 3     8-15: pointer to characters owned elsewhere  16-23: unused
//
// 24 zero bytes are an empty SMALL string. LARGE memory comes from malloc and goes to free, whoever
// frees it: the library, or a client with these functions compiled into it. An OFFSET string is
// bound to its address. The last word of a VIEW is garbage in strings made by older clients: it is
// written as zero and never read.
//
// Nothing here locks. A function that must allocate and cannot leaves the string as it was, and
// returns NULL where it returns a pointer.

#ifndef TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_
#define TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && \
    __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "TF_TString is defined here for little-endian machines only."
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0x00,
  TF_TSTR_LARGE = 0x01,
  TF_TSTR_OFFSET = 0x02,
  TF_TSTR_VIEW = 0x03,
  TF_TSTR_TYPE_MASK = 0x03
} TF_TString_Type;

// Somebody who keeps the bytes of a view alive.
struct TStringOwnerCApi;
typedef void (*tstring_owner_ref_t)(struct TStringOwnerCApi* self);
typedef bool (*tstring_owner_unref_t)(struct TStringOwnerCApi* self);
typedef struct TStringOwnerCApi {
  tstring_owner_ref_t ref;
  tstring_owner_unref_t unref;
  void* obj;
} TStringOwnerCApi;

typedef struct TF_TString_Large {
  size_t size;
  size_t cap;
  char* ptr;
} TF_TString_Large;

typedef struct TF_TString_Offset {
  uint32_t size;
  uint32_t offset;
  uint32_t count;
} TF_TString_Offset;

typedef struct TF_TString_View {
  size_t size;
  const char* ptr;
  TStringOwnerCApi* owner_ref;
} TF_TString_View;

typedef struct TF_TString_Raw {
  uint8_t raw[24];
} TF_TString_Raw;

typedef union TF_TString_Union {
  TF_TString_Large large;
  TF_TString_Offset offset;
  TF_TString_View view;
  TF_TString_Raw raw;
} TF_TString_Union;

// 22: what remains beside the size byte and the NUL.
enum { TF_TString_SmallCapacity = sizeof(TF_TString_Union) - 2 };

typedef struct TF_TString_Small {
  uint8_t size;
  char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;

typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
    TF_TString_Raw raw;
  } u;
} TF_TString;

// The size out of its stored form, which has the type of the string in its lowest two bits.
static inline size_t TF_TString_ToActualSizeT(size_t size) { return size >> 2; }

// The stored form of |size|.
static inline size_t TF_TString_ToInternalSizeT(size_t size, TF_TString_Type type) {
  return (size << 2) | (size_t)type;
}

// How the string stores its bytes.
static inline TF_TString_Type TF_TString_GetType(const TF_TString* str) {
  return (TF_TString_Type)(str->u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}

// Makes an empty string of raw memory.
static inline void TF_TString_Init(TF_TString* str) { memset(str, 0, sizeof *str); }

// Frees what the string owns and leaves it empty.
static inline void TF_TString_Dealloc(TF_TString* str) {
  if (TF_TString_GetType(str) == TF_TSTR_LARGE) free(str->u.large.ptr);
  TF_TString_Init(str);
}

// The length of the string in bytes.
static inline size_t TF_TString_GetSize(const TF_TString* str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL:
      return (size_t)(str->u.smll.size >> 2);
    case TF_TSTR_OFFSET:
      return (size_t)(str->u.offset.size >> 2);
    default:
      return TF_TString_ToActualSizeT(str->u.large.size);
  }
}

// Characters that fit without a new allocation; 0 if the string does not own its memory.
static inline size_t TF_TString_GetCapacity(const TF_TString* str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL:
      return TF_TString_SmallCapacity;
    case TF_TSTR_LARGE:
      return str->u.large.cap;
    default:
      return 0;
  }
}

// The first byte of the string.
static inline const char* TF_TString_GetDataPointer(const TF_TString* str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL:
      return str->u.smll.str;
    case TF_TSTR_LARGE:
      return str->u.large.ptr;
    case TF_TSTR_OFFSET:
      return (const char*)str + str->u.offset.offset;
    default:
      return str->u.view.ptr;
  }
}

// Sets size and final NUL of a SMALL or LARGE string that has room for |size|.
static inline char* TF_TString_SetSizeInPlace(TF_TString* str, size_t size) {
  char* data;
  if (TF_TString_GetType(str) == TF_TSTR_SMALL) {
    str->u.smll.size = (uint8_t)(size << 2);
    data = str->u.smll.str;
  } else {
    str->u.large.size = TF_TString_ToInternalSizeT(size, TF_TSTR_LARGE);
    data = str->u.large.ptr;
  }
  data[size] = '\0';
  return data;
}

// Moves the characters to memory that the string owns, with room for |cap| (or more), which is at
// least the size now. False when there is no memory.
static inline bool TF_TString_Relocate(TF_TString* str, size_t cap) {
  const size_t size = TF_TString_GetSize(str);
  const TF_TString_Type type = TF_TString_GetType(str);
  const char* from = TF_TString_GetDataPointer(str);
  TF_TString to;
  TF_TString_Init(&to);
  if (cap <= TF_TString_SmallCapacity) {
    if (size > 0) memcpy(to.u.smll.str, from, size);
    if (type == TF_TSTR_LARGE) free(str->u.large.ptr);
  } else {
    // Two bits of the size word are taken, and 16 bytes may be added to it.
    if (cap > (SIZE_MAX >> 2) - 16) return false;
    const size_t bytes = (cap + 16) & ~(size_t)15;
    char* memory =
        (char*)(type == TF_TSTR_LARGE ? realloc(str->u.large.ptr, bytes) : malloc(bytes));
    if (memory == NULL) return false;
    if (type != TF_TSTR_LARGE && size > 0) memcpy(memory, from, size);
    to.u.large.size = TF_TSTR_LARGE;
    to.u.large.cap = bytes - 1;
    to.u.large.ptr = memory;
  }
  *str = to;
  TF_TString_SetSizeInPlace(str, size);
  return true;
}

// Makes the string |new_size| long and its own. Characters that were there stay, new ones are
// undefined. Returns the characters.
static inline char* TF_TString_ResizeUninitialized(TF_TString* str, size_t new_size) {
  const size_t size = TF_TString_GetSize(str);
  const TF_TString_Type type = TF_TString_GetType(str);
  if (new_size <= TF_TString_SmallCapacity && type != TF_TSTR_SMALL) {
    TF_TString small;
    TF_TString_Init(&small);
    const size_t kept = size < new_size ? size : new_size;
    if (kept > 0) memcpy(small.u.smll.str, TF_TString_GetDataPointer(str), kept);
    TF_TString_Dealloc(str);
    *str = small;
  } else if (type == TF_TSTR_OFFSET || type == TF_TSTR_VIEW ||
             new_size > TF_TString_GetCapacity(str)) {
    if (!TF_TString_Relocate(str, size < new_size ? new_size : size)) return NULL;
  }
  return TF_TString_SetSizeInPlace(str, new_size);
}

// The characters for writing; a string that did not own them gets a copy first.
static inline char* TF_TString_GetMutableDataPointer(TF_TString* str) {
  switch (TF_TString_GetType(str)) {
    case TF_TSTR_SMALL:
      return str->u.smll.str;
    case TF_TSTR_LARGE:
      return str->u.large.ptr;
    default:
      return TF_TString_ResizeUninitialized(str, TF_TString_GetSize(str));
  }
}

// Room for |new_cap| characters, in memory of the string's own. Never shrinks.
static inline void TF_TString_Reserve(TF_TString* str, size_t new_cap) {
  const TF_TString_Type type = TF_TString_GetType(str);
  const size_t size = TF_TString_GetSize(str);
  const bool owned = type == TF_TSTR_SMALL || type == TF_TSTR_LARGE;
  if (owned && new_cap <= TF_TString_GetCapacity(str)) return;
  (void)TF_TString_Relocate(str, new_cap < size ? size : new_cap);
}

// The same; grows to twice the capacity at least.
static inline void TF_TString_ReserveAmortized(TF_TString* str, size_t new_cap) {
  const size_t cap = TF_TString_GetCapacity(str);
  if (new_cap > cap && cap < SIZE_MAX / 4 && new_cap < 2 * cap) new_cap = 2 * cap;
  TF_TString_Reserve(str, new_cap);
}

// As TF_TString_ResizeUninitialized, with |c| for new characters.
static inline char* TF_TString_Resize(TF_TString* str, size_t new_size, char c) {
  const size_t size = TF_TString_GetSize(str);
  char* data = TF_TString_ResizeUninitialized(str, new_size);
  if (data != NULL && new_size > size) memset(data + size, (unsigned char)c, new_size - size);
  return data;
}

// The string becomes a view of |size| bytes, which must outlive it.
static inline void TF_TString_AssignView(TF_TString* dst, const char* src, size_t size) {
  TF_TString_Dealloc(dst);
  dst->u.view.size = TF_TString_ToInternalSizeT(size, TF_TSTR_VIEW);
  dst->u.view.ptr = src;
}

// Replaces the value with a copy of |size| bytes, which may be part of the string itself.
static inline void TF_TString_Copy(TF_TString* dst, const char* src, size_t size) {
  TF_TString copy;
  TF_TString_Init(&copy);
  char* data = TF_TString_ResizeUninitialized(&copy, size);
  if (data == NULL) return;
  if (size > 0) memcpy(data, src, size);
  TF_TString_Dealloc(dst);
  *dst = copy;
}

// A view that |owner_ref| keeps alive. As the owner's word cannot be trusted in a string from
// elsewhere, the bytes are copied, and the owner is not needed; without one it is a plain view.
static inline void TF_TString_AssignViewWithOwner(TF_TString* dst, const char* src, size_t size,
                                                  TStringOwnerCApi* owner_ref) {
  if (owner_ref == NULL) {
    TF_TString_AssignView(dst, src, size);
  } else {
    TF_TString_Copy(dst, src, size);
  }
}

// Adds |size| bytes, which may be part of the string itself.
static inline void TF_TString_AppendN(TF_TString* dst, const char* src, size_t size) {
  const size_t old_size = TF_TString_GetSize(dst);
  if (size == 0 || size > SIZE_MAX - old_size) return;
  const uintptr_t start = (uintptr_t)TF_TString_GetDataPointer(dst);
  const uintptr_t at = (uintptr_t)src - start;
  const bool inside = (uintptr_t)src >= start && at < old_size && size <= old_size - at;
  // A string that grows again and again is moved a logarithmic number of times.
  TF_TString_ReserveAmortized(dst, old_size + size);
  char* data = TF_TString_ResizeUninitialized(dst, old_size + size);
  if (data != NULL) memmove(data + old_size, inside ? data + at : src, size);
}

// Appends the bytes of |src|.
static inline void TF_TString_Append(TF_TString* dst, const TF_TString* src) {
  TF_TString_AppendN(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}

// |dst| becomes equal to |src|: a view of the same bytes if that is one, else a copy.
static inline void TF_TString_Assign(TF_TString* dst, const TF_TString* src) {
  if (dst == src) return;
  if (TF_TString_GetType(src) == TF_TSTR_VIEW) {
    TF_TString_AssignView(dst, src->u.view.ptr, TF_TString_GetSize(src));
  } else {
    TF_TString_Copy(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
  }
}

// |dst| takes the value over and |src| becomes empty. An OFFSET string is copied instead, for its
// bytes lie where it lies.
static inline void TF_TString_Move(TF_TString* dst, TF_TString* src) {
  if (dst == src) return;
  if (TF_TString_GetType(src) == TF_TSTR_OFFSET) {
    TF_TString_Copy(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
  } else {
    TF_TString_Dealloc(dst);
    *dst = *src;
  }
  TF_TString_Init(src);
}

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_
