// SdcaOptimizer: steps of stochastic dual coordinate ascent on a linear model with an elastic net,
// as one of several partitions that each see a part of the examples (Ma et al., "Adding vs.
// averaging in distributed primal-dual optimization", 2015). Each visit of an example maximizes the
// dual objective along its coordinate, for weights of which the other partitions change as much.
//
// "adaptive" draws examples by how far their dual variables are from optimal (Csiba et al.,
// "Stochastic dual coordinate ascent with adaptive probabilities", 2015); else each is visited
// once, in a random order. Stock ignores num_inner_iterations, and so does this kernel.
#include <inttypes.h>
#include <math.h>

#include "base/hash.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/cluster/sdca_loss.h"
#include "kernels/cpu/random/philox.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"
#include "tensor/print.h"
#include "tensor/tstring.h"

typedef struct sdca_state_t {
  const rn_sdca_loss_t* loss;
  double l1, l2, partitions;
  int32_t sparse_count, valued_count, dense_count;
  bool is_adaptive;
} sdca_state_t;

// Features of one group. Those of an example are entries [first, last): columns of the weights and,
// unless |values| is NULL, values other than 1. A dense group has all columns for each example.
typedef struct sdca_group_t {
  const float* weights;
  float* deltas;  // what is added to |weights|
  const float* values;
  const int64_t* columns;       // NULL if dense
  const int64_t *first, *last;  // per example; NULL if dense
  int64_t width;                // if dense
} sdca_group_t;

typedef struct sdca_t {
  const sdca_state_t* state;
  sdca_group_t* groups;
  int group_count;
  int64_t example_count;
  const float* weights;
  double *labels, *duals;
} sdca_t;

static rn_status_t sdca_init(const rn_kernel_init_t* init, void* state) {
  sdca_state_t* sdca = state;
  sdca->loss = rn_sdca_loss_named(rn_init_string(init, "loss_type"));
  if (!sdca->loss) return rn_invalid_argument("Unsupported loss type");
  sdca->l1 = (double)rn_init_float(init, "l1");
  sdca->l2 = (double)rn_init_float(init, "l2");
  sdca->partitions = (double)rn_init_int(init, "num_loss_partitions");
  sdca->sparse_count = (int32_t)rn_init_int(init, "num_sparse_features");
  sdca->valued_count = (int32_t)rn_init_int(init, "num_sparse_features_with_values");
  sdca->dense_count = (int32_t)rn_init_int(init, "num_dense_features");
  bool is_new = rn_op_attr_index(init->op, RN_STR("adaptive")) >= 0;
  sdca->is_adaptive = rn_init_bool(init, is_new ? "adaptive" : "adaptative");
  if (sdca->sparse_count + sdca->dense_count == 0)
    return rn_invalid_argument("Requires at least one feature to train.");
  return RN_OK;
}

// The first inputs of the arguments.
enum { EXAMPLES, COLUMNS, VALUES, DENSE, WEIGHTS, LABELS, NAMES, SPARSE_W, DENSE_W, STATE };

static int input_of(const sdca_state_t* s, int argument) {
  const int32_t sizes[] = {s->sparse_count, s->sparse_count, s->valued_count, s->dense_count, 1, 1,
                           s->sparse_count, s->sparse_count, s->dense_count};
  int at = 0;
  for (int i = 0; i < argument; ++i) at += sizes[i];
  return at;
}

// A column's name and its place among the weights.
typedef struct sdca_name_t {
  int64_t name, place;
} sdca_name_t;

static int by_name(const void* a, const void* b) {
  const sdca_name_t *x = a, *y = b;
  if (x->name != y->name) return x->name < y->name ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

static rn_status_t sorted_names(const rn_tensor_t* names, rn_arena_t* arena, sdca_name_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)names->count, out));
  for (int64_t i = 0; i < names->count; ++i)
    (*out)[i] = (sdca_name_t){RN_DATA(names, const int64_t)[i], i};
  qsort(*out, (size_t)names->count, sizeof **out, by_name);
  return RN_OK;
}

// The place of |name|, the last one if there are several; -1 if there is none.
static int64_t place_of(const sdca_name_t* names, int64_t count, int64_t name) {
  int64_t low = 0, high = count;  // the first that is larger
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (names[middle].name <= name)
      low = middle + 1;
    else
      high = middle;
  }
  return low && names[low - 1].name == name ? names[low - 1].place : -1;
}

static rn_status_t mismatched(rn_kernel_ctx_t* ctx, const rn_tensor_t* examples,
                              const rn_tensor_t* columns) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_append(&text, RN_STR("Found mismatched example_indices and feature_indices ["));
  rn_print_values(&text, examples, 3);
  rn_strbuf_append(&text, RN_STR("] vs ["));
  rn_print_values(&text, columns, 3);
  rn_strbuf_append(&text, RN_STR("]"));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Finds the places of the features of sparse group |g| among its weights.
static rn_status_t find_columns(rn_kernel_ctx_t* ctx, int g, int64_t weight_count,
                                rn_arena_t* arena, int64_t* columns) {
  const sdca_state_t* s = ctx->state;
  const rn_tensor_t *given = rn_in(ctx, input_of(s, COLUMNS) + g),
                    *names = rn_in(ctx, input_of(s, NAMES) + g);
  sdca_name_t* sorted = NULL;
  RN_RETURN_IF_ERROR(sorted_names(names, arena, &sorted));
  for (int64_t i = 0; i < given->count; ++i) {
    int64_t name = RN_DATA(given, const int64_t)[i];
    columns[i] = place_of(sorted, names->count, name);
    if (columns[i] < 0 || columns[i] >= weight_count)
      return rn_invalid_argument("Found sparse feature indices out of valid range: %" PRId64, name);
  }
  return RN_OK;
}

// Divides the entries of a sparse group among the examples, in whose order they are.
static rn_status_t split_entries(const rn_tensor_t* examples, int64_t example_count,
                                 const int64_t* columns, int64_t* used_by, int64_t* first,
                                 int64_t* last) {
  const int64_t* owner = RN_DATA(examples, const int64_t);
  int64_t at = 0;
  for (int64_t e = 0; e < example_count; ++e) {
    first[e] = at;
    for (; at < examples->count && owner[at] == e; ++at) {
      if (used_by[columns[at]] == e + 1)
        return rn_invalid_argument("Duplicate index in sparse vector.");
      used_by[columns[at]] = e + 1;
    }
    last[e] = at;
  }
  return RN_OK;
}

static rn_status_t begin_deltas(rn_kernel_ctx_t* ctx, int output, const rn_tensor_t* weights,
                                sdca_group_t* group) {
  rn_tensor_t* deltas = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, output, rn_tensor_shape(weights), &deltas));
  group->weights = weights->data;
  group->deltas = deltas->data;
  if (deltas->count) memset(deltas->data, 0, (size_t)deltas->count * sizeof(float));
  return RN_OK;
}

static rn_status_t begin_sparse(rn_kernel_ctx_t* ctx, int g, int64_t example_count,
                                rn_arena_t* arena, sdca_group_t* group) {
  const sdca_state_t* s = ctx->state;
  const rn_tensor_t *examples = rn_in(ctx, input_of(s, EXAMPLES) + g),
                    *given = rn_in(ctx, input_of(s, COLUMNS) + g),
                    *weights = rn_in(ctx, input_of(s, SPARSE_W) + g);
  int64_t *columns = NULL, *first = NULL, *last = NULL, *used_by = NULL;
  if (examples->count != given->count) return mismatched(ctx, examples, given);
  if (g < s->valued_count) {
    const rn_tensor_t* values = rn_in(ctx, input_of(s, VALUES) + g);
    if (values->count != given->count)
      return rn_invalid_argument("Expected %" PRId64 " sparse feature values but got %" PRId64,
                                 given->count, values->count);
    group->values = values->data;
  }
  RN_RETURN_IF_ERROR(begin_deltas(ctx, 1 + g, weights, group));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)given->count, &columns));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)example_count, &first));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)example_count, &last));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)weights->count, &used_by));
  RN_RETURN_IF_ERROR(find_columns(ctx, g, weights->count, arena, columns));
  group->columns = columns;
  group->first = first;
  group->last = last;
  return split_entries(examples, example_count, columns, used_by, first, last);
}

static rn_status_t begin_dense(rn_kernel_ctx_t* ctx, int g, int64_t example_count,
                               sdca_group_t* group) {
  const sdca_state_t* s = ctx->state;
  const rn_tensor_t *values = rn_in(ctx, input_of(s, DENSE) + g),
                    *weights = rn_in(ctx, input_of(s, DENSE_W) + g);
  if (values->rank != 2)
    return rn_invalid_argument("Dense features at index %d must be rank 2 but is rank %d", g,
                               values->rank);
  if (rn_tensor_dim(values, 0) < example_count || weights->count < rn_tensor_dim(values, 1))
    return rn_invalid_argument(
        "Dense features at index %d have shape %s, which does not fit %" PRId64
        " examples and %" PRId64 " weights",
        g, rn_text_of(values).text, example_count, weights->count);
  group->values = values->data;
  group->width = rn_tensor_dim(values, 1);
  return begin_deltas(ctx, 1 + s->sparse_count + g, weights, group);
}

static rn_status_t check_examples(rn_kernel_ctx_t* ctx, int64_t* out_count) {
  const sdca_state_t* s = ctx->state;
  const rn_tensor_t *weights = rn_in(ctx, input_of(s, WEIGHTS)),
                    *labels = rn_in(ctx, input_of(s, LABELS)),
                    *state = rn_in(ctx, input_of(s, STATE));
  *out_count = weights->count;
  if (labels->count != weights->count)
    return rn_invalid_argument("Expected %" PRId64 " example labels but got %" PRId64,
                               weights->count, labels->count);
  if (state->rank != 2)
    return rn_invalid_argument("example_state_data must be rank 2 but is rank %d", state->rank);
  if (rn_tensor_dim(state, 0) != weights->count || rn_tensor_dim(state, 1) != 4)
    return rn_invalid_argument("Expected shape [%" PRId64 ",4] for example_state_data, got %s",
                               weights->count, rn_text_of(state).text);
  return RN_OK;
}

// The weight that the elastic net leaves of |weight|.
static double shrunk(const sdca_state_t* s, double weight) {
  double rest = fmax(fabs(weight) - s->l1 / s->l2, 0);
  return weight < 0 ? -rest : rest;
}

typedef struct sdca_products_t {
  double now;     // w·x
  double square;  // x·x
} sdca_products_t;

static int64_t entries_of(const sdca_group_t* group, int64_t example, int64_t* out_first) {
  *out_first = group->columns ? group->first[example] : example * group->width;
  return group->columns ? group->last[example] - *out_first : group->width;
}

static sdca_products_t products_of(const sdca_t* sdca, int64_t example) {
  sdca_products_t out = {0};
  for (int g = 0; g < sdca->group_count; ++g) {
    const sdca_group_t* group = &sdca->groups[g];
    int64_t first, count = entries_of(group, example, &first);
    for (int64_t i = 0; i < count; ++i) {
      int64_t column = group->columns ? group->columns[first + i] : i;
      double value = group->values ? (double)group->values[first + i] : 1;
      double weight = (double)group->weights[column];
      double moved = weight + (double)group->deltas[column] * sdca->state->partitions;
      out.now += value * shrunk(sdca->state, moved);
      out.square += value * value;
    }
  }
  return out;
}

static void add_to_weights(sdca_t* sdca, int64_t example, double step) {
  for (int g = 0; g < sdca->group_count; ++g) {
    const sdca_group_t* group = &sdca->groups[g];
    int64_t first, count = entries_of(group, example, &first);
    for (int64_t i = 0; i < count; ++i) {
      int64_t column = group->columns ? group->columns[first + i] : i;
      double value = group->values ? (double)group->values[first + i] : 1;
      group->deltas[column] = (float)((double)group->deltas[column] + step * value);
    }
  }
}

// The point of |example|, with the weights as they are.
static rn_sdca_point_t point_of(const sdca_t* sdca, int64_t example, sdca_products_t* out) {
  const sdca_state_t* s = sdca->state;
  *out = products_of(sdca, example);
  double weight = (double)sdca->weights[example];
  return (rn_sdca_point_t){.label = sdca->labels[example],
                           .weight = weight,
                           .dual = sdca->duals[example],
                           .product = out->now,
                           .curvature = s->partitions * weight * out->square / s->l2};
}

static void visit(sdca_t* sdca, int64_t example) {
  sdca_products_t unused;
  rn_sdca_point_t point = point_of(sdca, example, &unused);
  double dual = sdca->state->loss->best_dual(&point);
  add_to_weights(sdca, example, (dual - point.dual) * point.weight / sdca->state->l2);
  sdca->duals[example] = dual;
}

// Reads the examples, and writes their losses at the beginning of the step to |rows|.
static rn_status_t measure(sdca_t* sdca, const float* labels, float* rows) {
  const rn_sdca_loss_t* loss = sdca->state->loss;
  for (int64_t e = 0; e < sdca->example_count; ++e) {
    sdca_products_t unused;
    sdca->duals[e] = (double)rows[4 * e];
    RN_RETURN_IF_ERROR(rn_sdca_label(loss, labels[e], &sdca->labels[e]));
    rn_sdca_point_t point = point_of(sdca, e, &unused);
    rows[4 * e + 1] = (float)(loss->primal(point.label, point.product) * point.weight);
    rows[4 * e + 2] = (float)(loss->conjugate(point.label, point.dual) * point.weight);
    rows[4 * e + 3] = sdca->weights[e];
  }
  return RN_OK;
}

static uint64_t draw_below(rn_philox_single_t* words, uint64_t n) {
  uint64_t high = rn_philox_word(words);
  return (high << 32 | rn_philox_word(words)) % n;
}

static void visit_shuffled(sdca_t* sdca, int64_t* order, rn_philox_single_t* words) {
  for (int64_t i = 0; i < sdca->example_count; ++i) {
    int64_t j = (int64_t)draw_below(words, (uint64_t)i + 1);
    order[i] = order[j];
    order[j] = i;
  }
  for (int64_t i = 0; i < sdca->example_count; ++i) visit(sdca, order[i]);
}

// Draws as many examples as there are, with probabilities that grow with the distance of their dual
// variables from the loss's derivative. |sums| is scratch.
static void visit_drawn(sdca_t* sdca, double* sums, rn_philox_single_t* words) {
  const sdca_state_t* s = sdca->state;
  int64_t count = sdca->example_count;
  double sum = 0;
  for (int64_t e = 0; e < count; ++e) {
    sdca_products_t products;
    rn_sdca_point_t point = point_of(sdca, e, &products);
    double gap = point.dual + s->loss->derivative(point.label, point.product);
    double odds = fabs(gap) * point.weight * sqrt(products.square + s->l2);
    sums[e] = sum += odds > 0 && isfinite(odds) ? odds : 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    double at = rn_words_to_double(rn_philox_word(words), rn_philox_word(words)) * sum;
    int64_t low = 0, high = count - 1;  // the first sum that is larger
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (sums[middle] > at)
        high = middle;
      else
        low = middle + 1;
    }
    visit(sdca, low);
  }
}

static rn_status_t train(rn_kernel_ctx_t* ctx, sdca_t* sdca, rn_arena_t* arena) {
  const rn_env_t* env = ctx->step->env;
  rn_philox_single_t words =
      rn_philox_single(rn_philox(env->random(env->self), env->random(env->self)));
  int64_t* order = NULL;
  double* sums = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)sdca->example_count, &order));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)sdca->example_count, &sums));
  if (sdca->state->is_adaptive)
    visit_drawn(sdca, sums, &words);
  else
    visit_shuffled(sdca, order, &words);
  return RN_OK;
}

static rn_status_t begin_groups(rn_kernel_ctx_t* ctx, sdca_t* sdca, rn_arena_t* arena) {
  const sdca_state_t* s = ctx->state;
  sdca->group_count = s->sparse_count + s->dense_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)sdca->group_count, &sdca->groups));
  for (int g = 0; g < s->sparse_count; ++g)
    RN_RETURN_IF_ERROR(begin_sparse(ctx, g, sdca->example_count, arena, &sdca->groups[g]));
  for (int g = 0; g < s->dense_count; ++g)
    RN_RETURN_IF_ERROR(
        begin_dense(ctx, g, sdca->example_count, &sdca->groups[s->sparse_count + g]));
  return RN_OK;
}

static rn_status_t sdca_run(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const sdca_state_t* s = ctx->state;
  const rn_tensor_t* given = rn_in(ctx, input_of(s, STATE));
  rn_tensor_t* rows = NULL;
  sdca_t sdca = {.state = s};
  RN_RETURN_IF_ERROR(check_examples(ctx, &sdca.example_count));
  sdca.weights = rn_in(ctx, input_of(s, WEIGHTS))->data;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)sdca.example_count, &sdca.labels));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)sdca.example_count, &sdca.duals));
  RN_RETURN_IF_ERROR(begin_groups(ctx, &sdca, arena));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(given), &rows));
  if (given->count) memcpy(rows->data, given->data, (size_t)given->count * sizeof(float));
  RN_RETURN_IF_ERROR(measure(&sdca, rn_in(ctx, input_of(s, LABELS))->data, rows->data));
  RN_RETURN_IF_ERROR(train(ctx, &sdca, arena));
  for (int64_t e = 0; e < sdca.example_count; ++e)
    RN_DATA(rows, float)[4 * e] = (float)sdca.duals[e];
  return RN_OK;
}

static rn_status_t sdca_compute(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, sdca_run); }

// SdcaFprint: two integers per string.
static rn_status_t fprint_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->rank != 1)
    return rn_invalid_argument("Input must be a vector, got shape %s", rn_text_of(input).text);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, (int64_t[]){input->count, 2}}, &out));
  for (int64_t i = 0; i < input->count; ++i)
    rn_farm_fingerprint128(rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]),
                           &RN_DATA(out, uint64_t)[2 * i]);
  return RN_OK;
}

#define OPTIMIZER(name)                                                                            \
  {                                                                                                \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(sdca_state_t), \
    .init = sdca_init, .compute = sdca_compute                                                     \
  }
static const rn_kernel_def_t rows[] = {
    OPTIMIZER("SdcaOptimizer"),
    OPTIMIZER("SdcaOptimizerV2"),
    {.op = "SdcaFprint", .device = "CPU", .compute = fprint_compute},
};
RN_KERNEL_FAMILY(cpu_sdca, rows);
