// Events of the emulated driver. A record makes a stamp when it is issued, which is done when it
// runs; a wait is for the newest stamp at the time of its issue.
#include <stdlib.h>

#include "driver.h"

void emu_stamp_release_locked(emu_stamp_t* stamp) {
  if (stamp && --stamp->references == 0) free(stamp);
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  (void)flags;
  EMU_CALL(cuEventCreate);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  *event = calloc(1, sizeof **event);
  EMU_RETURN_IF(!*event, EMU_OUT_OF_MEMORY);
  emu_lock();
  ++emu.events;
  emu_unlock();
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  EMU_CALL(cuEventDestroy_v2);
  EMU_RETURN_IF(!event, EMU_INVALID_HANDLE);
  emu_lock();
  --emu.events;
  emu_stamp_release_locked(event->stamp);
  emu_unlock();
  free(event->frontier.nodes);
  free(event);
  return CUDA_SUCCESS;
}

static CUresult issue(emu_kind_t kind, CUstream stream, CUevent event) {
  emu_item_t* item = emu_item_create(kind);
  EMU_RETURN_IF(!item, EMU_OUT_OF_MEMORY);
  emu_stamp_t* stamp = kind == EMU_RECORD ? calloc(1, sizeof *stamp) : NULL;
  if (kind == EMU_RECORD && !stamp) {
    free(item);
    return EMU_OUT_OF_MEMORY;
  }
  emu_lock();
  if (stamp) {
    emu_stamp_release_locked(event->stamp);
    stamp->references = 1;
    event->stamp = stamp;
  }
  item->stamp = event->stamp;
  if (item->stamp) ++item->stamp->references;
  event->capture = 0;
  emu_unlock();
  return emu_issue(stream, item);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  EMU_CALL(cuEventRecord);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  EMU_RETURN_IF(!event, EMU_INVALID_HANDLE);
  emu_lock();
  emu_capture_t* capture = stream->capture;
  CUresult result = CUDA_SUCCESS;
  if (capture) {
    event->capture = capture->id;
    if (!emu_frontier_copy(&event->frontier, &stream->frontier)) result = EMU_OUT_OF_MEMORY;
  }
  emu_unlock();
  return capture ? result : issue(EMU_RECORD, stream, event);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  (void)flags;
  EMU_CALL(cuStreamWaitEvent);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  EMU_RETURN_IF(!event, EMU_INVALID_HANDLE);
  emu_lock();
  bool is_captured = stream->capture || event->capture;
  CUresult result = is_captured ? emu_capture_wait_locked(stream, event) : CUDA_SUCCESS;
  emu_unlock();
  return is_captured ? result : issue(EMU_WAIT, stream, event);
}

// What both ask: an error, NOT_READY or SUCCESS.
static CUresult state_locked(CUevent event) {
  if (event->capture) return EMU_CAPTURED_EVENT;
  return event->stamp && !event->stamp->is_done ? EMU_NOT_READY : CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  EMU_CALL(cuEventQuery);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF(!event, EMU_INVALID_HANDLE);
  emu_lock();
  CUresult result = state_locked(event);
  emu_unlock();
  return result;
}

CUresult cuEventSynchronize(CUevent event) {
  EMU_CALL(cuEventSynchronize);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF(!event, EMU_INVALID_HANDLE);
  emu_lock();
  CUresult result;
  while ((result = state_locked(event)) == EMU_NOT_READY)
    pthread_cond_wait(&emu.changed, &emu.mutex);
  if (!result) result = device->lost;
  emu_unlock();
  return result;
}

CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  EMU_CALL(cuEventElapsedTime);
  EMU_RETURN_IF(!from || !to, EMU_INVALID_HANDLE);
  emu_lock();
  CUresult result = state_locked(from);
  if (!result) result = state_locked(to);
  if (!result && (!from->stamp || !to->stamp)) result = EMU_INVALID_HANDLE;
  if (!result) *ms = (float)(to->stamp->ended - from->stamp->ended);
  emu_unlock();
  return result;
}
