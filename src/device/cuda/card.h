// A card: one NVIDIA GPU of this process, or a part of its memory, shared by all sessions.
//
// A card has one stream for kernels, so its work runs in the order of issue, from any thread.
// That makes memory that the host frees reusable at once: whatever still reads it was issued
// before. Large copies have streams of their own (copies.h), which wait for this one and it for
// them.
#ifndef RUNNEL_DEVICE_CUDA_CARD_H_
#define RUNNEL_DEVICE_CUDA_CARD_H_

#include "base/map.h"
#include "base/sync.h"
#include "base/vec.h"
#include "device/cuda/driver.h"
#include "device/cuda/memory.h"
#include "device/cuda/pinned.h"
#include "device/part.h"

#define RN_CUDA_MAX_CARDS 256  // with the parts of cards

typedef struct rn_cuda_card_t rn_cuda_card_t;

// What a CUDA library keeps with a card (handle, plans, workspace): see rn_cuda_keep.
typedef struct rn_cuda_kept_t {
  void* state;  // NULL: a thread is making it
  void (*destroy)(rn_cuda_card_t* card, void* state);
} rn_cuda_kept_t;

struct rn_cuda_card_t {
  int32_t refs;  // guarded by the table of cards
  int ordinal;   // the driver's number
  int part;      // 0: the whole card; else the number of a virtual device
  rn_cuda_driver_t driver;
  rn_nvrtc_t nvrtc;  // opened by the first compilation; |library| is NULL before
  CUdevice device;
  CUcontext context;
  CUstream stream;
  rn_cuda_memory_t* memory;
  rn_cuda_pinned_t* pinned;
  struct rn_cuda_copies_t* copies;
  char name[64];
  char bus_id[32];
  int major, minor;  // compute capability
  int multiprocessors, threads_per_multiprocessor;
  int max_shared;  // bytes per block
  size_t total_memory;
  rn_mutex_t mutex;    // guards what follows
  rn_map_t functions;  // "file/kernel" or a program's key -> CUfunction; "file/" -> CUmodule
  RN_VEC(CUmodule) modules;
  RN_VEC(CUevent) events;       // idle ones
  RN_VEC(uint64_t) workspaces;  // Owned; the last one is the largest
  size_t workspace_size;        // of the last one
  CUresult lost;                // the error after which the card no longer works; 0: it works
  rn_mutex_t recording_mutex;   // one thread records at a time, and issues what it recorded
  CUstream recording_stream;
  // What recordings share, in the order of their work: see recording.c.
  rn_cuda_memory_t* scratch;
  rn_mutex_t replay_mutex;      // guards the two below, and launches against changes of them
  int64_t recordings;           // that there are
  uint64_t scratch_generation;  // counts recordings after which scratch memory was kept
  rn_mutex_t kept_mutex;        // guards |kept|; no other lock is taken under it
  rn_cond_t kept_changed;
  RN_VEC(rn_cuda_kept_t) kept;
};

// Opens the driver and counts the cards. NOT_FOUND, naming what is missing.
RN_MUST_USE rn_status_t rn_cuda_count(int* out);
// What |report| of the part does: see device/part.h.
RN_MUST_USE rn_status_t rn_cuda_report(rn_part_report_t* out);
// What a device is made of.
typedef struct rn_cuda_choice_t {
  int ordinal;      // the driver's number of the card
  int part;         // see rn_cuda_card_t
  size_t memory;    // most bytes; 0: no limit
  double fraction;  // the same as a part of the card's memory; 0: no limit
} rn_cuda_choice_t;
// What the devices are that |options| ask for, on a machine with |card_count| cards. The caller has
// room for RN_MAX_GPUS. INVALID_ARGUMENT or UNKNOWN, in stock's words, if there is no such machine.
RN_MUST_USE rn_status_t rn_cuda_choose(const rn_gpu_options_t* options, int card_count,
                                       rn_cuda_choice_t* out, int* out_count);
// The card of |choice|, opened on first use. The caller owns a reference. As in stock, the first
// session sets the limit, until no session uses the card.
RN_MUST_USE rn_status_t rn_cuda_card_get(const rn_cuda_choice_t* choice, rn_cuda_card_t** out);
// Releases a reference; the last one gives the memory back. The card itself stays open for the next
// session, because opening one takes a fifth of a second. NULL is fine.
void rn_cuda_card_release(rn_cuda_card_t* card);
// What |transfer_memory| of the part does: page-locked memory of a card that a session uses.
rn_allocator_t rn_cuda_transfer_memory(void);
// Gives back memory of the card and of the host that nothing uses.
void rn_cuda_card_trim(rn_cuda_card_t* card);

// The stream that the calling thread issues work into: the card's, or that of its recording.
CUstream rn_cuda_stream(const rn_cuda_card_t* card);

// |*out| = the card's workspace of at least |size| bytes, for work that the calling thread issues
// next: all work shares it, one after the other. It may be another one when |size| grows, and is
// given back when no session uses the card. False if there is no memory.
bool rn_cuda_workspace(rn_cuda_card_t* card, size_t size, uint64_t* out);
// The same if there is one of this size already, else 0.
uint64_t rn_cuda_known_workspace(rn_cuda_card_t* card, size_t size);

// Makes the card current for the calling thread; every thread does so before it calls the driver.
RN_MUST_USE rn_status_t rn_cuda_enter(rn_cuda_card_t* card);
// OK, or the error of a call, after which the card may be lost.
RN_MUST_USE rn_status_t rn_cuda_check(rn_cuda_card_t* card, CUresult result, const char* call);
#define RN_CARD(card, call, ...) rn_cuda_check((card), (card)->driver.call(__VA_ARGS__), #call)

// An event recorded after all work issued so far, or after that of |stream|. The caller gives it
// back, at any time: streams that wait for it go on waiting.
RN_MUST_USE rn_status_t rn_cuda_mark(rn_cuda_card_t* card, CUevent* out);
RN_MUST_USE rn_status_t rn_cuda_mark_stream(rn_cuda_card_t* card, CUstream stream, CUevent* out);
void rn_cuda_unmark(rn_cuda_card_t* card, CUevent event);
// Returns when the work before |event| has ended: spins first, because most waits are short.
RN_MUST_USE rn_status_t rn_cuda_await(rn_cuda_card_t* card, CUevent event);

// The state that |create| made for the card and that |destroy| will free with it: made at the first
// call with this |destroy|; other threads wait for it meanwhile. |create| may call the driver and
// the functions of this header. A failure is not remembered.
RN_MUST_USE rn_status_t rn_cuda_keep(rn_cuda_card_t* card,
                                     rn_status_t (*create)(rn_cuda_card_t* card, void** out),
                                     void (*destroy)(rn_cuda_card_t* card, void* state),
                                     void** out);

// Opens a library of NVIDIA's that works on the card, as rn_cuda_library_open does. NOT_FOUND also
// if the driver is not one that such libraries can use: an emulated one, for instance.
RN_MUST_USE rn_status_t rn_cuda_card_library(const rn_cuda_card_t* card, const char* const* files,
                                             const char* const* names, size_t count, void* table);

// Device code that was compiled with the part: one image per .cu file.
typedef struct rn_cuda_image_t {
  const char* file;  // "array/gather"
  const void* bytes;
} rn_cuda_image_t;
extern const rn_cuda_image_t rn_cuda_images[];
extern const size_t rn_cuda_image_count;

// The kernel |name| = "folder/file/function" of the images, loaded on first use.
RN_MUST_USE rn_status_t rn_cuda_kernel(rn_cuda_card_t* card, const char* name, CUfunction* out);
// The function |entry| of |image|, remembered under |key|. |image| is NULL: NOT_FOUND unless it is
// remembered.
RN_MUST_USE rn_status_t rn_cuda_program(rn_cuda_card_t* card, rn_str_t key, const char* entry,
                                        const void* image, CUfunction* out);

// The card of a kernel's device.
rn_cuda_card_t* rn_cuda_card_of(const rn_device_t* device);

#endif  // RUNNEL_DEVICE_CUDA_CARD_H_
