// Networks on a GPU, measured: the command line. README.md says what the columns are.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_bench.h"

static const char usage[] =
    "usage: gpu_bench [--device gpu|cpu] [--dtype float|bfloat16] [--seconds S] [--tiny]\n"
    "                 [--mixed-precision float16|bfloat16] [--check] [--repeats] [--placement]\n"
    "                 [--trace FILE] [--list] [--batch N] [--export FILE] [CASE ...]\n"
    "  --mixed-precision TYPE  let the session choose what is computed in TYPE\n"
    "  --tiny       a small network of the same layers\n"
    "  --check      run tiny cases on the CPU and on the GPU, and compare their losses\n"
    "  --repeats    run cases twice with deterministic ops, and compare the bits of their losses\n"
    "  --placement  log the device of each node\n"
    "  --trace FILE write the RunMetadata of one step\n"
    "  --batch N    examples per step, instead of the case's\n"
    "  --export FILE  write the GraphDef of the case, and do not run it\n";

typedef struct command_t {
  bench_options_t options;
  bool is_check, repeats, is_list;
  const char* export_file;  // NULL: the cases are run
  char** names;
  int name_count;
} command_t;

static bool is_wanted(const command_t* command, const bench_case_t* c) {
  if (command->options.dtype != TF_FLOAT && !c->has_bfloat16) return false;
  for (int i = 0; i < command->name_count; ++i)
    if (strcmp(command->names[i], c->name) == 0) return true;
  return command->name_count == 0;
}

static const char* dtype_name(TF_DataType dtype) {
  return dtype == TF_FLOAT ? "float" : "bfloat16";
}

static bool measure_case(const command_t* command, const bench_case_t* c) {
  bench_result_t r;
  if (!bench_run(c, &command->options, &r)) return false;
  printf("%s\t%s\t%s\t%.4f\t%s\t%.4f\t%.0f\t%.0f\t%lld\t%.4f\t%d\n", c->name,
         dtype_name(command->options.dtype), command->options.device, r.figure, c->unit, r.best_ms,
         r.setup_ms, r.first_ms, (long long)(r.peak_bytes >> 20), r.last_loss, r.steps);
  return true;
}

// The losses of both devices must agree, and fall.
static bool check_case(const command_t* command, const bench_case_t* c) {
  bench_options_t options = command->options;
  bench_result_t cpu, gpu;
  options.is_tiny = true;
  options.seconds = 0;
  options.device = "cpu";
  if (!bench_run(c, &options, &cpu)) return false;
  options.device = "gpu";
  if (!bench_run(c, &options, &gpu)) return false;
  bool ok = gpu.peak_bytes > 0;
  double allowed = options.dtype == TF_FLOAT && !options.mixed_precision ? 1e-3 : 3e-2;
  for (int i = 0; i < BENCH_CHECKED; ++i)
    ok &= fabs(cpu.losses[i] - gpu.losses[i]) <= allowed * (1e-6 + fabs(cpu.losses[0]));
  ok &= !gpu.is_trained || gpu.last_loss < gpu.losses[0];
  printf("%s\t%s\t%s\tcpu %.6g %.6g ... %.6g\tgpu %.6g %.6g ... %.6g\n", ok ? "ok" : "FAILED",
         c->name, dtype_name(options.dtype), cpu.losses[0], cpu.losses[1], cpu.last_loss,
         gpu.losses[0], gpu.losses[1], gpu.last_loss);
  return ok;
}

// Two runs of the same steps must come to the same bits.
static bool repeat_case(const command_t* command, const bench_case_t* c) {
  bench_options_t options = command->options;
  bench_result_t first, second;
  options.seconds = 0;
  setenv("TF_DETERMINISTIC_OPS", "1", 1);
  if (!bench_run(c, &options, &first) || !bench_run(c, &options, &second)) return false;
  bool ok = memcmp(first.losses, second.losses, sizeof first.losses) == 0 &&
            memcmp(&first.last_loss, &second.last_loss, sizeof first.last_loss) == 0;
  printf("%s\t%s\t%s\t%.9g, then %.9g\n", ok ? "ok" : "FAILED", c->name, dtype_name(options.dtype),
         first.last_loss, second.last_loss);
  return ok;
}

// Each case has a process of its own, so that its memory is counted from zero.
static bool in_own_process(const command_t* command, const bench_case_t* c) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    bool ok = command->export_file ? bench_export(c, &command->options, command->export_file)
              : command->is_check  ? check_case(command, c)
              : command->repeats   ? repeat_case(command, c)
                                   : measure_case(command, c);
    exit(ok ? 0 : 1);
  }
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (status) fprintf(stderr, "%s: failed\n", c->name);
  return status == 0;
}

static bool parse(int argc, char** argv, command_t* command) {
  bench_options_t* options = &command->options;
  for (int i = 1; i < argc; ++i) {
    const char* next = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "--device") == 0 && next) {
      options->device = argv[++i];
    } else if (strcmp(argv[i], "--dtype") == 0 && next) {
      options->dtype = strcmp(argv[++i], "bfloat16") == 0 ? TF_BFLOAT16 : TF_FLOAT;
    } else if (strcmp(argv[i], "--mixed-precision") == 0 && next) {
      options->mixed_precision = argv[++i];
    } else if (strcmp(argv[i], "--seconds") == 0 && next) {
      options->seconds = atof(argv[++i]);
    } else if (strcmp(argv[i], "--trace") == 0 && next) {
      options->trace = argv[++i];
    } else if (strcmp(argv[i], "--batch") == 0 && next) {
      options->batch = atoll(argv[++i]);
    } else if (strcmp(argv[i], "--export") == 0 && next) {
      command->export_file = argv[++i];
    } else if (strcmp(argv[i], "--tiny") == 0) {
      options->is_tiny = true;
    } else if (strcmp(argv[i], "--check") == 0) {
      command->is_check = true;
    } else if (strcmp(argv[i], "--repeats") == 0) {
      command->repeats = true;
    } else if (strcmp(argv[i], "--placement") == 0) {
      options->log_placement = true;
    } else if (strcmp(argv[i], "--list") == 0) {
      command->is_list = true;
    } else if (argv[i][0] == '-') {
      return false;
    } else {
      command->names[command->name_count++] = argv[i];
    }
  }
  return true;
}

static void print_line(const char* line) { fprintf(stderr, "%s\n", line); }

int main(int argc, char** argv) {
  static const bench_case_t* const tables[] = {bench_images, bench_inference, bench_text,
                                               bench_machine};
  command_t command = {.options = {.device = "gpu", .seconds = 2, .dtype = TF_FLOAT}};
  command.names = calloc((size_t)argc + 1, sizeof *command.names);
  if (!command.names || !parse(argc, argv, &command)) {
    fputs(usage, stderr);
    return 2;
  }
  TF_RegisterLogListener(print_line);
  int found = 0;
  bool ok = true;
  if (!command.is_check && !command.repeats && !command.is_list && !command.export_file)
    puts("# case\tdtype\tdevice\tfigure\tunit\tbest_ms\tsetup_ms\tfirst_ms\tpeak_mib\tloss\tsteps");
  for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t) {
    for (const bench_case_t* c = tables[t]; c->name; ++c) {
      if (!is_wanted(&command, c)) continue;
      ++found;
      if (command.is_list)
        puts(c->name);
      else
        ok &= in_own_process(&command, c);
    }
  }
  free(command.names);
  if (!found) fputs("no such case\n", stderr);
  return ok && found ? 0 : 1;
}
