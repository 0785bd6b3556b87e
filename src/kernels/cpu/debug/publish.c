// See publish.h. The file of output 0 of node "scope/x" on "/job:a/device:CPU:0" is
// "_tfdbg_device_,job_a,device_CPU_0/scope/x_0_DebugIdentity_<microseconds>" in the folder; if
// the tensor is an input or output of a named node,
// "node-io-dump/step-<n>/node:in:0_<microseconds>".
#include "kernels/cpu/debug/publish.h"

#include <inttypes.h>

#include "base/fs.h"
#include "io/event_file.h"
#include "io/summary.h"
#include "wire/writer.h"

enum { PLUGIN_CONTENT = 2 };  // of SummaryMetadata.PluginData

// Divides "node:slot"; a name without a slot is that of output 0.
static rn_status_t read_name(rn_str_t name, rn_publish_t* out) {
  size_t colon = name.size;
  if (!name.size) return rn_invalid_argument("Failed to parse tensor name: \"\"");
  while (colon > 0 && name.data[colon - 1] != ':') --colon;
  out->node = name;
  if (colon == 0) return RN_OK;
  out->node.size = colon - 1;
  if (rn_str_to_i64(rn_str_n(name.data + colon, name.size - colon), &out->slot)) return RN_OK;
  return rn_invalid_argument("Invalid string value for output_slot: \"%.*s\"",
                             (int)(name.size - colon), name.data + colon);
}

static rn_status_t copy_urls(const rn_attr_value_t* urls, rn_publish_t* out) {
  rn_str_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, (size_t)urls->count, &copies));
  for (int32_t i = 0; i < urls->count; ++i)
    RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, urls->list_s[i], &copies[i]));
  out->url_count = urls->count;
  out->urls = copies;
  return RN_OK;
}

rn_status_t rn_publish_init(const rn_kernel_init_t* init, rn_publish_t* out) {
  rn_str_t name;
  rn_arena_init(&out->arena, init->allocator);
  RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, rn_init_string(init, "device_name"), &out->device));
  RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, rn_init_string(init, "tensor_name"), &name));
  RN_RETURN_IF_ERROR(read_name(name, out));
  out->is_gated = rn_init_bool(init, "gated_grpc");
  RN_RETURN_IF_ERROR(copy_urls(rn_init_attr(init, "debug_urls"), out));
  if (rn_op_attr_index(init->op, RN_STR("io_of_node")) < 0) return RN_OK;
  out->is_input = rn_init_bool(init, "is_input");
  out->io_index = rn_init_int(init, "io_index");
  return rn_arena_str(&out->arena, rn_init_string(init, "io_of_node"), &out->io_node);
}

void rn_publish_destroy(rn_publish_t* publish) {
  if (publish->arena.allocator.fn) rn_arena_clear(&publish->arena);
}

// Appends an Event whose summary holds |tensor|.
static rn_status_t put_event(const rn_publish_t* publish, const rn_kernel_ctx_t* ctx,
                             const rn_tensor_t* tensor, int64_t wall_us, rn_arena_t* arena,
                             rn_strbuf_t* out) {
  rn_str_t node, content, metadata;
  rn_strbuf_t plugin, summary;
  rn_allocator_t allocator = ctx->kernel->allocator;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &node, "%.*s:%" PRId64 ":%s",
                                     RN_STR_ARGS(publish->node), publish->slot,
                                     ctx->kernel->op->name));
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &content,
                                     "{\"device\":\"%.*s\",\"outputSlot\":%" PRId64
                                     ",\"numChunks\":1,\"chunkIndex\":0}",
                                     RN_STR_ARGS(publish->device), publish->slot));
  rn_strbuf_init(&plugin, allocator);
  rn_strbuf_init(&summary, allocator);
  rn_pb_put_str(&plugin, RN_PLUGIN_NAME, RN_STR("debugger"));
  rn_pb_put_str(&plugin, PLUGIN_CONTENT, content);
  rn_pb_put_str(&summary, RN_METADATA_PLUGIN, rn_strbuf_view(&plugin));
  rn_status_t status = rn_arena_str(arena, rn_strbuf_view(&summary), &metadata);
  summary.size = 0;
  if (rn_ok(status))
    status = rn_summary_put_tensor(&summary, publish->node, node, tensor, &metadata);
  rn_pb_put_double(out, RN_EVENT_WALL_TIME, (double)wall_us);
  rn_pb_put_str(out, RN_EVENT_SUMMARY, rn_strbuf_view(&summary));
  if (rn_ok(status)) status = rn_strbuf_status(&summary);
  if (rn_ok(status)) status = rn_strbuf_status(&plugin);
  rn_strbuf_clear(&plugin);
  rn_strbuf_clear(&summary);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

// The file below |folder|.
static void put_path(const rn_publish_t* publish, const rn_kernel_ctx_t* ctx, rn_str_t folder,
                     int64_t wall_us, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "%.*s/", RN_STR_ARGS(folder));
  if (publish->io_node.size) {
    rn_strbuf_printf(out, "node-io-dump/step-%" PRId64 "/%.*s:%s:%" PRId64, ctx->step->id,
                     RN_STR_ARGS(publish->io_node), publish->is_input ? "in" : "out",
                     publish->io_index);
  } else {
    rn_strbuf_append(out, RN_STR("_tfdbg_device_"));
    for (size_t i = 0; i < publish->device.size; ++i) {
      char c = publish->device.data[i];
      c = c == '/' ? ',' : c == ':' ? '_' : c;
      rn_strbuf_append_n(out, &c, 1);
    }
    rn_strbuf_printf(out, "/%.*s_%" PRId64 "_%s", RN_STR_ARGS(publish->node), publish->slot,
                     ctx->kernel->op->name);
  }
  rn_strbuf_printf(out, "_%" PRId64, wall_us);
}

static rn_status_t write_file(const rn_env_t* env, rn_strbuf_t* path, rn_str_t event) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(path));
  size_t slash = path->size;
  while (slash > 0 && path->data[slash - 1] != '/') --slash;
  path->data[slash - 1] = 0;
  rn_status_t status = rn_fs_make_directories(env, path->data);
  path->data[slash - 1] = '/';
  return rn_ok(status) ? rn_fs_write(env, path->data, event) : status;
}

static rn_status_t publish_to(const rn_publish_t* publish, const rn_kernel_ctx_t* ctx, rn_str_t url,
                              int64_t wall_us, rn_str_t event) {
  static const rn_str_t scheme = RN_STR("file://");
  if (rn_str_starts_with(url, RN_STR("grpc://")))
    return rn_unimplemented("%s does not send tensors to %.*s", ctx->kernel->op->name,
                            RN_STR_ARGS(url));
  if (!rn_str_starts_with(url, scheme))
    return rn_internal("Invalid debug target URL: %.*s", RN_STR_ARGS(url));
  rn_strbuf_t path;
  rn_strbuf_init(&path, ctx->kernel->allocator);
  put_path(publish, ctx, rn_str_n(url.data + scheme.size, url.size - scheme.size), wall_us, &path);
  rn_status_t status = write_file(ctx->step->env, &path, event);
  rn_strbuf_clear(&path);
  return status;
}

rn_status_t rn_publish(const rn_publish_t* publish, const rn_kernel_ctx_t* ctx,
                       const rn_tensor_t* tensor) {
  if (publish->url_count == 0) return RN_OK;
  const rn_env_t* env = ctx->step->env;
  int64_t wall_us = env->wall_us(env->self);
  rn_arena_t arena;
  rn_strbuf_t event;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_strbuf_init(&event, ctx->kernel->allocator);
  rn_status_t status = put_event(publish, ctx, tensor, wall_us, &arena, &event);
  for (int32_t i = 0; rn_ok(status) && i < publish->url_count; ++i)
    status = publish_to(publish, ctx, publish->urls[i], wall_us, rn_strbuf_view(&event));
  rn_strbuf_clear(&event);
  rn_arena_clear(&arena);
  return status;
}
