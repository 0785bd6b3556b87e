// Splits batches again, into elements or into batches of other sizes.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/move.h"

typedef struct rebatch_cut_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  const rn_tensor_t* sizes;  // for a rebatch
  bool drops_remainder;
  int64_t replicas;  // for a split: pieces per batch
} rebatch_cut_t;

typedef struct cut_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_tensor_t* whole;  // the current batch; unset if none
  int64_t size, next;  // its rows, and the first not given yet
  int64_t turn;        // index of the next size
  rn_tensor_t* made;   // for a rebatch: the batch being collected
  int64_t made_count;
} cut_iterator_t;

static rn_status_t cut_open(rn_dataset_t* dataset) {
  rebatch_cut_t* cut = (rebatch_cut_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &cut->input));
  if (cut->input->component_count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, cut->input->component_count,
                               dataset->component_count);
  return RN_OK;
}

static rn_status_t cut_start(rn_data_iterator_t* iterator) {
  cut_iterator_t* own = (cut_iterator_t*)iterator;
  int32_t count = iterator->dataset->component_count;
  RN_RETURN_IF_ERROR(rn_data_row(iterator, count, &own->whole));
  RN_RETURN_IF_ERROR(rn_data_row(iterator, count, &own->made));
  return rn_data_source_start(&own->source, iterator,
                              ((const rebatch_cut_t*)iterator->dataset)->input);
}

static void cut_stop(rn_data_iterator_t* iterator) {
  cut_iterator_t* own = (cut_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->whole, iterator->dataset->component_count);
  rn_data_row_clear(own->made, iterator->dataset->component_count);
}

static rn_status_t cut_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  cut_iterator_t* own = (cut_iterator_t*)iterator;
  rn_data_put_int(writer, own->size);
  rn_data_put_int(writer, own->next);
  rn_data_put_int(writer, own->turn);
  rn_data_put_row(writer, own->whole, iterator->dataset->component_count);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t cut_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  cut_iterator_t* own = (cut_iterator_t*)iterator;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->size));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->turn));
  int32_t count = iterator->dataset->component_count;
  RN_RETURN_IF_ERROR(rn_data_take_row(reader, iterator->dataset->types, count, own->whole));
  bool fits = own->next >= 0 && own->turn >= 0;
  for (int32_t c = 0; fits && own->next < own->size && c < count; ++c)
    fits = rn_tensor_is_set(&own->whole[c]) && own->whole[c].rank > 0 &&
           rn_tensor_dim(&own->whole[c], 0) == own->size;
  if (!fits) return rn_data_bad_state();
  return rn_data_restore_source(reader, &own->source, iterator,
                                ((const rebatch_cut_t*)iterator->dataset)->input);
}

#define CUT                                                                       \
  .dataset_size = sizeof(rebatch_cut_t), .iterator_size = sizeof(cut_iterator_t), \
  .start = cut_start, .stop = cut_stop, .save = cut_save, .restore = cut_restore

// Copies rows [first, first + count) of |tensor| to |to|, from its row |place| on.
static rn_status_t copy_rows(const rn_tensor_t* tensor, int64_t first, int64_t count,
                             rn_tensor_t* to, int64_t place) {
  if (tensor->count == 0) return RN_OK;
  int64_t width = tensor->count / rn_tensor_dim(tensor, 0);
  size_t size = (size_t)width * rn_dtype_size(tensor->dtype);
  return rn_move_row(tensor->dtype, (const char*)tensor->data + (size_t)first * size,
                     (char*)to->data + (size_t)place * size, count * width);
}

// Determines the number of rows of the batch that has arrived.
static rn_status_t measure(cut_iterator_t* own, const char* what) {
  int32_t count = own->base.dataset->component_count;
  own->next = own->size = 0;
  for (int32_t c = 0; c < count; ++c) {
    const rn_tensor_t* tensor = &own->whole[c];
    if (tensor->rank == 0) return rn_invalid_argument("%s requires a non-scalar input", what);
    int64_t rows = rn_tensor_dim(tensor, 0);
    if (c > 0 && rows != own->size)
      return rn_invalid_argument(
          "Input element must have the same batch size in each component. Component 0 had size "
          "%lld but component %d had size, %lld.",
          (long long)own->size, c, (long long)rows);
    own->size = rows;
  }
  return RN_OK;
}

// True if the current batch has rows left, or the source has ended or failed.
static bool get_whole(cut_iterator_t* own, const char* what, bool* out_pending) {
  rn_data_iterator_t* iterator = &own->base;
  *out_pending = false;
  while (own->next >= own->size) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      rn_data_row_clear(own->whole, iterator->dataset->component_count);
      if (!rn_data_ask(&own->source, own->whole)) {
        *out_pending = true;
        return false;
      }
    }
    iterator->phase = 0;
    if (own->source.request.is_end) return false;
    rn_status_t status = own->source.request.status;
    if (rn_ok(status)) status = measure(own, what);
    if (!rn_ok(status)) {
      own->next = own->size = 0;
      iterator->asked->status = status;
      return false;
    }
  }
  return true;
}

static rn_status_t give_row(cut_iterator_t* own, rn_tensor_t* out) {
  const rn_dataset_t* dataset = own->base.dataset;
  for (int32_t c = 0; c < dataset->component_count; ++c) {
    const rn_tensor_t* whole = &own->whole[c];
    rn_shape_t shape = {whole->rank - 1, rn_tensor_dims(whole) + 1};
    RN_RETURN_IF_ERROR(rn_tensor_create(dataset->node->memory, whole->dtype, shape, &out[c]));
    RN_RETURN_IF_ERROR(copy_rows(whole, own->next, 1, &out[c], 0));
  }
  own->next++;
  return RN_OK;
}

static bool unbatch_next(rn_data_iterator_t* iterator) {
  cut_iterator_t* own = (cut_iterator_t*)iterator;
  bool is_pending = false;
  if (!get_whole(own, "unbatch", &is_pending)) {
    if (is_pending) return false;
    if (!rn_ok(iterator->asked->status)) return rn_data_finish(iterator, iterator->asked->status);
    return rn_data_end(iterator);
  }
  rn_status_t status = give_row(own, iterator->asked->out);
  if (!rn_ok(status)) rn_data_row_clear(iterator->asked->out, iterator->dataset->component_count);
  return rn_data_finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_unbatch = {CUT, .open = cut_open, .next = unbatch_next};

// Batches of given sizes, in turn.
static rn_status_t rebatch_open(rn_dataset_t* dataset) {
  rebatch_cut_t* cut = (rebatch_cut_t*)dataset;
  RN_RETURN_IF_ERROR(cut_open(dataset));
  cut->sizes = rn_data_input(dataset, "batch_sizes", NULL);
  if (cut->sizes->rank > 1)
    return rn_invalid_argument("`batch_sizes` must be a scalar or a vector.");
  if (cut->sizes->count == 0) return rn_invalid_argument("batch_sizes cannot be empty");
  for (int64_t i = 0; i < cut->sizes->count; ++i)
    if (rn_int_at(cut->sizes, i) <= 0)
      return rn_invalid_argument("batch_sizes[%lld] must be > 0, but was %lld.", (long long)i,
                                 (long long)rn_int_at(cut->sizes, i));
  int64_t drops = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "drop_remainder", &drops));
  cut->drops_remainder = drops != 0;
  return RN_OK;
}

// Appends |count| rows of the current batch to the one being collected.
static rn_status_t gather(cut_iterator_t* own, int64_t count) {
  const rn_dataset_t* dataset = own->base.dataset;
  for (int32_t c = 0; c < dataset->component_count; ++c) {
    const rn_tensor_t* whole = &own->whole[c];
    int64_t dims[RN_MAX_RANK];
    memcpy(dims, rn_tensor_dims(whole), (size_t)whole->rank * sizeof *dims);
    dims[0] = own->made_count + count;
    rn_tensor_t* made = &own->made[c];
    if (own->made_count &&
        (made->rank != whole->rank ||
         memcmp(rn_tensor_dims(made) + 1, dims + 1, (size_t)(whole->rank - 1) * sizeof *dims) != 0))
      return rn_invalid_argument(
          "Cannot batch tensors with different shapes in component %d. First element had shape %s "
          "and a later one %s.",
          c, rn_text_of(made).text, rn_text_of(whole).text);
    rn_tensor_t larger = {0};
    RN_RETURN_IF_ERROR(rn_tensor_create(dataset->node->memory, whole->dtype,
                                        (rn_shape_t){whole->rank, dims}, &larger));
    rn_status_t status = RN_OK;
    if (own->made_count) status = copy_rows(made, 0, own->made_count, &larger, 0);
    if (rn_ok(status)) status = copy_rows(whole, own->next, count, &larger, own->made_count);
    rn_tensor_clear(made);
    *made = larger;
    RN_RETURN_IF_ERROR(status);
  }
  own->made_count += count;
  own->next += count;
  return RN_OK;
}

static bool rebatch_fail(cut_iterator_t* own, rn_status_t status) {
  rn_data_row_clear(own->made, own->base.dataset->component_count);
  own->made_count = 0;
  return rn_data_finish(&own->base, status);
}

static bool rebatch_next(rn_data_iterator_t* iterator) {
  cut_iterator_t* own = (cut_iterator_t*)iterator;
  const rebatch_cut_t* cut = (const rebatch_cut_t*)iterator->dataset;
  int64_t wanted = rn_int_at(cut->sizes, own->turn % cut->sizes->count);
  while (own->made_count < wanted) {
    bool is_pending = false;
    if (!get_whole(own, "rebatch", &is_pending)) {
      if (is_pending) return false;
      if (!rn_ok(iterator->asked->status)) return rebatch_fail(own, iterator->asked->status);
      break;
    }
    int64_t left = own->size - own->next, need = wanted - own->made_count;
    rn_status_t status = gather(own, left < need ? left : need);
    if (!rn_ok(status)) return rebatch_fail(own, status);
  }
  if (own->made_count == 0 || (own->made_count < wanted && cut->drops_remainder)) {
    rebatch_fail(own, RN_OK);
    return rn_data_end(iterator);
  }
  rn_data_row_move(own->made, iterator->asked->out, iterator->dataset->component_count);
  own->made_count = 0;
  own->turn++;
  return rn_data_finish(iterator, RN_OK);
}

const rn_data_kind_t rn_data_kind_rebatch = {CUT, .open = rebatch_open, .next = rebatch_next};

// Each batch in as many pieces as there are replicas: equal ones, then shorter or empty ones.
static rn_status_t split_open(rn_dataset_t* dataset) {
  rebatch_cut_t* cut = (rebatch_cut_t*)dataset;
  RN_RETURN_IF_ERROR(cut_open(dataset));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "num_replicas", &cut->replicas));
  if (cut->replicas <= 0) return rn_invalid_argument("num_replicas must be greater than zero.");
  return RN_OK;
}

static int64_t split_cardinality(const rn_dataset_t* dataset) {
  const rebatch_cut_t* cut = (const rebatch_cut_t*)dataset;
  int64_t n = rn_dataset_cardinality(cut->input), all = 0;
  if (n < 0) return n;
  return rn_mul_i64_ok(n, cut->replicas, &all) ? all : INT64_MAX;
}

static rn_status_t check_batch(const cut_iterator_t* own) {
  for (int32_t c = 0; c < own->base.dataset->component_count; ++c)
    if (own->whole[c].rank == 0)
      return rn_invalid_argument(
          "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your "
          "input dataset is not batched? Component %d is scalar.",
          c);
  return RN_OK;
}

// Rows [next, next + count) of the batch, copied.
static rn_status_t give_piece(cut_iterator_t* own, int64_t count, rn_tensor_t* out) {
  const rn_dataset_t* dataset = own->base.dataset;
  for (int32_t c = 0; c < dataset->component_count; ++c) {
    const rn_tensor_t* whole = &own->whole[c];
    int64_t dims[RN_MAX_RANK];
    memcpy(dims, rn_tensor_dims(whole), (size_t)whole->rank * sizeof *dims);
    dims[0] = count;
    RN_RETURN_IF_ERROR(rn_tensor_create(dataset->node->memory, whole->dtype,
                                        (rn_shape_t){whole->rank, dims}, &out[c]));
    if (count) RN_RETURN_IF_ERROR(copy_rows(whole, own->next, count, &out[c], 0));
  }
  own->next += count;
  return RN_OK;
}

static bool split_next(rn_data_iterator_t* iterator) {
  cut_iterator_t* own = (cut_iterator_t*)iterator;
  const rebatch_cut_t* cut = (const rebatch_cut_t*)iterator->dataset;
  rn_status_t status = RN_OK;
  if (own->turn == 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      rn_data_row_clear(own->whole, cut->base.component_count);
      if (!rn_data_ask(&own->source, own->whole)) return false;
    }
    if (own->source.request.is_end) return rn_data_end(iterator);
    status = own->source.request.status;
    if (rn_ok(status)) status = check_batch(own);
    if (rn_ok(status)) status = measure(own, "rebatch");
  }
  int64_t piece = own->size / cut->replicas + (own->size % cut->replicas != 0);
  int64_t left = own->size - own->next;
  if (rn_ok(status)) status = give_piece(own, left < piece ? left : piece, iterator->asked->out);
  if (rn_ok(status))
    own->turn = (own->turn + 1) % cut->replicas;
  else
    rn_data_row_clear(iterator->asked->out, cut->base.component_count);
  return rn_data_finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_split = {CUT, .open = split_open,
                                           .cardinality = split_cardinality, .next = split_next};
