// CTC decoding: turns scores over time into label sequences, greedily or by beam search.
#include <math.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/ctc_rnn/ctc.h"
#include "kernels/kernel_rows.h"

typedef struct ctc_decoder_t {
  rn_allocator_t allocator;
  bool merges;  // merges repeated labels
  int64_t blank, width, paths;
} ctc_decoder_t;

static rn_status_t greedy_init(const rn_kernel_init_t* init, void* state) {
  *(ctc_decoder_t*)state = (ctc_decoder_t){.allocator = init->allocator,
                                           .merges = rn_init_bool(init, "merge_repeated"),
                                           .blank = rn_init_int(init, "blank_index"),
                                           .paths = 1};
  return RN_OK;
}

static rn_status_t beam_init(const rn_kernel_init_t* init, void* state) {
  *(ctc_decoder_t*)state = (ctc_decoder_t){.allocator = init->allocator,
                                           .merges = rn_init_bool(init, "merge_repeated"),
                                           .blank = -1,
                                           .width = rn_init_int(init, "beam_width"),
                                           .paths = rn_init_int(init, "top_paths")};
  return RN_OK;
}

typedef struct ctc_decoder_job_t {
  const ctc_decoder_t* decoder;
  const rn_tensor_t *inputs, *lengths;
  int64_t time, batch, classes, blank;
  rn_tensor_t* scores;  // log_probability
  rn_arena_t* arena;
  // The labels, indexed by path and sequence.
  struct ctc_decoder_sequence_t {
    int64_t count;
    int64_t* labels;
  } * found;
} ctc_decoder_job_t;

static double input_at(const ctc_decoder_job_t* job, int64_t t, int64_t b, int64_t c) {
  int64_t i = (t * job->batch + b) * job->classes + c;
  return job->inputs->dtype == RN_FLOAT ? (double)RN_DATA(job->inputs, const float)[i]
                                        : RN_DATA(job->inputs, const double)[i];
}

static rn_status_t check(const rn_kernel_ctx_t* ctx, ctc_decoder_job_t* job) {
  job->inputs = rn_in(ctx, 0);
  job->lengths = rn_in(ctx, 1);
  if (job->inputs->rank != 3) return rn_invalid_argument("inputs is not a 3-Tensor");
  if (job->inputs->count == 0) return rn_invalid_argument("inputs must not be empty");
  if (job->lengths->rank != 1) return rn_invalid_argument("sequence_length is not a vector");
  job->time = rn_tensor_dim(job->inputs, 0);
  job->batch = rn_tensor_dim(job->inputs, 1);
  job->classes = rn_tensor_dim(job->inputs, 2);
  if (job->lengths->count != job->batch)
    return rn_failed_precondition(
        "len(sequence_length) != batch_size.  len(sequence_length):  %lld batch_size: %lld",
        (long long)job->lengths->count, (long long)job->batch);
  for (int64_t b = 0; b < job->batch; ++b)
    if (rn_int_at(job->lengths, b) > job->time)
      return rn_failed_precondition("sequence_length(%lld) <= %lld", (long long)b,
                                    (long long)job->time);
  int64_t blank = job->decoder->blank;
  if (blank < -job->classes || blank >= job->classes)
    return rn_invalid_argument("blank_index expected to be between %lld and %lld but was %lld",
                               (long long)-job->classes, (long long)(job->classes - 1),
                               (long long)blank);
  job->blank = blank < 0 ? blank + job->classes : blank;
  return RN_OK;
}

static void set_score(const ctc_decoder_job_t* job, int64_t b, int64_t path, double value) {
  int64_t i = b * job->decoder->paths + path;
  if (job->scores->dtype == RN_FLOAT)
    RN_DATA(job->scores, float)[i] = (float)value;
  else
    RN_DATA(job->scores, double)[i] = value;
}

// Outputs the decoded paths as sparse matrices: one set of indices, values and shape per path.
static rn_status_t output_path(rn_kernel_ctx_t* ctx, const ctc_decoder_job_t* job, int path) {
  int paths = (int)job->decoder->paths;
  const struct ctc_decoder_sequence_t* found = job->found + path * job->batch;
  int64_t total = 0, longest = 0, two = 2;
  for (int64_t b = 0; b < job->batch; ++b) {
    total += found[b].count;
    if (found[b].count > longest) longest = found[b].count;
  }
  rn_tensor_t *indices = NULL, *values = NULL, *shape = NULL;
  int64_t dims[2] = {total, 2};
  RN_RETURN_IF_ERROR(rn_output(ctx, path, (rn_shape_t){2, dims}, &indices));
  RN_RETURN_IF_ERROR(rn_output(ctx, paths + path, (rn_shape_t){1, &total}, &values));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2 * paths + path, (rn_shape_t){1, &two}, &shape));
  RN_DATA(shape, int64_t)[0] = job->batch;
  RN_DATA(shape, int64_t)[1] = longest;
  int64_t n = 0;
  for (int64_t b = 0; b < job->batch; ++b)
    for (int64_t i = 0; i < found[b].count; ++i, ++n) {
      RN_DATA(indices, int64_t)[2 * n] = b;
      RN_DATA(indices, int64_t)[2 * n + 1] = i;
      RN_DATA(values, int64_t)[n] = found[b].labels[i];
    }
  return RN_OK;
}

static rn_status_t greedy_sequence(ctc_decoder_job_t* job, int64_t b,
                                   struct ctc_decoder_sequence_t* out) {
  int64_t length = rn_int_at(job->lengths, b), before = -1;
  double score = 0;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(job->arena, (size_t)(length > 0 ? length : 0) + 1, &out->labels));
  for (int64_t t = 0; t < length; ++t) {
    int64_t best = 0;
    for (int64_t c = 1; c < job->classes; ++c)
      if (input_at(job, t, b, c) > input_at(job, t, b, best)) best = c;
    score -= input_at(job, t, b, best);
    if (best != job->blank && !(job->decoder->merges && best == before))
      out->labels[out->count++] = best;
    before = best;
  }
  set_score(job, b, 0, score);
  return RN_OK;
}

// A prefix in the beam search: its last label, its parent, and the log probabilities of all
// alignments of it that end in a blank or in the label, before and after the current time step.
typedef struct prefix_t {
  struct prefix_t* parent;
  struct prefix_t** children;  // by label; NULL until the first is made
  int64_t label;
  double old_total, old_blank, total, blank, with_label;
} prefix_t;

// The best prefixes, best first.
typedef struct beam_t {
  prefix_t** items;
  int64_t count, width;
} beam_t;

static void forget(prefix_t* prefix) {
  prefix->total = prefix->blank = prefix->with_label = RN_CTC_NONE;
}

// Inserts in order; drops the last if the beam is full.
static void beam_push(beam_t* beam, prefix_t* prefix) {
  int64_t at = beam->count;
  if (at == beam->width) {
    if (!(prefix->total > beam->items[at - 1]->total)) return;
    --at;
  } else {
    ++beam->count;
  }
  for (; at > 0 && beam->items[at - 1]->total < prefix->total; --at)
    beam->items[at] = beam->items[at - 1];
  beam->items[at] = prefix;
}

static bool is_candidate(const beam_t* beam, double total) {
  return total > RN_CTC_NONE &&
         (beam->count < beam->width || total > beam->items[beam->count - 1]->total);
}

static rn_status_t child_of(ctc_decoder_job_t* job, prefix_t* prefix, int64_t label,
                            prefix_t** out) {
  if (!prefix->children)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(job->arena, (size_t)job->classes, &prefix->children));
  if (!prefix->children[label]) {
    prefix_t* child = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(job->arena, &child));
    *child = (prefix_t){
        .parent = prefix, .label = label, .old_total = RN_CTC_NONE, .old_blank = RN_CTC_NONE};
    forget(child);
    prefix->children[label] = child;
  }
  *out = prefix->children[label];
  return RN_OK;
}

// Prefixes that stay the same: extended by a blank or by a repeat of their last label.
static void keep_prefixes(const ctc_decoder_job_t* job, const double* y, beam_t* old,
                          beam_t* beam) {
  for (int64_t i = 0; i < old->count; ++i) {
    old->items[i]->old_total = old->items[i]->total;
    old->items[i]->old_blank = old->items[i]->blank;
  }
  for (int64_t i = 0; i < old->count; ++i) {
    prefix_t* p = old->items[i];
    if (p->parent) {
      if (p->parent->total != RN_CTC_NONE)
        p->with_label =
            rn_ctc_log_add(p->with_label, p->label == p->parent->label ? p->parent->old_blank
                                                                       : p->parent->old_total);
      p->with_label += y[p->label];
    }
    p->blank = p->old_total + y[job->blank];
    p->total = rn_ctc_log_add(p->blank, p->with_label);
    beam_push(beam, p);
  }
}

// Prefixes extended by one label. One that falls out of the beam is forgotten.
static rn_status_t grow_prefixes(ctc_decoder_job_t* job, const double* y, const beam_t* old,
                                 beam_t* beam) {
  for (int64_t i = 0; i < old->count; ++i) {
    prefix_t* p = old->items[i];
    if (!is_candidate(beam, p->old_total)) continue;
    for (int64_t label = 0; label < job->classes - 1; ++label) {
      prefix_t* child = NULL;
      RN_RETURN_IF_ERROR(child_of(job, p, label, &child));
      if (child->total != RN_CTC_NONE) continue;
      child->blank = RN_CTC_NONE;
      child->with_label = y[label] + (label == p->label ? p->old_blank : p->old_total);
      child->total = child->with_label;
      if (is_candidate(beam, child->total)) {
        if (beam->count == beam->width) forget(beam->items[beam->count - 1]);
        beam_push(beam, child);
      } else {
        forget(child);
        child->old_total = child->old_blank = RN_CTC_NONE;
      }
    }
  }
  return RN_OK;
}

static void sort_by_old(beam_t* beam) {
  for (int64_t i = 1; i < beam->count; ++i) {
    prefix_t* p = beam->items[i];
    int64_t at = i;
    for (; at > 0 && beam->items[at - 1]->old_total < p->old_total; --at)
      beam->items[at] = beam->items[at - 1];
    beam->items[at] = p;
  }
}

static void log_softmax(const ctc_decoder_job_t* job, int64_t t, int64_t b, double* y) {
  double largest = RN_CTC_NONE, sum = 0;
  for (int64_t c = 0; c < job->classes; ++c) {
    y[c] = input_at(job, t, b, c);
    if (y[c] > largest) largest = y[c];
  }
  for (int64_t c = 0; c < job->classes; ++c) sum += exp(y[c] - largest);
  double offset = largest + log(sum);
  for (int64_t c = 0; c < job->classes; ++c) y[c] -= offset;
}

static rn_status_t labels_of(ctc_decoder_job_t* job, const prefix_t* prefix,
                             struct ctc_decoder_sequence_t* out) {
  int64_t most = 0, before = -1;
  for (const prefix_t* p = prefix; p->parent; p = p->parent) ++most;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(job->arena, (size_t)most + 1, &out->labels));
  for (const prefix_t* p = prefix; p->parent; p = p->parent) {
    if (!job->decoder->merges || p->label != before) out->labels[out->count++] = p->label;
    before = p->label;
  }
  for (int64_t i = 0; i < out->count / 2; ++i) {
    int64_t label = out->labels[i];
    out->labels[i] = out->labels[out->count - 1 - i];
    out->labels[out->count - 1 - i] = label;
  }
  return RN_OK;
}

static rn_status_t beam_sequence(ctc_decoder_job_t* job, int64_t b) {
  int64_t width = job->decoder->width;
  beam_t old = {.width = width}, beam = {.width = width};
  double* y = NULL;
  prefix_t* root = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(job->arena, (size_t)width, &old.items));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(job->arena, (size_t)width, &beam.items));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(job->arena, (size_t)job->classes, &y));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(job->arena, &root));
  *root = (prefix_t){
      .label = -1, .old_total = RN_CTC_NONE, .old_blank = RN_CTC_NONE, .with_label = RN_CTC_NONE};
  beam_push(&beam, root);
  for (int64_t t = 0; t < rn_int_at(job->lengths, b); ++t) {
    prefix_t** items = old.items;
    old = beam;
    beam = (beam_t){.items = items, .width = width};
    log_softmax(job, t, b, y);
    keep_prefixes(job, y, &old, &beam);
    sort_by_old(&old);
    RN_RETURN_IF_ERROR(grow_prefixes(job, y, &old, &beam));
  }
  if (job->decoder->paths > beam.count)
    return rn_invalid_argument("Less leaves in the beam search than requested.");
  for (int64_t path = 0; path < job->decoder->paths; ++path) {
    RN_RETURN_IF_ERROR(labels_of(job, beam.items[path], &job->found[path * job->batch + b]));
    set_score(job, b, path, beam.items[path]->total);
  }
  return RN_OK;
}

static rn_status_t decode(rn_kernel_ctx_t* ctx, ctc_decoder_job_t* job) {
  int64_t paths = job->decoder->paths, dims[2] = {job->batch, paths};
  size_t count;
  if (!rn_mul_ok((size_t)paths, (size_t)job->batch, &count))
    return rn_invalid_argument("Too many paths requested: %lld", (long long)paths);
  RN_RETURN_IF_ERROR(rn_output(ctx, (int)(3 * paths), (rn_shape_t){2, dims}, &job->scores));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(job->arena, count + 1, &job->found));
  for (int64_t b = 0; b < job->batch; ++b)
    RN_RETURN_IF_ERROR(job->decoder->width ? beam_sequence(job, b)
                                           : greedy_sequence(job, b, &job->found[b]));
  for (int path = 0; path < paths; ++path) RN_RETURN_IF_ERROR(output_path(ctx, job, path));
  return RN_OK;
}

static rn_status_t decoder(rn_kernel_ctx_t* ctx) {
  ctc_decoder_job_t job = {.decoder = ctx->state};
  if (job.decoder->width && job.decoder->paths > job.decoder->width)
    return rn_invalid_argument("requested more paths than the beam width.");
  RN_RETURN_IF_ERROR(check(ctx, &job));
  rn_arena_t arena;
  rn_arena_init(&arena, job.decoder->allocator);
  job.arena = &arena;
  rn_status_t status = decode(ctx, &job);
  rn_arena_clear(&arena);
  return status;
}

#define DECODER(name, function)                                               \
  {                                                                           \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                \
    .state_size = sizeof(ctc_decoder_t), .init = function, .compute = decoder \
  }

static const rn_kernel_def_t rows[] = {
    DECODER("CTCGreedyDecoder", greedy_init),
    DECODER("CTCBeamSearchDecoder", beam_init),
};
RN_KERNEL_FAMILY(cpu_ctc_decoder, rows);
