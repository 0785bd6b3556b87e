// Threads of a block: see block.h.
//
// A fiber runs threads one after the other as plain calls, until one of them must wait. That thread
// keeps the fiber; another fiber goes on with the threads that have not begun. So a kernel without
// barriers runs on one fiber, and a thread costs a call.
#include "block.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"

#define MAX_WARPS (EMU_MAX_THREADS / RN_EMULATED_WARP)

typedef enum wait_t { WAIT_NOT, WAIT_BARRIER, WAIT_WARP } wait_t;

typedef struct emu_thread_t {
  wait_t wait;
  bool is_done;
  emu_fiber_t* fiber;  // that the thread runs on
  // What it brought to the barrier or exchange, and what it takes away.
  rn_emulated_op_t op;
  unsigned mask, operand, width;
  uint64_t value, result;
  int waited;
} emu_thread_t;

struct emu_runner_t {
  bool is_reversed;
  const emu_launch_t* launch;
  emu_fiber_t* scheduler;
  emu_fiber_t* fibers[EMU_MAX_THREADS];
  emu_fiber_t* idle[EMU_MAX_THREADS];  // those that no thread keeps
  int fiber_count, idle_count;
  emu_fiber_t* running;
  emu_thread_t threads[EMU_MAX_THREADS];
  int count, begun, current;          // threads of the block; those that began; the one that runs
  int live, at_barrier, in_exchange;  // of those that have not ended
  unsigned live_lanes[MAX_WARPS];
  bool is_trapped;
};

static _Thread_local emu_runner_t* the_runner;  // of the worker that calls

static void set_current(emu_runner_t* runner, int thread) {
  rn_emulated_image_t* image = runner->launch->image;
  rn_emulated_dim3 size = runner->launch->block;
  unsigned index = (unsigned)thread;
  runner->current = thread;
  if (size.y == 1 && size.z == 1) {
    image->thread = (rn_emulated_dim3){index, 0, 0};
  } else {
    image->thread =
        (rn_emulated_dim3){index % size.x, index / size.x % size.y, index / size.x / size.y};
  }
}

static void release_barrier(emu_runner_t* runner) {
  if (!runner->at_barrier || runner->at_barrier < runner->live) return;
  int sum = 0;
  for (int i = 0; i < runner->count; ++i)
    if (runner->threads[i].wait == WAIT_BARRIER) sum += runner->threads[i].value != 0;
  for (int i = 0; i < runner->count; ++i) {
    emu_thread_t* thread = &runner->threads[i];
    if (thread->wait != WAIT_BARRIER) continue;
    thread->wait = WAIT_NOT;
    thread->result = (uint64_t)sum;
    thread->waited = runner->at_barrier;
  }
  runner->at_barrier = 0;
}

// The lane that a shuffle of |lane| reads.
static unsigned source_of(const emu_thread_t* thread, unsigned lane) {
  unsigned width = thread->width, first = lane & ~(width - 1), last = first + width - 1;
  unsigned operand = thread->operand;
  switch (thread->op) {
    case RN_EMULATED_SHUFFLE:
      return first | (operand & (width - 1));
    case RN_EMULATED_SHUFFLE_UP:
      return operand <= lane - first ? lane - operand : lane;
    case RN_EMULATED_SHUFFLE_DOWN:
      return operand <= last - lane ? lane + operand : lane;
    default:
      return (lane ^ operand) <= last ? lane ^ operand : lane;
  }
}

static uint32_t combine(rn_emulated_op_t op, uint32_t a, uint32_t b) {
  switch (op) {
    case RN_EMULATED_ADD:
      return a + b;
    case RN_EMULATED_AND:
      return a & b;
    case RN_EMULATED_OR:
      return a | b;
    case RN_EMULATED_XOR:
      return a ^ b;
    case RN_EMULATED_MIN:
      return a < b ? a : b;
    case RN_EMULATED_MAX:
      return a > b ? a : b;
    case RN_EMULATED_MIN_SIGNED:
      return (int32_t)a < (int32_t)b ? a : b;
    default:
      return (int32_t)a > (int32_t)b ? a : b;
  }
}

// The result of |lane|, when the lanes |present| of a warp have come together.
static uint64_t result_of(const emu_thread_t* warp, unsigned lane, unsigned present) {
  const emu_thread_t* thread = &warp[lane];
  uint32_t bits = 0, total = 0;
  bool is_first = true;
  switch (thread->op) {
    case RN_EMULATED_SYNC:
      return 0;
    case RN_EMULATED_SHUFFLE:
    case RN_EMULATED_SHUFFLE_UP:
    case RN_EMULATED_SHUFFLE_DOWN:
    case RN_EMULATED_SHUFFLE_XOR: {
      unsigned source = source_of(thread, lane);
      // A lane that did not come has nothing to read; on the GPU the value is undefined.
      return present >> source & 1 ? warp[source].value : UINT64_MAX;
    }
    case RN_EMULATED_BALLOT:
    case RN_EMULATED_MATCH:
      for (unsigned i = 0; i < RN_EMULATED_WARP; ++i) {
        if (!(present >> i & 1)) continue;
        uint64_t value = warp[i].value;
        bits |= (uint32_t)(thread->op == RN_EMULATED_BALLOT ? value : value == thread->value) << i;
      }
      return bits;
    default:
      for (unsigned i = 0; i < RN_EMULATED_WARP; ++i) {
        if (!(present >> i & 1)) continue;
        uint32_t value = (uint32_t)warp[i].value;
        total = is_first ? value : combine(thread->op, total, value);
        is_first = false;
      }
      return total;
  }
}

// Lets the lanes go that |thread| waits for in its warp, if all have come.
static void release_warp(emu_runner_t* runner, int index) {
  int first = index & ~(RN_EMULATED_WARP - 1);
  emu_thread_t* warp = &runner->threads[first];
  const emu_thread_t* thread = &runner->threads[index];
  unsigned mask = thread->mask;
  rn_emulated_op_t op = thread->op;
  unsigned present = mask & runner->live_lanes[first / RN_EMULATED_WARP];
  for (unsigned i = 0; i < RN_EMULATED_WARP; ++i) {
    if (!(present >> i & 1)) continue;
    if (warp[i].wait != WAIT_WARP || warp[i].mask != mask || warp[i].op != op) return;
  }
  for (unsigned i = 0; i < RN_EMULATED_WARP; ++i)
    if (present >> i & 1) warp[i].result = result_of(warp, i, present);
  for (unsigned i = 0; i < RN_EMULATED_WARP; ++i) {
    if (!(present >> i & 1)) continue;
    warp[i].wait = WAIT_NOT;
    --runner->in_exchange;
  }
}

static void end_thread(emu_runner_t* runner, int index) {
  runner->threads[index].is_done = true;
  --runner->live;
  int warp = index / RN_EMULATED_WARP, first = warp * RN_EMULATED_WARP;
  runner->live_lanes[warp] &= ~(1u << (index - first));
  if (runner->at_barrier) release_barrier(runner);
  for (int i = 0; runner->in_exchange && i < RN_EMULATED_WARP && first + i < runner->count; ++i)
    if (runner->threads[first + i].wait == WAIT_WARP) release_warp(runner, first + i);
}

// Suspends the thread that runs until it waits no longer.
static void wait_here(emu_runner_t* runner, emu_thread_t* thread) {
  if (thread->wait == WAIT_NOT) return;
  thread->fiber = runner->running;
  emu_fiber_switch(runner->running, runner->scheduler);
}

static int barrier(int predicate, int* out_waited) {
  emu_runner_t* runner = the_runner;
  emu_thread_t* thread = &runner->threads[runner->current];
  thread->value = (uint64_t)predicate;
  thread->wait = WAIT_BARRIER;
  ++runner->at_barrier;
  release_barrier(runner);
  wait_here(runner, thread);
  *out_waited = thread->waited;
  return (int)thread->result;
}

static void trap(void) {
  emu_runner_t* runner = the_runner;
  runner->is_trapped = true;
  fprintf(stderr, "emulated GPU: kernel %s called __trap\n", runner->launch->name);
  emu_fiber_switch(runner->running, runner->scheduler);
}

static unsigned lane_of(void) { return (unsigned)the_runner->current % RN_EMULATED_WARP; }

static unsigned long long exchange(rn_emulated_op_t op, unsigned mask, unsigned long long value,
                                   unsigned operand, unsigned width) {
  emu_runner_t* runner = the_runner;
  emu_thread_t* thread = &runner->threads[runner->current];
  bool is_width = width && width <= RN_EMULATED_WARP && (width & (width - 1)) == 0;
  if (!(mask >> lane_of() & 1) || !is_width) {
    fprintf(stderr, "emulated GPU: kernel %s: mask %08x or width %u of a warp exchange is wrong\n",
            runner->launch->name, mask, width);
    trap();
  }
  thread->op = op;
  thread->mask = mask;
  thread->value = value;
  thread->operand = operand;
  thread->width = width;
  thread->wait = WAIT_WARP;
  ++runner->in_exchange;
  release_warp(runner, runner->current);
  wait_here(runner, thread);
  return thread->result;
}

static void run_threads(void* arg) {
  emu_runner_t* runner = arg;
  for (;;) {
    emu_fiber_t* self = runner->running;
    while (runner->begun < runner->count) {
      int number = runner->begun++;
      int index = runner->is_reversed ? runner->count - 1 - number : number;
      runner->threads[index].fiber = NULL;
      set_current(runner, index);
      runner->launch->kernel(runner->launch->args);
      end_thread(runner, runner->current);
    }
    runner->idle[runner->idle_count++] = self;
    emu_fiber_switch(self, runner->scheduler);
  }
}

static void resume(emu_runner_t* runner, emu_fiber_t* fiber) {
  runner->running = fiber;
  emu_fiber_switch(runner->scheduler, fiber);
}

// Begins threads until all have begun. False if there is no memory for a stack.
static bool begin_threads(emu_runner_t* runner) {
  while (runner->begun < runner->count && !runner->is_trapped) {
    if (!runner->idle_count) {
      emu_fiber_t* fiber = emu_fiber_create(run_threads, runner);
      if (!fiber) return false;
      runner->fibers[runner->fiber_count++] = fiber;
      runner->idle[runner->idle_count++] = fiber;
    }
    resume(runner, runner->idle[--runner->idle_count]);
  }
  return true;
}

static CUresult fail(emu_runner_t* runner) {
  if (!runner->is_trapped) {
    rn_emulated_dim3 block = runner->launch->image->block;
    fprintf(
        stderr,
        "emulated GPU: kernel %s, block (%u, %u, %u): of %d threads, %d wait at a barrier and %d "
        "in a warp for others that never come\n",
        runner->launch->name, block.x, block.y, block.z, runner->live, runner->at_barrier,
        runner->in_exchange);
  }
  runner->idle_count = 0;
  for (int i = 0; i < runner->fiber_count; ++i) {
    emu_fiber_restart(runner->fibers[i]);
    runner->idle[runner->idle_count++] = runner->fibers[i];
  }
  return EMU_LAUNCH_FAILED;
}

static CUresult run_block(emu_runner_t* runner) {
  runner->live = runner->count;
  runner->begun = runner->at_barrier = runner->in_exchange = 0;
  runner->is_trapped = false;
  for (int i = 0; i < runner->count; ++i) {
    runner->threads[i].is_done = false;
    runner->threads[i].wait = WAIT_NOT;
  }
  for (int i = 0; i < runner->count; i += RN_EMULATED_WARP) {
    int lanes = runner->count - i;
    runner->live_lanes[i / RN_EMULATED_WARP] = lanes >= 32 ? UINT32_MAX : (1u << lanes) - 1;
  }
  if (!begin_threads(runner)) return EMU_OUT_OF_MEMORY;
  while (runner->live > 0 && !runner->is_trapped) {
    bool has_moved = false;
    for (int i = 0; i < runner->count && !runner->is_trapped; ++i) {
      int index = runner->is_reversed ? runner->count - 1 - i : i;
      emu_thread_t* thread = &runner->threads[index];
      if (thread->is_done || thread->wait != WAIT_NOT) continue;
      has_moved = true;
      set_current(runner, index);
      resume(runner, thread->fiber);
    }
    if (!has_moved) return fail(runner);
  }
  return runner->is_trapped ? fail(runner) : CUDA_SUCCESS;
}

static CUresult run_grid(emu_runner_t* runner) {
  const emu_launch_t* launch = runner->launch;
  rn_emulated_image_t* image = launch->image;
  CUresult result = CUDA_SUCCESS;
  for (unsigned z = 0; z < launch->grid.z; ++z)
    for (unsigned y = 0; y < launch->grid.y; ++y)
      for (unsigned x = 0; x < launch->grid.x && result == CUDA_SUCCESS; ++x) {
        image->block = (rn_emulated_dim3){x, y, z};
        // Shared memory holds nothing of use at first; as floats, these bytes are NaN.
        if (launch->shared) memset(image->shared, 0xff, launch->shared);
        result = run_block(runner);
      }
  return result;
}

CUresult emu_runner_run(emu_runner_t* runner, const emu_launch_t* launch) {
  rn_emulated_image_t* image = launch->image;
  void* shared = NULL;
  if (launch->shared && posix_memalign(&shared, 128, launch->shared) != 0) return EMU_OUT_OF_MEMORY;
  the_runner = runner;
  runner->launch = launch;
  runner->count = (int)(launch->block.x * launch->block.y * launch->block.z);
  *image = (rn_emulated_image_t){.block_dim = launch->block,
                                 .grid_dim = launch->grid,
                                 .shared = shared,
                                 .barrier = barrier,
                                 .exchange = exchange,
                                 .lane = lane_of,
                                 .trap = trap};
  CUresult result = run_grid(runner);
  image->shared = NULL;
  free(shared);
  return result;
}

emu_runner_t* emu_runner_create(bool is_reversed) {
  emu_runner_t* runner = calloc(1, sizeof *runner);
  if (!runner) return NULL;
  runner->is_reversed = is_reversed;
  runner->scheduler = emu_fiber_of_thread();
  if (runner->scheduler) return runner;
  free(runner);
  return NULL;
}

void emu_runner_destroy(emu_runner_t* runner) {
  if (!runner) return;
  for (int i = 0; i < runner->fiber_count; ++i) emu_fiber_destroy(runner->fibers[i]);
  emu_fiber_destroy(runner->scheduler);
  free(runner);
}
