// Ops that convert tensor lists to tensors and back: stack, gather, concat, from tensor, split,
// scatter.
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/list/tensor_list.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel_rows.h"

#define GRAIN_BYTES (256 * 1024)  // bytes of copying worth a thread

// Copies list elements one after the other to |out|, |width| tensor elements each; zeros for unset
// ones.
typedef struct tensor_list_rows_copy_t {
  const rn_tensor_list_t* list;
  const rn_tensor_t* indices;  // NULL for all in order
  rn_tensor_t* out;
  int64_t width;
} tensor_list_rows_copy_t;

static rn_status_t copy_one(const tensor_list_rows_copy_t* job, int64_t i) {
  int64_t from = job->indices ? rn_int_at(job->indices, i) : i;
  char* to = RN_DATA(job->out, char) + (size_t)(i * job->width) * rn_dtype_size(job->out->dtype);
  if (rn_tensor_list_has(job->list, from))
    return rn_move_row(job->out->dtype, job->list->items[from].data, to, job->width);
  rn_move_zero(NULL, job->out->dtype, to, job->width);
  return RN_OK;
}

// For plain bytes, whose copy cannot fail.
static void copy_piece(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) rn_status_free(copy_one(arg, i));
}

static bool all_are_set(const tensor_list_rows_copy_t* job, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!rn_tensor_list_has(job->list, job->indices ? rn_int_at(job->indices, i) : i)) return false;
  return true;
}

// The same in a device's memory, many elements per launch.
static rn_status_t copy_on_device(rn_kernel_ctx_t* ctx, const tensor_list_rows_copy_t* job,
                                  int64_t count) {
  if (!all_are_set(job, count)) RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, job->out));
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, job->out->dtype);
  char* to = job->out->data;
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = job->indices ? rn_int_at(job->indices, i) : i;
    if (rn_tensor_list_has(job->list, from))
      RN_RETURN_IF_ERROR(rn_moves_add_row(&moves, job->list->items[from].data, to, job->width));
    to += (size_t)job->width * rn_dtype_size(job->out->dtype);
  }
  return rn_moves_end(&moves);
}

static rn_status_t copy_all(rn_kernel_ctx_t* ctx, tensor_list_rows_copy_t* job, int64_t count) {
  if (job->width == 0) return RN_OK;
  if (!rn_ctx_is_host(ctx, job->out->dtype)) return copy_on_device(ctx, job, count);
  if (rn_dtype_is_plain(job->out->dtype)) {
    int64_t bytes = job->width * (int64_t)rn_dtype_size(job->out->dtype);
    rn_pool_for(rn_ctx_pool(ctx), count, GRAIN_BYTES / bytes + 1, copy_piece, job);
    return RN_OK;
  }
  for (int64_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(copy_one(job, i));
  return RN_OK;
}

// Allocates output 0: |count| elements of shape |element|.
static rn_status_t output_rows(rn_kernel_ctx_t* ctx, const rn_tensor_list_t* list,
                               const rn_tensor_t* indices, int64_t count, rn_shape_t element) {
  if (element.rank >= RN_MAX_RANK) return rn_invalid_argument("The elements' rank is too large");
  int64_t dims[RN_MAX_RANK] = {count};
  for (int32_t d = 0; d < element.rank; ++d) dims[d + 1] = element.dims[d];
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){element.rank + 1, dims}, &out));
  tensor_list_rows_copy_t job = {list, indices, out, count ? out->count / count : 0};
  return copy_all(ctx, &job, count);
}

typedef struct tensor_list_rows_stack_t {
  int64_t count;  // RN_UNKNOWN for any
} tensor_list_rows_stack_t;

static rn_status_t stack_init(const rn_kernel_init_t* init, void* state) {
  ((tensor_list_rows_stack_t*)state)->count = rn_init_int(init, "num_elements");
  return RN_OK;
}

static rn_status_t stack(rn_kernel_ctx_t* ctx) {
  const tensor_list_rows_stack_t* wanted = ctx->state;
  rn_tensor_list_t* list = NULL;
  rn_partial_shape_t element;
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  RN_RETURN_IF_ERROR(rn_tensor_list_check_read(ctx, list, 0));
  if (wanted->count != RN_UNKNOWN && list->count != wanted->count)
    return rn_invalid_argument(
        "Operation expected a list with %lld elements but got a list with %lld elements.",
        (long long)wanted->count, (long long)list->count);
  RN_RETURN_IF_ERROR(rn_tensor_list_shape_in(ctx, 1, list, &element));
  if (list->count == 0 && !rn_shape_is_full(element.shape))
    return rn_invalid_argument(
        "Tried to stack elements of an empty list with non-fully-defined element_shape: %s",
        rn_partial_text(element.shape).text);
  for (int64_t i = list->set_begin; i < list->set_end; ++i)
    if (rn_tensor_list_has(list, i))
      RN_RETURN_IF_ERROR(rn_partial_shape_merge(&element, rn_tensor_shape(&list->items[i])));
  if (!rn_shape_is_full(element.shape))
    return rn_invalid_argument(
        "Tried to stack list which only contains uninitialized tensors and has a "
        "non-fully-defined element_shape: %s",
        rn_partial_text(element.shape).text);
  return output_rows(ctx, list, NULL, list->count, element.shape);
}

static rn_status_t gather(rn_kernel_ctx_t* ctx) {
  rn_tensor_list_t* list = NULL;
  rn_partial_shape_t element;
  const rn_tensor_t* indices = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  RN_RETURN_IF_ERROR(rn_tensor_list_check_read(ctx, list, 0));
  RN_RETURN_IF_ERROR(rn_tensor_list_shape_in(ctx, 2, list, &element));
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = rn_int_at(indices, i);
    if (index < 0 || index >= list->count)
      return rn_invalid_argument("Trying to gather element %lld in a list with %lld elements.",
                                 (long long)index, (long long)list->count);
    if (rn_tensor_list_has(list, index))
      RN_RETURN_IF_ERROR(rn_partial_shape_merge(&element, rn_tensor_shape(&list->items[index])));
  }
  if (!rn_shape_is_full(element.shape))
    return rn_invalid_argument(
        indices->count ? "Tried to gather uninitialized tensors from a list with non-fully-defined "
                         "element_shape: %s"
                       : "Tried to gather 0-elements from a list with non-fully-defined shape: %s",
        rn_partial_text(element.shape).text);
  return output_rows(ctx, list, indices, indices->count, element.shape);
}

// Concatenation along the first dimension.
typedef struct tensor_list_rows_concat_t {
  bool has_inputs;  // V2: shape and leading dims are inputs
  rn_partial_shape_t element;
} tensor_list_rows_concat_t;

static rn_status_t concat_init(const rn_kernel_init_t* init, void* state) {
  tensor_list_rows_concat_t* concat = state;
  concat->has_inputs = init->input_count > 1;
  rn_shape_t shape =
      concat->has_inputs ? RN_SHAPE_UNKNOWN : rn_init_attr(init, "element_shape")->shape;
  if (shape.rank > RN_MAX_RANK) return rn_invalid_argument("The elements' rank is too large");
  rn_partial_shape_set(&concat->element, shape);
  return RN_OK;
}

// The shape of a row: all but the first dimension.
static rn_status_t merge_rest(rn_partial_shape_t* rest, rn_shape_t shape) {
  if (!rn_shape_has_rank(shape)) return RN_OK;
  if (shape.rank == 0)
    return rn_invalid_argument(
        "Concat requires elements to be at least vectors, found scalars instead.");
  return rn_partial_shape_merge(rest, (rn_shape_t){shape.rank - 1, shape.dims + 1});
}

// What is known about the lengths of unset elements.
typedef struct lengths_t {
  int64_t stated;              // from the op's element shape; RN_UNKNOWN if not given
  int64_t common;              // of all set elements, or from the list; RN_UNKNOWN if none
  const rn_tensor_t* leading;  // one per element, or fewer; NULL if none
} lengths_t;

static rn_status_t check_elements(const rn_tensor_list_t* list, rn_partial_shape_t* rest,
                                  lengths_t* lengths) {
  bool is_first = true;
  for (int64_t i = list->set_begin; i < list->set_end; ++i) {
    const rn_tensor_t* item = &list->items[i];
    if (!rn_tensor_is_set(item)) continue;
    if (item->rank == 0)
      return rn_invalid_argument(
          "Concat saw a scalar shape at index %lld but requires at least vectors.", (long long)i);
    RN_RETURN_IF_ERROR(merge_rest(rest, rn_tensor_shape(item)));
    int64_t length = rn_tensor_dim(item, 0);
    if (lengths->stated != RN_UNKNOWN && length != lengths->stated)
      return rn_invalid_argument(
          "First entry of element_shape input does not match the first dim of list element at "
          "index: %lld Expected: %lld Actual: %lld",
          (long long)i, (long long)lengths->stated, (long long)length);
    if (is_first && lengths->common == RN_UNKNOWN) lengths->common = length;
    if (lengths->common != length) lengths->common = RN_UNKNOWN;
    is_first = false;
  }
  return RN_OK;
}

static rn_status_t length_of(const rn_tensor_list_t* list, const lengths_t* lengths, int64_t i,
                             int64_t* out) {
  if (rn_tensor_list_has(list, i)) {
    *out = rn_tensor_dim(&list->items[i], 0);
    return RN_OK;
  }
  int64_t given = lengths->leading ? lengths->leading->count : 0;
  *out = i < given                       ? rn_int_at(lengths->leading, i)
         : lengths->stated != RN_UNKNOWN ? lengths->stated
                                         : lengths->common;
  if (*out < 0 && !lengths->leading)
    return rn_invalid_argument(
        "Concating lists with uninitialized tensors is not supported in this version of "
        "TensorListConcat. Consider updating your GraphDef to run the newer version.");
  if (*out < 0)
    return rn_invalid_argument(
        "List contains uninitialized tensor at index %lld but leading_dims has only %lld elements.",
        (long long)i, (long long)given);
  return RN_OK;
}

static rn_status_t output_joined(rn_kernel_ctx_t* ctx, const rn_tensor_list_t* list,
                                 const lengths_t* lengths, rn_shape_t rest) {
  rn_tensor_t *out = NULL, *counts = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &list->count}, &counts));
  int64_t dims[RN_MAX_RANK + 1] = {0};
  for (int64_t i = 0; i < list->count; ++i) {
    int64_t* length = &RN_DATA(counts, int64_t)[i];
    RN_RETURN_IF_ERROR(length_of(list, lengths, i, length));
    if (!rn_add_i64_ok(dims[0], *length, &dims[0]))
      return rn_invalid_argument("The elements have too many rows in total");
  }
  for (int32_t d = 0; d < rest.rank; ++d) dims[d + 1] = rest.dims[d];
  if (rest.rank >= RN_MAX_RANK) return rn_invalid_argument("The elements' rank is too large");
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rest.rank + 1, dims}, &out));
  int64_t width = dims[0] ? out->count / dims[0] : 0;
  if (out->count == 0) return RN_OK;
  const tensor_list_rows_copy_t all = {.list = list};
  if (!all_are_set(&all, list->count)) RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, out));
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, out->dtype);
  char* to = out->data;
  for (int64_t i = 0; i < list->count; ++i) {
    int64_t count = RN_DATA(counts, int64_t)[i] * width;
    if (rn_tensor_list_has(list, i))
      RN_RETURN_IF_ERROR(rn_moves_add_row(&moves, list->items[i].data, to, count));
    to += (size_t)count * rn_dtype_size(out->dtype);
  }
  return rn_moves_end(&moves);
}

static rn_status_t concat(rn_kernel_ctx_t* ctx) {
  const tensor_list_rows_concat_t* state = ctx->state;
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  RN_RETURN_IF_ERROR(rn_tensor_list_check_read(ctx, list, 0));
  rn_partial_shape_t element, rest;
  rn_partial_shape_set(&rest, RN_SHAPE_UNKNOWN);
  lengths_t lengths = {.common = RN_UNKNOWN};
  if (state->has_inputs) {
    RN_RETURN_IF_ERROR(rn_partial_shape_read(rn_in(ctx, 1), &element));
    RN_RETURN_IF_ERROR(rn_partial_shape_merge(&element, list->element_shape));
    lengths.leading = rn_in(ctx, 2);
  } else {
    rn_partial_shape_set(&element, state->element.shape);
    if (element.shape.rank == 0) return rn_invalid_argument("element_shape must not be empty");
  }
  RN_RETURN_IF_ERROR(merge_rest(&rest, element.shape));
  lengths.stated = RN_UNKNOWN;
  if (state->has_inputs) {  // V1 ignores what the list says
    if (element.shape.rank > 0) lengths.stated = element.dims[0];
    if (list->element_shape.rank > 0) lengths.common = list->element_shape.dims[0];
  }
  if (list->count == 0 && !rn_shape_is_full(rest.shape))
    return rn_invalid_argument(
        "All except the first dimension must be fully defined when concating an empty tensor list. "
        "element_shape: %s",
        rn_partial_text(element.shape).text);
  RN_RETURN_IF_ERROR(check_elements(list, &rest, &lengths));
  if (!rn_shape_is_full(rest.shape))
    return rn_invalid_argument(
        "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim "
        "is not fully defined: %s",
        rn_partial_text(rest.shape).text);
  return output_joined(ctx, list, &lengths, rest.shape);
}

// Tensors to lists. The elements are rows of the tensor and share its buffer where alignment
// permits.
static rn_status_t row_shape(const rn_kernel_ctx_t* ctx, int i, const rn_tensor_t* tensor,
                             rn_partial_shape_t* out) {
  RN_RETURN_IF_ERROR(rn_partial_shape_read(rn_in(ctx, i), out));
  if (tensor->rank < 1)
    return rn_invalid_argument("Tensor must be at least a vector, but saw shape: %s",
                               rn_text_of(tensor).text);
  rn_shape_t row = {tensor->rank - 1, rn_tensor_dims(tensor) + 1};
  if (!rn_shape_compatible(row, out->shape))
    return rn_invalid_argument("Specified a list with shape %s from a tensor with shape %s",
                               rn_partial_text(out->shape).text, rn_shape_text(row).text);
  return RN_OK;
}

static rn_status_t set_rows(rn_kernel_ctx_t* ctx, rn_tensor_list_t* list, int64_t index,
                            const rn_tensor_t* tensor, int64_t begin, int64_t count,
                            bool drops_dim) {
  rn_tensor_t rows = {0};
  RN_RETURN_IF_ERROR(rn_ctx_rows(ctx, tensor, begin, count, drops_dim, &rows));
  rn_tensor_list_set(list, index, &rows);
  return RN_OK;
}

static rn_status_t from_tensor(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* tensor = rn_in(ctx, 0);
  rn_partial_shape_t element;
  RN_RETURN_IF_ERROR(row_shape(ctx, 1, tensor, &element));
  int64_t count = rn_tensor_dim(tensor, 0);
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_make(ctx, tensor->dtype, element.shape, -1, count, &list));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < count; ++i)
    status = set_rows(ctx, list, i, tensor, i, 1, true);
  if (rn_ok(status)) return rn_tensor_list_output(ctx, 0, list);
  rn_tensor_list_release(list);
  return status;
}

static rn_status_t check_lengths(const rn_tensor_t* tensor, const rn_tensor_t* lengths) {
  if (lengths->rank != 1)
    return rn_invalid_argument("Expected lengths to be a vector, received shape: %s",
                               rn_text_of(lengths).text);
  int64_t end = 0, rows = rn_tensor_dim(tensor, 0);
  for (int64_t i = 0; i < lengths->count; ++i) {
    int64_t length = rn_int_at(lengths, i), begin = end;
    if (length < 0) return rn_invalid_argument("Invalid value in lengths: %lld", (long long)length);
    if (!rn_add_i64_ok(begin, length, &end) || end > rows)
      return rn_invalid_argument("Attempting to slice [%lld, %lld] from tensor with length %lld",
                                 (long long)begin, (long long)end, (long long)rows);
  }
  if (end == rows) return RN_OK;
  return rn_invalid_argument("Unused values in tensor. Length of tensor: %lld Values used: %lld",
                             (long long)rows, (long long)end);
}

static rn_status_t split(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tensor = rn_in(ctx, 0), *lengths = rn_in(ctx, 2);
  rn_partial_shape_t element;
  RN_RETURN_IF_ERROR(rn_partial_shape_read(rn_in(ctx, 1), &element));
  if (lengths->rank == 1 && tensor->rank < 1)
    return rn_invalid_argument("Tensor must be at least a vector, but saw shape: %s",
                               rn_text_of(tensor).text);
  if (element.shape.rank == 0)
    return rn_invalid_argument(
        "TensorListSplit requires element_shape to be at least of rank 1, but saw: []");
  rn_shape_t rest = {element.shape.rank - 1, element.dims + 1};
  rn_shape_t row = {tensor->rank - 1, rn_tensor_dims(tensor) + 1};
  if (rn_shape_has_rank(element.shape) && !rn_shape_compatible(rest, row))
    return rn_invalid_argument("tensor shape %s is not compatible with element_shape %s",
                               rn_text_of(tensor).text, rn_partial_text(element.shape).text);
  RN_RETURN_IF_ERROR(check_lengths(tensor, lengths));
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(
      rn_tensor_list_make(ctx, tensor->dtype, element.shape, -1, lengths->count, &list));
  rn_status_t status = RN_OK;
  int64_t begin = 0;
  for (int64_t i = 0; rn_ok(status) && i < lengths->count; ++i) {
    int64_t length = rn_int_at(lengths, i);
    status = set_rows(ctx, list, i, tensor, begin, length, false);
    begin += length;
  }
  if (rn_ok(status)) return rn_tensor_list_output(ctx, 0, list);
  rn_tensor_list_release(list);
  return status;
}

// Scatter: row i of the tensor becomes element indices[i].
static rn_status_t check_rows(const rn_tensor_t* tensor, const rn_tensor_t* indices,
                              int64_t* out_count) {
  if (tensor->rank < 1)
    return rn_invalid_argument("Tensor must be at least a vector, but saw shape: %s",
                               rn_text_of(tensor).text);
  if (indices->count != rn_tensor_dim(tensor, 0))
    return rn_invalid_argument(
        "Invalid number of rows in input tensor. Expected: %lld Actual: %lld",
        (long long)indices->count, (long long)rn_tensor_dim(tensor, 0));
  *out_count = 0;
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = rn_int_at(indices, i);
    if (index < 0)
      return rn_invalid_argument("Indices in TensorListScatter must all be non-negative.");
    if (index >= *out_count) *out_count = index + 1;
  }
  return RN_OK;
}

static rn_status_t scatter_rows(rn_kernel_ctx_t* ctx, rn_tensor_list_t* list,
                                const rn_tensor_t* tensor, const rn_tensor_t* indices) {
  for (int64_t i = 0; i < indices->count; ++i)
    RN_RETURN_IF_ERROR(set_rows(ctx, list, rn_int_at(indices, i), tensor, i, 1, true));
  return RN_OK;
}

static rn_status_t scatter(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tensor = rn_in(ctx, 0), *indices = rn_in(ctx, 1);
  int64_t count, wanted = RN_UNKNOWN;
  rn_partial_shape_t element;
  if (ctx->kernel->input_count > 3) {
    const rn_tensor_t* size = rn_in(ctx, 3);
    if (size->rank != 0) return rn_invalid_argument("num_elements must be a scalar");
    wanted = rn_int_at(size, 0);
    if (wanted < RN_UNKNOWN)
      return rn_invalid_argument("TensorListScatter expects num_elements >= -1, found: %lld",
                                 (long long)wanted);
  }
  RN_RETURN_IF_ERROR(row_shape(ctx, 2, tensor, &element));
  RN_RETURN_IF_ERROR(check_rows(tensor, indices, &count));
  if (wanted != RN_UNKNOWN && count > wanted)
    return rn_invalid_argument(
        "TensorListScatter: Trying to scatter at index %lld in list with size %lld",
        (long long)(count - 1), (long long)wanted);
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_make(ctx, tensor->dtype, element.shape, -1,
                                         wanted == RN_UNKNOWN ? count : wanted, &list));
  rn_status_t status = scatter_rows(ctx, list, tensor, indices);
  if (rn_ok(status)) return rn_tensor_list_output(ctx, 0, list);
  rn_tensor_list_release(list);
  return status;
}

static rn_status_t scatter_into(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tensor = rn_in(ctx, 1), *indices = rn_in(ctx, 2);
  rn_tensor_list_t* list = NULL;
  int64_t count;
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  if (list->dtype != tensor->dtype)
    return rn_invalid_argument("Invalid data types; op elements %s but list elements %s",
                               rn_dtype_name(tensor->dtype), rn_dtype_name(list->dtype));
  if (tensor->rank < 1)
    return rn_invalid_argument("Tensor must be at least a vector, but saw shape: %s",
                               rn_text_of(tensor).text);
  if (indices->rank != 1)
    return rn_invalid_argument("Expected indices to be a vector, but received shape: %s",
                               rn_text_of(indices).text);
  if (indices->count != rn_tensor_dim(tensor, 0))
    return rn_invalid_argument("Expected len(indices) == tensor.shape[0], but saw: %lld vs. %lld",
                               (long long)indices->count, (long long)rn_tensor_dim(tensor, 0));
  RN_RETURN_IF_ERROR(check_rows(tensor, indices, &count));
  RN_RETURN_IF_ERROR(rn_tensor_list_to_change(ctx, 0, 0, &list));
  if (count > list->count) RN_RETURN_IF_ERROR(rn_tensor_list_resize(list, count));
  return scatter_rows(ctx, list, tensor, indices);
}

#define LIST(name, flags_, function) \
  { .op = name, .device = "CPU", .flags = flags_, .compute = function }
#define CONCAT(name)                                                              \
  {                                                                               \
    .op = name, .device = "CPU", .state_size = sizeof(tensor_list_rows_concat_t), \
    .init = concat_init, .compute = concat                                        \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "TensorListStack",
     .device = "CPU",
     .state_size = sizeof(tensor_list_rows_stack_t),
     .init = stack_init,
     .compute = stack},
    LIST("TensorListGather", 0, gather),
    CONCAT("TensorListConcat"),
    CONCAT("TensorListConcatV2"),
    LIST("TensorListFromTensor", RN_KERNEL_KEEPS_INPUTS, from_tensor),
    LIST("TensorListSplit", RN_KERNEL_KEEPS_INPUTS, split),
    LIST("TensorListScatter", RN_KERNEL_KEEPS_INPUTS, scatter),
    LIST("TensorListScatterV2", RN_KERNEL_KEEPS_INPUTS, scatter),
    LIST("TensorListScatterIntoExistingList", RN_KERNEL_KEEPS_INPUTS, scatter_into),
};
RN_KERNEL_FAMILY(cpu_tensor_list_rows, rows);
