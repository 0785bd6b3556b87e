// Matmul of 8-bit levels: see quantized_gemm.h.
//
// The raw levels are multiplied, in strips of B that are packed once; the zero points are corrected
// with the sums of A's rows and B's columns:
//   sum (a - za)(b - zb) = sum ab - za sum b - zb sum a + k za zb.
#include "kernels/cpu/quant/quantized_gemm.h"

#include "kernels/cpu/first_error.h"
#include "kernels/cpu/quant/quantized.h"

#define BLOCK_ROWS 48    // of A, copied and multiplied at a time
#define BLOCK_DEPTH 512  // pairs: this part of a strip fits the L1 cache
#define PART_STRIPS 8    // strips per piece of work, if there are few rows

typedef struct quantized_gemm_job_t {
  const rn_quant_gemm_t* gemm;
  const rn_quant_table_t* table;
  int64_t depth;       // pairs
  int64_t strips;      // of B
  int64_t parts;       // pieces per block of rows
  int16_t* b;          // packed
  uint32_t* sums;      // of B's columns
  rn_status_t status;  // see rn_keep_first_error
} quantized_gemm_job_t;

static void pack_strips(void* arg, int64_t begin, int64_t end) {
  const quantized_gemm_job_t* job = arg;
  const rn_quant_gemm_t* gemm = job->gemm;
  const int64_t strip = job->table->strip;
  for (int64_t s = begin; s < end; ++s) {
    int16_t* to = job->b + s * 2 * strip * job->depth;
    uint32_t* sums = job->sums + s * strip;
    int64_t columns = gemm->n - s * strip < strip ? gemm->n - s * strip : strip;
    memset(sums, 0, (size_t)strip * sizeof *sums);
    memset(to, 0, (size_t)(2 * strip * job->depth) * sizeof *to);
    for (int64_t i = 0; i < gemm->k; ++i) {
      const uint8_t* from = (const uint8_t*)gemm->b + i * gemm->b_row + s * strip * gemm->b_column;
      int16_t* row = to + i / 2 * 2 * strip + i % 2;
      for (int64_t j = 0; j < columns; ++j) {
        uint8_t byte = from[j * gemm->b_column];
        int16_t level = gemm->b_is_signed ? (int8_t)byte : byte;
        row[2 * j] = level;
        sums[j] += (uint32_t)level;
      }
    }
  }
}

// Initializes a row with the correction for the zero points.
static void begin_row(const quantized_gemm_job_t* job, const int16_t* a, int64_t first,
                      int64_t columns, int32_t* c) {
  const rn_quant_gemm_t* gemm = job->gemm;
  uint32_t sum = 0, a_zero = (uint32_t)gemm->a_zero, b_zero = (uint32_t)gemm->b_zero;
  for (int64_t i = 0; i < gemm->k; ++i) sum += (uint32_t)a[i];
  uint32_t all = (uint32_t)gemm->k * a_zero * b_zero - b_zero * sum;
  for (int64_t j = 0; j < columns; ++j) c[j] = (int32_t)(all - a_zero * job->sums[first + j]);
}

// Rows [begin, end) of C, strips [first, last).
static void run_block(const quantized_gemm_job_t* job, int64_t begin, int64_t end, int64_t first,
                      int64_t last, int16_t* a) {
  const rn_quant_gemm_t* gemm = job->gemm;
  const int64_t width = job->table->strip, step = 2 * job->depth;
  int64_t from = first * width, to = last * width < gemm->n ? last * width : gemm->n;
  for (int64_t i = begin; i < end; ++i) {
    int16_t* row = a + (i - begin) * step;
    gemm->row(gemm->arg, i, row);
    if (gemm->k % 2) row[gemm->k] = 0;
    begin_row(job, row, from, to - from, gemm->c + i * gemm->n + from);
  }
  for (int64_t k = 0; k < job->depth; k += BLOCK_DEPTH)
    for (int64_t s = first; s < last; ++s) {
      rn_quant_strip_t strip = {
          .a = a + 2 * k,
          .a_step = job->depth,
          .rows = end - begin,
          .depth = job->depth - k < BLOCK_DEPTH ? job->depth - k : BLOCK_DEPTH,
          .b = job->b + (s * job->depth + k) * 2 * width,
          .c = gemm->c + begin * gemm->n + s * width,
          .c_step = gemm->n,
          .columns = gemm->n - s * width < width ? gemm->n - s * width : width};
      job->table->multiply(&strip);
    }
}

static rn_status_t run_blocks(const quantized_gemm_job_t* job, int64_t begin, int64_t end) {
  size_t bytes = (size_t)(BLOCK_ROWS * 2 * job->depth) * sizeof(int16_t);
  int16_t* a = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), bytes, (void**)&a));
  for (int64_t i = begin; i < end; ++i) {
    int64_t row = i / job->parts * BLOCK_ROWS, part = i % job->parts;
    int64_t row_end = row + BLOCK_ROWS < job->gemm->m ? row + BLOCK_ROWS : job->gemm->m;
    int64_t first = part * PART_STRIPS, last = first + PART_STRIPS;
    if (job->parts == 1 || last > job->strips) last = job->strips;
    run_block(job, row, row_end, first, last, a);
  }
  rn_free(rn_allocator_default(), a, bytes);
  return RN_OK;
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  quantized_gemm_job_t* job = arg;
  rn_status_t status = run_blocks(job, begin, end);
  rn_keep_first_error(&job->status, status);
}

rn_status_t rn_quant_gemm(rn_kernel_ctx_t* ctx, const rn_quant_gemm_t* gemm) {
  quantized_gemm_job_t job = {.gemm = gemm, .table = rn_quant_table(), .depth = (gemm->k + 1) / 2};
  job.strips = (gemm->n + job.table->strip - 1) / job.table->strip;
  int64_t columns = job.strips * job.table->strip, dims[2] = {columns, 2 * job.depth};
  rn_tensor_t panels = {0}, sums = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT16, (rn_shape_t){2, dims}, &panels));
  rn_status_t status = rn_temp(ctx, RN_UINT32, (rn_shape_t){1, &columns}, &sums);
  if (rn_ok(status)) {
    job.b = panels.data;
    job.sums = sums.data;
    double each = 2.0 * (double)job.depth * (double)job.table->strip;
    rn_pool_for(rn_ctx_pool(ctx), job.strips, each < 1e5 ? (int64_t)(1e5 / each) + 1 : 1,
                pack_strips, &job);
    int64_t blocks = (gemm->m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    job.parts = blocks < 8 ? (job.strips + PART_STRIPS - 1) / PART_STRIPS : 1;
    double work = each * (double)(job.parts == 1 ? job.strips : PART_STRIPS) *
                  (double)(gemm->m < BLOCK_ROWS ? gemm->m : BLOCK_ROWS);
    rn_pool_for(rn_ctx_pool(ctx), blocks * job.parts, work < 4e6 ? (int64_t)(4e6 / work) + 1 : 1,
                run_piece, &job);
    status = job.status;
  }
  rn_tensor_clear(&sums);
  rn_tensor_clear(&panels);
  return status;
}
