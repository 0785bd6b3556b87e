// The range of every quantized value: see quantize.h.
//
//   minmax      the smallest and the largest value
//   percentile  what is left when a small part of the values on each side is cut off
//   entropy     the range whose 8-bit histogram is nearest to that of the values, measured by the
//               Kullback-Leibler divergence
//
// The last two read histograms of |x|, one per sign, up to the largest |x|. Zeros are not counted:
// zero is exact in every range.
#include <float.h>
#include <math.h>

#include "cli/progress.h"
#include "cli/quantize.h"

#define BINS 2048
#define LEVELS 128      // per sign
#define ENTROPY_STEP 8  // bins between the ranges that are tried
#define DEFAULT_PERCENT 99.99

static double largest(const rn_cli_quant_source_t* source) {
  return fmax(fabs(source->min), fabs(source->max));
}

static rn_status_t take_limits(rn_cli_quant_source_t* source, const rn_tensor_t* value) {
  const float* x = value->data;
  float min = FLT_MAX, max = -FLT_MAX;
  bool is_good = true;
  for (int64_t i = 0; i < value->count; ++i) {
    min = x[i] < min ? x[i] : min;
    max = x[i] > max ? x[i] : max;
    is_good &= fabsf(x[i]) <= FLT_MAX;
  }
  if (!is_good)
    return rn_invalid_argument("'%.*s' (%s) has NaN or an infinity among its values",
                               RN_STR_ARGS(source->edge.node->name), source->edge.node->op->name);
  if (value->count == 0) return RN_OK;
  source->min = fmin(source->min, min);
  source->max = fmax(source->max, max);
  return RN_OK;
}

static rn_status_t count_values(rn_cli_quant_source_t* source, const rn_tensor_t* value) {
  const float* x = value->data;
  double scale = BINS / largest(source);
  if (!isfinite(scale)) return RN_OK;
  for (int64_t i = 0; i < value->count; ++i) {
    if (x[i] == 0) continue;
    int bin = (int)(fabsf(x[i]) * scale);
    if (bin >= BINS) bin = BINS - 1;
    ++source->bins[(x[i] < 0 ? BINS : 0) + bin];
  }
  return RN_OK;
}

typedef rn_status_t (*rn_cli_quant_take_t)(rn_cli_quant_source_t* source, const rn_tensor_t* value);

// Gives all values of all sources to |take|.
static rn_status_t pass_over(rn_cli_quant_t* q, rn_cli_quant_take_t take, const char* what) {
  size_t count = q->sources.count;
  rn_edge_t* edges = NULL;
  rn_tensor_t* values = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, count, &edges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, count, &values));
  for (size_t s = 0; s < count; ++s) edges[s] = q->sources.items[s].edge;
  rn_cli_progress_t progress = rn_cli_progress(q->cli, what, q->data.count);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < q->data.count; i += q->data.batch) {
    int64_t rest = q->data.count - i;
    status = rn_cli_quant_step(q, &q->plain, edges, (int32_t)count, i,
                               rest < q->data.batch ? rest : q->data.batch, values);
    for (size_t s = 0; s < count; ++s) {
      if (rn_ok(status)) status = take(&q->sources.items[s], &values[s]);
      rn_tensor_clear(&values[s]);
    }
    rn_cli_progress_set(&progress, i);
  }
  rn_cli_progress_end(&progress);
  return status;
}

// The |x| that |part| of the values of one sign do not exceed.
static double percentile(const uint64_t* bins, double top, double part) {
  double total = 0, below = 0;
  for (int i = 0; i < BINS; ++i) total += (double)bins[i];
  for (int i = 0; i < BINS; ++i) {
    below += (double)bins[i];
    if (below >= part * total) return (i + 1) * top / BINS;
  }
  return top;
}

// The divergence from the values, cut off at |bins| bins, to what |levels| levels keep of them.
static double divergence(const uint64_t* counts, int bins, int levels) {
  double beyond = 0, total = 0, sum = 0;
  for (int i = 0; i < BINS; ++i) {
    total += (double)counts[i];
    if (i >= bins) beyond += (double)counts[i];
  }
  for (int level = 0; level < levels; ++level) {
    int begin = level * bins / levels, end = (level + 1) * bins / levels;
    double inside = 0;
    int used = 0;
    for (int i = begin; i < end; ++i) {
      inside += (double)counts[i];
      used += counts[i] != 0;
    }
    for (int i = begin; i < end; ++i) {
      double p = (double)counts[i] + (i == bins - 1 ? beyond : 0);
      if (p == 0) continue;
      // Where a level stands for no value, a small part of one keeps the logarithm finite.
      double kept = counts[i] ? inside / used : 1e-4;
      sum += p / total * log(p / kept * (total - beyond) / total);
    }
  }
  return sum;
}

static double nearest(const uint64_t* counts, double top, int levels) {
  double least = INFINITY;
  int best = BINS;
  for (int bins = levels; bins <= BINS; bins += ENTROPY_STEP) {
    double now = divergence(counts, bins, levels);
    if (!(now < least)) continue;
    least = now;
    best = bins;
  }
  return best * top / BINS;
}

static void cut_entropy(rn_cli_quant_source_t* source, double* low, double* high) {
  uint64_t both[BINS];
  bool has_negative = source->min < 0;
  for (int i = 0; i < BINS; ++i) both[i] = source->bins[i] + source->bins[BINS + i];
  double cut = nearest(both, largest(source), has_negative ? LEVELS : 2 * LEVELS);
  *high = fmin(*high, cut);
  *low = fmax(*low, -cut);
}

static void cut_percentile(rn_cli_quant_source_t* source, double part, double* low, double* high) {
  if (*high > 0) *high = fmin(*high, percentile(source->bins, largest(source), part));
  if (*low < 0) *low = fmax(*low, -percentile(source->bins + BINS, largest(source), part));
}

static void choose(rn_cli_quant_source_t* source, const char* method, double part) {
  double low = fmin(source->min, 0), high = fmax(source->max, 0);
  if (source->bins && largest(source) > 0) {
    if (strcmp(method, "entropy") == 0)
      cut_entropy(source, &low, &high);
    else
      cut_percentile(source, part, &low, &high);
  }
  source->low = (float)low;
  source->high = (float)high;
}

// A value without a range: its layers stay in float.
static void drop_empty(rn_cli_quant_t* q) {
  for (size_t i = 0; i < q->layers.count; ++i) {
    rn_cli_quant_layer_t* layer = &q->layers.items[i];
    if (layer->source < 0) continue;
    const rn_cli_quant_source_t* source = &q->sources.items[layer->source];
    if (source->high - source->low >= FLT_MIN * 256) continue;
    layer->source = -1;
    layer->reason = "its input was zero for all examples";
  }
}

static rn_status_t read_percent(const rn_cli_quant_t* q, double* out) {
  const char* text = rn_cli_text(q->cli, "--percentile");
  *out = DEFAULT_PERCENT;
  if (text && (!rn_str_to_f64(rn_str(text), out) || !(*out > 50 && *out <= 100)))
    return rn_cli_usage(q->cli, "--percentile %s: a number above 50, up to 100", text);
  return RN_OK;
}

rn_status_t rn_cli_quant_calibrate(rn_cli_quant_t* q) {
  const char* method = rn_cli_text(q->cli, "--method");
  double percent;
  if (!method) method = "percentile";
  RN_RETURN_IF_ERROR(read_percent(q, &percent));
  RN_RETURN_IF_ERROR(pass_over(q, take_limits, "examples, for ranges"));
  if (strcmp(method, "minmax") != 0) {
    for (size_t s = 0; s < q->sources.count; ++s)
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, 2 * BINS, &q->sources.items[s].bins));
    RN_RETURN_IF_ERROR(pass_over(q, count_values, "examples, for histograms"));
  }
  for (size_t s = 0; s < q->sources.count; ++s) choose(&q->sources.items[s], method, percent / 100);
  drop_empty(q);
  return RN_OK;
}
