// The main job: trains a classifier of handwritten digits. It can be stopped at any time and
// resumes where it was, and it writes checkpoints, a log and a model.
//
//   FOLDER/checkpoint, FOLDER/state-1000.*   the newest states: a run that finds one goes on there
//   FOLDER/events.out.tfevents.*             loss and accuracy, histograms, weights as images
//   FOLDER/model/                            the trained model, a SavedModel
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digits_data.h"

enum { HIDDEN = 64, BATCH = 50, STEPS = 6000, SAVE_EVERY = 2000, LOG_EVERY = 100, PATH = 512 };

typedef struct model_t {
  rn_edge_t images, labels, scores, loss, accuracy, weights;
  const rn_var_t* step;
  rn_node_t* train;
} model_t;

static model_t build(rn_scope_t* s) {
  model_t m;
  m.images = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, DIGITS_PIXELS));
  m.labels = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(-1));
  rn_edge_t hidden = rn_dense(s, m.images, HIDDEN, .activation = rn_relu, .name = "hidden",
                              .kernel_initializer = rn_init_glorot_uniform(1));
  rn_edge_t logits = rn_dense(s, hidden, DIGITS_CLASSES, .name = "out",
                              .kernel_initializer = rn_init_glorot_uniform(2));
  m.scores = rn_softmax(s, logits);
  m.loss = rn_sparse_softmax_cross_entropy(s, m.labels, logits);
  m.step = rn_global_step(s);
  m.train = rn_minimize(s, rn_adam(.learning_rate = 0.002f), m.loss, .global_step = m.step);
  rn_edge_t guess = rn_ArgMax(s, logits, rn_const_int32(s, 1), .output_type = TF_INT32);
  rn_edge_t right = rn_Cast(s, rn_Equal(s, guess, m.labels), TF_FLOAT);
  m.accuracy = rn_Mean(s, right, rn_const_int32(s, 0));
  const rn_collected_t* variables = NULL;
  bool has_any = rn_collection(s, RN_TRAINABLE_VARIABLES, &variables) > 0;
  m.weights = has_any ? variables[0].variable->value : RN_NO_EDGE;  // of the hidden layer
  return m;
}

// Ctrl-C ends the training loop, not the program.
static volatile sig_atomic_t is_stopped;
static void stop(int number) {
  (void)number;
  is_stopped = 1;
}

// Resumes from the newest intact checkpoint, if there is one.
static void resume(example_t* e, rn_saver_t* saver, const char* folder) {
  char* note = NULL;
  char* path = rn_latest_checkpoint(folder, NULL, &note, e->status);
  if (!path && TF_GetCode(e->status) != TF_NOT_FOUND) example_check(e, folder);
  if (note) printf("%s\n", note);
  if (path && !rn_saver_restore(saver, e->session, path, e->status)) example_check(e, path);
  if (path && !rn_saver_recover(saver, folder, e->status)) example_check(e, folder);
  if (path) printf("goes on from %s\n", path);
  free(note);
  free(path);
}

// The weights of the hidden units side by side, as an image: bright where a pixel activates the
// unit.
static void log_weights(example_t* e, rn_summary_writer_t* log, const model_t* m, int64_t step) {
  static float weights[DIGITS_PIXELS][HIDDEN];
  example_run(e, RN_FETCH(m->weights, weights[0], DIGITS_PIXELS, HIDDEN));
  int64_t dims[2] = {DIGITS_PIXELS, HIDDEN};
  TF_Tensor* values = TF_AllocateTensor(TF_FLOAT, dims, 2, sizeof weights);
  if (!values) example_fail("a tensor", "no memory");
  memcpy(TF_TensorData(values), weights, sizeof weights);
  rn_summary_histogram(log, "hidden/weights", step, values, e->status);
  TF_DeleteTensor(values);
  uint8_t image[72][72];
  memset(image, 255, sizeof image);
  for (int unit = 0; unit < HIDDEN; ++unit)
    for (int p = 0; p < DIGITS_PIXELS; ++p) {
      float level = 128 + 256 * weights[p][unit];
      image[unit / 8 * 9 + p / 8][unit % 8 * 9 + p % 8] = (uint8_t)(level < 0     ? 0
                                                                    : level > 255 ? 255
                                                                                  : level);
    }
  rn_summary_image(log, "hidden/units", step, image[0], 72, 72, 1, e->status);
}

static float held_out(example_t* e, const model_t* m, const digits_t* digits) {
  float accuracy = 0;
  example_run(e, RN_FEED(m->images, digits->images[DIGITS_TRAINED], DIGITS_HELD_OUT, DIGITS_PIXELS),
              RN_FEED(m->labels, digits->labels + DIGITS_TRAINED, DIGITS_HELD_OUT),
              RN_FETCH(m->accuracy, &accuracy));
  return accuracy;
}

// Trains up to the next multiple of |e->steps| or Ctrl-C; returns the accuracy on held-out images.
static float train(example_t* e, const model_t* m, rn_saver_t* saver, rn_summary_writer_t* log,
                   const digits_t* digits, const char* state) {
  int64_t step = 0;
  example_run(e, RN_FETCH(m->step->value, &step));
  e->random += (uint64_t)step;  // different batches than before
  e->goal = (int)(step - step % e->steps + e->steps);
  float accuracy = 0;
  do {
    float images[BATCH * DIGITS_PIXELS], loss = 0, part = 0;
    int32_t labels[BATCH];
    digits_batch(e, digits, BATCH, images, labels);
    example_run(e, RN_TARGET(m->train), RN_FEED(m->images, images, BATCH, DIGITS_PIXELS),
                RN_FEED(m->labels, labels, BATCH), RN_FETCH(m->loss, &loss),
                RN_FETCH(m->accuracy, &part));
    ++step;
    example_progress(e, (int)step, "loss %.4f   accuracy %5.1f %%", loss, 100 * part);
    if (step % LOG_EVERY == 0) {
      rn_summary_scalar(log, "loss", step, loss, e->status);
      rn_summary_scalar(log, "accuracy", step, part, e->status);
    }
    if (is_stopped || step % SAVE_EVERY == 0 || step % e->steps == 0) {
      accuracy = held_out(e, m, digits);
      rn_summary_scalar(log, "held_out/accuracy", step, accuracy, e->status);
      log_weights(e, log, m, step);
      if (!rn_saver_save(saver, e->session, state, step, e->status)) example_check(e, state);
    }
  } while (!is_stopped && step % e->steps != 0);
  return accuracy;
}

static void write_model(example_t* e, const model_t* m, const char* folder) {
  TF_Output input = rn_output_of(m->images), output = rn_output_of(m->scores);
  rn_signature_def_t signature = {.name = "serving_default",
                                  .input_count = 1,
                                  .input_names = (const char*[]){"images"},
                                  .inputs = &input,
                                  .output_count = 1,
                                  .output_names = (const char*[]){"scores"},
                                  .outputs = &output};
  rn_saved_model_def_t def = {.signatures = &signature, .signature_count = 1, .overwrites = true};
  if (!rn_saved_model_write(e->session, folder, &def, e->status)) example_check(e, folder);
}

// How to call the command: it is in the same build folder as the examples, or on the PATH.
static void find_command(const char* program, char* out, size_t room) {
  const char* end = strstr(program, "examples/digits");
  snprintf(out, room, "%.*scli/runnel", end ? (int)(end - program) : 0, program);
  if (!end || access(out, X_OK) != 0) snprintf(out, room, "runnel");
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 && argv[1][0] != '-' ? argv[1] : "train";
  bool is_named = folder == argv[1];
  if (is_named) argv[1] = argv[0];
  example_t e =
      example_open(argc - is_named, argv + is_named,
                   "Learns handwritten digits; FOLDER before the options is where it keeps "
                   "what it learns (train). Stops at Ctrl-C and goes on when run again.",
                   STEPS);
  model_t m = build(e.scope);
  rn_saver_t* saver = rn_saver(e.scope, .max_to_keep = 3);
  example_start(&e);
  digits_t* digits = digits_read(&e);
  rn_summary_writer_t* log = rn_summary_writer_create(folder, NULL, e.status);
  example_check(&e, folder);
  char state[PATH], model[PATH];
  snprintf(state, sizeof state, "%s/state", folder);
  snprintf(model, sizeof model, "%s/model", folder);
  resume(&e, saver, folder);
  rn_summary_graph(log, rn_tf_graph_of(e.scope), e.status);
  signal(SIGINT, stop);

  float accuracy = train(&e, &m, saver, log, digits, state);
  rn_summary_writer_close(log, e.status);
  if (e.is_line_open) putchar('\n');
  printf("%s; %s\n", is_stopped ? "stopped, and saved" : "done",
         is_stopped ? "run it again to go on" : "run it again to train some more");
  if (!is_stopped) write_model(&e, &m, model);
  char runnel[PATH];
  find_command(argv[0], runnel, sizeof runnel);
  printf("  states   %s ckpt list %s\n", runnel, folder);
  printf("  log      %s events %s\n", runnel, folder);
  printf("           tensorboard --logdir %s\n", folder);
  if (!is_stopped) printf("  model    %s saved_model show %s\n", runnel, model);
  rn_saver_destroy(saver);
  free(digits);
  return example_close(&e, is_stopped || accuracy >= 0.95f, "%.1f %% of the held-out digits",
                       100 * accuracy);
}
