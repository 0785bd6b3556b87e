// Every optimizer compared with stock's values over 100 steps (optimizers.txt, recorded by
// record_optimizers.py), on reference and resource variables; also the slots, by name.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

enum { MAX_VALUES = 24, MAX_SLOTS = 6 };

typedef struct record_t {
  char key[32], problem[16], dtype[16];
  double steps[3][MAX_VALUES];
  int slot_count;
  struct {
    char name[64];
    int count;
    double values[MAX_VALUES];
  } slots[MAX_SLOTS];
} record_t;

static int read_values(char* text, double* out) {
  int count = 0;
  for (char* word = strtok(text, " \n"); word && count < MAX_VALUES; word = strtok(NULL, " \n"))
    out[count++] = atof(word);
  return count;
}

// The next case of the file; false at its end.
static bool read_record(FILE* file, record_t* record) {
  char line[2048], name[64];
  int used = 0, step;
  memset(record, 0, sizeof *record);
  if (!fgets(line, sizeof line, file)) return false;
  cr_assert(sscanf(line, "case %31s %15s %15s", record->key, record->problem, record->dtype) == 3);
  for (long at = ftell(file); fgets(line, sizeof line, file); at = ftell(file)) {
    if (sscanf(line, "step %d %n", &step, &used) == 1) {
      read_values(line + used, record->steps[step == 1 ? 0 : step == 10 ? 1 : 2]);
    } else if (sscanf(line, "slot %63s %n", name, &used) == 1) {
      int i = record->slot_count++;
      cr_assert(i < MAX_SLOTS);
      strcpy(record->slots[i].name, name);
      record->slots[i].count = read_values(line + used, record->slots[i].values);
    } else {
      fseek(file, at, SEEK_SET);
      break;
    }
  }
  return true;
}

static rn_edge_t wave_of(rn_scope_t* s, int rows, int columns, double k, int dtype) {
  float narrow[MAX_VALUES];
  double wide[MAX_VALUES];
  for (int i = 0; i < rows * columns; ++i) narrow[i] = (float)(wide[i] = sin(k * (i + 1)));
  return rn_const(s, dtype, (const int64_t[]){rows, columns}, 2,
                  dtype == TF_FLOAT ? (void*)narrow : (void*)wide);
}

static rn_edge_t half_of_squares(rn_scope_t* s, rn_edge_t x) {
  rn_edge_t all = rn_const_int32_list(s, (const int32_t[]){0, 1}, 2);
  rn_edge_t sum = rn_Sum(s, rn_Square(s, x), all);
  return rn_Div(s, sum, rn_const_scalar(s, rn_edge_dtype(x), 2));
}

static rn_edge_t loss_of(rn_scope_t* s, const rn_var_t* w, bool is_dense, rn_edge_t indices) {
  int rows = is_dense ? 3 : 4, columns = is_dense ? 4 : 3, dtype = w->dtype;
  rn_edge_t a = wave_of(s, rows, columns, is_dense ? 0.7 : 0.9, dtype);
  rn_edge_t b = wave_of(s, rows, columns, is_dense ? 1.3 : 1.7, dtype);
  rn_edge_t x = is_dense ? w->value : rn_var_gather(s, w, indices);
  rn_edge_t loss = half_of_squares(s, rn_Sub(s, rn_Mul(s, a, x), b));
  if (!is_dense) return loss;
  rn_edge_t all = rn_const_int32_list(s, (const int32_t[]){0, 1}, 2);
  return rn_AddV2(s, loss, rn_Sum(s, rn_Sin(s, w->value), all));
}

static rn_optimizer_t optimizer_of(const char* key, const rn_var_t* step) {
  struct {
    const char* key;
    rn_optimizer_t optimizer;
  } all[] = {
      {"sgd", rn_gradient_descent(.learning_rate = 0.1f)},
      {"momentum", rn_momentum(.learning_rate = 0.05f, .momentum = 0.9f)},
      {"nesterov", rn_momentum(.learning_rate = 0.05f, .momentum = 0.9f, .nesterov = true)},
      {"adagrad", rn_adagrad(.learning_rate = 0.3f)},
      {"adagrad_da", rn_adagrad_da(.learning_rate = 0.3f, .step = step, .l1 = 0.01f, .l2 = 0.02f)},
      {"adadelta",
       rn_adadelta(.learning_rate = 0.5f, .rho = RN_SET(0.9f), .epsilon = RN_SET(1e-6f))},
      {"adam", rn_adam(.learning_rate = 0.02f)},
      {"adam_betas", rn_adam(.learning_rate = 0.02f, .beta1 = RN_SET(0.8f), .beta2 = RN_SET(0.95f),
                             .epsilon = RN_SET(1e-4f))},
      {"adamw", rn_adam(.learning_rate = 0.02f, .beta1 = RN_SET(0.875f), .beta2 = RN_SET(0.96875f),
                        .weight_decay = 0.05f)},
      {"amsgrad", rn_adam(.learning_rate = 0.02f, .beta1 = RN_SET(0.8f), .beta2 = RN_SET(0.9f),
                          .amsgrad = true)},
      {"rmsprop", rn_rmsprop(.learning_rate = 0.02f)},
      {"rmsprop_momentum", rn_rmsprop(.learning_rate = 0.01f, .rho = RN_SET(0.8f), .momentum = 0.5f,
                                      .epsilon = RN_SET(1e-3f))},
      {"rmsprop_centered", rn_rmsprop(.learning_rate = 0.01f, .momentum = 0.3f,
                                      .epsilon = RN_SET(1e-3f), .centered = true)},
      {"ftrl", rn_ftrl(.learning_rate = 0.3f)},
      {"ftrl_l1_l2", rn_ftrl(.learning_rate = 0.3f, .l1 = 0.01f, .l2 = 0.02f)},
      {"ftrl_shrinkage",
       rn_ftrl(.learning_rate = 0.3f, .power = RN_SET(-0.6f), .accumulator = RN_SET(0.2f),
               .l1 = 0.01f, .l2 = 0.02f, .l2_shrinkage = 0.03f)},
      {"proximal_sgd",
       rn_proximal_gradient_descent(.learning_rate = 0.1f, .l1 = 0.01f, .l2 = 0.02f)},
      {"proximal_adagrad", rn_proximal_adagrad(.learning_rate = 0.3f, .l1 = 0.01f, .l2 = 0.02f)},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (strcmp(all[i].key, key) == 0) return all[i].optimizer;
  cr_assert(false, "no optimizer '%s'", key);
  return all[0].optimizer;
}

// Stock is followed to 1e-6 of the size of the values.
static void compare(const record_t* record, const char* what, const double* got, const double* want,
                    int count) {
  double size = 0, off = 0;
  for (int i = 0; i < count; ++i) {
    size = fmax(size, fabs(want[i]));
    off = fmax(off, fabs(got[i] - want[i]));
  }
  // In floats, what is small is a difference of numbers around 1, which are rounded to 6e-8.
  if (strcmp(record->dtype, "float32") == 0) size = fmax(size, 1);
  cr_expect(off <= 1e-6 * size, "%s, %s, %s: %s is off by %.3g of %.3g", record->key,
            record->problem, record->dtype, what, off, size);
}

static void replay(const record_t* record, rn_variable_kind_t kind) {
  bool is_dense = strcmp(record->problem, "dense") == 0;
  int dtype = strcmp(record->dtype, "float32") == 0 ? TF_FLOAT : TF_DOUBLE;
  int count = is_dense ? 12 : 18;
  trial_t t = trial_open();
  rn_edge_t first = wave_of(t.s, is_dense ? 3 : 6, is_dense ? 4 : 3, 0.5, dtype);
  const rn_var_t* w = rn_new_variable(t.s, "w", first, .kind = kind);
  const rn_var_t* step = rn_global_step(t.s);
  int64_t four = 4;
  rn_edge_t indices = rn_Placeholder(t.s, TF_INT32, .shape = RN_SET_SHAPE(&four, 1));
  rn_node_t* train = rn_minimize(t.s, optimizer_of(record->key, step),
                                 loss_of(t.s, w, is_dense, indices), .global_step = step);
  trial_init(&t);
  double got[MAX_VALUES];
  for (int i = 1; i <= 100; ++i) {
    int32_t rows[4] = {i % 6, (3 * i + 1) % 6, i % 6, 4};
    TF_Tensor* fed = tensor_of(TF_INT32, &four, 1, rows);
    trial_run(&t, train, &indices, &fed, 1);
    TF_DeleteTensor(fed);
    if (i != 1 && i != 10 && i != 100) continue;
    cr_assert(trial_fetch(&t, w->value, NULL, NULL, 0, got, MAX_VALUES) == count);
    char what[32];
    snprintf(what, sizeof what, "step %d", i);
    compare(record, what, got, record->steps[i == 1 ? 0 : i == 10 ? 1 : 2], count);
  }
  for (int i = 0; i < record->slot_count; ++i) {
    const rn_var_t* slot = rn_find_variable(t.s, record->slots[i].name);
    cr_assert(slot, "%s has no variable '%s'", record->key, record->slots[i].name);
    int size = trial_fetch(&t, slot->value, NULL, NULL, 0, got, MAX_VALUES);
    cr_assert(size == record->slots[i].count);
    compare(record, slot->name, got, record->slots[i].values, size);
  }
  cr_expect(trial_scalar(&t, step->value) == 100);
  trial_close(&t);
}

static int replay_all(rn_variable_kind_t kind) {
  FILE* file = fopen(TRAIN_DATA "/optimizers.txt", "r");
  cr_assert(file, "no optimizers.txt");
  record_t* record = malloc(sizeof *record);
  int count = 0;
  for (; read_record(file, record); ++count) replay(record, kind);
  free(record);
  fclose(file);
  return count;
}

Test(optimizer, follows_stock_on_resources) { cr_expect(replay_all(RN_VARIABLE_RESOURCE) == 68); }
Test(optimizer, follows_stock_on_references) { cr_expect(replay_all(RN_VARIABLE_REFERENCE) == 68); }

// Slots are made for each call, called as stock calls them.
Test(optimizer, names_of_two) {
  trial_t t = trial_open();
  int64_t two = 2;
  const rn_var_t* a = rn_get_variable(t.s, "a", &two, 1, .initializer = rn_init_ones());
  const rn_var_t* b = rn_get_variable(t.s, "b", &two, 1, .initializer = rn_init_ones());
  rn_edge_t loss = rn_AddV2(t.s, rn_L2Loss(t.s, a->value), rn_L2Loss(t.s, b->value));
  rn_minimize(t.s, rn_adam(), loss, .variables = &a, .variable_count = 1);
  rn_minimize(t.s, rn_adam(), loss, .variables = &b, .variable_count = 1);
  trial_built(&t);
  static const char* const names[] = {"a/Adam",      "a/Adam_1",    "b/Adam",       "b/Adam_1",
                                      "beta1_power", "beta2_power", "beta1_power_1"};
  for (int i = 0; i < 7; ++i) cr_expect(rn_find_variable(t.s, names[i]), "no %s", names[i]);
  cr_expect(rn_slot(t.s, a, "Adam", 1) == rn_find_variable(t.s, "a/Adam_1"));
  cr_expect(!rn_slot(t.s, a, "Adam", 2));
  trial_close(&t);
}

// Slots and updates lie where the variable does.
Test(optimizer, devices_of_slots) {
  trial_t t = trial_open();
  int64_t two = 2;
  rn_scope_set_device(t.s, "/device:CPU:0");
  const rn_var_t* a = rn_get_variable(t.s, "a", &two, 1);
  rn_scope_set_device(t.s, NULL);
  rn_minimize(t.s, rn_momentum(.learning_rate = 1), rn_L2Loss(t.s, a->value));
  trial_built(&t);
  static const char* const names[] = {"a", "a/Momentum", "a/Momentum/Assign"};
  for (int i = 0; i < 3; ++i) {
    TF_Operation* op = TF_GraphOperationByName(t.graph, names[i]);
    cr_assert(op, "no %s", names[i]);
    cr_expect(strcmp(TF_OperationDevice(op), "/device:CPU:0") == 0, "%s: '%s'", names[i],
              TF_OperationDevice(op));
  }
  trial_close(&t);
}

Test(optimizer, refuses) {
  trial_t t = trial_open();
  cr_expect(!rn_minimize(t.s, rn_adam(), rn_const_float(t.s, 1)));
  cr_expect(strcmp(rn_scope_message(t.s), "No variables to optimize.") == 0, "%s",
            rn_scope_message(t.s));
  trial_close(&t);

  t = trial_open();
  int64_t two = 2;
  const rn_var_t* a = rn_get_variable(t.s, "a", &two, 1);
  cr_expect(!rn_minimize(t.s, rn_adam(), rn_const_float(t.s, 1)));
  cr_expect(strstr(rn_scope_message(t.s), "No gradients provided for any variable: ['a']"), "%s",
            rn_scope_message(t.s));
  trial_close(&t);

  t = trial_open();
  a = rn_get_variable(t.s, "a", &two, 1);
  cr_expect(!rn_minimize(t.s, rn_momentum(), rn_L2Loss(t.s, a->value)));
  cr_expect(strstr(rn_scope_message(t.s), "the learning rate is missing"), "%s",
            rn_scope_message(t.s));
  trial_close(&t);

  cr_expect(!rn_minimize(NULL, rn_adam(), RN_NO_EDGE));
  t = trial_open();
  cr_expect(!rn_minimize(t.s, rn_adam(), RN_NO_EDGE));
  cr_expect(!rn_apply_gradients(t.s, (rn_optimizer_t){0}, NULL, NULL, 0, NULL, NULL));
  trial_close(&t);
}
