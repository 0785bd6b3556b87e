// Fibers: stacks that a thread switches between. Sanitizers are told of every switch.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_FIBER_H_
#define RUNNEL_TESTS_GPU_EMULATOR_FIBER_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct emu_fiber_t emu_fiber_t;

// A fiber that runs |run(arg)| when it is first switched to. |run| must not return. NULL if there
// is no memory for a stack.
emu_fiber_t* emu_fiber_create(void (*run)(void* arg), void* arg);
// The stack that the calling thread runs on.
emu_fiber_t* emu_fiber_of_thread(void);
void emu_fiber_destroy(emu_fiber_t* fiber);

// Leaves |from|, which must be the one that runs, for |to|. Returns when something switches back.
void emu_fiber_switch(emu_fiber_t* from, emu_fiber_t* to);
// Forgets where a suspended fiber stands: the next switch to it runs it from the beginning.
void emu_fiber_restart(emu_fiber_t* fiber);

#endif  // RUNNEL_TESTS_GPU_EMULATOR_FIBER_H_
