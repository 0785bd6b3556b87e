// The loop over operands of different shapes. See broadcasting.h.
#include "kernels/cpu/broadcasting.h"

#include "base/pool.h"
#include "kernels/cpu/array.h"

// Elements per block into which short runs are gathered, and the length below which a run is short.
#define GATHER_BLOCK 512
#define SHORT_RUN 32
#define GATHER_SIZE 16  // of the largest element that is gathered

// The size of dimension |d| (of |rank|) of |tensor|; missing leading dimensions are 1.
static int64_t dim_of(const rn_tensor_t* tensor, int d, int rank) {
  int own = d - (rank - tensor->rank);
  return own < 0 ? 1 : rn_tensor_dim(tensor, own);
}

// The strides of the merged dimensions; bit k of |repeats| is set where operand k has size 1.
static void set_strides(rn_broadcast_t* out, const uint8_t* repeats) {
  for (int k = 0; k < out->operands; ++k) {
    int64_t stride = 1;
    bool is_contiguous = true;
    for (int d = out->rank - 1; d >= 0; --d) {
      bool is_repeated = repeats[d] >> k & 1;
      out->strides[k][d] = is_repeated ? 0 : stride;
      is_contiguous &= !is_repeated;
      if (!is_repeated) stride *= out->dims[d];
    }
    if (is_contiguous) out->contiguous |= 1u << k;
  }
}

// Dimension |d| of the result; false if the operands are incompatible there.
static bool common_dim(const rn_tensor_t* const* operands, int count, int d, int rank,
                       int64_t* out_size, unsigned* out_repeated) {
  int64_t size = 1;
  for (int k = 0; k < count; ++k) {
    int64_t own = dim_of(operands[k], d, rank);
    if (own == 1 || own == size) continue;
    if (size != 1) return false;
    size = own;
  }
  *out_size = size;
  *out_repeated = 0;
  for (int k = 0; k < count; ++k)
    *out_repeated |= (unsigned)(dim_of(operands[k], d, rank) == 1) << k;
  return true;
}

bool rn_broadcast_make(const rn_tensor_t* const* operands, int count, rn_broadcast_t* out) {
  int rank = 0;
  for (int k = 0; k < count; ++k)
    if (operands[k]->rank > rank) rank = operands[k]->rank;
  out->operands = count;
  out->rank = 0;
  out->shape_rank = rank;
  out->count = 1;
  out->contiguous = 0;
  bool is_empty = false, is_too_large = false;
  uint8_t repeats[RN_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    int64_t size;
    unsigned repeated;
    if (!common_dim(operands, count, d, rank, &size, &repeated)) return false;
    out->shape_dims[d] = size;
    is_empty |= size == 0;
    if (size == 1) continue;
    is_too_large |= __builtin_mul_overflow(out->count, size, &out->count);
    if (out->rank > 0 && repeats[out->rank - 1] == repeated) {
      int64_t* last = &out->dims[out->rank - 1];
      is_too_large |= __builtin_mul_overflow(*last, size, last);
    } else {
      repeats[out->rank] = (uint8_t)repeated;
      out->dims[out->rank++] = size;
    }
  }
  if (is_empty || is_too_large) {
    out->count = is_empty ? 0 : INT64_MAX;
    out->rank = 0;
  } else {
    set_strides(out, repeats);
  }
  return true;
}

// A position in the loop: the coordinates and, per operand, the offset of its element.
typedef struct broadcasting_cursor_t {
  int64_t at[RN_MAX_RANK];
  int64_t offset[RN_BROADCAST_OPERANDS];
} broadcasting_cursor_t;

static void cursor_set(broadcasting_cursor_t* cursor, const rn_broadcast_t* b, int64_t element) {
  for (int k = 0; k < b->operands; ++k) cursor->offset[k] = 0;
  for (int d = b->rank - 1; d >= 0; --d) {
    cursor->at[d] = element % b->dims[d];
    element /= b->dims[d];
    for (int k = 0; k < b->operands; ++k) cursor->offset[k] += cursor->at[d] * b->strides[k][d];
  }
}

// Advances by |n| elements, not beyond the end of the innermost dimension.
static void cursor_advance(broadcasting_cursor_t* cursor, const rn_broadcast_t* b, int64_t n) {
  int d = b->rank - 1;
  cursor->at[d] += n;
  for (int k = 0; k < b->operands; ++k) cursor->offset[k] += n * b->strides[k][d];
  while (d > 0 && cursor->at[d] == b->dims[d]) {
    cursor->at[d] = 0;
    cursor->at[d - 1]++;
    for (int k = 0; k < b->operands; ++k)
      cursor->offset[k] += b->strides[k][d - 1] - b->dims[d] * b->strides[k][d];
    --d;
  }
}

typedef struct broadcasting_walk_t {
  const rn_broadcast_t* broadcast;
  const rn_broadcast_walk_t* run;
} broadcasting_walk_t;

static void walk_runs(void* arg, int64_t begin, int64_t end) {
  const broadcasting_walk_t* walk = arg;
  const rn_broadcast_t* b = walk->broadcast;
  const rn_broadcast_walk_t* run = walk->run;
  const int last = b->rank - 1;
  int steps[RN_BROADCAST_OPERANDS];
  for (int k = 0; k < b->operands; ++k) steps[k] = b->strides[k][last] != 0;
  broadcasting_cursor_t cursor;
  cursor_set(&cursor, b, begin);
  while (begin < end) {
    int64_t n = b->dims[last] - cursor.at[last];
    if (n > end - begin) n = end - begin;
    const void* in[RN_BROADCAST_OPERANDS];
    for (int k = 0; k < b->operands; ++k)
      in[k] = (const char*)run->in[k] + (size_t)cursor.offset[k] * run->in_size[k];
    run->fn(run->arg, in, steps, (char*)run->out + (size_t)begin * run->out_size, n);
    cursor_advance(&cursor, b, n);
    begin += n;
  }
}

typedef struct broadcasting_wide_t {
  uint64_t half[2];
} broadcasting_wide_t;

// Gathers |rows| rows of |n| elements; |row| and |step| are the strides between rows and elements.
#define GATHER(T)                                              \
  do {                                                         \
    const T* from = (const T*)run->in[k] + cursor.offset[k];   \
    T* to = (T*)block + done;                                  \
    for (int64_t r = 0; r < rows; ++r, from += row, to += n) { \
      if (step)                                                \
        for (int64_t i = 0; i < n; ++i) to[i] = from[i];       \
      else                                                     \
        for (int64_t i = 0; i < n; ++i) to[i] = *from;         \
    }                                                          \
  } while (0)

// Copies |count| elements of operand |k|, from |begin| on, to consecutive memory.
static void gather(const rn_broadcast_t* b, const rn_broadcast_walk_t* run, int k, int64_t begin,
                   int64_t count, void* block) {
  const int last = b->rank - 1;
  const int64_t length = b->dims[last], step = b->strides[k][last];
  const int64_t row = last > 0 ? b->strides[k][last - 1] : 0;
  broadcasting_cursor_t cursor;
  cursor_set(&cursor, b, begin);
  for (int64_t done = 0; done < count;) {
    // Takes whole rows up to the end of the next outer dimension, or the rest of one row.
    int64_t n = length - cursor.at[last], rows = 1;
    if (n > count - done) {
      n = count - done;
    } else if (n == length && last > 0) {
      rows = b->dims[last - 1] - cursor.at[last - 1];
      if (rows > (count - done) / length) rows = (count - done) / length;
    }
    switch (run->in_size[k]) {
      case 1:
        GATHER(uint8_t);
        break;
      case 2:
        GATHER(uint16_t);
        break;
      case 4:
        GATHER(uint32_t);
        break;
      case 8:
        GATHER(uint64_t);
        break;
      default:
        GATHER(broadcasting_wide_t);
        break;
    }
    done += rows * n;
    if (rows > 1) {
      cursor.at[last - 1] += rows - 1;
      for (int j = 0; j < b->operands; ++j)
        cursor.offset[j] += (rows - 1) * b->strides[j][last - 1];
    }
    cursor_advance(&cursor, b, n);
  }
}

static const int all_steps[RN_BROADCAST_OPERANDS] = {1, 1, 1};

// For short runs: writes repeated operands out in full, one block at a time. An operand that
// repeats as a whole looks the same in every block of whole rows and is written once.
static void walk_blocks(void* arg, int64_t begin, int64_t end) {
  const broadcasting_walk_t* walk = arg;
  const rn_broadcast_t* b = walk->broadcast;
  const rn_broadcast_walk_t* run = walk->run;
  const int64_t length = b->dims[b->rank - 1], block = GATHER_BLOCK / length * length;
  _Alignas(RN_ALIGN) char blocks[RN_BROADCAST_OPERANDS][GATHER_BLOCK * GATHER_SIZE];
  for (int64_t at = begin; at < end; at += block) {
    int64_t n = end - at < block ? end - at : block;
    const void* in[RN_BROADCAST_OPERANDS];
    for (int k = 0; k < b->operands; ++k) {
      in[k] = (const char*)run->in[k] + (size_t)at * run->in_size[k];
      if (b->contiguous >> k & 1) continue;
      in[k] = blocks[k];
      if (at > begin && b->rank == 2 && b->strides[k][0] == 0) continue;
      gather(b, run, k, at, n, blocks[k]);
    }
    run->fn(run->arg, in, all_steps, (char*)run->out + (size_t)at * run->out_size, n);
  }
}

static bool can_gather(const rn_broadcast_t* b, const rn_broadcast_walk_t* run) {
  if (b->dims[b->rank - 1] >= SHORT_RUN) return false;
  for (int k = 0; k < b->operands; ++k) {
    size_t size = run->in_size[k];
    if (!(b->contiguous >> k & 1) && (size > GATHER_SIZE || (size & (size - 1)))) return false;
  }
  return true;
}

void rn_broadcast_run(rn_pool_t* pool, int64_t grain, const rn_broadcast_t* b,
                      const rn_broadcast_walk_t* run) {
  if (b->count <= 0) return;
  if (b->rank == 0) {
    run->fn(run->arg, run->in, all_steps, run->out, 1);
    return;
  }
  broadcasting_walk_t walk = {b, run};
  rn_pool_for(pool, b->count, grain, can_gather(b, run) ? walk_blocks : walk_runs, &walk);
}

// Operands of equal shape, and scalars.
typedef struct flat_t {
  rn_broadcast_walk_t run;
  int operands;
  int steps[RN_BROADCAST_OPERANDS];
} flat_t;

static void flat_piece(void* arg, int64_t begin, int64_t end) {
  const flat_t* flat = arg;
  const rn_broadcast_walk_t* run = &flat->run;
  const void* in[RN_BROADCAST_OPERANDS];
  for (int k = 0; k < flat->operands; ++k)
    in[k] = (const char*)run->in[k] + (flat->steps[k] ? (size_t)begin * run->in_size[k] : 0);
  run->fn(run->arg, in, flat->steps, (char*)run->out + (size_t)begin * run->out_size, end - begin);
}

static void set_inputs(rn_broadcast_walk_t* run, const rn_kernel_ctx_t* ctx, int operands,
                       rn_run_fn_t fn, void* arg) {
  for (int k = 0; k < operands; ++k) {
    run->in[k] = rn_in(ctx, k)->data;
    run->in_size[k] = rn_dtype_size(rn_in(ctx, k)->dtype);
  }
  run->fn = fn;
  run->arg = arg;
}

static rn_status_t set_output(rn_broadcast_walk_t* run, rn_kernel_ctx_t* ctx, uint64_t in_place,
                              rn_shape_t shape) {
  rn_tensor_t* output;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, in_place, shape, &output));
  run->out = output->data;
  run->out_size = rn_dtype_size(output->dtype);
  return RN_OK;
}

static rn_status_t compute_flat(rn_kernel_ctx_t* ctx, int operands, int leader, uint64_t in_place,
                                int64_t grain, rn_run_fn_t fn, void* arg) {
  const int64_t count = rn_in(ctx, leader)->count;
  flat_t flat = {.operands = operands};
  set_inputs(&flat.run, ctx, operands, fn, arg);
  for (int k = 0; k < operands; ++k) flat.steps[k] = rn_in(ctx, k)->count == count;
  RN_RETURN_IF_ERROR(set_output(&flat.run, ctx, in_place, rn_tensor_shape(rn_in(ctx, leader))));
  rn_pool_for_small(rn_ctx_pool(ctx), count, grain, grain / 4, flat_piece, &flat);
  return RN_OK;
}

rn_status_t rn_elementwise_compute(rn_kernel_ctx_t* ctx, int operands, uint64_t in_place,
                                   int64_t grain, rn_run_fn_t fn, void* arg) {
  return compute_flat(ctx, operands, 0, in_place, grain, fn, arg);
}

static rn_status_t compute_general(rn_kernel_ctx_t* ctx, int operands, uint64_t in_place,
                                   int64_t grain, rn_run_fn_t fn, void* arg) {
  rn_broadcast_t broadcast;
  const rn_tensor_t* in[RN_BROADCAST_OPERANDS];
  for (int k = 0; k < operands; ++k) in[k] = rn_in(ctx, k);
  if (!rn_broadcast_make(in, operands, &broadcast)) return rn_broadcast_error(in[0], in[1]);
  rn_broadcast_walk_t run = {0};
  set_inputs(&run, ctx, operands, fn, arg);
  RN_RETURN_IF_ERROR(set_output(&run, ctx, in_place, rn_broadcast_shape(&broadcast)));
  rn_broadcast_run(rn_ctx_pool(ctx), grain, &broadcast, &run);
  return RN_OK;
}

rn_status_t rn_broadcast_compute(rn_kernel_ctx_t* ctx, int operands, uint64_t in_place,
                                 int64_t grain, rn_run_fn_t fn, void* arg) {
  if (operands == 2 && (rn_in(ctx, 0)->rank | rn_in(ctx, 1)->rank) == 0) {
    const void* in[] = {rn_in(ctx, 0)->data, rn_in(ctx, 1)->data};
    rn_tensor_t* output;
    RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, in_place, RN_SHAPE_SCALAR, &output));
    fn(arg, in, all_steps, output->data, 1);
    return RN_OK;
  }
  int leader = 0;
  for (int k = 1; k < operands; ++k) {
    const rn_tensor_t* first = rn_in(ctx, leader);
    const rn_tensor_t* other = rn_in(ctx, k);
    if (other->count > first->count || (other->count == first->count && other->rank > first->rank))
      leader = k;
  }
  const rn_tensor_t* shape = rn_in(ctx, leader);
  for (int k = 0; k < operands; ++k) {
    const rn_tensor_t* other = rn_in(ctx, k);
    bool is_flat = (other->count == 1 && other->rank <= shape->rank) || other == shape ||
                   rn_tensor_same_shape(other, shape);
    if (!is_flat) return compute_general(ctx, operands, in_place, grain, fn, arg);
  }
  return compute_flat(ctx, operands, leader, in_place, grain, fn, arg);
}

rn_status_t rn_broadcast_error(const rn_tensor_t* a, const rn_tensor_t* b) {
  return rn_invalid_argument("Incompatible shapes: %s vs. %s", rn_text_of(a).text,
                             rn_text_of(b).text);
}

rn_status_t rn_same_shape_error(const rn_kernel_ctx_t* ctx, int i) {
  return rn_invalid_argument(
      "Inputs to operation %.*s of type %s must have the same size and shape.  Input 0: %s != "
      "input %d: %s",
      RN_STR_ARGS(ctx->kernel->node), ctx->kernel->op->name, rn_text_of(rn_in(ctx, 0)).text, i,
      rn_text_of(rn_in(ctx, i)).text);
}
