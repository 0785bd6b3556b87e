// DumpTensor: a record per step in a file of tensors, with a file beside it that names the node.
// And two ops without other use: Fact, and CheckPinned, which asks where its input is.
#include "base/arena.h"
#include "base/fs.h"
#include "base/sync.h"
#include "io/record.h"
#include "kernels/kernel_rows.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define UNIT_FILE "quant_unit.pb"
enum { UNIT_NODE = 2, UNIT_FUNCTION = 3 };  // fields of the message in that file

typedef struct dump_state_t {
  rn_mutex_t mutex;            // guards |writer|
  rn_record_writer_t* writer;  // Owned
  bool is_enabled;
  bool has_mutex;
} dump_state_t;

static rn_status_t write_unit(const rn_kernel_init_t* init, const char* folder) {
  rn_strbuf_t path, unit;
  rn_strbuf_init(&path, init->allocator);
  rn_strbuf_init(&unit, init->allocator);
  rn_strbuf_printf(&path, "%s/" UNIT_FILE, folder);
  rn_pb_put_str(&unit, UNIT_NODE, rn_init_string(init, "node_name"));
  rn_pb_put_str(&unit, UNIT_FUNCTION, rn_init_string(init, "func_name"));
  rn_status_t status = rn_status_join(rn_strbuf_status(&path), rn_strbuf_status(&unit));
  if (rn_ok(status)) status = rn_fs_write(init->env, path.data, rn_strbuf_view(&unit));
  rn_strbuf_clear(&path);
  rn_strbuf_clear(&unit);
  return status;
}

static rn_status_t open_files(const rn_kernel_init_t* init, dump_state_t* dump, rn_arena_t* arena) {
  const rn_sink_options_t options = {.compression = RN_COMPRESSION_ZLIB};
  rn_str_t folder, path, name = rn_init_string(init, "file_name");
  RN_RETURN_IF_ERROR(rn_arena_str(arena, rn_init_string(init, "log_dir_path"), &folder));
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &path, "%s/%.*s", folder.data, RN_STR_ARGS(name)));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(init->env, folder.data));
  RN_RETURN_IF_ERROR(rn_record_writer_open(init->env, path.data, &options, &dump->writer));
  return write_unit(init, folder.data);
}

static rn_status_t dump_init(const rn_kernel_init_t* init, void* state) {
  dump_state_t* dump = state;
  rn_arena_t arena;
  rn_mutex_init(&dump->mutex);
  dump->has_mutex = true;
  dump->is_enabled = rn_init_bool(init, "enabled");
  rn_arena_init(&arena, init->allocator);
  rn_status_t status = open_files(init, dump, &arena);
  rn_arena_clear(&arena);
  return status;
}

static void dump_destroy(void* state) {
  dump_state_t* dump = state;
  // There is no caller left to report an error to.
  rn_status_free(rn_record_writer_close(dump->writer));
  if (dump->has_mutex) rn_mutex_destroy(&dump->mutex);
}

static rn_status_t put_record(dump_state_t* dump, const rn_tensor_t* tensor, rn_arena_t* arena,
                              rn_strbuf_t* record) {
  rn_pb_TensorProto_t proto = {0};
  RN_RETURN_IF_ERROR(rn_tensor_to_proto(tensor, RN_TENSOR_CONTENT, arena, &proto));
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(TensorProto, &proto, NULL, record));
  rn_mutex_lock(&dump->mutex);
  rn_status_t status = rn_record_writer_write(dump->writer, rn_strbuf_view(record));
  if (rn_ok(status)) status = rn_record_writer_flush(dump->writer, false);
  rn_mutex_unlock(&dump->mutex);
  return status;
}

static rn_status_t dump_compute(rn_kernel_ctx_t* ctx) {
  dump_state_t* dump = ctx->state;
  rn_arena_t arena;
  rn_strbuf_t record;
  if (!dump->is_enabled) return RN_OK;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_strbuf_init(&record, ctx->kernel->allocator);
  rn_status_t status = put_record(dump, rn_in(ctx, 0), &arena, &record);
  rn_strbuf_clear(&record);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t fact_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_str_t fact = RN_STR("0! == 1");
  return rn_tstring_assign(RN_DATA(out, rn_tstring_t), fact.data, fact.size) ? RN_OK
                                                                             : rn_out_of_memory();
}

// Memory of a CPU is not pinned.
static rn_status_t check_pinned_compute(rn_kernel_ctx_t* ctx) {
  (void)ctx;
  return rn_invalid_argument("not pinned");
}

static const rn_kernel_def_t rows[] = {
    {.op = "DumpTensor",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(dump_state_t),
     .init = dump_init,
     .destroy = dump_destroy,
     .compute = dump_compute},
    {.op = "Fact", .device = "CPU", .compute = fact_compute},
    {.op = "CheckPinned", .device = "CPU", .compute = check_pinned_compute},
};
RN_KERNEL_FAMILY(cpu_dump, rows);
