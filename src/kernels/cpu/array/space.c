// Kernels that move blocks of the spatial dimensions into the batch or depth dimension, and back.
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

// Block sizes and borders, one entry per spatial axis (axis 1 and on).
typedef struct blocks_t {
  int count;
  int64_t block[RN_MAX_RANK], before[RN_MAX_RANK], after[RN_MAX_RANK];
} blocks_t;

static rn_status_t block_size_init(const rn_kernel_init_t* init, void* state) {
  int64_t size = rn_init_int(init, "block_size");
  if (size <= 1) return rn_invalid_argument("Block size should be > 1: %lld", (long long)size);
  *(int64_t*)state = size;
  return RN_OK;
}

static rn_status_t read_borders(const rn_tensor_t* borders, const char* name, blocks_t* out) {
  for (int i = 0; i < out->count; ++i) {
    out->before[i] = rn_int_at(borders, 2 * i);
    out->after[i] = rn_int_at(borders, 2 * i + 1);
    if (out->before[i] < 0 || out->after[i] < 0)
      return rn_invalid_argument("%s must be non-negative", name);
  }
  return RN_OK;
}

// The block of the older ops: two spatial axes and one size, from an attribute.
static rn_status_t read_square(rn_kernel_ctx_t* ctx, const rn_tensor_t* borders, const char* name,
                               const char* lower, blocks_t* out) {
  if (rn_in(ctx, 0)->rank != 4)
    return rn_invalid_argument("Input rank should be: 4instead of: %d", rn_in(ctx, 0)->rank);
  if (borders->rank != 2 || rn_tensor_dim(borders, 0) != 2 || rn_tensor_dim(borders, 1) != 2)
    return rn_invalid_argument("%s should have shape [2, 2] instead of %s", lower,
                               rn_text_of(borders).text);
  out->count = 2;
  out->block[0] = out->block[1] = *(const int64_t*)ctx->state;
  return read_borders(borders, name, out);
}

static rn_status_t read_blocks(rn_kernel_ctx_t* ctx, const char* name, const char* lower,
                               blocks_t* out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *shape = rn_in(ctx, 1);
  if (ctx->kernel->input_count == 2) return read_square(ctx, shape, name, lower, out);
  const rn_tensor_t* borders = rn_in(ctx, 2);
  if (shape->rank != 1)
    return rn_invalid_argument("block_shape rank should be 1 instead of %d", shape->rank);
  if (input->rank < 1 + shape->count)
    return rn_invalid_argument("input rank should be >= %lld instead of %d",
                               (long long)shape->count + 1, input->rank);
  if (borders->rank != 2 || rn_tensor_dim(borders, 0) != shape->count ||
      rn_tensor_dim(borders, 1) != 2)
    return rn_invalid_argument("%s should have shape [%lld, 2] instead of %s", lower,
                               (long long)shape->count, rn_text_of(borders).text);
  out->count = (int)shape->count;
  for (int i = 0; i < out->count; ++i) {
    out->block[i] = rn_int_at(shape, i);
    if (out->block[i] < 1)
      return rn_invalid_argument(
          "All values in block_shape must be positive, got value, %lld at index %d.",
          (long long)out->block[i], i);
  }
  return read_borders(borders, name, out);
}

// Number of elements in the axes behind the spatial ones.
static int64_t inner_of(const rn_tensor_t* tensor, int spatial) {
  return rn_dims_product(rn_tensor_dims(tensor), 1 + spatial, tensor->rank);
}

static rn_status_t product_of(const blocks_t* blocks, int64_t* out) {
  *out = 1;
  for (int i = 0; i < blocks->count; ++i)
    if (!rn_mul_i64_ok(*out, blocks->block[i], out))
      return rn_invalid_argument("Product of block sizes overflows");
  return RN_OK;
}

// Coordinates of position |index| in a block, row-major.
static void place_in_block(const blocks_t* blocks, int64_t index, int64_t* place) {
  for (int i = blocks->count - 1; i >= 0; --i) {
    place[i] = index % blocks->block[i];
    index /= blocks->block[i];
  }
}

// Moves the elements at position |index| of every block between the spatial form (sizes |space|,
// with |before| elements cropped or padded in front) and their cells in the batch form (sizes
// |cells|). |to_batch| is the direction.
static rn_status_t move_position(rn_moves_t* moves, const blocks_t* blocks, int64_t index,
                                 bool to_batch, const rn_tensor_t* space, const rn_tensor_t* batch,
                                 int64_t inner) {
  int64_t place[RN_MAX_RANK], first[RN_MAX_RANK], count[RN_MAX_RANK];
  place_in_block(blocks, index, place);
  const int64_t* sizes = rn_tensor_dims(space);
  const int64_t* cells = rn_tensor_dims(batch);
  for (int i = 0; i < blocks->count; ++i) {
    // Cell c is element c * block + place - before of the spatial axis.
    int64_t low = blocks->before[i] - place[i];
    first[i] = low > 0 ? (low + blocks->block[i] - 1) / blocks->block[i] : 0;
    int64_t last = sizes[1 + i] - 1 + low;  // the largest c * block
    int64_t end = last < 0 ? 0 : last / blocks->block[i] + 1;
    if (end > cells[1 + i]) end = cells[1 + i];
    count[i] = end - first[i];
    if (count[i] <= 0) return RN_OK;
  }
  const int64_t bytes = (int64_t)rn_dtype_size(space->dtype);
  int64_t batches = sizes[0];
  int64_t space_row = space->count / sizes[0], batch_row = batch->count / cells[0];
  int64_t space_at = 0, batch_at = index * batches * batch_row;
  int64_t space_step = space_row, batch_step = batch_row;
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, batches, to_batch ? space_row : batch_row, to_batch ? batch_row : space_row);
  for (int i = 0; i < blocks->count; ++i) {
    space_step /= sizes[1 + i];
    batch_step /= cells[1 + i];
    space_at += (first[i] * blocks->block[i] + place[i] - blocks->before[i]) * space_step;
    batch_at += first[i] * batch_step;
    int64_t s = space_step * blocks->block[i];
    rn_move_add(&move, count[i], to_batch ? s : batch_step, to_batch ? batch_step : s);
  }
  rn_move_add(&move, inner, 1, 1);
  char* in_space = (char*)space->data + space_at * bytes;
  char* in_batch = (char*)batch->data + batch_at * bytes;
  return rn_moves_add(moves, &move, to_batch ? in_space : in_batch, to_batch ? in_batch : in_space);
}

static rn_status_t move_positions(rn_kernel_ctx_t* ctx, const blocks_t* blocks, int64_t product,
                                  bool to_batch, const rn_tensor_t* space,
                                  const rn_tensor_t* batch) {
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, space->dtype);
  const int64_t inner = inner_of(rn_in(ctx, 0), blocks->count);
  for (int64_t index = 0; index < product; ++index)
    RN_RETURN_IF_ERROR(move_position(&moves, blocks, index, to_batch, space, batch, inner));
  return rn_moves_end(&moves);
}

static rn_status_t space_to_batch(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  blocks_t blocks;
  int64_t product, dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(read_blocks(ctx, "Paddings", "paddings", &blocks));
  RN_RETURN_IF_ERROR(product_of(&blocks, &product));
  memcpy(dims, rn_tensor_dims(input), (size_t)input->rank * sizeof *dims);
  if (!rn_mul_i64_ok(dims[0], product, &dims[0]))
    return rn_invalid_argument("Batch size times product of block sizes overflows");
  for (int i = 0; i < blocks.count; ++i) {
    int64_t size = dims[1 + i];
    if (!rn_add_i64_ok(size, blocks.before[i], &size) ||
        !rn_add_i64_ok(size, blocks.after[i], &size))
      return rn_invalid_argument("padded_shape[%d] overflows", i);
    if (size % blocks.block[i] != 0)
      return rn_invalid_argument("padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld",
                                 i, (long long)size, i, (long long)blocks.block[i]);
    dims[1 + i] = size / blocks.block[i];
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){input->rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, out));
  if (input->count == 0) return RN_OK;
  return move_positions(ctx, &blocks, product, true, input, out);
}

static rn_status_t batch_to_space(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  blocks_t blocks;
  int64_t product, dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(read_blocks(ctx, "Crops", "crops", &blocks));
  RN_RETURN_IF_ERROR(product_of(&blocks, &product));
  memcpy(dims, rn_tensor_dims(input), (size_t)input->rank * sizeof *dims);
  if (dims[0] % product != 0)
    return rn_invalid_argument(
        "Input batch dimension (%lld) is not divisible by product of block sizes (%lld)",
        (long long)dims[0], (long long)product);
  dims[0] /= product;
  for (int i = 0; i < blocks.count; ++i) {
    int64_t size;
    if (!rn_mul_i64_ok(dims[1 + i], blocks.block[i], &size))
      return rn_invalid_argument("cropped_shape[%d] overflows", i);
    if (__builtin_sub_overflow(size, blocks.before[i], &size) ||
        __builtin_sub_overflow(size, blocks.after[i], &size) || size < 0)
      return rn_invalid_argument("cropped_shape[%d]=%lld must be non-negative", i, (long long)size);
    dims[1 + i] = size;
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){input->rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  return move_positions(ctx, &blocks, product, false, out, input);
}

typedef struct depth_t {
  int64_t block;
  bool channels_first;
} depth_t;

static rn_status_t depth_init(const rn_kernel_init_t* init, void* state) {
  depth_t* depth = state;
  depth->block = rn_init_int(init, "block_size");
  if (depth->block <= 1)
    return rn_invalid_argument("Block size should be > 1, but was: %lld", (long long)depth->block);
  rn_str_t format = rn_init_string(init, "data_format");
  depth->channels_first = rn_str_is(format, "NCHW");
  if (!depth->channels_first && !rn_str_is(format, "NHWC"))
    return rn_invalid_argument("Only NHWC and NCHW data_formats supported. Got %.*s",
                               RN_STR_ARGS(format));
  // As in stock, whose kernels for the CPU are registered for NHWC alone.
  if (depth->channels_first && init->is_host)
    return rn_invalid_argument(
        "No OpKernel was registered to support Op '%s' used by {{node %.*s}} with these attrs: "
        "[block_size=%lld, data_format=\"NCHW\"]\nRegistered devices: [CPU]",
        init->op->name, RN_STR_ARGS(init->node), (long long)depth->block);
  return RN_OK;
}

// Converts between images of [height * block, width * block, depth] and of [height, width, block,
// block, depth]; the axes are n, height, row in block, width, column in block, depth.
static rn_status_t exchange_depth(rn_kernel_ctx_t* ctx, const depth_t* state, int64_t batch,
                                  int64_t height, int64_t width, int64_t depth, bool to_depth,
                                  rn_tensor_t* out) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int64_t b = state->block;
  const int64_t size[6] = {batch, height, b, width, b, depth};
  int64_t wide[6], deep[6];
  if (state->channels_first) {
    int64_t plane = height * b * width * b, cell = height * width;
    int64_t w[6] = {depth * plane, b * width * b, width * b, b, 1, plane};
    int64_t d[6] = {b * b * depth * cell, width, b * depth * cell, 1, depth * cell, cell};
    memcpy(wide, w, sizeof w);
    memcpy(deep, d, sizeof d);
  } else {
    int64_t row = width * b * depth;
    int64_t w[6] = {height * b * row, b * row, row, b * depth, depth, 1};
    int64_t d[6] = {
        height * width * b * b * depth, width * b * b * depth, b * depth, b * b * depth, depth, 1};
    memcpy(wide, w, sizeof w);
    memcpy(deep, d, sizeof d);
  }
  rn_move_t move;
  rn_move_begin(&move);
  for (int i = 0; i < 6; ++i)
    rn_move_add(&move, size[i], to_depth ? wide[i] : deep[i], to_depth ? deep[i] : wide[i]);
  return rn_ctx_move(ctx, &move, input->dtype, input->data, out->data);
}

static rn_status_t space_to_depth(rn_kernel_ctx_t* ctx) {
  const depth_t* state = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->rank != 4)
    return rn_invalid_argument("Input rank should be 4 instead of %d", input->rank);
  const int64_t* d = rn_tensor_dims(input);
  const int h = state->channels_first ? 2 : 1, c = state->channels_first ? 1 : 3;
  const int64_t b = state->block;
  if (d[h] % b != 0 || d[h + 1] % b != 0)
    return rn_invalid_argument(
        "Image width %lld and height %lld should be divisible by block_size: %lld",
        (long long)d[h + 1], (long long)d[h], (long long)b);
  int64_t dims[4] = {d[0]}, area;
  dims[h] = d[h] / b;
  dims[h + 1] = d[h + 1] / b;
  if (!rn_mul_i64_ok(b, b, &area) || !rn_mul_i64_ok(d[c], area, &dims[c]))
    return rn_invalid_argument("Depth times the area of a block overflows");
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &out));
  if (out->count == 0) return RN_OK;
  return exchange_depth(ctx, state, d[0], dims[h], dims[h + 1], d[c], true, out);
}

static rn_status_t depth_to_space(rn_kernel_ctx_t* ctx) {
  const depth_t* state = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->rank != 4)
    return rn_invalid_argument("Input rank should be: 4 instead of: %d", input->rank);
  const int64_t* d = rn_tensor_dims(input);
  const int h = state->channels_first ? 2 : 1, c = state->channels_first ? 1 : 3;
  const int64_t b = state->block;
  int64_t area;
  if (!rn_mul_i64_ok(b, b, &area)) return rn_invalid_argument("The area of a block overflows");
  if (d[c] % area != 0)
    return rn_invalid_argument("Input depth dimension %lld should be divisible by: %lld",
                               (long long)d[c], (long long)area);
  int64_t dims[4] = {d[0]};
  dims[c] = d[c] / area;
  if (!rn_mul_i64_ok(d[h], b, &dims[h]) || !rn_mul_i64_ok(d[h + 1], b, &dims[h + 1]))
    return rn_invalid_argument("The size of the image overflows");
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &out));
  if (out->count == 0) return RN_OK;
  return exchange_depth(ctx, state, d[0], d[h], d[h + 1], dims[c], false, out);
}

#define DEPTH_TYPES (RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT))
#define REAL_ROW(name, function) \
  { .op = name, .device = "CPU", .types = {{"T", RN_TYPES_REAL}}, .compute = function }
#define SQUARE_ROW(name, function)                                                               \
  {                                                                                              \
    .op = name, .device = "CPU", .types = {{"T", RN_TYPES_REAL}}, .state_size = sizeof(int64_t), \
    .init = block_size_init, .compute = function                                                 \
  }
#define DEPTH_ROW(name, types_, function)                                                 \
  {                                                                                       \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(depth_t), \
    .init = depth_init, .compute = function                                               \
  }

static const rn_kernel_def_t rows[] = {
    REAL_ROW("SpaceToBatchND", space_to_batch),
    REAL_ROW("BatchToSpaceND", batch_to_space),
    SQUARE_ROW("SpaceToBatch", space_to_batch),
    SQUARE_ROW("BatchToSpace", batch_to_space),
    DEPTH_ROW("SpaceToDepth", DEPTH_TYPES | RN_T(QINT8), space_to_depth),
    DEPTH_ROW("DepthToSpace", DEPTH_TYPES, depth_to_space),
};
RN_KERNEL_FAMILY(cpu_space, rows);
