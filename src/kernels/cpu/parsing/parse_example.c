// ParseExample, ParseExampleV2 and ParseSingleExample: Example messages to tensors.
//
// First several threads scan every message once and note the features that columns need, without
// copying; then columns are measured and filled (columns.h).
#include <stdatomic.h>
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/parsing/columns.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct parse_example_state_t {
  rn_arena_t arena;  // first; holds what follows
  const rn_shape_t* dense_shapes;
  const rn_str_t* keys;     // ParseSingleExample: sparse ones, then dense ones
  const rn_dtype_t* types;  // of all columns: sparse, dense, ragged
  const rn_dtype_t* split_types;
  int32_t sparse, dense, ragged;
} parse_example_state_t;

// One call.
typedef struct parse_example_job_t {
  rn_columns_t columns;
  rn_key_set_t keys;
  const int32_t* column_of;  // by index in |keys|: the first column of that key
  const int32_t* next;       // by column: the next one of the same key, or -1
  const rn_tstring_t* messages;
  const rn_tensor_t* names;  // empty if there are none
  size_t bytes;
  bool is_single;                // a scalar: stock has other messages for it
  bool fills;                    // fills rows as they are scanned
  _Atomic bool is_short;         // out of memory
  _Atomic int64_t first_failed;  // row; the number of rows if none failed
} parse_example_job_t;

// Scanning.

static rn_status_t wrong(const parse_example_job_t* job, const rn_column_t* column, int64_t row,
                         const char* format, ...) RN_PRINTF(4, 5);

static rn_str_t name_of(const parse_example_job_t* job, int64_t row) {
  if (!job->names || job->names->count == 0) return RN_STR("<unknown>");
  return rn_tstring_view(&RN_DATA(job->names, const rn_tstring_t)[row]);
}

static rn_status_t wrong(const parse_example_job_t* job, const rn_column_t* column, int64_t row,
                         const char* format, ...) {
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (job->is_single) return rn_invalid_argument("Key: %.*s.  %s", RN_STR_ARGS(column->key), what);
  return rn_invalid_argument("Name: %.*s, Key: %.*s, Index: %lld.  %s",
                             RN_STR_ARGS(name_of(job, row)), RN_STR_ARGS(column->key),
                             (long long)row, what);
}

static rn_status_t missing(const parse_example_job_t* job, const rn_column_t* column, int64_t row) {
  const char* type = rn_dtype_name(column->dtype);
  if (job->is_single)
    return rn_invalid_argument("Feature: %.*s (data type: %s) is required but could not be found.",
                               RN_STR_ARGS(column->key), type);
  return rn_invalid_argument(
      "Name: %.*s, Feature: %.*s (data type: %s) is required but could not be found.",
      RN_STR_ARGS(name_of(job, row)), RN_STR_ARGS(column->key), type);
}

static rn_status_t wrong_count(const parse_example_job_t* job, const rn_column_t* column,
                               int64_t row, int64_t count) {
  const char* kind = rn_feature_kind(column->dtype, true);
  bool is_text = column->dtype == RN_STRING, is_more = count > column->size;
  if (job->is_single && column->form == RN_COLUMN_PADDED)
    return rn_invalid_argument(
        "Error while parsing feature with key %.*s: number of elements should be divisible by "
        "%lld, found %lld instead",
        RN_STR_ARGS(column->key), (long long)column->size, (long long)count);
  if (column->form == RN_COLUMN_PADDED)
    return wrong(job, column, row,
                 "Number of %s values is not a multiple of stride length. Saw %lld values but "
                 "output shape is: %s",
                 kind, (long long)count, rn_shape_text(column->shape).text);
  if (job->is_single && is_text && is_more)
    return wrong(job, column, row, "Can't parse serialized Example: Parsing bytes_list failed.");
  if (job->is_single)
    return wrong(job, column, row, "Can't parse serialized Example: Some %s slice was not parsed.",
                 rn_feature_kind(column->dtype, false));
  if (is_text && is_more) return wrong(job, column, row, "Can't parse serialized Example.");
  return wrong(job, column, row,
               "Number of %s values != expected.  Values size: %lld but output shape: %s", kind,
               (long long)count, rn_shape_text(column->shape).text);
}

// Checks and counts what was found for |column| in |row|.
static rn_status_t check_feature(const parse_example_job_t* job, const rn_column_t* column,
                                 int64_t row, rn_feature_t* feature) {
  bool is_dense = column->form == RN_COLUMN_DENSE || column->form == RN_COLUMN_PADDED;
  if (feature->dtype == RN_INVALID) {
    bool is_needed = column->form == RN_COLUMN_DENSE && column->fallback->count == 0;
    return is_needed ? missing(job, column, row) : RN_OK;
  }
  if (feature->dtype != column->dtype && is_dense)
    return wrong(job, column, row, "Data types don't match. Data type: %s but expected type: %s",
                 rn_dtype_name(feature->dtype), rn_dtype_name(column->dtype));
  if (feature->dtype != column->dtype)
    return wrong(job, column, row, "Data types don't match. Expected type: %s, Actual type: %s",
                 rn_dtype_name(column->dtype), rn_dtype_name(feature->dtype));
  if (!rn_feature_count(feature)) return wrong(job, column, row, "Can't parse serialized Example.");
  bool fits = column->form == RN_COLUMN_DENSE ? feature->count == column->size
              : column->form == RN_COLUMN_PADDED
                  ? (column->size ? feature->count % column->size == 0 : feature->count == 0)
                  : true;
  return fits ? RN_OK : wrong_count(job, column, row, feature->count);
}

// Finds the features of one message. |guess| holds one guess per key, kept from row to row.
static rn_status_t scan_row(parse_example_job_t* job, int64_t row, int32_t* guess,
                            int32_t guesses) {
  rn_columns_t* columns = &job->columns;
  rn_feature_t* found = columns->found + row * columns->count;
  rn_str_t message = rn_tstring_view(&job->messages[row]), key, value;
  rn_entry_scan_t scan = rn_entry_scan(message, 1);
  bool is_bad = false;
  for (int32_t place = 0; rn_entry_next(&scan, &key, &value); ++place) {
    int32_t k = rn_key_set_find(&job->keys, key, place < guesses ? guess[place] : -1);
    if (place < guesses) guess[place] = k;
    // A repeated key replaces the earlier one.
    for (int32_t c = k < 0 ? -1 : job->column_of[k]; c >= 0; c = job->next[c])
      is_bad |= !rn_feature_read(value, &found[c]);
  }
  if (scan.is_bad || is_bad)
    return rn_invalid_argument("Could not parse example input, value: '%.*s'",
                               RN_STR_ARGS(message));
  rn_status_t status = RN_OK;
  for (int32_t c = 0; c < columns->count && rn_ok(status); ++c)
    status = check_feature(job, &columns->list[c], row, &found[c]);
  return status;
}

#define GUESSES 32

static void scan_rows(void* arg, int64_t begin, int64_t end) {
  parse_example_job_t* job = arg;
  int32_t guess[GUESSES];
  memset(guess, -1, sizeof guess);
  for (int64_t row = begin; row < end; ++row) {
    rn_status_t status = scan_row(job, row, guess, GUESSES);
    if (rn_ok(status) && job->fills && !rn_columns_fill_row(&job->columns, row))
      atomic_store(&job->is_short, true);
    if (rn_ok(status)) continue;
    rn_status_free(status);
    int64_t first = atomic_load(&job->first_failed);
    while (row < first && !atomic_compare_exchange_weak(&job->first_failed, &first, row)) {
    }
    return;
  }
}

// Returns the error of the first failing message, whichever thread scanned it.
static rn_status_t scan_all(parse_example_job_t* job, rn_kernel_ctx_t* ctx) {
  int64_t rows = job->columns.rows;
  atomic_store(&job->first_failed, rows);
  rn_pool_for(rn_ctx_pool(ctx), rows, rn_columns_grain(rows, job->bytes), scan_rows, job);
  int64_t failed = atomic_load(&job->first_failed);
  if (failed == rows) return RN_OK;
  int32_t guess[1] = {-1};
  rn_feature_t* found = job->columns.found + failed * job->columns.count;
  memset(found, 0, (size_t)job->columns.count * sizeof *found);
  return scan_row(job, failed, guess, 0);
}

// Several columns may have the same key.
static rn_status_t index_keys(parse_example_job_t* job, rn_arena_t* arena) {
  int32_t count = job->columns.count;
  rn_str_t* keys = NULL;
  int32_t *column_of = NULL, *next = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count + 1, &keys));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count + 1, &column_of));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count + 1, &next));
  for (int32_t c = 0; c < count; ++c) keys[c] = job->columns.list[c].key;
  RN_RETURN_IF_ERROR(rn_key_set_init(&job->keys, arena, keys, count));
  for (int32_t c = 0; c < count; ++c) column_of[c] = -1;
  for (int32_t c = count; c-- > 0;) {
    int32_t k = rn_key_set_search(&job->keys, keys[c]);
    next[c] = column_of[k];
    column_of[k] = c;
  }
  job->column_of = column_of;
  job->next = next;
  return RN_OK;
}

static rn_status_t run_job(parse_example_job_t* job, rn_kernel_ctx_t* ctx, rn_arena_t* arena,
                           const rn_tensor_t* serialized) {
  size_t cells;
  job->messages = RN_DATA(serialized, const rn_tstring_t);
  job->columns.rows = serialized->count;
  for (int64_t i = 0; i < serialized->count; ++i)
    job->bytes += rn_tstring_view(&job->messages[i]).size;
  if (!rn_mul_ok((size_t)serialized->count, (size_t)job->columns.count, &cells))
    return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, cells, &job->columns.found));
  RN_RETURN_IF_ERROR(index_keys(job, arena));
  job->fills = rn_columns_are_fixed(&job->columns);
  if (job->fills) {
    RN_RETURN_IF_ERROR(rn_columns_measure(&job->columns, ctx));
    rn_columns_keep_heap(&job->columns, job->bytes);
    RN_RETURN_IF_ERROR(scan_all(job, ctx));
    return atomic_load(&job->is_short) ? rn_out_of_memory() : RN_OK;
  }
  RN_RETURN_IF_ERROR(scan_all(job, ctx));
  RN_RETURN_IF_ERROR(rn_columns_measure(&job->columns, ctx));
  return rn_columns_fill(&job->columns, ctx, job->bytes);
}

// Creating columns.

static void set_outputs(rn_column_t* column, int a, int b, int c) {
  column->out[0] = a;
  column->out[1] = b;
  column->out[2] = c;
}

// Creates columns from the state; keys are set later. |defaults| is the input of the first default.
static rn_status_t make_columns(const parse_example_state_t* state, rn_kernel_ctx_t* ctx,
                                rn_arena_t* arena, int defaults, rn_columns_t* out) {
  int32_t sparse = state->sparse, dense = state->dense, ragged = state->ragged;
  out->count = sparse + dense + ragged;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)out->count + 1, &out->list));
  for (int32_t i = 0; i < out->count; ++i) out->list[i].dtype = state->types[i];
  for (int32_t i = 0; i < sparse; ++i) {
    out->list[i].form = RN_COLUMN_SPARSE;
    set_outputs(&out->list[i], i, sparse + i, 2 * sparse + i);
  }
  for (int32_t i = 0; i < dense; ++i) {
    rn_column_t* column = &out->list[sparse + i];
    set_outputs(column, 3 * sparse + i, 0, 0);
    RN_RETURN_IF_ERROR(
        rn_column_set_dense(column, i, state->dense_shapes[i], rn_in(ctx, defaults + i)));
  }
  for (int32_t i = 0; i < ragged; ++i) {
    rn_column_t* column = &out->list[sparse + dense + i];
    column->form = RN_COLUMN_RAGGED;
    column->split_type = state->split_types[i];
    set_outputs(column, 3 * sparse + dense + i, 3 * sparse + dense + ragged + i, 0);
  }
  return RN_OK;
}

static rn_status_t check_names(const rn_tensor_t* serialized, const rn_tensor_t* names) {
  if (names->count == 0 || rn_tensor_same_shape(names, serialized)) return RN_OK;
  return rn_invalid_argument(
      "Expected names have the same shape as serialized: name.shape=%s, serialized.shape=%s",
      rn_text_of(names).text, rn_text_of(serialized).text);
}

static rn_status_t scalar_key(const rn_tensor_t* input, const char* what, int i, rn_str_t* out) {
  if (input->count != 1)
    return rn_invalid_argument("Expected %s[%d] to be a scalar, got shape: %s", what, i,
                               rn_text_of(input).text);
  *out = rn_tstring_view(RN_DATA(input, const rn_tstring_t));
  return RN_OK;
}

static rn_status_t parse_v1(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const parse_example_state_t* state = ctx->state;
  const rn_tensor_t *serialized = rn_in(ctx, 0), *names = rn_in(ctx, 1);
  parse_example_job_t job = {.names = names};
  if (serialized->rank != 1)
    return rn_invalid_argument("Expected serialized to be a vector, got shape: %s",
                               rn_text_of(serialized).text);
  RN_RETURN_IF_ERROR(check_names(serialized, names));
  int32_t keyed = state->sparse + state->dense;
  RN_RETURN_IF_ERROR(make_columns(state, ctx, arena, 2 + keyed, &job.columns));
  for (int32_t i = 0; i < keyed; ++i) {
    bool is_sparse = i < state->sparse;
    RN_RETURN_IF_ERROR(scalar_key(rn_in(ctx, 2 + i), is_sparse ? "sparse_keys" : "dense_keys",
                                  is_sparse ? i : i - state->sparse, &job.columns.list[i].key));
  }
  return run_job(&job, ctx, arena, serialized);
}

static rn_status_t vector_keys(const rn_tensor_t* input, const char* what, const char* count_name,
                               int32_t count, rn_column_t* columns) {
  if (input->rank != 1)
    return rn_invalid_argument("Expected %s to be a vector, got shape: %s", what,
                               rn_text_of(input).text);
  if (input->count != count)
    return rn_invalid_argument("Expected len(%s) == %s but got: %lld vs. %d", what, count_name,
                               (long long)input->count, count);
  for (int32_t i = 0; i < count; ++i)
    columns[i].key = rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]);
  return RN_OK;
}

static rn_status_t parse_v2(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const parse_example_state_t* state = ctx->state;
  const rn_tensor_t *serialized = rn_in(ctx, 0), *names = rn_in(ctx, 1);
  parse_example_job_t job = {.names = names};
  if (serialized->rank > 1)
    return rn_invalid_argument("Expected serialized to be a scalar or vector, got shape: %s",
                               rn_text_of(serialized).text);
  RN_RETURN_IF_ERROR(check_names(serialized, names));
  job.is_single = job.columns.is_scalar = serialized->rank == 0;
  RN_RETURN_IF_ERROR(make_columns(state, ctx, arena, 5, &job.columns));
  rn_column_t* list = job.columns.list;
  RN_RETURN_IF_ERROR(vector_keys(rn_in(ctx, 2), "sparse_keys", "num_sparse", state->sparse, list));
  list += state->sparse;
  RN_RETURN_IF_ERROR(vector_keys(rn_in(ctx, 3), "dense_keys", "num_dense", state->dense, list));
  list += state->dense;
  RN_RETURN_IF_ERROR(vector_keys(rn_in(ctx, 4), "ragged_keys", "num_ragged", state->ragged, list));
  return run_job(&job, ctx, arena, serialized);
}

static rn_status_t parse_single(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const parse_example_state_t* state = ctx->state;
  const rn_tensor_t* serialized = rn_in(ctx, 0);
  parse_example_job_t job = {.is_single = true, .columns.is_scalar = true};
  if (serialized->rank != 0)
    return rn_invalid_argument("Expected serialized to be a scalar, got shape: %s",
                               rn_text_of(serialized).text);
  RN_RETURN_IF_ERROR(make_columns(state, ctx, arena, 1, &job.columns));
  for (int32_t i = 0; i < job.columns.count; ++i) job.columns.list[i].key = state->keys[i];
  return run_job(&job, ctx, arena, serialized);
}

static rn_status_t compute_v1(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, parse_v1); }
static rn_status_t compute_v2(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, parse_v2); }
static rn_status_t compute_single(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, parse_single); }

// Attributes.

static rn_status_t copy_shapes(rn_arena_t* arena, const rn_attr_value_t* shapes,
                               const rn_shape_t** out) {
  rn_shape_t* list = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shapes->count + 1, &list));
  for (int32_t i = 0; i < shapes->count; ++i) {
    rn_shape_t shape = shapes->list_shape[i];
    int64_t* dims = NULL;
    if (!rn_shape_has_rank(shape))
      return rn_invalid_argument(
          "dense_shapes[%d] has unknown rank or unknown inner dimensions: %s", i,
          rn_shape_text(shape).text);
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shape.rank + 1, &dims));
    for (int d = 0; d < shape.rank; ++d) dims[d] = shape.dims[d];
    list[i] = (rn_shape_t){shape.rank, dims};
  }
  *out = list;
  return RN_OK;
}

static rn_status_t init_columns(const rn_kernel_init_t* init, parse_example_state_t* state,
                                const rn_attr_value_t* ragged) {
  const rn_attr_value_t* sparse = rn_init_attr(init, "sparse_types");
  const rn_attr_value_t* dense = rn_init_attr(init, "Tdense");
  const rn_attr_value_t* shapes = rn_init_attr(init, "dense_shapes");
  rn_dtype_t* types = NULL;
  rn_arena_init(&state->arena, init->allocator);
  state->sparse = sparse->count;
  state->dense = dense->count;
  state->ragged = ragged ? ragged->count : 0;
  if (dense->count != shapes->count)
    return rn_invalid_argument("len(dense_keys) != len(dense_shapes)");
  RN_RETURN_IF_ERROR(copy_shapes(&state->arena, shapes, &state->dense_shapes));
  size_t count = (size_t)state->sparse + (size_t)state->dense + (size_t)state->ragged;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&state->arena, count + 1, &types));
  for (int32_t i = 0; i < state->sparse; ++i) types[i] = sparse->list_type[i];
  for (int32_t i = 0; i < state->dense; ++i) types[state->sparse + i] = dense->list_type[i];
  for (int32_t i = 0; i < state->ragged; ++i)
    types[state->sparse + state->dense + i] = ragged->list_type[i];
  state->types = types;
  return RN_OK;
}

static rn_status_t init_v1(const rn_kernel_init_t* init, void* self) {
  parse_example_state_t* state = self;
  RN_RETURN_IF_ERROR(init_columns(init, state, NULL));
  if (rn_init_int(init, "Nsparse") != state->sparse)
    return rn_invalid_argument("len(sparse_keys) != len(sparse_types)");
  if (rn_init_int(init, "Ndense") != state->dense)
    return rn_invalid_argument("len(dense_keys) != len(dense_types)");
  return RN_OK;
}

static rn_status_t init_v2(const rn_kernel_init_t* init, void* self) {
  parse_example_state_t* state = self;
  const rn_attr_value_t* splits = rn_init_attr(init, "ragged_split_types");
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(init_columns(init, state, rn_init_attr(init, "ragged_value_types")));
  if (rn_init_int(init, "num_sparse") != state->sparse)
    return rn_invalid_argument("len(sparse_keys) != len(sparse_types)");
  if (splits->count != state->ragged)
    return rn_invalid_argument("len(ragged_value_types) != len(ragged_split_types)");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&state->arena, (size_t)splits->count + 1, &types));
  for (int32_t i = 0; i < splits->count; ++i) types[i] = splits->list_type[i];
  state->split_types = types;
  return RN_OK;
}

static rn_status_t init_single(const rn_kernel_init_t* init, void* self) {
  parse_example_state_t* state = self;
  const rn_attr_value_t* lists[] = {rn_init_attr(init, "sparse_keys"),
                                    rn_init_attr(init, "dense_keys")};
  rn_str_t* keys = NULL;
  RN_RETURN_IF_ERROR(init_columns(init, state, NULL));
  if (lists[0]->count != state->sparse || rn_init_int(init, "num_sparse") != state->sparse)
    return rn_invalid_argument("len(sparse_keys) != len(sparse_types)");
  if (lists[1]->count != state->dense)
    return rn_invalid_argument("len(dense_keys) != len(dense_types)");
  size_t count = (size_t)state->sparse + (size_t)state->dense;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&state->arena, count + 1, &keys));
  state->keys = keys;
  for (int l = 0; l < 2; ++l)
    for (int32_t i = 0; i < lists[l]->count; ++i)
      RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, lists[l]->list_s[i], keys++));
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    RN_EXAMPLE_ROW("ParseExample", parse_example_state_t, init_v1, compute_v1),
    RN_EXAMPLE_ROW("ParseExampleV2", parse_example_state_t, init_v2, compute_v2),
    RN_EXAMPLE_ROW("ParseSingleExample", parse_example_state_t, init_single, compute_single),
};
RN_KERNEL_FAMILY(cpu_parse_example, rows);
