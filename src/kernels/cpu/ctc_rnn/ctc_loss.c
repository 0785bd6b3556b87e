// CTC loss (Graves et al., 2006): the negative log probability of a label sequence, summed over all
// its alignments, and the gradient.
#include "kernels/cpu/ctc_rnn/ctc_loss.h"

#include <float.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/ctc_rnn/ctc.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_ctc_init(const rn_kernel_init_t* init, void* state) {
  rn_ctc_t* ctc = state;
  ctc->collapses = rn_init_bool(init, "preprocess_collapse_repeated");
  ctc->merges = rn_init_bool(init, "ctc_merge_repeated");
  ctc->ignores = rn_init_bool(init, "ignore_longer_outputs_than_inputs");
  ctc->blank_first = rn_str_ends_with(rn_str(init->op->name), RN_STR("V2"));
  return RN_OK;
}

typedef struct ctc_loss_job_t {
  rn_ctc_loss_t in;
  rn_tensor_t *loss, *gradient;
  double* scratch;  // |room| numbers per sequence
  int64_t room;
} ctc_loss_job_t;

// One sequence: the labels with blanks before, between and after them, and tables by label and
// time.
typedef struct paths_t {
  const ctc_loss_job_t* job;
  const int32_t* labels;
  int64_t count, time;   // count: labels and blanks
  double* y;             // time x classes: probabilities
  double *alpha, *beta;  // time x count
} paths_t;

static inline int64_t class_at(const paths_t* p, int64_t u) {
  return u % 2 ? p->labels[u / 2] : p->job->in.blank;
}
static inline double log_y(const paths_t* p, int64_t t, int64_t u) {
  return log(p->y[t * p->job->in.classes + class_at(p, u)]);
}
// Whether a path may stay at |u|, and whether it may skip from |u| to |u| + 2.
static inline bool may_stay(const paths_t* p, int64_t u) {
  return p->job->in.ctc->merges || !(u % 2);
}
static inline bool may_jump(const paths_t* p, int64_t u) {
  return u % 2 && !(p->job->in.ctc->merges && class_at(p, u) == class_at(p, u + 2));
}

static void softmax_row(const rn_tensor_t* inputs, int64_t first, int64_t classes, double* y) {
  double largest = -DBL_MAX, sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    y[c] = inputs->dtype == RN_FLOAT ? (double)RN_DATA(inputs, const float)[first + c]
                                     : RN_DATA(inputs, const double)[first + c];
    if (y[c] > largest) largest = y[c];
  }
  for (int64_t c = 0; c < classes; ++c) y[c] -= largest;
  rn_vector_run(RN_VECTOR_EXP, RN_DOUBLE, y, 1, NULL, 0, y, classes);
  for (int64_t c = 0; c < classes; ++c) sum += y[c];
  for (int64_t c = 0; c < classes; ++c) y[c] /= sum;
}

static void go_forward(paths_t* p) {
  for (int64_t t = 0; t < p->time; ++t) {
    double* now = p->alpha + t * p->count;
    for (int64_t u = 0; u < p->count; ++u) {
      double sum = RN_CTC_NONE;
      if (t == 0) {
        sum = u < 2 ? 0 : RN_CTC_NONE;
      } else {
        const double* before = now - p->count;
        if (may_stay(p, u)) sum = before[u];
        if (u > 0) sum = rn_ctc_log_add(sum, before[u - 1]);
        if (u > 1 && may_jump(p, u - 2)) sum = rn_ctc_log_add(sum, before[u - 2]);
      }
      now[u] = sum == RN_CTC_NONE ? RN_CTC_NONE : sum + log_y(p, t, u);
    }
  }
}

static void go_back(paths_t* p) {
  for (int64_t t = p->time - 1; t >= 0; --t) {
    double* now = p->beta + t * p->count;
    for (int64_t u = 0; u < p->count; ++u) {
      if (t == p->time - 1) {
        now[u] = u >= p->count - 2 ? 0 : RN_CTC_NONE;
        continue;
      }
      const double* after = now + p->count;
      double sum = may_stay(p, u) ? after[u] + log_y(p, t + 1, u) : RN_CTC_NONE;
      if (u + 1 < p->count) sum = rn_ctc_log_add(sum, after[u + 1] + log_y(p, t + 1, u + 1));
      if (u + 2 < p->count && may_jump(p, u))
        sum = rn_ctc_log_add(sum, after[u + 2] + log_y(p, t + 1, u + 2));
      now[u] = sum;
    }
  }
}

static void store(rn_tensor_t* tensor, int64_t i, double value) {
  if (tensor->dtype == RN_FLOAT)
    RN_DATA(tensor, float)[i] = (float)value;
  else
    RN_DATA(tensor, double)[i] = value;
}

// The gradient: y minus the probability share of the paths that are in each class at that time.
static void store_gradient(const paths_t* p, int64_t b, double total, double* shares) {
  const ctc_loss_job_t* job = p->job;
  for (int64_t t = 0; t < p->time; ++t) {
    for (int64_t c = 0; c < job->in.classes; ++c) shares[c] = RN_CTC_NONE;
    for (int64_t u = 0; u < p->count && total != RN_CTC_NONE; ++u) {
      double* share = &shares[class_at(p, u)];
      *share = rn_ctc_log_add(*share, p->alpha[t * p->count + u] + p->beta[t * p->count + u]);
    }
    int64_t first = (t * job->in.batch + b) * job->in.classes;
    for (int64_t c = 0; c < job->in.classes; ++c) {
      double share = shares[c] == RN_CTC_NONE && !isnan(total) ? 0 : exp(shares[c] - total);
      store(job->gradient, first + c, p->y[t * job->in.classes + c] - share);
    }
  }
}

static void one_sequence(const ctc_loss_job_t* job, int64_t b) {
  int64_t labels = job->in.labels.begin[b + 1] - job->in.labels.begin[b];
  double* scratch = job->scratch + b * job->room;
  paths_t p = {.job = job,
               .labels = job->in.labels.values + job->in.labels.begin[b],
               .count = 2 * labels + 1,
               .time = rn_int_at(job->in.lengths, b)};
  if (!rn_ctc_has_loss(p.time, job->in.labels.given[b])) return;
  p.y = scratch;
  p.alpha = p.y + job->in.time * job->in.classes;
  p.beta = p.alpha + p.time * p.count;
  double* shares = p.beta + p.time * p.count;
  for (int64_t t = 0; t < p.time; ++t)
    softmax_row(job->in.inputs, (t * job->in.batch + b) * job->in.classes, job->in.classes,
                p.y + t * job->in.classes);
  go_forward(&p);
  go_back(&p);
  double total = RN_CTC_NONE;
  for (int64_t u = 0; u < p.count; ++u) total = rn_ctc_log_add(total, p.alpha[u] + p.beta[u]);
  store(job->loss, b, -total);
  store_gradient(&p, b, total, shares);
}

static void sequences(void* arg, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; ++b) one_sequence(arg, b);
}

rn_status_t rn_ctc_loss_read(const rn_kernel_ctx_t* ctx, rn_ctc_loss_t* job) {
  const rn_tensor_t *indices = rn_in(ctx, 1), *values = rn_in(ctx, 2);
  job->ctc = ctx->state;
  job->inputs = rn_in(ctx, 0);
  job->lengths = rn_in(ctx, 3);
  if (job->inputs->rank != 3) return rn_invalid_argument("inputs is not a 3-Tensor");
  if (job->lengths->rank != 1) return rn_invalid_argument("sequence_length is not a vector");
  if (indices->rank != 2) return rn_invalid_argument("labels_indices is not a matrix");
  if (rn_tensor_dim(indices, 1) > 1 && rn_tensor_dim(indices, 1) != 2)
    return rn_invalid_argument("Order length must be SparseTensor rank.");
  if (values->rank != 1) return rn_invalid_argument("labels_values is not a vector");
  job->time = rn_tensor_dim(job->inputs, 0);
  job->batch = rn_tensor_dim(job->inputs, 1);
  job->classes = rn_tensor_dim(job->inputs, 2);
  if (job->time == 0)
    return rn_invalid_argument("Max time or first dimension of input cannot be 0.");
  if (job->batch == 0) return rn_invalid_argument("batch_size must not be 0");
  if (job->classes < 1 || job->classes > INT32_MAX)
    return rn_invalid_argument("num_classes must be positive, got %lld", (long long)job->classes);
  if (job->lengths->count != job->batch)
    return rn_invalid_argument(
        "len(sequence_length) != batch_size.  len(sequence_length):  %lld batch_size: %lld",
        (long long)job->lengths->count, (long long)job->batch);
  if (rn_tensor_dim(indices, 0) != values->count || rn_tensor_dim(indices, 1) != 2)
    return rn_invalid_argument(
        "labels_indices and labels_values must contain the same number of rows, but saw shapes: %s "
        "vs. %s",
        rn_text_of(indices).text, rn_text_of(values).text);
  for (int64_t b = 0; b < job->batch; ++b) {
    int64_t length = rn_int_at(job->lengths, b);
    if (length > job->time)
      return rn_invalid_argument("sequence_length(%lld) <= %lld", (long long)b,
                                 (long long)job->time);
    if (length < 0) return rn_invalid_argument("seq_len(%lld) < 0", (long long)b);
  }
  job->blank = job->ctc->blank_first ? 0 : job->classes - 1;
  return RN_OK;
}

// Checks that labels are sorted by sequence and position.
static rn_status_t check_order(const rn_tensor_t* indices, int64_t batch, int64_t columns) {
  const int64_t* at = RN_DATA(indices, const int64_t);
  for (int64_t i = 0; i < indices->count / 2; ++i) {
    int64_t b = at[2 * i], n = at[2 * i + 1];
    if (b < 0 || b >= batch || n < 0)
      return rn_invalid_argument(
          "label SparseTensor is not valid: indices[%lld] = [%lld,%lld] is out of bounds: need 0 "
          "<= "
          "index < [%lld,%lld]",
          (long long)i, (long long)b, (long long)n, (long long)batch, (long long)columns);
    if (i && (b < at[2 * i - 2] || (b == at[2 * i - 2] && n <= at[2 * i - 1])))
      return rn_invalid_argument(
          "label SparseTensor is not valid: indices[%lld] = [%lld,%lld] is %s", (long long)i,
          (long long)b, (long long)n,
          b == at[2 * i - 2] && n == at[2 * i - 1] ? "repeated" : "out of order");
  }
  return RN_OK;
}

static void print_labels(rn_strbuf_t* text, const int32_t* labels, int64_t count) {
  for (int64_t i = 0; i < count; ++i) rn_strbuf_printf(text, i ? ",%d" : "%d", labels[i]);
}

// The error for labels [first, i] of sequence |b|: a negative label, or one after the end marker.
static rn_status_t bad_label(const rn_kernel_ctx_t* ctx, const rn_ctc_loss_t* job,
                             const rn_tensor_t* indices, const int32_t* labels, int64_t b,
                             int64_t first, int64_t kept, int64_t made, bool is_negative) {
  int64_t end = first;
  while (end < indices->count / 2 && RN_DATA(indices, const int64_t)[2 * end] == b) ++end;
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  if (is_negative)
    rn_strbuf_printf(&text,
                     "All labels must be nonnegative integers, batch: %lld labels: ", (long long)b);
  else
    rn_strbuf_printf(&text,
                     "Saw a non-null label (index >= num_classes - 1) following a null label, "
                     "batch: %lld num_classes: %lld labels: ",
                     (long long)b, (long long)job->classes);
  print_labels(&text, labels + first, end - first);
  if (!is_negative) {
    rn_strbuf_printf(&text, " labels seen so far: ");
    print_labels(&text, job->labels.values + kept, made - kept);
  }
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// After the first invalid label, all labels of a sequence must be invalid.
static rn_status_t take_labels(const rn_kernel_ctx_t* ctx, rn_ctc_loss_t* job,
                               const rn_tensor_t* indices, const rn_tensor_t* values) {
  const int64_t* at = RN_DATA(indices, const int64_t);
  const int32_t* from = RN_DATA(values, const int32_t);
  int64_t i = 0, made = 0;
  for (int64_t b = 0; b < job->batch; ++b) {
    int64_t first = i, kept = made;
    bool is_over = false;
    job->labels.begin[b] = made;
    for (; i < values->count && at[2 * i] == b; ++i) {
      int32_t label = from[i];
      bool is_none = job->blank ? label >= job->blank : label >= job->classes;
      if (label < 0 || (is_over && !is_none))
        return bad_label(ctx, job, indices, from, b, first, kept, made, label < 0);
      is_over |= is_none;
      if (is_over || (job->ctc->collapses && made > kept && job->labels.values[made - 1] == label))
        continue;
      job->labels.values[made++] = label;
    }
    if (i == first) return rn_invalid_argument("Labels length is zero in batch %lld", (long long)b);
    int64_t length = rn_int_at(job->lengths, b), given = i - first;
    job->labels.given[b] = given;
    if (made - kept > job->most) job->most = made - kept;
    if (given > length && !job->ctc->ignores)
      return rn_invalid_argument(
          "Not enough time for target transition sequence (required: %lld, available: %lld)%lldYou "
          "can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs",
          (long long)given, (long long)length, (long long)b);
  }
  job->labels.begin[job->batch] = made;
  return RN_OK;
}

rn_status_t rn_ctc_loss_labels(const rn_kernel_ctx_t* ctx, rn_ctc_loss_t* loss) {
  const rn_tensor_t *indices = rn_in(ctx, 1), *values = rn_in(ctx, 2);
  int64_t columns = 0;
  for (int64_t i = 0; i < values->count; ++i) {
    int64_t column = RN_DATA(indices, const int64_t)[2 * i + 1];
    if (column >= columns) columns = column + (column < INT64_MAX);
  }
  RN_RETURN_IF_ERROR(check_order(indices, loss->batch, columns));
  return take_labels(ctx, loss, indices, values);
}

rn_status_t rn_ctc_loss_room(const rn_ctc_loss_t* loss, int64_t* out_each, int64_t* out_total) {
  int64_t paths, tables;
  if (rn_mul_i64_ok(2 * loss->most + 1, 2, &paths) && rn_add_i64_ok(paths, loss->classes, &paths) &&
      rn_mul_i64_ok(paths, loss->time, &tables) && rn_add_i64_ok(tables, loss->classes, out_each) &&
      rn_mul_i64_ok(*out_each, loss->batch, out_total))
    return RN_OK;
  return rn_invalid_argument("The labels and inputs are too large together");
}

static rn_status_t run(rn_kernel_ctx_t* ctx, ctc_loss_job_t* job, rn_tensor_t* scratch) {
  int64_t total;
  RN_RETURN_IF_ERROR(rn_ctc_loss_labels(ctx, &job->in));
  RN_RETURN_IF_ERROR(rn_ctc_loss_room(&job->in, &job->room, &total));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, (rn_shape_t){1, &total}, scratch));
  job->scratch = RN_DATA(scratch, double);
  rn_pool_for(rn_ctx_pool(ctx), job->in.batch, 2000 / job->room + 1, sequences, job);
  return RN_OK;
}

static rn_status_t ctc_loss(rn_kernel_ctx_t* ctx) {
  ctc_loss_job_t job = {0};
  RN_RETURN_IF_ERROR(rn_ctc_loss_read(ctx, &job.in));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &job.in.batch}, &job.loss));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(job.in.inputs), &job.gradient));
  memset(job.loss->data, 0, rn_tensor_bytes(job.loss));
  memset(job.gradient->data, 0, rn_tensor_bytes(job.gradient));
  rn_tensor_t begin = {0}, values = {0}, scratch = {0};
  int64_t places = 2 * job.in.batch + 1;
  rn_status_t status = rn_temp(ctx, RN_INT64, (rn_shape_t){1, &places}, &begin);
  if (rn_ok(status)) status = rn_temp(ctx, RN_INT32, rn_tensor_shape(rn_in(ctx, 2)), &values);
  if (rn_ok(status)) {
    int64_t* numbers = RN_DATA(&begin, int64_t);
    job.in.labels =
        (rn_ctc_labels_t){numbers, numbers + job.in.batch + 1, RN_DATA(&values, int32_t)};
    status = run(ctx, &job, &scratch);
  }
  rn_tensor_clear(&begin);
  rn_tensor_clear(&values);
  rn_tensor_clear(&scratch);
  return status;
}

#define CTC(name)                                                                              \
  {                                                                                            \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_ctc_t), \
    .init = rn_ctc_init, .compute = ctc_loss                                                   \
  }

static const rn_kernel_def_t rows[] = {CTC("CTCLoss"), CTC("CTCLossV2")};
RN_KERNEL_FAMILY(cpu_ctc_loss, rows);
