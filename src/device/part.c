// Loading the CUDA part: see part.h.
#define _GNU_SOURCE  // dladdr1
#include "device/part.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/sync.h"
#include "base/vec.h"
#include "device/comm.h"
#include "runnel/version.h"

#define FILE_NAME "librunnel_cuda.so.2"

// One per process, as the kernels that it registers are.
static struct {
  rn_mutex_t mutex;
  bool is_tried;
  const rn_device_part_t* part;
  char problem[512];  // why there is none
  rn_code_t code;
  bool is_absent;  // there is no file: built without it, which is no reason for a line in the log
  _Atomic bool has_warned;
  bool lacks_driver;  // which is why there is no part
  bool has_kernels, has_told;
} loaded = {.mutex = RN_MUTEX_INIT};

// The folder of the library or the program that holds this function, links resolved.
static bool own_folder(char* out) {
  Dl_info info;
  struct link_map* map = NULL;
  if (!dladdr1((void*)(uintptr_t)&rn_cuda_part, &info, (void**)&map, RTLD_DL_LINKMAP)) return false;
  // A program has no name there, and argv[0] need not say where it is.
  const char* file = map && *map->l_name ? map->l_name : "/proc/self/exe";
  char* slash = realpath(file, out) ? strrchr(out, '/') : NULL;
  if (slash) *slash = 0;
  return slash != NULL;
}

// The first file that |pattern| matches below |folder|, whose name may contain anything.
static bool find_match(const char* folder, const char* pattern, char* path) {
  char whole[2 * PATH_MAX + 64];
  size_t size = 0;
  for (const char* at = folder; *at; ++at) {
    if (strchr("*?[]\\", *at)) whole[size++] = '\\';
    whole[size++] = *at;
  }
  snprintf(whole + size, sizeof whole - size, "%s/" FILE_NAME, pattern);
  glob_t found;
  bool is_found = glob(whole, 0, NULL, &found) == 0;
  if (is_found) is_found = snprintf(path, PATH_MAX, "%s", found.gl_pathv[0]) < PATH_MAX;
  globfree(&found);
  return is_found;
}

// If the part is nowhere, |path| is the folder of the library or the program.
static bool find_file(char path[PATH_MAX]) {
  // Beside this file; where a command is installed, in lib beside its folder, which Debian divides
  // by machine; where it was built, in the folder above; where Python's package was installed, in
  // the package.
  static const char* const places[] = {"",    "/../lib",    "/../lib/*-linux-gnu",
                                       "/..", "/../runnel", "/../lib*/python*/*-packages/runnel"};
  const char* named = getenv("RUNNEL_CUDA_PART");
  if (named && *named) return snprintf(path, PATH_MAX, "%s", named) < PATH_MAX;
  char folder[PATH_MAX];
  if (!own_folder(folder)) return false;
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i)
    if (find_match(folder, places[i], path)) return true;
  snprintf(path, PATH_MAX, "%s", folder);
  return false;
}

static rn_status_t open_part(const char* path, const rn_device_part_t** out) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return rn_not_found("%s", dlerror());
  rn_device_part_fn_t get = (rn_device_part_fn_t)(uintptr_t)dlsym(library, RN_PART_SYMBOL);
  const rn_device_part_t* part = get ? get() : NULL;
  static const uint32_t sizes[] = RN_PART_SIZES;
  if (!get) {
    dlclose(library);
    return rn_failed_precondition("%s is not a part of this library: it has no " RN_PART_SYMBOL,
                                  path);
  }
  if (!part || strcmp(part->version, RN_VERSION_STRING) != 0 ||
      memcmp(part->sizes, sizes, sizeof sizes) != 0) {
    rn_status_t status = rn_failed_precondition(
        "%s is of version %s, or of another build; the library is " RN_VERSION_STRING, path,
        part ? part->version : "?");
    dlclose(library);
    return status;
  }
  *out = part;  // never closed: its kernels are registered
  return RN_OK;
}

// Limits attribute |attr| of |row| to int32.
static void limit_to_int32(rn_kernel_def_t* row, const char* attr) {
  size_t i = 0, count = sizeof row->types / sizeof *row->types;
  while (i < count && row->types[i].attr && strcmp(row->types[i].attr, attr) != 0) ++i;
  if (i == count) return;
  if (!row->types[i].attr) row->types[i] = (rn_kernel_type_t){attr, ~UINT64_C(0)};
  row->types[i].types &= UINT64_C(1) << RN_INT32;
}

// Limits the types of |row| to those that are plain bytes.
static void limit_to_plain(rn_kernel_def_t* row) {
  const rn_dtypes_t owned =
      UINT64_C(1) << RN_STRING | UINT64_C(1) << RN_RESOURCE | UINT64_C(1) << RN_VARIANT;
  for (size_t i = 0; i < sizeof row->types / sizeof *row->types; ++i) row->types[i].types &= ~owned;
}

static bool takes_variants_only(const rn_kernel_def_t* row) {
  return row->types[0].attr && row->types[0].types == UINT64_C(1) << RN_VARIANT;
}

// Whether the kernel does the same in every step in which the host's arguments are the same.
static bool repeats(const rn_part_row_t* how, const rn_kernel_def_t* cpu) {
  const rn_op_def_t* op = rn_op_find(rn_str(cpu->op));
  if (how->of_step) return true;
  if (!op || how->on_host || how->moves || how->allocates) return false;
  return !(op->flags & RN_OP_STATEFUL) && cpu->compute && !(cpu->flags & RN_KERNEL_KEEPS_INPUTS);
}

static rn_status_t add_shared_row(const rn_device_part_t* part, const rn_part_row_t* how,
                                  const rn_kernel_def_t* cpu) {
  rn_kernel_def_t* row = NULL;
  if (how->is_variant && !takes_variants_only(cpu)) return RN_OK;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &row));
  *row = *cpu;
  row->device = part->type;
  row->vector_op = 0;
  row->priority = how->int32_attr   ? 1  // over, or under, kernels of the device itself
                  : how->on_request ? RN_PRIORITY_ON_REQUEST
                                    : -1;
  if (how->int32_attr || how->on_host) {
    row->flags |= RN_KERNEL_ON_HOST;
    if (how->int32_attr) limit_to_int32(row, how->int32_attr);
  } else {
    row->host_args = how->host_args;
    bool is_light = row->flags & (RN_KERNEL_FORWARDS | RN_KERNEL_OWN_OUTPUTS) &&
                    !(row->flags & RN_KERNEL_KEEPS_INPUTS) && !how->allocates;
    if (is_light) row->flags |= RN_KERNEL_REPLAYS;  // it issues nothing
  }
  if (how->moves || how->assigns) row->flags |= RN_KERNEL_REPLAYS;
  if (repeats(how, cpu)) row->flags |= RN_KERNEL_REPEATS;
  if (how->moves || how->is_plain) limit_to_plain(row);
  return rn_kernel_register(row);
}

typedef RN_VEC(const rn_kernel_def_t*) part_rows_t;

static rn_status_t collect(const rn_kernel_def_t* def, void* arg) {
  part_rows_t* cpu = arg;
  return strcmp(def->device, "CPU") == 0 ? rn_vec_push(cpu, rn_allocator_system(), def) : RN_OK;
}

// Visits the registry once, because a visit sorts it.
rn_status_t rn_device_part_share(const rn_device_part_t* part) {
  part_rows_t cpu = {0};
  rn_status_t status = rn_kernel_each(collect, &cpu);
  for (const rn_part_row_t* how = part->shared; how->op; ++how)
    for (size_t i = 0; rn_ok(status) && i < cpu.count; ++i)
      if (strcmp(cpu.items[i]->op, how->op) == 0) status = add_shared_row(part, how, cpu.items[i]);
  rn_vec_free(&cpu, rn_allocator_system());
  return status;
}

static rn_status_t register_row(const rn_device_part_t* part, const rn_kernel_def_t* def) {
  rn_vector_op_t code = part->loop_code(def->op);
  if (!code) return rn_kernel_register(def);
  rn_kernel_def_t* row = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &row));
  *row = *def;
  row->vector_op = code;
  return rn_kernel_register(row);
}

static rn_status_t register_rows(const rn_device_part_t* part) {
  for (const rn_kernel_family_t* const* family = part->kernels; *family; ++family)
    for (size_t i = 0; i < (*family)->count; ++i)
      RN_RETURN_IF_ERROR(register_row(part, &(*family)->rows[i]));
  return rn_device_part_share(part);
}

// Without a driver the part is of no use, and opening it costs memory and time. An emulated driver
// is where RUNNEL_CUDA_PATH says.
static rn_status_t check_driver(void) {
  if (getenv("RUNNEL_CUDA_PATH")) return RN_OK;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  loaded.is_absent = loaded.lacks_driver = !driver;
  if (!driver) return rn_not_found("The library libcuda.so.1 could not be loaded");
  dlclose(driver);
  return RN_OK;
}

static rn_status_t load_file(const rn_device_part_t** out) {
  char path[PATH_MAX] = "";
  loaded.is_absent = !find_file(path);
  if (loaded.is_absent)
    return rn_not_found("There is no " FILE_NAME " in %s or in its ../lib", path);
  RN_RETURN_IF_ERROR(open_part(path, out));
  RN_RETURN_IF_ERROR(register_rows(*out));
  loaded.has_kernels = true;
  return RN_OK;
}

static rn_status_t load(const rn_device_part_t** out) {
  RN_RETURN_IF_ERROR(check_driver());
  return load_file(out);
}

rn_status_t rn_cuda_part_load(const rn_device_part_t** out) {
  rn_mutex_lock(&loaded.mutex);
  if (!loaded.is_tried) {
    loaded.is_tried = true;
    rn_status_t status = load(&loaded.part);
    loaded.code = rn_status_code(status);
    if (!rn_ok(status)) {
      snprintf(loaded.problem, sizeof loaded.problem, "%s", rn_status_message(status));
      loaded.part = NULL;
    }
    rn_status_free(status);
  }
  *out = loaded.part;
  rn_mutex_unlock(&loaded.mutex);
  return loaded.code == RN_CODE_OK ? RN_OK : rn_status_make(loaded.code, "%s", loaded.problem);
}

bool rn_cuda_part_kernels(const rn_env_t* env) {
  const rn_device_part_t* part = NULL;
  rn_status_t status = rn_cuda_part_load(&part);
  rn_mutex_lock(&loaded.mutex);
  bool is_first = !loaded.has_kernels && !loaded.has_told;
  if (is_first && loaded.lacks_driver) {
    rn_status_free(status);
    status = load_file(&part);
  }
  bool has_kernels = loaded.has_kernels;
  loaded.has_told = true;
  rn_mutex_unlock(&loaded.mutex);
  if (is_first && !has_kernels)
    rn_log(env, RN_LOG_WARNING, "GPUs of other tasks are not used: %s", rn_status_message(status));
  rn_status_free(status);
  return has_kernels;
}

bool rn_cuda_part_is_open(void) {
  rn_mutex_lock(&loaded.mutex);
  bool is_open = loaded.part != NULL;
  rn_mutex_unlock(&loaded.mutex);
  return is_open;
}

void rn_cuda_part_warn(const rn_env_t* env, rn_status_t status) {
  if (atomic_exchange(&loaded.has_warned, true)) return;
  rn_log(env, RN_LOG_WARNING, "GPUs are not used: %s", rn_status_message(status));
}

rn_allocator_t rn_cuda_part_transfer_memory(void) {
  rn_mutex_lock(&loaded.mutex);
  const rn_device_part_t* part = loaded.part;
  rn_mutex_unlock(&loaded.mutex);
  return part ? part->transfer_memory() : (rn_allocator_t){0};
}

const rn_comm_library_t* rn_device_comm_library(const rn_device_t* device) {
  rn_mutex_lock(&loaded.mutex);
  const rn_device_part_t* part = loaded.part;
  rn_mutex_unlock(&loaded.mutex);
  return part && strcmp(device->type, part->type) == 0 ? part->comms : NULL;
}

const rn_device_part_t* rn_cuda_part(const rn_env_t* env) {
  const rn_device_part_t* part = NULL;
  rn_status_t status = rn_cuda_part_load(&part);
  if (!rn_ok(status) && !loaded.is_absent) rn_cuda_part_warn(env, status);
  rn_status_free(status);
  return part;
}
