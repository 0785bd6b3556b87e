// Copies, fills and sums in the memory of a card: the device's |move|, |fill| and |add|.
//
// A box is brought into the fewest dimensions and the widest units. Then it is a plain copy, a
// transposition in tiles, or a loop with one thread per unit.
#include <stdio.h>

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/array/move_args.h"
#include "kernels/cuda/launch.h"

#define MAX_UNITS ((int64_t)1 << 30)  // per launch
#define UNITS_PER_BLOCK (4 * RN_CUDA_BLOCK)
#define BLOCKS_PER_MULTIPROCESSOR 16
#define LEAST_TILE 8  // shorter sides are not worth a tile

// A box with strides in bytes, dimensions ordered by their strides in |to|, largest first.
typedef struct move_plan_t {
  const char* from;
  char* to;
  int64_t unit;   // bytes that a thread copies at once
  int64_t count;  // units
  int32_t rank;
  rn_move_dim_t dims[RN_CUDA_MOVE_RANK];
} move_plan_t;

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

// Inserts a dimension behind those with larger strides; merges what is contiguous on both sides.
static void order(rn_move_dim_t* dims, int32_t* rank, const rn_box_t* box, int64_t size) {
  int32_t count = 0;
  for (int32_t d = 0; d < box->rank; ++d) {
    if (box->dims[d].size == 1) continue;
    rn_move_dim_t dim = {box->dims[d].size, box->dims[d].from * size, box->dims[d].to * size};
    int32_t at = count++;
    for (; at > 0 && magnitude(dims[at - 1].to) < magnitude(dim.to); --at) dims[at] = dims[at - 1];
    dims[at] = dim;
  }
  int32_t kept = 0;
  for (int32_t d = 0; d < count; ++d) {
    rn_move_dim_t* outer = kept ? &dims[kept - 1] : NULL;
    if (outer && outer->from == dims[d].from * dims[d].size &&
        outer->to == dims[d].to * dims[d].size)
      *outer = (rn_move_dim_t){outer->size * dims[d].size, dims[d].from, dims[d].to};
    else
      dims[kept++] = dims[d];
  }
  *rank = kept;
}

// The widest unit that divides the innermost run, all other strides and both addresses.
static int64_t widest_unit(const rn_move_dim_t* dims, int32_t rank, const rn_box_t* box,
                           int64_t size) {
  const rn_move_dim_t* inner = rank ? &dims[rank - 1] : NULL;
  if (!inner || inner->from != size || inner->to != size) return size;
  uint64_t bits = (uintptr_t)box->from | (uintptr_t)box->to | (uint64_t)(inner->size * size) | 16;
  for (int32_t d = 0; d < rank - 1; ++d) bits |= (uint64_t)dims[d].from | (uint64_t)dims[d].to;
  return (int64_t)(bits & (~bits + 1));
}

typedef struct move_issue_t {
  rn_cuda_card_t* card;
  int boxes;  // collected
  int64_t unit;
  rn_cuda_boxes_args args;
} move_issue_t;

static rn_status_t launch(rn_cuda_card_t* card, const char* base, int64_t unit, rn_cuda_grid_t grid,
                          const void* args, size_t size) {
  char name[64];
  snprintf(name, sizeof name, "array/move/%s_%d", base, (int)unit);
  CUfunction function = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_kernel(card, name, &function));
  return rn_cuda_issue(card, function, grid, args, size);
}

static unsigned blocks_for(const rn_cuda_card_t* card, int64_t units) {
  int64_t blocks = (units + UNITS_PER_BLOCK - 1) / UNITS_PER_BLOCK;
  int64_t most = (int64_t)card->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
  return (unsigned)(blocks < most ? blocks : most);
}

static void fill_dims(const rn_move_dim_t* dims, int32_t rank, rn_div32* sizes, i64* from,
                      i64* to) {
  for (int32_t d = 0; d < rank; ++d) {
    sizes[d] = rn_divisor((u32)dims[d].size);
    from[d] = dims[d].from;
    to[d] = dims[d].to;
  }
}

static rn_status_t move_units(rn_cuda_card_t* card, const move_plan_t* plan) {
  rn_cuda_move_args args = {
      .from = plan->from, .to = plan->to, .count = (u32)plan->count, .rank = plan->rank};
  fill_dims(plan->dims, plan->rank, args.sizes, args.from_strides, args.to_strides);
  rn_cuda_grid_t grid = {.x = blocks_for(card, plan->count), .block_x = RN_CUDA_BLOCK};
  return launch(card, "move", plan->unit, grid, &args, sizeof args);
}

// The dimension that |from| has in order, if the innermost one is in order in |to| only; else -1.
static int32_t row_dim(const move_plan_t* plan) {
  const rn_move_dim_t* inner = &plan->dims[plan->rank - 1];
  if (inner->to != plan->unit || inner->from == plan->unit || inner->size < LEAST_TILE) return -1;
  for (int32_t d = 0; d < plan->rank - 1; ++d)
    if (plan->dims[d].from == plan->unit && plan->dims[d].size >= LEAST_TILE) return d;
  return -1;
}

static rn_status_t move_tiles(rn_cuda_card_t* card, const move_plan_t* plan, int32_t row) {
  const rn_move_dim_t *rows = &plan->dims[row], *columns = &plan->dims[plan->rank - 1];
  const int64_t side = plan->unit <= 2 ? 64 : 32;
  const int64_t row_tiles = (rows->size + side - 1) / side,
                column_tiles = (columns->size + side - 1) / side;
  rn_cuda_tiles_args args = {.from = plan->from,
                             .to = plan->to,
                             .rows = (u32)rows->size,
                             .columns = (u32)columns->size,
                             .row_to = rows->to,
                             .column_from = columns->from,
                             .row_tiles = rn_divisor((u32)row_tiles),
                             .column_tiles = rn_divisor((u32)column_tiles)};
  rn_move_dim_t outer[RN_CUDA_MOVE_RANK];
  int64_t tiles = row_tiles * column_tiles;
  for (int32_t d = 0; d < plan->rank - 1; ++d) {
    if (d == row) continue;
    tiles *= plan->dims[d].size;
    outer[args.rank++] = plan->dims[d];
  }
  args.tiles = (u32)tiles;
  fill_dims(outer, args.rank, args.sizes, args.from_strides, args.to_strides);
  int64_t most = (int64_t)card->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
  rn_cuda_grid_t grid = {.x = (unsigned)(tiles < most ? tiles : most), .block_x = 32, .block_y = 8};
  return launch(card, "tiles", plan->unit, grid, &args, sizeof args);
}

static rn_status_t flush(move_issue_t* issue) {
  if (issue->boxes == 0) return RN_OK;
  u32 most = 0;
  for (int i = 0; i < issue->boxes; ++i)
    if (issue->args.boxes[i].count > most) most = issue->args.boxes[i].count;
  rn_cuda_grid_t grid = {
      .x = blocks_for(issue->card, most), .y = (unsigned)issue->boxes, .block_x = RN_CUDA_BLOCK};
  issue->boxes = 0;
  return launch(issue->card, "boxes", issue->unit, grid, &issue->args, sizeof issue->args);
}

// Collects a box for a launch with others of the same unit.
static rn_status_t collect(move_issue_t* issue, const move_plan_t* plan) {
  if (issue->boxes == RN_CUDA_BOXES || (issue->boxes && issue->unit != plan->unit))
    RN_RETURN_IF_ERROR(flush(issue));
  rn_cuda_box* box = &issue->args.boxes[issue->boxes++];
  issue->unit = plan->unit;
  *box = (rn_cuda_box){
      .from = plan->from, .to = plan->to, .count = (u32)plan->count, .rank = plan->rank};
  fill_dims(plan->dims, plan->rank, box->sizes, box->from_strides, box->to_strides);
  return RN_OK;
}

static rn_status_t copy_bytes(rn_cuda_card_t* card, const move_plan_t* plan) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  return RN_CARD(card, cuMemcpyDtoDAsync_v2, (CUdeviceptr)(uintptr_t)plan->to,
                 (CUdeviceptr)(uintptr_t)plan->from, (size_t)(plan->count * plan->unit),
                 rn_cuda_stream(card));
}

static rn_status_t move_plan(move_issue_t* issue, const move_plan_t* plan, bool is_one_of_many) {
  const rn_move_dim_t* inner = plan->rank ? &plan->dims[plan->rank - 1] : NULL;
  int32_t row = plan->rank > 1 ? row_dim(plan) : -1;
  if (row >= 0) return move_tiles(issue->card, plan, row);
  if (is_one_of_many && plan->rank <= RN_CUDA_BOX_RANK) return collect(issue, plan);
  if (!inner || (plan->rank == 1 && inner->from == plan->unit && inner->to == plan->unit))
    return copy_bytes(issue->card, plan);
  return move_units(issue->card, plan);
}

// Splits off outer dimensions, or pieces of the outermost one, until the rest fits one launch.
static rn_status_t move_dims(move_issue_t* issue, const move_plan_t* base,
                             const rn_move_dim_t* dims, int32_t rank, int64_t count,
                             bool is_one_of_many) {
  move_plan_t plan = *base;
  if (rank <= RN_CUDA_MOVE_RANK && (count <= MAX_UNITS || rank == 0)) {
    plan.rank = rank;
    plan.count = count;
    memcpy(plan.dims, dims, (size_t)rank * sizeof *dims);
    return move_plan(issue, &plan, is_one_of_many);
  }
  const int64_t each = count / dims[0].size;  // units per step of the outermost dimension
  if (rank > RN_CUDA_MOVE_RANK || each >= MAX_UNITS) {
    for (int64_t i = 0; i < dims[0].size; ++i) {
      plan.from = base->from + i * dims[0].from;
      plan.to = base->to + i * dims[0].to;
      RN_RETURN_IF_ERROR(move_dims(issue, &plan, dims + 1, rank - 1, each, is_one_of_many));
    }
    return RN_OK;
  }
  memcpy(plan.dims, dims, (size_t)rank * sizeof *dims);
  plan.rank = rank;
  for (int64_t begin = 0; begin < dims[0].size; begin += plan.dims[0].size) {
    int64_t piece = MAX_UNITS / each, left = dims[0].size - begin;
    plan.dims[0].size = piece < left ? piece : left;
    plan.count = plan.dims[0].size * each;
    plan.from = base->from + begin * dims[0].from;
    plan.to = base->to + begin * dims[0].to;
    RN_RETURN_IF_ERROR(move_plan(issue, &plan, is_one_of_many));
  }
  return RN_OK;
}

static rn_status_t move_box(move_issue_t* issue, const rn_box_t* box, int64_t size,
                            bool is_one_of_many) {
  // A box has at most as many dimensions as two tensors.
  rn_move_dim_t dims[2 * RN_MAX_RANK];
  int32_t rank = 0;
  order(dims, &rank, box, size);
  move_plan_t plan = {.from = box->from, .to = box->to, .unit = widest_unit(dims, rank, box, size)};
  if (plan.unit != size || (rank && dims[rank - 1].from == size && dims[rank - 1].to == size)) {
    rn_move_dim_t* inner = &dims[rank - 1];
    *inner = (rn_move_dim_t){inner->size * size / plan.unit, plan.unit, plan.unit};
    if (inner->size == 1) --rank;
  }
  int64_t count = 1;
  for (int32_t d = 0; d < rank; ++d) count *= dims[d].size;
  return count > 0 ? move_dims(issue, &plan, dims, rank, count, is_one_of_many) : RN_OK;
}

rn_status_t rn_cuda_move(rn_device_t* device, const rn_box_t* boxes, int count, size_t size) {
  move_issue_t issue;
  issue.card = rn_cuda_card_of(device);
  issue.boxes = 0;
  for (int i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(move_box(&issue, &boxes[i], (int64_t)size, count > 1));
  return flush(&issue);
}

rn_status_t rn_cuda_fill(rn_device_t* device, const void* value, bool is_host_value, size_t size,
                         void* to, int64_t count) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  if (count == 0) return RN_OK;
  rn_cuda_fill_args args = {.to = to, .count = count};
  if (!is_host_value) {
    args.value = value;
  } else {
    for (size_t at = 0; at < sizeof args.bytes; at += size)
      memcpy((char*)args.bytes + at, value, size);
    const uint8_t* bytes = (const uint8_t*)args.bytes;
    if (memcmp(bytes, bytes + 1, sizeof args.bytes - 1) == 0) {
      RN_RETURN_IF_ERROR(rn_cuda_enter(card));
      return RN_CARD(card, cuMemsetD8Async, (CUdeviceptr)(uintptr_t)to, bytes[0],
                     (size_t)count * size, rn_cuda_stream(card));
    }
  }
  int64_t vectors = count * (int64_t)size / 16 + 16;
  rn_cuda_grid_t grid = {.x = blocks_for(card, vectors), .block_x = RN_CUDA_BLOCK};
  return launch(card, "fill", (int64_t)size, grid, &args, sizeof args);
}

// Integers wrap, so that only their size matters.
rn_status_t rn_cuda_add(rn_device_t* device, rn_dtype_t dtype, const void* values, void* sums,
                        int64_t count) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  if (count == 0) return RN_OK;
  const bool is_inexact = rn_dtype_is_floating(dtype) || rn_dtype_is_complex(dtype);
  rn_cuda_name_t name = is_inexact ? rn_cuda_name("array/move/add", dtype)
                                   : rn_cuda_size_name("array/move/add", dtype);
  rn_cuda_add_args args = {.values = values, .sums = sums, .count = count};
  rn_cuda_grid_t grid = {.x = blocks_for(card, count), .block_x = RN_CUDA_BLOCK};
  CUfunction function = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_kernel(card, name.text, &function));
  return rn_cuda_issue(card, function, grid, &args, sizeof args);
}
