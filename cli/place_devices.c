// The devices of `runnel place`: see place.h.
#include <math.h>

#include "cli/place.h"

static rn_status_t bad_device(const cli_place_job_t* job, rn_str_t text, const char* what) {
  return rn_cli_usage(job->run.cli, "--devices %.*s: %s", RN_STR_ARGS(text), what);
}

// "2G" or "512M" or a number of bytes.
static bool read_bytes(rn_str_t text, int64_t* out) {
  double unit = 1, value;
  static const char units[] = "KMGT";
  for (int u = 0; text.size && units[u]; ++u)
    if (text.data[text.size - 1] == units[u]) {
      unit = pow(1024, u + 1);
      text.size--;
      break;
    }
  if (!rn_str_to_f64(text, &value) || !(value > 0) || value * unit > 1e15) return false;
  *out = (int64_t)(value * unit);
  return true;
}

// Returns the type of a device as a string constant; NULL if no type has that name.
static const char* type_of(rn_str_t type) {
  static const char* const types[] = {"CPU", "GPU", "NULL"};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
    if (rn_str_is(type, types[i])) return types[i];
  return NULL;
}

static rn_status_t read_name(cli_place_job_t* job, rn_str_t text, rn_device_t* device) {
  rn_device_spec_t spec;
  bool is_full = text.size && text.data[0] == '/';
  rn_str_t named = text;
  if (!is_full)
    RN_RETURN_IF_ERROR(rn_arena_printf(&job->arena, &named, "/device:%.*s", RN_STR_ARGS(text)));
  if (!rn_device_spec_parse(named, &spec) || !spec.type.size || spec.index < 0)
    return bad_device(job, text, "is no device, as CPU:1 or /job:worker/task:0/device:CPU:0 is");
  device->type = type_of(spec.type);
  if (!device->type) return bad_device(job, text, "is of no type that graphs can be placed on");
  device->index = spec.index;
  device->is_host = strcmp(device->type, "CPU") == 0;
  device->is_preferred = strcmp(device->type, "GPU") == 0;
  if (spec.job.size || !device->is_host)
    job->cpus = 0;
  else if (job->cpus)
    job->cpus = spec.index + 1 > job->cpus ? spec.index + 1 : job->cpus;
  return rn_arena_printf(&job->arena, &device->name, "/job:%.*s/replica:%d/task:%d/device:%s:%d",
                         RN_STR_ARGS(spec.job.size ? spec.job : RN_STR("localhost")),
                         spec.replica < 0 ? 0 : spec.replica, spec.task < 0 ? 0 : spec.task,
                         device->type, spec.index);
}

static rn_status_t read_device(cli_place_job_t* job, rn_str_t text, int d) {
  rn_str_t memory = text, speed = rn_str_split(&memory, '@');
  bool has_memory = speed.size < text.size;
  size_t size = speed.size;
  rn_str_t name = rn_str_split(&speed, '*');
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&job->arena, &job->devices[d]));
  job->speeds[d] = 1;
  if (name.size < size &&
      (!rn_str_to_f64(speed, &job->speeds[d]) || !(job->speeds[d] > 0) || job->speeds[d] > 1e6))
    return bad_device(job, text, "the speed after * must be a positive number");
  if (has_memory && !read_bytes(memory, &job->memory[d]))
    return bad_device(job, text, "the memory after @ must be like 512M or 2G");
  RN_RETURN_IF_ERROR(read_name(job, name, job->devices[d]));
  for (int e = 0; e < d; ++e)
    if (rn_str_eq(job->devices[e]->name, job->devices[d]->name))
      return bad_device(job, text, "is there twice");
  return RN_OK;
}

rn_status_t rn_cli_place_devices(cli_place_job_t* job) {
  const char* option = rn_cli_text(job->run.cli, "--devices");
  rn_str_t rest = rn_str(option ? option : "CPU:0,CPU:1");
  size_t most = 1;
  for (size_t i = 0; i < rest.size; ++i) most += rest.data[i] == ',';
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, most, &job->devices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, most, &job->speeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&job->arena, most, &job->memory));
  job->cpus = 1;
  while (rest.size) {
    rn_str_t text = rn_str_trim(rn_str_split(&rest, ','));
    RN_RETURN_IF_ERROR(read_device(job, text, job->device_count));
    job->device_count++;
  }
  if (job->device_count > 0 && job->device_count <= RN_FLEET_MOST_DEVICES) return RN_OK;
  return rn_cli_usage(job->run.cli, "--devices takes between 1 and %d devices",
                      RN_FLEET_MOST_DEVICES);
}
