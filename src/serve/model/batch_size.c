// See batch_size.h.
//
// The cost of a batch of n rows is level * (fixed + slope * n). The line in the parentheses is
// fitted to the mean cost of each range of sizes, and changes slowly; |level| follows the last
// batches, so that a model that suddenly takes four times as long is understood after three of
// them, although most sizes have not been seen since.
#include "serve/model/batch_size.h"

#include <math.h>

#define DEFAULT_MAX 65536
#define RANGES 40  // of sizes: two per power of two, up to a million rows
// Part of the objective that a batch may take. A request that just missed a batch waits for it and
// then runs in the next: with a half, both fit. Somewhat more than a half costs nothing below
// capacity, where batches stay smaller, and answers more when requests are refused.
#define BUDGET 0.55
#define RANGE_GAIN 0.125  // weight of a new observation in the mean of its range
#define LEVEL_GAIN 0.25   // the same for the level
// An observation off by this factor is an outlier, and counts as this; STEP_COUNT of them on the
// same side are a step, and count in full.
#define STEP_FACTOR 1.5
#define STEP_COUNT 3
// The margin above the mean grows with each batch over the budget, and falls with each below: it
// stands still where one in a hundred is over.
#define MARGIN_MIN 1.04
#define MARGIN_MAX 4.0
#define MARGIN_UP 1.15
#define MARGIN_DOWN 0.0014

typedef struct batch_range_t {
  double count;  // observations, up to 16
  double rows;   // mean
  double cost;   // mean, in units of the level
} batch_range_t;

struct rn_batch_size_t {
  rn_allocator_t allocator;
  rn_batch_size_options_t options;
  int64_t limit;
  double level, fixed, slope;  // level 0: nothing was observed
  double margin;
  int64_t trusted;  // the largest size that kept to the budget, lately
  int off_count;    // consecutive outliers; > 0: slow ones, < 0: fast ones
  double off_sum;   // of the logarithms of their factors
  batch_range_t ranges[RANGES];
};

rn_status_t rn_batch_size_create(const rn_batch_size_options_t* options, rn_allocator_t allocator,
                                 rn_batch_size_t** out) {
  rn_batch_size_t* size = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &size));
  size->allocator = allocator;
  size->options = *options;
  if (size->options.max < 1) size->options.max = DEFAULT_MAX;
  if (size->options.objective_ns < 1) size->options.objective_ns = INT64_MAX;
  size->limit = options->policy == RN_BATCH_FIXED ? size->options.max : 1;
  size->margin = MARGIN_MIN;
  size->trusted = 1;
  *out = size;
  return RN_OK;
}

void rn_batch_size_destroy(rn_batch_size_t* size) {
  if (size) RN_FREE(size->allocator, size);
}

int64_t rn_batch_size_limit(const rn_batch_size_t* size) { return size->limit; }

static double expect(const rn_batch_size_t* size, double rows) {
  return size->level * (size->fixed + size->slope * rows);
}

int64_t rn_batch_size_expect(const rn_batch_size_t* size, int64_t rows) {
  double ns = expect(size, (double)rows);
  return ns < 9e18 ? (int64_t)ns : INT64_MAX;
}

int64_t rn_batch_size_fixed(const rn_batch_size_t* size) { return rn_batch_size_expect(size, 0); }

// Fits the line to the ranges, with equal weight to equal relative errors, as small batches matter
// as much as large ones.
static void fit(rn_batch_size_t* size) {
  double w = 0, wn = 0, wnn = 0, wc = 0, wnc = 0;
  int used = 0;
  for (int i = 0; i < RANGES; ++i) {
    const batch_range_t* range = &size->ranges[i];
    if (!range->count) continue;
    double weight = range->count / (range->cost * range->cost);
    w += weight;
    wn += weight * range->rows;
    wnn += weight * range->rows * range->rows;
    wc += weight * range->cost;
    wnc += weight * range->rows * range->cost;
    ++used;
  }
  double determinant = w * wnn - wn * wn;
  // One size tells nothing about the others: assume the worst for larger ones.
  double slope = used > 1 && determinant > 0 ? (w * wnc - wn * wc) / determinant : wnc / wnn;
  double fixed = (wc - slope * wn) / w;
  if (used == 1 || fixed < 0) {
    fixed = 0;
    slope = wnc / wnn;
  } else if (slope < 0) {
    slope = 0;
    fixed = wc / w;
  }
  size->fixed = fixed;
  size->slope = slope;
}

// How much to change the level by, after an observation |factor| times as large as expected.
static double level_change(rn_batch_size_t* size, double factor) {
  int side = factor > STEP_FACTOR ? 1 : factor < 1 / STEP_FACTOR ? -1 : 0;
  if (!side || side * size->off_count < 0) size->off_count = 0;
  if (!size->off_count) size->off_sum = 0;
  if (!side) return exp(LEVEL_GAIN * log(factor));
  size->off_count += side;
  size->off_sum += log(factor);
  if (side * size->off_count < STEP_COUNT) return pow(STEP_FACTOR, LEVEL_GAIN * side);
  factor = exp(size->off_sum / (side * size->off_count));
  size->off_count = 0;
  return factor;
}

static int range_of(int64_t rows) {
  int power = 63 - __builtin_clzll((uint64_t)rows);
  bool is_upper = power && (rows >> (power - 1) & 1);
  int range = 2 * power + is_upper;
  return range < RANGES ? range : RANGES - 1;
}

static void learn(rn_batch_size_t* size, int64_t rows, double ns) {
  if (size->level == 0) {
    size->level = 1;
    size->slope = ns / (double)rows;
  } else {
    batch_range_t* known = &size->ranges[range_of(rows)];
    // The first observation in a range is about the line, not about the level.
    if (known->count) size->level *= level_change(size, ns / expect(size, (double)rows));
  }
  batch_range_t* range = &size->ranges[range_of(rows)];
  double gain = range->count ? fmax(RANGE_GAIN, 1 / (range->count + 1)) : 1;
  double cost = ns / size->level;
  if (range->count) cost = fmin(fmax(cost, range->cost / STEP_FACTOR), range->cost * STEP_FACTOR);
  range->rows += gain * ((double)rows - range->rows);
  range->cost += gain * (cost - range->cost);
  range->count = fmin(range->count + 1, 16);
  fit(size);
}

// The largest size whose cost, with the margin, is within the budget.
static int64_t fitting_size(const rn_batch_size_t* size, double budget) {
  double room = budget / (size->margin * size->level) - size->fixed;
  if (room < size->slope) return 1;
  if (size->slope * (double)size->options.max <= room) return size->options.max;
  return (int64_t)(room / size->slope);
}

static void adapt(rn_batch_size_t* size, int64_t rows, double ns) {
  double budget = BUDGET * (double)size->options.objective_ns;
  if (ns > budget) {
    size->margin = fmin(size->margin * MARGIN_UP, MARGIN_MAX);
    if (rows <= size->trusted) size->trusted = rows / 2 > 1 ? rows / 2 : 1;
  } else {
    size->margin -= MARGIN_DOWN * (size->margin - MARGIN_MIN);
    if (rows > size->trusted) size->trusted = rows;
  }
  int64_t limit = fitting_size(size, budget);
  int64_t most = size->trusted <= size->options.max / 2 ? 2 * size->trusted : size->options.max;
  size->limit = limit < most ? limit : most;
}

// Clipper's policy. Only a full batch shows that the limit is too low.
static void adapt_aimd(rn_batch_size_t* size, int64_t rows, double ns) {
  double objective = (double)size->options.objective_ns;
  if (ns >= objective) {
    size->limit = size->limit * 9 / 10 > 1 ? size->limit * 9 / 10 : 1;
  } else if (ns < 0.9 * objective && rows >= size->limit) {
    size->limit = size->limit + 2 < size->options.max ? size->limit + 2 : size->options.max;
  }
}

void rn_batch_size_observe(rn_batch_size_t* size, int64_t rows, int64_t service_ns) {
  if (rows < 1) return;
  double ns = service_ns > 1 ? (double)service_ns : 1;
  learn(size, rows, ns);
  if (size->options.policy == RN_BATCH_LEARN) adapt(size, rows, ns);
  if (size->options.policy == RN_BATCH_AIMD) adapt_aimd(size, rows, ns);
}
