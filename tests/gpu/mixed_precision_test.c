// Networks that train in half and in bfloat16 on a GPU: losses close to those of floats, and 16
// bits from end to end.
#include <math.h>
#include <stdlib.h>

#include "runnel/runnel.h"
#include "util.h"

#define STEPS 6

typedef struct trained_t {
  float losses[STEPS];
  int casts;
  int half_convs;  // convolutions in 16 bits, forwards and backwards
  int float_convs;
  int fused;       // convolutions in 16 bits with their bias
  int late_casts;  // that are left when updates are grouped
  double scale;    // of the loss, at the end
} trained_t;

static rn_edge_t images(rn_scope_t* s) {
  const int64_t dims[4] = {8, 12, 12, 3};
  float values[8 * 12 * 12 * 3];
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i)
    values[i] = sinf((float)i * 0.37f) + 0.1f * (float)(i / 432);
  return rn_const(s, TF_FLOAT, dims, 4, values);
}

// Convolutions with a bias, a shortcut and batch norms, a pool and a dense layer.
static rn_edge_t net(rn_scope_t* s) {
  rn_edge_t h = rn_conv2d(s, images(s), 8, 3, .activation = rn_relu, .name = "first",
                          .kernel_initializer = rn_init_glorot_uniform(7), .padding = "SAME");
  rn_edge_t other = rn_conv2d(s, h, 8, 3, .name = "second", .padding = "SAME",
                              .kernel_initializer = rn_init_glorot_uniform(8));
  other = rn_batch_norm(s, other, .name = "norm");
  h = rn_Relu(s, rn_AddV2(s, h, other));
  int64_t two[4] = {1, 2, 2, 1};
  h = rn_MaxPool(s, h, two, 4, two, 4, "SAME");
  h = rn_Reshape(s, h, rn_const_int32_list(s, (int32_t[]){8, 288}, 2));
  h = rn_dense(s, h, 10, .name = "out", .kernel_initializer = rn_init_glorot_uniform(9));
  int32_t labels[8] = {1, 0, 3, 7, 2, 2, 9, 4};
  return rn_sparse_softmax_cross_entropy(s, rn_const_int32_list(s, labels, 8), h);
}

static bool is_16_bit(const char* line) {
  return strstr(line, "-> half[") || strstr(line, "-> bfloat16[");
}

// Passes leave their graphs in files; counts what is there.
static void read_dump(const char* folder, trained_t* out) {
  char command[300], line[4096];
  snprintf(command, sizeof command, "cat %s/*-mixed_precision-after.txt", folder);
  FILE* file = popen(command, "r");
  while (fgets(line, sizeof line, file)) {
    bool is_conv = strstr(line, "= Conv2D");
    out->casts += strstr(line, "= Cast(") != NULL;
    out->half_convs += is_conv && is_16_bit(line);
    out->float_convs += is_conv && !is_16_bit(line);
  }
  pclose(file);
  snprintf(command, sizeof command, "cat %s/*-group_updates-after.txt", folder);
  file = popen(command, "r");
  while (fgets(line, sizeof line, file)) out->late_casts += strstr(line, "= Cast(") != NULL;
  pclose(file);
  snprintf(command, sizeof command, "cat %s/*-fuse_conv-after.txt", folder);
  file = popen(command, "r");
  while (fgets(line, sizeof line, file))
    out->fused += strstr(line, "= _ConvThen(") && is_16_bit(line);
  pclose(file);
}

static rn_session_t* start(rt_t* rt, const char* precision, const char* folder) {
  cr_assert(rn_scope_ok(rt->s), "%s", rn_scope_message(rt->s));
  OK(rn_precision_parse(rn_str(precision), &rt->options.precision));
  setenv("RUNNEL_DUMP", "mixed_precision,fuse_conv,group_updates", 1);
  setenv("RUNNEL_DUMP_DIR", folder, 1);
  rn_session_t* session = rt_session(rt);
  unsetenv("RUNNEL_DUMP");
  return session;
}

static trained_t train(const char* precision, bool is_scaled) {
  trained_t out = {0};
  char folder[] = "/tmp/mixed_precision_XXXXXX", command[64];
  cr_assert(mkdtemp(folder));
  rt_t rt = rt_begin(1);
  rn_edge_t loss = net(rt.s);
  rn_loss_scale_t scale = {.scale = is_scaled ? 32768 : 0, .is_dynamic = is_scaled, .period = 3};
  rn_node_t* train = rn_minimize(rt.s, rn_momentum(.learning_rate = 0.01f, .momentum = 0.9f), loss,
                                 .loss_scale = scale);
  rn_node_t* init = rn_initialize_variables(rt.s, RN_GLOBAL_VARIABLES);
  start(&rt, precision, folder);
  rt_do(&rt, init);
  for (int i = 0; i < STEPS; ++i) {
    rt_step_t step = {0};
    rt_fetch(&step, loss);
    rt_target(&step, train);
    OK(rt_run(&rt, &step));
    out.losses[i] = rt_value(&step.out[0]);
    rt_clear(&step);
  }
  if (is_scaled) {
    rn_edge_t value = rn_find_variable(rt.s, "current_loss_scale")->value;
    out.scale = (double)rt_get(&rt, value, (rn_edge_t){0}, 0);
  }
  read_dump(folder, &out);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
  rt_end(&rt);
  return out;
}

Test(mixed_precision, networks_train, .timeout = 300) {
  setenv("RUNNEL_VERIFY", "1", 1);
  trained_t plain = train("float32", false);
  cr_assert(plain.losses[STEPS - 1] < 0.9f * plain.losses[0]);
  cr_assert_eq(plain.half_convs, 0);
  for (int k = 0; k < 3; ++k) {
    const char* precision = k == 0 ? "bfloat16" : "float16";
    trained_t mixed = train(precision, k == 2);
    for (int i = 0; i < STEPS; ++i)
      cr_assert_float_eq(mixed.losses[i], plain.losses[i], 0.02f * (1 + plain.losses[i]),
                         "%s, step %d: %g and %g", precision, i, mixed.losses[i], plain.losses[i]);
    cr_assert_neq(mixed.losses[1], plain.losses[1]);
    // Two convolutions forwards, two gradients of filters, one of an image.
    cr_assert_eq(mixed.half_convs, 5, "%d", mixed.half_convs);
    cr_assert_eq(mixed.float_convs, 0);
    cr_assert_eq(mixed.fused, 2, "%d", mixed.fused);
    if (k == 2) cr_assert(mixed.scale > 0 && fmod(log2(mixed.scale), 1) == 0);
    // Five variables to 16 bits and their gradients back, the logits, and their gradient; the
    // scaled loss has one more.
    cr_assert_leq(mixed.casts, 14, "%d", mixed.casts);
    // The optimizer reads gradients as they are, and variables are cast together.
    if (k < 2) cr_assert_leq(mixed.late_casts, 3, "%d", mixed.late_casts);
  }
}
