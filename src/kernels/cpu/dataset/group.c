// Datasets that look at element values: GroupByWindow and Unique.
#include "base/map.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/keys.h"
#include "kernels/cpu/dataset/window.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"

// GroupByWindow: elements with the same key are collected until their window is full; then a
// function makes a dataset of them.
typedef struct dataset_group_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_func_t key, reduce, size;
} dataset_group_t;

typedef struct group_bucket_t {
  int64_t key;
  int64_t size;  // window size
  rn_data_rows_t rows;
} group_bucket_t;

typedef struct group_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;  // the input
  rn_data_source_t group;   // the dataset made from a window
  rn_tensor_t* row;
  rn_data_call_t key_call, size_call, reduce_call;
  rn_tensor_t args[2];  // arguments of the last two functions: key, window. Kept for the group
  int64_t key;
  RN_VEC(group_bucket_t) buckets;  // sorted by key
  rn_dataset_t* made;              // Retained: the dataset of |group|
} group_iterator_t;

enum { LOOK = 0, FROM_GROUP, FROM_INPUT, FROM_KEY, FROM_SIZE, FROM_REDUCE };

static rn_status_t group_open(rn_dataset_t* dataset) {
  dataset_group_t* group = (dataset_group_t*)dataset;
  static const rn_dtype_t types[] = {RN_INT64, RN_VARIANT};
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &group->input));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "key_func", "key_func_other_arguments",
                                       group->input->component_count, group->input->types,
                                       &group->key));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "reduce_func", "reduce_func_other_arguments", 2,
                                       types, &group->reduce));
  RN_RETURN_IF_ERROR(rn_data_func_open(dataset, "window_size_func",
                                       "window_size_func_other_arguments", 1, types, &group->size));
  RN_RETURN_IF_ERROR(rn_data_func_gives(&group->key, 1, types));
  RN_RETURN_IF_ERROR(rn_data_func_gives(&group->size, 1, types));
  return rn_data_func_gives(&group->reduce, 1, types + 1);
}

static void group_close(rn_dataset_t* dataset) {
  dataset_group_t* group = (dataset_group_t*)dataset;
  rn_data_func_close(&group->key);
  rn_data_func_close(&group->reduce);
  rn_data_func_close(&group->size);
}

static rn_status_t group_start(rn_data_iterator_t* iterator) {
  group_iterator_t* own = (group_iterator_t*)iterator;
  const dataset_group_t* group = (const dataset_group_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(rn_data_row(iterator, group->input->component_count, &own->row));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->key_call, iterator, &group->key));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->size_call, iterator, &group->size));
  RN_RETURN_IF_ERROR(rn_data_call_init(&own->reduce_call, iterator, &group->reduce));
  return rn_data_source_start(&own->source, iterator, group->input);
}

static void group_stop(rn_data_iterator_t* iterator) {
  group_iterator_t* own = (group_iterator_t*)iterator;
  const dataset_group_t* group = (const dataset_group_t*)iterator->dataset;
  rn_data_source_stop(&own->source);
  rn_data_source_stop(&own->group);
  rn_dataset_release(own->made);
  rn_data_row_clear(own->row, group->input->component_count);
  rn_data_row_clear(own->args, 2);
  rn_data_call_clear(&own->key_call, &group->key);
  rn_data_call_clear(&own->size_call, &group->size);
  rn_data_call_clear(&own->reduce_call, &group->reduce);
  for (size_t i = 0; i < own->buckets.count; ++i) rn_data_rows_clear(&own->buckets.items[i].rows);
  rn_vec_free(&own->buckets, iterator->dataset->node->allocator);
}

static size_t place_of(const group_iterator_t* own, int64_t key, bool* out_found) {
  return rn_data_find_key(own->buckets.items, own->buckets.count, sizeof *own->buckets.items, key,
                          out_found);
}

static rn_status_t add_bucket(group_iterator_t* own, int64_t key, int64_t size) {
  rn_allocator_t allocator = own->base.dataset->node->allocator;
  bool is_there = false;
  size_t place = place_of(own, key, &is_there);
  RN_RETURN_IF_ERROR(rn_vec_reserve(&own->buckets, allocator, own->buckets.count + 1));
  memmove(own->buckets.items + place + 1, own->buckets.items + place,
          (own->buckets.count - place) * sizeof *own->buckets.items);
  own->buckets.count++;
  own->buckets.items[place] = (group_bucket_t){
      .key = key,
      .size = size,
      .rows = {
          .allocator = allocator,
          .component_count = ((const dataset_group_t*)own->base.dataset)->input->component_count}};
  return RN_OK;
}

// Adds the current element to its bucket; sets |*out_full| if the window is full.
static rn_status_t put_element(group_iterator_t* own, size_t place, bool* out_full) {
  group_bucket_t* bucket = &own->buckets.items[place];
  RN_RETURN_IF_ERROR(rn_data_rows_push(&bucket->rows, own->row));
  *out_full = (int64_t)bucket->rows.list.count >= bucket->size;
  return RN_OK;
}

// Prepares the arguments of the reduction: the key of |bucket| and a dataset of its window.
static rn_status_t prepare_window(group_iterator_t* own, group_bucket_t* bucket) {
  const dataset_group_t* group = (const dataset_group_t*)own->base.dataset;
  rn_dataset_t* rows = NULL;
  rn_data_row_clear(own->args, 2);
  RN_RETURN_IF_ERROR(
      rn_data_make_scalar(group->base.node->memory, RN_INT64, bucket->key, &own->args[0]));
  RN_RETURN_IF_ERROR(rn_data_rows_dataset(group->input, 0, group->input->component_count,
                                          bucket->rows.list.items, (int64_t)bucket->rows.list.count,
                                          &rows));
  RN_RETURN_IF_ERROR(rn_data_variant(group->base.node->memory, &rows->object, &own->args[1]));
  rn_data_rows_clear(&bucket->rows);
  return RN_OK;
}

static rn_status_t open_group(group_iterator_t* own, const rn_tensor_t* result) {
  const rn_dataset_t* dataset = own->base.dataset;
  rn_dataset_t* made = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(result, &made));
  bool fits = made->component_count == dataset->component_count;
  for (int32_t c = 0; fits && c < made->component_count; ++c)
    fits = made->types[c] == dataset->types[c];
  if (!fits) return rn_invalid_argument("`reduce_func` must return a dataset of the same types");
  rn_dataset_release(own->made);
  own->made = made;
  rn_object_retain(&made->object);
  return rn_data_source_start(&own->group, &own->base, made);
}

static bool fail(group_iterator_t* own, rn_status_t status) {
  const dataset_group_t* group = (const dataset_group_t*)own->base.dataset;
  rn_data_row_clear(own->row, group->input->component_count);
  rn_data_call_clear(&own->key_call, &group->key);
  rn_data_call_clear(&own->size_call, &group->size);
  rn_data_call_clear(&own->reduce_call, &group->reduce);
  return rn_data_finish(&own->base, status);
}

// Starts the reduction of the window of bucket |place|. False if it completes later.
static bool reduce(group_iterator_t* own, size_t place, rn_status_t* out_status) {
  const dataset_group_t* group = (const dataset_group_t*)own->base.dataset;
  *out_status = prepare_window(own, &own->buckets.items[place]);
  if (!rn_ok(*out_status)) return true;
  own->base.phase = FROM_REDUCE;
  return rn_data_call(&own->reduce_call, &group->reduce, own->args, 2, own->base.asked->step);
}

// Advances from a finished phase to the next; false if it has to wait.
static bool group_step(group_iterator_t* own, bool* out_done) {
  rn_data_iterator_t* iterator = &own->base;
  const dataset_group_t* group = (const dataset_group_t*)iterator->dataset;
  rn_status_t status = RN_OK;
  bool is_there = false, is_full = false;
  size_t place = 0;
  *out_done = false;
  switch (iterator->phase) {
    case LOOK:
      if (own->group.iterator) {
        iterator->phase = FROM_GROUP;
        return rn_data_ask(&own->group, iterator->asked->out);
      }
      if (own->source.iterator) {
        iterator->phase = FROM_INPUT;
        return rn_data_ask(&own->source, own->row);
      }
      while (own->buckets.count && !own->buckets.items[0].rows.list.count) {
        rn_data_rows_clear(&own->buckets.items[0].rows);
        memmove(own->buckets.items, own->buckets.items + 1,
                --own->buckets.count * sizeof *own->buckets.items);
      }
      if (own->buckets.count) {
        if (!reduce(own, 0, &status)) return false;
        if (!rn_ok(status)) *out_done = fail(own, status);
        return true;
      }
      *out_done = rn_data_end(iterator);
      return true;
    case FROM_GROUP:
      iterator->phase = LOOK;
      if (!own->group.request.is_end)
        *out_done = rn_data_finish(iterator, own->group.request.status);
      return true;
    case FROM_INPUT:
      iterator->phase = LOOK;
      if (own->source.request.is_end) return true;
      if (!rn_ok(own->source.request.status)) {
        *out_done = rn_data_finish(iterator, own->source.request.status);
        return true;
      }
      iterator->phase = FROM_KEY;
      return rn_data_call(&own->key_call, &group->key, own->row, group->input->component_count,
                          iterator->asked->step);
    case FROM_KEY:
      status = own->key_call.status;
      if (rn_ok(status))
        status = rn_data_read_number(&own->key_call.results[0], "key_func", &own->key);
      if (rn_ok(status)) {
        place = place_of(own, own->key, &is_there);
        if (!is_there) {
          rn_data_row_clear(own->args, 2);
          rn_data_row_move(own->key_call.results, own->args, 1);
          iterator->phase = FROM_SIZE;
          return rn_data_call(&own->size_call, &group->size, own->args, 1, iterator->asked->step);
        }
        rn_data_call_clear(&own->key_call, &group->key);
      }
      break;
    case FROM_SIZE: {
      int64_t size = 0;
      status = own->size_call.status;
      if (rn_ok(status))
        status = rn_data_read_number(&own->size_call.results[0], "window_size_func", &size);
      rn_data_call_clear(&own->size_call, &group->size);
      if (rn_ok(status) && size <= 0)
        status = rn_invalid_argument("Window size must be greater than zero, but got %lld.",
                                     (long long)size);
      if (rn_ok(status)) status = add_bucket(own, own->key, size);
      if (rn_ok(status)) place = place_of(own, own->key, &is_there);
      break;
    }
    case FROM_REDUCE:
      iterator->phase = LOOK;
      status = own->reduce_call.status;
      if (rn_ok(status)) status = open_group(own, &own->reduce_call.results[0]);
      rn_data_call_clear(&own->reduce_call, &group->reduce);
      if (!rn_ok(status)) *out_done = fail(own, status);
      return true;
    default:
      break;
  }
  // The element has been put into its bucket.
  iterator->phase = LOOK;
  if (rn_ok(status)) status = put_element(own, place, &is_full);
  if (rn_ok(status) && is_full && !reduce(own, place, &status)) return false;
  if (!rn_ok(status)) *out_done = fail(own, status);
  return true;
}

static bool group_next(rn_data_iterator_t* iterator) {
  group_iterator_t* own = (group_iterator_t*)iterator;
  bool is_done = false;
  while (!is_done)
    if (!group_step(own, &is_done)) return false;
  return true;
}

// Infinite for an infinite input; otherwise it depends on the keys.
static int64_t group_cardinality(const rn_dataset_t* dataset) {
  int64_t n = rn_dataset_cardinality(((const dataset_group_t*)dataset)->input);
  return n == RN_DATA_INFINITE ? n : RN_DATA_UNKNOWN;
}

static rn_status_t group_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  group_iterator_t* own = (group_iterator_t*)iterator;
  rn_data_put_int(writer, (int64_t)own->buckets.count);
  for (size_t i = 0; i < own->buckets.count; ++i) {
    rn_data_put_int(writer, own->buckets.items[i].key);
    rn_data_put_int(writer, own->buckets.items[i].size);
    rn_data_rows_save(&own->buckets.items[i].rows, writer);
  }
  rn_data_put_int(writer, own->group.iterator != NULL);
  if (own->group.iterator) {
    rn_data_put_row(writer, own->args, 2);
    RN_RETURN_IF_ERROR(rn_data_put_iterator(writer, own->group.iterator));
  }
  return rn_data_put_iterator(writer, own->source.iterator);
}

// Remakes the dataset of the window that was open.
static rn_status_t restore_group(group_iterator_t* own, rn_data_reader_t* reader) {
  const dataset_group_t* group = (const dataset_group_t*)own->base.dataset;
  static const rn_dtype_t types[] = {RN_INT64, RN_VARIANT};
  RN_RETURN_IF_ERROR(rn_data_take_row(reader, types, 2, own->args));
  if (!rn_tensor_is_set(&own->args[0]) || !rn_tensor_is_set(&own->args[1]))
    return rn_data_bad_state();
  RN_RETURN_IF_ERROR(rn_data_func_call(&group->reduce, own->args, 2, &own->base.run->step,
                                       own->reduce_call.results));
  RN_RETURN_IF_ERROR(open_group(own, &own->reduce_call.results[0]));
  rn_data_call_clear(&own->reduce_call, &group->reduce);
  return rn_data_take_iterator(reader, own->group.iterator);
}

static rn_status_t group_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  group_iterator_t* own = (group_iterator_t*)iterator;
  const dataset_group_t* group = (const dataset_group_t*)iterator->dataset;
  int64_t count = 0, has_group = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t key = 0, size = 0;
    bool is_there = false;
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &key));
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, &size));
    if (size <= 0) return rn_data_bad_state();
    size_t place = place_of(own, key, &is_there);
    if (is_there) return rn_data_bad_state();
    RN_RETURN_IF_ERROR(add_bucket(own, key, size));
    RN_RETURN_IF_ERROR(rn_data_rows_restore(&own->buckets.items[place].rows, reader,
                                            group->input->types, own->row));
  }
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &has_group));
  if (has_group) RN_RETURN_IF_ERROR(restore_group(own, reader));
  return rn_data_restore_source(reader, &own->source, iterator, group->input);
}

const rn_data_kind_t rn_data_kind_group_by_window = {.dataset_size = sizeof(dataset_group_t),
                                                     .iterator_size = sizeof(group_iterator_t),
                                                     .open = group_open,
                                                     .close = group_close,
                                                     .cardinality = group_cardinality,
                                                     .start = group_start,
                                                     .stop = group_stop,
                                                     .next = group_next,
                                                     .save = group_save,
                                                     .restore = group_restore};

// Unique: passes each distinct element once.
typedef struct unique_t {
  rn_dataset_t base;
  rn_dataset_t* input;
} unique_t;

typedef struct unique_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_map_t seen;
  rn_data_rows_t rows;  // the elements seen, in order, for saving
  rn_tensor_t* row;
} unique_iterator_t;

static rn_status_t unique_open(rn_dataset_t* dataset) {
  unique_t* unique = (unique_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &unique->input));
  if (unique->input->component_count != 1 || dataset->component_count != 1)
    return rn_invalid_argument("UniqueDataset only supports inputs with a single component.");
  rn_dtype_t type = unique->input->types[0];
  if (type != RN_INT32 && type != RN_INT64 && type != RN_STRING)
    return rn_invalid_argument(
        "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` "
        "component.");
  return RN_OK;
}

static rn_status_t unique_start(rn_data_iterator_t* iterator) {
  unique_iterator_t* own = (unique_iterator_t*)iterator;
  rn_allocator_t allocator = iterator->dataset->node->allocator;
  rn_map_init(&own->seen, allocator);
  own->rows = (rn_data_rows_t){.allocator = allocator, .component_count = 1};
  RN_RETURN_IF_ERROR(rn_data_row(iterator, 1, &own->row));
  return rn_data_source_start(&own->source, iterator, ((const unique_t*)iterator->dataset)->input);
}

static void unique_stop(rn_data_iterator_t* iterator) {
  unique_iterator_t* own = (unique_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  if (own->seen.allocator.fn) rn_map_clear(&own->seen);
  rn_data_rows_clear(&own->rows);
  rn_data_row_clear(own->row, 1);
}

// An element as a hash key: its sizes, then its bytes.
static rn_status_t key_of(unique_iterator_t* own, const rn_tensor_t* tensor, rn_str_t* out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, own->seen.allocator);
  rn_strbuf_append_n(&text, rn_tensor_dims(tensor), (size_t)tensor->rank * sizeof(int64_t));
  if (tensor->dtype != RN_STRING) {
    rn_strbuf_append_n(&text, tensor->data, rn_tensor_bytes(tensor));
  } else {
    for (int64_t i = 0; i < tensor->count; ++i) {
      rn_str_t item = rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i]);
      rn_strbuf_append_n(&text, &item.size, sizeof item.size);
      rn_strbuf_append(&text, item);
    }
  }
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_arena_str(&own->base.arena, rn_strbuf_view(&text), out);
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t see(unique_iterator_t* own, const rn_tensor_t* tensor, bool* out_is_new) {
  rn_arena_mark_t mark = rn_arena_mark(&own->base.arena);
  rn_str_t key;
  RN_RETURN_IF_ERROR(key_of(own, tensor, &key));
  *out_is_new = !rn_map_get(&own->seen, key);
  if (!*out_is_new) {
    rn_arena_rewind(&own->base.arena, mark);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_map_put(&own->seen, key, own));
  RN_RETURN_IF_ERROR(rn_tensor_share(tensor, own->row));
  return rn_data_rows_push(&own->rows, own->row);
}

static bool unique_next(rn_data_iterator_t* iterator) {
  unique_iterator_t* own = (unique_iterator_t*)iterator;
  rn_tensor_t* out = iterator->asked->out;
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, out)) return false;
    }
    if (own->source.request.is_end) return rn_data_end(iterator);
    rn_status_t status = own->source.request.status;
    bool is_new = false;
    if (rn_ok(status)) {
      status = see(own, out, &is_new);
      if (!is_new || !rn_ok(status)) rn_data_row_clear(out, 1);
    }
    if (is_new || !rn_ok(status)) return rn_data_finish(iterator, status);
  }
}

static rn_status_t unique_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  unique_iterator_t* own = (unique_iterator_t*)iterator;
  rn_data_rows_save(&own->rows, writer);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t unique_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  unique_iterator_t* own = (unique_iterator_t*)iterator;
  int64_t count = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  for (int64_t i = 0; i < count; ++i) {
    rn_tensor_t row = {0};
    bool is_new = false;
    rn_status_t status = rn_data_take_row(reader, iterator->dataset->types, 1, &row);
    if (rn_ok(status) && !rn_tensor_is_set(&row)) status = rn_data_bad_state();
    if (rn_ok(status)) status = see(own, &row, &is_new);
    rn_tensor_clear(&row);
    RN_RETURN_IF_ERROR(status);
  }
  return rn_data_restore_source(reader, &own->source, iterator,
                                ((const unique_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_unique = {.dataset_size = sizeof(unique_t),
                                            .iterator_size = sizeof(unique_iterator_t),
                                            .open = unique_open,
                                            .start = unique_start,
                                            .stop = unique_stop,
                                            .next = unique_next,
                                            .save = unique_save,
                                            .restore = unique_restore};
