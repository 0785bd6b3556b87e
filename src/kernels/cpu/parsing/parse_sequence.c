// ParseSequenceExample, V2 and ParseSingleSequenceExample: SequenceExample messages to tensors.
//
// The context is a row of columns as in Example (columns.h). A feature list is a column whose cells
// are lists of steps; the steps of all messages are stored consecutively.
#include "base/vec.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/parsing/columns.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// A column of feature lists. The forms are sparse, dense and ragged.
typedef struct list_column_t {
  rn_str_t key;
  rn_column_form_t form;
  rn_dtype_t dtype;
  rn_shape_t shape;  // dense: of one step
  int64_t size;      // dense: values per step
  bool may_miss;     // dense: a missing list counts as empty
  rn_dtype_t split_type;
  // Outputs. Sparse: indices, values, shape; dense: values, lengths; ragged: values, outer and
  // inner splits.
  int out[3];
  RN_VEC(rn_feature_t) steps;
  int64_t* first;  // from the arena; by row, plus one: index of its first step
  int64_t total, widest, longest;
} list_column_t;

typedef struct parse_sequence_state_t {
  rn_arena_t arena;      // first; holds what follows
  rn_columns_t context;  // as made by init; without keys if those are inputs
  list_column_t* lists;
  int32_t list_count;
  int32_t context_sparse, context_dense, context_ragged, list_sparse, list_dense, list_ragged;
  const rn_shape_t* context_shapes;
} parse_sequence_state_t;

typedef struct parse_sequence_job_t {
  rn_kernel_ctx_t* ctx;
  rn_arena_t arena;
  rn_columns_t context;
  list_column_t* lists;
  int32_t list_count;
  rn_key_set_t context_keys, list_keys;
  const rn_tensor_t* names;  // one per row, or empty
  bool is_single;
  bool has_lengths;
  size_t bytes;
} parse_sequence_job_t;

// Reading.

static rn_str_t name_of(const parse_sequence_job_t* job, int64_t row) {
  if (!job->names || job->names->count == 0) return RN_STR("<unknown>");
  return rn_tstring_view(
      &RN_DATA(job->names, const rn_tstring_t)[job->names->count > row ? row : 0]);
}

static rn_status_t not_a_message(const parse_sequence_job_t* job, int64_t row, rn_str_t message) {
  if (job->is_single)
    return rn_invalid_argument("Could not parse example input, value: '%.*s'",
                               RN_STR_ARGS(message));
  return rn_invalid_argument("Invalid protocol message input, example id: %.*s",
                             RN_STR_ARGS(name_of(job, row)));
}

static rn_status_t check_context(const parse_sequence_job_t* job, int64_t row, rn_str_t message) {
  for (int32_t c = 0; c < job->context.count; ++c) {
    const rn_column_t* column = &job->context.list[c];
    rn_feature_t* feature = &job->context.found[row * job->context.count + c];
    if (feature->dtype == RN_INVALID) {
      if (column->form != RN_COLUMN_DENSE || column->fallback->count) continue;
      return rn_invalid_argument(
          "Name: %.*s, Context feature '%.*s' is required but could not be found.",
          RN_STR_ARGS(name_of(job, row)), RN_STR_ARGS(column->key));
    }
    if (feature->dtype != column->dtype)
      return rn_invalid_argument(
          "Name: %.*s, Context feature: %.*s.  Data types don't match. Expected type: %s",
          RN_STR_ARGS(name_of(job, row)), RN_STR_ARGS(column->key), rn_dtype_name(column->dtype));
    if (!rn_feature_count(feature)) return not_a_message(job, row, message);
    bool fits = column->form == RN_COLUMN_DENSE ? feature->count == column->size
                : column->form == RN_COLUMN_PADDED
                    ? (column->size ? feature->count % column->size == 0 : !feature->count)
                    : true;
    if (!fits)
      return rn_invalid_argument(
          "Name: %.*s, Key: %.*s, Index: 0.  Number of %s values != expected.  values size: %lld "
          "but output shape: %s",
          RN_STR_ARGS(name_of(job, row)), RN_STR_ARGS(column->key),
          rn_feature_kind(column->dtype, true), (long long)feature->count,
          rn_shape_text(column->shape).text);
  }
  return RN_OK;
}

static rn_status_t wrong_type(const parse_sequence_job_t* job, const list_column_t* list,
                              int64_t row, int64_t step) {
  bool is_capital = job->is_single && list->form == RN_COLUMN_SPARSE;
  return rn_invalid_argument(
      "Name: %.*s, Feature %s: %.*s, Index: %lld.  Data types don't match. Expected type: %s",
      RN_STR_ARGS(name_of(job, row)), is_capital ? "List" : "list", RN_STR_ARGS(list->key),
      (long long)step, rn_dtype_name(list->dtype));
}

static rn_status_t wrong_size(const parse_sequence_job_t* job, const list_column_t* list,
                              int64_t row, int64_t step, int64_t count) {
  return rn_invalid_argument(
      "Name: %.*s, Key: %.*s, Index: %lld.  Number of %s%svalues != expected.  values size: %lld "
      "but output shape: %s",
      RN_STR_ARGS(name_of(job, row)), RN_STR_ARGS(list->key), (long long)step,
      job->is_single ? rn_feature_kind(list->dtype, true) : "", job->is_single ? " " : "",
      (long long)count, rn_shape_text(list->shape).text);
}

// Checks the steps of a batch: first the total of the longest row, then each step.
static rn_status_t check_steps(const parse_sequence_job_t* job, const list_column_t* list) {
  int64_t most = 0;
  for (int64_t r = 0; r < job->context.rows; ++r) {
    int64_t count = 0;
    for (int64_t s = list->first[r]; s < list->first[r + 1]; ++s)
      count += list->steps.items[s].count;
    if (count > most) most = count;
  }
  if (list->size ? most % list->size : most) {
    int64_t dims[RN_MAX_RANK] = {RN_UNKNOWN};
    memcpy(dims + 1, list->shape.dims, (size_t)list->shape.rank * sizeof *dims);
    return rn_invalid_argument(
        "Feature list '%.*s' has an unexpected number of values.  Total values size: %lld is not "
        "consistent with output shape: %s",
        RN_STR_ARGS(list->key), (long long)most,
        rn_shape_text((rn_shape_t){(int16_t)(list->shape.rank + 1), dims}).text);
  }
  for (int64_t r = 0; r < job->context.rows; ++r)
    for (int64_t s = list->first[r]; s < list->first[r + 1]; ++s)
      if (list->steps.items[s].count != list->size)
        return wrong_size(job, list, r, s - list->first[r], list->steps.items[s].count);
  return RN_OK;
}

static rn_status_t add_step(parse_sequence_job_t* job, list_column_t* list, int64_t row,
                            rn_str_t message, rn_str_t bytes) {
  int64_t step = (int64_t)list->steps.count - list->first[row];
  rn_feature_t feature = {0};
  if (!rn_feature_read(bytes, &feature)) return not_a_message(job, row, message);
  if (feature.dtype != RN_INVALID) {
    if (feature.dtype != list->dtype) return wrong_type(job, list, row, step);
    if (!rn_feature_count(&feature)) return not_a_message(job, row, message);
  }
  if (job->is_single && list->form == RN_COLUMN_DENSE && feature.count != list->size)
    return wrong_size(job, list, row, step, feature.count);
  return rn_vec_push(&list->steps, job->ctx->kernel->allocator, feature);
}

// Reads the list |bytes| of |row|; a repeated key replaces the earlier list.
static rn_status_t read_list(parse_sequence_job_t* job, list_column_t* list, int64_t row,
                             rn_str_t message, rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  list->steps.count = (size_t)list->first[row];
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == 1 && field.wire == RN_PB_WIRE_LENGTH)
      RN_RETURN_IF_ERROR(add_step(job, list, row, message, field.bytes));
  return scan.is_bad ? not_a_message(job, row, message) : RN_OK;
}

static rn_status_t read_lists(parse_sequence_job_t* job, int64_t row, rn_str_t message,
                              bool* seen) {
  rn_entry_scan_t scan = rn_entry_scan(message, 2);
  rn_str_t key, value;
  memset(seen, 0, (size_t)job->list_count * sizeof *seen);
  for (int32_t l = 0; l < job->list_count; ++l)
    job->lists[l].first[row] = (int64_t)job->lists[l].steps.count;
  while (rn_entry_next(&scan, &key, &value)) {
    int32_t place = rn_key_set_find(&job->list_keys, key, -1);
    if (place < 0) continue;
    // Several columns may have the same key.
    for (int32_t l = place; l < job->list_count; ++l) {
      if (!rn_str_eq(job->lists[l].key, key)) continue;
      RN_RETURN_IF_ERROR(read_list(job, &job->lists[l], row, message, value));
      seen[l] = true;
    }
  }
  if (scan.is_bad) return not_a_message(job, row, message);
  for (int32_t l = 0; l < job->list_count; ++l) {
    const list_column_t* list = &job->lists[l];
    if (seen[l] || list->form != RN_COLUMN_DENSE || list->may_miss) continue;
    return rn_invalid_argument(
        "Name: %.*s, Feature list '%.*s' is required but could not be found.  Did you mean to "
        "include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
        RN_STR_ARGS(name_of(job, row)), RN_STR_ARGS(list->key));
  }
  return RN_OK;
}

static rn_status_t read_row(parse_sequence_job_t* job, int64_t row, rn_str_t message, bool* seen) {
  rn_entry_scan_t scan = rn_entry_scan(message, 1);
  rn_feature_t* found = job->context.found + row * job->context.count;
  rn_str_t key, value;
  while (rn_entry_next(&scan, &key, &value)) {
    int32_t place = rn_key_set_find(&job->context_keys, key, -1);
    for (int32_t c = place; c >= 0 && c < job->context.count; ++c)
      if (rn_str_eq(job->context.list[c].key, key) && !rn_feature_read(value, &found[c]))
        return not_a_message(job, row, message);
  }
  if (scan.is_bad) return not_a_message(job, row, message);
  RN_RETURN_IF_ERROR(check_context(job, row, message));
  return read_lists(job, row, message, seen);
}

// Writing lists.

static char* place(const rn_tensor_t* tensor, int64_t i) {
  return (char*)tensor->data + (size_t)i * rn_dtype_size(tensor->dtype);
}

static rn_status_t output(parse_sequence_job_t* job, const list_column_t* list, int which, int rank,
                          const int64_t* dims, rn_tensor_t** out) {
  return rn_output(job->ctx, list->out[which], (rn_shape_t){(int16_t)rank, dims}, out);
}

static void measure_list(const parse_sequence_job_t* job, list_column_t* list) {
  int64_t rows = job->context.rows;
  list->first[rows] = (int64_t)list->steps.count;
  for (size_t s = 0; s < list->steps.count; ++s) {
    rn_feature_t* step = &list->steps.items[s];
    step->start = list->total;
    list->total += step->count;
    if (step->count > list->widest) list->widest = step->count;
  }
  for (int64_t r = 0; r < rows; ++r)
    if (list->first[r + 1] - list->first[r] > list->longest)
      list->longest = list->first[r + 1] - list->first[r];
}

static rn_status_t values_of(const list_column_t* list, const rn_tensor_t* out) {
  for (size_t s = 0; s < list->steps.count; ++s) {
    const rn_feature_t* step = &list->steps.items[s];
    if (step->count && !rn_feature_values(step, place(out, step->start))) return rn_out_of_memory();
  }
  return RN_OK;
}

static rn_status_t write_sparse(parse_sequence_job_t* job, list_column_t* list) {
  bool is_scalar = job->context.is_scalar;
  int64_t rank = is_scalar ? 2 : 3;
  rn_tensor_t *indices = NULL, *values = NULL, *shape = NULL;
  RN_RETURN_IF_ERROR(output(job, list, 0, 2, (int64_t[]){list->total, rank}, &indices));
  RN_RETURN_IF_ERROR(output(job, list, 1, 1, &list->total, &values));
  RN_RETURN_IF_ERROR(output(job, list, 2, 1, &rank, &shape));
  int64_t *index = RN_DATA(indices, int64_t), *size = RN_DATA(shape, int64_t);
  for (int64_t r = 0; r < job->context.rows; ++r)
    for (int64_t s = list->first[r]; s < list->first[r + 1]; ++s)
      for (int64_t i = 0; i < list->steps.items[s].count; ++i) {
        if (!is_scalar) *index++ = r;
        *index++ = s - list->first[r];
        *index++ = i;
      }
  if (!is_scalar) *size++ = job->context.rows;
  *size++ = list->longest;
  *size = list->widest;
  return values_of(list, values);
}

static rn_status_t write_dense(parse_sequence_job_t* job, list_column_t* list) {
  bool is_scalar = job->context.is_scalar;
  int64_t dims[RN_MAX_RANK + 2], rows = job->context.rows;
  rn_tensor_t *values = NULL, *lengths = NULL;
  int rank = 0;
  if (list->shape.rank + 2 > RN_MAX_RANK)
    return rn_invalid_argument("feature_list_dense_shapes has too many dimensions: %d",
                               list->shape.rank);
  if (!job->is_single) RN_RETURN_IF_ERROR(check_steps(job, list));
  if (!is_scalar) dims[rank++] = rows;
  dims[rank++] = list->longest;
  for (int d = 0; d < list->shape.rank; ++d) dims[rank++] = list->shape.dims[d];
  RN_RETURN_IF_ERROR(output(job, list, 0, rank, dims, &values));
  // Short lists are padded with zeros; strings are empty from the start.
  if (list->dtype != RN_STRING) memset(values->data, 0, rn_tensor_bytes(values));
  for (int64_t r = 0; r < rows && list->size; ++r)
    for (int64_t s = list->first[r]; s < list->first[r + 1]; ++s) {
      int64_t at = (r * list->longest + s - list->first[r]) * list->size;
      if (!rn_feature_values(&list->steps.items[s], place(values, at))) return rn_out_of_memory();
    }
  if (!job->has_lengths) return RN_OK;
  RN_RETURN_IF_ERROR(output(job, list, 1, is_scalar ? 0 : 1, &rows, &lengths));
  for (int64_t r = 0; r < rows; ++r)
    RN_DATA(lengths, int64_t)[r] = list->first[r + 1] - list->first[r];
  return RN_OK;
}

static rn_status_t write_ragged(parse_sequence_job_t* job, list_column_t* list) {
  bool is_scalar = job->context.is_scalar;
  int64_t rows = job->context.rows, steps = (int64_t)list->steps.count;
  int64_t outer_size = rows + 1, inner_size = steps + 1;
  rn_tensor_t *values = NULL, *outer = NULL, *inner = NULL;
  if (list->split_type == RN_INT32 && (list->total > INT32_MAX || steps > INT32_MAX))
    return rn_invalid_argument("%lld values are too many for int32 row splits",
                               (long long)list->total);
  RN_RETURN_IF_ERROR(output(job, list, 0, 1, &list->total, &values));
  RN_RETURN_IF_ERROR(output(job, list, 1, is_scalar ? 0 : 1, &outer_size, &outer));
  RN_RETURN_IF_ERROR(output(job, list, 2, 1, &inner_size, &inner));
  for (int64_t r = 0; !is_scalar && r <= rows; ++r) rn_int_set(outer, r, list->first[r]);
  if (is_scalar) rn_int_set(outer, 0, steps);
  for (int64_t s = 0; s < steps; ++s) rn_int_set(inner, s, list->steps.items[s].start);
  rn_int_set(inner, steps, list->total);
  return values_of(list, values);
}

static rn_status_t write_list(parse_sequence_job_t* job, list_column_t* list) {
  measure_list(job, list);
  if (list->form == RN_COLUMN_SPARSE) return write_sparse(job, list);
  if (list->form == RN_COLUMN_DENSE) return write_dense(job, list);
  return write_ragged(job, list);
}

// One call.

static rn_status_t index_keys(parse_sequence_job_t* job) {
  rn_str_t *context = NULL, *lists = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)job->context.count + 1, &context));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, (size_t)job->list_count + 1, &lists));
  for (int32_t c = 0; c < job->context.count; ++c) context[c] = job->context.list[c].key;
  for (int32_t l = 0; l < job->list_count; ++l) lists[l] = job->lists[l].key;
  RN_RETURN_IF_ERROR(rn_key_set_init(&job->context_keys, &job->arena, context, job->context.count));
  return rn_key_set_init(&job->list_keys, &job->arena, lists, job->list_count);
}

static rn_status_t run_job(parse_sequence_job_t* job, const rn_tensor_t* serialized) {
  const rn_tstring_t* messages = RN_DATA(serialized, const rn_tstring_t);
  rn_arena_t* arena = &job->arena;
  size_t rows = (size_t)serialized->count, cells;
  bool* seen = NULL;
  job->context.rows = serialized->count;
  job->context.is_scalar = serialized->rank == 0;
  if (!rn_mul_ok(rows, (size_t)job->context.count, &cells)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, cells, &job->context.found));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)job->list_count + 1, &seen));
  for (int32_t l = 0; l < job->list_count; ++l)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, rows + 1, &job->lists[l].first));
  RN_RETURN_IF_ERROR(index_keys(job));
  for (int64_t r = 0; r < serialized->count; ++r) {
    rn_str_t message = rn_tstring_view(&messages[r]);
    job->bytes += message.size;
    RN_RETURN_IF_ERROR(read_row(job, r, message, seen));
  }
  RN_RETURN_IF_ERROR(rn_columns_measure(&job->context, job->ctx));
  RN_RETURN_IF_ERROR(rn_columns_fill(&job->context, job->ctx, job->bytes));
  for (int32_t l = 0; l < job->list_count; ++l) RN_RETURN_IF_ERROR(write_list(job, &job->lists[l]));
  return RN_OK;
}

// Copies the state's columns and sets the defaults of dense context columns.
static rn_status_t make_columns(parse_sequence_job_t* job, int defaults) {
  const parse_sequence_state_t* state = job->ctx->state;
  job->context = state->context;
  job->list_count = state->list_count;
  size_t contexts = (size_t)state->context.count, lists = (size_t)state->list_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, contexts + 1, &job->context.list));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, lists + 1, &job->lists));
  memcpy(job->context.list, state->context.list, contexts * sizeof *job->context.list);
  memcpy(job->lists, state->lists, lists * sizeof *job->lists);
  for (int32_t i = 0; i < state->context_dense; ++i)
    RN_RETURN_IF_ERROR(rn_column_set_dense(&job->context.list[state->context_sparse + i], i,
                                           state->context_shapes[i],
                                           rn_in(job->ctx, defaults + i)));
  return RN_OK;
}

static rn_status_t check_serialized(const rn_tensor_t* serialized, const rn_tensor_t* names,
                                    int max_rank) {
  if (serialized->rank > max_rank)
    return rn_invalid_argument("Expected serialized to be a %s, got shape: %s",
                               max_rank ? "vector" : "scalar", rn_text_of(serialized).text);
  if (names->count == 0 || names->count == serialized->count) return RN_OK;
  return rn_invalid_argument("Expected len(debug_name) == len(serialized), but got %lld vs. %lld",
                             (long long)names->count, (long long)serialized->count);
}

static rn_status_t parse_v1(parse_sequence_job_t* job) {
  const rn_tensor_t *serialized = rn_in(job->ctx, 0), *names = rn_in(job->ctx, 1);
  RN_RETURN_IF_ERROR(check_serialized(serialized, names, 1));
  job->names = names;
  job->has_lengths = true;
  RN_RETURN_IF_ERROR(make_columns(job, 2));
  return run_job(job, serialized);
}

static rn_status_t take_keys(const rn_tensor_t* input, const char* what, int32_t count,
                             void* first_key, size_t stride) {
  if (input->count != count)
    return rn_invalid_argument("Expected len(%s) to be %d, got %lld", what, count,
                               (long long)input->count);
  for (int32_t i = 0; i < count; ++i)
    *(rn_str_t*)((char*)first_key + (size_t)i * stride) =
        rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]);
  return RN_OK;
}

static rn_status_t parse_v2(parse_sequence_job_t* job) {
  const parse_sequence_state_t* state = job->ctx->state;
  rn_kernel_ctx_t* ctx = job->ctx;
  const rn_tensor_t *serialized = rn_in(ctx, 0), *names = rn_in(ctx, 1), *may_miss = rn_in(ctx, 8);
  RN_RETURN_IF_ERROR(check_serialized(serialized, names, 1));
  job->names = names;
  job->has_lengths = true;
  RN_RETURN_IF_ERROR(make_columns(job, 9));
  rn_column_t* c = job->context.list;
  list_column_t* l = job->lists;
  size_t step = sizeof *c, list_step = sizeof *l;
  RN_RETURN_IF_ERROR(
      take_keys(rn_in(ctx, 2), "context_sparse_keys", state->context_sparse, &c->key, step));
  c += state->context_sparse;
  RN_RETURN_IF_ERROR(
      take_keys(rn_in(ctx, 3), "context_dense_keys", state->context_dense, &c->key, step));
  c += state->context_dense;
  RN_RETURN_IF_ERROR(
      take_keys(rn_in(ctx, 4), "context_ragged_keys", state->context_ragged, &c->key, step));
  RN_RETURN_IF_ERROR(
      take_keys(rn_in(ctx, 5), "feature_list_sparse_keys", state->list_sparse, &l->key, list_step));
  l += state->list_sparse;
  RN_RETURN_IF_ERROR(
      take_keys(rn_in(ctx, 6), "feature_list_dense_keys", state->list_dense, &l->key, list_step));
  if (may_miss->count != state->list_dense)
    return rn_invalid_argument(
        "Expected len(feature_list_dense_missing_assumed_empty) to be %d, got %lld",
        state->list_dense, (long long)may_miss->count);
  for (int32_t i = 0; i < state->list_dense; ++i) l[i].may_miss = RN_DATA(may_miss, const bool)[i];
  l += state->list_dense;
  RN_RETURN_IF_ERROR(
      take_keys(rn_in(ctx, 7), "feature_list_ragged_keys", state->list_ragged, &l->key, list_step));
  return run_job(job, serialized);
}

static rn_status_t scalar_key(const rn_tensor_t* input, rn_str_t* out) {
  if (input->count != 1)
    return rn_invalid_argument("Expected a key to be a scalar, got shape: %s",
                               rn_text_of(input).text);
  *out = rn_tstring_view(RN_DATA(input, const rn_tstring_t));
  return RN_OK;
}

static rn_status_t parse_single(parse_sequence_job_t* job) {
  const parse_sequence_state_t* state = job->ctx->state;
  rn_kernel_ctx_t* ctx = job->ctx;
  const rn_tensor_t *serialized = rn_in(ctx, 0), *empty = rn_in(ctx, 1);
  int contexts = state->context.count, lists = state->list_count;
  int defaults = 2 + contexts + lists;
  job->names = rn_in(ctx, defaults + state->context_dense);
  job->is_single = true;
  RN_RETURN_IF_ERROR(check_serialized(serialized, job->names, 0));
  RN_RETURN_IF_ERROR(make_columns(job, defaults));
  for (int i = 0; i < contexts; ++i)
    RN_RETURN_IF_ERROR(scalar_key(rn_in(ctx, 2 + i), &job->context.list[i].key));
  for (int i = 0; i < lists; ++i) {
    list_column_t* list = &job->lists[i];
    RN_RETURN_IF_ERROR(scalar_key(rn_in(ctx, 2 + contexts + i), &list->key));
    for (int64_t k = 0; k < empty->count; ++k)
      list->may_miss |=
          rn_str_eq(list->key, rn_tstring_view(&RN_DATA(empty, const rn_tstring_t)[k]));
  }
  return run_job(job, serialized);
}

static rn_status_t with_job(rn_kernel_ctx_t* ctx, rn_status_t (*parse)(parse_sequence_job_t*)) {
  parse_sequence_job_t job = {.ctx = ctx};
  rn_arena_init(&job.arena, ctx->kernel->allocator);
  rn_status_t status = parse(&job);
  for (int32_t l = 0; job.lists && l < job.list_count; ++l)
    rn_vec_free(&job.lists[l].steps, ctx->kernel->allocator);
  rn_arena_clear(&job.arena);
  return status;
}
static rn_status_t compute_v1(rn_kernel_ctx_t* ctx) { return with_job(ctx, parse_v1); }
static rn_status_t compute_v2(rn_kernel_ctx_t* ctx) { return with_job(ctx, parse_v2); }
static rn_status_t compute_single(rn_kernel_ctx_t* ctx) { return with_job(ctx, parse_single); }

// Attributes.

static rn_status_t copy_shape(rn_arena_t* arena, rn_shape_t shape, rn_shape_t* out) {
  int64_t* dims = NULL;
  if (!rn_shape_has_rank(shape)) return rn_invalid_argument("A dense shape has unknown rank");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shape.rank + 1, &dims));
  for (int d = 0; d < shape.rank; ++d) dims[d] = shape.dims[d];
  *out = (rn_shape_t){shape.rank, dims};
  return RN_OK;
}

static rn_status_t set_step_shape(list_column_t* list, rn_arena_t* arena, rn_shape_t shape) {
  RN_RETURN_IF_ERROR(copy_shape(arena, shape, &list->shape));
  list->size = 1;
  for (int d = 0; d < shape.rank; ++d)
    if (shape.dims[d] < 0 || !rn_mul_i64_ok(list->size, shape.dims[d], &list->size))
      return rn_invalid_argument("feature_list_dense_shapes: %s is not fully defined",
                                 rn_shape_text(shape).text);
  return RN_OK;
}

// Adds |count| columns of one form and numbers their outputs: |parts| lists of |count| each.
static void add_columns(rn_column_t** inout_list, rn_column_form_t form,
                        const rn_attr_value_t* types, int parts, int* inout_output) {
  for (int32_t i = 0; i < types->count; ++i, ++*inout_list) {
    (*inout_list)->form = form;
    (*inout_list)->dtype = types->list_type[i];
    for (int p = 0; p < parts; ++p) (*inout_list)->out[p] = *inout_output + p * types->count + i;
  }
  *inout_output += parts * types->count;
}

static void add_lists(list_column_t** inout_list, rn_column_form_t form,
                      const rn_attr_value_t* types, int parts, int* inout_output) {
  for (int32_t i = 0; i < types->count; ++i, ++*inout_list) {
    (*inout_list)->form = form;
    (*inout_list)->dtype = types->list_type[i];
    for (int p = 0; p < parts; ++p) (*inout_list)->out[p] = *inout_output + p * types->count + i;
  }
  *inout_output += parts * types->count;
}

typedef struct lists_t {
  const rn_attr_value_t *context_sparse, *context_dense, *context_shapes, *context_ragged;
  const rn_attr_value_t *context_splits, *sparse, *dense, *dense_shapes, *ragged, *splits;
} lists_t;

static const rn_attr_value_t no_list = {0};

static lists_t read_attrs(const rn_kernel_init_t* init, bool has_ragged) {
  return (lists_t){
      .context_sparse = rn_init_attr(init, "context_sparse_types"),
      .context_dense = rn_init_attr(init, "Tcontext_dense"),
      .context_shapes = rn_init_attr(init, "context_dense_shapes"),
      .context_ragged = has_ragged ? rn_init_attr(init, "context_ragged_value_types") : &no_list,
      .context_splits = has_ragged ? rn_init_attr(init, "context_ragged_split_types") : &no_list,
      .sparse = rn_init_attr(init, "feature_list_sparse_types"),
      .dense = rn_init_attr(init, "feature_list_dense_types"),
      .dense_shapes = rn_init_attr(init, "feature_list_dense_shapes"),
      .ragged = has_ragged ? rn_init_attr(init, "feature_list_ragged_value_types") : &no_list,
      .splits = has_ragged ? rn_init_attr(init, "feature_list_ragged_split_types") : &no_list,
  };
}

static rn_status_t check_counts(const rn_kernel_init_t* init, const lists_t* a) {
  bool has_dense_count = rn_op_attr_index(init->op, RN_STR("Ncontext_dense")) >= 0;
  if (a->context_dense->count != a->context_shapes->count)
    return rn_invalid_argument("len(context_dense_keys) != len(context_dense_shapes)");
  if (a->dense->count != a->dense_shapes->count)
    return rn_invalid_argument("len(feature_list_dense_keys) != len(feature_list_dense_shapes)");
  if (a->context_ragged->count != a->context_splits->count || a->ragged->count != a->splits->count)
    return rn_invalid_argument("len(ragged_value_types) != len(ragged_split_types)");
  if (rn_init_int(init, "Ncontext_sparse") != a->context_sparse->count ||
      rn_init_int(init, "Nfeature_list_sparse") != a->sparse->count ||
      rn_init_int(init, "Nfeature_list_dense") != a->dense->count ||
      (has_dense_count && rn_init_int(init, "Ncontext_dense") != a->context_dense->count))
    return rn_invalid_argument("The lists of keys and types differ in length");
  return RN_OK;
}

static rn_status_t init_state(const rn_kernel_init_t* init, parse_sequence_state_t* state,
                              bool has_ragged, bool has_lengths) {
  lists_t a = read_attrs(init, has_ragged);
  rn_arena_t* arena = &state->arena;
  rn_shape_t* shapes = NULL;
  int output = 0;
  rn_arena_init(arena, init->allocator);
  RN_RETURN_IF_ERROR(check_counts(init, &a));
  state->context_sparse = a.context_sparse->count;
  state->context_dense = a.context_dense->count;
  state->context_ragged = a.context_ragged->count;
  state->list_sparse = a.sparse->count;
  state->list_dense = a.dense->count;
  state->list_ragged = a.ragged->count;
  state->context.count = state->context_sparse + state->context_dense + state->context_ragged;
  state->list_count = state->list_sparse + state->list_dense + state->list_ragged;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)state->context.count + 1, &state->context.list));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)state->list_count + 1, &state->lists));
  rn_column_t* column = state->context.list;
  list_column_t* list = state->lists;
  add_columns(&column, RN_COLUMN_SPARSE, a.context_sparse, 3, &output);
  add_columns(&column, RN_COLUMN_DENSE, a.context_dense, 1, &output);
  for (int32_t i = 0; i < state->context_ragged; ++i)
    column[i].split_type = a.context_splits->list_type[i];
  add_columns(&column, RN_COLUMN_RAGGED, a.context_ragged, 2, &output);
  add_lists(&list, RN_COLUMN_SPARSE, a.sparse, 3, &output);
  for (int32_t i = 0; i < state->list_dense; ++i)
    RN_RETURN_IF_ERROR(set_step_shape(&list[i], arena, a.dense_shapes->list_shape[i]));
  add_lists(&list, RN_COLUMN_DENSE, a.dense, has_lengths ? 2 : 1, &output);
  for (int32_t i = 0; i < state->list_ragged; ++i) list[i].split_type = a.splits->list_type[i];
  add_lists(&list, RN_COLUMN_RAGGED, a.ragged, 3, &output);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)state->context_dense + 1, &shapes));
  for (int32_t i = 0; i < state->context_dense; ++i)
    RN_RETURN_IF_ERROR(copy_shape(arena, a.context_shapes->list_shape[i], &shapes[i]));
  state->context_shapes = shapes;
  return RN_OK;
}

static rn_status_t init_v2(const rn_kernel_init_t* init, void* self) {
  return init_state(init, self, true, true);
}
static rn_status_t init_single(const rn_kernel_init_t* init, void* self) {
  return init_state(init, self, false, false);
}

// Reads keys from attributes.
static rn_status_t keys_from(const rn_kernel_init_t* init, parse_sequence_state_t* state,
                             const char* attr, int32_t count, void* first_key, size_t stride) {
  const rn_attr_value_t* keys = rn_init_attr(init, attr);
  if (keys->count != count) return rn_invalid_argument("len(%s) != %d", attr, count);
  for (int32_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, keys->list_s[i],
                                    (rn_str_t*)((char*)first_key + (size_t)i * stride)));
  return RN_OK;
}

static rn_status_t init_v1(const rn_kernel_init_t* init, void* self) {
  parse_sequence_state_t* state = self;
  RN_RETURN_IF_ERROR(init_state(init, state, false, true));
  const rn_attr_value_t* empty = rn_init_attr(init, "feature_list_dense_missing_assumed_empty");
  rn_column_t* c = state->context.list;
  list_column_t* l = state->lists;
  RN_RETURN_IF_ERROR(
      keys_from(init, state, "context_sparse_keys", state->context_sparse, &c->key, sizeof *c));
  c += state->context_sparse;
  RN_RETURN_IF_ERROR(
      keys_from(init, state, "context_dense_keys", state->context_dense, &c->key, sizeof *c));
  RN_RETURN_IF_ERROR(
      keys_from(init, state, "feature_list_sparse_keys", state->list_sparse, &l->key, sizeof *l));
  l += state->list_sparse;
  RN_RETURN_IF_ERROR(
      keys_from(init, state, "feature_list_dense_keys", state->list_dense, &l->key, sizeof *l));
  for (int32_t i = 0; i < state->list_dense; ++i)
    for (int32_t k = 0; k < empty->count; ++k)
      l[i].may_miss |= rn_str_eq(l[i].key, empty->list_s[k]);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    RN_EXAMPLE_ROW("ParseSequenceExample", parse_sequence_state_t, init_v1, compute_v1),
    RN_EXAMPLE_ROW("ParseSequenceExampleV2", parse_sequence_state_t, init_v2, compute_v2),
    RN_EXAMPLE_ROW("ParseSingleSequenceExample", parse_sequence_state_t, init_single,
                   compute_single),
};
RN_KERNEL_FAMILY(cpu_parse_sequence, rows);
