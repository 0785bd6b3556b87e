// Inside the emulated driver: its objects, and what its files ask of each other.
//
// One mutex guards everything. Each device has a worker thread, which takes work off the streams'
// queues and runs it without the mutex.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_DRIVER_H_
#define RUNNEL_TESTS_GPU_EMULATOR_DRIVER_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block.h"
#include "emulator.h"
#include "errors.h"

#define EMU_MAX_DEVICES 16
#define EMU_SHARED 49152        // bytes of shared memory per block
#define EMU_MOST_SHARED 232448  // for functions that ask for more
#define EMU_EXPORT __attribute__((visibility("default")))
#define EMU_PROTOTYPE(result, name, parameters) EMU_EXPORT result name parameters;
RN_CUDA_DRIVER_CALLS(EMU_PROTOTYPE)
RN_EMULATED_CALLS(EMU_PROTOTYPE)

// Indexes of the calls.
#define EMU_CALL_ENUM(result, name, parameters) EMU_CALL_##name,
typedef enum emu_call_t {
  RN_CUDA_DRIVER_CALLS(EMU_CALL_ENUM) EMU_CALL_kernel,
  EMU_CALL_copy,
  EMU_CALL_pageable,
  EMU_CALL_COUNT
} emu_call_t;

typedef struct emu_allocation_t {
  struct emu_allocation_t* next;
  char* mapped;  // what munmap takes; guard pages lie around the memory
  size_t mapped_size;
  char* pages;  // what the device may touch
  size_t pages_size;
  char* address;
  size_t size;
} emu_allocation_t;

// A device and its primary context.
typedef struct CUctx_st {
  int ordinal;
  int retained;
  CUresult lost;  // the sticky error
  pthread_t worker;
  bool is_stopping;
  bool is_open;  // it holds the devices' memory accessible
  size_t used;   // bytes
  emu_allocation_t* allocations;
  struct CUstream_st* streams;  // the default stream is the last
  uint64_t pending;             // items that have not completed
  uint64_t random;
} emu_device_t;

typedef enum emu_kind_t {
  EMU_KERNEL,
  EMU_COPY,
  EMU_FILL,
  EMU_RECORD,
  EMU_WAIT,
  EMU_GRAPH,
} emu_kind_t;

// A piece of work in a stream or a graph.
typedef struct emu_item_t {
  struct emu_item_t* next;
  emu_kind_t kind;
  uint64_t number;  // in order of issue, over all streams
  union {
    struct {
      struct CUfunc_st* function;
      rn_emulated_dim3 grid, block;
      unsigned shared;
      void* args;  // owned
    } kernel;
    struct {
      char* to;
      const char* from;
      void* staged;  // owned; |from| points there, or NULL
      size_t size;
      bool is_to_device, is_from_device;
    } copy;
    struct {
      char* to;
      unsigned value;
      size_t width, count;  // bytes per value; values
    } fill;
    struct emu_stamp_t* stamp;  // referenced; NULL: a wait for an event that was never recorded
    struct emu_nodes_t* graph;  // referenced
  };
} emu_item_t;

// Indexes of the nodes that a stream or an event of a capture has come to.
typedef struct emu_frontier_t {
  int* nodes;
  int count;
} emu_frontier_t;

// The nodes of a graph, in an order that respects their dependencies. Shared by a graph, its
// executables and their launches.
typedef struct emu_nodes_t {
  int references;
  int count, capacity;
  emu_item_t** items;
  emu_frontier_t* dependencies;
} emu_nodes_t;

typedef struct emu_capture_t {
  uint64_t id;
  struct CUstream_st* origin;
  emu_nodes_t* nodes;
  int mode;
  pthread_t thread;
  bool is_invalid;
} emu_capture_t;

struct CUstream_st {
  struct CUstream_st* next;
  emu_device_t* device;
  bool is_default, is_blocking;  // blocking streams and the default stream wait for each other
  bool is_destroyed;             // freed when its queue is empty
  bool is_running;               // the head is being run
  emu_item_t *head, **tail;
  emu_capture_t* capture;  // that it takes part in; the origin owns it
  emu_frontier_t frontier;
};

// One record of an event. Waits keep to the record that they were issued for, although the event
// may be recorded again before that has run.
typedef struct emu_stamp_t {
  int references;
  bool is_done;
  double ended;  // when it ran, in milliseconds
} emu_stamp_t;

struct CUevent_st {
  emu_stamp_t* stamp;  // referenced: the last record; NULL: none
  uint64_t capture;    // id of the capture that recorded it last, or 0
  emu_frontier_t frontier;
};

struct CUfunc_st {
  struct CUfunc_st* next;
  struct CUmod_st* module;
  char* name;
  void (*kernel)(const void* args);
  size_t args_size;
  unsigned max_shared;
};

struct CUmod_st {
  emu_device_t* device;
  void* library;
  int file;  // keeps its number, by which dlopen knows the library
  rn_emulated_image_t* image;
  struct CUfunc_st* functions;
};

struct CUgraph_st {
  emu_nodes_t* nodes;
};

struct CUgraphExec_st {
  emu_nodes_t* nodes;
};

typedef struct emu_state_t {
  pthread_mutex_t mutex;
  pthread_cond_t changed;  // anything that someone may wait for
  bool is_initialized, is_paused;
  int device_count;
  size_t memory;     // bytes per device
  bool is_open;      // RN_EMULATED_OPEN: device memory is always accessible
  int fill;          // RN_EMULATED_FILL: the byte in new device memory, or -1
  uint64_t shuffle;  // RN_EMULATED_SHUFFLE: seed, or 0
  bool is_idle;      // RN_EMULATED_IDLE: kernels and fills end without doing anything
  emu_device_t devices[EMU_MAX_DEVICES];
  int opened;  // devices that hold memory accessible
  uint64_t issued, captures;
  int streams, events, modules, graphs, allocations;
  size_t pinned;
} emu_state_t;
extern emu_state_t emu;

// faults.c: counts a call, and fails it if it is to fail.
CUresult emu_enter(emu_call_t call);
CUresult emu_enter_locked(emu_call_t call);
void emu_count_kernel_locked(const char* name);
void emu_read_faults(const char* list);  // "call:nth:result,..."

// driver.c
static inline void emu_lock(void) { pthread_mutex_lock(&emu.mutex); }
static inline void emu_unlock(void) { pthread_mutex_unlock(&emu.mutex); }
// The device of the calling thread's context; an error if there is none or if it is lost.
CUresult emu_current(emu_device_t** out_device);
void emu_lose_locked(emu_device_t* device, CUresult result);
// Begins a function of the driver: counts it, and leaves if it is to fail.
#define EMU_CALL(name)                             \
  do {                                             \
    CUresult entered = emu_enter(EMU_CALL_##name); \
    if (entered != CUDA_SUCCESS) return entered;   \
  } while (0)
#define EMU_RETURN_IF(condition, result) \
  do {                                   \
    if (condition) return (result);      \
  } while (0)
#define EMU_RETURN_IF_ERROR(expression)          \
  do {                                           \
    CUresult result_ = (expression);             \
    if (result_ != CUDA_SUCCESS) return result_; \
  } while (0)

// memory.c
void emu_open_locked(emu_device_t* device);   // before its worker runs work
void emu_close_locked(emu_device_t* device);  // when it has no more
// Whether the range lies in one live allocation of any device.
bool emu_is_device_locked(const void* address, size_t size);
void emu_free_all_locked(emu_device_t* device);

// stream.c
CUresult emu_start_worker(emu_device_t* device);
void emu_stop_worker(emu_device_t* device);
// Appends |item|, which it owns from now on, to the stream's queue or capture.
CUresult emu_issue(CUstream stream, emu_item_t* item);
emu_item_t* emu_item_create(emu_kind_t kind);
void emu_item_destroy_locked(emu_item_t* item);
void emu_wait_idle_locked(emu_device_t* device);
CUresult emu_synchronize(CUstream stream);
// The stream, or the default stream of the current context for NULL.
CUresult emu_stream_of(CUstream stream, CUstream* out_stream);
// Runs one item on |device|; without the mutex.
CUresult emu_run_item(emu_device_t* device, emu_runner_t* runner, const emu_item_t* item);
uint64_t emu_random_locked(emu_device_t* device, uint64_t below);

// event.c
void emu_stamp_release_locked(emu_stamp_t* stamp);  // NULL is fine

// capture.c
extern _Thread_local int emu_thread_captures;  // that forbid unsafe calls on this thread
CUresult emu_capture_append_locked(CUstream stream, emu_item_t* item);
// Fails, and spoils the capture, if the call is not allowed while the stream captures.
CUresult emu_not_captured_locked(CUstream stream);
CUresult emu_may_be_unsafe(void);
CUresult emu_capture_wait_locked(CUstream stream, CUevent event);
void emu_capture_leave_locked(CUstream stream);
bool emu_frontier_copy(emu_frontier_t* to, const emu_frontier_t* from);
void emu_nodes_release_locked(emu_nodes_t* nodes);
CUresult emu_run_graph(emu_device_t* device, emu_runner_t* runner, const emu_nodes_t* nodes);

#endif  // RUNNEL_TESTS_GPU_EMULATOR_DRIVER_H_
