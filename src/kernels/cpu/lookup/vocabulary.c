// GenerateVocabRemapping: where the words of a new vocabulary are in an old one.
#include "kernels/cpu/array.h"
#include "kernels/cpu/lookup/table.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct remapping_t {
  int64_t offset, count;  // the lines of the new file that are looked up
  int64_t old_lines;      // of the old file; RN_UNKNOWN for all
} remapping_t;

static rn_status_t remapping_init(const rn_kernel_init_t* init, void* state) {
  *(remapping_t*)state = (remapping_t){.offset = rn_init_int(init, "new_vocab_offset"),
                                       .count = rn_init_int(init, "num_new_vocab"),
                                       .old_lines = rn_init_int(init, "old_vocab_size")};
  return RN_OK;
}

// Makes |*out| a table of the lines of the file that input |i| names.
static rn_status_t read_file(rn_kernel_ctx_t* ctx, int i, const rn_lookup_file_t* format,
                             rn_dtype_t key, rn_dtype_t value, rn_lookup_table_t** out) {
  const rn_tensor_t* path = rn_in(ctx, i);
  if (path->rank != 0)
    return rn_invalid_argument("%s_vocab_file should be a single string, but got %s",
                               i ? "old" : "new", rn_text_of(path).text);
  rn_str_t name = rn_tstring_view(RN_DATA(path, const rn_tstring_t));
  if (!name.size) return rn_invalid_argument("new vocab filename cannot be empty.");
  RN_RETURN_IF_ERROR(rn_lookup_table_create(ctx->kernel->allocator, name, key, value, true, out));
  return rn_lookup_table_fill(ctx, *out, format, name);
}

static void release(rn_lookup_table_t* table) {
  if (table) rn_object_release(&rn_lookup_table_resource(table)->object);
}

static rn_status_t look_up(rn_kernel_ctx_t* ctx, rn_lookup_table_t* fresh, rn_lookup_table_t* old,
                           rn_tensor_t* ids, rn_tensor_t* words) {
  const remapping_t* remapping = ctx->state;
  rn_tstring_t none;
  rn_tstring_init(&none);
  int64_t missing = -1;
  rn_tensor_t no_word = {.data = &none, .count = 1, .dtype = RN_STRING};
  rn_tensor_t no_id = {.data = &missing, .count = 1, .dtype = RN_INT64};
  rn_tensor_t *out = NULL, *present = NULL;
  rn_shape_t shape = {1, &remapping->count};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, shape, ids));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_STRING, shape, words));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, RN_SHAPE_SCALAR, &present));
  for (int64_t i = 0; i < ids->count; ++i) RN_DATA(ids, int64_t)[i] = remapping->offset + i;
  RN_RETURN_IF_ERROR(rn_lookup_table_find(fresh, ids, &no_word, words));
  RN_RETURN_IF_ERROR(rn_lookup_table_find(old, words, &no_id, out));
  int32_t count = 0;
  for (int64_t i = 0; i < out->count; ++i) count += RN_DATA(out, int64_t)[i] != -1;
  *RN_DATA(present, int32_t) = count;
  return RN_OK;
}

static rn_status_t generate(rn_kernel_ctx_t* ctx) {
  const remapping_t* remapping = ctx->state;
  rn_lookup_file_t by_line = {.key = RN_LOOKUP_LINE_NUMBER,
                              .value = RN_LOOKUP_WHOLE_LINE,
                              .lines = RN_UNKNOWN,
                              .delimiter = '\t'};
  rn_lookup_file_t by_word = {.key = RN_LOOKUP_WHOLE_LINE,
                              .value = RN_LOOKUP_LINE_NUMBER,
                              .lines = remapping->old_lines,
                              .delimiter = '\t'};
  rn_lookup_table_t *fresh = NULL, *old = NULL;
  rn_tensor_t ids = {0}, words = {0};
  rn_status_t status = read_file(ctx, 0, &by_line, RN_INT64, RN_STRING, &fresh);
  if (rn_ok(status) && remapping->count > rn_lookup_table_size(fresh) - remapping->offset)
    status =
        rn_invalid_argument("lookup table size must be larger than last new vocab entry's line");
  if (rn_ok(status)) status = read_file(ctx, 1, &by_word, RN_STRING, RN_INT64, &old);
  if (rn_ok(status)) status = look_up(ctx, fresh, old, &ids, &words);
  rn_tensor_clear(&ids);
  rn_tensor_clear(&words);
  release(fresh);
  release(old);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "GenerateVocabRemapping",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(remapping_t),
     .init = remapping_init,
     .compute = generate},
};
RN_KERNEL_FAMILY(cpu_vocabulary, rows);
