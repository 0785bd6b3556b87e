// `runnel trace`: converts the trace of a step to a file that browsers show.
#include <stdio.h>

#include "cli/cli.h"
#include "cli/trace.h"
#include "io/event_file.h"
#include "proto/config.pb.h"
#include "wire/decode.h"
#include "wire/scan.h"

// "matmul = MatMul(x, w)": the op stands between the sign and the parenthesis.
static void op_of(rn_str_t label, char* out, size_t size) {
  const char* sign = memmem(label.data, label.size, " = ", 3);
  rn_str_t rest = sign ? rn_str_n(sign + 3, label.size - (size_t)(sign + 3 - label.data)) : label;
  rn_str_t op = rn_str_split(&rest, '(');
  snprintf(out, size, "%.*s", RN_STR_ARGS(op));
}

static int64_t nanos(int64_t nanos, int64_t micros) { return nanos ? nanos : micros * 1000; }

static rn_status_t add_node(rn_arena_t* arena, rn_str_t device, const rn_pb_NodeExecStats_t* node,
                            rn_step_stats_t* stats) {
  char* op = NULL;
  size_t size = node->timeline_label.size + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, size, &op));
  op_of(node->timeline_label, op, size);
  int64_t start = nanos(node->all_start_nanos, node->all_start_micros), bytes = 0;
  for (uint32_t i = 0; i < node->output.count; ++i) {
    const rn_pb_TensorDescription_t* tensor = node->output.items[i].tensor_description;
    if (tensor && tensor->allocation_description)
      bytes += tensor->allocation_description->requested_bytes;
  }
  rn_node_stats_t entry = {
      .node = node->node_name,
      .op = op,
      .device = device,
      .start_ns = start + nanos(node->op_start_rel_nanos, node->op_start_rel_micros),
      .end_ns = start + nanos(node->op_end_rel_nanos, node->op_end_rel_micros),
      .output_bytes = bytes,
      .thread = (int32_t)node->thread_id};
  if (stats->nodes.count == 0 || entry.start_ns < stats->start_ns) stats->start_ns = entry.start_ns;
  rn_step_stats_add(stats, entry, NULL, 0);
  return RN_OK;
}

static rn_status_t write_text(const rn_cli_t* cli, const char* path, const rn_strbuf_t* text) {
  if (path && strcmp(path, "-") != 0)
    return rn_cli_prefix(rn_cli_at(rn_fs_write(cli->env, path, rn_strbuf_view(text)), path),
                         "cannot write ");
  fwrite(text->data, 1, text->size, stdout);
  return RN_OK;
}

static rn_status_t convert(const rn_cli_t* cli, rn_str_t bytes, rn_arena_t* arena,
                           rn_strbuf_t* text) {
  rn_pb_RunMetadata_t* metadata = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(RunMetadata, bytes, NULL, arena, &metadata));
  if (!metadata->step_stats || metadata->step_stats->dev_stats.count == 0)
    return rn_invalid_argument("it has no step statistics: was the step run with a trace level?");
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, cli->allocator, cli->env);
  rn_status_t status = RN_OK;
  for (uint32_t d = 0; d < metadata->step_stats->dev_stats.count; ++d) {
    const rn_pb_DeviceStepStats_t* device = &metadata->step_stats->dev_stats.items[d];
    for (uint32_t i = 0; i < device->node_stats.count && rn_ok(status); ++i)
      status = add_node(arena, device->device, &device->node_stats.items[i], &stats);
  }
  if (rn_ok(status)) {
    rn_cli_put_trace(&stats, text);
    status = rn_strbuf_status(text);
  }
  rn_step_stats_clear(&stats);
  return status;
}

// The last run metadata of an event file, appended to |out|.
static rn_status_t find_in_events(const rn_cli_t* cli, const char* path, rn_strbuf_t* out) {
  rn_record_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_record_reader_open(cli->env, path, RN_COMPRESSION_NONE, 0, &reader));
  rn_status_t status = RN_OK;
  for (bool is_end = false; rn_ok(status);) {
    rn_str_t record;
    rn_event_t event;
    status = rn_record_reader_next(reader, &record, &is_end);
    if (is_end) break;
    if (rn_ok(status)) status = rn_event_parse(record, &event);
    if (!rn_ok(status) || event.kind != RN_EVENT_RUN_METADATA) continue;
    rn_pb_scan_t scan = rn_pb_scan(event.bytes);
    rn_pb_field_t field;
    while (rn_pb_scan_next(&scan, &field)) {
      if (field.number != RN_RUN_METADATA_BYTES || field.wire != RN_PB_WIRE_LENGTH) continue;
      out->size = 0;
      rn_strbuf_append(out, field.bytes);
    }
  }
  rn_record_reader_close(reader);
  if (rn_ok(status) && out->size == 0) return rn_not_found("no run metadata in this event file");
  return rn_status_join(status, rn_strbuf_status(out));
}

static rn_status_t trace_file(const rn_cli_t* cli, const char* path, rn_strbuf_t* text) {
  rn_arena_t arena;
  rn_strbuf_t bytes;
  rn_arena_init(&arena, cli->allocator);
  rn_strbuf_init(&bytes, cli->allocator);
  rn_status_t status = strstr(path, "tfevents") ? find_in_events(cli, path, &bytes)
                                                : rn_fs_read(cli->env, path, INT32_MAX, &bytes);
  if (rn_ok(status)) status = convert(cli, rn_strbuf_view(&bytes), &arena, text);
  rn_strbuf_clear(&bytes);
  rn_arena_clear(&arena);
  return rn_cli_at(status, path);
}

static rn_status_t trace(rn_cli_t* cli) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, cli->allocator);
  rn_status_t status = trace_file(cli, rn_cli_word(cli, "FILE"), &text);
  if (rn_ok(status)) status = write_text(cli, rn_cli_text(cli, "--output"), &text);
  rn_strbuf_clear(&text);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(FILE, "--output", "FILE", "where to write (default: standard output)", .also = "-o"),
    {0},
};

const rn_cli_command_t rn_cli_trace_command = {
    .name = "trace",
    .summary = "turn the trace of a step into a Chrome trace",
    .about =
        "Turns a RunMetadata message, which TF_SessionRun fills for a traced step, into a file for "
        "chrome://tracing or https://ui.perfetto.dev: one row per device and thread, one bar per "
        "node. FILE can also be an event file; its last run metadata is used.",
    .words = "FILE",
    .word_kind = RN_CLI_FILE,
    .run = trace,
    .options = options,
    .examples = "runnel trace examples/models/step.pb -o step.json",
};
