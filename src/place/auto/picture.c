// Pictures of forecasts: see report.h.
#include "place/auto/report.h"

// Sizes in pixels: of the drawing, of its left margin, of a row and of the gap below it.
enum { WIDTH = 960, LEFT = 110, RIGHT = 10, TOP = 40, ROW = 34, GAP = 22, AXIS = 30 };
// Narrower boxes are not drawn one by one.
#define LEAST_WIDTH 0.4
// Values beyond these are not drawn.
enum { MOST_LINES = 400 };

typedef struct picture_t {
  const rn_ir_t* ir;
  const rn_auto_result_t* result;
  const rn_forecast_span_t* spans;
  size_t count;
  int64_t step_ns;
  int32_t first_row[RN_FLEET_MOST_DEVICES];  // by device
  int32_t rows;
  rn_strbuf_t* out;
} picture_t;

static double x_of(const picture_t* p, int64_t ns) {
  return LEFT + (double)(WIDTH - LEFT - RIGHT) * (double)ns / (double)(p->step_ns ? p->step_ns : 1);
}
static int y_of(int32_t row) { return TOP + row * (ROW + GAP); }

// Text of a name; characters that XML reserves become others.
static void write_text(rn_strbuf_t* out, rn_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    if ((unsigned char)c < ' ' || c == '<' || c == '>' || c == '&' || c == '"') c = '_';
    rn_strbuf_append_n(out, &c, 1);
  }
}

// Tenths, without the decimal point of a locale.
static void write_number(rn_strbuf_t* out, const char* name, double value) {
  int64_t tenths = (int64_t)(value * 10 + 0.5);
  rn_strbuf_printf(out, " %s=\"%lld.%lld\"", name, (long long)(tenths / 10),
                   (long long)(tenths % 10));
}

static void write_box(const picture_t* p, const rn_forecast_span_t* span) {
  static const char* const colors[] = {"#4878a8", "#e49444", "#5b9e6f", "#b8544f", "#8268a8",
                                       "#a0785a", "#c77aa6", "#7a7a7a", "#a8a83c", "#3fa0a8"};
  const rn_ir_node_t* node = rn_ir_node(p->ir, p->result->step.nodes[span->node]);
  double x = x_of(p, span->start_ns), width = x_of(p, span->end_ns) - x;
  if (width < LEAST_WIDTH) return;
  size_t color = (size_t)(rn_str_hash(rn_str(node->op->name)) % (sizeof colors / sizeof *colors));
  rn_strbuf_append(p->out, RN_STR("<rect"));
  write_number(p->out, "x", x);
  write_number(p->out, "width", width);
  rn_strbuf_printf(p->out, " y=\"%d\" height=\"%d\" fill=\"%s\"><title>",
                   y_of(p->first_row[span->device] + span->lane_or_device), ROW, colors[color]);
  write_text(p->out, node->name);
  rn_strbuf_printf(p->out, " (%s), %lld us</title></rect>\n", node->op->name,
                   (long long)((span->end_ns - span->start_ns) / 1000));
}

static void write_line(const picture_t* p, const rn_forecast_span_t* span) {
  int y = y_of(p->first_row[span->device]), to = y_of(p->first_row[span->lane_or_device]);
  rn_strbuf_append(p->out, RN_STR("<line"));
  write_number(p->out, "x1", x_of(p, span->start_ns));
  write_number(p->out, "x2", x_of(p, span->end_ns));
  rn_strbuf_printf(p->out, " y1=\"%d\" y2=\"%d\" stroke=\"#333\" stroke-width=\"0.8\"><title>",
                   to > y ? y + ROW : y, to > y ? to : to + ROW);
  int32_t index = p->result->step.nodes[span->node];
  if (index >= 0) write_text(p->out, rn_ir_source_name(p->ir, rn_ir_node(p->ir, index)));
  rn_strbuf_printf(p->out, ", %lld bytes</title></line>\n",
                   (long long)p->result->step.work.bytes[span->output]);
}

static void write_rows(picture_t* p) {
  const rn_fleet_t* fleet = &p->result->fleet;
  for (int32_t d = 0; d < fleet->device_count; ++d) {
    rn_str_t name = fleet->devices[d].name, task = rn_fleet_task(name);
    rn_str_t mark = RN_STR("/device:");
    if (name.size > task.size + mark.size)
      name = rn_str_n(name.data + task.size + mark.size, name.size - task.size - mark.size);
    int y = y_of(p->first_row[d]);
    rn_strbuf_printf(p->out, "<text x=\"4\" y=\"%d\">", y + 14);
    write_text(p->out, name);
    rn_strbuf_printf(p->out, "</text>\n<text x=\"4\" y=\"%d\" font-size=\"9\" fill=\"#666\">",
                     y + 27);
    rn_str_t localhost = RN_STR("/job:localhost/");
    if (!rn_str_starts_with(task, localhost)) write_text(p->out, task);
    rn_strbuf_append(p->out, RN_STR("</text>\n"));
    for (int32_t lane = 0; lane < fleet->lanes[fleet->devices[d].pool]; ++lane)
      rn_strbuf_printf(p->out,
                       "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f2f2f2\"/>\n",
                       LEFT, y_of(p->first_row[d] + lane), WIDTH - LEFT - RIGHT, ROW);
  }
}

static void write_axis(const picture_t* p) {
  int y = y_of(p->rows);
  for (int i = 0; i <= 8; ++i) {
    int64_t ns = p->step_ns / 8 * i;
    rn_strbuf_append(p->out, RN_STR("<text text-anchor=\"middle\" font-size=\"10\""));
    write_number(p->out, "x", x_of(p, ns) - (i == 8 ? 16 : 0));
    rn_strbuf_printf(p->out, " y=\"%d\">%lld us</text>\n", y, (long long)(ns / 1000));
  }
}

static void write_all(picture_t* p) {
  const rn_fleet_t* fleet = &p->result->fleet;
  for (int32_t d = 0; d < fleet->device_count; ++d) {
    p->first_row[d] = p->rows;
    p->rows += fleet->lanes[fleet->devices[d].pool];
  }
  int height = y_of(p->rows) + AXIS - GAP;
  rn_strbuf_printf(p->out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                   "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n"
                   "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
                   "<text x=\"%d\" y=\"22\">One step: %lld us by the forecast</text>\n",
                   WIDTH, height, WIDTH, height, WIDTH, height, LEFT,
                   (long long)(p->step_ns / 1000));
  write_rows(p);
  size_t lines = 0;
  for (size_t i = 0; i < p->count; ++i)
    if (p->spans[i].output < 0 && p->result->step.nodes[p->spans[i].node] >= 0)
      write_box(p, &p->spans[i]);
  for (size_t i = 0; i < p->count && lines < MOST_LINES; ++i) {
    if (p->spans[i].output < 0) continue;
    write_line(p, &p->spans[i]);
    lines++;
  }
  write_axis(p);
  rn_strbuf_append(p->out, RN_STR("</svg>\n"));
}

rn_status_t rn_picture_write(const rn_ir_t* ir, const rn_auto_result_t* result, rn_strbuf_t* out) {
  rn_forecaster_t* forecaster = NULL;
  rn_forecast_t forecast;
  picture_t picture = {.ir = ir, .result = result, .out = out};
  RN_RETURN_IF_ERROR(
      rn_forecaster_create(&result->step.work, &result->fleet, out->allocator, &forecaster));
  rn_forecast_spans(forecaster, result->search.devices, &forecast, &picture.spans, &picture.count);
  picture.step_ns = forecast.step_ns;
  write_all(&picture);
  rn_forecaster_destroy(forecaster);
  return rn_strbuf_status(out);
}
