// runnel devices: what steps can run on in this machine, and why not on its GPUs.
#include <stdio.h>
#include <unistd.h>

#include "cli/json.h"
#include "device/part.h"

#define GIB ((double)(1 << 30))

typedef struct machine_t {
  char cpu[128];  // its model, or "CPU"
  long processors;
  double memory;  // bytes
  rn_part_report_t gpus;
  rn_status_t problem;  // why GPUs cannot be used; owned
} machine_t;

// The first "model name" in /proc/cpuinfo.
static void read_model(char* out, size_t size) {
  char line[256];
  snprintf(out, size, "CPU");
  FILE* file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    const char* colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    rn_str_t model = rn_str_trim(rn_str(colon + 1));
    snprintf(out, size, "%.*s", RN_STR_ARGS(model));
    break;
  }
  if (file) fclose(file);
}

static void find(machine_t* machine) {
  read_model(machine->cpu, sizeof machine->cpu);
  machine->processors = sysconf(_SC_NPROCESSORS_ONLN);
  machine->memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  const rn_device_part_t* part = NULL;
  machine->problem = rn_cuda_part_load(&part);
  if (part) machine->problem = part->report(&machine->gpus);
}

static void print_text(const machine_t* machine) {
  const rn_part_report_t* gpus = &machine->gpus;
  printf("%-8s %12s %11s  %s\n", "device", "memory", "capability", "name");
  printf("%-8s %8.1f GiB %11s  %s, %ld processors\n", "CPU:0", machine->memory / GIB, "-",
         machine->cpu, machine->processors);
  for (int i = 0; i < gpus->gpu_count; ++i) {
    const rn_part_gpu_t* gpu = &gpus->gpus[i];
    char device[16], capability[24];
    snprintf(device, sizeof device, "GPU:%d", i);
    snprintf(capability, sizeof capability, "%d.%d", gpu->major, gpu->minor);
    printf("%-8s %8.1f GiB %11s  %s, %d multiprocessors, at %s\n", device,
           (double)gpu->memory / GIB, capability, gpu->name, gpu->multiprocessors, gpu->bus_id);
  }
  if (gpus->library_count) putchar('\n');
  if (gpus->driver_version)
    printf("%-16s CUDA %d.%d\n", "driver version", gpus->driver_version / 1000,
           gpus->driver_version % 1000 / 10);
  for (int i = 0; i < gpus->library_count; ++i) {
    const rn_part_library_t* library = &gpus->libraries[i];
    printf("%-16s %s%s\n", library->use,
           *library->found ? "" : "not found: ", *library->found ? library->found : library->file);
  }
  if (!rn_ok(machine->problem))
    printf("\nGPUs are not used: %s\n", rn_status_message(machine->problem));
}

static json_t* json_gpus(const rn_part_report_t* gpus) {
  json_t* list = json_array();
  for (int i = 0; i < gpus->gpu_count; ++i) {
    const rn_part_gpu_t* gpu = &gpus->gpus[i];
    json_array_append_new(list, json_pack("{s:i, s:o, s:s, s:[i, i], s:i, s:I}", "index", i, "name",
                                          rn_cli_json_str(rn_str(gpu->name)), "bus_id", gpu->bus_id,
                                          "capability", gpu->major, gpu->minor, "multiprocessors",
                                          gpu->multiprocessors, "memory", (json_int_t)gpu->memory));
  }
  return list;
}

static json_t* json_libraries(const rn_part_report_t* gpus) {
  json_t* list = json_array();
  for (int i = 0; i < gpus->library_count; ++i) {
    const rn_part_library_t* library = &gpus->libraries[i];
    json_t* found = *library->found ? rn_cli_json_str(rn_str(library->found)) : json_null();
    json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "use", library->use, "file",
                                          library->file, "found", found));
  }
  return list;
}

static rn_status_t print_json(const machine_t* machine) {
  const rn_part_report_t* gpus = &machine->gpus;
  json_t* problem = rn_ok(machine->problem)
                        ? json_null()
                        : rn_cli_json_str(rn_str(rn_status_message(machine->problem)));
  return rn_cli_json_print(json_pack(
      "{s:{s:o, s:I, s:I}, s:o, s:i, s:o, s:o}", "cpu", "name",
      rn_cli_json_str(rn_str(machine->cpu)), "processors", (json_int_t)machine->processors,
      "memory", (json_int_t)machine->memory, "gpus", json_gpus(gpus), "driver_version",
      gpus->driver_version, "libraries", json_libraries(gpus), "problem", problem));
}

static rn_status_t devices_run(rn_cli_t* cli) {
  machine_t machine = {0};
  rn_status_t status = RN_OK;
  find(&machine);
  if (rn_cli_has(cli, "--json"))
    status = print_json(&machine);
  else
    print_text(&machine);
  rn_status_free(machine.problem);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_CLI_JSON_OPTION(NULL),
    {0},
};

const rn_cli_command_t rn_cli_devices_command = {
    .name = "devices",
    .summary = "list the CPU and the GPUs of this machine",
    .about =
        "Lists what steps can run on: the CPU and each GPU with its memory, compute capability and "
        "name. Then the version of NVIDIA's driver, and which of NVIDIA's libraries were found. If "
        "GPUs cannot be used, the last line says why.",
    .run = devices_run,
    .options = options,
    .examples =
        "runnel devices\n"
        "runnel devices --json",
};
