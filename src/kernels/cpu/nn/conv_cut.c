// See conv_cut.h.
#include "kernels/cpu/nn/conv_cut.h"

// Minimum work per piece: about 100 us.
#define PIECE_FLOPS 16e6
// A filter gradient is split only as long as adding up the parts stays a small share of the work:
// minimum operations per filter element in a piece.
#define PIECE_FLOPS_PER_WEIGHT 1600
#define MOST_PIECES 16
// Batches with fewer images than this are split by rows, into pieces of at least this many pixels,
// because each piece reads the filter again.
#define FEW_IMAGES 8
#define PIECE_PIXELS 24
#define MOST_ROW_PIECES 8
_Static_assert(FEW_IMAGES* MOST_ROW_PIECES <= RN_CONV_MOST_CUTS, "rows fit");
_Static_assert(MOST_PIECES + 1 <= RN_CONV_MOST_CUTS, "images fit");

// Images per piece: a power of two, so that common batch sizes divide evenly.
static int64_t images_of_piece(const rn_conv_t* conv) {
  double least = PIECE_FLOPS;
  if (conv->kind == RN_CONV_FILTER) {
    double sums = PIECE_FLOPS_PER_WEIGHT * (double)rn_conv_w_size(conv);
    double half = rn_conv_flops(conv) * (double)conv->batch / 2;
    if (sums > half) sums = half;  // at least two, if they are worth a thread
    if (sums > least) least = sums;
  }
  int64_t images = 1;
  while (images < conv->batch &&
         ((double)images * rn_conv_flops(conv) < least || images * MOST_PIECES < conv->batch))
    images *= 2;
  return images < conv->batch ? images : conv->batch;
}

int64_t rn_conv_cut_count(const rn_conv_t* conv) {
  int64_t images = images_of_piece(conv);
  return (conv->batch + images - 1) / images;
}

// Number of pieces for the rows of an image.
static int64_t row_pieces(const rn_conv_t* conv) {
  if (conv->kind != RN_CONV_FORWARD || conv->batch >= FEW_IMAGES) return 1;
  // With little to compute, memory traffic dominates.
  double work = rn_conv_flops(conv) + 16.0 * (double)(rn_conv_x_size(conv) + rn_conv_y_size(conv));
  int64_t pieces = (int64_t)(work / PIECE_FLOPS);
  int64_t by_pixels = conv->rows.out * conv->columns.out / PIECE_PIXELS;
  if (pieces > by_pixels) pieces = by_pixels;
  if (pieces > conv->rows.out) pieces = conv->rows.out;
  if (pieces > MOST_ROW_PIECES) pieces = MOST_ROW_PIECES;
  return pieces < 1 ? 1 : pieces;
}

// |conv| restricted to output rows [begin, end); returns the first input row they read, or -1 if
// none.
static int64_t take_rows(const rn_conv_t* conv, int64_t begin, int64_t end, rn_conv_t* out) {
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

// Finds an existing layout that works as well as the plan's own: the same loops, and one copy of
// the filter less.
static rn_status_t find_layout(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                               rn_conv_piece_t* piece) {
  rn_conv_plan_t* own = piece->plan;
  for (int32_t l = 0; l < cut->layout_count; ++l) {
    rn_conv_plan_t* plan = NULL;
    const dnnl_memory_desc_t* layout = &cut->layouts[l].plan->w;
    piece->layout = l;
    if (dnnl->memory_desc_equal(layout, &own->w)) return RN_OK;
    RN_RETURN_IF_ERROR(rn_conv_plan_get(cut->cache, dnnl, conv, layout, &plan));
    bool is_as_good = plan->primitive && strcmp(plan->name, own->name) == 0;
    rn_conv_plan_put(cut->cache, is_as_good ? own : plan);
    if (!is_as_good) continue;
    piece->plan = plan;
    return RN_OK;
  }
  piece->layout = cut->layout_count;
  return RN_OK;
}

// Adds a piece; |*out_possible| is false if oneDNN does not support it or too many layouts are
// needed.
static rn_status_t add_piece(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                             int64_t x, int64_t y, bool* out_possible) {
  rn_conv_piece_t piece = {.x = x, .y = y};
  *out_possible = false;
  RN_RETURN_IF_ERROR(rn_conv_plan_get(cut->cache, dnnl, conv, NULL, &piece.plan));
  rn_status_t status = RN_OK;
  if (piece.plan->primitive) {
    status = find_layout(cut, dnnl, conv, &piece);
    *out_possible = rn_ok(status) && piece.layout < RN_CONV_MOST_LAYOUTS;
  }
  if (!*out_possible) {
    rn_conv_plan_put(cut->cache, piece.plan);
    return status;
  }
  if (piece.layout == cut->layout_count)
    cut->layouts[cut->layout_count++] = (rn_conv_layout_t){.plan = piece.plan};
  cut->pieces[cut->count++] = piece;
  return RN_OK;
}

void rn_conv_cut_drop(rn_conv_cut_t* cut) {
  for (int32_t p = 0; p < cut->count; ++p) rn_conv_plan_put(cut->cache, cut->pieces[p].plan);
  for (int32_t l = 0; l < cut->layout_count; ++l) rn_tensor_clear(&cut->layouts[l].kept);
  cut->count = cut->layout_count = 0;
}

rn_status_t rn_conv_cut_rows(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                             int64_t pieces, bool* out_possible) {
  int64_t height = (conv->rows.out + pieces - 1) / pieces;
  for (int64_t image = 0; image < conv->batch; ++image) {
    for (int64_t row = 0; row < conv->rows.out; row += height) {
      rn_conv_t part;
      int64_t end = row + height < conv->rows.out ? row + height : conv->rows.out;
      int64_t first = take_rows(conv, row, end, &part);
      RN_RETURN_IF_ERROR(add_piece(
          cut, dnnl, &part,
          image * rn_conv_x_size(conv) + first * conv->columns.in * conv->in_depth,
          image * rn_conv_y_size(conv) + row * conv->columns.out * conv->out_depth, out_possible));
      if (!*out_possible) return RN_OK;
    }
  }
  return RN_OK;
}

rn_status_t rn_conv_cut_images(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                               int64_t images, bool* out_possible) {
  for (int64_t image = 0; image < conv->batch; image += images) {
    rn_conv_t part = *conv;
    part.batch = image + images < conv->batch ? images : conv->batch - image;
    RN_RETURN_IF_ERROR(add_piece(cut, dnnl, &part, image * rn_conv_x_size(conv),
                                 image * rn_conv_y_size(conv), out_possible));
    if (!*out_possible) return RN_OK;
  }
  return RN_OK;
}

// Every piece must have input to read.
static bool can_cut(const rn_conv_t* conv, int64_t pieces) {
  int64_t height = (conv->rows.out + pieces - 1) / pieces;
  rn_conv_t part;
  for (int64_t row = 0; row < conv->rows.out; row += height)
    if (take_rows(conv, row, row + height < conv->rows.out ? row + height : conv->rows.out, &part) <
        0)
      return false;
  return true;
}

// Cuts the work, by rows or else by images or else not at all, into pieces that oneDNN does well.
rn_status_t rn_conv_cut(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl, const rn_conv_t* conv,
                        bool* out_possible) {
  int64_t pieces = row_pieces(conv), images = images_of_piece(conv);
  *out_possible = false;
  if (pieces > 1 && can_cut(conv, pieces)) {
    RN_RETURN_IF_ERROR(rn_conv_cut_rows(cut, dnnl, conv, pieces, out_possible));
    if (*out_possible) return RN_OK;
    rn_conv_cut_drop(cut);
  }
  RN_RETURN_IF_ERROR(rn_conv_cut_images(cut, dnnl, conv, images, out_possible));
  if (*out_possible || images == conv->batch) return RN_OK;
  rn_conv_cut_drop(cut);
  return rn_conv_cut_images(cut, dnnl, conv, conv->batch, out_possible);
}
