// Fibers: see fiber.h. The switch itself is a few instructions on x86-64 and 64-bit ARM, and
// swapcontext elsewhere.
#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sanitizer.h"

#if EMU_HAS_ASAN
#include <sanitizer/common_interface_defs.h>
#define STACK_SIZE ((size_t)512 << 10)  // frames have red zones
#else
#define STACK_SIZE ((size_t)128 << 10)
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define HAS_TSAN 0
#endif
#define GUARD_SIZE ((size_t)64 << 10)  // a multiple of every page size

#if defined(__x86_64__) || defined(__aarch64__)
typedef void* place_t;  // the stack pointer; the registers to restore lie above it
#else
#include <ucontext.h>
typedef ucontext_t place_t;
#endif

struct emu_fiber_t {
  place_t place;
  void (*run)(void* arg);
  void* arg;
  char* stack;         // NULL if this is the thread's own
  const void* bottom;  // the sanitizers' view of the stack
  size_t size;
  void* fake_stack;
  void* tsan;
  emu_fiber_t* caller;  // that switched here for the first time
};

// Where a new fiber finds itself: the switch carries nothing to it.
static _Thread_local emu_fiber_t* starting;

static void arrive(emu_fiber_t* fiber) {
  (void)fiber;
#if EMU_HAS_ASAN
  const void* bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(fiber->fake_stack, &bottom, &size);
  // A thread's own stack is known only once it was left.
  if (fiber->caller && !fiber->caller->stack) {
    fiber->caller->bottom = bottom;
    fiber->caller->size = size;
  }
#endif
}

__attribute__((used)) static void begin(void) {
  emu_fiber_t* fiber = starting;
  arrive(fiber);
  fiber->run(fiber->arg);
  abort();
}

#if defined(__x86_64__)
// clang-format off
__asm__(
    ".pushsection .text\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"  // (place_t* save, place_t to)
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size emu_switch, .-emu_switch\n"
    ".popsection\n");
// clang-format on
void emu_switch(place_t* save, place_t to);

static void set_place(emu_fiber_t* fiber) {
  // Six registers, the address of begin, and the return address that a called function expects.
  uintptr_t* top = (uintptr_t*)(fiber->stack + STACK_SIZE);
  *--top = 0;
  *--top = (uintptr_t)begin;
  for (int i = 0; i < 6; ++i) *--top = 0;
  fiber->place = top;
}
#elif defined(__aarch64__)
// clang-format off
__asm__(
    ".pushsection .text\n"
    ".type emu_switch, %function\n"
    "emu_switch:\n"  // (place_t* save, place_t to)
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n"
    "  str x9, [x0]\n"
    "  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n"
    "  ret\n"
    ".size emu_switch, .-emu_switch\n"
    ".popsection\n");
// clang-format on
void emu_switch(place_t* save, place_t to);

static void set_place(emu_fiber_t* fiber) {
  uintptr_t* frame = (uintptr_t*)(fiber->stack + STACK_SIZE) - 20;
  memset(frame, 0, 20 * sizeof *frame);
  frame[11] = (uintptr_t)begin;  // x30
  fiber->place = frame;
}
#else
static void set_place(emu_fiber_t* fiber) {
  getcontext(&fiber->place);
  fiber->place.uc_stack.ss_sp = fiber->stack;
  fiber->place.uc_stack.ss_size = STACK_SIZE;
  makecontext(&fiber->place, begin, 0);
}
#endif

emu_fiber_t* emu_fiber_of_thread(void) {
  emu_fiber_t* fiber = calloc(1, sizeof *fiber);
#if HAS_TSAN
  if (fiber) fiber->tsan = __tsan_get_current_fiber();
#endif
  return fiber;
}

emu_fiber_t* emu_fiber_create(void (*run)(void* arg), void* arg) {
  char* memory = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  emu_fiber_t* fiber = calloc(1, sizeof *fiber);
  if (!fiber || mprotect(memory, GUARD_SIZE, PROT_NONE) != 0) {
    munmap(memory, GUARD_SIZE + STACK_SIZE);
    free(fiber);
    return NULL;
  }
  fiber->run = run;
  fiber->arg = arg;
  fiber->stack = memory + GUARD_SIZE;
  fiber->bottom = fiber->stack;
  fiber->size = STACK_SIZE;
#if HAS_TSAN
  fiber->tsan = __tsan_create_fiber(0);
#endif
  set_place(fiber);
  return fiber;
}

void emu_fiber_restart(emu_fiber_t* fiber) {
  emu_unpoison(fiber->stack, STACK_SIZE);
  fiber->fake_stack = NULL;
#if HAS_TSAN
  __tsan_destroy_fiber(fiber->tsan);
  fiber->tsan = __tsan_create_fiber(0);
#endif
  fiber->caller = NULL;
  set_place(fiber);
}

void emu_fiber_destroy(emu_fiber_t* fiber) {
  if (!fiber) return;
  if (fiber->stack) {
    emu_unpoison(fiber->stack, STACK_SIZE);
#if HAS_TSAN
    __tsan_destroy_fiber(fiber->tsan);
#endif
    munmap(fiber->stack - GUARD_SIZE, GUARD_SIZE + STACK_SIZE);
  }
  free(fiber);
}

void emu_fiber_switch(emu_fiber_t* from, emu_fiber_t* to) {
  if (!to->caller) to->caller = from;
  starting = to;
#if EMU_HAS_ASAN
  __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->size);
#endif
#if HAS_TSAN
  __tsan_switch_to_fiber(to->tsan, 0);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  emu_switch(&from->place, to->place);
#else
  swapcontext(&from->place, &to->place);
#endif
  arrive(from);
}
