// See nms.h. Candidates are in a heap by score. The best one is taken and compared with the boxes
// selected since it was last examined.
#include "kernels/cpu/image/nms.h"

#include <math.h>

#include "kernels/image_geometry.h"
#include "tensor/float16.h"

typedef struct candidate_t {
  int32_t index;
  int32_t seen;  // number of selected boxes its score accounts for
  float score;
} candidate_t;

// Whether |a| comes before |b|; ties go to the lower index.
static bool is_better(const candidate_t* a, const candidate_t* b) {
  return a->score > b->score || (a->score == b->score && a->index < b->index);
}

static void sift_down(candidate_t* heap, int64_t count, int64_t i) {
  for (;;) {
    int64_t best = i, left = 2 * i + 1, right = left + 1;
    if (left < count && is_better(&heap[left], &heap[best])) best = left;
    if (right < count && is_better(&heap[right], &heap[best])) best = right;
    if (best == i) return;
    candidate_t held = heap[i];
    heap[i] = heap[best];
    heap[best] = held;
    i = best;
  }
}

static float rounded(const rn_nms_t* nms, float x) {
  return nms->is_half ? rn_half_to_float(rn_float_to_half(x)) : x;
}

static float overlap(const rn_nms_t* nms, int64_t i, int64_t j) {
  if (!nms->boxes) return nms->overlaps[i * nms->count + j];
  return rounded(nms, rn_boxes_overlap(nms->boxes + i * nms->stride, nms->boxes + j * nms->stride));
}

// The factor that a selected box applies to the score of one that overlaps it.
static float weight_of(const rn_nms_t* nms, float by) {
  if (nms->sigma > 0) {
    float scale = rounded(nms, rounded(nms, -0.5f) / nms->sigma);
    return rounded(nms, expf(rounded(nms, rounded(nms, scale * by) * by)));
  }
  // A NaN overlap (of infinite boxes) is neither above nor below the threshold.
  return by <= nms->threshold || nms->keeps_unordered ? 1 : 0;
}

// Lowers the candidate's score for the boxes selected since; false if it is eliminated. A NaN score
// is above no threshold, so its candidate is eliminated.
static bool hold_against(const rn_nms_t* nms, candidate_t* c, const int32_t* selected,
                         int64_t count) {
  for (int64_t j = count - 1; j >= c->seen; --j) {
    float by = overlap(nms, c->index, selected[j]);
    if (!(nms->sigma > 0) && by > nms->threshold) return false;
    c->score = rounded(nms, c->score * weight_of(nms, by));
    if (!(c->score > nms->least)) return false;
  }
  c->seen = (int32_t)count;
  return true;
}

rn_status_t rn_nms_select(const rn_nms_t* nms, rn_allocator_t allocator, int32_t* out,
                          float* out_scores, int64_t* out_count) {
  candidate_t* heap = NULL;
  *out_count = 0;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)nms->count, &heap));
  int64_t left = 0;
  for (int64_t i = 0; i < nms->count; ++i) {
    float score = nms->scores[i * nms->score_stride];
    if (score > nms->least) heap[left++] = (candidate_t){(int32_t)i, 0, score};
  }
  for (int64_t i = left / 2 - 1; i >= 0; --i) sift_down(heap, left, i);
  while (*out_count < nms->most && left > 0) {
    candidate_t best = heap[0];
    float before = best.score;
    bool is_in = hold_against(nms, &best, out, *out_count);
    if (is_in && best.score == before) {
      out[*out_count] = best.index;
      out_scores[(*out_count)++] = best.score;
      is_in = false;
    }
    // Remove it from the heap, or reinsert it with a lower score.
    heap[0] = is_in ? best : heap[--left];
    sift_down(heap, left, 0);
  }
  RN_FREE_ARRAY(allocator, heap, nms->count);
  return RN_OK;
}
