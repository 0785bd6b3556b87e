// Segment reductions: sorted, unsorted and sparse ones, and the gradients of the last.
//
// Rows are sorted by segment where they are not; then every segment is joined in order. Ids and
// indices out of range are skipped, because the device cannot fail.
#include "kernels/cpu/math/segment.h"

#include "kernels/cpu/combine.h"
#include "kernels/cuda/array/scan.h"
#include "kernels/cuda/loops.h"
#include "kernels/cuda/math/segment.h"
#include "kernels/cuda/math/segment_args.h"
#include "kernels/cuda/state/rows.h"

typedef struct cuda_segment_t {
  int kind, end;
} cuda_segment_t;

static rn_status_t segment_init(const rn_kernel_init_t* init, void* state) {
  const char* name = init->op->name;
  *(cuda_segment_t*)state = (cuda_segment_t){.kind = strstr(name, "Max")    ? RN_SEGMENT_MAX
                                                     : strstr(name, "Min")  ? RN_SEGMENT_MIN
                                                     : strstr(name, "Prod") ? RN_SEGMENT_PROD
                                                                            : RN_SEGMENT_SUM,
                                             .end = strstr(name, "Mean")    ? RN_SEGMENT_MEAN
                                                    : strstr(name, "SqrtN") ? RN_SEGMENT_SQRT_N
                                                                            : RN_SEGMENT_PLAIN};
  return RN_OK;
}

// The result of a segment without rows.
static void set_empty(struct rn_segment_args* args, rn_dtype_t dtype, bool is_unsorted) {
  static const rn_combine_op_t ops[] = {[RN_SEGMENT_SUM] = RN_COMBINE_ADD,
                                        [RN_SEGMENT_PROD] = RN_COMBINE_MUL,
                                        [RN_SEGMENT_MAX] = RN_COMBINE_MAX,
                                        [RN_SEGMENT_MIN] = RN_COMBINE_MIN};
  _Alignas(16) char bytes[16] = {0};
  if (is_unsorted || args->kind == RN_SEGMENT_PROD)
    rn_combine_identity(ops[args->kind], dtype, bytes);
  memcpy(args->empty, bytes, sizeof bytes);
  args->from_empty = is_unsorted;
}

// Waits for element |at| of |tensor|, an integer on the device.
static rn_status_t read_int(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor, int64_t at,
                            int64_t* out) {
  const size_t size = rn_dtype_size(tensor->dtype);
  int64_t bytes = 0;
  RN_RETURN_IF_ERROR(
      rn_cuda_read(ctx, (const char*)tensor->data + (size_t)at * size, size, &bytes));
  *out = rn_int_at(&(rn_tensor_t){.data = &bytes, .count = 1, .dtype = tensor->dtype}, 0);
  return RN_OK;
}

static rn_status_t launch(rn_kernel_ctx_t* ctx, const struct rn_segment_args* args,
                          rn_dtype_t dtype) {
  const int64_t count = args->segments * args->width;
  // A thread per element, unless that leaves most of the card idle over long segments.
  const bool by_warps = count < 65536 && args->ids.count / args->segments >= 64;
  rn_cuda_name_t name =
      rn_cuda_name(by_warps ? "math/segment/by_warps" : "math/segment/by_threads", dtype);
  return rn_cuda_each(ctx, name.text, by_warps ? 32 * count : count, args, sizeof *args);
}

// Finds where segments begin, and joins them.
static rn_status_t join(rn_kernel_ctx_t* ctx, struct rn_segment_args* args, rn_dtype_t dtype) {
  rn_tensor_t starts = {0};
  const int64_t count = args->segments + 1;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &count}, &starts));
  struct rn_segment_starts_args find = {
      .ids = args->ids, .starts = starts.data, .segments = args->segments};
  args->starts = starts.data;
  rn_status_t status = rn_cuda_each(ctx, "math/segment/starts", count, &find, sizeof find);
  if (rn_ok(status)) status = launch(ctx, args, dtype);
  rn_tensor_clear(&starts);
  return status;
}

static struct rn_segment_ids plain_ids(const rn_tensor_t* ids) {
  return (struct rn_segment_ids){
      .ids = ids->data, .count = ids->count, .id_size = (i32)rn_dtype_size(ids->dtype)};
}

// Sorts |ids|, which are below |limit|; the caller clears |rows->keys|.
static rn_status_t sorted_ids(rn_kernel_ctx_t* ctx, const rn_tensor_t* ids, int64_t limit,
                              rn_cuda_rows_t* rows, struct rn_segment_ids* out) {
  *out = plain_ids(ids);
  if (ids->count == 0) return RN_OK;
  const int64_t dims[] = {limit};
  RN_RETURN_IF_ERROR(rn_cuda_rows(ctx, ids, 1, (rn_shape_t){1, dims}, rows));
  out->keys = rows->args.keys;
  out->bits = rows->args.bits;
  return RN_OK;
}

static rn_status_t sort_and_join(rn_kernel_ctx_t* ctx, const rn_tensor_t* ids,
                                 struct rn_segment_args* args, rn_dtype_t dtype) {
  rn_cuda_rows_t rows = {0};
  RN_RETURN_IF_ERROR(sorted_ids(ctx, ids, args->segments, &rows, &args->ids));
  rn_status_t status = join(ctx, args, dtype);
  rn_tensor_clear(&rows.keys);
  return status;
}

static rn_status_t sorted(rn_kernel_ctx_t* ctx) {
  const cuda_segment_t* state = ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *ids = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_segment_check(data, ids));
  int64_t last = 0, rows = 0;
  if (ids->count) {
    RN_RETURN_IF_ERROR(read_int(ctx, ids, ids->count - 1, &last));
    RN_RETURN_IF_ERROR(rn_segment_rows(last, &rows));
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, data, 1, rows, &out));
  if (out->count == 0) return RN_OK;
  struct rn_segment_args args = {.ids = plain_ids(ids),
                                 .data = data->data,
                                 .out = out->data,
                                 .segments = rows,
                                 .width = out->count / rows,
                                 .limit = ids->count,
                                 .kind = state->kind,
                                 .end = state->end};
  set_empty(&args, out->dtype, false);
  return join(ctx, &args, out->dtype);
}

static rn_status_t unsorted(rn_kernel_ctx_t* ctx) {
  const cuda_segment_t* state = ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *ids = rn_in(ctx, 1);
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(rn_unsorted_segment_check(data, ids, rn_in(ctx, 2), &rows));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, data, ids->rank, rows, &out));
  if (out->count == 0) return RN_OK;
  struct rn_segment_args args = {.data = data->data,
                                 .out = out->data,
                                 .segments = rows,
                                 .width = out->count / rows,
                                 .limit = ids->count,
                                 .kind = state->kind};
  set_empty(&args, out->dtype, true);
  return sort_and_join(ctx, ids, &args, out->dtype);
}

rn_status_t rn_cuda_segment_sum(rn_kernel_ctx_t* ctx, const rn_tensor_t* data,
                                const rn_tensor_t* ids, rn_tensor_t* out) {
  struct rn_segment_args args = {.data = data->data,
                                 .out = out->data,
                                 .segments = out->count,
                                 .width = 1,
                                 .limit = ids->count};
  return sort_and_join(ctx, ids, &args, out->dtype);
}

static rn_status_t sparse(rn_kernel_ctx_t* ctx) {
  const cuda_segment_t* state = ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *indices = rn_in(ctx, 1), *ids = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(rn_sparse_segment_check(data, indices, ids));
  int64_t rows = 0, last = 0;
  if (ctx->kernel->input_count > 3) {
    RN_RETURN_IF_ERROR(rn_sparse_segment_number(rn_in(ctx, 3), &rows));
  } else if (ids->count) {
    RN_RETURN_IF_ERROR(read_int(ctx, ids, ids->count - 1, &last));
    RN_RETURN_IF_ERROR(rn_segment_rows(last, &rows));
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, data, 1, rows, &out));
  if (out->count == 0) return RN_OK;
  struct rn_segment_args args = {.ids = plain_ids(ids),
                                 .data = data->data,
                                 .out = out->data,
                                 .picks = indices->data,
                                 .pick_size = (i32)rn_dtype_size(indices->dtype),
                                 .segments = rows,
                                 .width = out->count / rows,
                                 .limit = rn_tensor_dim(data, 0),
                                 .end = state->end};
  return join(ctx, &args, out->dtype);
}

// The arguments of a gradient but for its ids; |counts| has the rows per segment, for means.
static rn_status_t grad_args(rn_kernel_ctx_t* ctx, rn_tensor_t* counts,
                             struct rn_segment_args* out) {
  const cuda_segment_t* state = ctx->state;
  const rn_tensor_t *grad = rn_in(ctx, 0), *ids = rn_in(ctx, 2);
  const int64_t segments = rn_tensor_dim(grad, 0);
  *out = (struct rn_segment_args){.data = grad->data,
                                  .picks = ids->data,
                                  .pick_size = (i32)rn_dtype_size(ids->dtype),
                                  .limit = segments,
                                  .end = state->end};
  if (state->end == RN_SEGMENT_PLAIN || segments == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT64, (rn_shape_t){1, &segments}, counts));
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, counts));
  out->divisors = counts->data;
  struct rn_segment_count_args count = {.ids = ids->data,
                                        .counts = counts->data,
                                        .count = ids->count,
                                        .limit = segments,
                                        .id_size = out->pick_size};
  return rn_cuda_each(ctx, "math/segment/count", ids->count, &count, sizeof count);
}

static rn_status_t sparse_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *grad = rn_in(ctx, 0), *indices = rn_in(ctx, 1);
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(rn_sparse_segment_check(grad, indices, rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_sparse_segment_size(rn_in(ctx, 3), "output_dim0", &rows));
  rn_tensor_t *out = NULL, counts = {0};
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, grad, 1, rows, &out));
  if (out->count == 0) return RN_OK;
  struct rn_segment_args args;
  rn_status_t status = grad_args(ctx, &counts, &args);
  args.out = out->data;
  args.segments = rows;
  args.width = out->count / rows;
  if (rn_ok(status)) status = sort_and_join(ctx, indices, &args, out->dtype);
  rn_tensor_clear(&counts);
  return status;
}

// Scratch of the second form of the gradients.
typedef struct segment_unique_t {
  rn_cuda_rows_t rows;
  rn_tensor_t starts, found, total, counts;
} segment_unique_t;

// Sorts the indices, and finds those that differ: |*out_count| of them.
static rn_status_t find_unique(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices, int64_t rows,
                               segment_unique_t* u, struct rn_segment_ids* ids,
                               int64_t* out_count) {
  const int64_t places = indices->count + 1, one = 1;
  RN_RETURN_IF_ERROR(sorted_ids(ctx, indices, rows, &u->rows, ids));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &places}, &u->starts));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &places}, &u->found));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &one}, &u->total));
  struct rn_segment_unique_args args = {.keys = ids->keys,
                                        .starts = u->starts.data,
                                        .rows = u->found.data,
                                        .total = u->total.data,
                                        .count = indices->count,
                                        .bits = ids->bits};
  RN_RETURN_IF_ERROR(rn_cuda_launch(ctx, "math/segment/unique",
                                    (rn_cuda_grid_t){.x = 1, .block_x = 256}, &args, sizeof args));
  return read_int(ctx, &u->total, 0, out_count);
}

static rn_status_t put_rows(rn_kernel_ctx_t* ctx, const rn_tensor_t* found, rn_tensor_t* out) {
  if (out->count == 0) return RN_OK;
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)found->data};
  rn_jit_begin(&program, 0, 0);
  rn_jit_output(&program, rn_jit_input(&program, RN_INT64, RN_JIT_LINEAR, RN_JIT_FULL), out->dtype);
  return rn_cuda_run(ctx, &program, &(rn_jit_sizes_t){.count = out->count}, &operand, &out);
}

static rn_status_t run_grad_v2(rn_kernel_ctx_t* ctx, int64_t rows, segment_unique_t* u) {
  const rn_tensor_t *grad = rn_in(ctx, 0), *indices = rn_in(ctx, 1);
  int64_t count = 0;
  rn_tensor_t *out = NULL, *chosen = NULL;
  struct rn_segment_args args;
  struct rn_segment_ids ids = {0};
  if (rows && indices->count) RN_RETURN_IF_ERROR(find_unique(ctx, indices, rows, u, &ids, &count));
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, grad, 1, count, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &count}, &chosen));
  RN_RETURN_IF_ERROR(put_rows(ctx, &u->found, chosen));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(grad_args(ctx, &u->counts, &args));
  args.ids = ids;
  args.starts = u->starts.data;
  args.out = out->data;
  args.segments = count;
  args.width = out->count / count;
  return launch(ctx, &args, out->dtype);
}

// Returns only the selected rows, and their indices.
static rn_status_t sparse_grad_v2(rn_kernel_ctx_t* ctx) {
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(rn_sparse_segment_check(rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_sparse_segment_size(rn_in(ctx, 3), "dense_output_dim0", &rows));
  segment_unique_t u = {0};
  rn_status_t status = run_grad_v2(ctx, rows, &u);
  rn_tensor_clear(&u.rows.keys);
  rn_tensor_clear(&u.starts);
  rn_tensor_clear(&u.found);
  rn_tensor_clear(&u.total);
  rn_tensor_clear(&u.counts);
  return status;
}

// Kernels that read the number of rows from the device cannot be replayed.
#define ROW(name, set, host, flags_, function)                                              \
  {                                                                                         \
    .op = name, .device = "GPU", .types = {{"T", set}}, .host_args = host, .flags = flags_, \
    .state_size = sizeof(cuda_segment_t), .init = segment_init, .compute = function         \
  }
#define SORTED(name, set) ROW(name, set, NULL, RN_KERNEL_ISSUES, sorted)
#define UNSORTED(name, set) \
  ROW(name, set, RN_HOST_ARGS("num_segments"), RN_KERNEL_REPLAYS, unsorted)
#define SPARSE(kind, set)                                                                    \
  ROW("SparseSegment" kind, set, NULL, RN_KERNEL_ISSUES, sparse),                            \
      ROW("SparseSegment" kind "WithNumSegments", set, RN_HOST_ARGS("num_segments"),         \
          RN_KERNEL_REPLAYS, sparse),                                                        \
      ROW("SparseSegment" kind "Grad", RN_TYPES_FLOATS, RN_HOST_ARGS("output_dim0"),         \
          RN_KERNEL_REPLAYS, sparse_grad),                                                   \
      ROW("SparseSegment" kind "GradV2", RN_TYPES_FLOATS, RN_HOST_ARGS("dense_output_dim0"), \
          RN_KERNEL_ISSUES, sparse_grad_v2)

static const rn_kernel_def_t rows[] = {
    SORTED("SegmentSum", RN_TYPES_NUMBERS),
    SORTED("SegmentMean", RN_TYPES_NUMBERS),
    SORTED("SegmentProd", RN_TYPES_NUMBERS),
    SORTED("SegmentMax", RN_TYPES_REAL),
    SORTED("SegmentMin", RN_TYPES_REAL),
    UNSORTED("UnsortedSegmentSum", RN_TYPES_NUMBERS),
    UNSORTED("UnsortedSegmentProd", RN_TYPES_NUMBERS),
    UNSORTED("UnsortedSegmentMax", RN_TYPES_REAL),
    UNSORTED("UnsortedSegmentMin", RN_TYPES_REAL),
    SPARSE("Sum", RN_TYPES_REAL),
    SPARSE("Mean", RN_TYPES_FLOATS),
    SPARSE("SqrtN", RN_TYPES_FLOATS),
};
RN_KERNEL_FAMILY(cuda_segment, rows);
