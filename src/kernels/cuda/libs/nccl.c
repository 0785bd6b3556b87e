// Collectives by NCCL: see nccl.h.
//
// Communicators are not blocking, so that every call returns and what hangs can be aborted: after a
// call, NCCL is asked how it is doing until it is done.
#include "kernels/cuda/libs/nccl.h"

#include <sched.h>
#include <time.h>

#include "device/cuda/card.h"
#include "kernels/cuda/libs/nccl_api.h"

// How often a waiting thread asks at once, and how long it sleeps in between after that.
#define LOOKS 2000
#define PAUSE_NS 50000

typedef struct nccl_table_t {
  void* library;
  RN_NCCL_CALLS(RN_CUDA_POINTER)
} nccl_table_t;

// Kept with a card.
typedef struct nccl_t {
  nccl_table_t api;
  int version;
  rn_status_t missing;  // why it cannot be used; Owned
} nccl_t;

struct rn_comm_t {
  const nccl_t* nccl;  // of the first card, like the functions
  int32_t count, size;
  rn_cuda_card_t** cards;  // by member, like the next; Owned arrays
  int32_t* ranks;
  ncclComm_t* comms;  // NULL: not connected
};

static rn_status_t check(const nccl_t* nccl, ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return RN_OK;
  return rn_internal("%s: %s", call, nccl->api.ncclGetErrorString(result));
}
#define NCCL(nccl, call, ...) check((nccl), (nccl)->api.call(__VA_ARGS__), #call)

static rn_status_t open_library(rn_cuda_card_t* card, nccl_t* nccl) {
  static const char* const files[] = {RN_NCCL_FILES};
  static const char* const names[] = {RN_NCCL_CALLS(RN_CUDA_NAME)};
  RN_RETURN_IF_ERROR(
      rn_cuda_card_library(card, files, names, sizeof names / sizeof *names, &nccl->api));
  RN_RETURN_IF_ERROR(NCCL(nccl, ncclGetVersion, &nccl->version));
  if (nccl->version / 10000 == NCCL_MAJOR) return RN_OK;
  return rn_not_found("%s is of version %d.%d, not %d", files[0], nccl->version / 10000,
                      nccl->version / 100 % 100, NCCL_MAJOR);
}

static rn_status_t create_state(rn_cuda_card_t* card, void** out) {
  nccl_t* nccl = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &nccl));
  nccl->missing = open_library(card, nccl);
  *out = nccl;
  return RN_OK;
}

static void destroy_state(rn_cuda_card_t* card, void* state) {
  (void)card;
  nccl_t* nccl = state;
  rn_status_free(nccl->missing);
  rn_cuda_library_close(nccl->api.library);
  RN_FREE(rn_allocator_system(), nccl);
}

static rn_status_t nccl_of(rn_device_t* device, nccl_t** out) {
  RN_RETURN_IF_ERROR(
      rn_cuda_keep(rn_cuda_card_of(device), create_state, destroy_state, (void**)out));
  return rn_status_copy((*out)->missing);
}

static rn_status_t nccl_identify(rn_device_t* device, rn_comm_identity_t* out) {
  nccl_t* nccl = NULL;
  CUuuid uuid = {{0}};
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  *out = (rn_comm_identity_t){.version = 0};
  RN_RETURN_IF_ERROR(nccl_of(device, &nccl));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuDeviceGetUuid, &uuid, card->device));
  memcpy(out->card, uuid.bytes, sizeof out->card);
  out->version = nccl->version;
  return RN_OK;
}

static rn_status_t nccl_make_id(rn_device_t* device, char* out) {
  nccl_t* nccl = NULL;
  ncclUniqueId id;
  RN_RETURN_IF_ERROR(nccl_of(device, &nccl));
  RN_RETURN_IF_ERROR(rn_cuda_enter(rn_cuda_card_of(device)));
  RN_RETURN_IF_ERROR(NCCL(nccl, ncclGetUniqueId, &id));
  memcpy(out, id.internal, RN_COMM_ID_SIZE);
  return RN_OK;
}

// The type of NCCL's; -1 if it has none.
static int type_of(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_HALF:
      return ncclFloat16;
    case RN_BFLOAT16:
      return ncclBfloat16;
    case RN_FLOAT:
      return ncclFloat32;
    case RN_DOUBLE:
      return ncclFloat64;
    case RN_INT32:
      return ncclInt32;
    case RN_INT64:
      return ncclInt64;
    default:
      return -1;
  }
}

static bool reduces(const rn_collective_t* collective) {
  return collective->kind == RN_COLLECTIVE_REDUCE ||
         collective->kind == RN_COLLECTIVE_REDUCE_SCATTER;
}

static bool nccl_takes(const rn_collective_t* collective) {
  if (!reduces(collective)) return rn_dtype_is_plain(collective->dtype);
  bool ok = type_of(collective->dtype) >= 0;
  return ok && (!collective->divide || collective->merge_op == RN_MERGE_ADD);
}

// The object.

static void nccl_destroy(rn_comm_t* comm) {
  rn_allocator_t allocator = rn_allocator_system();
  if (!comm) return;
  for (int32_t i = 0; comm->comms && comm->cards && i < comm->count; ++i) {
    if (!comm->comms[i]) continue;
    rn_status_free(rn_cuda_enter(comm->cards[i]));
    comm->nccl->api.ncclCommAbort(comm->comms[i]);
  }
  RN_FREE_ARRAY(allocator, comm->cards, comm->count);
  RN_FREE_ARRAY(allocator, comm->ranks, comm->count);
  RN_FREE_ARRAY(allocator, comm->comms, comm->count);
  RN_FREE(allocator, comm);
}

static rn_status_t fill(rn_comm_t* comm, const rn_comm_members_t* members) {
  rn_allocator_t allocator = rn_allocator_system();
  nccl_t* nccl = NULL;
  size_t count = (size_t)members->count;
  RN_RETURN_IF_ERROR(nccl_of(members->devices[0], &nccl));
  comm->nccl = nccl;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &comm->cards));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &comm->ranks));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &comm->comms));
  for (int32_t i = 0; i < members->count; ++i) {
    comm->cards[i] = rn_cuda_card_of(members->devices[i]);
    comm->ranks[i] = members->ranks[i];
  }
  return RN_OK;
}

static rn_status_t nccl_create(const rn_comm_members_t* members, rn_comm_t** out) {
  rn_comm_t* comm = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &comm));
  comm->count = members->count;
  comm->size = members->size;
  rn_status_t status = fill(comm, members);
  if (rn_ok(status))
    *out = comm;
  else
    nccl_destroy(comm);
  return status;
}

// Waiting.

// Sleeps more and more the longer a wait takes. CANCELLED if it is to end.
static rn_status_t rest(int* looks, const atomic_bool* is_stopped) {
  if (atomic_load(is_stopped)) return rn_cancelled("The collective was cancelled");
  if (++*looks < LOOKS)
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  return RN_OK;
}

// Returns when NCCL is done with the calls made so far: its work is issued then.
static rn_status_t wait_for_nccl(const rn_comm_t* comm, const char* call,
                                 const atomic_bool* is_stopped) {
  int looks = 0;
  for (int32_t i = 0; i < comm->count; ++i) {
    for (;;) {
      ncclResult_t state = ncclSuccess;
      RN_RETURN_IF_ERROR(NCCL(comm->nccl, ncclCommGetAsyncError, comm->comms[i], &state));
      RN_RETURN_IF_ERROR(check(comm->nccl, state, call));
      if (state != ncclInProgress) break;
      RN_RETURN_IF_ERROR(rest(&looks, is_stopped));
    }
  }
  return RN_OK;
}

// Returns when the work issued so far has ended on all cards.
static rn_status_t wait_for_cards(const rn_comm_t* comm, const atomic_bool* is_stopped) {
  int looks = 0;
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < comm->count; ++i) {
    rn_cuda_card_t* card = comm->cards[i];
    CUevent event = NULL;
    status = rn_cuda_enter(card);
    if (rn_ok(status)) status = rn_cuda_mark(card, &event);
    while (rn_ok(status)) {
      CUresult result = card->driver.cuEventQuery(event);
      if (result != CUDA_ERROR_NOT_READY) {
        status = rn_cuda_check(card, result, "cuEventQuery");
        break;
      }
      status = wait_for_nccl(comm, "NCCL", is_stopped);
      if (rn_ok(status)) status = rest(&looks, is_stopped);
    }
    if (event) rn_cuda_unmark(card, event);
  }
  return status;
}

static rn_status_t nccl_connect(rn_comm_t* comm, const char* bytes, const atomic_bool* is_stopped) {
  const nccl_t* nccl = comm->nccl;
  ncclUniqueId id;
  memcpy(id.internal, bytes, sizeof id.internal);
  RN_RETURN_IF_ERROR(NCCL(nccl, ncclGroupStart));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < comm->count; ++i) {
    ncclConfig_t config = {.size = sizeof config,
                           .magic = NCCL_CONFIG_MAGIC,
                           .version = NCCL_CONFIG_VERSION,
                           .blocking = 0};
    status = rn_cuda_enter(comm->cards[i]);
    if (rn_ok(status))
      status = NCCL(nccl, ncclCommInitRankConfig, &comm->comms[i], comm->size, id, comm->ranks[i],
                    &config);
  }
  status = rn_status_join(status, NCCL(nccl, ncclGroupEnd));
  if (rn_ok(status)) status = wait_for_nccl(comm, "ncclCommInitRankConfig", is_stopped);
  return status;
}

// Instances.

static int op_of(const rn_collective_t* member) {
  static const int ops[] = {[RN_MERGE_ADD] = ncclSum,
                            [RN_MERGE_MUL] = ncclProd,
                            [RN_MERGE_MAX] = ncclMax,
                            [RN_MERGE_MIN] = ncclMin};
  return member->divide ? ncclAvg : ops[member->merge_op];
}

// Slice r of the input goes to rank r.
static rn_status_t exchange_slices(const rn_comm_t* comm, int32_t i, const rn_collective_t* member,
                                   CUstream stream) {
  size_t slice = rn_tensor_bytes(&member->output) / (size_t)comm->size;
  for (int32_t r = 0; r < comm->size; ++r) {
    const char* from = (const char*)member->input->data + (size_t)r * slice;
    char* to = (char*)member->output.data + (size_t)r * slice;
    RN_RETURN_IF_ERROR(
        NCCL(comm->nccl, ncclSend, from, slice, ncclInt8, r, comm->comms[i], stream));
    RN_RETURN_IF_ERROR(NCCL(comm->nccl, ncclRecv, to, slice, ncclInt8, r, comm->comms[i], stream));
  }
  return RN_OK;
}

static rn_status_t issue(const rn_comm_t* comm, int32_t i, const rn_collective_t* member,
                         int32_t source) {
  const nccl_t* nccl = comm->nccl;
  CUstream stream = rn_cuda_stream(comm->cards[i]);
  const void* from = member->input ? member->input->data : member->output.data;
  void* to = member->output.data;
  size_t count = (size_t)member->output.count, bytes = rn_tensor_bytes(&member->output);
  switch (member->kind) {
    case RN_COLLECTIVE_REDUCE:
      return NCCL(nccl, ncclAllReduce, from, to, count, type_of(member->dtype), op_of(member),
                  comm->comms[i], stream);
    case RN_COLLECTIVE_REDUCE_SCATTER:
      return NCCL(nccl, ncclReduceScatter, from, to, count, type_of(member->dtype), op_of(member),
                  comm->comms[i], stream);
    case RN_COLLECTIVE_GATHER:
      return NCCL(nccl, ncclAllGather, from, to, bytes / (size_t)comm->size, ncclInt8,
                  comm->comms[i], stream);
    case RN_COLLECTIVE_BROADCAST:
      return NCCL(nccl, ncclBroadcast, from, to, bytes, ncclInt8, source, comm->comms[i], stream);
    case RN_COLLECTIVE_ALL_TO_ALL:
      return exchange_slices(comm, i, member, stream);
    case RN_COLLECTIVE_JOIN:
      break;
  }
  return rn_internal("Unknown collective %d", (int)member->kind);
}

static rn_status_t nccl_run(rn_comm_t* comm, rn_collective_t* const* members, int32_t source,
                            const atomic_bool* is_stopped) {
  if (!members[0]->output.count) return RN_OK;
  RN_RETURN_IF_ERROR(NCCL(comm->nccl, ncclGroupStart));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < comm->count; ++i) {
    status = rn_cuda_enter(comm->cards[i]);
    if (rn_ok(status)) status = issue(comm, i, members[i], source);
  }
  status = rn_status_join(status, NCCL(comm->nccl, ncclGroupEnd));
  if (rn_ok(status)) status = wait_for_nccl(comm, "NCCL", is_stopped);
  if (rn_ok(status)) status = wait_for_cards(comm, is_stopped);
  return status;
}

const rn_comm_library_t rn_nccl_library = {.name = "NCCL",
                                           .takes = nccl_takes,
                                           .identify = nccl_identify,
                                           .make_id = nccl_make_id,
                                           .create = nccl_create,
                                           .connect = nccl_connect,
                                           .run = nccl_run,
                                           .destroy = nccl_destroy};
