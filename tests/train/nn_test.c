// Losses, metrics, initializers and samplers, compared with recorded results of stock.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "util.h"

Test(loss, follows_stock) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_edge_t y = wave(s, 4, 3, 0.7), p = wave(s, 4, 3, 1.3);
  const float weights[] = {1, 0, 2, 0.5f};
  rn_edge_t w = rn_const(s, TF_FLOAT, (const int64_t[]){4, 1}, 2, weights);
  rn_edge_t row = rn_const(s, TF_FLOAT, (const int64_t[]){4}, 1, weights);
  rn_edge_t hard = rn_Cast(s, rn_Greater(s, y, rn_const_float(s, 0)), TF_FLOAT);
  rn_edge_t ids = rn_const_int32_list(s, (const int32_t[]){2, 0, 1, 1}, 4);
  rn_edge_t hot =
      rn_OneHot(s, ids, rn_const_int32(s, 3), rn_const_float(s, 1), rn_const_float(s, 0));
  struct {
    const char* name;
    rn_edge_t loss;
  } all[] = {
      {"loss/mse", rn_mean_squared_error(s, y, p)},
      {"loss/mse_weights", rn_mean_squared_error(s, y, p, .weights = w)},
      {"loss/mse_sum", rn_mean_squared_error(s, y, p, .weights = w, .reduction = RN_REDUCE_SUM)},
      {"loss/mse_mean", rn_mean_squared_error(s, y, p, .weights = w, .reduction = RN_REDUCE_MEAN)},
      {"loss/mse_count",
       rn_mean_squared_error(s, y, p, .weights = w, .reduction = RN_REDUCE_BY_COUNT)},
      {"loss/mse_none", rn_mean_squared_error(s, y, p, .weights = w, .reduction = RN_REDUCE_NONE)},
      {"loss/absolute", rn_absolute_difference(s, y, p, .weights = rn_const_float(s, 0.5f))},
      {"loss/huber", rn_huber_loss(s, y, p, .delta = RN_SET(0.4f))},
      {"loss/log", rn_log_loss(s, rn_Abs(s, y), rn_Abs(s, p))},
      {"loss/cosine", rn_cosine_distance(s, y, p, .axis = 1)},
      {"loss/hinge", rn_hinge_loss(s, hard, p)},
      {"loss/sigmoid", rn_sigmoid_cross_entropy(s, hard, p, .label_smoothing = 0.1f)},
      {"loss/softmax", rn_softmax_cross_entropy(s, hot, p, .label_smoothing = 0.2f)},
      {"loss/sparse", rn_sparse_softmax_cross_entropy(s, ids, p, .weights = row)},
  };
  int count = (int)(sizeof all / sizeof *all);
  double sum = 0;
  for (int i = 0; i < count; ++i) expect_recorded(&t, all[i].name, all[i].loss, 1e-6);
  const rn_collected_t* items;
  cr_expect(rn_collection(s, RN_LOSSES, &items) == count);
  for (int i = 0; i < count; ++i) {
    if (i == 5) continue;
    sum += trial_scalar(&t, items[i].edge);
  }
  double total[12];
  cr_assert(trial_fetch(&t, rn_total_loss(s), NULL, NULL, 0, total, 12) == 12);
  expect_close("total", 3, total[3], sum, 1e-5);  // the fourth element of the one per element is 0
  trial_close(&t);
}

// Numbers of classes, 0 … 3.
static rn_edge_t class_of(rn_scope_t* s, rn_edge_t x) {
  rn_edge_t spread = rn_Mul(s, rn_Abs(s, x), rn_const_float(s, 3.99f));
  return rn_Cast(s, spread, TF_INT64);
}

static rn_edge_t pairs_of(rn_scope_t* s, rn_edge_t x) {
  return rn_Reshape(s, x, rn_const_int32_list(s, (const int32_t[]){4, 2}, 2));
}

Test(metric, follows_stock) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  int64_t eight = 8;
  rn_edge_t feeds[3];
  for (int i = 0; i < 3; ++i)
    feeds[i] = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(&eight, 1));
  rn_edge_t y = feeds[0], p = feeds[1], w = feeds[2], zero = rn_const_float(s, 0);
  rn_edge_t is_y = rn_Greater(s, y, zero), is_p = rn_Greater(s, p, zero), size = rn_Abs(s, p);
  rn_edge_t over_half = rn_Relu(s, rn_Sub(s, w, rn_const_float(s, 0.5f)));
  struct {
    const char* name;
    rn_metric_t metric;
  } all[] = {
      {"metric/mean", rn_metric_mean(s, p, .weights = w)},
      {"metric/mse", rn_metric_mean_squared_error(s, y, p, .weights = w)},
      {"metric/rmse", rn_metric_root_mean_squared_error(s, y, p)},
      {"metric/mae", rn_metric_mean_absolute_error(s, y, p, .weights = w)},
      {"metric/accuracy", rn_metric_accuracy(s, is_y, is_p)},
      {"metric/precision", rn_metric_precision(s, is_y, is_p, .weights = w)},
      {"metric/recall", rn_metric_recall(s, is_y, is_p)},
      {"metric/fp", rn_metric_false_positives(s, is_y, is_p, .weights = w)},
      {"metric/auc", rn_metric_auc(s, is_y, size, .weights = w)},
      {"metric/auc_pr", rn_metric_auc(s, is_y, size, .thresholds = 20, .precision_recall = true)},
      {"metric/below", rn_metric_percentage_below(s, p, 0.3f, .weights = w)},
      {"metric/relative", rn_metric_mean_relative_error(s, y, p, .normalizer = over_half)},
      {"metric/cosine",
       rn_metric_mean_cosine_distance(s, pairs_of(s, y), pairs_of(s, p), .axis = 1)},
      {"metric/iou", rn_metric_mean_iou(s, class_of(s, y), class_of(s, p), .classes = 5)},
      {"metric/iou_weights",
       rn_metric_mean_iou(s, class_of(s, y), class_of(s, p), .classes = 4, .weights = w)},
      {"metric/class_accuracy",
       rn_metric_mean_per_class_accuracy(s, class_of(s, y), class_of(s, p), .classes = 4)},
      {"metric/class_accuracy_weights",
       rn_metric_mean_per_class_accuracy(s, class_of(s, y), class_of(s, p), .classes = 5,
                                         .weights = w)},
  };
  int count = (int)(sizeof all / sizeof *all);
  trial_init(&t);
  double updates[20], want[2];
  for (int batch = 0; batch < 3; ++batch) {
    float data[3][8];
    wave_into(data[0], 8, 0.7 + batch);
    wave_into(data[1], 8, 1.3 + batch);
    wave_into(data[2], 8, 0.4 + batch);
    for (int i = 0; i < 8; ++i) data[2][i] = fabsf(data[2][i]);
    TF_Tensor* fed[3];
    for (int i = 0; i < 3; ++i) fed[i] = tensor_floats(data[i], 8, 0);
    for (int i = 0; i < count; ++i)
      cr_assert(trial_fetch(&t, all[i].metric.update, feeds, fed, 3, &updates[i], 1) == 1);
    for (int i = 0; i < 3; ++i) TF_DeleteTensor(fed[i]);
  }
  for (int i = 0; i < count; ++i) {
    cr_assert(recorded(all[i].name, want, 2) == 2);
    expect_close(all[i].name, 0, trial_scalar(&t, all[i].metric.value), want[0], 2e-6);
    expect_close(all[i].name, 1, updates[i], want[1], 2e-6);
  }
  const rn_collected_t* items;
  cr_expect(rn_collection(s, RN_LOCAL_VARIABLES, &items) == 8 * 2 + 2 + 2 + 1 + 4 + 4 + 2 + 2 * 2);
  trial_close(&t);
}

Test(initializer, follows_stock) {
  trial_t t = trial_open();
  struct {
    const char* name;
    rn_initializer_t initializer;
  } all[] = {
      {"init/uniform", rn_init_uniform(-1, 2, 7)},
      {"init/normal", rn_init_normal(1, 0.5, 7)},
      {"init/truncated", rn_init_truncated_normal(1, 0.5, 7)},
      {"init/glorot_uniform", rn_init_glorot_uniform(7)},
      {"init/glorot_normal", rn_init_glorot_normal(7)},
      {"init/he_uniform", rn_init_he_uniform(7)},
      {"init/he_normal", rn_init_he_normal(7)},
      {"init/lecun_uniform", rn_init_lecun_uniform(7)},
      {"init/lecun_normal", rn_init_lecun_normal(7)},
      {"init/identity", rn_init_identity(3)},
  };
  const int64_t dims[4] = {3, 4}, conv[4] = {2, 2, 3, 4};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    expect_recorded(&t, all[i].name, rn_initial_value(t.s, all[i].initializer, dims, 2, TF_FLOAT),
                    1e-6);
  expect_recorded(&t, "init/he_normal_conv",
                  rn_initial_value(t.s, rn_init_he_normal(7), conv, 4, TF_FLOAT), 1e-6);
  trial_close(&t);
}

// Stock's way to it is another; the result is the same matrix.
Test(initializer, orthogonal) {
  trial_t t = trial_open();
  const int64_t dims[2] = {3, 4}, tall[2] = {40, 30};
  expect_recorded(&t, "init/orthogonal",
                  rn_initial_value(t.s, rn_init_orthogonal(2, 7), dims, 2, TF_FLOAT), 1e-5);
  rn_edge_t q = rn_initial_value(t.s, rn_init_orthogonal(1, 9), tall, 2, TF_DOUBLE);
  static double got[900];
  cr_assert(trial_fetch(&t, rn_MatMul(t.s, q, q, .transpose_a = true), NULL, NULL, 0, got, 900) ==
            900);
  for (int i = 0; i < 900; ++i) expect_close("QtQ", i, got[i], i % 31 == 0, 1e-12);
  trial_close(&t);
}

static const rn_var_t* table(rn_scope_t* s, const char* name, int rows, int columns, double k) {
  return rn_new_variable(s, name, wave(s, rows, columns, k));
}

Test(sampling, losses_follow_stock) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  const rn_var_t* weights = table(s, "weights", 6, 3, 0.9);
  rn_class_weights_t layer = {&weights, 1, table(s, "biases", 6, 0, 1.9), 6};
  const int64_t ids[] = {1, 5, 0, 2}, drawn[] = {3, 1, 4};
  rn_edge_t labels = rn_const(s, TF_INT64, (const int64_t[]){4, 1}, 2, ids);
  rn_edge_t x = wave(s, 4, 3, 1.1);
  rn_sampled_t sampled = {rn_const(s, TF_INT64, (const int64_t[]){3}, 1, drawn),
                          rn_Abs(s, wave(s, 4, 1, 0.3)), rn_Abs(s, wave(s, 3, 0, 0.8))};
  rn_edge_t softmax = rn_sampled_softmax_loss(s, &layer, labels, x, 3, .sampled = &sampled);
  rn_edge_t with_hits = rn_sampled_softmax_loss(s, &layer, labels, x, 3, .sampled = &sampled,
                                                .keep_accidental_hits = true);
  rn_edge_t nce = rn_nce_loss(s, &layer, labels, x, 3, .sampled = &sampled);
  trial_init(&t);
  expect_recorded(&t, "sample/softmax", softmax, 1e-6);
  expect_recorded(&t, "sample/softmax_hits", with_hits, 1e-6);
  expect_recorded(&t, "sample/nce", nce, 1e-6);
  // It trains, and touches few rows.
  rn_edge_t mean = rn_Mean(s, softmax, rn_const_int32_list(s, (const int32_t[]){0}, 1));
  double before = trial_scalar(&t, mean);
  rn_gradient_t d;
  cr_assert(rn_compute_gradients(s, mean, &weights, 1, NULL, &d), "%s", rn_scope_message(s));
  cr_expect(rn_gradient_is_slices(d));
  rn_node_t* train = rn_minimize(s, rn_adagrad(.learning_rate = 0.5f), mean);
  trial_init(&t);
  for (int i = 0; i < 20; ++i) trial_run(&t, train, NULL, NULL, 0);
  cr_expect(trial_scalar(&t, mean) < before / 2);
  trial_close(&t);
}

Test(sampling, draws_as_stock) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  const int64_t ids[] = {3, 1};
  const float unigrams[] = {1, 2, 3, 4, 5, 6};
  rn_edge_t labels = rn_const(s, TF_INT64, (const int64_t[]){2, 1}, 2, ids);
  struct {
    const char* name;
    rn_sampled_t drawn;
  } all[] = {
      {"sample/log_uniform", rn_sample_candidates(s, labels, 4, 10, .seed = 5)},
      {"sample/uniform",
       rn_sample_candidates(s, labels, 4, 10, .seed = 5, .sampler = RN_SAMPLE_UNIFORM)},
      {"sample/learned",
       rn_sample_candidates(s, labels, 4, 10, .seed = 5, .sampler = RN_SAMPLE_LEARNED_UNIGRAM)},
      {"sample/fixed",
       rn_sample_candidates(s, labels, 4, 6, .seed = 5, .sampler = RN_SAMPLE_FIXED_UNIGRAM,
                            .unigrams = unigrams, .unigram_count = 6, .distortion = 0.75f)},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    rn_edge_t parts[3] = {
        rn_Cast(s, all[i].drawn.candidates, TF_FLOAT),
        rn_Reshape(s, all[i].drawn.true_expected, rn_const_int32_list(s, (const int32_t[]){2}, 1)),
        all[i].drawn.sampled_expected};
    expect_recorded(&t, all[i].name, rn_ConcatV2(s, parts, 3, rn_const_int32(s, 0)), 1e-6);
  }
  trial_close(&t);
}
