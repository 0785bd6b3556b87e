// See batch_split.h.
#include "serve/model/batch_split.h"

#include <stdatomic.h>

#include "base/container.h"
#include "serve/model/batch_join.h"

typedef struct split_part_t {
  rn_predict_t predict;
  struct split_t* split;
} split_part_t;

typedef struct split_t {
  rn_predict_t* whole;
  rn_predict_value_t* inputs;  // Owned; |part_count| times those of |whole|
  _Atomic int left;            // parts without an answer
  rn_mutex_t mutex;            // guards |status|
  rn_status_t status;
  int part_count;
  split_part_t parts[];
} split_t;

static size_t split_size(int64_t parts) {
  return sizeof(split_t) + (size_t)parts * sizeof(split_part_t);
}

static void split_destroy(split_t* split) {
  rn_allocator_t allocator = split->whole->allocator;
  for (int i = 0; i < split->part_count; ++i) rn_predict_clear(&split->parts[i].predict);
  if (split->inputs)
    RN_FREE_ARRAY(allocator, split->inputs,
                  (size_t)split->part_count * (size_t)split->whole->input_count);
  rn_mutex_destroy(&split->mutex);
  rn_free(allocator, split, split_size(split->part_count));
}

// The outputs of |whole| from those of its parts.
static rn_status_t join_outputs(split_t* split) {
  rn_predict_t* whole = split->whole;
  const rn_tensor_t** parts = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(whole->allocator, (size_t)split->part_count, &parts));
  rn_status_t status = RN_OK;
  for (int i = 0; i < whole->output_count && rn_ok(status); ++i) {
    int64_t rows = 0;
    for (int k = 0; k < split->part_count && rn_ok(status); ++k) {
      parts[k] = &split->parts[k].predict.outputs[i].value;
      if (!parts[k]->rank || !rn_batch_joinable(parts[0], parts[k], false))
        status = rn_failed_precondition("The outputs of a split request have different shapes");
      else
        rows += rn_tensor_dim(parts[k], 0);
    }
    if (rn_ok(status))
      status = rn_batch_join(parts, split->part_count, rows, false, NULL, whole->allocator,
                             &whole->outputs[i].value);
  }
  RN_FREE_ARRAY(whole->allocator, parts, (size_t)split->part_count);
  return status;
}

static void sum_times(split_t* split) {
  rn_predict_times_t* sum = &split->whole->times;
  for (int i = 0; i < split->part_count; ++i) {
    const rn_predict_t* part = &split->parts[i].predict;
    if (part->times.queue_ns > sum->queue_ns) sum->queue_ns = part->times.queue_ns;
    sum->batch_ns += part->times.batch_ns;
    sum->run_ns += part->times.run_ns;
    if (part->times.batch_size > sum->batch_size) sum->batch_size = part->times.batch_size;
    if (part->retry_ns > split->whole->retry_ns) split->whole->retry_ns = part->retry_ns;
  }
}

static void end_part(split_t* split, rn_status_t status) {
  if (!rn_ok(status)) {
    rn_mutex_lock(&split->mutex);
    split->status = rn_status_join(split->status, status);
    rn_mutex_unlock(&split->mutex);
  }
  if (atomic_fetch_sub(&split->left, 1) > 1) return;
  status = split->status;
  if (rn_ok(status)) status = join_outputs(split);
  sum_times(split);
  rn_predict_t* whole = split->whole;
  split_destroy(split);
  rn_predict_finish(whole, status);
}

static void on_part(rn_predict_t* predict, rn_status_t status) {
  end_part(RN_CONTAINER_OF(predict, split_part_t, predict)->split, status);
}

static rn_status_t make_part(split_t* split, int index, int64_t max_rows) {
  const rn_predict_t* whole = split->whole;
  split_part_t* part = &split->parts[index];
  rn_predict_value_t* inputs = split->inputs + (size_t)index * (size_t)whole->input_count;
  int64_t begin = index * max_rows, rest = whole->rows - begin;
  part->split = split;
  part->predict = (rn_predict_t){.inputs = inputs,
                                 .deadline_ns = whole->deadline_ns,
                                 .priority = whole->priority,
                                 .cancel = whole->cancel,
                                 .done = on_part,
                                 .allocator = whole->allocator,
                                 .signature_index = whole->signature_index,
                                 .rows = rest < max_rows ? rest : max_rows};
  for (int i = 0; i < whole->input_count; ++i) {
    inputs[i].name = whole->inputs[i].name;
    RN_RETURN_IF_ERROR(
        rn_batch_rows(&whole->inputs[i].value, begin, part->predict.rows, &inputs[i].value));
    part->predict.input_count = i + 1;
  }
  RN_RETURN_IF_ERROR(
      RN_NEW_ARRAY(whole->allocator, (size_t)whole->output_count, &part->predict.outputs));
  part->predict.output_count = whole->output_count;
  for (int i = 0; i < whole->output_count; ++i)
    part->predict.outputs[i].name = whole->outputs[i].name;
  return RN_OK;
}

void rn_batch_split(rn_batcher_t* batcher, rn_predict_t* predict, int64_t max_rows) {
  int64_t count = (predict->rows - 1) / max_rows + 1;
  split_t* split = NULL;
  rn_status_t status = count < INT32_MAX / 2
                           ? rn_alloc_zeroed(predict->allocator, split_size(count), (void**)&split)
                           : rn_out_of_memory();
  if (!rn_ok(status)) {
    rn_predict_finish(predict, status);
    return;
  }
  split->whole = predict;
  split->part_count = (int)count;
  rn_mutex_init(&split->mutex);
  atomic_init(&split->left, (int)count);
  status = RN_NEW_ARRAY(predict->allocator, (size_t)count * (size_t)predict->input_count,
                        &split->inputs);
  for (int i = 0; i < split->part_count && rn_ok(status); ++i)
    status = make_part(split, i, max_rows);
  if (!rn_ok(status)) {
    split_destroy(split);
    rn_predict_finish(predict, status);
    return;
  }
  // The last answer may come inside rn_batcher_add, and takes |split| with it.
  for (int i = 0; i < count; ++i) rn_batcher_add(batcher, &split->parts[i].predict);
}
