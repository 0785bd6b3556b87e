// Float convolutions: by Winograd's algorithm or by the tiles of GEMM (conv_winograd.c,
// conv_tiles.c, conv_filter.c) where those can, with one filter per channel by loops of their own
// (isa/conv.c), otherwise through oneDNN.
//
// With oneDNN, images stay as they are, channels last. The filter is converted to the blocked
// layout that oneDNN's loops read; that is a small part of the work, or done once if the filter
// does not change. The batch is split into pieces by sizes alone, and so are the rows of an image
// if there are few images; each piece runs on one thread. The pieces of a filter gradient are added
// in order.
//
// The layout that oneDNN needs depends on the size of a piece, and for other layouts it may have
// only its reference loops, so pieces of different sizes may each have their own copy of the
// filter.
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/nn/conv_blocks.h"
#include "kernels/cpu/nn/conv_cut.h"
#include "kernels/cpu/vector.h"

// Products per piece of a depthwise convolution, and as many again for memory: about 8 us, but 2 us
// for many threads. Those divide the channels, too, where the rows are too few for them.
#define DEPTHWISE_PRODUCTS 2e5
#define DEPTHWISE_PRODUCTS_OF_MANY 5e4
#define DEPTHWISE_CHANNELS 64  // of a piece, at least
// With fewer pieces than this, the gradient of a filter is not left to oneDNN.
#define ENOUGH_PIECES 16

void rn_conv_follow(const rn_conv_extra_t* extra, int32_t first, float* y, int64_t channels,
                    int64_t begin, int64_t end) {
  RN_ISA_PICK(rn_conv_)->follow(extra, first, y, channels, begin, end, 0, channels);
}

bool rn_conv_depthwise_fits(const rn_conv_t* conv) {
  return conv->kind == RN_CONV_FORWARD && conv->groups > 1 && conv->groups == conv->in_depth &&
         conv->in_depth == conv->out_depth;
}

typedef struct conv_float_depthwise_t {
  const rn_conv_t* conv;
  rn_conv_data_t data;
  const rn_conv_extra_t* extra;
  rn_conv_blocks_t blocks;  // of [rows of all images, channels]
} conv_float_depthwise_t;

static void run_rows(void* arg, int64_t begin, int64_t end) {
  const conv_float_depthwise_t* job = arg;
  const rn_conv_t* conv = job->conv;
  for (int64_t i = begin; i < end; ++i) {
    rn_conv_block_t block =
        rn_conv_block(&job->blocks, i, conv->batch * conv->rows.out, conv->out_depth);
    RN_ISA_PICK(rn_conv_)->depthwise(conv, &job->data, job->extra, &block);
  }
}

static rn_conv_blocks_t divide_depthwise(const rn_conv_t* conv, int threads) {
  const int64_t all = conv->batch * conv->rows.out, depth = conv->out_depth;
  int64_t filter = conv->rows.filter * conv->columns.filter;
  double row = (double)(conv->columns.out * depth) * (double)(filter + 8);
  rn_conv_blocks_t out = {.rows = (int64_t)(DEPTHWISE_PRODUCTS / (row + 1)) + 1,
                          .columns = depth,
                          .across = 1,
                          .grain = 1};
  if (threads >= RN_CONV_MANY_THREADS && all > 0) {
    double pieces = row * (double)all / DEPTHWISE_PRODUCTS_OF_MANY + 1;
    int64_t most = RN_CONV_PIECES_PER_THREAD * threads;
    int64_t wanted = pieces < (double)most ? (int64_t)pieces : most;
    int64_t across = rn_conv_least(wanted / all, depth / DEPTHWISE_CHANNELS);
    out.rows = rn_conv_ceil_div(all, wanted);
    if (across > 1)
      out.columns = rn_conv_ceil_div(depth, across * DEPTHWISE_CHANNELS) * DEPTHWISE_CHANNELS;
    out.across = rn_conv_ceil_div(depth, out.columns);
  }
  out.count = rn_conv_ceil_div(all, out.rows) * out.across;
  return out;
}

void rn_conv_depthwise(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, rn_conv_data_t data,
                       const rn_conv_extra_t* extra) {
  conv_float_depthwise_t job = {conv, data, extra,
                                divide_depthwise(conv, rn_pool_threads(rn_ctx_pool(ctx)))};
  rn_conv_for_blocks(ctx, conv, &job.blocks, run_rows, &job);
}

typedef struct conv_float_job_t {
  rn_conv_cut_t cut;
  const rn_conv_extra_t* extra;  // NULL if no steps follow
  int32_t own_steps;             // steps that oneDNN runs; the rest follow it
  rn_conv_data_t data;
  char* scratch;         // one buffer per piece, concatenated
  size_t scratch_bytes;  // per piece
  rn_status_t status;    // see rn_keep_first_error
} conv_float_job_t;

static void run_piece(void* arg, int64_t begin, int64_t end) {
  conv_float_job_t* job = arg;
  for (int64_t p = begin; p < end; ++p) {
    const rn_conv_piece_t* piece = &job->cut.pieces[p];
    const rn_conv_t* conv = &piece->plan->conv;
    rn_conv_data_t data = {
        .x = (float*)job->data.x + piece->x,
        .w = piece->w,
        .y = (float*)job->data.y + piece->y,
    };
    void* operands[RN_CONV_MOST_STEPS] = {0};
    for (int i = 0; i < job->own_steps; ++i)
      operands[i] = (float*)(uintptr_t)job->extra->steps[i].operand +
                    (rn_conv_step_form(conv, i) == RN_CONV_FULL ? piece->y : 0);
    rn_status_t status = rn_conv_plan_run(job->cut.cache, piece->plan, data, operands,
                                          job->scratch + (size_t)p * job->scratch_bytes);
    if (rn_ok(status) && job->extra) {
      int64_t first = piece->y / conv->out_depth;
      rn_conv_follow(job->extra, job->own_steps, job->data.y, conv->out_depth, first,
                     first + conv->batch * conv->rows.out * conv->columns.out);
    }
    rn_keep_first_error(&job->status, status);
  }
}

typedef struct conv_float_sum_t {
  float* parts[RN_CONV_MOST_CUTS];
  int64_t count;
} conv_float_sum_t;

static void sum_piece(void* arg, int64_t begin, int64_t end) {
  const conv_float_sum_t* sum = arg;
  for (int64_t i = 1; i < sum->count; ++i)
    rn_vector_run(RN_VECTOR_ADD, RN_FLOAT, sum->parts[0] + begin, 1, sum->parts[i] + begin, 1,
                  sum->parts[0] + begin, end - begin);
}

static size_t round_up(size_t bytes) { return (bytes + RN_ALIGN - 1) / RN_ALIGN * RN_ALIGN; }

// Adds up the parts of a filter gradient: first per layout, in that layout, then the layouts.
// |plain| has space for one more gradient in the original layout, if there are several.
static rn_status_t add_parts(rn_kernel_ctx_t* ctx, conv_float_job_t* job, const rn_conv_t* conv,
                             float* plain) {
  int64_t size = rn_conv_w_size(conv);
  for (int32_t l = 0; l < job->cut.layout_count; ++l) {
    rn_conv_plan_t* plan = job->cut.layouts[l].plan;
    float* to = l ? plain : job->data.w;
    conv_float_sum_t sum = {.count = 0};
    for (int32_t p = 0; p < job->cut.count; ++p)
      if (job->cut.pieces[p].layout == l) sum.parts[sum.count++] = job->cut.pieces[p].w;
    int64_t length = (int64_t)(plan->w_bytes / sizeof(float));
    if (sum.count > 1) rn_pool_for(rn_ctx_pool(ctx), length, 1 << 15, sum_piece, &sum);
    if (plan->reorder)
      RN_RETURN_IF_ERROR(rn_conv_reorder(job->cut.cache, plan, sum.parts[0], to));
    else if (sum.parts[0] != to)
      memcpy(to, sum.parts[0], plan->w_bytes);
    conv_float_sum_t both = {.parts = {job->data.w, plain}, .count = 2};
    if (l) rn_pool_for(rn_ctx_pool(ctx), size, 1 << 15, sum_piece, &both);
  }
  return RN_OK;
}

// Assigns each piece its filter, or its part of the gradient. Without |memory| only computes the
// size needed.
static rn_status_t place_filters(conv_float_job_t* job, const rn_conv_t* conv, char* memory,
                                 size_t* out_size) {
  bool is_filter = conv->kind == RN_CONV_FILTER;
  bool is_direct = job->cut.count == 1 && !job->cut.pieces[0].plan->reorder;
  void* blocks[RN_CONV_MOST_LAYOUTS] = {0};
  *out_size = 0;
  for (int32_t l = 0; !is_filter && l < job->cut.layout_count; ++l) {
    rn_conv_layout_t* layout = &job->cut.layouts[l];
    blocks[l] = layout->plan->reorder ? layout->kept.data : job->data.w;
    if (blocks[l]) continue;
    blocks[l] = memory ? memory + *out_size : NULL;
    if (memory)
      RN_RETURN_IF_ERROR(rn_conv_reorder(job->cut.cache, layout->plan, job->data.w, blocks[l]));
    if (!rn_add_ok(*out_size, round_up(layout->plan->w_bytes), out_size)) return rn_out_of_memory();
  }
  for (int32_t p = 0; p < job->cut.count; ++p) {
    rn_conv_piece_t* piece = &job->cut.pieces[p];
    piece->w = is_direct ? job->data.w : blocks[piece->layout];
    if (!is_filter || is_direct) continue;
    piece->w = memory ? memory + *out_size : NULL;
    if (!rn_add_ok(*out_size, round_up(piece->plan->w_bytes), out_size)) return rn_out_of_memory();
  }
  return RN_OK;
}

// Runs the plans in |job|. Takes memory from the device's allocator: for the filter or the parts of
// its gradient, one more gradient if there are several layouts, and scratch per piece.
static rn_status_t run_planned(rn_kernel_ctx_t* ctx, conv_float_job_t* job, const rn_conv_t* conv) {
  bool is_filter = conv->kind == RN_CONV_FILTER;
  size_t blocks = 0, total = 0;
  for (int32_t p = 0; p < job->cut.count; ++p) {
    size_t needed = round_up(job->cut.pieces[p].plan->scratch_bytes);
    if (needed > job->scratch_bytes) job->scratch_bytes = needed;
  }
  RN_RETURN_IF_ERROR(place_filters(job, conv, NULL, &blocks));
  size_t plain = is_filter && job->cut.layout_count > 1
                     ? round_up((size_t)rn_conv_w_size(conv) * sizeof(float))
                     : 0;
  if (!rn_mul_ok(job->scratch_bytes, (size_t)job->cut.count, &total) ||
      !rn_add_ok(total, blocks, &total) || !rn_add_ok(total, plain, &total))
    return rn_out_of_memory();
  rn_tensor_t temp = {0};
  int64_t bytes = (int64_t)total;
  rn_status_t status = total ? rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &temp) : RN_OK;
  char* memory = temp.data;
  if (rn_ok(status) && memory) status = place_filters(job, conv, memory, &blocks);
  job->scratch = memory ? memory + blocks + plain : NULL;
  if (rn_ok(status)) {
    rn_pool_for(rn_ctx_pool(ctx), job->cut.count, 1, run_piece, job);
    status = job->status;
  }
  if (rn_ok(status) && is_filter)
    status = add_parts(ctx, job, conv, plain ? (float*)(memory + blocks) : NULL);
  rn_tensor_clear(&temp);
  return status;
}

// Takes the filter copies cached between calls, if the filter does not change.
static rn_status_t take_kept(rn_kernel_ctx_t* ctx, conv_float_job_t* job) {
  if (!job->extra || !job->extra->filter) return RN_OK;
  for (int32_t l = 0; l < job->cut.layout_count; ++l) {
    rn_conv_layout_t* layout = &job->cut.layouts[l];
    if (layout->plan->reorder)
      RN_RETURN_IF_ERROR(rn_conv_kept_blocks(ctx, job->cut.cache, layout->plan, job->extra->filter,
                                             &layout->kept));
  }
  return RN_OK;
}

// The steps up to the first Relu, because oneDNN's Relu turns NaN into 0.
static int64_t pack_steps(const rn_conv_t* conv, const rn_conv_extra_t* extra, int32_t* out_count) {
  int64_t packed = 0;
  *out_count = 0;
  for (int i = 0; extra && i < extra->step_count && extra->steps[i].code < RN_CONV_RELU; ++i) {
    const rn_conv_step_t* step = &extra->steps[i];
    int form = step->count == 1                 ? RN_CONV_ONE
               : step->count == conv->out_depth ? RN_CONV_CHANNEL
                                                : RN_CONV_FULL;
    packed |= (int64_t)(step->code | form << 4) << (8 * i);
    ++*out_count;
  }
  return packed;
}

// The gradient of x by 1 × 1 filters is a product of matrices: by the tiles of GEMM if it fills
// them and has so many rows that the turned filter costs nothing.
#define FULL_TILE 16
#define MANY_PIXELS 4096
static bool is_large_product(const rn_conv_t* conv) {
  return rn_conv_is_whole_axis(&conv->rows) && rn_conv_is_whole_axis(&conv->columns) &&
         conv->out_depth >= FULL_TILE && rn_conv_tiles_fit(conv) &&
         conv->batch * conv->rows.out * conv->columns.out >= MANY_PIXELS;
}

// The gradient of x with stride 1 is a convolution of y by the turned filter: rows and columns from
// the end, input and output channels exchanged.
static rn_window_axis_t turned_axis(const rn_window_axis_t* axis) {
  rn_window_axis_t out = *axis;
  out.in = axis->out, out.out = axis->in;
  int64_t reach = (axis->filter - 1) * axis->dilation;
  out.before = reach - axis->before;
  out.after = reach - axis->after;
  return out;
}

static rn_conv_t turned(const rn_conv_t* conv) {
  rn_conv_t out = *conv;
  out.kind = RN_CONV_FORWARD;
  out.in_depth = conv->out_depth, out.out_depth = conv->in_depth;
  out.rows = turned_axis(&conv->rows), out.columns = turned_axis(&conv->columns);
  return out;
}

static rn_status_t turn_filter(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, const float* w,
                               float* out) {
  int64_t taps = conv->rows.filter * conv->columns.filter, in = conv->in_depth;
  int64_t size = in * conv->out_depth;
  for (int64_t t = 0; t < taps; ++t) {
    rn_move_t move;
    rn_move_begin(&move);
    rn_move_add(&move, conv->out_depth, 1, in);
    rn_move_add(&move, in, conv->out_depth, 1);
    RN_RETURN_IF_ERROR(
        rn_move_run(&move, rn_ctx_pool(ctx), RN_FLOAT, w + t * size, out + (taps - 1 - t) * size));
  }
  return RN_OK;
}

static rn_status_t input_by_turning(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                    const rn_conv_t* conv, const rn_conv_t* forward, int size,
                                    rn_conv_data_t data) {
  rn_tensor_t filter = {0};
  int64_t count = rn_conv_w_size(conv);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, &filter));
  rn_status_t status = turn_filter(ctx, conv, data.w, filter.data);
  rn_conv_data_t other = {.x = data.y, .w = filter.data, .y = data.x};
  bool has_phases = forward->rows.dilation > 1 || forward->columns.dilation > 1;
  if (rn_ok(status) && size == 0) {
    status = rn_conv_tiles(ctx, cache, forward, other, NULL);
  } else if (rn_ok(status))
    status =
        (has_phases ? rn_conv_phases : rn_conv_winograd)(ctx, cache, forward, size, other, NULL);
  rn_tensor_clear(&filter);
  return status;
}

rn_status_t rn_conv_float(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_conv_t* conv,
                          rn_conv_data_t data, const rn_conv_extra_t* extra, bool* out_done) {
  *out_done = false;
  if (rn_conv_depthwise_fits(conv)) {
    *out_done = true;
    rn_conv_depthwise(ctx, conv, data, extra);
    return RN_OK;
  }
  if (rn_conv_filter_fits(conv) && rn_conv_cut_count(conv) < ENOUGH_PIECES) {
    *out_done = true;
    return rn_conv_filter(ctx, conv, data);
  }
  int size = rn_conv_phases_size(conv);
  if (size) {
    *out_done = true;
    return rn_conv_phases(ctx, cache, conv, size, data, extra);
  }
  size = rn_conv_winograd_size(conv);
  if (size || rn_conv_tiles_fit(conv)) {
    *out_done = true;
    return size ? rn_conv_winograd(ctx, cache, conv, size, data, extra)
                : rn_conv_tiles(ctx, cache, conv, data, extra);
  }
  rn_conv_t forward = turned(conv);
  const bool turns =
      conv->kind == RN_CONV_INPUT && conv->rows.stride == 1 && conv->columns.stride == 1;
  if (turns)
    size = rn_conv_winograd_size(&forward) + rn_conv_phases_size(&forward);  // one of them is 0
  if (size || (turns && is_large_product(&forward))) {
    *out_done = true;
    return input_by_turning(ctx, cache, conv, &forward, size, data);
  }
  conv_float_job_t job = {.cut.cache = cache, .data = data, .extra = extra};
  const rn_dnnl_t* dnnl = NULL;
  rn_status_t status = rn_dnnl(&dnnl);
  if (!rn_ok(status)) {
    rn_status_free(status);  // the plain loops run instead
    return RN_OK;
  }
  rn_conv_t whole = *conv;
  whole.then = pack_steps(conv, extra, &job.own_steps);
  int threads = rn_dnnl_enter(dnnl);
  status = rn_conv_cut(&job.cut, dnnl, &whole, out_done);
  rn_dnnl_leave(dnnl, threads);
  if (rn_ok(status) && *out_done) status = take_kept(ctx, &job);
  if (rn_ok(status) && *out_done) status = run_planned(ctx, &job, &whole);
  rn_conv_cut_drop(&job.cut);
  return status;
}
