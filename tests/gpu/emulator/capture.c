// Stream capture and graphs of the emulated driver.
//
// A capture appends what its streams are told to one list of nodes. Each stream and each event
// knows the last nodes that it depends on (its frontier); a stream that waits for an event of a
// capture joins it. At the end, everything must lead to the stream that began.
#include <stdlib.h>
#include <string.h>

#include "driver.h"

_Thread_local int emu_thread_captures;

#define CAPTURE_MODE_RELAXED 2

bool emu_frontier_copy(emu_frontier_t* to, const emu_frontier_t* from) {
  int* nodes = calloc((size_t)from->count + 1, sizeof *nodes);
  if (!nodes) return false;
  if (from->count) memcpy(nodes, from->nodes, (size_t)from->count * sizeof *nodes);
  free(to->nodes);
  *to = (emu_frontier_t){nodes, from->count};
  return true;
}

static bool frontier_add(emu_frontier_t* frontier, int node) {
  for (int i = 0; i < frontier->count; ++i)
    if (frontier->nodes[i] == node) return true;
  int* nodes = realloc(frontier->nodes, ((size_t)frontier->count + 1) * sizeof *nodes);
  if (!nodes) return false;
  frontier->nodes = nodes;
  frontier->nodes[frontier->count++] = node;
  return true;
}

void emu_nodes_release_locked(emu_nodes_t* nodes) {
  if (!nodes || --nodes->references) return;
  for (int i = 0; i < nodes->count; ++i) {
    emu_item_destroy_locked(nodes->items[i]);
    free(nodes->dependencies[i].nodes);
  }
  free(nodes->items);
  free(nodes->dependencies);
  free(nodes);
}

static bool reserve(emu_nodes_t* nodes) {
  if (nodes->count < nodes->capacity) return true;
  int capacity = nodes->capacity ? 2 * nodes->capacity : 16;
  emu_item_t** items = realloc(nodes->items, (size_t)capacity * sizeof *items);
  if (!items) return false;
  nodes->items = items;
  emu_frontier_t* dependencies =
      realloc(nodes->dependencies, (size_t)capacity * sizeof *dependencies);
  if (!dependencies) return false;
  nodes->dependencies = dependencies;
  nodes->capacity = capacity;
  return true;
}

CUresult emu_capture_append_locked(CUstream stream, emu_item_t* item) {
  emu_nodes_t* nodes = stream->capture->nodes;
  CUresult result = stream->capture->is_invalid ? EMU_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  if (!result && !reserve(nodes)) result = EMU_OUT_OF_MEMORY;
  emu_frontier_t dependencies = {0};
  if (!result && !emu_frontier_copy(&dependencies, &stream->frontier)) result = EMU_OUT_OF_MEMORY;
  if (result) {
    stream->capture->is_invalid = true;
    emu_item_destroy_locked(item);
    return result;
  }
  int index = nodes->count++;
  nodes->items[index] = item;
  nodes->dependencies[index] = dependencies;
  stream->frontier.count = 0;
  if (!frontier_add(&stream->frontier, index)) stream->capture->is_invalid = true;
  return CUDA_SUCCESS;
}

CUresult emu_not_captured_locked(CUstream stream) {
  if (!stream->capture) return CUDA_SUCCESS;
  stream->capture->is_invalid = true;
  return EMU_STREAM_CAPTURE_UNSUPPORTED;
}

// Calls that may synchronise are not allowed on a thread that captures.
CUresult emu_may_be_unsafe(void) {
  if (!emu_thread_captures) return CUDA_SUCCESS;
  emu_lock();
  for (int i = 0; i < emu.device_count; ++i)
    for (CUstream stream = emu.devices[i].streams; stream; stream = stream->next)
      if (stream->capture && pthread_equal(stream->capture->thread, pthread_self()))
        stream->capture->is_invalid = true;
  emu_unlock();
  return EMU_STREAM_CAPTURE_UNSUPPORTED;
}

static emu_capture_t* capture_of(emu_device_t* device, uint64_t id) {
  for (CUstream stream = device->streams; stream; stream = stream->next)
    if (stream->capture && stream->capture->id == id) return stream->capture;
  return NULL;
}

CUresult emu_capture_wait_locked(CUstream stream, CUevent event) {
  if (!event->capture) {
    stream->capture->is_invalid = true;
    return EMU_STREAM_CAPTURE_ISOLATION;
  }
  emu_capture_t* capture = capture_of(stream->device, event->capture);
  if (!capture) return EMU_INVALID_VALUE;  // it has ended
  if (stream->capture && stream->capture != capture) return EMU_INVALID_VALUE;
  if (!stream->capture) stream->frontier.count = 0;
  stream->capture = capture;
  for (int i = 0; i < event->frontier.count; ++i)
    if (!frontier_add(&stream->frontier, event->frontier.nodes[i])) return EMU_OUT_OF_MEMORY;
  return CUDA_SUCCESS;
}

static void end_locked(emu_capture_t* capture) {
  for (CUstream stream = capture->origin->device->streams; stream; stream = stream->next) {
    if (stream->capture != capture) continue;
    stream->capture = NULL;
    stream->frontier.count = 0;
  }
  free(capture);
}

void emu_capture_leave_locked(CUstream stream) {
  emu_capture_t* capture = stream->capture;
  if (!capture) return;
  capture->is_invalid = true;
  stream->capture = NULL;
  if (capture->origin != stream) return;
  emu_nodes_release_locked(capture->nodes);
  end_locked(capture);
}

CUresult cuStreamIsCapturing(CUstream stream, int* status) {
  EMU_CALL(cuStreamIsCapturing);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  emu_lock();
  *status = stream->capture != NULL;
  emu_unlock();
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  EMU_CALL(cuStreamBeginCapture_v2);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  EMU_RETURN_IF(stream->is_default, EMU_STREAM_CAPTURE_UNSUPPORTED);
  EMU_RETURN_IF(mode < 0 || mode > CAPTURE_MODE_RELAXED, EMU_INVALID_VALUE);
  emu_capture_t* capture = calloc(1, sizeof *capture);
  emu_nodes_t* nodes = calloc(1, sizeof *nodes);
  emu_lock();
  CUresult result = stream->capture ? EMU_INVALID_VALUE : CUDA_SUCCESS;
  if (!capture || !nodes) result = EMU_OUT_OF_MEMORY;
  if (!result) {
    nodes->references = 1;
    *capture = (emu_capture_t){.id = ++emu.captures,
                               .origin = stream,
                               .nodes = nodes,
                               .mode = mode,
                               .thread = pthread_self()};
    stream->capture = capture;
    stream->frontier.count = 0;
    if (mode != CAPTURE_MODE_RELAXED) ++emu_thread_captures;
  }
  emu_unlock();
  if (result) {
    free(capture);
    free(nodes);
  }
  return result;
}

// Whether every node leads to the stream that began the capture.
static CUresult check_joined(const emu_capture_t* capture) {
  const emu_nodes_t* nodes = capture->nodes;
  bool* is_reached = calloc((size_t)nodes->count + 1, sizeof *is_reached);
  if (!is_reached) return EMU_OUT_OF_MEMORY;
  const emu_frontier_t* last = &capture->origin->frontier;
  for (int i = 0; i < last->count; ++i) is_reached[last->nodes[i]] = true;
  CUresult result = CUDA_SUCCESS;
  for (int i = nodes->count - 1; i >= 0; --i) {
    if (!is_reached[i]) result = EMU_STREAM_CAPTURE_UNJOINED;
    for (int j = 0; is_reached[i] && j < nodes->dependencies[i].count; ++j)
      is_reached[nodes->dependencies[i].nodes[j]] = true;
  }
  free(is_reached);
  return result;
}

// A call that fails ends the capture, too.
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  CUresult entered = emu_enter(EMU_CALL_cuStreamEndCapture);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  *graph = NULL;
  emu_lock();
  emu_capture_t* capture = stream->capture;
  CUresult result = CUDA_SUCCESS;
  if (!capture) result = EMU_INVALID_VALUE;
  if (!result && capture->origin != stream) result = EMU_STREAM_CAPTURE_UNMATCHED;
  if (!result && capture->mode != CAPTURE_MODE_RELAXED &&
      !pthread_equal(capture->thread, pthread_self()))
    result = EMU_STREAM_CAPTURE_WRONG_THREAD;
  if (result) {
    emu_unlock();
    return result;
  }
  if (capture->mode != CAPTURE_MODE_RELAXED) --emu_thread_captures;
  result = entered               ? entered
           : capture->is_invalid ? EMU_STREAM_CAPTURE_INVALIDATED
                                 : check_joined(capture);
  if (!result) *graph = calloc(1, sizeof **graph);
  if (!result && !*graph) result = EMU_OUT_OF_MEMORY;
  if (*graph) {
    (*graph)->nodes = capture->nodes;
    ++emu.graphs;
  } else {
    emu_nodes_release_locked(capture->nodes);
  }
  end_locked(capture);
  emu_unlock();
  return result;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  (void)flags;
  EMU_CALL(cuGraphInstantiateWithFlags);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF(!graph, EMU_INVALID_HANDLE);
  *exec = calloc(1, sizeof **exec);
  EMU_RETURN_IF(!*exec, EMU_OUT_OF_MEMORY);
  emu_lock();
  (*exec)->nodes = graph->nodes;
  ++graph->nodes->references;
  ++emu.graphs;
  emu_unlock();
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  EMU_CALL(cuGraphLaunch);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  EMU_RETURN_IF(!exec, EMU_INVALID_HANDLE);
  emu_item_t* item = emu_item_create(EMU_GRAPH);
  EMU_RETURN_IF(!item, EMU_OUT_OF_MEMORY);
  emu_lock();
  item->graph = exec->nodes;
  ++exec->nodes->references;
  emu_unlock();
  return emu_issue(stream, item);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  EMU_CALL(cuGraphUpload);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  EMU_RETURN_IF(!exec, EMU_INVALID_HANDLE);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  EMU_CALL(cuGraphExecDestroy);
  EMU_RETURN_IF(!exec, EMU_INVALID_HANDLE);
  emu_lock();
  emu_nodes_release_locked(exec->nodes);
  --emu.graphs;
  emu_unlock();
  free(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  EMU_CALL(cuGraphDestroy);
  EMU_RETURN_IF(!graph, EMU_INVALID_HANDLE);
  emu_lock();
  emu_nodes_release_locked(graph->nodes);
  --emu.graphs;
  emu_unlock();
  free(graph);
  return CUDA_SUCCESS;
}

static bool is_runnable(const emu_nodes_t* nodes, const bool* has_run, int node) {
  bool is_ready = !has_run[node];
  for (int i = 0; is_ready && i < nodes->dependencies[node].count; ++i)
    is_ready = has_run[nodes->dependencies[node].nodes[i]];
  return is_ready;
}

// Any node that may run, or with no shuffling the first.
static int pick(emu_device_t* device, const emu_nodes_t* nodes, const bool* has_run, int first) {
  if (!emu.shuffle) return first;
  int chosen = -1;
  uint64_t ready = 0;
  emu_lock();
  for (int i = 0; i < nodes->count; ++i)
    if (is_runnable(nodes, has_run, i) && emu_random_locked(device, ++ready) == 0) chosen = i;
  emu_unlock();
  return chosen;
}

CUresult emu_run_graph(emu_device_t* device, emu_runner_t* runner, const emu_nodes_t* nodes) {
  CUresult result = CUDA_SUCCESS;
  bool* has_run = calloc((size_t)nodes->count + 1, sizeof *has_run);
  if (!has_run) return EMU_OUT_OF_MEMORY;
  for (int i = 0; i < nodes->count && !result; ++i) {
    int node = pick(device, nodes, has_run, i);
    has_run[node] = true;
    result = emu_run_item(device, runner, nodes->items[node]);
  }
  free(has_run);
  return result;
}
