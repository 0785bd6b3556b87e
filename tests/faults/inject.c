// The allocation functions of this program; see inject.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // dl_iterate_phdr
#endif
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensorflow/c/c_api.h"

// The real ones. AddressSanitizer has its own, under these names; this file, which runs before the
// sanitizer does, is not instrumented.
#ifdef INJECT_BEFORE_SANITIZER
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
extern void* REAL(malloc)(size_t size);
extern void* REAL(calloc)(size_t count, size_t size);
extern void* REAL(realloc)(void* ptr, size_t size);
extern void REAL(free)(void* ptr);

typedef struct range_t {
  uintptr_t from, to;
} range_t;

// Code of libtensorflow, and of the libraries that work for it.
enum { OURS, PCRE2, LIBC, RANGES };
static range_t ranges[RANGES];

// Blocks of the library that live. Open addressing; the addresses are kept inverted, so that a leak
// checker does not see references to them in this table.
#define SLOTS (1 << 17)
#define TOMBSTONE ((uintptr_t)1)
static uintptr_t slots[SLOTS];
static atomic_flag slots_lock = ATOMIC_FLAG_INIT;
static int64_t live;

static _Atomic int64_t count, fail_at;
static _Atomic bool all_after, fired;
static void* stack[32];
static int stack_size;

static int find_range(struct dl_phdr_info* info, size_t size, void* arg) {
  (void)size;
  range_t* range = arg;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    uintptr_t from = info->dlpi_addr + part->p_vaddr;
    if (part->p_type != PT_LOAD || range->from < from || range->from >= from + part->p_memsz)
      continue;
    *range = (range_t){from, from + part->p_memsz};
    return 1;
  }
  return 0;
}

void inject_arm(int64_t nth, bool for_good) {
  fired = false;
  count = 0;
  all_after = for_good;
  fail_at = nth;
}

bool inject_start(void) {
  backtrace(stack, 1);  // loads what it needs now
  static const char* const names[RANGES] = {
      [OURS] = "TF_Version", [PCRE2] = "pcre2_compile_8", [LIBC] = "gnu_get_libc_version"};
  range_t found[RANGES];
  for (int i = 0; i < RANGES; ++i) {
    found[i].from = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]);
    if (dl_iterate_phdr(find_range, &found[i]) != 1) return false;
  }
  memcpy(ranges, found, sizeof ranges);
  inject_arm(0, false);
  TF_DeleteStatus(TF_NewStatus());
  return inject_count() == 1 && inject_live() == 0;  // its allocations do come here
}

void inject_disarm(void) {
  fail_at = 0;
  all_after = false;
}

int64_t inject_count(void) { return count; }
bool inject_fired(void) { return fired; }
int64_t inject_live(void) { return live; }
void inject_print_stack(void) { backtrace_symbols_fd(stack, stack_size, STDERR_FILENO); }

// Whose code |caller| is; RANGES: somebody else's.
static int owner_of(const void* caller) {
  uintptr_t at = (uintptr_t)caller;
  int i = 0;
  while (i < RANGES && (at < ranges[i].from || at >= ranges[i].to)) ++i;
  return i;
}

// Whether this allocation is the one to fail.
static bool must_fail(void) {
  int64_t number = atomic_fetch_add(&count, 1) + 1, at = fail_at;
  if (!at || number < at || (number > at && !all_after)) return false;
  if (!atomic_exchange(&fired, true))
    stack_size = backtrace(stack, (int)(sizeof stack / sizeof *stack));
  errno = ENOMEM;
  return true;
}

static size_t slot_of(uintptr_t key) {
  return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (SLOTS - 1);
}

static void lock_slots(void) {
  while (atomic_flag_test_and_set_explicit(&slots_lock, memory_order_acquire)) {
  }
}

static void unlock_slots(void) { atomic_flag_clear_explicit(&slots_lock, memory_order_release); }

// The C library keeps what it likes (locales it has read, say): its blocks are not counted.
static void* note(void* block, int owner) {
  if (!block || owner == LIBC) return block;
  uintptr_t key = ~(uintptr_t)block;
  lock_slots();
  size_t i = slot_of(key);
  while (slots[i] > TOMBSTONE) i = (i + 1) & (SLOTS - 1);
  slots[i] = key;
  if (++live > SLOTS / 2) abort();  // no scenario comes near
  unlock_slots();
  return block;
}

static bool forget(const void* block) {
  uintptr_t key = ~(uintptr_t)block;
  lock_slots();
  size_t i = slot_of(key);
  while (slots[i] && slots[i] != key) i = (i + 1) & (SLOTS - 1);
  bool is_known = slots[i] == key;
  if (is_known) {
    slots[i] = slots[(i + 1) & (SLOTS - 1)] ? TOMBSTONE : 0;
    --live;
  }
  unlock_slots();
  return is_known;
}

#define VISIBLE __attribute__((visibility("default")))

VISIBLE void* malloc(size_t size) {
  int owner = owner_of(__builtin_return_address(0));
  if (owner == RANGES) return REAL(malloc)(size);
  return must_fail() ? NULL : note(REAL(malloc)(size), owner);
}

VISIBLE void* calloc(size_t number, size_t size) {
  int owner = owner_of(__builtin_return_address(0));
  if (owner == RANGES) return REAL(calloc)(number, size);
  return must_fail() ? NULL : note(REAL(calloc)(number, size), owner);
}

VISIBLE void* realloc(void* ptr, size_t size) {
  int owner = owner_of(__builtin_return_address(0));
  if (owner == RANGES && !ptr) return REAL(realloc)(ptr, size);
  if (owner != RANGES && must_fail()) return NULL;
  bool was_known = ptr && forget(ptr);
  if (was_known) owner = OURS;
  void* moved = REAL(realloc)(ptr, size);
  if (!moved && was_known && size) note(ptr, owner);
  return owner == RANGES ? moved : note(moved, owner);
}

VISIBLE void free(void* ptr) {
  if (ptr) forget(ptr);
  REAL(free)(ptr);
}
