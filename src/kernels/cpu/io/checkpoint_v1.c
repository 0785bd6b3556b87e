// Save and Restore for V1 checkpoints.
#include "io/checkpoint_v1.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/io/checkpoint.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"

static rn_status_t save_one(const rn_kernel_ctx_t* ctx, int first, int64_t i,
                            rn_v1_writer_t* writer, rn_arena_t* arena) {
  const rn_tensor_t* tensor = rn_in(ctx, first + (int)i);
  rn_str_t spec = first == 3 ? rn_text_at(rn_in(ctx, 2), i) : RN_STR("");
  rn_shape_t shape = rn_tensor_shape(tensor), slice_shape = shape;
  rn_slice_t slice;
  if (spec.size)
    RN_RETURN_IF_ERROR(rn_shape_and_slice_parse(spec, arena, &shape, &slice, &slice_shape));
  else
    RN_RETURN_IF_ERROR(rn_slice_whole(arena, shape.rank, &slice));
  if (!rn_shape_eq(slice_shape, rn_tensor_shape(tensor)))
    return rn_invalid_argument(
        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: "
        "%.*s, tensor: %s",
        RN_STR_ARGS(spec), rn_text_of(tensor).text);
  return rn_v1_writer_add(writer, rn_text_at(rn_in(ctx, 1), i), shape, slice, tensor);
}

static rn_status_t check_save(const rn_kernel_ctx_t* ctx, int first) {
  const rn_tensor_t *file = rn_in(ctx, 0), *names = rn_in(ctx, 1);
  if (file->count != 1)
    return rn_invalid_argument(
        "Input 0 (filename) must be a string scalar; got a tensor of %lldelements",
        (long long)file->count);
  if (names->count + first != ctx->kernel->input_count)
    return rn_invalid_argument(
        "Expected totally %lld inputs as input #1 (which is a string tensor of saved names) "
        "contains %lld names, but received %d inputs",
        (long long)names->count + first, (long long)names->count, ctx->kernel->input_count);
  if (first == 3 && rn_in(ctx, 2)->count != names->count)
    return rn_invalid_argument(
        "Expected %lld elements for the tensor shapes and slices but got %lld",
        (long long)names->count, (long long)rn_in(ctx, 2)->count);
  return RN_OK;
}

// |first| is the input of the first tensor: 2, or 3 with slices.
static rn_status_t save(rn_kernel_ctx_t* ctx, int first) {
  RN_RETURN_IF_ERROR(check_save(ctx, first));
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_strbuf_t path;
  rn_strbuf_init(&path, ctx->kernel->allocator);
  rn_v1_writer_t* writer = NULL;
  rn_status_t status = rn_ckpt_path(rn_in(ctx, 0), &path);
  if (rn_ok(status))
    status = rn_v1_writer_create(ctx->step->env, rn_strbuf_view(&path).data, &writer);
  for (int64_t i = 0; rn_ok(status) && i < rn_in(ctx, 1)->count; ++i)
    status = save_one(ctx, first, i, writer, &arena);
  if (rn_ok(status)) status = rn_v1_writer_finish(writer);
  rn_v1_writer_destroy(writer);
  rn_strbuf_clear(&path);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t save_whole(rn_kernel_ctx_t* ctx) { return save(ctx, 2); }
static rn_status_t save_slices(rn_kernel_ctx_t* ctx) { return save(ctx, 3); }

static rn_status_t restore_one(rn_kernel_ctx_t* ctx, const rn_v1_reader_t* reader,
                               const char* pattern, rn_str_t name, rn_str_t spec, int output) {
  const rn_v1_tensor_t* found = rn_v1_find(reader, name);
  rn_dtype_t dtype = ctx->kernel->output_types[output];
  if (!found)
    return rn_not_found("Tensor name \"%.*s\" not found in checkpoint files %s", RN_STR_ARGS(name),
                        pattern);
  if (found->dtype != dtype)
    return rn_invalid_argument(
        "Expected to restore a tensor of type %s, got a tensor of type %s instead: tensor_name = "
        "%.*s, in %s",
        rn_dtype_name(dtype), rn_dtype_name(found->dtype), RN_STR_ARGS(name), pattern);
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_shape_t shape, slice_shape;
  rn_slice_t slice;
  rn_status_t status = RN_OK;
  if (spec.size) status = rn_shape_and_slice_parse(spec, &arena, &shape, &slice, &slice_shape);
  if (rn_ok(status) && spec.size && !rn_shape_eq(shape, found->shape))
    status = rn_invalid_argument(
        "Shape in shape_and_slice spec does not match the shape in the save file: %s, save file "
        "shape: %s; tensor %.*s of %s",
        rn_shape_text(shape).text, rn_shape_text(found->shape).text, RN_STR_ARGS(name), pattern);
  rn_tensor_t tensor = {0};
  if (rn_ok(status))
    status =
        rn_v1_read(reader, found, spec.size ? &slice : NULL, ctx->kernel->host_memory, &tensor);
  if (rn_ok(status)) rn_set_output(ctx, output, &tensor);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_ckpt_restore_v1(rn_kernel_ctx_t* ctx, const char* pattern) {
  rn_v1_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_v1_reader_open(ctx->step->env, pattern, &reader));
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < ctx->kernel->output_count; ++i)
    status = restore_one(ctx, reader, pattern, rn_text_at(rn_in(ctx, 1), i),
                         rn_text_at(rn_in(ctx, 2), i), i);
  rn_v1_reader_close(reader);
  return status;
}

static rn_status_t check_single(const rn_kernel_ctx_t* ctx, int i, const char* name) {
  const rn_tensor_t* input = rn_in(ctx, i);
  if (input->count == 1) return RN_OK;
  return rn_invalid_argument("Input %d (%s) must be a string scalar; got a tensor of %lld elements",
                             i, name, (long long)input->count);
}

static rn_status_t restore(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"file_pattern", "tensor_name", "shape_and_slice"};
  for (int i = 0; i < ctx->kernel->input_count; ++i)
    RN_RETURN_IF_ERROR(check_single(ctx, i, names[i]));
  rn_str_t spec = ctx->kernel->input_count == 3 ? rn_text_at(rn_in(ctx, 2), 0) : RN_STR("");
  rn_strbuf_t pattern;
  rn_strbuf_init(&pattern, ctx->kernel->allocator);
  rn_v1_reader_t* reader = NULL;
  rn_status_t status = rn_ckpt_path(rn_in(ctx, 0), &pattern);
  if (rn_ok(status))
    status = rn_v1_reader_open(ctx->step->env, rn_strbuf_view(&pattern).data, &reader);
  if (rn_ok(status))
    status = restore_one(ctx, reader, pattern.data, rn_text_at(rn_in(ctx, 1), 0), spec, 0);
  rn_v1_reader_close(reader);
  rn_strbuf_clear(&pattern);
  return status;
}

#define ROW(name, flags_, function) \
  { .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE | (flags_), .compute = function }

static const rn_kernel_def_t rows[] = {
    ROW("Save", 0, save_whole),
    ROW("SaveSlices", 0, save_slices),
    ROW("Restore", RN_KERNEL_OWN_OUTPUTS, restore),
    ROW("RestoreSlice", RN_KERNEL_OWN_OUTPUTS, restore),
};
RN_KERNEL_FAMILY(cpu_checkpoint_v1, rows);
