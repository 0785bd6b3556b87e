// The elements of a queue: a growing ring used as FIFO, bag or heap; slices and batches.
#include "kernels/cpu/data_flow/queue_store.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/rows.h"

static inline rn_tensor_t* at(const rn_queue_t* queue, int64_t i) {
  return queue->ring + ((queue->head + i) & queue->mask) * queue->spec.component_count;
}

static inline size_t tuple_bytes(const rn_queue_t* queue) {
  return (size_t)queue->spec.component_count * sizeof(rn_tensor_t);
}

static inline void move_tuple(const rn_queue_t* queue, rn_tensor_t* to, rn_tensor_t* from) {
  if (queue->spec.component_count == 1)
    *to = *from;
  else
    memcpy(to, from, tuple_bytes(queue));
}

static rn_status_t make_room(rn_queue_t* queue) {
  int64_t places = queue->mask + 1;
  if (queue->count < places) return RN_OK;
  int64_t larger = places ? places * 2 : 8;
  size_t bytes;
  if (!rn_mul_ok((size_t)larger, tuple_bytes(queue), &bytes)) return rn_out_of_memory();
  rn_tensor_t* ring = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(queue->allocator, bytes, (void**)&ring));
  for (int64_t i = 0; i < queue->count; ++i)
    memcpy(ring + i * queue->spec.component_count, at(queue, i), tuple_bytes(queue));
  rn_free(queue->allocator, queue->ring, (size_t)places * tuple_bytes(queue));
  queue->ring = ring;
  queue->mask = larger - 1;
  queue->head = 0;
  return RN_OK;
}

void rn_queue_store_clear(rn_queue_t* queue) {
  for (int64_t i = 0; i < queue->count; ++i)
    for (int32_t c = 0; c < queue->spec.component_count; ++c) rn_tensor_clear(at(queue, i) + c);
  rn_free(queue->allocator, queue->ring, (size_t)(queue->mask + 1) * tuple_bytes(queue));
  queue->ring = NULL;
  queue->mask = -1;
  queue->count = 0;
}

static inline int64_t priority(const rn_tensor_t* element) {
  return *RN_DATA(element, const int64_t);
}

// The heap uses the first |count| slots. Equal priorities must leave in stock's order: that of a
// heap whose holes sink to the bottom before they are filled.
static void heap_rise(rn_queue_t* queue, int64_t hole, int64_t top, rn_tensor_t* element) {
  while (hole > top) {
    int64_t parent = (hole - 1) / 2;
    if (priority(at(queue, parent)) <= priority(element)) break;
    move_tuple(queue, at(queue, hole), at(queue, parent));
    hole = parent;
  }
  move_tuple(queue, at(queue, hole), element);
}

static void heap_take(rn_queue_t* queue, rn_tensor_t* element) {
  move_tuple(queue, element, at(queue, 0));
  int64_t left = --queue->count;
  if (left == 0) return;
  rn_tensor_t* last = at(queue, left);
  int64_t hole = 0, child = 0;
  while (child < (left - 1) / 2) {
    child = 2 * (child + 1);
    if (priority(at(queue, child)) > priority(at(queue, child - 1))) --child;
    move_tuple(queue, at(queue, hole), at(queue, child));
    hole = child;
  }
  if (left % 2 == 0 && child == (left - 2) / 2) {
    child = 2 * child + 1;
    move_tuple(queue, at(queue, hole), at(queue, child));
    hole = child;
  }
  heap_rise(queue, hole, 0, last);
}

rn_status_t rn_queue_put(rn_queue_t* queue, rn_tensor_t* element) {
  RN_RETURN_IF_ERROR(make_room(queue));
  if (queue->spec.kind == RN_QUEUE_PRIORITY)
    heap_rise(queue, queue->count, 0, element);
  else
    move_tuple(queue, at(queue, queue->count), element);
  queue->count++;
  return RN_OK;
}

void rn_queue_put_back(rn_queue_t* queue, rn_tensor_t* element) {
  if (queue->spec.kind == RN_QUEUE_PRIORITY || queue->spec.kind == RN_QUEUE_SHUFFLE) {
    rn_status_t status = rn_queue_put(queue, element);
    if (rn_ok(status)) return;
    rn_status_free(status);
  } else {
    rn_status_t status = make_room(queue);
    if (rn_ok(status)) {
      queue->head = (queue->head - 1) & queue->mask;
      queue->count++;
      move_tuple(queue, at(queue, 0), element);
      return;
    }
    rn_status_free(status);
  }
  for (int32_t c = 0; c < queue->spec.component_count; ++c) rn_tensor_clear(&element[c]);
}

void rn_queue_take(rn_queue_t* queue, rn_tensor_t* element) {
  switch (queue->spec.kind) {
    case RN_QUEUE_PRIORITY:
      heap_take(queue, element);
      return;
    case RN_QUEUE_SHUFFLE: {
      int64_t chosen = (int64_t)(rn_philox_word(&queue->random) % (uint64_t)queue->count);
      move_tuple(queue, element, at(queue, chosen));
      queue->count--;
      if (chosen != queue->count) move_tuple(queue, at(queue, chosen), at(queue, queue->count));
      return;
    }
    default:
      move_tuple(queue, element, at(queue, 0));
      queue->head = (queue->head + 1) & queue->mask;
      queue->count--;
  }
}

// In a FIFO, neighbours leave together, so a slice may share the buffer of its batch if it meets
// the alignment of tensors. In a bag one slice could keep its batch alive indefinitely, so it is
// copied.
rn_status_t rn_queue_slice(const rn_queue_t* queue, const rn_kernel_ctx_t* ctx,
                           const rn_tensor_t* batch, int64_t index, rn_tensor_t* out) {
  bool is_line = queue->spec.kind == RN_QUEUE_FIFO || queue->spec.kind == RN_QUEUE_PADDING;
  return rn_rows_slice(batch, index, 1, true, is_line, ctx->kernel->device_memory, out);
}

// The shape of component |c| of a batch: as declared, with unknown dimensions set to the largest.
static rn_shape_t batch_shape(const rn_queue_t* queue, const rn_tensor_t* elements, int64_t count,
                              int32_t c, int64_t* dims) {
  rn_shape_t shape = queue->spec.shapes[c];
  dims[0] = count;
  for (int32_t d = 0; d < shape.rank; ++d) {
    int64_t size = shape.dims[d];
    if (size == RN_UNKNOWN) {
      size = 0;
      for (int64_t i = 0; i < count; ++i) {
        int64_t here = rn_tensor_dim(&elements[i * queue->spec.component_count + c], d);
        if (here > size) size = here;
      }
    }
    dims[d + 1] = size;
  }
  return (rn_shape_t){shape.rank + 1, dims};
}

static rn_status_t place_element(const rn_tensor_t* element, rn_tensor_t* batch, int64_t i) {
  int64_t stride = batch->count / rn_tensor_dim(batch, 0);
  char* to = RN_DATA(batch, char) + (size_t)(i * stride) * rn_dtype_size(batch->dtype);
  if (element->count == stride) return rn_move_row(element->dtype, element->data, to, stride);
  rn_move_t move;
  rn_move_begin(&move);
  int64_t from_step = element->count, to_step = stride;
  for (int32_t d = 0; d < element->rank; ++d) {
    int64_t size = rn_tensor_dim(element, d);
    if (size == 0) return RN_OK;
    from_step /= size;
    to_step /= rn_tensor_dim(batch, d + 1);
    rn_move_add(&move, size, from_step, to_step);
  }
  return rn_move_run(&move, NULL, element->dtype, element->data, to);
}

rn_status_t rn_queue_batch(const rn_queue_t* queue, rn_kernel_ctx_t* ctx,
                           const rn_tensor_t* elements, int64_t count) {
  int32_t components = queue->spec.component_count;
  for (int32_t c = 0; c < components; ++c) {
    int64_t dims[RN_MAX_RANK + 1];
    rn_shape_t shape = batch_shape(queue, elements, count, c, dims);
    if (shape.rank > RN_MAX_RANK)
      return rn_invalid_argument("A batch of rank %d has too many dimensions", shape.rank);
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, c, shape, &out));
    if (out->count == 0) continue;
    bool pads = false;
    for (int64_t i = 0; i < count && !pads; ++i)
      pads = elements[i * components + c].count != out->count / count;
    if (pads && rn_dtype_is_plain(out->dtype))
      rn_move_zero(NULL, out->dtype, out->data, out->count);
    for (int64_t i = 0; i < count; ++i)
      RN_RETURN_IF_ERROR(place_element(&elements[i * components + c], out, i));
  }
  return RN_OK;
}
