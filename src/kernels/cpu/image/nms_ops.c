// The non-maximum suppression ops; nms.h selects the boxes.
#include "kernels/cpu/image/nms_ops.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/as_float.h"
#include "kernels/kernel_rows.h"

enum { WITH_OVERLAPS = 6 };

rn_status_t rn_nms_init(const rn_kernel_init_t* init, void* state) {
  rn_nms_op_t* n = state;
  const char* tail = init->op->name + strlen("NonMaxSuppression");
  n->version = *tail == '\0' ? 1 : *tail == 'W' ? WITH_OVERLAPS : tail[1] - '0';
  if (n->version == 1) n->threshold = rn_init_float(init, "iou_threshold");
  if (n->version == 4 || n->version == 5)
    n->is_padded = rn_init_bool(init, "pad_to_max_output_size");
  if (n->version == 1 && !(n->threshold >= 0 && n->threshold <= 1))
    return rn_invalid_argument("iou_threshold must be in [0, 1]");
  return RN_OK;
}

static rn_status_t scalar_input(const rn_kernel_ctx_t* ctx, int i, const char* name) {
  const rn_tensor_t* input = rn_in(ctx, i);
  if (input->rank == 0) return RN_OK;
  // For some inputs V3 reports what shape inference would have reported.
  if (((const rn_nms_op_t*)ctx->state)->version == 3 && i < 4)
    return rn_invalid_argument("%s must be 0-D, got shape %s (Shape must be rank 0 but is rank %d)",
                               name, rn_text_of(input).text, input->rank);
  return rn_invalid_argument("%s must be 0-D, got shape %s", name, rn_text_of(input).text);
}

static rn_status_t float_input(rn_kernel_ctx_t* ctx, int i, const char* name, float* out) {
  const float* values = NULL;
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(scalar_input(ctx, i, name));
  rn_status_t status = rn_image_floats(ctx, rn_in(ctx, i), &temp, &values);
  if (rn_ok(status)) *out = values[0];
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t check_boxes(const rn_tensor_t* boxes, bool is_overlaps) {
  if (is_overlaps) {
    if (boxes->rank != 2)
      return rn_invalid_argument("overlaps must be 2-D%s", rn_text_of(boxes).text);
    if (rn_tensor_dim(boxes, 0) != rn_tensor_dim(boxes, 1))
      return rn_invalid_argument("overlaps must be square%s", rn_text_of(boxes).text);
    return RN_OK;
  }
  if (boxes->rank != 2)
    return rn_invalid_argument("boxes must be 2-D%s (Shape must be rank 2 but is rank %d)",
                               rn_text_of(boxes).text, boxes->rank);
  if (rn_tensor_dim(boxes, 1) != 4)
    return rn_invalid_argument("boxes must have 4 columns (Dimension must be 4 but is %" PRId64 ")",
                               rn_tensor_dim(boxes, 1));
  return RN_OK;
}

static rn_status_t check_scores(const rn_tensor_t* scores, int64_t count) {
  if (scores->rank != 1)
    return rn_invalid_argument("scores must be 1-D%s (Shape must be rank 1 but is rank %d)",
                               rn_text_of(scores).text, scores->rank);
  if (scores->count != count)
    return rn_invalid_argument(
        "scores has incompatible shape (Dimensions must be equal, but are %" PRId64 " and %" PRId64
        ")",
        count, scores->count);
  if (count > INT32_MAX) return rn_invalid_argument("boxes has too many rows");
  return RN_OK;
}

// Reads the scalar inputs after boxes and scores.
static rn_status_t read_limits(rn_kernel_ctx_t* ctx, rn_nms_t* nms) {
  const rn_nms_op_t* n = ctx->state;
  bool is_overlaps = n->version == WITH_OVERLAPS;
  RN_RETURN_IF_ERROR(scalar_input(ctx, 2, "max_output_size"));
  int32_t most = *RN_DATA(rn_in(ctx, 2), const int32_t);
  nms->threshold = n->threshold;
  nms->least = -INFINITY;
  if (n->version > 1)
    RN_RETURN_IF_ERROR(
        float_input(ctx, 3, is_overlaps ? "overlap_threshold" : "iou_threshold", &nms->threshold));
  if (!is_overlaps && !(nms->threshold >= 0 && nms->threshold <= 1))
    return rn_invalid_argument("iou_threshold must be in [0, 1]");
  if (n->version > 2)
    RN_RETURN_IF_ERROR(float_input(ctx, 4, "score_threshold", &nms->least));
  else
    nms->least = -FLT_MAX;
  if (n->version == 5) {
    RN_RETURN_IF_ERROR(float_input(ctx, 5, "soft_nms_sigma", &nms->sigma));
    if (!(nms->sigma >= 0)) return rn_invalid_argument("soft_nms_sigma_val must be >= 0");
  }
  if (most < 0) return rn_invalid_argument("output size must be non-negative");
  nms->most = most;
  return RN_OK;
}

// Outputs |count| selected boxes, padded with zeros to |size|, as far as this version has outputs.
static rn_status_t give(rn_kernel_ctx_t* ctx, const int32_t* selected, const float* scores,
                        int64_t count, int64_t size) {
  const rn_nms_op_t* n = ctx->state;
  rn_tensor_t *out = NULL, *valid = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  for (int64_t i = 0; i < size; ++i) RN_DATA(out, int32_t)[i] = i < count ? selected[i] : 0;
  if (n->version == 5) {
    RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &size}, &out));
    rn_image_store(scores, out);
  }
  if (n->version != 4 && n->version != 5) return RN_OK;
  RN_RETURN_IF_ERROR(rn_output(ctx, n->version == 4 ? 1 : 2, RN_SHAPE_SCALAR, &valid));
  *RN_DATA(valid, int32_t) = (int32_t)count;
  return RN_OK;
}

static rn_status_t select_and_give(rn_kernel_ctx_t* ctx, const rn_nms_t* nms) {
  const rn_nms_op_t* n = ctx->state;
  rn_allocator_t allocator = ctx->kernel->allocator;
  int64_t most = nms->most < nms->count ? nms->most : nms->count, count = 0;
  int64_t size = n->is_padded && nms->most > most ? nms->most : most;
  int32_t* selected = NULL;
  float* scores = NULL;
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)size, &selected);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)size, &scores);
  if (rn_ok(status)) status = rn_nms_select(nms, allocator, selected, scores, &count);
  if (rn_ok(status)) status = give(ctx, selected, scores, count, n->is_padded ? nms->most : count);
  if (selected) RN_FREE_ARRAY(allocator, selected, size);
  if (scores) RN_FREE_ARRAY(allocator, scores, size);
  return status;
}

rn_status_t rn_nms_read(rn_kernel_ctx_t* ctx, rn_nms_t* out) {
  const rn_tensor_t* boxes = rn_in(ctx, 0);
  *out = (rn_nms_t){.stride = 4, .score_stride = 1, .is_half = boxes->dtype == RN_HALF};
  RN_RETURN_IF_ERROR(
      check_boxes(boxes, ((const rn_nms_op_t*)ctx->state)->version == WITH_OVERLAPS));
  RN_RETURN_IF_ERROR(read_limits(ctx, out));
  out->count = rn_tensor_dim(boxes, 0);
  return check_scores(rn_in(ctx, 1), out->count);
}

static rn_status_t nms_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *boxes = rn_in(ctx, 0), *scores = rn_in(ctx, 1);
  bool is_overlaps = ((const rn_nms_op_t*)ctx->state)->version == WITH_OVERLAPS;
  rn_nms_t nms;
  RN_RETURN_IF_ERROR(rn_nms_read(ctx, &nms));
  rn_tensor_t box_temp = {0}, score_temp = {0};
  rn_status_t status =
      rn_image_floats(ctx, boxes, &box_temp, is_overlaps ? &nms.overlaps : &nms.boxes);
  if (rn_ok(status)) status = rn_image_floats(ctx, scores, &score_temp, &nms.scores);
  if (rn_ok(status)) status = select_and_give(ctx, &nms);
  rn_tensor_clear(&box_temp);
  rn_tensor_clear(&score_temp);
  return status;
}

// All classes of a batch together.
typedef struct found_t {
  float score;
  int32_t box, class;
} found_t;

typedef struct combined_t {
  rn_nms_t nms;
  const float *boxes, *scores;
  int64_t count, kinds, classes;  // boxes, box sets (1 or one per class), classes
  int64_t total;                  // maximum per image
  found_t* found;                 // for one image
  int32_t* selected;
  float* selected_scores;
  rn_tensor_t* outs[4];
  bool is_clipped;
} combined_t;

static int by_score(const void* a_, const void* b_) {
  const found_t *a = a_, *b = b_;
  if (a->score != b->score) return a->score > b->score ? -1 : 1;
  if (a->class != b->class) return a->class < b->class ? -1 : 1;
  return a->box < b->box ? -1 : 1;
}

static float clip(const combined_t* c, float x) {
  return !c->is_clipped ? x : x < 0 ? 0 : x > 1 ? 1 : x;
}

static rn_status_t combine_image(combined_t* c, rn_allocator_t allocator, int64_t image) {
  const float* boxes = c->boxes + image * c->count * c->kinds * 4;
  int64_t found = 0, selected = 0;
  for (int64_t k = 0; k < c->classes; ++k) {
    c->nms.boxes = boxes + (c->kinds > 1 ? 4 * k : 0);
    c->nms.scores = c->scores + image * c->count * c->classes + k;
    RN_RETURN_IF_ERROR(
        rn_nms_select(&c->nms, allocator, c->selected, c->selected_scores, &selected));
    for (int64_t i = 0; i < selected; ++i)
      c->found[found++] = (found_t){c->selected_scores[i], c->selected[i], (int32_t)k};
  }
  if (found) qsort(c->found, (size_t)found, sizeof *c->found, by_score);
  if (found > c->total) found = c->total;
  float* out_boxes = RN_DATA(c->outs[0], float) + image * c->total * 4;
  float* out_scores = RN_DATA(c->outs[1], float) + image * c->total;
  float* out_classes = RN_DATA(c->outs[2], float) + image * c->total;
  for (int64_t i = 0; i < c->total; ++i) {
    bool is_there = i < found;
    const found_t* f = &c->found[is_there ? i : 0];
    const float* box =
        boxes + (is_there ? (f->box * c->kinds + (c->kinds > 1 ? f->class : 0)) : 0) * 4;
    for (int d = 0; d < 4; ++d) out_boxes[4 * i + d] = is_there ? clip(c, box[d]) : 0;
    out_scores[i] = is_there ? f->score : 0;
    out_classes[i] = is_there ? (float)f->class : 0;
  }
  RN_DATA(c->outs[3], int32_t)[image] = (int32_t)found;
  return RN_OK;
}

static rn_status_t combined_init(const rn_kernel_init_t* init, void* state) {
  rn_nms_op_t* n = state;
  n->is_padded_by_class = rn_init_bool(init, "pad_per_class");
  n->is_clipped = rn_init_bool(init, "clip_boxes");
  return RN_OK;
}

static rn_status_t combined_check(rn_kernel_ctx_t* ctx, combined_t* c) {
  const rn_tensor_t *boxes = rn_in(ctx, 0), *scores = rn_in(ctx, 1);
  if (boxes->rank != 4) return rn_invalid_argument("boxes must be 4-D%s", rn_text_of(boxes).text);
  if (scores->rank != 3)
    return rn_invalid_argument("scores must be 3-D%s", rn_text_of(scores).text);
  if (rn_tensor_dim(boxes, 0) != rn_tensor_dim(scores, 0))
    return rn_invalid_argument("boxes and scores must have same batch size");
  RN_RETURN_IF_ERROR(scalar_input(ctx, 2, "max_size_per_class"));
  int32_t most = *RN_DATA(rn_in(ctx, 2), const int32_t);
  if (most <= 0) return rn_invalid_argument("max_size_per_class must be positive");
  RN_RETURN_IF_ERROR(scalar_input(ctx, 3, "max_total_size"));
  int32_t total = *RN_DATA(rn_in(ctx, 3), const int32_t);
  if (total <= 0) return rn_invalid_argument("max_total_size must be > 0");
  RN_RETURN_IF_ERROR(float_input(ctx, 4, "iou_threshold", &c->nms.threshold));
  RN_RETURN_IF_ERROR(float_input(ctx, 5, "score_threshold", &c->nms.least));
  if (!(c->nms.threshold >= 0 && c->nms.threshold <= 1))
    return rn_invalid_argument("iou_threshold must be in [0, 1]");
  const int64_t* dims = rn_tensor_dims(boxes);
  c->count = dims[1];
  c->kinds = dims[2];
  c->classes = rn_tensor_dim(scores, 2);
  if (dims[3] != 4) return rn_invalid_argument("boxes must have 4 columns");
  if (c->kinds != 1 && c->kinds != c->classes)
    return rn_invalid_argument("third dimension of boxes must be either 1 or num classes");
  if (rn_tensor_dim(scores, 1) != c->count)
    return rn_invalid_argument("scores has incompatible shape");
  c->nms.most = most < c->count ? most : c->count;
  c->total = total;
  const rn_nms_op_t* n = ctx->state;
  int64_t all = 0;
  if (n->is_padded_by_class && rn_mul_i64_ok(most, c->classes, &all) && all < total) c->total = all;
  return RN_OK;
}

static rn_status_t combined_compute(rn_kernel_ctx_t* ctx) {
  combined_t c = {.is_clipped = ((const rn_nms_op_t*)ctx->state)->is_clipped};
  RN_RETURN_IF_ERROR(combined_check(ctx, &c));
  c.boxes = rn_in(ctx, 0)->data;
  c.scores = rn_in(ctx, 1)->data;
  c.nms.count = c.count;
  c.nms.keeps_unordered = true;
  c.nms.stride = c.kinds * 4;
  c.nms.score_stride = c.classes;
  int64_t batch = rn_tensor_dim(rn_in(ctx, 0), 0), shape[3] = {batch, c.total, 4};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){3, shape}, &c.outs[0]));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){2, shape}, &c.outs[1]));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){2, shape}, &c.outs[2]));
  RN_RETURN_IF_ERROR(rn_output(ctx, 3, (rn_shape_t){1, shape}, &c.outs[3]));
  rn_allocator_t allocator = ctx->kernel->allocator;
  size_t room = 0, most = (size_t)c.nms.most;
  if (!rn_mul_ok(most, (size_t)c.classes, &room)) return rn_out_of_memory();
  rn_status_t status = RN_NEW_ARRAY(allocator, room + 1, &c.found);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, most, &c.selected);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, most, &c.selected_scores);
  for (int64_t i = 0; i < batch && rn_ok(status); ++i) status = combine_image(&c, allocator, i);
  if (c.found) RN_FREE_ARRAY(allocator, c.found, room + 1);
  if (c.selected) RN_FREE_ARRAY(allocator, c.selected, most);
  if (c.selected_scores) RN_FREE_ARRAY(allocator, c.selected_scores, most);
  return status;
}

#define ROW(name, init_, function)                                                                \
  {                                                                                               \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_nms_op_t), \
    .init = init_, .compute = function                                                            \
  }

static const rn_kernel_def_t rows[] = {
    ROW("NonMaxSuppression", rn_nms_init, nms_compute),
    ROW("NonMaxSuppressionV2", rn_nms_init, nms_compute),
    ROW("NonMaxSuppressionV3", rn_nms_init, nms_compute),
    ROW("NonMaxSuppressionV4", rn_nms_init, nms_compute),
    ROW("NonMaxSuppressionV5", rn_nms_init, nms_compute),
    ROW("NonMaxSuppressionWithOverlaps", rn_nms_init, nms_compute),
    ROW("CombinedNonMaxSuppression", combined_init, combined_compute),
};
RN_KERNEL_FAMILY(cpu_image_nms, rows);
