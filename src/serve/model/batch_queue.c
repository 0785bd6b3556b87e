// See batch_queue.h.
#include "serve/model/batch_queue.h"

#include "serve/model/batch_join.h"

#define KEPT_GROUPS 16  // empty ones, so that a busy queue does not allocate

struct rn_batch_group_t {
  rn_predict_heap_t heap;  // a member shows the signature and the shapes of all
  uint64_t hash;           // of these
  int64_t rows;
  bool is_alone;
};

bool rn_batch_queue_is_before(const rn_predict_t* a, const rn_predict_t* b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  if (a->due_ns != b->due_ns) return a->due_ns < b->due_ns;
  return a->come_ns < b->come_ns;
}

static bool expires_before(const rn_predict_t* a, const rn_predict_t* b) {
  return a->deadline_ns < b->deadline_ns;
}

static void heap_put(rn_predict_heap_t* heap, size_t i, rn_predict_t* predict) {
  heap->items.items[i] = predict;
  predict->places[heap->slot] = i + 1;
}

// Moves the request at |i| up or down to where it belongs.
static void heap_settle(rn_predict_heap_t* heap, size_t i) {
  rn_predict_t** items = heap->items.items;
  rn_predict_t* predict = items[i];
  for (; i > 0 && heap->is_before(predict, items[(i - 1) / 2]); i = (i - 1) / 2)
    heap_put(heap, i, items[(i - 1) / 2]);
  for (size_t child; (child = 2 * i + 1) < heap->items.count; i = child) {
    if (child + 1 < heap->items.count && heap->is_before(items[child + 1], items[child])) ++child;
    if (!heap->is_before(items[child], predict)) break;
    heap_put(heap, i, items[child]);
  }
  heap_put(heap, i, predict);
}

static rn_status_t heap_add(rn_predict_heap_t* heap, rn_allocator_t allocator,
                            rn_predict_t* predict) {
  RN_RETURN_IF_ERROR(rn_vec_push(&heap->items, allocator, predict));
  heap_settle(heap, heap->items.count - 1);
  return RN_OK;
}

static void heap_remove(rn_predict_heap_t* heap, rn_predict_t* predict) {
  size_t i = predict->places[heap->slot] - 1;
  predict->places[heap->slot] = 0;
  rn_predict_t* last = heap->items.items[--heap->items.count];
  if (last == predict) return;
  heap_put(heap, i, last);
  heap_settle(heap, i);
}

static rn_predict_t* heap_first(const rn_predict_heap_t* heap) {
  return heap->items.count ? heap->items.items[0] : NULL;
}

void rn_batch_queue_init(rn_batch_queue_t* queue, bool pads, rn_allocator_t allocator) {
  *queue = (rn_batch_queue_t){
      .allocator = allocator, .pads = pads, .deadlines = {.slot = 1, .is_before = expires_before}};
}

static void group_free(rn_batch_queue_t* queue, rn_batch_group_t* group) {
  rn_vec_free(&group->heap.items, queue->allocator);
  RN_FREE(queue->allocator, group);
}

void rn_batch_queue_clear(rn_batch_queue_t* queue) {
  for (size_t i = 0; i < queue->groups.count; ++i) group_free(queue, queue->groups.items[i]);
  rn_vec_free(&queue->groups, queue->allocator);
  rn_vec_free(&queue->deadlines.items, queue->allocator);
}

static uint64_t mix(uint64_t hash, int64_t value) {
  return (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t shapes_hash(const rn_predict_t* predict, bool pads) {
  uint64_t hash = mix(0, predict->signature_index);
  for (int i = 0; i < predict->input_count; ++i) {
    const rn_tensor_t* value = &predict->inputs[i].value;
    hash = mix(hash, value->rank);
    for (int axis = 1; !pads && axis < value->rank; ++axis)
      hash = mix(hash, rn_tensor_dim(value, axis));
  }
  return hash;
}

static bool can_join(const rn_predict_t* a, const rn_predict_t* b, bool pads) {
  if (a->signature_index != b->signature_index) return false;
  for (int i = 0; i < a->input_count; ++i)
    if (!rn_batch_joinable(&a->inputs[i].value, &b->inputs[i].value, pads)) return false;
  return true;
}

// The group that |predict| belongs to: one with members like it, an empty one, or a new one.
static rn_status_t find_group(rn_batch_queue_t* queue, const rn_predict_t* predict, bool is_alone,
                              rn_batch_group_t** out) {
  uint64_t hash = is_alone ? 0 : shapes_hash(predict, queue->pads);
  rn_batch_group_t* empty = NULL;
  for (size_t i = 0; i < queue->groups.count; ++i) {
    rn_batch_group_t* group = queue->groups.items[i];
    rn_predict_t* member = heap_first(&group->heap);
    if (!member && empty && queue->groups.count > KEPT_GROUPS) {
      queue->groups.items[i--] = queue->groups.items[--queue->groups.count];
      group_free(queue, group);
    } else if (!member) {
      empty = group;
    } else if (group->hash == hash && group->is_alone == is_alone &&
               (is_alone || can_join(member, predict, queue->pads))) {
      *out = group;
      return RN_OK;
    }
  }
  if (!empty) {
    RN_RETURN_IF_ERROR(RN_NEW(queue->allocator, &empty));
    empty->heap.is_before = rn_batch_queue_is_before;
    rn_status_t status = rn_vec_push(&queue->groups, queue->allocator, empty);
    if (!rn_ok(status)) {
      RN_FREE(queue->allocator, empty);
      return status;
    }
  }
  empty->hash = hash;
  empty->is_alone = is_alone;
  *out = empty;
  return RN_OK;
}

// The priorities from -3 to 4 have a class each.
static int class_of(int priority) {
  int class = priority + RN_BATCH_CLASSES / 2 - 1;
  if (priority < -RN_BATCH_CLASSES || class < 0) return 0;
  return priority > RN_BATCH_CLASSES || class >= RN_BATCH_CLASSES ? RN_BATCH_CLASSES - 1 : class;
}

static void count_rows(rn_batch_queue_t* queue, const rn_predict_t* predict, int sign) {
  int64_t rows = predict->rows > 1 ? predict->rows : 1;
  queue->count += sign;
  queue->rows += sign * rows;
  queue->class_rows[class_of(predict->priority)] += sign * rows;
  ((rn_batch_group_t*)predict->group)->rows += sign * rows;
}

rn_status_t rn_batch_queue_add(rn_batch_queue_t* queue, rn_predict_t* predict, bool is_alone) {
  rn_batch_group_t* group = NULL;
  RN_RETURN_IF_ERROR(find_group(queue, predict, is_alone, &group));
  predict->places[0] = predict->places[1] = 0;
  RN_RETURN_IF_ERROR(heap_add(&group->heap, queue->allocator, predict));
  if (predict->deadline_ns < INT64_MAX) {
    rn_status_t status = heap_add(&queue->deadlines, queue->allocator, predict);
    if (!rn_ok(status)) {
      heap_remove(&group->heap, predict);
      return status;
    }
  }
  predict->group = group;
  count_rows(queue, predict, 1);
  return RN_OK;
}

void rn_batch_queue_remove(rn_batch_queue_t* queue, rn_predict_t* predict) {
  rn_batch_group_t* group = predict->group;
  count_rows(queue, predict, -1);
  heap_remove(&group->heap, predict);
  if (predict->places[1]) heap_remove(&queue->deadlines, predict);
  predict->group = NULL;
}

rn_predict_t* rn_batch_group_first(const rn_batch_group_t* group) {
  return heap_first(&group->heap);
}
int64_t rn_batch_group_rows(const rn_batch_group_t* group) { return group->rows; }
bool rn_batch_group_is_alone(const rn_batch_group_t* group) { return group->is_alone; }

rn_predict_t* rn_batch_queue_earliest(const rn_batch_queue_t* queue) {
  return heap_first(&queue->deadlines);
}

int64_t rn_batch_queue_ahead(const rn_batch_queue_t* queue, int priority) {
  int64_t rows = 0;
  for (int i = class_of(priority); i < RN_BATCH_CLASSES; ++i) rows += queue->class_rows[i];
  return rows;
}
