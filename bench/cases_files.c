// Checkpoints: saves and restores a gigabyte in sixteen tensors; and the speed of the disk itself.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "graph_util.h"

enum { kTensors = 16, kElements = 16 << 20 };
static const double kBytes = (double)kTensors * kElements * 4;

typedef struct {
  net_t net;
  TF_Session* session;
  TF_Operation *save, *restore;
  char prefix[96], plain[128];
  void* bytes;
} files_t;

static TF_Output text(net_t* net, const char* const* values, int count) {
  int64_t dim = count;
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, &dim, count < 0 ? 0 : 1,
                                        sizeof(TF_TString) * (size_t)abs(count));
  TF_TString* strings = TF_TensorData(tensor);
  for (int i = 0; i < abs(count); ++i) {
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], values[i], strlen(values[i]));
  }
  return net_const(net, tensor);
}

static void build(files_t* files) {
  net_t* net = &files->net;
  net_open(net);
  char names[kTensors][16];
  const char *list[kTensors], *slices[kTensors], *prefix = files->prefix;
  TF_Output values[kTensors];
  TF_DataType dtypes[kTensors];
  for (int i = 0; i < kTensors; ++i) {
    values[i] = net_variable(net, SHAPE(kElements), 0);
    snprintf(names[i], sizeof names[i], "tensor%02d", i);
    list[i] = names[i];
    slices[i] = "";
    dtypes[i] = TF_FLOAT;
  }
  TF_Output inputs[3] = {text(net, &prefix, -1), text(net, list, kTensors),
                         text(net, slices, kTensors)};
  TF_OperationDescription* save = net_begin(net, "SaveV2");
  for (int i = 0; i < 3; ++i) TF_AddInput(save, inputs[i]);
  TF_AddInputList(save, values, kTensors);
  files->save = net_finish(net, save);
  TF_OperationDescription* restore = net_begin(net, "RestoreV2");
  for (int i = 0; i < 3; ++i) TF_AddInput(restore, inputs[i]);
  TF_SetAttrTypeList(restore, "dtypes", dtypes, kTensors);
  files->restore = net_finish(net, restore);
}

static void open_files(files_t* files) {
  const char* folder = getenv("BENCH_FOLDER");  // on a disk, because syncs are included
  snprintf(files->prefix, sizeof files->prefix, "%s/bench_%d", folder ? folder : "/var/tmp",
           (int)getpid());
  snprintf(files->plain, sizeof files->plain, "%s.plain", files->prefix);
  build(files);
  files->session = session_open(&files->net, (session_config_t){0});
  session_init_variables(files->session, &files->net);
}

static void close_files(files_t* files) {
  char name[128];
  const char* const endings[] = {".index", ".data-00000-of-00001", ".data-00001-of-00002"};
  for (int i = 0; i < 3; ++i) {
    snprintf(name, sizeof name, "%s%s", files->prefix, endings[i]);
    unlink(name);
  }
  session_close(files->session);
  net_close(&files->net);
}

static double run_target(files_t* files, TF_Operation* target) {
  step_t step;
  step_open(&step, files->session);
  step.target = target;
  double start = bench_now();
  step_run(&step);
  double seconds = bench_now() - start;
  step_close(&step);
  return seconds;
}

static double save_once(void* arg) {
  files_t* files = arg;
  return run_target(files, files->save);
}

static double restore_once(void* arg) {
  files_t* files = arg;
  return run_target(files, files->restore);
}

// GB/s of saving or, with |restores|, of restoring from the page cache.
static double checkpoint(const bench_options_t* options, int restores, int unused) {
  (void)unused;
  files_t files = {0};
  open_files(&files);
  save_once(&files);
  double seconds = bench_shortest(options, restores ? restore_once : save_once, &files);
  close_files(&files);
  return kBytes / seconds * 1e-9;
}

// Writes the same number of bytes to a new file, syncs it, and replaces the previous file, like a
// checkpoint.
static double plain_once(files_t* files) {
  char fresh[160];
  snprintf(fresh, sizeof fresh, "%s.new", files->plain);
  double start = bench_now();
  int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) bench_fail("%s cannot be made", fresh);
  for (int i = 0; i < kTensors; ++i)
    if (write(fd, (char*)files->bytes + (size_t)i * kElements * 4, kElements * 4) != kElements * 4)
      bench_fail("the disk is full");
  if (fsync(fd) != 0) bench_fail("no sync");
  close(fd);
  if (rename(fresh, files->plain) != 0) bench_fail("no rename");
  return bench_now() - start;
}

// The ratio of a save to a plain write in the same run, measured alternately: the best of each.
static double save_to_plain(const bench_options_t* options, int unused_a, int unused_b) {
  (void)unused_a, (void)unused_b;
  files_t files = {0};
  open_files(&files);
  files.bytes = malloc((size_t)kBytes);
  if (!files.bytes) bench_fail("no memory");
  memset(files.bytes, 1, (size_t)kBytes);
  double plain = 1e9, save = 1e9;
  for (int i = 0; i < 2 + options->batches; ++i) {
    double seconds = plain_once(&files);
    plain = seconds < plain ? seconds : plain;
    seconds = save_once(&files);
    save = seconds < save ? seconds : save;
  }
  free(files.bytes);
  unlink(files.plain);
  close_files(&files);
  return plain / save;
}

const bench_case_t bench_files_cases[] = {
    {"checkpoint_save", "GB/s", checkpoint, 0, 0},
    {"checkpoint_restore", "GB/s", checkpoint, 1, 0},
    {"checkpoint_save_to_plain", "x", save_to_plain, 0, 0},
    {0},
};
