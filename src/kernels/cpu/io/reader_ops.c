// The reader ops: creation and use of reader handles. See reader.h.
#include "kernels/cpu/array.h"
#include "kernels/cpu/io/reader.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct reader_ops_make_t {
  const rn_kernel_init_t* init;
  const rn_reader_kind_t* kind;
  rn_reader_options_t options;
} reader_ops_make_t;

static rn_status_t make_reader(void* arg, rn_str_t name, rn_resource_t** out) {
  const reader_ops_make_t* make = arg;
  (void)name;
  return rn_reader_create(make->init->allocator, make->init->env, make->kind, &make->options,
                          make->init->node, (rn_reader_t**)out);
}

static rn_status_t init_kind(const rn_kernel_init_t* init, void* state, reader_ops_make_t make) {
  make.init = init;
  return rn_handle_state_init(state, init, RN_READER_TYPE, make_reader, &make);
}

static rn_status_t identity_init(const rn_kernel_init_t* init, void* state) {
  return init_kind(init, state, (reader_ops_make_t){.kind = &rn_reader_identity});
}
static rn_status_t whole_file_init(const rn_kernel_init_t* init, void* state) {
  return init_kind(init, state, (reader_ops_make_t){.kind = &rn_reader_whole_file});
}
static rn_status_t text_line_init(const rn_kernel_init_t* init, void* state) {
  int64_t skipped = rn_init_int(init, "skip_header_lines");
  if (skipped < 0)
    return rn_invalid_argument("skip_header_lines must be >= 0 not %lld", (long long)skipped);
  return init_kind(
      init, state,
      (reader_ops_make_t){.kind = &rn_reader_text_line, .options = {.skipped_lines = skipped}});
}

// As in stock, an unknown name means no compression.
static rn_compression_t compression_of(const rn_kernel_init_t* init, const char* attr,
                                       bool (*from_name)(rn_str_t, rn_compression_t*)) {
  rn_compression_t compression = RN_COMPRESSION_NONE;
  if (rn_op_attr_index(init->op, rn_str(attr)) < 0) return compression;
  rn_str_t name = rn_init_string(init, attr);
  if (!from_name(name, &compression)) {
    rn_log(init->env, RN_LOG_ERROR, "Unsupported %s:%.*s. No compression will be used.", attr,
           RN_STR_ARGS(name));
    return RN_COMPRESSION_NONE;
  }
  return compression;
}

static rn_status_t tf_record_init(const rn_kernel_init_t* init, void* state) {
  return init_kind(init, state,
                   (reader_ops_make_t){.kind = &rn_reader_tf_record,
                                       .options = {.compression = compression_of(
                                                       init, "compression_type",
                                                       rn_record_compression_from_name)}});
}

static rn_status_t fixed_length_init(const rn_kernel_init_t* init, void* state) {
  static const char* const names[] = {"header_bytes", "record_bytes", "footer_bytes", "hop_bytes"};
  int64_t sizes[4];
  for (int i = 0; i < 4; ++i) {
    sizes[i] = rn_init_int(init, names[i]);
    if (sizes[i] < 0)
      return rn_invalid_argument("%s must be >= 0 not %lld", names[i], (long long)sizes[i]);
  }
  return init_kind(init, state,
                   (reader_ops_make_t){.kind = &rn_reader_fixed_length,
                                       .options = {.compression = compression_of(
                                                       init, "encoding", rn_compression_from_name),
                                                   .header = sizes[0],
                                                   .record = sizes[1],
                                                   .footer = sizes[2],
                                                   .hop = sizes[3]}});
}

// TensorFlow removed LMDB; the message says so.
static rn_status_t lmdb_init(const rn_kernel_init_t* init, void* state) {
  (void)init, (void)state;
  return rn_unimplemented(
      "LMDB support is removed from TensorFlow. This API will be deleted in the next TensorFlow "
      "release. If you need LMDB support, please file a GitHub issue.");
}

static rn_status_t reader_of(const rn_kernel_ctx_t* ctx, rn_reader_t** out) {
  return rn_handle_input(ctx, 0, RN_READER_TYPE, (rn_resource_t**)out);
}

static void read_records(rn_kernel_ctx_t* ctx, int64_t count, bool is_single) {
  rn_reader_t* reader = NULL;
  rn_queue_t* queue = NULL;
  rn_status_t status = reader_of(ctx, &reader);
  if (rn_ok(status)) status = rn_handle_input(ctx, 1, RN_QUEUE_TYPE, (rn_resource_t**)&queue);
  if (rn_ok(status))
    rn_reader_read(reader, ctx, queue, count, is_single);
  else
    rn_done(ctx, status);
  if (queue) rn_object_release(&queue->resource.object);
  if (reader) rn_object_release(&reader->resource.object);
}

static void reader_read(rn_kernel_ctx_t* ctx) { read_records(ctx, 1, true); }

static void reader_read_up_to(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* count = rn_in(ctx, 2);
  if (count->count != 1)
    rn_done(ctx, rn_invalid_argument("num_records must be a scalar, got shape %s",
                                     rn_text_of(count).text));
  else if (*RN_DATA(count, const int64_t) < 0)
    rn_done(ctx, rn_invalid_argument("num_records must be >= 0, got %lld",
                                     (long long)*RN_DATA(count, const int64_t)));
  else
    read_records(ctx, *RN_DATA(count, const int64_t), false);
}

static rn_status_t count_of(rn_kernel_ctx_t* ctx, int64_t (*ask)(rn_reader_t*)) {
  rn_reader_t* reader = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(reader_of(ctx, &reader));
  rn_status_t status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status)) *RN_DATA(out, int64_t) = ask(reader);
  rn_object_release(&reader->resource.object);
  return status;
}
static rn_status_t reader_produced(rn_kernel_ctx_t* ctx) {
  return count_of(ctx, rn_reader_produced);
}
static rn_status_t reader_finished(rn_kernel_ctx_t* ctx) {
  return count_of(ctx, rn_reader_finished);
}

static rn_status_t reader_reset(rn_kernel_ctx_t* ctx) {
  rn_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(reader_of(ctx, &reader));
  rn_reader_reset(reader);
  rn_object_release(&reader->resource.object);
  return RN_OK;
}

static rn_status_t reader_save(rn_kernel_ctx_t* ctx) {
  rn_reader_t* reader = NULL;
  rn_tensor_t* out = NULL;
  rn_strbuf_t state;
  RN_RETURN_IF_ERROR(reader_of(ctx, &reader));
  rn_strbuf_init(&state, ctx->kernel->allocator);
  rn_status_t status = rn_reader_save(reader, &state);
  if (rn_ok(status)) status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status) &&
      !rn_tstring_assign(RN_DATA(out, rn_tstring_t), rn_strbuf_view(&state).data, state.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&state);
  rn_object_release(&reader->resource.object);
  return status;
}

static rn_status_t reader_restore(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* state = rn_in(ctx, 1);
  if (state->count != 1)
    return rn_invalid_argument("Reader state must be scalar, but had shape: %s",
                               rn_text_of(state).text);
  rn_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(reader_of(ctx, &reader));
  rn_status_t status =
      rn_reader_restore(reader, rn_tstring_view(RN_DATA(state, const rn_tstring_t)));
  rn_object_release(&reader->resource.object);
  return status;
}

#define MAKE(name, init_)                                                                       \
  {                                                                                             \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,                                \
    .state_size = sizeof(rn_handle_state_t), .init = init_, .destroy = rn_handle_state_destroy, \
    .compute = rn_handle_state_compute                                                          \
  }
#define READ(name, function) \
  { .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .compute_async = function }
#define USE(name, function) \
  { .op = name, .device = "CPU", .compute = function }
#define BOTH(row, name, ...) row(name, __VA_ARGS__), row(name "V2", __VA_ARGS__)

static const rn_kernel_def_t rows[] = {
    BOTH(MAKE, "IdentityReader", identity_init),
    BOTH(MAKE, "WholeFileReader", whole_file_init),
    BOTH(MAKE, "TextLineReader", text_line_init),
    BOTH(MAKE, "FixedLengthRecordReader", fixed_length_init),
    BOTH(MAKE, "TFRecordReader", tf_record_init),
    MAKE("LMDBReader", lmdb_init),
    BOTH(READ, "ReaderRead", reader_read),
    BOTH(READ, "ReaderReadUpTo", reader_read_up_to),
    BOTH(USE, "ReaderNumRecordsProduced", reader_produced),
    BOTH(USE, "ReaderNumWorkUnitsCompleted", reader_finished),
    BOTH(USE, "ReaderReset", reader_reset),
    BOTH(USE, "ReaderSerializeState", reader_save),
    BOTH(USE, "ReaderRestoreState", reader_restore),
};
RN_KERNEL_FAMILY(cpu_reader, rows);
