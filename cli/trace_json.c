// Traces in the Trace Event format: an object with a list "traceEvents". See trace.h.
#include "cli/trace.h"

static void put_string(rn_strbuf_t* out, rn_str_t text) {
  rn_strbuf_append(out, RN_STR("\""));
  for (size_t i = 0; i < text.size; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\')
      rn_strbuf_printf(out, "\\%c", c);
    else if (c < 0x20)
      rn_strbuf_printf(out, "\\u%04x", c);
    else
      rn_strbuf_append_n(out, &c, 1);
  }
  rn_strbuf_append(out, RN_STR("\""));
}

// The number of the device of entry |index|, in order of first appearance.
static int device_number(const rn_step_stats_t* stats, size_t index, bool* out_is_new) {
  int number = 0;
  *out_is_new = true;
  for (size_t i = 0; i <= index; ++i) {
    bool is_first = true;
    for (size_t j = 0; j < i && is_first; ++j)
      is_first = !rn_str_eq(stats->nodes.items[j].device, stats->nodes.items[i].device);
    if (!is_first) continue;
    if (rn_str_eq(stats->nodes.items[i].device, stats->nodes.items[index].device)) {
      *out_is_new = i == index;
      return number;
    }
    ++number;
  }
  return number;
}

void rn_cli_put_trace(const rn_step_stats_t* stats, rn_strbuf_t* out) {
  rn_strbuf_append(out, RN_STR("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"));
  int device = 0;
  for (size_t i = 0; i < stats->nodes.count; ++i) {
    const rn_node_stats_t* node = &stats->nodes.items[i];
    bool is_new = i == 0;
    // Adjacent entries are nearly always of one device; looks up changes only.
    if (i == 0 || !rn_str_eq(node->device, stats->nodes.items[i - 1].device))
      device = device_number(stats, i, &is_new);
    if (is_new) {
      rn_strbuf_printf(
          out, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":", device);
      put_string(out, node->device);
      rn_strbuf_append(out, RN_STR("}},\n"));
    }
    rn_strbuf_printf(out, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":",
                     device, node->thread, (double)(node->start_ns - stats->start_ns) / 1e3,
                     (double)(node->end_ns - node->start_ns) / 1e3);
    put_string(out, rn_str(node->op && *node->op ? node->op : "(control flow)"));
    rn_strbuf_append(out, RN_STR(",\"args\":{\"node\":"));
    put_string(out, node->node);
    rn_strbuf_printf(out, ",\"bytes\":%lld}}%s\n", (long long)node->output_bytes,
                     i + 1 < stats->nodes.count ? "," : "");
  }
  rn_strbuf_append(out, RN_STR("]}\n"));
}
