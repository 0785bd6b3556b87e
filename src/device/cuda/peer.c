// See peer.h.
#include "device/cuda/peer.h"

#include "device/cuda/card.h"

_Static_assert(sizeof(CUipcMemHandle) == RN_PEER_HANDLE, "handles have CUDA's size");

struct rn_peer_memory_t {
  rn_cuda_card_t* card;  // Retained
  CUdeviceptr address;   // 0: not open
  CUstream stream;       // of its copies, which wait for no model
};

static void peer_close(rn_peer_memory_t* memory) {
  if (!memory) return;
  if (rn_ok(rn_cuda_enter(memory->card))) {
    if (memory->stream) memory->card->driver.cuStreamDestroy_v2(memory->stream);
    if (memory->address) memory->card->driver.cuIpcCloseMemHandle(memory->address);
  }
  rn_cuda_card_release(memory->card);
  RN_FREE(rn_allocator_system(), memory);
}

// The bytes from |address| on, in its allocation.
static rn_status_t bytes_from(rn_cuda_card_t* card, CUdeviceptr address, size_t* out) {
  CUdeviceptr base = 0;
  size_t size = 0;
  RN_RETURN_IF_ERROR(RN_CARD(card, cuMemGetAddressRange_v2, &base, &size, address));
  *out = size - (size_t)(address - base);
  return RN_OK;
}

static rn_status_t open_handle(rn_peer_memory_t* memory, const char* handle, size_t size) {
  CUipcMemHandle own;
  size_t has = 0;
  memcpy(&own, handle, sizeof own);
  RN_RETURN_IF_ERROR(rn_cuda_enter(memory->card));
  // A handle from outside: its error says nothing of the card.
  CUresult result = memory->card->driver.cuIpcOpenMemHandle_v2(&memory->address, own,
                                                               CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (result != CUDA_SUCCESS) {
    memory->address = 0;
    return rn_invalid_argument("the driver does not open the handle (error %d)", result);
  }
  RN_RETURN_IF_ERROR(bytes_from(memory->card, memory->address, &has));
  if (size > has)
    return rn_invalid_argument("the memory behind the handle has %zu bytes, not %zu", has, size);
  return RN_CARD(memory->card, cuStreamCreate, &memory->stream, CU_STREAM_NON_BLOCKING);
}

static rn_status_t peer_open(int64_t card, const char* handle, size_t size,
                             rn_peer_memory_t** out) {
  int count = 0;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_count(&count));
  if (card < 0 || card >= count)
    return rn_invalid_argument("there is no GPU %lld: this machine has %d", (long long)card, count);
  rn_peer_memory_t* memory = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &memory));
  const rn_cuda_choice_t choice = {.ordinal = (int)card};
  rn_status_t status = rn_cuda_card_get(&choice, &memory->card);
  if (!rn_ok(status)) {
    RN_FREE(rn_allocator_system(), memory);
    return status;
  }
  status = open_handle(memory, handle, size);
  if (rn_ok(status))
    *out = memory;
  else
    peer_close(memory);
  return status;
}

static rn_status_t peer_copy(rn_peer_memory_t* memory, size_t offset, void* host, size_t size,
                             bool to_host) {
  rn_cuda_card_t* card = memory->card;
  CUdeviceptr at = memory->address + offset;
  if (!size) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  rn_status_t status = to_host
                           ? RN_CARD(card, cuMemcpyDtoHAsync_v2, host, at, size, memory->stream)
                           : RN_CARD(card, cuMemcpyHtoDAsync_v2, at, host, size, memory->stream);
  return rn_ok(status) ? RN_CARD(card, cuStreamSynchronize, memory->stream) : status;
}

const rn_peer_memory_ops_t rn_cuda_peers = {
    .open = peer_open, .copy = peer_copy, .close = peer_close};
