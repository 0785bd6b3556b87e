// Attention in float: y = softmax(scale q k^T, masked) v, for many heads in any layout.
//
// A piece of work is some queries of one head. It packs the keys and the values once, and computes
// the scores of one block of queries after the other, which stay in the cache. Rows of y do not
// depend on each other, so neither pieces nor blocks change any bit.
#include "kernels/cpu/nn/attention.h"

#include <math.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/isa/softmax.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define SCORE_BYTES (256 << 10)  // of a block of queries
#define MOST_QUERIES 128         // of a block
#define LEAST_QUERIES 12         // of a block: tiles are not wider at any ISA level
#define PIECE_FLOPS 1e6          // about 10 us
#define PIECES_PER_THREAD 4

static rn_status_t copy_list(const rn_kernel_init_t* init, const char* name, int most,
                             int64_t* out) {
  const rn_attr_value_t* list = rn_init_attr(init, name);
  if (list->count > most) return rn_internal("The list %s of attention is too long", name);
  for (int i = 0; i < list->count; ++i) {
    if (list->list_i[i] < 0) return rn_internal("A number of %s is negative", name);
    out[i] = list->list_i[i];
  }
  return RN_OK;
}

rn_status_t rn_attention_init(const rn_kernel_init_t* init, void* state) {
  rn_attention_shape_t* shape = state;
  int64_t sizes[5] = {0};
  shape->scale = rn_init_float(init, "scale");
  shape->is_causal = rn_init_bool(init, "is_causal");
  shape->has_mask = rn_init_int(init, "N") > 0;
  RN_RETURN_IF_ERROR(copy_list(init, "sizes", 5, sizes));
  RN_RETURN_IF_ERROR(
      copy_list(init, "layouts", RN_ATTENTION_SIDES * RN_ATTENTION_NUMBERS, &shape->layouts[0][0]));
  RN_RETURN_IF_ERROR(copy_list(init, "mask_steps", 4, shape->mask_steps));
  RN_RETURN_IF_ERROR(copy_list(init, "dims", 3 * RN_ATTENTION_RANK, shape->dims));
  for (int i = 0; i < 5; ++i)
    if (sizes[i] < 1 || sizes[i] > INT32_MAX / 2)
      return rn_internal("A size of attention is %lld", (long long)sizes[i]);
  shape->batch = sizes[0], shape->heads = sizes[1];
  shape->queries = sizes[2], shape->keys = sizes[3], shape->depth = sizes[4];
  shape->outputs = init->output_count == 2 ? 1 : init->output_count;  // sums are the second
  shape->rank = rn_init_attr(init, "dims")->count / shape->outputs;
  if (sizes[4] > RN_ATTENTION_DEPTH || shape->rank > RN_ATTENTION_RANK ||
      sizes[0] > INT32_MAX / 2 / sizes[1])
    return rn_internal("Attention over heads of %lld numbers", (long long)sizes[4]);
  return RN_OK;
}

rn_status_t rn_attention_check(const rn_attention_shape_t* shape, int side, int64_t rows,
                               const rn_tensor_t* tensor) {
  const int64_t* layout = shape->layouts[side];
  const int64_t counts[RN_ATTENTION_NUMBERS] = {2, shape->batch, shape->heads, rows};
  int64_t last = shape->depth;
  for (int i = 0; i < RN_ATTENTION_NUMBERS; ++i) {
    if (counts[i] == 1) continue;
    if (layout[i] > tensor->count) return rn_internal("Operand %d of attention is too small", side);
    last += (counts[i] - 1) * layout[i];
  }
  return last <= tensor->count ? RN_OK : rn_internal("Operand %d of attention is too small", side);
}

rn_status_t rn_attention_check_mask(const rn_attention_shape_t* shape, const rn_tensor_t* mask) {
  const int64_t* steps = shape->mask_steps;
  const int64_t heads = shape->batch * shape->heads;
  if (steps[0] < 1 || (heads - 1) / steps[0] * steps[1] + (shape->queries - 1) * steps[2] +
                              (shape->keys - 1) * steps[3] >=
                          mask->count)
    return rn_internal("The mask of attention does not fit");
  return RN_OK;
}

typedef struct attention_job_t {
  const rn_attention_shape_t* shape;
  const rn_tensor_t *q, *k, *v, *mask, *y;  // |mask| NULL: none
  const rn_gemm_table_t* gemm;
  int64_t strip;
  int64_t block;           // queries of a block
  int64_t piece, pieces;   // queries of a piece; pieces per head
  int64_t k_size, v_size;  // elements of the panels
  rn_status_t status;      // see rn_keep_first_error
} attention_job_t;

// What a thread works in.
typedef struct attention_scratch_t {
  float *k, *v, *scores;
  void* gemm;
} attention_scratch_t;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Row |row| of head |head|, counted over the batch.
static float* row_of(const attention_job_t* job, const rn_tensor_t* tensor, int side, int64_t head,
                     int64_t row) {
  const int64_t* layout = job->shape->layouts[side];
  const int64_t heads = job->shape->heads;
  return RN_DATA(tensor, float) + layout[0] + head / heads * layout[1] + head % heads * layout[2] +
         row * layout[3];
}

// Packs a matrix whose columns |part| describes, and zeros where the last strip has none.
static void pack(const attention_job_t* job, const rn_gemm_part_t* part, float* to) {
  const int64_t whole = part->n / job->strip * job->strip;
  if (part->n > whole) memset(to + whole * part->k, 0, (size_t)(job->strip * part->k) * sizeof *to);
  job->gemm->pack_f32(part, to);
}

static void pack_head(const attention_job_t* job, int64_t head,
                      const attention_scratch_t* scratch) {
  const rn_attention_shape_t* shape = job->shape;
  const rn_gemm_part_t k = {.b = row_of(job, job->k, 1, head, 0),
                            .b_row = 1,
                            .b_column = shape->layouts[1][3],
                            .n = shape->keys,
                            .k = shape->depth};
  const rn_gemm_part_t v = {.b = row_of(job, job->v, 2, head, 0),
                            .b_row = shape->layouts[2][3],
                            .b_column = 1,
                            .n = shape->depth,
                            .k = shape->keys};
  pack(job, &k, scratch->k);
  pack(job, &v, scratch->v);
}

// Scales and masks the scores of queries [begin, end) by keys [0, keys).
static void mask_scores(const attention_job_t* job, int64_t head, int64_t begin, int64_t end,
                        int64_t keys, float* scores) {
  const rn_attention_shape_t* shape = job->shape;
  const int64_t* steps = shape->mask_steps;
  if (shape->scale != 1)
    rn_vector_run(RN_VECTOR_MUL, RN_FLOAT, scores, 1, &shape->scale, 0, scores,
                  (end - begin) * keys);
  for (int64_t i = begin; i < end; ++i, scores += keys) {
    for (int64_t j = i + 1; shape->is_causal && j < keys; ++j) scores[j] = -INFINITY;
    if (!job->mask) continue;
    const int64_t at = head / steps[0] * steps[1] + i * steps[2];
    if (job->mask->dtype == RN_FLOAT) {
      rn_vector_run(RN_VECTOR_ADD, RN_FLOAT, scores, 1, RN_DATA(job->mask, const float) + at,
                    (int)steps[3], scores, keys);
      continue;
    }
    const bool* mask = RN_DATA(job->mask, const bool) + at;
    for (int64_t j = 0; j < keys; ++j)
      if (!mask[j * steps[3]]) scores[j] = -INFINITY;
  }
}

static void run_queries(const attention_job_t* job, int64_t head, int64_t begin, int64_t end,
                        const attention_scratch_t* scratch) {
  const rn_attention_shape_t* shape = job->shape;
  const int64_t keys = shape->is_causal ? least(end, shape->keys) : shape->keys;
  rn_gemm_part_t part = {.a = row_of(job, job->q, 0, head, begin),
                         .a_row = shape->layouts[0][3],
                         .a_column = 1,
                         .b_column = 1,
                         .panels = scratch->k,
                         .c = scratch->scores,
                         .c_row = keys,
                         .m = end - begin,
                         .n = keys,
                         .k = shape->depth,
                         .way = RN_GEMM_BLOCKS,
                         .scratch = scratch->gemm};
  job->gemm->fn[RN_FLOAT](&part);
  mask_scores(job, head, begin, end, keys, scratch->scores);
  RN_ISA_PICK(rn_softmax_)
  [RN_FLOAT].softmax(scratch->scores, scratch->scores, end - begin, keys, false);
  part.a = scratch->scores;
  part.a_row = part.k = keys;
  part.c_row = shape->layouts[3][3];
  float* y = row_of(job, job->y, 3, head, begin);
  for (int64_t first = 0; first < shape->depth; first += job->strip) {
    part.n = least(job->strip, shape->depth - first);
    part.panels = scratch->v + first * shape->keys;
    part.c = y + first;
    job->gemm->fn[RN_FLOAT](&part);
  }
}

static void run_pieces(void* arg, int64_t begin, int64_t end) {
  attention_job_t* job = arg;
  const int64_t scores = job->block * job->shape->keys;
  const size_t floats = (size_t)(job->k_size + job->v_size + scores) * sizeof(float);
  rn_scratch_t memory;
  if (!rn_scratch_take(&memory, RN_GEMM_SCRATCH + floats, &job->status)) return;
  attention_scratch_t scratch;
  scratch.gemm = memory.at;
  scratch.k = (float*)(memory.at + RN_GEMM_SCRATCH);
  scratch.v = scratch.k + job->k_size;
  scratch.scores = scratch.v + job->v_size;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t head = i / job->pieces, first = i % job->pieces * job->piece;
    const int64_t last = least(first + job->piece, job->shape->queries);
    if (i == begin || i % job->pieces == 0) pack_head(job, head, &scratch);
    for (int64_t at = first; at < last; at += job->block)
      run_queries(job, head, at, least(at + job->block, last), &scratch);
  }
  rn_scratch_free(&memory);
}

static rn_status_t run(rn_kernel_ctx_t* ctx, attention_job_t* job) {
  const rn_attention_shape_t* shape = job->shape;
  rn_pool_t* pool = rn_ctx_pool(ctx);
  const int64_t heads = shape->batch * shape->heads;
  job->gemm = RN_ISA_PICK(&rn_gemm_);
  job->strip = job->gemm->strip_bytes / (int64_t)sizeof(float);
  int64_t key_strips = ceil_div(shape->keys, job->strip) * job->strip;
  int64_t depth_strips = ceil_div(shape->depth, job->strip) * job->strip;
  job->k_size = key_strips * shape->depth;
  job->v_size = depth_strips * shape->keys;
  job->block = SCORE_BYTES / (int64_t)sizeof(float) / shape->keys / LEAST_QUERIES * LEAST_QUERIES;
  if (job->block < LEAST_QUERIES) job->block = LEAST_QUERIES;
  job->block = least(job->block, least(MOST_QUERIES, shape->queries));
  // Heads are divided only if there are fewer than threads need.
  const int threads = rn_pool_loop_threads(pool);
  const int64_t wanted = threads > 1 ? ceil_div((int64_t)PIECES_PER_THREAD * threads, heads) : 1;
  job->piece = ceil_div(ceil_div(shape->queries, job->block), wanted) * job->block;
  job->pieces = ceil_div(shape->queries, job->piece);
  const double flops = 4.0 * (double)job->piece * (double)shape->keys * (double)shape->depth;
  rn_pool_for(pool, heads * job->pieces, (int64_t)(PIECE_FLOPS / (flops + 1)) + 1, run_pieces, job);
  return job->status;
}

static rn_status_t attention_compute(rn_kernel_ctx_t* ctx) {
  const rn_attention_shape_t* shape = ctx->state;
  attention_job_t job = {
      .shape = shape, .q = rn_in(ctx, 0), .k = rn_in(ctx, 1), .v = rn_in(ctx, 2)};
  RN_RETURN_IF_ERROR(rn_attention_check(shape, 0, shape->queries, job.q));
  RN_RETURN_IF_ERROR(rn_attention_check(shape, 1, shape->keys, job.k));
  RN_RETURN_IF_ERROR(rn_attention_check(shape, 2, shape->keys, job.v));
  if (shape->has_mask) {
    job.mask = rn_in(ctx, 3);
    RN_RETURN_IF_ERROR(rn_attention_check_mask(shape, job.mask));
  }
  rn_tensor_t *y = NULL, *sums = NULL;
  const int64_t heads[2] = {shape->batch * shape->heads, shape->queries};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){shape->rank, shape->dims}, &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){2, heads}, &sums));  // for gradients: unread
  RN_RETURN_IF_ERROR(rn_attention_check(shape, 3, shape->queries, y));
  job.y = y;
  return run(ctx, &job);
}

static const rn_kernel_def_t rows[] = {
    {.op = "_Attention",
     .device = "CPU",
     .types = {{"T", RN_T(FLOAT)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(rn_attention_shape_t),
     .init = rn_attention_init,
     .compute = attention_compute},
};
RN_KERNEL_FAMILY(cpu_attention, rows);
