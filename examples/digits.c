// Trains a classifier of handwritten digits: two layers, softmax, gradient descent, all of it in C.
//
//   make train
//
// 1,500 of the 1,797 images are trained on, the rest are held out; the program ends with 0 if at
// least 95 % of those are told right.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runnel/runnel.h"

enum { PIXELS = 64, HIDDEN = 64, CLASSES = 10, TRAINED = 1500, BATCH = 50, EPOCHS = 60 };

static void fail(const char* what, const char* message) {
  fprintf(stderr, "digits: %s: %s\n", what, message);
  exit(1);
}

static void check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) != TF_OK) fail(what, TF_Message(status));
}

typedef struct data_t {
  uint32_t count;
  float* images;  // count x PIXELS, 0 … 1
  int32_t* labels;
} data_t;

static data_t read_data(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) fail("cannot open the data", path);
  char magic[8];
  uint32_t header[3];
  if (fread(magic, 8, 1, file) != 1 || memcmp(magic, "DIGITS01", 8) != 0 ||
      fread(header, sizeof header, 1, file) != 1 || header[1] * header[2] != PIXELS ||
      header[0] > 100000)
    fail("not a file of digits", path);
  data_t data = {header[0], malloc((size_t)header[0] * PIXELS * sizeof(float)),
                 malloc((size_t)header[0] * sizeof(int32_t))};
  if (!data.images || !data.labels) fail("no memory for", path);
  for (uint32_t i = 0; i < data.count; ++i) {
    uint8_t row[PIXELS + 1];
    if (fread(row, sizeof row, 1, file) != 1) fail("the file ends too early", path);
    for (int p = 0; p < PIXELS; ++p) data.images[i * PIXELS + p] = row[p] / 16.0f;
    data.labels[i] = row[PIXELS];
  }
  fclose(file);
  return data;
}

static uint32_t random_bits(void) {
  static uint32_t state = 2016;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

// The images come writer by writer: mixed, the held-out ones are like the others.
static void shuffle(data_t* data) {
  for (uint32_t i = data->count - 1; i > 0; --i) {
    uint32_t j = random_bits() % (i + 1);
    float image[PIXELS];
    memcpy(image, data->images + i * PIXELS, sizeof image);
    memcpy(data->images + i * PIXELS, data->images + j * PIXELS, sizeof image);
    memcpy(data->images + j * PIXELS, image, sizeof image);
    int32_t label = data->labels[i];
    data->labels[i] = data->labels[j];
    data->labels[j] = label;
  }
}

// A variable and the node that gives it its first value.
typedef struct variable_t {
  rn_edge_t handle, value;
  rn_node_t* init;
} variable_t;

static variable_t variable(rn_scope_t* s, const char* name, const int32_t* dims, int rank,
                           float deviation) {
  int64_t shape[2] = {dims[0], rank > 1 ? dims[1] : 1};
  variable_t v;
  v.handle = rn_VarHandleOp(s, TF_FLOAT, shape, rank, .shared_name = name, .name = name);
  v.value = rn_ReadVariableOp(s, v.handle, TF_FLOAT);
  rn_edge_t size = rn_const_int32_list(s, dims, rank);
  rn_edge_t first =
      deviation > 0 ? rn_Mul(s, rn_TruncatedNormal(s, size, TF_FLOAT, .seed = 1, .seed2 = dims[0]),
                             rn_const_float(s, deviation))
                    : rn_Fill(s, size, rn_const_float(s, 0));
  v.init = rn_AssignVariableOp(s, v.handle, first);
  return v;
}

typedef struct model_t {
  rn_edge_t images, labels, loss, accuracy;
  rn_node_t *init[4], *train[4];
} model_t;

static model_t build(rn_scope_t* s, float rate) {
  model_t m;
  int64_t image_shape[2] = {-1, PIXELS}, label_shape[1] = {-1};
  m.images = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(image_shape, 2), .name = "images");
  m.labels = rn_Placeholder(s, TF_INT32, .shape = RN_SET_SHAPE(label_shape, 1), .name = "labels");
  variable_t w1 = variable(s, "w1", (const int32_t[]){PIXELS, HIDDEN}, 2, 0.15f);
  variable_t b1 = variable(s, "b1", (const int32_t[]){HIDDEN}, 1, 0);
  variable_t w2 = variable(s, "w2", (const int32_t[]){HIDDEN, CLASSES}, 2, 0.15f);
  variable_t b2 = variable(s, "b2", (const int32_t[]){CLASSES}, 1, 0);
  rn_edge_t hidden = rn_Relu(s, rn_BiasAdd(s, rn_MatMul(s, m.images, w1.value), b1.value));
  rn_edge_t logits = rn_BiasAdd(s, rn_MatMul(s, hidden, w2.value), b2.value);
  rn_edge_t losses = rn_SparseSoftmaxCrossEntropyWithLogits(s, logits, m.labels).loss;
  rn_edge_t first_axis = rn_const_int32_list(s, (const int32_t[]){0}, 1);
  m.loss = rn_Mean(s, losses, first_axis);
  rn_edge_t guess = rn_ArgMax(s, logits, rn_const_int32(s, 1), .output_type = TF_INT32);
  m.accuracy = rn_Mean(s, rn_Cast(s, rn_Equal(s, guess, m.labels), TF_FLOAT), first_axis);

  variable_t all[4] = {w1, b1, w2, b2};
  rn_edge_t values[4], gradients[4];
  for (int i = 0; i < 4; ++i) values[i] = all[i].value;
  rn_gradients(s, m.loss, values, 4, gradients);
  rn_edge_t step = rn_const_float(s, rate);
  for (int i = 0; i < 4; ++i) {
    m.init[i] = all[i].init;
    m.train[i] = rn_ResourceApplyGradientDescent(s, all[i].handle, step, gradients[i]);
  }
  return m;
}

static TF_Tensor* tensor(TF_DataType type, const int64_t* dims, int rank, const void* data,
                         size_t size) {
  TF_Tensor* t = TF_AllocateTensor(type, dims, rank, size);
  if (!t) fail("no memory for", "a tensor");
  memcpy(TF_TensorData(t), data, size);
  return t;
}

// Runs a step over |count| images. Trains if |targets| are given; the loss and the accuracy come
// out.
static void run(TF_Session* session, const model_t* m, const float* images, const int32_t* labels,
                int64_t count, rn_node_t* const* targets, int target_count, float* loss,
                float* accuracy) {
  TF_Status* status = TF_NewStatus();
  int64_t image_dims[2] = {count, PIXELS};
  TF_Output feeds[2] = {rn_output_of(m->images), rn_output_of(m->labels)};
  TF_Tensor* values[2] = {
      tensor(TF_FLOAT, image_dims, 2, images, (size_t)count * PIXELS * sizeof(float)),
      tensor(TF_INT32, &count, 1, labels, (size_t)count * sizeof(int32_t))};
  TF_Output fetches[2] = {rn_output_of(m->loss), rn_output_of(m->accuracy)};
  TF_Tensor* results[2] = {NULL, NULL};
  TF_SessionRun(session, NULL, feeds, values, 2, fetches, results, 2,
                (const TF_Operation* const*)targets, target_count, NULL, status);
  check(status, "a step");
  *loss = *(float*)TF_TensorData(results[0]);
  *accuracy = *(float*)TF_TensorData(results[1]);
  for (int i = 0; i < 2; ++i) {
    TF_DeleteTensor(values[i]);
    TF_DeleteTensor(results[i]);
  }
  TF_DeleteStatus(status);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  data_t data = read_data(argc > 1 ? argv[1] : RN_DATA_DIR "/digits.bin");
  if (data.count <= TRAINED) fail("too few images", "in the data");
  shuffle(&data);
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  rn_scope_t* scope = rn_scope_create(rn_graph_of(graph));
  model_t model = build(scope, 0.2f);
  if (!rn_scope_ok(scope)) fail("the graph", rn_scope_message(scope));

  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  check(status, "the session");
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, (const TF_Operation* const*)model.init,
                4, NULL, status);
  check(status, "the first values");

  printf("Runnel %s: %d images to learn from, %u held out\n", rn_version(), TRAINED,
         data.count - TRAINED);
  double start = seconds();
  int step = 0;
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    float loss = 0, accuracy = 0, loss_sum = 0, accuracy_sum = 0;
    for (int batch = 0; batch < TRAINED / BATCH; ++batch, ++step) {
      float images[BATCH * PIXELS];
      int32_t labels[BATCH];
      for (int i = 0; i < BATCH; ++i) {
        uint32_t pick = random_bits() % TRAINED;
        memcpy(images + i * PIXELS, data.images + pick * PIXELS, PIXELS * sizeof(float));
        labels[i] = data.labels[pick];
      }
      run(session, &model, images, labels, BATCH, model.train, 4, &loss, &accuracy);
      loss_sum += loss;
      accuracy_sum += accuracy;
    }
    float batches = TRAINED / BATCH;
    printf("\rstep %5d   loss %.4f   accuracy %5.1f %%   %8.0f examples/s", step,
           loss_sum / batches, 100 * accuracy_sum / batches, step * BATCH / (seconds() - start));
    fflush(stdout);
    if (epoch % 10 == 9) putchar('\n');
  }
  float loss, accuracy;
  run(session, &model, data.images + TRAINED * PIXELS, data.labels + TRAINED, data.count - TRAINED,
      NULL, 0, &loss, &accuracy);
  printf("held out: loss %.4f, accuracy %.1f %%\n", loss, 100 * accuracy);

  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  rn_scope_destroy(scope);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  free(data.images);
  free(data.labels);
  return accuracy >= 0.95f ? 0 : 1;
}
