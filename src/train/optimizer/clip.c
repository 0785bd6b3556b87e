// Clipping.
#include "runnel/train.h"
#include "train/words.h"

RN_API rn_edge_t rn_clip_by_value(rn_scope_t* s, rn_edge_t x, rn_edge_t min, rn_edge_t max) {
  if (!rn_is_edge(s, x, "rn_clip_by_value", "x")) return RN_NO_EDGE;
  return rn_Maximum(s, rn_Minimum(s, x, max), min);
}

RN_API rn_edge_t rn_clip_by_norm(rn_scope_t* s, rn_edge_t x, rn_edge_t limit) {
  if (!rn_is_edge(s, x, "rn_clip_by_norm", "x")) return RN_NO_EDGE;
  rn_edge_t squares = rn_sum_all(s, rn_Mul(s, x, x));
  rn_edge_t is_positive = rn_Greater(s, squares, rn_like(s, x, 0));
  // Avoids the square root's gradient at 0, which is infinite.
  rn_edge_t safe = rn_SelectV2(s, is_positive, squares, rn_like(s, x, 1));
  rn_edge_t norm = rn_SelectV2(s, is_positive, rn_Sqrt(s, safe), squares);
  return rn_RealDiv(s, rn_Mul(s, x, limit), rn_Maximum(s, norm, limit));
}

RN_API rn_edge_t rn_clip_by_average_norm(rn_scope_t* s, rn_edge_t x, rn_edge_t limit) {
  if (!rn_is_edge(s, x, "rn_clip_by_average_norm", "x")) return RN_NO_EDGE;
  rn_edge_t elements = rn_as(s, rn_Size(s, x), rn_edge_dtype(x));
  rn_edge_t inverse = rn_Rsqrt(s, rn_sum_all(s, rn_Mul(s, x, x)));
  rn_edge_t most = rn_RealDiv(s, rn_like(s, x, 1), limit);
  rn_edge_t factor = rn_Minimum(s, rn_Mul(s, inverse, elements), most);
  return rn_Mul(s, rn_Mul(s, x, limit), factor);
}

RN_API rn_edge_t rn_global_norm(rn_scope_t* s, const rn_gradient_t* gradients, int count) {
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  if (count < 0 || (count > 0 && !gradients)) {
    rn_refuse(s, "rn_global_norm: the list of gradients is NULL");
    return RN_NO_EDGE;
  }
  rn_edge_t* halves = NULL;
  rn_status_t status = RN_NEW_ARRAY(rn_scope_allocator(s), (size_t)count, &halves);
  rn_edge_t norm = RN_NO_EDGE;
  int present = 0;
  for (int i = 0; rn_ok(status) && i < count; ++i) {
    rn_gradient_t gradient = gradients[i];
    rn_edge_t part = *rn_gradient_part(&gradient);
    if (part.node) halves[present++] = rn_L2Loss(s, part);
  }
  if (!rn_ok(status)) {
    rn_scope_fail(s, status);
  } else if (present > 0) {
    rn_edge_t sum = rn_sum_all(s, rn_Pack(s, halves, present));
    norm = rn_Sqrt(s, rn_Mul(s, sum, rn_like(s, sum, 2)));
  } else {
    norm = rn_const_float(s, 0);
  }
  RN_FREE_ARRAY(rn_scope_allocator(s), halves, count);
  return norm;
}

// The factor for all gradients; NaN if the norm is not finite.
static rn_edge_t global_factor(rn_scope_t* s, rn_edge_t norm, float limit) {
  rn_edge_t one = rn_like(s, norm, 1), most = rn_like(s, norm, limit);
  rn_edge_t inverse = rn_Minimum(s, rn_RealDiv(s, one, norm), rn_RealDiv(s, one, most));
  return rn_AddV2(s, rn_Mul(s, most, inverse), rn_Sub(s, norm, norm));
}

static rn_edge_t clip_one(rn_scope_t* s, rn_clip_t clip, rn_edge_t x) {
  switch (clip.kind) {
    case RN_CLIP_VALUE:
      return rn_clip_by_value(s, x, rn_like(s, x, -clip.limit), rn_like(s, x, clip.limit));
    case RN_CLIP_NORM:
      return rn_clip_by_norm(s, x, rn_like(s, x, clip.limit));
    case RN_CLIP_AVERAGE_NORM:
      return rn_clip_by_average_norm(s, x, rn_like(s, x, clip.limit));
    default:
      return x;
  }
}

RN_API void rn_clip_gradients(rn_scope_t* scope, rn_clip_t clip, rn_gradient_t* gradients,
                              int count) {
  if (clip.kind == RN_CLIP_NOTHING || !rn_scope_ok(scope) || count <= 0) return;
  if (!gradients || !(clip.limit > 0)) {
    rn_refuse(scope, gradients ? "rn_clip_gradients: the limit must be above 0"
                               : "rn_clip_gradients: the list of gradients is NULL");
    return;
  }
  rn_scope_t* s = rn_scope_child(scope, "clip");
  rn_edge_t factor = clip.kind == RN_CLIP_GLOBAL_NORM
                         ? global_factor(s, rn_global_norm(s, gradients, count), clip.limit)
                         : RN_NO_EDGE;
  for (int i = 0; i < count && rn_scope_ok(s); ++i) {
    rn_edge_t* part = rn_gradient_part(&gradients[i]);
    if (!part->node) continue;
    *part = factor.node ? rn_Mul(s, *part, rn_as(s, factor, rn_edge_dtype(*part)))
                        : clip_one(s, clip, *part);
  }
  rn_scope_destroy(s);
}
