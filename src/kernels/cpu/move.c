// Copies boxes of elements. See move.h.
//
// Plain elements are moved as bytes. Dimensions that are contiguous on both sides are folded into
// the element while it stays small. The innermost loop is the one that writes in order; if another
// dimension reads in order, the two are processed in blocks.
#include "kernels/cpu/move.h"

#include "base/pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/move.h"
#include "tensor/object.h"
#include "tensor/tstring.h"

// Bytes worth a hand-off to a sleeping thread.
#define PIECE_BYTES (256 * 1024)
// Bytes worth sharing with threads that are awake anyway.
#define SMALL_BYTES (32 * 1024)

static bool copy_string(const rn_tstring_t* src, rn_tstring_t* dst) {
  rn_str_t view = rn_tstring_view(src);
  return rn_tstring_assign(dst, view.data, view.size);
}

static void copy_object(rn_object_t* const* src, rn_object_t** dst) {
  rn_object_t* old = *dst;
  *dst = rn_object_retain(*src);
  rn_object_release(old);
}

static rn_status_t move_owned(const rn_move_t* move, int32_t d, rn_dtype_t dtype, const char* src,
                              char* dst) {
  if (d == move->rank) {
    if (dtype != RN_STRING) {
      copy_object((rn_object_t* const*)src, (rn_object_t**)dst);
      return RN_OK;
    }
    return copy_string((const rn_tstring_t*)src, (rn_tstring_t*)dst) ? RN_OK : rn_out_of_memory();
  }
  const rn_move_dim_t* dim = &move->dims[d];
  int64_t size = (int64_t)rn_dtype_size(dtype);
  for (int64_t i = 0; i < dim->size; ++i)
    RN_RETURN_IF_ERROR(
        move_owned(move, d + 1, dtype, src + i * dim->from * size, dst + i * dim->to * size));
  return RN_OK;
}

// A box in bytes, ready to run.
typedef struct move_job_t {
  const rn_move_table_t* table;
  int32_t rank;   // number of loops around the inner ones
  int32_t kind;   // one of the kinds below
  int log2_size;  // of the element size, for STEPS and TRANSPOSE
  int64_t run;    // bytes per run, for RUN
  rn_move_dim_t inner, middle;
  const char* src;
  char* dst;
  rn_move_dim_t dims[RN_MOVE_MAX_RANK];
} move_job_t;
enum { RUN, STEPS, TRANSPOSE };

static void run_inner(const move_job_t* job, const char* src, char* dst) {
  switch (job->kind) {
    case RUN:
      memcpy(dst, src, (size_t)job->run);
      break;
    case STEPS:
      job->table->steps[job->log2_size](src, job->inner.from, dst, job->inner.to, job->inner.size);
      break;
    default:
      job->table->transpose[job->log2_size](src, job->inner.from, dst, job->middle.to,
                                            job->middle.size, job->inner.size);
  }
}

// |n| turns of loop |d|, with the loops within it.
static void run_loop(const move_job_t* job, int32_t d, int64_t n, const char* src, char* dst) {
  const rn_move_dim_t* dim = &job->dims[d];
  if (d + 1 < job->rank) {
    for (int64_t i = 0; i < n; ++i)
      run_loop(job, d + 1, job->dims[d + 1].size, src + i * dim->from, dst + i * dim->to);
  } else if (job->kind == RUN) {
    job->table->rows(src, dim->from, dst, dim->to, n, (size_t)job->run);
  } else {
    for (int64_t i = 0; i < n; ++i) run_inner(job, src + i * dim->from, dst + i * dim->to);
  }
}

static void run_whole(const move_job_t* job) {
  if (job->rank > 0)
    run_loop(job, 0, job->dims[0].size, job->src, job->dst);
  else
    run_inner(job, job->src, job->dst);
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  const move_job_t* job = arg;
  const rn_move_dim_t* dim = &job->dims[0];
  run_loop(job, 0, end - begin, job->src + begin * dim->from, job->dst + begin * dim->to);
}

// Without outer loops: splits the inner loop, or the middle one of a transposition.
static void run_inner_piece(void* arg, int64_t begin, int64_t end) {
  const move_job_t* whole = arg;
  move_job_t piece;
  memcpy(&piece, whole, offsetof(move_job_t, dims));
  const char* src = whole->src;
  char* dst = whole->dst;
  if (whole->kind == RUN) {
    src += begin, dst += begin;
    piece.run = end - begin;
  } else if (whole->kind == STEPS) {
    src += begin * whole->inner.from, dst += begin * whole->inner.to;
    piece.inner.size = end - begin;
  } else {
    src += begin * whole->middle.from, dst += begin * whole->middle.to;
    piece.middle.size = end - begin;
  }
  run_inner(&piece, src, dst);
}

static bool log2_of(int64_t size, int* out) {
  if (size > 16 || (size & (size - 1))) return false;
  *out = __builtin_ctzll((unsigned long long)size);
  return true;
}

// Converts strides to bytes and separates the inner loops.
static void prepare(move_job_t* job, const rn_move_t* move, int64_t size) {
  job->rank = move->rank;
  for (int32_t d = 0; d < move->rank; ++d)
    job->dims[d] =
        (rn_move_dim_t){move->dims[d].size, move->dims[d].from * size, move->dims[d].to * size};
  job->kind = RUN;
  job->run = size;
  if (job->rank > 0) {
    const rn_move_dim_t* last = &job->dims[job->rank - 1];
    if (last->from == size && last->to == size) {
      job->run = size * last->size;
      --job->rank;
    }
  }
  if (job->rank == 0 || !log2_of(job->run, &job->log2_size)) return;
  size = job->run;
  job->kind = STEPS;
  // The loops may run in any order; the one that writes in order becomes the inner one.
  int32_t inner = job->rank - 1, middle = -1;
  for (int32_t d = 0; d < job->rank; ++d)
    if (job->dims[d].to == size) inner = d;
  for (int32_t d = 0; d < job->rank; ++d)
    if (d != inner && job->dims[d].from == size && job->dims[inner].to == size) middle = d;
  job->inner = job->dims[inner];
  if (middle >= 0 && job->inner.size >= 4 && job->dims[middle].size >= 4) {
    job->kind = TRANSPOSE;
    job->middle = job->dims[middle];
  } else {
    middle = -1;
  }
  int32_t kept = 0;
  for (int32_t d = 0; d < job->rank; ++d)
    if (d != inner && d != middle) job->dims[kept++] = job->dims[d];
  job->rank = kept;
}

static int64_t grain_for(int64_t bytes_each) {
  int64_t grain = PIECE_BYTES / (bytes_each > 0 ? bytes_each : 1);
  return grain < 1 ? 1 : grain;
}

rn_status_t rn_move_run(const rn_move_t* move, rn_pool_t* pool, rn_dtype_t dtype, const void* src,
                        void* dst) {
  if (move->is_empty) return RN_OK;
  if (!rn_dtype_is_plain(dtype)) return move_owned(move, 0, dtype, src, dst);
  int64_t size = (int64_t)rn_dtype_size(dtype), bytes = size;
  if (move->rank == 0) {
    rn_move_bytes(dst, src, (size_t)size);
    return RN_OK;
  }
  for (int32_t d = 0; d < move->rank; ++d) bytes *= move->dims[d].size;
  if (move->rank == 1 && move->dims[0].from == 1 && move->dims[0].to == 1 &&
      bytes <= 2 * PIECE_BYTES) {
    memcpy(dst, src, (size_t)bytes);
    return RN_OK;
  }
  move_job_t job;
  job.table = RN_ISA_PICK(&rn_move_table_);
  job.src = src;
  job.dst = dst;
  prepare(&job, move, size);
  if (bytes <= 2 * (job.rank > 0 ? SMALL_BYTES : PIECE_BYTES)) {
    run_whole(&job);
  } else if (job.rank > 0) {
    int64_t each = bytes / job.dims[0].size, grain = grain_for(each);
    if (bytes <= 2 * PIECE_BYTES) grain = job.dims[0].size;
    rn_pool_for_small(pool, job.dims[0].size, grain, SMALL_BYTES / (each + 1) + 1, run_piece, &job);
  } else {
    int64_t count = job.kind == RUN     ? job.run
                    : job.kind == STEPS ? job.inner.size
                                        : job.middle.size;
    int64_t grain = grain_for(bytes / count);
    if (job.kind == TRANSPOSE) grain = (grain + 63) / 64 * 64;
    rn_pool_for(pool, count, grain, run_inner_piece, &job);
  }
  return RN_OK;
}

rn_status_t rn_move_row(rn_dtype_t dtype, const void* src, void* dst, int64_t n) {
  if (n <= 0) return RN_OK;
  if (rn_dtype_is_plain(dtype)) {
    memcpy(dst, src, (size_t)n * rn_dtype_size(dtype));
    return RN_OK;
  }
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, n, 1, 1);
  return move_owned(&move, 0, dtype, src, dst);
}

rn_status_t rn_move_fill(rn_pool_t* pool, rn_dtype_t dtype, const void* value, void* dst,
                         int64_t n) {
  if (n <= 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, n, 0, 1);
  return rn_move_run(&move, pool, dtype, value, dst);
}

static void zero_piece(void* arg, int64_t begin, int64_t end) {
  memset((char*)arg + begin, 0, (size_t)(end - begin));
}

void rn_move_zero(rn_pool_t* pool, rn_dtype_t dtype, void* dst, int64_t n) {
  if (n <= 0) return;
  if (rn_dtype_is_plain(dtype)) {
    rn_pool_for(pool, n * (int64_t)rn_dtype_size(dtype), 2 * PIECE_BYTES, zero_piece, dst);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (dtype == RN_STRING) {
      rn_tstring_clear((rn_tstring_t*)dst + i);
    } else {
      rn_object_t** place = (rn_object_t**)dst + i;
      rn_object_release(*place);
      *place = NULL;
    }
  }
}
