// SaveV2, RestoreV2 and MergeV2Checkpoints. RestoreV2 also reads V1 files, if there is no V2 index
// (checkpoint_v1.c).
#include "kernels/cpu/io/checkpoint.h"

#include "base/fs.h"
#include "io/bundle.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_ckpt_path(const rn_tensor_t* tensor, rn_strbuf_t* out) {
  rn_str_t text = rn_text_at(tensor, 0);
  RN_RETURN_IF_ERROR(rn_fs_check_name(text));
  rn_strbuf_append(out, text);
  return rn_strbuf_status(out);
}

// Checks prefix, tensor_names and shape_and_slices, which both ops have.
static rn_status_t check_inputs(const rn_kernel_ctx_t* ctx, int64_t count, bool is_save) {
  const rn_tensor_t *prefix = rn_in(ctx, 0), *names = rn_in(ctx, 1), *slices = rn_in(ctx, 2);
  if (!is_save && names->rank == 1 && names->count != count)
    return rn_invalid_argument("Got %lld tensor names, but %lld expected dtypes.",
                               (long long)names->count, (long long)count);
  if (prefix->count != 1)
    return rn_invalid_argument("Input prefix should have a single element, got %lld instead.",
                               (long long)prefix->count);
  if (names->rank != 1 || slices->rank != 1)
    return rn_invalid_argument(
        "Input tensor_names and shape_and_slices should be an 1-D tensors, got %s and %s instead.",
        rn_text_of(names).text, rn_text_of(slices).text);
  if (names->count != slices->count)
    return rn_invalid_argument(
        "tensor_names and shape_and_slices have different number of elements: %lld vs. %lld",
        (long long)names->count, (long long)slices->count);
  if (names->count != count)
    return rn_invalid_argument("Got %lld tensor names but %lld tensors.", (long long)names->count,
                               (long long)count);
  return RN_OK;
}

static rn_status_t save_one(const rn_kernel_ctx_t* ctx, int64_t i, rn_bundle_writer_t* writer,
                            rn_arena_t* arena) {
  rn_str_t name = rn_text_at(rn_in(ctx, 1), i), spec = rn_text_at(rn_in(ctx, 2), i);
  const rn_tensor_t* tensor = rn_in(ctx, (int)i + 3);
  if (!spec.size) return rn_bundle_writer_add(writer, name, tensor);
  rn_shape_t shape, slice_shape;
  rn_slice_t slice;
  RN_RETURN_IF_ERROR(rn_shape_and_slice_parse(spec, arena, &shape, &slice, &slice_shape));
  if (!rn_shape_eq(slice_shape, rn_tensor_shape(tensor)))
    return rn_invalid_argument(
        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: "
        "%.*s, tensor: %s",
        RN_STR_ARGS(spec), rn_text_of(tensor).text);
  return rn_bundle_writer_add_slice(writer, name, shape, slice, tensor);
}

static rn_status_t save_v2(rn_kernel_ctx_t* ctx) {
  int64_t count = ctx->kernel->input_count - 3;
  RN_RETURN_IF_ERROR(check_inputs(ctx, count, true));
  rn_allocator_t allocator = ctx->kernel->allocator;
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_strbuf_t prefix;
  rn_strbuf_init(&prefix, allocator);
  rn_bundle_writer_t* writer = NULL;
  rn_status_t status = rn_ckpt_path(rn_in(ctx, 0), &prefix);
  if (rn_ok(status))
    status = rn_bundle_writer_create(ctx->step->env, rn_strbuf_view(&prefix).data, rn_ctx_pool(ctx),
                                     &writer);
  for (int64_t i = 0; rn_ok(status) && i < count; ++i) status = save_one(ctx, i, writer, &arena);
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  rn_strbuf_clear(&prefix);
  rn_arena_clear(&arena);
  return status;
}

// Checks that all names exist with the requested types before anything is read; reports every wrong
// type.
static rn_status_t check_types(const rn_kernel_ctx_t* ctx, const rn_bundle_reader_t* reader) {
  rn_strbuf_t wrong;
  rn_strbuf_init(&wrong, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < ctx->kernel->output_count; ++i) {
    const rn_bundle_entry_t* entry = NULL;
    rn_str_t name = rn_text_at(rn_in(ctx, 1), i);
    status = rn_bundle_lookup(reader, name, &entry);
    if (!rn_ok(status) || entry->dtype == ctx->kernel->output_types[i]) continue;
    rn_strbuf_printf(&wrong,
                     "%stensor_name = %.*s; expected dtype %s does not equal original dtype %s",
                     wrong.size ? "\n" : "", RN_STR_ARGS(name),
                     rn_dtype_name(ctx->kernel->output_types[i]), rn_dtype_name(entry->dtype));
  }
  if (rn_ok(status)) status = rn_strbuf_status(&wrong);
  if (rn_ok(status) && wrong.size)
    status =
        rn_invalid_argument("%s, in checkpoint %s", wrong.data, rn_bundle_reader_prefix(reader));
  rn_strbuf_clear(&wrong);
  return status;
}

static rn_status_t wrong_shape(const rn_bundle_reader_t* reader, const rn_bundle_entry_t* entry,
                               rn_shape_t shape) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "tensor_name = %.*s; shape in shape_and_slice spec ",
                   RN_STR_ARGS(entry->name));
  rn_shape_print(&text, shape);
  rn_strbuf_printf(&text, " does not match the shape stored in checkpoint: ");
  rn_shape_print(&text, entry->shape);
  rn_strbuf_printf(&text, ", in checkpoint %s", rn_bundle_reader_prefix(reader));
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_invalid_argument("%s", text.data);
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t restore_one(rn_kernel_ctx_t* ctx, int i, rn_bundle_reader_t* reader,
                               rn_arena_t* arena) {
  const rn_bundle_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_lookup(reader, rn_text_at(rn_in(ctx, 1), i), &entry));
  rn_str_t spec = rn_text_at(rn_in(ctx, 2), i);
  rn_shape_t shape, wanted = entry->shape;
  rn_slice_t slice;
  if (spec.size) {
    RN_RETURN_IF_ERROR(rn_shape_and_slice_parse(spec, arena, &shape, &slice, &wanted));
    if (!rn_shape_eq(shape, entry->shape)) return wrong_shape(reader, entry, shape);
  }
  const rn_slice_t* part = spec.size ? &slice : NULL;
  RN_RETURN_IF_ERROR(rn_bundle_check(reader, entry, part));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, wanted, &out));
  return rn_bundle_read(reader, entry, part, rn_ctx_pool(ctx), out);
}

static rn_status_t restore_bundle(rn_kernel_ctx_t* ctx, const char* prefix) {
  rn_bundle_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_reader_open(ctx->step->env, prefix, &reader));
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = check_types(ctx, reader);
  for (int i = 0; rn_ok(status) && i < ctx->kernel->output_count; ++i)
    status = restore_one(ctx, i, reader, &arena);
  rn_arena_clear(&arena);
  rn_bundle_reader_close(reader);
  return status;
}

static rn_status_t restore_v2(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(check_inputs(ctx, ctx->kernel->output_count, false));
  rn_strbuf_t prefix;
  rn_strbuf_init(&prefix, ctx->kernel->allocator);
  rn_status_t status = rn_ckpt_path(rn_in(ctx, 0), &prefix);
  if (rn_ok(status)) {
    const char* path = rn_strbuf_view(&prefix).data;
    bool is_bundle = false;
    status = rn_bundle_find_index(ctx->step->env, path, &is_bundle);
    if (rn_ok(status))
      status = is_bundle ? restore_bundle(ctx, path) : rn_ckpt_restore_v1(ctx, path);
  }
  rn_strbuf_clear(&prefix);
  return status;
}

typedef struct merge_state_t {
  bool deletes, allows_missing;
} merge_state_t;

static rn_status_t merge_init(const rn_kernel_init_t* init, void* state) {
  merge_state_t* merge = state;
  merge->deletes = rn_init_bool(init, "delete_old_dirs");
  merge->allows_missing = rn_init_bool(init, "allow_missing_files");
  return RN_OK;
}

// Removes the directories of the parts, if they are now empty and not the destination's.
static void remove_folders(const rn_kernel_ctx_t* ctx, const char* destination) {
  const rn_env_t* env = ctx->step->env;
  rn_strbuf_t folder;
  rn_strbuf_init(&folder, ctx->kernel->allocator);
  for (int64_t i = 0; i < rn_in(ctx, 0)->count; ++i) {
    rn_str_t directory = rn_path_directory(rn_text_at(rn_in(ctx, 0), i));
    if (rn_str_eq(directory, rn_path_directory(rn_str(destination)))) continue;
    folder.size = 0;
    rn_strbuf_append(&folder, directory);
    if (!folder.failed) rn_status_free(env->fs->remove_directory(env->fs_self, folder.data));
  }
  rn_strbuf_clear(&folder);
}

static rn_status_t merge_v2(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *parts = rn_in(ctx, 0), *destination = rn_in(ctx, 1);
  if (parts->rank != 1)
    return rn_invalid_argument("Input checkpoint_prefixes should be an 1-D tensor, got %s instead.",
                               rn_text_of(parts).text);
  if (destination->rank != 0)
    return rn_invalid_argument(
        "Input destination_prefix should be a scalar tensor, got %s instead.",
        rn_text_of(destination).text);
  const merge_state_t* merge = ctx->state;
  rn_allocator_t allocator = ctx->kernel->allocator;
  rn_strbuf_t prefix;
  rn_strbuf_init(&prefix, allocator);
  rn_str_t* names = NULL;
  rn_status_t status = rn_ckpt_path(destination, &prefix);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)parts->count, &names);
  for (int64_t i = 0; rn_ok(status) && i < parts->count; ++i) names[i] = rn_text_at(parts, i);
  if (rn_ok(status))
    status = rn_bundle_merge(ctx->step->env, names, (size_t)parts->count, merge->allows_missing,
                             rn_strbuf_view(&prefix).data);
  if (rn_ok(status) && merge->deletes) remove_folders(ctx, prefix.data);
  RN_FREE_ARRAY(allocator, names, parts->count);
  rn_strbuf_clear(&prefix);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SaveV2", .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .compute = save_v2},
    {.op = "RestoreV2",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE | RN_KERNEL_OWN_OUTPUTS,
     .compute = restore_v2},
    {.op = "MergeV2Checkpoints",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(merge_state_t),
     .init = merge_init,
     .compute = merge_v2},
};
RN_KERNEL_FAMILY(cpu_checkpoint, rows);
