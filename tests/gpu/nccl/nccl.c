// An emulated NCCL on the emulated driver, for ranks of one or several processes. It is strict: two
// ranks on one card, calls outside of a group, and sends without receipts are refused. Calls are
// not blocking.
//
// Settings, from the environment: EMULATED_NCCL_VERSION is what it says its version is;
// EMULATED_NCCL_CORRUPT=1 makes ids that nobody can connect by; EMULATED_NCCL_FAIL=N: the N-th
// operation of a rank has an error; EMULATED_NCCL_STALL=N: a rank never comes to its N-th
// operation; the file EMULATED_NCCL_COUNT grows by a byte per operation of a rank.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "emulated_image.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/libs/nccl_api.h"

// After the types of its members:
#include "nccl_args.h"

#define UNHANDLED_CUDA_ERROR 1
#define SYSTEM_ERROR 2
#define INVALID_ARGUMENT 4
#define INVALID_USAGE 5
#define REMOTE_ERROR 6
#define PREFIX "/emulated_nccl_"

struct ncclComm {
  struct ncclComm* next;  // of all: they are never freed, because a kernel may still look
  emulated_shared* shared;
  char name[sizeof((ncclUniqueId*)0)->internal];  // of the shared file, until all have joined
  CUcontext context;
  CUfunction function;
  i32 rank, size, is_aborted;
  u64 operations;
  ncclResult_t error;
  emulated_nccl_args args;  // of the group that has begun
  CUstream stream;
  bool is_issued;
  int sends, receives;
};

static struct ncclComm* _Atomic all;
// The group of the calling thread.
static _Thread_local int depth, issued_count;
static _Thread_local struct ncclComm* issued[EMULATED_RANKS];

#define CALL(result, name, parameters) \
  result name parameters;              \
  __attribute__((visibility("default"))) result name parameters
#define DRIVER(result, name, parameters) extern result name parameters;
RN_CUDA_DRIVER_CALLS(DRIVER)

static long setting(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? atol(text) : otherwise;
}

CALL(ncclResult_t, ncclGetVersion, (int* version)) {
  *version = (int)setting("EMULATED_NCCL_VERSION", 22100);
  return ncclSuccess;
}
CALL(const char*, ncclGetErrorString, (ncclResult_t result)) {
  static const char* const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return result >= 0 && result < 8 ? texts[result] : "unknown result code";
}

CALL(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id)) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%s%d_%lld_%ld",
           setting("EMULATED_NCCL_CORRUPT", 0) ? "corrupt" : PREFIX, (int)getpid(),
           (long long)now.tv_sec, now.tv_nsec);
  return ncclSuccess;
}

static ncclResult_t join(struct ncclComm* comm, const ncclUniqueId* id) {
  CUdevice device = 0;
  CUuuid uuid;
  const size_t size = sizeof *comm->shared + EMULATED_RANKS * EMULATED_AREA;
  if (strncmp(id->internal, PREFIX, sizeof PREFIX - 1) != 0 ||
      !memchr(id->internal, 0, sizeof id->internal))
    return INVALID_ARGUMENT;
  memcpy(comm->name, id->internal, sizeof comm->name);
  const int file = shm_open(id->internal, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)size)) return SYSTEM_ERROR;
  comm->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (comm->shared == MAP_FAILED) return SYSTEM_ERROR;
  memcpy(&device, comm->context, sizeof device);  // the emulated driver's contexts begin with it
  if (cuDeviceGetUuid(&uuid, device)) return UNHANDLED_CUDA_ERROR;
  memcpy(comm->shared->cards[comm->rank], uuid.bytes, 16);
  if (__atomic_add_fetch(&comm->shared->joined, 1, __ATOMIC_SEQ_CST) == (u64)comm->size)
    shm_unlink(id->internal);
  return ncclSuccess;
}

CALL(ncclResult_t, ncclCommInitRankConfig,
     (ncclComm_t * out, int size, ncclUniqueId id, int rank, ncclConfig_t* config)) {
  CUmodule module = NULL;
  if (size < 1 || size > EMULATED_RANKS || rank < 0 || rank >= size || !config ||
      config->magic != NCCL_CONFIG_MAGIC || config->size != sizeof *config || config->blocking)
    return INVALID_ARGUMENT;
  struct ncclComm* comm = calloc(1, sizeof *comm);
  *out = comm;
  do comm->next = all;
  while (!atomic_compare_exchange_weak(&all, &comm->next, comm));
  comm->rank = rank;
  comm->size = size;
  if (cuCtxGetCurrent(&comm->context) || !comm->context) return UNHANDLED_CUDA_ERROR;
  char* bytes = read_emulated_image(EMULATED_IMAGE);
  CUresult result = bytes ? cuModuleLoadData(&module, bytes) : CUDA_ERROR_NOT_FOUND;
  if (!result) result = cuModuleGetFunction(&comm->function, module, "emulated_nccl");
  free(bytes);
  comm->error = result ? UNHANDLED_CUDA_ERROR : join(comm, &id);
  return comm->error ? comm->error : ncclInProgress;
}

CALL(ncclResult_t, ncclCommAbort, (ncclComm_t comm)) {
  __atomic_store_n(&comm->is_aborted, 1, __ATOMIC_SEQ_CST);
  if (*comm->name) shm_unlink(comm->name);  // nobody joins any more
  return ncclSuccess;
}

CALL(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* error)) {
  if (comm->is_aborted) return INVALID_ARGUMENT;
  *error = comm->error;
  if (comm->error) return ncclSuccess;
  if (__atomic_load_n(&comm->shared->joined, __ATOMIC_SEQ_CST) < (u64)comm->size) {
    *error = ncclInProgress;
    return ncclSuccess;
  }
  for (int a = 0; a < comm->size; ++a)
    for (int b = 0; b < a; ++b)
      if (memcmp(comm->shared->cards[a], comm->shared->cards[b], 16) == 0) *error = INVALID_USAGE;
  return ncclSuccess;
}

// Groups.

static void count_operation(void) {
  const char* path = getenv("EMULATED_NCCL_COUNT");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  if (file < 0) return;
  if (write(file, ".", 1) != 1) abort();
  close(file);
}

static ncclResult_t launch(struct ncclComm* comm) {
  CUcontext before = NULL;
  emulated_nccl_args* args = &comm->args;
  size_t size = sizeof *args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  ++comm->operations;
  count_operation();
  if (args->kind == EMULATED_MOVE && (comm->sends != comm->size || comm->receives != comm->size))
    return INVALID_USAGE;
  if ((long)comm->operations == setting("EMULATED_NCCL_FAIL", -1)) return REMOTE_ERROR;
  args->stalls = (long)comm->operations == setting("EMULATED_NCCL_STALL", -1);
  args->barrier = 2 * comm->operations - 1;
  args->shared = comm->shared;
  args->is_aborted = &comm->is_aborted;
  args->rank = comm->rank;
  args->size = comm->size;
  cuCtxGetCurrent(&before);
  CUresult result = cuCtxSetCurrent(comm->context);
  if (!result)
    result = cuLaunchKernel(comm->function, 1, 1, 1, 1, 1, 1, 0, comm->stream, NULL, extra);
  cuCtxSetCurrent(before);
  return result ? UNHANDLED_CUDA_ERROR : ncclSuccess;
}

CALL(ncclResult_t, ncclGroupStart, (void)) {
  depth++;
  return ncclSuccess;
}
CALL(ncclResult_t, ncclGroupEnd, (void)) {
  if (!depth) return INVALID_USAGE;
  if (--depth) return ncclSuccess;
  while (issued_count) {
    struct ncclComm* comm = issued[--issued_count];
    comm->is_issued = false;
    comm->error = launch(comm);
    comm->sends = comm->receives = 0;
    memset(&comm->args, 0, sizeof comm->args);
  }
  return ncclInProgress;
}

// Elements that an area has room for.
static size_t room_for(int type) { return EMULATED_AREA / (type == ncclInt8 ? 1 : 8); }

static ncclResult_t enter(ncclComm_t comm, CUstream stream) {
  if (!depth || comm->is_aborted || comm->is_issued || issued_count == EMULATED_RANKS)
    return INVALID_USAGE;
  issued[issued_count++] = comm;
  comm->stream = stream;
  comm->is_issued = true;
  return ncclInProgress;
}

static ncclResult_t issue(ncclComm_t comm, CUstream stream, emulated_nccl_args args) {
  if (args.count > room_for(args.type)) return INVALID_ARGUMENT;
  comm->args = args;
  return enter(comm, stream);
}

CALL(ncclResult_t, ncclAllReduce,
     (const void* from, void* to, size_t count, int type, int op, ncclComm_t comm,
      CUstream stream)) {
  return issue(
      comm, stream,
      (emulated_nccl_args){
          .kind = EMULATED_REDUCE, .type = type, .op = op, .count = count, .from = from, .to = to});
}
CALL(ncclResult_t, ncclReduceScatter,
     (const void* from, void* to, size_t count, int type, int op, ncclComm_t comm,
      CUstream stream)) {
  return issue(comm, stream,
               (emulated_nccl_args){.kind = EMULATED_SCATTER,
                                    .type = type,
                                    .op = op,
                                    .count = count * (size_t)comm->size,
                                    .from = from,
                                    .to = to});
}
CALL(ncclResult_t, ncclAllGather,
     (const void* from, void* to, size_t count, int type, ncclComm_t comm, CUstream stream)) {
  return issue(comm, stream,
               (emulated_nccl_args){
                   .kind = EMULATED_GATHER, .type = type, .count = count, .from = from, .to = to});
}
CALL(ncclResult_t, ncclBroadcast,
     (const void* from, void* to, size_t count, int type, int root, ncclComm_t comm,
      CUstream stream)) {
  if (root < 0 || root >= comm->size) return INVALID_ARGUMENT;
  return issue(comm, stream,
               (emulated_nccl_args){.kind = EMULATED_BROADCAST,
                                    .type = type,
                                    .root = root,
                                    .count = count,
                                    .from = from,
                                    .to = to});
}

// A group has a send to each rank and a receipt from each, of one size.
static ncclResult_t move(ncclComm_t comm, size_t count, int type, int peer, CUstream stream) {
  bool is_first = !comm->is_issued;
  if (!depth || comm->is_aborted || peer < 0 || peer >= comm->size ||
      count > room_for(type) / (size_t)comm->size)
    return INVALID_USAGE;
  if (!is_first &&
      (comm->args.kind != EMULATED_MOVE || comm->args.count != count || comm->stream != stream))
    return INVALID_USAGE;
  comm->args.kind = EMULATED_MOVE;
  comm->args.type = type;
  comm->args.count = count;
  return is_first ? enter(comm, stream) : ncclInProgress;
}
CALL(ncclResult_t, ncclSend,
     (const void* from, size_t count, int type, int peer, ncclComm_t comm, CUstream stream)) {
  ncclResult_t result = move(comm, count, type, peer, stream);
  if (result == ncclInProgress && comm->args.sent[peer]) return INVALID_USAGE;
  if (result == ncclInProgress) comm->args.sent[peer] = from, comm->sends++;
  return result;
}
CALL(ncclResult_t, ncclRecv,
     (void* to, size_t count, int type, int peer, ncclComm_t comm, CUstream stream)) {
  ncclResult_t result = move(comm, count, type, peer, stream);
  if (result == ncclInProgress && comm->args.received[peer]) return INVALID_USAGE;
  if (result == ncclInProgress) comm->args.received[peer] = to, comm->receives++;
  return result;
}
