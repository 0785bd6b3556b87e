// Files of costs: see costs.h.
//
// Lines of words separated by single spaces, each ended by '\n':
//
//   runnel-costs 1                                          the format and its version
//   step NS                                                 at most once
//   link FROM TO LATENCY_NS PS_PER_BYTE                     FROM and TO "-": within a task
//   op DEVICE OP SIGNATURE NS COUNT FLOPS BYTES
//   node DEVICE NAME OP NS BYTES                           what it took and left
//   end LINES CRC                                           lines before, their masked CRC-32C in
//   hex
//
// Numbers are decimal. Names have no space and no line feed.
#include <inttypes.h>
#include <stdio.h>

#include "base/crc32c.h"
#include "place/auto/costs.h"

#define MAGIC "runnel-costs "
enum { VERSION = 1, MOST_WORDS = 8 };

typedef struct line_t {
  rn_str_t words[MOST_WORDS];
  int count;
  int64_t number;
} line_t;

static bool is_word(rn_str_t text) {
  for (size_t i = 0; i < text.size; ++i)
    if ((unsigned char)text.data[i] <= ' ') return false;
  return text.size > 0;
}

static rn_str_t or_dash(rn_str_t text) { return text.size ? text : RN_STR("-"); }
static rn_str_t no_dash(rn_str_t text) { return rn_str_is(text, "-") ? RN_STR("") : text; }

static void write_entry(const rn_cost_entry_t* entry, int64_t* lines, rn_strbuf_t* out) {
  rn_str_t key = entry->node.size ? entry->node : entry->signature;
  if (!is_word(key) || !is_word(entry->op) || !is_word(entry->device)) return;
  ++*lines;
  if (entry->node.size)
    rn_strbuf_printf(out, "node %.*s %.*s %.*s %.0f %.0f\n", RN_STR_ARGS(entry->device),
                     RN_STR_ARGS(entry->node), RN_STR_ARGS(entry->op), entry->ns,
                     entry->work.bytes);
  else
    rn_strbuf_printf(out, "op %.*s %.*s %.*s %.0f %" PRId64 " %.0f %.0f\n",
                     RN_STR_ARGS(entry->device), RN_STR_ARGS(entry->op),
                     RN_STR_ARGS(entry->signature), entry->ns, entry->count, entry->work.flops,
                     entry->work.bytes);
}

rn_status_t rn_costs_write(const rn_costs_t* costs, rn_strbuf_t* out) {
  size_t begin = out->size;
  int64_t lines = 1;
  rn_strbuf_printf(out, MAGIC "%d\n", VERSION);
  if (rn_costs_step(costs)) {
    rn_strbuf_printf(out, "step %" PRId64 "\n", rn_costs_step(costs));
    lines++;
  }
  for (size_t i = 0; i < rn_costs_link_count(costs); ++i) {
    const rn_cost_link_t* link = rn_costs_link_at(costs, i);
    rn_strbuf_printf(out, "link %.*s %.*s %" PRId64 " %.0f\n", RN_STR_ARGS(or_dash(link->from)),
                     RN_STR_ARGS(or_dash(link->to)), link->latency_ns, link->ns_per_byte * 1000);
    lines++;
  }
  for (size_t i = 0; i < rn_costs_count(costs); ++i)
    write_entry(rn_costs_entry(costs, i), &lines, out);
  RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  uint32_t crc = rn_crc32c_mask(rn_crc32c(0, out->data + begin, out->size - begin));
  rn_strbuf_printf(out, "end %" PRId64 " %08x\n", lines, crc);
  return rn_strbuf_status(out);
}

static rn_status_t bad_line(const line_t* line, const char* what) {
  return rn_data_loss("line %" PRId64 " of a file of costs %s", line->number, what);
}

static line_t split(rn_str_t text, int64_t number) {
  line_t line = {.number = number};
  while (text.size && line.count < MOST_WORDS) line.words[line.count++] = rn_str_split(&text, ' ');
  if (text.size) line.count = MOST_WORDS + 1;
  return line;
}

static rn_status_t read_op(rn_costs_t* costs, const line_t* line) {
  rn_cost_entry_t entry = {
      .device = line->words[1], .op = line->words[2], .signature = line->words[3]};
  if (!rn_str_to_f64(line->words[4], &entry.ns) || !rn_str_to_i64(line->words[5], &entry.count) ||
      !rn_str_to_f64(line->words[6], &entry.work.flops) ||
      !rn_str_to_f64(line->words[7], &entry.work.bytes) || !entry.signature.size)
    return bad_line(line, "has a bad number");
  return rn_costs_add_entry(costs, &entry);
}

static rn_status_t read_node(rn_costs_t* costs, const line_t* line) {
  rn_cost_entry_t entry = {
      .device = line->words[1], .node = line->words[2], .op = line->words[3], .count = 1};
  if (!rn_str_to_f64(line->words[4], &entry.ns) ||
      !rn_str_to_f64(line->words[5], &entry.work.bytes) || !entry.node.size)
    return bad_line(line, "has a bad number");
  return rn_costs_add_entry(costs, &entry);
}

static rn_status_t read_link(rn_costs_t* costs, const line_t* line) {
  int64_t latency;
  double per_byte;
  if (!rn_str_to_i64(line->words[3], &latency) || !rn_str_to_f64(line->words[4], &per_byte))
    return bad_line(line, "has a bad number");
  return rn_costs_set_link(costs, no_dash(line->words[1]), no_dash(line->words[2]), latency,
                           per_byte / 1000);
}

static rn_status_t read_step(rn_costs_t* costs, const line_t* line) {
  int64_t ns;
  if (!rn_str_to_i64(line->words[1], &ns) || ns < 0) return bad_line(line, "has a bad number");
  rn_costs_set_step(costs, ns);
  return RN_OK;
}

static rn_status_t read_line(rn_costs_t* costs, const line_t* line) {
  static const struct {
    const char* name;
    int words;
    rn_status_t (*read)(rn_costs_t* costs, const line_t* line);
  } kinds[] = {
      {"op", 8, read_op}, {"node", 6, read_node}, {"link", 5, read_link}, {"step", 2, read_step}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    if (!rn_str_is(line->words[0], kinds[k].name)) continue;
    if (line->count != kinds[k].words) return bad_line(line, "has the wrong number of words");
    rn_status_t status = kinds[k].read(costs, line);
    if (rn_status_code(status) != RN_CODE_INVALID_ARGUMENT) return status;
    rn_status_free(status);
    return bad_line(line, "has a number out of range");
  }
  return bad_line(line, "begins with an unknown word");
}

bool rn_costs_is_file(rn_str_t bytes) { return rn_str_starts_with(bytes, RN_STR(MAGIC)); }

// Checks the last line, and takes it away.
static rn_status_t check_end(rn_str_t* inout_text) {
  rn_str_t text = *inout_text;
  rn_status_t cut_off = rn_data_loss("a file of costs is not complete");
  if (!text.size || text.data[text.size - 1] != '\n') return cut_off;
  size_t at = text.size - 1;
  while (at && text.data[at - 1] != '\n') --at;
  line_t line = split(rn_str_n(text.data + at, text.size - at - 1), 0);
  if (line.count != 3 || !rn_str_is(line.words[0], "end")) return cut_off;
  rn_status_free(cut_off);
  int64_t lines = 0, wanted;
  for (size_t i = 0; i < at; ++i) lines += text.data[i] == '\n';
  char crc[16];
  snprintf(crc, sizeof crc, "%08x", rn_crc32c_mask(rn_crc32c(0, text.data, at)));
  if (!rn_str_to_i64(line.words[1], &wanted) || wanted != lines || !rn_str_is(line.words[2], crc))
    return rn_data_loss("the checksum of a file of costs is wrong");
  inout_text->size = at;
  return RN_OK;
}

rn_status_t rn_costs_read(rn_costs_t* costs, rn_str_t text) {
  rn_str_t rest = text, first = rn_str_split(&rest, '\n');
  int64_t version;
  if (!rn_costs_is_file(text)) return rn_data_loss("not a file of costs");
  rn_str_t number = rn_str_n(first.data + sizeof MAGIC - 1, first.size - (sizeof MAGIC - 1));
  if (!rn_str_to_i64(number, &version) || version < 1)
    return rn_data_loss("a file of costs has no version");
  if (version > VERSION)
    return rn_unimplemented("a file of costs has version %" PRId64 "; this library reads up to %d",
                            version, VERSION);
  RN_RETURN_IF_ERROR(check_end(&text));
  rn_str_split(&text, '\n');
  for (int64_t n = 2; text.size; ++n) {
    line_t line = split(rn_str_split(&text, '\n'), n);
    RN_RETURN_IF_ERROR(read_line(costs, &line));
  }
  return RN_OK;
}
