// ReadFile, WriteFile, MatchingFiles and names of shards.
#include "base/fs.h"
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

static rn_str_t text_of(const rn_tensor_t* tensor) {
  return rn_tstring_view(RN_DATA(tensor, const rn_tstring_t));
}

static rn_status_t output_text(rn_kernel_ctx_t* ctx, rn_str_t text) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  return rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size) ? RN_OK
                                                                             : rn_out_of_memory();
}

// A NUL-terminated copy of a path. INVALID_ARGUMENT if it contains a NUL.
static rn_status_t path_of(const rn_kernel_ctx_t* ctx, rn_str_t text, char** out) {
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_fs_check_name(text));
  return rn_str_dup(ctx->kernel->allocator, text, out);
}

static rn_status_t read_file(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* name = rn_in(ctx, 0);
  if (name->rank != 0)
    return rn_invalid_argument("Input filename tensor must be scalar, but had shape: %s",
                               rn_text_of(name).text);
  char* path = NULL;
  RN_RETURN_IF_ERROR(path_of(ctx, text_of(name), &path));
  rn_strbuf_t content;
  rn_strbuf_init(&content, ctx->kernel->allocator);
  rn_status_t status = rn_fs_read(ctx->step->env, path, SIZE_MAX, &content);
  if (rn_ok(status)) status = output_text(ctx, rn_strbuf_view(&content));
  rn_strbuf_clear(&content);
  rn_free(ctx->kernel->allocator, path, text_of(name).size + 1);
  return status;
}

// Creates the directories above |path|, which is restored. Failures show up when the file is
// written.
static void make_folders(const rn_env_t* env, char* path) {
  char* last = strrchr(path, '/');
  if (!last || last == path) return;
  *last = '\0';
  rn_status_free(rn_fs_make_directories(env, path));
  *last = '/';
}

static rn_status_t write_file(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *name = rn_in(ctx, 0), *content = rn_in(ctx, 1);
  if (name->rank != 0)
    return rn_invalid_argument("Input filename tensor must be scalar, but had shape: %s",
                               rn_text_of(name).text);
  if (content->rank != 0)
    return rn_invalid_argument("Contents tensor must be scalar, but had shape: %s",
                               rn_text_of(content).text);
  char* path = NULL;
  RN_RETURN_IF_ERROR(path_of(ctx, text_of(name), &path));
  make_folders(ctx->step->env, path);
  rn_status_t status = rn_fs_write(ctx->step->env, path, text_of(content));
  rn_free(ctx->kernel->allocator, path, text_of(name).size + 1);
  return status;
}

static rn_status_t output_names(rn_kernel_ctx_t* ctx, const rn_names_t* names) {
  int64_t count = (int64_t)names->list.count;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &out));
  for (int64_t i = 0; i < count; ++i)
    if (!rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], names->list.items[i].data,
                           names->list.items[i].size))
      return rn_out_of_memory();
  return RN_OK;
}

static rn_status_t matching_files(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* patterns = rn_in(ctx, 0);
  if (patterns->rank > 1)
    return rn_invalid_argument("Input patterns tensor must be scalar or vector, but had shape: %s",
                               rn_text_of(patterns).text);
  rn_names_t found;
  rn_names_init(&found, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < patterns->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(patterns, const rn_tstring_t)[i]);
    char* pattern = NULL;
    status = path_of(ctx, text, &pattern);
    if (!rn_ok(status)) break;
    status = rn_fs_glob(ctx->step->env, pattern, &found);
    rn_free(ctx->kernel->allocator, pattern, text.size + 1);
  }
  rn_names_sort(&found);
  if (rn_ok(status)) status = output_names(ctx, &found);
  rn_names_clear(&found);
  return status;
}

// Names of shards.
static rn_status_t scalar_input(const rn_kernel_ctx_t* ctx, int i, const char* name) {
  const rn_tensor_t* input = rn_in(ctx, i);
  if (input->rank == 0) return RN_OK;
  return rn_invalid_argument("%s must be a scalar, got shape %s", name, rn_text_of(input).text);
}

static rn_status_t sharded_filename(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"basename", "shard", "num_shards"};
  for (int i = 0; i < 3; ++i) RN_RETURN_IF_ERROR(scalar_input(ctx, i, names[i]));
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_append(&text, text_of(rn_in(ctx, 0)));
  rn_strbuf_printf(&text, "-%05lld-of-%05lld", (long long)rn_int_at(rn_in(ctx, 1), 0),
                   (long long)rn_int_at(rn_in(ctx, 2), 0));
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = output_text(ctx, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t sharded_filespec(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"basename", "num_shards"};
  for (int i = 0; i < 2; ++i) RN_RETURN_IF_ERROR(scalar_input(ctx, i, names[i]));
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_append(&text, text_of(rn_in(ctx, 0)));
  rn_strbuf_printf(&text, "-\?\?\?\?\?-of-%05lld", (long long)rn_int_at(rn_in(ctx, 1), 0));
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = output_text(ctx, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  return status;
}

// ImmutableConst: a constant whose bytes come from a file, read once on first use.

typedef struct region_t {
  rn_mutex_t mutex;
  rn_tensor_t value;  // guarded by |mutex|; unset until read
  char* path;         // Owned
  size_t path_size;
  rn_allocator_t allocator;
  int32_t rank;
  int64_t dims[RN_MAX_RANK];
  rn_dtype_t dtype;
} region_t;

static rn_status_t region_init(const rn_kernel_init_t* init, void* state) {
  region_t* region = state;
  rn_mutex_init(&region->mutex);
  region->allocator = init->allocator;
  region->dtype = rn_init_type(init, "dtype");
  rn_shape_t shape = rn_init_attr(init, "shape")->shape;
  if (!rn_shape_is_full(shape)) return rn_invalid_argument("The shape must be fully known");
  region->rank = shape.rank;
  memcpy(region->dims, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
  rn_str_t name = rn_init_string(init, "memory_region_name");
  RN_RETURN_IF_ERROR(rn_fs_check_name(name));
  RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, name, &region->path));
  region->path_size = name.size + 1;
  return RN_OK;
}

static void region_destroy(void* state) {
  region_t* region = state;
  rn_tensor_clear(&region->value);
  if (region->path) rn_free(region->allocator, region->path, region->path_size);
  rn_mutex_destroy(&region->mutex);
}

static rn_status_t region_read(rn_kernel_ctx_t* ctx, region_t* region) {
  int64_t size = 0;
  size_t got = 0;
  RN_RETURN_IF_ERROR(rn_fs_size(ctx->step->env, region->path, &size));
  if (!rn_dtype_is_plain(region->dtype))
    return rn_unimplemented("Sorry, DT_%s is not currently supported for ImmutableConstOp.",
                            rn_dtype_proto_name(region->dtype) + 3);
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_init(&value, region->dtype, (rn_shape_t){region->rank, region->dims}));
  size_t bytes = rn_tensor_bytes(&value);
  rn_tensor_clear(&value);
  if ((uint64_t)size < bytes)
    return rn_internal("Readonly memory region has wrong length (%lld) when allocating %zu",
                       (long long)size, bytes);
  rn_file_t* file = NULL;
  RN_RETURN_IF_ERROR(rn_fs_open(ctx->step->env, region->path, RN_OPEN_READ, &file));
  rn_status_t status =
      rn_temp(ctx, region->dtype, (rn_shape_t){region->rank, region->dims}, &value);
  if (rn_ok(status) && bytes) status = file->vtable->read_at(file, 0, value.data, bytes, &got);
  if (rn_ok(status) && got != bytes)
    status = rn_data_loss("%s was truncated while being read", region->path);
  rn_status_free(file->vtable->close(file));
  if (rn_ok(status))
    region->value = value;
  else
    rn_tensor_clear(&value);
  return status;
}

static rn_status_t region_compute(rn_kernel_ctx_t* ctx) {
  region_t* region = ctx->state;
  rn_mutex_lock(&region->mutex);
  rn_status_t status = rn_tensor_is_set(&region->value) ? RN_OK : region_read(ctx, region);
  rn_tensor_t shared = {0};
  if (rn_ok(status)) status = rn_tensor_share(&region->value, &shared);
  rn_mutex_unlock(&region->mutex);
  if (rn_ok(status)) rn_set_output(ctx, 0, &shared);
  return status;
}

// No file system has options; it is an error to set one.
static rn_status_t set_configuration(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"scheme", "key", "value"};
  for (int i = 0; i < 3; ++i)
    if (rn_in(ctx, i)->rank != 0)
      return rn_invalid_argument("%s must be scalar, got shape %s", names[i],
                                 rn_text_of(rn_in(ctx, i)).text);
  rn_str_t scheme = rn_tstring_view(RN_DATA(rn_in(ctx, 0), const rn_tstring_t));
  rn_strbuf_t path;
  rn_strbuf_init(&path, ctx->kernel->allocator);
  rn_strbuf_printf(&path, "%.*s%s/", RN_STR_ARGS(scheme), scheme.size ? "://" : "");
  rn_status_t status = rn_strbuf_status(&path);
  bool exists = false;
  if (rn_ok(status)) status = rn_fs_find(ctx->step->env, rn_strbuf_view(&path).data, &exists);
  rn_strbuf_clear(&path);
  bool is_known = rn_status_code(status) != RN_CODE_UNIMPLEMENTED;
  rn_status_free(status);
  if (is_known) return rn_unimplemented("SetOption");
  return rn_unimplemented("File system scheme '%.*s' not found to set configuration",
                          RN_STR_ARGS(scheme));
}

#define ROW(name, flags_, function) \
  { .op = name, .device = "CPU", .flags = flags_, .compute = function }

static const rn_kernel_def_t rows[] = {
    ROW("ReadFile", RN_KERNEL_EXPENSIVE, read_file),
    ROW("WriteFile", RN_KERNEL_EXPENSIVE, write_file),
    ROW("FileSystemSetConfiguration", 0, set_configuration),
    ROW("MatchingFiles", RN_KERNEL_EXPENSIVE, matching_files),
    ROW("ShardedFilename", 0, sharded_filename),
    ROW("ShardedFilespec", 0, sharded_filespec),
    {.op = "ImmutableConst",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(region_t),
     .init = region_init,
     .destroy = region_destroy,
     .compute = region_compute},
};
RN_KERNEL_FAMILY(cpu_file, rows);
