// Convolutions of volumes as convolutions of images: see rn_conv3d_run in conv3d.h.
//
// The planes that a window covers are stacked as channels. So the volumes become one image [rows,
// columns, taps * depth] per plane of y, and the filter becomes [rows, columns, taps * depth,
// out_depth], where taps is the number of the filter's planes. Images are stacked a few at a time,
// by sizes alone. In the gradient of x, the channels of a tap are added to the plane that they came
// from, in the order of the planes of y; parts of the gradient of w are added in that order, too.
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/move.h"
#include "kernels/cpu/nn/conv3d.h"
#include "kernels/cpu/vector.h"

// Bytes that are stacked at a time, at least one image.
#define STACK_BYTES (4 << 20)
// Bytes worth a hand-off to another thread.
#define PIECE_BYTES (128 << 10)

typedef struct conv3d_stack_t {
  const rn_conv3d_t* sizes;
  rn_dtype_t dtype;
  size_t item;
  char* x;                // the volumes
  char* stacked;          // some images
  int64_t begin, end;     // which ones, counted over all volumes
  size_t pixel, columns;  // bytes of a pixel and of a row of x
} conv3d_stack_t;

// Row |row| of the plane of x that tap |tap| of image |image| reads, or NULL if that is outside.
static char* row_of(const conv3d_stack_t* stack, int64_t image, int64_t tap, int64_t row) {
  const rn_window_axis_t* planes = &stack->sizes->axes[0];
  int64_t volume = image / planes->out;
  int64_t plane = image % planes->out * planes->stride - planes->before + tap * planes->dilation;
  if (plane < 0 || plane >= planes->in) return NULL;
  int64_t rows = stack->sizes->axes[1].in;
  return stack->x + (size_t)((volume * planes->in + plane) * rows + row) * stack->columns;
}

// Rows [begin, end), counted over the images.
static void stack_rows(void* arg, int64_t begin, int64_t end) {
  const conv3d_stack_t* stack = arg;
  const rn_move_rows_fn_t copy = RN_ISA_PICK(&rn_move_table_)->rows;
  const int64_t taps = stack->sizes->axes[0].filter, rows = stack->sizes->axes[1].in;
  const int64_t columns = stack->sizes->axes[2].in, pixel = (int64_t)stack->pixel;
  static const char zeros[RN_ALIGN] = {0};
  char* to = stack->stacked + (size_t)(begin * taps) * stack->columns;
  for (int64_t r = begin; r < end; ++r, to += (size_t)taps * stack->columns)
    for (int64_t tap = 0; tap < taps; ++tap) {
      const char* from = row_of(stack, stack->begin + r / rows, tap, r % rows);
      char* at = to + (size_t)tap * stack->pixel;
      if (from)
        copy(from, pixel, at, taps * pixel, columns, stack->pixel);
      else if (stack->pixel <= sizeof zeros)
        copy(zeros, 0, at, taps * pixel, columns, stack->pixel);
      else
        for (int64_t c = 0; c < columns; ++c) memset(at + c * taps * pixel, 0, stack->pixel);
    }
}

// The other way: adds rows [begin, end) of every image to x.
static void add_rows(void* arg, int64_t begin, int64_t end) {
  const conv3d_stack_t* stack = arg;
  const int64_t taps = stack->sizes->axes[0].filter, rows = stack->sizes->axes[1].in;
  const int64_t columns = stack->sizes->axes[2].in, depth = stack->sizes->in_depth;
  for (int64_t image = stack->begin; image < stack->end; ++image)
    for (int64_t r = begin; r < end; ++r) {
      const char* from =
          stack->stacked + (size_t)(((image - stack->begin) * rows + r) * taps) * stack->columns;
      for (int64_t tap = 0; tap < taps; ++tap, from += stack->pixel) {
        char* to = row_of(stack, image, tap, r);
        if (to && stack->dtype == RN_FLOAT)
          RN_ISA_PICK(rn_conv_)->add((const float*)from, taps * depth, (float*)to, columns, depth);
        for (int64_t c = 0; to && stack->dtype != RN_FLOAT && c < columns; ++c)
          rn_vector_run(RN_VECTOR_ADD, stack->dtype, to + (size_t)c * stack->pixel, 1,
                        from + (size_t)(c * taps) * stack->pixel, 1, to + (size_t)c * stack->pixel,
                        depth);
      }
    }
}

// Copies a filter [taps, positions, depth * out_depth] to [positions, taps, ...], or back.
static void turn_filter(const conv3d_stack_t* stack, char* w, char* stacked, bool back) {
  const rn_conv3d_t* sizes = stack->sizes;
  const int64_t taps = sizes->axes[0].filter;
  const int64_t positions = sizes->axes[1].filter * sizes->axes[2].filter;
  const size_t block = (size_t)(sizes->in_depth * sizes->out_depth) * stack->item;
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t p = 0; p < positions; ++p) {
      char* plain = w + (size_t)(tap * positions + p) * block;
      char* other = stacked + (size_t)(p * taps + tap) * block;
      memcpy(back ? plain : other, back ? other : plain, block);
    }
}

static rn_conv_t images_of(const conv3d_stack_t* stack, rn_conv_kind_t kind) {
  const rn_conv3d_t* sizes = stack->sizes;
  return (rn_conv_t){.kind = kind,
                     .batch = stack->end - stack->begin,
                     .in_depth = sizes->axes[0].filter * sizes->in_depth,
                     .out_depth = sizes->out_depth,
                     .groups = 1,
                     .rows = sizes->axes[1],
                     .columns = sizes->axes[2]};
}

// The images of |stack|; |w| is the stacked filter, or its part of the gradient.
static rn_status_t run_images(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, rn_conv_kind_t kind,
                              conv3d_stack_t* stack, char* y, char* w) {
  const rn_conv_t conv = images_of(stack, kind);
  const int64_t rows = conv.rows.in, taps = stack->sizes->axes[0].filter;
  const int64_t grain = PIECE_BYTES / (taps * (int64_t)stack->columns) + 1;
  rn_pool_t* pool = rn_ctx_pool(ctx);
  if (kind != RN_CONV_INPUT) rn_pool_for(pool, conv.batch * rows, grain, stack_rows, stack);
  rn_conv_data_t data = {stack->stacked, w,
                         y + (size_t)(stack->begin * rn_conv_y_size(&conv)) * stack->item};
  RN_RETURN_IF_ERROR(rn_conv_run(ctx, cache, stack->dtype, &conv, data));
  if (kind == RN_CONV_INPUT) rn_pool_for(pool, rows, grain / conv.batch + 1, add_rows, stack);
  return RN_OK;
}

static size_t round_up(size_t bytes) { return (bytes + RN_ALIGN - 1) / RN_ALIGN * RN_ALIGN; }

// The memory of |stack| has |most| images of |image| bytes, the stacked filter, and space for a
// part of its gradient.
static rn_status_t run_all(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, rn_conv_kind_t kind,
                           conv3d_stack_t* stack, rn_conv_data_t data, int64_t most, size_t image) {
  const rn_conv_t conv = images_of(stack, kind);
  const int64_t weights = rn_conv_w_size(&conv);
  const int64_t images = stack->sizes->batch * stack->sizes->axes[0].out;
  const size_t bytes = (size_t)weights * stack->item;
  char *sum = stack->stacked + round_up((size_t)most * image), *part = sum + round_up(bytes);
  if (kind != RN_CONV_FILTER) turn_filter(stack, data.w, sum, false);
  if (kind == RN_CONV_INPUT)
    memset(data.x, 0,
           (size_t)(stack->sizes->batch * stack->sizes->axes[0].in * stack->sizes->axes[1].in) *
               stack->columns);
  for (int64_t begin = 0; begin < images; begin += most) {
    stack->begin = begin;
    stack->end = begin + most < images ? begin + most : images;
    char* w = kind == RN_CONV_FILTER && begin ? part : sum;
    RN_RETURN_IF_ERROR(run_images(ctx, cache, kind, stack, data.y, w));
    if (w == part && kind == RN_CONV_FILTER)
      rn_vector_run(RN_VECTOR_ADD, stack->dtype, sum, 1, part, 1, sum, weights);
  }
  if (kind == RN_CONV_FILTER) turn_filter(stack, data.w, sum, true);
  return RN_OK;
}

rn_status_t rn_conv3d_run(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, rn_conv_kind_t kind,
                          rn_dtype_t dtype, const rn_conv3d_t* sizes, rn_conv_data_t data) {
  conv3d_stack_t stack = {
      .sizes = sizes, .dtype = dtype, .item = rn_dtype_size(dtype), .x = data.x};
  const rn_window_axis_t* planes = &sizes->axes[0];
  stack.pixel = (size_t)sizes->in_depth * stack.item;
  stack.columns = (size_t)sizes->axes[2].in * stack.pixel;
  if (planes->filter == 1 && planes->stride == 1 && planes->in == planes->out) {  // one plane each
    stack.end = sizes->batch * planes->out;
    const rn_conv_t conv = images_of(&stack, kind);
    return rn_conv_run(ctx, cache, dtype, &conv, data);
  }
  const rn_conv_t conv = images_of(&stack, kind);
  const int64_t images = sizes->batch * planes->out;
  int64_t image = 0, weights = 0, bytes = 0;
  if (!rn_mul_i64_ok(planes->filter, sizes->axes[1].in, &image) ||
      !rn_mul_i64_ok(image, (int64_t)stack.columns, &image) ||
      !rn_mul_i64_ok(rn_conv_w_size(&conv), 2 * (int64_t)stack.item, &weights))
    return rn_out_of_memory();
  int64_t most = STACK_BYTES / image < 1 ? 1 : STACK_BYTES / image;
  if (most > images) most = images;
  if (!rn_mul_i64_ok(most, image, &bytes) || !rn_add_i64_ok(bytes, weights, &bytes) ||
      !rn_add_i64_ok(bytes, 2 * RN_ALIGN, &bytes))
    return rn_out_of_memory();
  rn_tensor_t memory = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &memory));
  stack.stacked = memory.data;
  rn_status_t status = run_all(ctx, cache, kind, &stack, data, most, (size_t)image);
  rn_tensor_clear(&memory);
  return status;
}
