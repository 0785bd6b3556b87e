// Layers: their values, variables and errors.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "util.h"

static rn_edge_t wave_of(rn_scope_t* s, const int64_t* dims, int rank, double k) {
  float data[1024];
  int count = 1;
  for (int i = 0; i < rank; ++i) count *= (int)dims[i];
  wave_into(data, count, k);
  return rn_const(s, TF_FLOAT, dims, rank, data);
}

static void expect_shape(trial_t* t, rn_edge_t edge, const int64_t* want, int rank) {
  trial_built(t);
  int64_t dims[8];
  cr_assert(TF_GraphGetTensorNumDims(t->graph, rn_output_of(edge), t->status) == rank);
  TF_GraphGetTensorShape(t->graph, rn_output_of(edge), dims, rank, t->status);
  for (int i = 0; i < rank; ++i)
    cr_expect(dims[i] == want[i], "dimension %d is %lld", i, (long long)dims[i]);
}

Test(layer, dense) {
  trial_t t = trial_open();
  const int64_t dims[3] = {2, 3, 4}, want[3] = {2, 3, 5};
  rn_edge_t x = wave_of(t.s, dims, 3, 0.7);
  float kernel[20], bias[5];
  wave_into(kernel, 20, 1.1);
  wave_into(bias, 5, 0.3);
  rn_edge_t y =
      rn_dense(t.s, x, 5, .activation = rn_relu, .kernel_initializer = rn_init_values(kernel),
               .bias_initializer = rn_init_values(bias), .name = "hidden");
  expect_shape(&t, y, want, 3);
  cr_expect(rn_find_variable(t.s, "hidden/kernel") && rn_find_variable(t.s, "hidden/bias"));
  trial_init(&t);
  double got[30];
  cr_assert(trial_fetch(&t, y, NULL, NULL, 0, got, 30) == 30);
  for (int i = 0; i < 30; ++i) {
    double sum = bias[i % 5];
    for (int k = 0; k < 4; ++k) sum += sin(0.7 * (i / 5 * 4 + k + 1)) * kernel[k * 5 + i % 5];
    expect_close("dense", i, got[i], fmax(sum, 0), 1e-6);
  }
  trial_close(&t);
}

Test(layer, images) {
  trial_t t = trial_open();
  const int64_t dims[4] = {2, 8, 8, 3};
  rn_edge_t x = wave_of(t.s, dims, 4, 0.7);
  rn_edge_t y = rn_conv2d(t.s, x, 4, 3, .padding = "SAME", .strides = {2, 2}, .activation = rn_relu,
                          .kernel_initializer = rn_init_glorot_uniform(1));
  expect_shape(&t, y, (const int64_t[]){2, 4, 4, 4}, 4);
  rn_edge_t z = rn_depthwise_conv2d(t.s, y, 3, .multiplier = 2,
                                    .kernel_initializer = rn_init_glorot_uniform(2));
  expect_shape(&t, z, (const int64_t[]){2, 2, 2, 8}, 4);
  rn_edge_t flat = rn_flatten(t.s, rn_max_pool2d(t.s, z, 2));
  expect_shape(&t, flat, (const int64_t[]){2, 8}, 2);
  rn_edge_t mean = rn_average_pool2d(t.s, x, 8);
  expect_shape(&t, mean, (const int64_t[]){2, 1, 1, 3}, 4);
  cr_expect(rn_find_variable(t.s, "conv2d/kernel")->rank == 4);
  cr_expect(rn_find_variable(t.s, "depthwise_conv2d/depthwise_kernel"));
  rn_edge_t guess = rn_dense(t.s, flat, 1, .kernel_initializer = rn_init_glorot_uniform(3));
  rn_edge_t loss = rn_mean_squared_error(t.s, guess, wave(t.s, 2, 1, 2));
  rn_node_t* train = rn_minimize(t.s, rn_adam(.learning_rate = 0.05f), loss);
  trial_init(&t);
  double first = trial_scalar(&t, loss);
  for (int i = 0; i < 60; ++i) trial_run(&t, train, NULL, NULL, 0);
  cr_expect(trial_scalar(&t, loss) < 0.05 * first, "%g", trial_scalar(&t, loss) / first);
  trial_close(&t);
}

// Statistics of column |c| of a wave of [rows, columns].
static void moments(int rows, int columns, int c, double k, double* mean, double* variance) {
  *mean = *variance = 0;
  for (int r = 0; r < rows; ++r) *mean += sin(k * (r * columns + c + 1)) / rows;
  for (int r = 0; r < rows; ++r) {
    double d = sin(k * (r * columns + c + 1)) - *mean;
    *variance += d * d / rows;
  }
}

Test(layer, batch_norm) {
  for (int fused = 0; fused < 2; ++fused) {
    trial_t t = trial_open();
    const int64_t dims[4] = {6, 1, 1, 3}, flat[2] = {6, 3};
    rn_edge_t x = wave_of(t.s, fused ? dims : flat, fused ? 4 : 2, 0.7);
    rn_edge_t y = rn_batch_norm(t.s, x, .momentum = RN_SET(0.9f));
    rn_scope_t* again =
        rn_variable_scope(t.s, "batch_normalization", .reuse = RN_REUSE_ALWAYS, .absolute = true);
    rn_scope_destroy(again);
    rn_node_t* updates = rn_group_collection(t.s, RN_UPDATE_OPS);
    const rn_collected_t* items;
    cr_expect(rn_collection(t.s, RN_UPDATE_OPS, &items) == 2);
    const rn_var_t* mean = rn_find_variable(t.s, "batch_normalization/moving_mean");
    const rn_var_t* variance = rn_find_variable(t.s, "batch_normalization/moving_variance");
    trial_built(&t);
    cr_assert(mean && variance && !mean->is_trainable);
    trial_init(&t);
    trial_run(&t, updates, NULL, NULL, 0);
    double got[18], means[3], variances[3];
    cr_assert(trial_fetch(&t, y, NULL, NULL, 0, got, 18) == 18);
    trial_fetch(&t, mean->value, NULL, NULL, 0, means, 3);
    trial_fetch(&t, variance->value, NULL, NULL, 0, variances, 3);
    for (int c = 0; c < 3; ++c) {
      double m, v;
      moments(6, 3, c, 0.7, &m, &v);
      for (int r = 0; r < 6; ++r)
        expect_close("normalized", r * 3 + c, got[r * 3 + c],
                     (sin(0.7 * (r * 3 + c + 1)) - m) / sqrt(v + 0.001), 2e-6);
      expect_close("mean", c, means[c], 0.1 * m, 1e-6);
      // The op for images corrects the variance of few samples.
      expect_close("variance", c, variances[c], 0.9 + 0.1 * v * (fused ? 6.0 / 5 : 1), 1e-6);
    }
    trial_close(&t);
  }
}

Test(layer, batch_norm_by_a_switch) {
  trial_t t = trial_open();
  rn_edge_t x = wave(t.s, 6, 3, 0.7);
  rn_edge_t training = rn_Placeholder(t.s, TF_BOOL, .shape = RN_SET_SHAPE(NULL, 0));
  rn_edge_t y = rn_batch_norm(t.s, x, .training = training, .name = "norm");
  rn_node_t* updates = rn_group_collection(t.s, RN_UPDATE_OPS);
  trial_init(&t);
  const rn_var_t* mean = rn_find_variable(t.s, "norm/moving_mean");
  double got[18], m, v;
  for (int on = 0; on < 2; ++on) {
    bool flag = on;
    TF_Tensor* fed = tensor_of(TF_BOOL, NULL, 0, &flag);
    trial_fetch(&t, y, &training, &fed, 1, got, 18);
    trial_run(&t, updates, &training, &fed, 1);
    TF_DeleteTensor(fed);
    moments(6, 3, 0, 0.7, &m, &v);
    double x0 = sin(0.7);
    expect_close("y", on, got[0], on ? (x0 - m) / sqrt(v + 0.001) : x0 / sqrt(1.001), 2e-6);
    trial_fetch(&t, mean->value, NULL, NULL, 0, got, 18);
    expect_close("mean", on, got[0], on ? 0.01 * m : 0, 1e-6);
  }
  trial_close(&t);
}

Test(layer, layer_norm) {
  trial_t t = trial_open();
  rn_edge_t y = rn_layer_norm(t.s, wave(t.s, 2, 6, 0.7));
  trial_init(&t);
  double got[12], m = 0, v = 0;
  cr_assert(trial_fetch(&t, y, NULL, NULL, 0, got, 12) == 12);
  for (int i = 0; i < 6; ++i) m += sin(0.7 * (i + 7)) / 6;
  for (int i = 0; i < 6; ++i) v += pow(sin(0.7 * (i + 7)) - m, 2) / 6;
  for (int i = 0; i < 6; ++i)
    expect_close("normalized", i, got[6 + i], (sin(0.7 * (i + 7)) - m) / sqrt(v + 0.001), 2e-6);
  trial_close(&t);
}

Test(layer, dropout) {
  trial_t t = trial_open();
  rn_edge_t ones =
      rn_Fill(t.s, rn_const_int32_list(t.s, (const int32_t[]){4000}, 1), rn_const_float(t.s, 1));
  rn_edge_t training = rn_Placeholder(t.s, TF_BOOL, .shape = RN_SET_SHAPE(NULL, 0));
  rn_edge_t y = rn_dropout(t.s, ones, 0.25f, .seed = 3, .training = training);
  static double got[4000];
  for (int on = 0; on < 2; ++on) {
    bool flag = on;
    TF_Tensor* fed = tensor_of(TF_BOOL, NULL, 0, &flag);
    cr_assert(trial_fetch(&t, y, &training, &fed, 1, got, 4000) == 4000);
    TF_DeleteTensor(fed);
    int zeros = 0;
    for (int i = 0; i < 4000; ++i) {
      zeros += got[i] == 0;
      if (got[i] != 0) expect_close("kept", i, got[i], on ? 4 / 3.0 : 1, 1e-6);
    }
    cr_expect(on ? abs(zeros - 1000) < 120 : zeros == 0, "%d zeros", zeros);
  }
  rn_dropout(t.s, ones, 1);
  cr_expect(strstr(rn_scope_message(t.s), "the rate 1 is not in [0, 1)"));
  trial_close(&t);
}

// A table in parts gives the rows of the whole, and keeps gradients sparse.
Test(layer, embedding_in_parts) {
  for (int by_division = 0; by_division < 2; ++by_division) {
    trial_t t = trial_open();
    rn_scope_t* s = t.s;
    enum { ROWS = 11, PARTS = 4, COLUMNS = 2 };
    const rn_var_t* parts[PARTS];
    cr_assert(rn_partitioned_variable(s, "table", ROWS, COLUMNS, rn_init_zeros(), PARTS, parts));
    cr_expect(parts[0]->dims[0] == 3 && parts[3]->dims[0] == 2);
    cr_expect(strcmp(parts[3]->name, "table/part_3") == 0);
    rn_node_t* fills[PARTS];
    for (int p = 0, at = 0; p < PARTS; ++p) {
      float rows[6];
      for (int r = 0; r < parts[p]->dims[0]; ++r)
        rows[r * 2] = rows[r * 2 + 1] = (float)(by_division ? at + r : r * PARTS + p);
      at += (int)parts[p]->dims[0];
      fills[p] = rn_var_assign(s, parts[p], rn_const(s, TF_FLOAT, parts[p]->dims, 2, rows));
    }
    const int64_t ids[6] = {10, 3, 3, 0, 7, 5};
    rn_edge_t asked = rn_const(s, TF_INT64, (const int64_t[]){2, 3}, 2, ids);
    rn_edge_t rows = rn_embedding_lookup(s, parts, PARTS, asked, by_division);
    trial_init(&t);
    trial_run(&t, rn_group(s, fills, PARTS), NULL, NULL, 0);
    double got[12];
    cr_assert(trial_fetch(&t, rows, NULL, NULL, 0, got, 12) == 12);
    for (int i = 0; i < 12; ++i) expect_close("row", i, got[i], (double)ids[i / 2], 0);
    rn_gradient_t d[PARTS];
    rn_edge_t loss = rn_L2Loss(s, rows);
    cr_assert(rn_compute_gradients(s, loss, parts, PARTS, NULL, d), "%s", rn_scope_message(s));
    for (int p = 0; p < PARTS; ++p) cr_expect(rn_gradient_is_slices(d[p]));
    rn_node_t* train = rn_minimize(s, rn_gradient_descent(.learning_rate = 0.5f), loss);
    trial_run(&t, train, NULL, NULL, 0);
    trial_fetch(&t, rows, NULL, NULL, 0, got, 12);
    // Row 3 was asked for twice.
    for (int i = 0; i < 12; ++i)
      expect_close("trained", i, got[i], ids[i / 2] == 3 ? 0 : (double)ids[i / 2] / 2, 1e-6);
    trial_close(&t);
  }
}

Test(layer, embedding) {
  trial_t t = trial_open();
  rn_edge_t ids = rn_const_int32_list(t.s, (const int32_t[]){4, 0, 4}, 3);
  rn_edge_t rows = rn_embedding(t.s, ids, 5, 2);
  expect_shape(&t, rows, (const int64_t[]){3, 2}, 2);
  cr_expect(rn_find_variable(t.s, "embedding/embeddings"));
  trial_close(&t);
}

Test(layer, errors_name_the_layer) {
  trial_t t = trial_open();
  rn_edge_t x = rn_Placeholder(t.s, TF_FLOAT, .name = "x");
  cr_expect(!rn_dense(t.s, x, 5, .name = "hidden").node);
  cr_expect(strcmp(rn_scope_message(t.s),
                   "Layer 'hidden': dimension -1 of the input 'x' must be "
                   "known and above 0") == 0,
            "%s", rn_scope_message(t.s));
  trial_close(&t);

  t = trial_open();
  x = wave(t.s, 2, 3, 1);
  cr_expect(!rn_conv2d(t.s, x, 5, 3).node);
  cr_expect(strstr(rn_scope_message(t.s), "must have four dimensions"));
  trial_close(&t);
}
