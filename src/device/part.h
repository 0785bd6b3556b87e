// A device part: a shared library beside this one that brings devices of one type and their
// kernels. The CUDA part is the only one so far.
//
// The part carries its own copy of the core functions that it calls and shares no state with the
// library, only structs. So both must come from one build: |version| and |sizes| are compared.
#ifndef RUNNEL_DEVICE_PART_H_
#define RUNNEL_DEVICE_PART_H_

#include "device/device.h"
#include "framework/kernel.h"

#define RN_MAX_GPUS 32  // more than any machine has

// What a session's ConfigProto says about its accelerators. Memory is always taken as it is needed,
// up to the limit, whatever allow_growth says.
typedef struct rn_gpu_options_t {
  int max_count;              // device_count["GPU"]; -1: as many as there are
  double memory_fraction;     // per_process_gpu_memory_fraction of a card's memory; 0: no limit
  char visible_devices[128];  // visible_device_list: "1,0"; "": all
  // virtual_devices: how many cards it splits, in their visible order, and the parts of all of
  // them.
  int split_count, virtual_count;
  struct rn_virtual_gpu_t {
    int32_t card;    // place among the visible ones
    int64_t memory;  // most bytes; 0: no limit
  } virtuals[RN_MAX_GPUS];
} rn_gpu_options_t;

// Arguments of |create_devices|, borrowed for the call.
typedef struct rn_part_init_t {
  const rn_gpu_options_t* options;
  rn_str_t name_prefix;
  const rn_env_t* env;  // must outlive the devices
  rn_allocator_t allocator;
} rn_part_init_t;

// The priority of a part's row that runs only nodes which ask for the device: without a wish they
// go to the CPU, as do nodes that share state with them.
#define RN_PRIORITY_ON_REQUEST (-2)

// An op for which the part uses the CPU's kernels: they touch no bytes of the device, or only by
// rn_device_copy and the functions of kernels/cpu/device_moves.h.
typedef struct rn_part_row_t {
  const char* op;
  bool moves;                // issues work, for elements that are plain bytes
  bool assigns;              // issues copies into variables
  bool is_plain;             // only for elements that are plain bytes
  bool is_variant;           // only for variants
  bool on_host;              // all arguments are in host memory
  bool on_request;           // see RN_PRIORITY_ON_REQUEST
  bool allocates;            // other memory in each call, so that its work cannot be replayed
  bool of_step;              // what it keeps ends with the step: see RN_KERNEL_REPEATS
  const char* int32_attr;    // not NULL: for int32 values of this attribute, all in host memory
  const char* host_args[6];  // otherwise: arguments in host memory
} rn_part_row_t;

// What a part finds on this machine, for people: the GPUs of the driver, and the libraries that it
// opens at run time.
#define RN_PART_MAX_LIBRARIES 9
typedef struct rn_part_gpu_t {
  char name[64], bus_id[32];
  int major, minor;  // compute capability
  int multiprocessors;
  size_t memory;  // bytes
} rn_part_gpu_t;
typedef struct rn_part_library_t {
  const char* use;   // what it is for
  const char* file;  // looked for first
  char found[512];   // the file that was found; "": none
} rn_part_library_t;
typedef struct rn_part_report_t {
  int driver_version;  // 13000 is CUDA 13.0; 0: unknown
  rn_part_gpu_t gpus[RN_MAX_GPUS];
  int gpu_count;
  rn_part_library_t libraries[RN_PART_MAX_LIBRARIES];
  int library_count;
} rn_part_report_t;

// Marks in the numbers that |loop_code| gives; the rest is the device's own.
enum {
  RN_LOOP_REDUCES = 0x8000,  // reduces its first input over the axes of its second, or, if there is
                             // none, over all but the last
  RN_LOOP_FOLDS = 0x4000,    // joins any number of inputs by the operation of two
  RN_LOOP_CASTS = 0x2000,    // converts to the type of its result
  RN_LOOP_REPEATS = 0x1000,  // broadcasts its first input to the shape of its result
};

// Memory of a card that another process of this machine shares.
typedef struct rn_peer_memory_t rn_peer_memory_t;
#define RN_PEER_HANDLE 64  // bytes of the handle that stands for it, a cudaIpcMemHandle_t
typedef struct rn_peer_memory_ops_t {
  // |card| is the driver's number. INVALID_ARGUMENT if there is no such card, or |handle|, of
  // RN_PEER_HANDLE bytes, is not one for |size| bytes; NOT_FOUND if this machine has no cards.
  rn_status_t (*open)(int64_t card, const char* handle, size_t size, rn_peer_memory_t** out);
  // Copies |size| bytes at |offset|, within those that were opened, to |host| or from there.
  rn_status_t (*copy)(rn_peer_memory_t* memory, size_t offset, void* host, size_t size,
                      bool to_host);
  void (*close)(rn_peer_memory_t* memory);  // NULL is fine
} rn_peer_memory_ops_t;

typedef struct rn_device_part_t {
  const char* version;
  uint32_t sizes[6];                         // see RN_PART_SIZES
  const char* type;                          // of its devices: "GPU"
  const rn_kernel_family_t* const* kernels;  // NULL-terminated
  const rn_part_row_t* shared;               // ends with a row without an op
  // The number under which step/fuse_loops.c may write |op| into a program, for |vector_op| of its
  // rows; 0: none.
  rn_vector_op_t (*loop_code)(const char* op);
  // Appends to |*out|, which the caller has allocated for |room| devices. NOT_FOUND, naming what is
  // missing, if this machine has none.
  rn_status_t (*create_devices)(const rn_part_init_t* init, int room, rn_device_t** out,
                                int* out_count);
  // Fills |*out| as far as it gets; the status is why GPUs cannot be used.
  rn_status_t (*report)(rn_part_report_t* out);
  // Host memory that devices of this type copy from and to fastest; |fn| is NULL if no session uses
  // one now. It works until the last block is freed.
  rn_allocator_t (*transfer_memory)(void);
  const rn_peer_memory_ops_t* peers;
  const struct rn_comm_library_t* comms;  // device/comm.h
} rn_device_part_t;

// Registers the CPU's rows that |part->shared| lists for |part->type|.
RN_MUST_USE rn_status_t rn_device_part_share(const rn_device_part_t* part);

#define RN_PART_SIZES                                                                           \
  {                                                                                             \
    sizeof(rn_device_t), sizeof(rn_kernel_def_t), sizeof(rn_kernel_t), sizeof(rn_kernel_ctx_t), \
        sizeof(rn_device_vtable_t), sizeof(rn_device_part_t)                                    \
  }

// The function that a part exports under this name.
#define RN_PART_SYMBOL "rn_device_part"
typedef const rn_device_part_t* (*rn_device_part_fn_t)(void);

// The devices of a session or a server: |cpus| CPUs (at least one, first), |nulls| null devices,
// those of plug-ins (device/factory.h), and the GPUs of this machine that |gpu| allows.
typedef struct rn_devices_init_t {
  rn_allocator_t allocator;
  const rn_env_t* env;  // must outlive the devices
  rn_str_t name_prefix;
  int cpus, nulls;
  const rn_gpu_options_t* gpu;              // NULL: no GPUs
  const struct rn_device_counts_t* counts;  // of the devices of plug-ins; NULL: all of them
} rn_devices_init_t;
// On success the caller owns |*out|, an array of |*out_count| devices.
RN_MUST_USE rn_status_t rn_devices_create(const rn_devices_init_t* init, rn_device_t*** out,
                                          int* out_count);
void rn_devices_destroy(rn_allocator_t allocator, rn_device_t** devices, int count);

// The CUDA part, loaded and its kernels registered by the first call in the process. NULL if there
// is none or it cannot be used; the first call then says why in one line of the log.
const rn_device_part_t* rn_cuda_part(const rn_env_t* env);
// The same, and why there is none: NOT_FOUND, naming the file looked for, or what is wrong with it.
RN_MUST_USE rn_status_t rn_cuda_part_load(const rn_device_part_t** out);
// Whether this process knows the kernels of GPUs, for placing nodes on those of other machines.
// Loads the part for them even if this machine has no driver; otherwise the first call says in one
// line of the log what is missing.
bool rn_cuda_part_kernels(const rn_env_t* env);
// Whether it is loaded already.
bool rn_cuda_part_is_open(void);
// The part's |transfer_memory|, if it was loaded.
rn_allocator_t rn_cuda_part_transfer_memory(void);
// Says in the log that GPUs are not used and why, once per process.
void rn_cuda_part_warn(const rn_env_t* env, rn_status_t status);

#endif  // RUNNEL_DEVICE_PART_H_
