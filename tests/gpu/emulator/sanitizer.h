// AddressSanitizer, where the emulator is compiled with it: memory that nobody may touch.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_SANITIZER_H_
#define RUNNEL_TESTS_GPU_EMULATOR_SANITIZER_H_

#include <stddef.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define EMU_HAS_ASAN 1
#include <sanitizer/asan_interface.h>
static inline void emu_poison(void* from, size_t size) { __asan_poison_memory_region(from, size); }
static inline void emu_unpoison(void* from, size_t size) {
  __asan_unpoison_memory_region(from, size);
}
#else
#define EMU_HAS_ASAN 0
static inline void emu_poison(void* from, size_t size) { (void)from, (void)size; }
static inline void emu_unpoison(void* from, size_t size) { (void)from, (void)size; }
#endif

#endif  // RUNNEL_TESTS_GPU_EMULATOR_SANITIZER_H_
