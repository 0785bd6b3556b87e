// See batch_size.h.
//
// The cost of a batch of n rows is taken to be fixed + slope * n: a line through the mean costs of
// ranges of sizes. If batches of a size become slower or faster, the model did, and so all ranges
// are scaled with it: a model that suddenly takes four times as long is understood after three
// batches, although most sizes have not been seen since.
#include "serve/model/batch_size.h"

#include <math.h>

#define DEFAULT_MAX 65536
#define RANGES 40  // of sizes: two per power of two, up to a million rows
// Part of the objective that a batch may take. A request that just missed a batch waits for it and
// then runs in the next: with a half, both fit. Somewhat more than a half costs nothing below
// capacity, where batches stay smaller, and answers more when requests are refused.
#define BUDGET 0.6
// A batch that takes this part of the objective was too large: nothing that waited for it is in
// time.
#define TOO_LONG 0.9
#define RANGE_GAIN 0.125  // weight of a new observation in the mean of its range
#define RANGE_KNOWN 4     // observations, before a mean says whether the model has changed
// An observation off by this factor is an outlier, and counts as this; STEP_COUNT of them on the
// same side are a step, and count in full.
#define STEP_FACTOR 1.5
#define STEP_COUNT 3
// Smaller changes show in the mean deviation.
#define BIAS_GAIN 0.125
#define BIAS_MAX 0.15
// A batch may take this many times as long as one row alone, in any case.
#define LEAST_BUDGET 1.5
#define SPREAD_GAIN 0.05
// A batch has no more rows than give all but this part of the best throughput: the rest would cost
// every request in it more time than it is worth.
#define SPARED 0.02
#define PROBE 16  // batches, of which one may be twice as large, to see whether it is still so
// The margin grows with each batch that takes too long, and falls with each that does not: it
// settles where one in a hundred does.
#define MARGIN_MAX 4.0
#define MARGIN_UP 1.15
#define MARGIN_DOWN 0.0014

typedef struct batch_range_t {
  double count;  // observations, up to 16
  double rows;   // mean
  double cost;   // mean, in nanoseconds
} batch_range_t;

struct rn_batch_size_t {
  rn_allocator_t allocator;
  rn_batch_size_options_t options;
  int64_t limit;
  double fixed, slope;  // 0: nothing was observed
  double bias, spread;  // of the logarithm of the cost, from its range: mean and mean square
  double margin;
  int64_t trusted;  // the largest size that kept to the budget, lately
  int known;        // ranges with observations
  int turn;         // counts batches up to PROBE
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
  size->margin = 1;
  size->trusted = 1;
  *out = size;
  return RN_OK;
}

void rn_batch_size_destroy(rn_batch_size_t* size) {
  if (size) RN_FREE(size->allocator, size);
}

int64_t rn_batch_size_limit(const rn_batch_size_t* size) { return size->limit; }

static double expect(const rn_batch_size_t* size, double rows) {
  return size->fixed + size->slope * rows;
}

int64_t rn_batch_size_expect(const rn_batch_size_t* size, int64_t rows) {
  double ns = expect(size, (double)rows);
  return ns < 9e18 ? (int64_t)ns : INT64_MAX;
}

int64_t rn_batch_size_expect_most(const rn_batch_size_t* size, int64_t rows) {
  double ns = expect(size, (double)rows) * exp(3 * sqrt(size->spread));
  return ns < 9e18 ? (int64_t)ns : INT64_MAX;
}

// The largest size whose cost, times |margin|, is within |budget|.
static int64_t fitting_size(const rn_batch_size_t* size, double margin, double budget) {
  double room = budget / margin - size->fixed;
  if (room < size->slope) return 1;
  if (size->slope * (double)size->options.max <= room) return size->options.max;
  return (int64_t)(room / size->slope);
}

int64_t rn_batch_size_within(const rn_batch_size_t* size, int64_t ns) {
  if (!size->known) return 1;
  int64_t rows = fitting_size(size, exp(3 * sqrt(size->spread)), (double)ns);
  return rows < size->limit ? rows : size->limit;
}

int64_t rn_batch_size_fixed(const rn_batch_size_t* size) {
  // One size cannot tell fixed cost from slope: assume half for each.
  return size->known < 2 ? rn_batch_size_expect(size, 1) / 2 : rn_batch_size_expect(size, 0);
}

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
  size->known = used;
}

// By how much the model has changed, after a batch that took |factor| times as long as others of
// its range.
static double change_of(rn_batch_size_t* size, double factor) {
  int side = factor > STEP_FACTOR ? 1 : factor < 1 / STEP_FACTOR ? -1 : 0;
  if (!side || side * size->off_count < 0) size->off_count = 0;
  if (!size->off_count) size->off_sum = 0;
  double off = side ? side * log(STEP_FACTOR) : log(factor), change = 0;
  size->bias += BIAS_GAIN * (off - size->bias);
  if (side) {
    size->off_count += side;
    size->off_sum += log(factor);
    if (side * size->off_count >= STEP_COUNT) change = size->off_sum / STEP_COUNT;
  } else {
    size->spread += SPREAD_GAIN * (off * off - size->spread);
    if (fabs(size->bias) > BIAS_MAX) change = size->bias;
  }
  if (change != 0) {
    size->off_count = 0;
    size->bias = 0;
  }
  return exp(change);
}

static int range_of(int64_t rows) {
  int power = 63 - __builtin_clzll((uint64_t)rows);
  bool is_upper = power && (rows >> (power - 1) & 1);
  int range = 2 * power + is_upper;
  return range < RANGES ? range : RANGES - 1;
}

static void learn(rn_batch_size_t* size, int64_t rows, double ns) {
  batch_range_t* range = &size->ranges[range_of(rows)];
  double change = range->count < RANGE_KNOWN ? 1 : change_of(size, ns / range->cost);
  for (int i = 0; change != 1 && i < RANGES; ++i) size->ranges[i].cost *= change;
  double gain = fmax(RANGE_GAIN, 1 / (range->count + 1));
  if (range->count) ns = fmin(fmax(ns, range->cost / STEP_FACTOR), range->cost * STEP_FACTOR);
  range->rows += gain * ((double)rows - range->rows);
  range->cost += gain * (ns - range->cost);
  range->count = fmin(range->count + 1, 16);
  fit(size);
}

// The smallest size that is nearly as efficient as |limit|: cost per row is fixed / n + slope.
static int64_t enough_rows(const rn_batch_size_t* size, int64_t limit) {
  // Two neighbouring sizes say little about much larger ones.
  if (size->known < (limit < 4 ? 2 : 3)) return limit;
  double per_row = SPARED * size->slope + (1 + SPARED) * size->fixed / (double)limit;
  double rows = per_row > 0 ? ceil(size->fixed / per_row) : (double)limit;
  return rows < 1 ? 1 : rows < (double)limit ? (int64_t)rows : limit;
}

static void adapt(rn_batch_size_t* size, int64_t rows, double ns) {
  double budget = BUDGET * (double)size->options.objective_ns;
  bool is_outlier = ns > STEP_FACTOR * expect(size, (double)rows);
  // If not even one row fits, the objective is lost, but the throughput need not be.
  double least = LEAST_BUDGET * expect(size, 1);
  bool is_lost = budget < least;
  if (is_lost) budget = least;
  if (ns > budget * (TOO_LONG / BUDGET) && rows > 1) {
    // A batch that took much longer than its size explains says nothing about sizes.
    if (!is_outlier) size->margin = fmin(size->margin * MARGIN_UP, MARGIN_MAX);
    if (!is_outlier && rows <= size->trusted) size->trusted = rows / 2;
  } else {
    size->margin -= MARGIN_DOWN * (size->margin - 1);
    if (ns <= budget && rows > size->trusted) size->trusted = rows;
  }
  int64_t limit = fitting_size(size, size->margin * exp(sqrt(size->spread)), budget);
  int64_t most = size->trusted <= size->options.max / 2 ? 2 * size->trusted : size->options.max;
  int64_t enough = enough_rows(size, limit);
  if (++size->turn >= PROBE) {
    size->turn = 0;
    if (enough <= limit / 2) enough *= 2;
    // Whether a second row would cost anything shows only with two.
    if (is_lost && size->known < 2) enough = limit = 2;
  }
  if (most < limit) limit = most;
  size->limit = enough < limit ? enough : limit;
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
