// Learning rates, clipping, moving averages and loss scaling, compared with recorded results of
// stock.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

enum { POINTS = 7 };
static const int64_t points[POINTS] = {0, 1, 5, 10, 13, 25, 50};

Test(schedule, follows_stock) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_edge_t step = rn_Placeholder(s, TF_INT64, .shape = RN_SET_SHAPE(NULL, 0));
  const int64_t bounds[] = {1, 10, 20};
  const float rates[] = {1, 0.5f, 0.25f, 0.125f};
  struct {
    const char* name;
    rn_edge_t rate;
  } all[] = {
      {"exponential", rn_exponential_decay(s, 0.1f, step, 10, 0.9f)},
      {"exponential_staircase", rn_exponential_decay(s, 0.1f, step, 10, 0.9f, .staircase = true)},
      {"natural_exp", rn_natural_exp_decay(s, 0.1f, step, 10, 0.5f)},
      {"inverse_time", rn_inverse_time_decay(s, 0.1f, step, 10, 0.5f)},
      {"inverse_time_staircase", rn_inverse_time_decay(s, 0.1f, step, 10, 0.5f, .staircase = true)},
      {"polynomial",
       rn_polynomial_decay(s, 0.1f, step, 20, .end = RN_SET(0.01f), .power = RN_SET(0.5f))},
      {"polynomial_cycle", rn_polynomial_decay(s, 0.1f, step, 20, .end = RN_SET(0.01f),
                                               .power = RN_SET(2), .cycle = true)},
      {"cosine", rn_cosine_decay(s, 0.1f, step, 20, .alpha = 0.1f)},
      {"restarts", rn_cosine_decay_restarts(s, 0.1f, step, 10, .alpha = 0.05f)},
      {"restarts_even",
       rn_cosine_decay_restarts(s, 0.1f, step, 10, .time = RN_SET(1), .height = RN_SET(0.8f))},
      {"restarts_long",
       rn_cosine_decay_restarts(s, 0.1f, step, 7, .time = RN_SET(1.5f), .height = RN_SET(0.9f))},
      {"linear_cosine",
       rn_linear_cosine_decay(s, 0.1f, step, 20, .periods = RN_SET(2), .alpha = 0.1f)},
      {"piecewise", rn_piecewise_constant(s, step, bounds, rates, 3)},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    char name[64];
    double want[POINTS], got;
    snprintf(name, sizeof name, "schedule/%s", all[i].name);
    cr_assert(recorded(name, want, POINTS) == POINTS);
    for (int k = 0; k < POINTS; ++k) {
      TF_Tensor* fed = tensor_of(TF_INT64, NULL, 0, &points[k]);
      cr_assert(trial_fetch(&t, all[i].rate, &step, &fed, 1, &got, 1) == 1);
      TF_DeleteTensor(fed);
      expect_close(name, (int)points[k], got, want[k], 1e-7);
    }
  }
  trial_close(&t);
}

// The noise is drawn; its mean is the curve without it.
Test(schedule, noise) {
  trial_t t = trial_open();
  rn_edge_t step = rn_const_scalar(t.s, TF_INT64, 4);
  rn_edge_t calm = rn_linear_cosine_decay(t.s, 1, step, 20);
  rn_edge_t noisy = rn_noisy_linear_cosine_decay(t.s, 1, step, 20, .seed = 3);
  double mean = 0, first = trial_scalar(&t, noisy), same = 0;
  for (int i = 0; i < 400; ++i) {
    double now = trial_scalar(&t, noisy);
    mean += now / 400;
    same += now == first;
  }
  // Variance 1 / 5^0.55 = 0.41, times the cosine's 0.9: the mean of 400 is good to 0.03.
  cr_expect(fabs(mean - trial_scalar(&t, calm)) < 0.12, "mean %g", mean);
  cr_expect(same < 10);
  trial_close(&t);
}

Test(clip, follows_stock) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_edge_t a = wave(s, 3, 4, 0.7), b = wave(s, 5, 0, 1.1);
  expect_recorded(&t, "clip/value",
                  rn_clip_by_value(s, a, rn_const_float(s, -0.3f), rn_const_float(s, 0.5f)), 1e-7);
  expect_recorded(&t, "clip/norm", rn_clip_by_norm(s, a, rn_const_float(s, 0.8f)), 1e-6);
  expect_recorded(&t, "clip/norm_idle", rn_clip_by_norm(s, a, rn_const_float(s, 80)), 1e-6);
  rn_edge_t zeros =
      rn_Fill(s, rn_const_int32_list(s, (const int32_t[]){3}, 1), rn_const_float(s, 0));
  expect_recorded(&t, "clip/norm_zero", rn_clip_by_norm(s, zeros, rn_const_float(s, 1)), 0);
  expect_recorded(&t, "clip/average", rn_clip_by_average_norm(s, a, rn_const_float(s, 0.1f)), 1e-6);
  rn_gradient_t both[3] = {{.dense = a}, {.dense = b}, {.dense = RN_NO_EDGE}};
  expect_recorded(&t, "clip/global_norm", rn_global_norm(s, both, 3), 1e-6);
  rn_clip_gradients(s, (rn_clip_t){RN_CLIP_GLOBAL_NORM, 0.8f}, both, 3);
  expect_recorded(&t, "clip/global_a", both[0].dense, 1e-6);
  expect_recorded(&t, "clip/global_b", both[1].dense, 1e-6);
  cr_expect(rn_gradient_is_none(both[2]));
  rn_clip_gradients(s, (rn_clip_t){RN_CLIP_NORM, -1}, both, 3);
  cr_expect(strstr(rn_scope_message(s), "above 0"));
  trial_close(&t);
}

static void follow_average(rn_variable_kind_t kind) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  const rn_var_t* w = rn_new_variable(s, "w", wave(s, 4, 0, 0.5), .kind = kind);
  float quarter[4] = {0.25f, 0.25f, 0.25f, 0.25f};
  rn_node_t* move = rn_var_add(s, w, rn_const(s, TF_FLOAT, (const int64_t[]){4}, 1, quarter));
  rn_edge_t n = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(NULL, 0));
  rn_node_t* apply = rn_average_variables(s, NULL, 0, 0.9f, .num_updates = n);
  trial_init(&t);
  for (int i = 0; i < 5; ++i) {
    float count = (float)i;
    TF_Tensor* fed = tensor_of(TF_FLOAT, NULL, 0, &count);
    trial_run(&t, move, NULL, NULL, 0);
    trial_run(&t, apply, &n, &fed, 1);
    TF_DeleteTensor(fed);
  }
  const rn_var_t* average = rn_average_of(s, w, NULL);
  cr_assert(average && strcmp(average->name, "w/ExponentialMovingAverage") == 0);
  expect_recorded(&t, "average/num_updates", average->value, 1e-6);
  trial_close(&t);
}
Test(average, of_resources) { follow_average(RN_VARIABLE_RESOURCE); }
Test(average, of_references) { follow_average(RN_VARIABLE_REFERENCE); }

Test(average, without_bias) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  int64_t four = 4;
  const rn_var_t* v = rn_get_variable(s, "v", &four, 1, .initializer = rn_init_zeros());
  rn_edge_t x = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(&four, 1));
  rn_node_t* apply = rn_assign_moving_average(s, v, x, rn_const_float(s, 0.9f), true);
  trial_init(&t);
  for (int i = 0; i < 3; ++i) {
    float data[4];
    wave_into(data, 4, 0.5 + i);
    TF_Tensor* fed = tensor_floats(data, 4, 0);
    trial_run(&t, apply, &x, &fed, 1);
    TF_DeleteTensor(fed);
  }
  expect_recorded(&t, "average/debias", v->value, 1e-6);
  cr_expect(rn_find_variable(s, "v/biased") && rn_find_variable(s, "v/local_step"));
  trial_close(&t);
}

// A static scale changes nothing but the rounding.
Test(loss_scale, is_static) {
  double got[2][4];
  for (int scaled = 0; scaled < 2; ++scaled) {
    trial_t t = trial_open();
    const rn_var_t* w = rn_new_variable(t.s, "w", wave(t.s, 4, 0, 0.5));
    rn_node_t* train = rn_minimize(t.s, rn_adam(.learning_rate = 0.1f), rn_L2Loss(t.s, w->value),
                                   .loss_scale = {.scale = scaled ? 1024 : 0});
    trial_init(&t);
    for (int i = 0; i < 5; ++i) trial_run(&t, train, NULL, NULL, 0);
    trial_fetch(&t, w->value, NULL, NULL, 0, got[scaled], 4);
    trial_close(&t);
  }
  for (int i = 0; i < 4; ++i) expect_close("scaled", i, got[1][i], got[0][i], 1e-6);
}

// A gradient of 2^-26 is 0 in half precision, and is there when the loss is scaled.
Test(loss_scale, keeps_small_gradients_of_halves) {
  for (int scaled = 0; scaled < 2; ++scaled) {
    trial_t t = trial_open();
    rn_scope_t* s = t.s;
    const rn_var_t* w = rn_new_variable(s, "w", rn_const_float(s, 1));
    rn_edge_t tiny = rn_const_scalar(s, TF_HALF, ldexp(1, -13));
    rn_edge_t half = rn_Mul(s, rn_Mul(s, rn_Cast(s, w->value, TF_HALF), tiny), tiny);
    rn_node_t* train =
        rn_minimize(s, rn_gradient_descent(.learning_rate = 1 << 24), half,
                    .loss_scale = {.scale = scaled ? 1024 : 0, .is_dynamic = scaled});
    trial_init(&t);
    trial_run(&t, train, NULL, NULL, 0);
    expect_close("w", scaled, trial_scalar(&t, w->value), scaled ? 0.75 : 1, 0);
    trial_close(&t);
  }
}

// Steps whose gradients are not finite are left out, and the scale is halved; it grows again.
Test(loss_scale, is_dynamic) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  const rn_var_t* w = rn_new_variable(s, "w", rn_const_float(s, 3));
  const rn_var_t* step = rn_global_step(s);
  rn_edge_t factor = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(NULL, 0));
  rn_node_t* train =
      rn_minimize(s, rn_gradient_descent(.learning_rate = 0.5f), rn_Mul(s, w->value, factor),
                  .global_step = step, .loss_scale = {.scale = 8, .is_dynamic = true, .period = 3});
  const rn_var_t* scale = rn_find_variable(s, "current_loss_scale");
  const rn_var_t* good = rn_find_variable(s, "good_steps");
  trial_built(&t);
  cr_assert(scale && good);
  trial_init(&t);
  const struct {
    float factor;
    double w, scale, good, step;
  } turns[] = {{1, 2.5, 8, 1, 1}, {INFINITY, 2.5, 4, 0, 1}, {2, 1.5, 4, 1, 2}, {2, 0.5, 4, 2, 3},
               {1, 0, 8, 0, 4},   {NAN, 0, 4, 0, 4},        {NAN, 0, 2, 0, 4}, {NAN, 0, 1, 0, 4},
               {NAN, 0, 1, 0, 4}, {1, -0.5, 1, 1, 5}};
  for (size_t i = 0; i < sizeof turns / sizeof *turns; ++i) {
    TF_Tensor* fed = tensor_of(TF_FLOAT, NULL, 0, &turns[i].factor);
    trial_run(&t, train, &factor, &fed, 1);
    TF_DeleteTensor(fed);
    expect_close("w", (int)i, trial_scalar(&t, w->value), turns[i].w, 1e-6);
    expect_close("scale", (int)i, trial_scalar(&t, scale->value), turns[i].scale, 0);
    expect_close("good", (int)i, trial_scalar(&t, good->value), turns[i].good, 0);
    expect_close("step", (int)i, trial_scalar(&t, step->value), turns[i].step, 0);
  }
  trial_close(&t);
}
