// Files as tensors: whole files read and written, names that match a pattern, names of shards.
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

// A NUL-terminated copy of a path. A path that holds a NUL names no file.
static rn_status_t path_of(const rn_kernel_ctx_t* ctx, rn_str_t text, char** out) {
  *out = NULL;
  if (memchr(text.data, '\0', text.size))
    return rn_invalid_argument("A file name must not hold a NUL");
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

// Makes the folders above |path|, which is restored. What cannot be made shows when the file is
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

#define ROW(name, flags_, function) \
  { .op = name, .device = "CPU", .flags = flags_, .compute = function }

static const rn_kernel_def_t rows[] = {
    ROW("ReadFile", RN_KERNEL_EXPENSIVE, read_file),
    ROW("WriteFile", RN_KERNEL_EXPENSIVE, write_file),
    ROW("MatchingFiles", RN_KERNEL_EXPENSIVE, matching_files),
    ROW("ShardedFilename", 0, sharded_filename),
    ROW("ShardedFilespec", 0, sharded_filespec),
};
RN_KERNEL_FAMILY(cpu_file, rows);
