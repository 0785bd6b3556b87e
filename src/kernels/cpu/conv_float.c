// Convolutions of floats through oneDNN.
//
// Images stay as they are, channels last; the filter is copied into the blocks that oneDNN's loops
// read, which is a small part of the work, or done once where the filter stays. The batch is cut
// into pieces by sizes alone, and the rows of an image where there are few images; each piece runs
// in one thread. The pieces of a filter's gradient are added up in their order.
#include "kernels/cpu/conv_plan.h"
#include "kernels/cpu/vector.h"

// Least work of a piece: some 100 us.
#define PIECE_FLOPS 16e6
// A filter's gradient is cut only as far as adding the parts up stays a small part of the work:
// operations for each of its elements in a piece.
#define PIECE_FLOPS_PER_WEIGHT 1600
#define MOST_PIECES 16
// Images are cut by rows when a batch has fewer than this, into pieces of no fewer pixels than
// this: the filter is read anew for each.
#define FEW_IMAGES 8
#define PIECE_PIXELS 24
#define MOST_ROW_PIECES 8
#define MOST_CUTS (FEW_IMAGES * MOST_ROW_PIECES)
_Static_assert(MOST_PIECES + 1 <= MOST_CUTS, "images or rows, they fit");
#define FOLLOW_ELEMENTS 4096

void rn_conv_follow(const rn_conv_extra_t* extra, int32_t first, float* y, int64_t channels,
                    int64_t begin, int64_t end) {
  static const rn_vector_code_t codes[] = {[RN_CONV_ADD] = RN_VECTOR_ADD,
                                           [RN_CONV_SUB] = RN_VECTOR_SUB,
                                           [RN_CONV_MUL] = RN_VECTOR_MUL,
                                           [RN_CONV_RELU] = RN_VECTOR_RELU,
                                           [RN_CONV_RELU6] = RN_VECTOR_RELU6};
  // As much at a time as stays in the first-level cache.
  int64_t block = FOLLOW_ELEMENTS / channels + 1;
  for (int64_t pixel = begin; pixel < end; pixel += block) {
    int64_t count = pixel + block < end ? block : end - pixel;
    float* at = y + pixel * channels;
    for (int32_t i = first; i < extra->step_count; ++i) {
      const rn_conv_step_t* step = &extra->steps[i];
      bool is_by_channel = step->operand && step->count == channels && channels > 1;
      bool is_full = step->operand && step->count != 1 && !is_by_channel;
      const float* operand = step->operand ? step->operand + (is_full ? pixel * channels : 0) : at;
      int64_t run = is_by_channel ? channels : count * channels;
      for (int64_t k = 0; k < count * channels; k += run)
        rn_vector_run(codes[step->code], RN_FLOAT, at + k, 1, operand, step->count != 1, at + k,
                      run);
    }
  }
}

// A part of the work that one thread does: images, or rows of one.
typedef struct piece_t {
  rn_conv_plan_t* plan;
  int64_t x, y;  // where it begins, in elements
} piece_t;

typedef struct job_t {
  rn_conv_cache_t* cache;
  const rn_conv_extra_t* extra;  // NULL: nothing follows
  int32_t own_steps;             // of it that oneDNN does; the others come after it
  piece_t pieces[MOST_CUTS];
  int32_t count;
  rn_conv_data_t data;   // the filter in the plan's layout, or the parts of its gradient
  char* scratch;         // for each piece, one after the other
  size_t scratch_bytes;  // of one
  bool failed;           // the first to set it owns |status|
  rn_status_t status;
} job_t;

static void run_piece(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  for (int64_t p = begin; p < end; ++p) {
    const piece_t* piece = &job->pieces[p];
    const rn_conv_t* conv = &piece->plan->conv;
    bool is_filter = conv->kind == RN_CONV_FILTER;
    rn_conv_data_t data = {
        .x = (float*)job->data.x + piece->x,
        .w = (char*)job->data.w + (is_filter ? (size_t)p * piece->plan->w_bytes : 0),
        .y = (float*)job->data.y + piece->y,
    };
    void* operands[RN_CONV_MOST_STEPS] = {0};
    for (int i = 0; i < job->own_steps; ++i)
      operands[i] = (float*)(uintptr_t)job->extra->steps[i].operand +
                    (rn_conv_step_form(conv, i) == RN_CONV_FULL ? piece->y : 0);
    rn_status_t status = rn_conv_plan_run(job->cache, piece->plan, data, operands,
                                          job->scratch + (size_t)p * job->scratch_bytes);
    if (rn_ok(status) && job->extra) {
      int64_t first = piece->y / conv->out_depth;
      rn_conv_follow(job->extra, job->own_steps, job->data.y, conv->out_depth, first,
                     first + conv->batch * conv->rows.out * conv->columns.out);
    }
    if (!rn_ok(status) && !__atomic_exchange_n(&job->failed, true, __ATOMIC_RELAXED))
      job->status = status;
    else
      rn_status_free(status);
  }
}

// Images in a piece: a power of two, so that pieces come out even for the usual batches.
static int64_t images_of_piece(const rn_conv_t* conv) {
  double least = PIECE_FLOPS;
  if (conv->kind == RN_CONV_FILTER) {
    double sums = PIECE_FLOPS_PER_WEIGHT * (double)rn_conv_w_size(conv);
    double half = rn_conv_flops(conv) * (double)conv->batch / 2;
    if (sums > half) sums = half;  // two at least, if they are worth a thread
    if (sums > least) least = sums;
  }
  int64_t images = 1;
  while (images < conv->batch &&
         ((double)images * rn_conv_flops(conv) < least || images * MOST_PIECES < conv->batch))
    images *= 2;
  return images < conv->batch ? images : conv->batch;
}

typedef struct sum_t {
  float* parts;
  int64_t stride;  // from one part to the next
  int64_t count;
} sum_t;

static void sum_piece(void* arg, int64_t begin, int64_t end) {
  const sum_t* sum = arg;
  for (int64_t i = 1; i < sum->count; ++i)
    rn_vector_run(RN_VECTOR_ADD, RN_FLOAT, sum->parts + begin, 1,
                  sum->parts + i * sum->stride + begin, 1, sum->parts + begin, end - begin);
}

static size_t round_up(size_t bytes) { return (bytes + RN_ALIGN - 1) / RN_ALIGN * RN_ALIGN; }

// Everything after the plans are there. |blocks| is memory for the filter in its blocks (for each
// piece, if it is its gradient), or NULL if none is needed; |is_filled|: the filter is in them.
static rn_status_t run_pieces(rn_kernel_ctx_t* ctx, job_t* job, const rn_conv_t* conv, void* blocks,
                              bool is_filled) {
  rn_conv_plan_t* plan = job->pieces[0].plan;
  void* w = job->data.w;
  if (blocks) job->data.w = blocks;
  if (blocks && !is_filled && conv->kind != RN_CONV_FILTER)
    RN_RETURN_IF_ERROR(rn_conv_reorder(job->cache, plan, w, blocks));
  rn_pool_for(rn_ctx_pool(ctx), job->count, 1, run_piece, job);
  RN_RETURN_IF_ERROR(job->status);
  if (conv->kind != RN_CONV_FILTER || !blocks) return RN_OK;
  int64_t length = (int64_t)(plan->w_bytes / sizeof(float));
  sum_t sum = {.parts = blocks, .stride = length, .count = job->count};
  if (job->count > 1) rn_pool_for(rn_ctx_pool(ctx), length, 1 << 15, sum_piece, &sum);
  if (plan->reorder) return rn_conv_reorder(job->cache, plan, blocks, w);
  memcpy(w, blocks, plan->w_bytes);
  return RN_OK;
}

// With the plans in |job|; the memory they need comes from the device's allocator.
static rn_status_t run_planned(rn_kernel_ctx_t* ctx, job_t* job, const rn_conv_t* conv) {
  rn_conv_plan_t* plan = job->pieces[0].plan;
  for (int32_t p = 0; p < job->count; ++p) {
    size_t needed = round_up(job->pieces[p].plan->scratch_bytes);
    if (needed > job->scratch_bytes) job->scratch_bytes = needed;
  }
  bool is_filter = conv->kind == RN_CONV_FILTER;
  const rn_tensor_t* filter = job->extra && plan->reorder ? job->extra->filter : NULL;
  bool needs_blocks = !filter && (plan->reorder || (is_filter && job->count > 1));
  size_t blocks = needs_blocks ? plan->w_bytes * (size_t)(is_filter ? job->count : 1) : 0;
  size_t total = 0;
  if (!rn_mul_ok(job->scratch_bytes, (size_t)job->count, &total) ||
      !rn_add_ok(total, round_up(blocks), &total))
    return rn_out_of_memory();
  rn_tensor_t temp = {0}, kept = {0};
  int64_t bytes = (int64_t)total;
  if (filter) RN_RETURN_IF_ERROR(rn_conv_kept_blocks(ctx, job->cache, plan, filter, &kept));
  rn_status_t status = total ? rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &temp) : RN_OK;
  job->scratch = (char*)temp.data + round_up(blocks);
  if (rn_ok(status))
    status = run_pieces(ctx, job, conv,
                        filter         ? kept.data
                        : needs_blocks ? temp.data
                                       : NULL,
                        filter != NULL);
  rn_tensor_clear(&temp);
  rn_tensor_clear(&kept);
  return status;
}

// Pieces that the rows of an image are cut into.
static int64_t row_pieces(const rn_conv_t* conv) {
  if (conv->kind != RN_CONV_FORWARD || conv->batch >= FEW_IMAGES) return 1;
  // Where there is little to compute, memory is what takes time.
  double work = rn_conv_flops(conv) + 16.0 * (double)(rn_conv_x_size(conv) + rn_conv_y_size(conv));
  int64_t pieces = (int64_t)(work / PIECE_FLOPS);
  int64_t by_pixels = conv->rows.out * conv->columns.out / PIECE_PIXELS;
  if (pieces > by_pixels) pieces = by_pixels;
  if (pieces > conv->rows.out) pieces = conv->rows.out;
  if (pieces > MOST_ROW_PIECES) pieces = MOST_ROW_PIECES;
  return pieces < 1 ? 1 : pieces;
}

// |conv| with the output rows [begin, end) only; the first input row that they read, or -1 if they
// read none.
static int64_t cut_rows(const rn_conv_t* conv, int64_t begin, int64_t end, rn_conv_t* out) {
  const rn_window_axis_t* rows = &conv->rows;
  int64_t first = begin * rows->stride - rows->before;
  int64_t last = (end - 1) * rows->stride - rows->before + (rows->filter - 1) * rows->dilation + 1;
  *out = *conv;
  out->batch = 1;
  out->rows.out = end - begin;
  out->rows.before = first < 0 ? -first : 0;
  out->rows.after = last > rows->in ? last - rows->in : 0;
  if (first < 0) first = 0;
  if (last > rows->in) last = rows->in;
  out->rows.in = last - first;
  return last > first ? first : -1;
}

static rn_status_t add_piece(job_t* job, const rn_dnnl_t* dnnl, const rn_conv_t* conv, int64_t x,
                             int64_t y) {
  piece_t* piece = &job->pieces[job->count];
  *piece = (piece_t){.x = x, .y = y};
  const dnnl_memory_desc_t* layout = job->count ? &job->pieces[0].plan->w : NULL;
  RN_RETURN_IF_ERROR(rn_conv_plan_get(job->cache, dnnl, conv, layout, &piece->plan));
  ++job->count;
  return RN_OK;
}

static bool is_possible(const job_t* job) {
  return job->count && job->pieces[job->count - 1].plan->primitive;
}

static rn_status_t add_rows(job_t* job, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                            int64_t pieces) {
  int64_t height = (conv->rows.out + pieces - 1) / pieces;
  for (int64_t image = 0; image < conv->batch; ++image) {
    for (int64_t row = 0; row < conv->rows.out; row += height) {
      rn_conv_t part;
      int64_t end = row + height < conv->rows.out ? row + height : conv->rows.out;
      int64_t first = cut_rows(conv, row, end, &part);
      RN_RETURN_IF_ERROR(
          add_piece(job, dnnl, &part,
                    image * rn_conv_x_size(conv) + first * conv->columns.in * conv->in_depth,
                    image * rn_conv_y_size(conv) + row * conv->columns.out * conv->out_depth));
      if (!is_possible(job)) return RN_OK;
    }
  }
  return RN_OK;
}

static rn_status_t add_images(job_t* job, const rn_dnnl_t* dnnl, const rn_conv_t* conv) {
  int64_t images = images_of_piece(conv);
  for (int64_t image = 0; image < conv->batch; image += images) {
    rn_conv_t part = *conv;
    part.batch = image + images < conv->batch ? images : conv->batch - image;
    RN_RETURN_IF_ERROR(
        add_piece(job, dnnl, &part, image * rn_conv_x_size(conv), image * rn_conv_y_size(conv)));
    if (!is_possible(job)) return RN_OK;
  }
  return RN_OK;
}

// Cutting must leave every piece something to read.
static bool can_cut(const rn_conv_t* conv, int64_t pieces) {
  int64_t height = (conv->rows.out + pieces - 1) / pieces;
  rn_conv_t part;
  for (int64_t row = 0; row < conv->rows.out; row += height)
    if (cut_rows(conv, row, row + height < conv->rows.out ? row + height : conv->rows.out, &part) <
        0)
      return false;
  return true;
}

// The steps up to the first rectifier, which oneDNN has make 0 of what is no number.
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

rn_status_t rn_conv_float(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_conv_t* conv,
                          rn_conv_data_t data, const rn_conv_extra_t* extra, bool* out_done) {
  *out_done = false;
  job_t job = {.cache = cache, .data = data, .extra = extra};
  const rn_dnnl_t* dnnl = NULL;
  rn_status_t status = rn_dnnl(&dnnl);
  if (!rn_ok(status)) {
    rn_status_free(status);  // the plain loops do it
    return RN_OK;
  }
  rn_conv_t whole = *conv;
  whole.then = pack_steps(conv, extra, &job.own_steps);
  int64_t pieces = row_pieces(&whole);
  int threads = rn_dnnl_enter(dnnl);
  status = pieces > 1 && can_cut(&whole, pieces) ? add_rows(&job, dnnl, &whole, pieces)
                                                 : add_images(&job, dnnl, &whole);
  rn_dnnl_leave(dnnl, threads);
  *out_done = rn_ok(status) && is_possible(&job);
  if (*out_done) status = run_planned(ctx, &job, &whole);
  for (int32_t p = 0; p < job.count; ++p) rn_conv_plan_put(cache, job.pieces[p].plan);
  return status;
}
