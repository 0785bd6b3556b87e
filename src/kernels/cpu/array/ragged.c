// RaggedTensorToTensor: pads rows of different lengths into a tensor.
//
// The values are a flat list of cells. Each partition assigns its elements to rows of the previous
// one, which gives every cell its place in the result, or none if it does not fit.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/kernel_rows.h"

typedef struct ragged_state_t {
  bool has_first_size;  // the first partition is FIRST_DIM_SIZE
  int32_t partitions;   // number of the others
  uint64_t rowids;      // bit i: partition i is VALUE_ROWIDS, not ROW_SPLITS
} ragged_state_t;

static rn_status_t ragged_init(const rn_kernel_init_t* init, void* state_) {
  ragged_state_t* state = state_;
  const rn_attr_value_t* types = rn_init_attr(init, "row_partition_types");
  if (types->count != rn_init_int(init, "num_row_partition_tensors"))
    return rn_invalid_argument("Number of row partition tensors (%" PRId64
                               ") does not equal the number of row partition types(%d).",
                               rn_init_int(init, "num_row_partition_tensors"), types->count);
  if (types->count > 64) return rn_invalid_argument("Too many row partitions: %d", types->count);
  for (int32_t i = 0; i < types->count; ++i) {
    rn_str_t type = types->list_s[i];
    if (rn_str_is(type, "FIRST_DIM_SIZE") && i == 0) {
      state->has_first_size = true;
      continue;
    }
    bool is_rowids = rn_str_is(type, "VALUE_ROWIDS");
    if (is_rowids && i == 0)
      return rn_invalid_argument("Cannot handle VALUE_ROWIDS in first dimension.");
    if (!is_rowids && !rn_str_is(type, "ROW_SPLITS"))
      return rn_invalid_argument("Unsupported partition type: %.*s", RN_STR_ARGS(type));
    if (is_rowids) state->rowids |= UINT64_C(1) << state->partitions;
    state->partitions++;
  }
  return RN_OK;
}

typedef struct ragged_t {
  const ragged_state_t* state;
  const rn_tensor_t *shape, *values, *padding;
  int64_t sizes[RN_MAX_RANK];  // of the result
  int rank;
  int64_t cell;  // elements per value
} ragged_t;

static const rn_tensor_t* partition(rn_kernel_ctx_t* ctx, const ragged_t* ragged, int i) {
  return rn_in(ctx, 3 + ragged->state->has_first_size + i);
}

static bool is_rowids(const ragged_t* ragged, int i) { return ragged->state->rowids >> i & 1; }

// The length of the longest row of partition |i|.
static int64_t longest(rn_kernel_ctx_t* ctx, const ragged_t* ragged, int i) {
  const rn_tensor_t* part = partition(ctx, ragged, i);
  int64_t best = 0, run = 0;
  for (int64_t k = 0; k < part->count; ++k) {
    bool continues = k > 0 && rn_int_at(part, k) == rn_int_at(part, k - 1);
    if (is_rowids(ragged, i))
      run = continues ? run + 1 : 1;
    else
      run = k > 0 ? rn_int_at(part, k) - rn_int_at(part, k - 1) : 0;
    if (run > best) best = run;
  }
  return best;
}

static rn_status_t read_sizes(ragged_t* ragged) {
  const rn_tensor_t *shape = ragged->shape, *values = ragged->values;
  int partitions = ragged->state->partitions;
  if (values->rank < 1 || values->rank + partitions > RN_MAX_RANK)
    return rn_invalid_argument("The values must have 1 to %d dimensions, got %d",
                               RN_MAX_RANK - partitions, values->rank);
  ragged->rank = values->rank + partitions;
  if (shape->rank > 1 || (shape->rank == 0 && rn_int_at(shape, 0) != -1))
    return rn_invalid_argument(
        "The first input of RaggedTensorToTensor must be a vector, or the scalar -1");
  for (int d = 0; d < ragged->rank; ++d) ragged->sizes[d] = -1;
  if (shape->rank == 1) {
    int64_t dims[RN_MAX_RANK];
    int64_t shown = shape->count < RN_MAX_RANK ? shape->count : RN_MAX_RANK;
    for (int64_t d = 0; d < shown; ++d) dims[d] = rn_int_at(shape, d);
    rn_shape_t text = {(int32_t)shown, dims};
    if (shape->count != ragged->rank)
      return rn_invalid_argument(
          "rt_input.shape and shape=%s are incompatible: rt_input.rank = %d but shape.rank = "
          "%" PRId64,
          rn_shape_text(text).text, ragged->rank, shape->count);
    for (int d = 0; d < ragged->rank; ++d) {
      if (dims[d] < -1) return rn_invalid_argument("Dimension %" PRId64 " must be >= -1", dims[d]);
      ragged->sizes[d] = dims[d];
    }
  }
  ragged->cell = 1;
  for (int i = 1; i < values->rank; ++i) {
    int64_t* size = &ragged->sizes[partitions + i];
    if (*size >= 0 && *size != rn_tensor_dim(values, i))
      return rn_invalid_argument(
          "rt_input.shape and shape are incompatible: rt_input.shape[%d] = "
          "%" PRId64 " but shape[%d] = %" PRId64,
          partitions + i, rn_tensor_dim(values, i), partitions + i, *size);
    *size = rn_tensor_dim(values, i);
    ragged->cell *= *size;
  }
  return RN_OK;
}

// Assigns the elements of partition |i| to rows of the next dimension; -1 if dropped. |parents| are
// the places of its rows.
static rn_status_t place(rn_kernel_ctx_t* ctx, const ragged_t* ragged, int i,
                         const rn_tensor_t* parents, rn_tensor_t* out) {
  const rn_tensor_t* part = partition(ctx, ragged, i);
  int64_t width = ragged->sizes[i + 1], count = part->count;
  if (part->rank != 1)
    return rn_invalid_argument("Row partitions must be vectors, got shape %s",
                               rn_text_of(part).text);
  if (!is_rowids(ragged, i)) {
    count = part->count ? rn_int_at(part, part->count - 1) : 0;
    bool is_bad = part->count != parents->count + 1 || rn_int_at(part, 0) != 0;
    for (int64_t k = 1; k < part->count && !is_bad; ++k)
      is_bad = rn_int_at(part, k) < rn_int_at(part, k - 1);
    if (is_bad || count > ragged->values->count + INT32_MAX)
      return rn_invalid_argument("Invalid row split size.");
  }
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &count}, out));
  int64_t row = 0, column = -1;
  for (int64_t k = 0; k < count; ++k) {
    int64_t before = row;
    if (is_rowids(ragged, i)) {
      row = rn_int_at(part, k);
      if (row < 0 || row >= parents->count)
        return rn_invalid_argument("Got next_value_rowid=%" PRId64
                                   " which is not less than %" PRId64,
                                   row, parents->count);
    } else {
      while (rn_int_at(part, row + 1) <= k) ++row;
    }
    column = k > 0 && row == before ? column + 1 : 0;
    int64_t parent = RN_DATA(parents, const int64_t)[row];
    RN_DATA(out, int64_t)[k] = parent >= 0 && column < width ? parent * width + column : -1;
  }
  return RN_OK;
}

static rn_status_t place_rows(rn_kernel_ctx_t* ctx, const ragged_t* ragged, int64_t rows,
                              rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &rows}, out));
  for (int64_t i = 0; i < rows; ++i) RN_DATA(out, int64_t)[i] = i < ragged->sizes[0] ? i : -1;
  return RN_OK;
}

static rn_status_t place_all(rn_kernel_ctx_t* ctx, const ragged_t* ragged, int64_t rows,
                             rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(place_rows(ctx, ragged, rows, out));
  for (int i = 0; i < ragged->state->partitions; ++i) {
    rn_tensor_t next = {0};
    rn_status_t status = place(ctx, ragged, i, out, &next);
    rn_tensor_clear(out);
    *out = next;
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

static rn_status_t first_size(rn_kernel_ctx_t* ctx, const ragged_t* ragged, int64_t* out) {
  const rn_tensor_t* first = rn_in(ctx, 3);
  if (ctx->kernel->input_count < 4 || first->count == 0)
    return rn_invalid_argument(
        "Invalid first partition input. Tensor requires at least one element.");
  *out = ragged->state->has_first_size ? rn_int_at(first, 0) : first->count - 1;
  if (*out >= 0) return RN_OK;
  return rn_invalid_argument("The first dimension must not be negative: %" PRId64, *out);
}

// Checks that the default value broadcasts to a cell.
static rn_status_t check_padding(const ragged_t* ragged) {
  const rn_tensor_t *padding = ragged->padding, *values = ragged->values;
  if (padding->rank >= values->rank)
    return rn_invalid_argument(
        "default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible: "
        "default_value.rank = %d  must be less than rt_input.flat_values.rank = %d",
        rn_text_of(padding).text, rn_text_of(values).text, padding->rank, values->rank);
  for (int i = 0; i < padding->rank; ++i) {
    int64_t own = rn_tensor_dim(padding, padding->rank - 1 - i);
    int64_t cell = rn_tensor_dim(values, values->rank - 1 - i);
    if (own != 1 && own != cell)
      return rn_invalid_argument(
          "default_value.shape=%s and rt_input.flat_values.shape=%s are "
          "incompatible",
          rn_text_of(padding).text, rn_text_of(values).text);
  }
  return RN_OK;
}

// The element of the default value that pads element |i| of a cell.
static int64_t padding_at(const ragged_t* ragged, int64_t i) {
  const rn_tensor_t *padding = ragged->padding, *values = ragged->values;
  int64_t place_at = 0, step = 1;
  for (int k = 0; k < padding->rank; ++k) {
    int64_t own = rn_tensor_dim(padding, padding->rank - 1 - k);
    int64_t cell = rn_tensor_dim(values, values->rank - 1 - k);
    if (own != 1) place_at += i % cell * step;
    i /= cell;
    step *= own;
  }
  return place_at;
}

static rn_status_t fill(const ragged_t* ragged, const rn_tensor_t* places, rn_tensor_t* out) {
  rn_dtype_t dtype = out->dtype;
  size_t item = rn_dtype_size(dtype), cell = (size_t)ragged->cell * item;
  for (int64_t i = 0; i < out->count; ++i) {
    int64_t from = padding_at(ragged, i % ragged->cell);
    RN_RETURN_IF_ERROR(rn_move_row(dtype,
                                   RN_DATA(ragged->padding, const char) + (size_t)from * item,
                                   RN_DATA(out, char) + (size_t)i * item, 1));
  }
  for (int64_t i = 0; i < places->count; ++i) {
    int64_t at = RN_DATA(places, const int64_t)[i];
    if (at < 0) continue;
    RN_RETURN_IF_ERROR(rn_move_row(dtype, RN_DATA(ragged->values, const char) + (size_t)i * cell,
                                   RN_DATA(out, char) + (size_t)at * cell, ragged->cell));
  }
  return RN_OK;
}

static rn_status_t ragged_compute(rn_kernel_ctx_t* ctx) {
  ragged_t ragged = {.state = ctx->state,
                     .shape = rn_in(ctx, 0),
                     .values = rn_in(ctx, 1),
                     .padding = rn_in(ctx, 2)};
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(first_size(ctx, &ragged, &rows));
  RN_RETURN_IF_ERROR(read_sizes(&ragged));
  RN_RETURN_IF_ERROR(check_padding(&ragged));
  if (ragged.sizes[0] < 0) ragged.sizes[0] = rows;
  for (int i = 0; i < ragged.state->partitions; ++i)
    if (ragged.sizes[i + 1] < 0) ragged.sizes[i + 1] = longest(ctx, &ragged, i);
  rn_tensor_t *out = NULL, places = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){ragged.rank, ragged.sizes}, &out));
  if (out->count == 0) return RN_OK;
  rn_status_t status = place_all(ctx, &ragged, rows, &places);
  if (rn_ok(status) && places.count > rn_tensor_dim(ragged.values, 0))
    status = rn_invalid_argument("The row partitions name %" PRId64 " values, there are %" PRId64,
                                 places.count, rn_tensor_dim(ragged.values, 0));
  if (rn_ok(status)) status = fill(&ragged, &places, out);
  rn_tensor_clear(&places);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "RaggedTensorToTensor",
     .device = "CPU",
     .types = {{"T", RN_TYPES_PLAIN | RN_T(STRING)}, {"Tindex", RN_TYPES_INDEX}},
     .host_args = RN_HOST_ARGS("shape", "row_partition_tensors"),
     .state_size = sizeof(ragged_state_t),
     .init = ragged_init,
     .compute = ragged_compute},
};
RN_KERNEL_FAMILY(cpu_ragged, rows);
