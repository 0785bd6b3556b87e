// `runnel events`: shows the runs, tags and curves of a training log in the terminal.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/events_log.h"

typedef struct events_job_t {
  rn_cli_t* cli;
  const char* folder;
  const char* tag;
  bool is_list, is_csv;
  int64_t width, height;
  int64_t runs;
  struct plot_t* plot;
} events_job_t;

enum { MAX_COLUMNS = 500, MAX_ROWS = 200, MAX_FOLDER_DEPTH = 16, MARGIN = 14 };

static bool is_wanted(const events_job_t* job, const rn_series_t* series) {
  return !job->tag || memmem(series->tag.data, series->tag.size, job->tag, strlen(job->tag));
}

// Tags come from files: does not print control characters, which could move the cursor.
static void print_tag(rn_str_t tag, int width) {
  int printed = 0;
  for (size_t i = 0; i < tag.size; ++i, ++printed)
    putchar((unsigned char)tag.data[i] < 0x20 || tag.data[i] == 0x7f ? '?' : tag.data[i]);
  for (; printed < width; ++printed) putchar(' ');
}

typedef struct events_range_t {
  double low, high;
} events_range_t;

static events_range_t range_of(const rn_series_t* series) {
  events_range_t r = {INFINITY, -INFINITY};
  for (size_t i = 0; i < series->points.count; ++i) {
    double v = series->points.items[i].value;
    if (!isfinite(v)) continue;
    if (v < r.low) r.low = v;
    if (v > r.high) r.high = v;
  }
  return r;
}

// A plot in braille characters, two by four dots each.
typedef struct plot_t {
  int columns, rows;
  uint8_t dots[MAX_ROWS][MAX_COLUMNS];
} plot_t;

static void put_dot(plot_t* plot, int x, int y) {
  static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  if (x < 0 || y < 0 || x >= 2 * plot->columns || y >= 4 * plot->rows) return;
  plot->dots[y / 4][x / 2] |= bits[y % 4][x % 2];
}

static void put_line(plot_t* plot, int x0, int y0, int x1, int y1) {
  int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);
  for (int i = 0; i <= steps; ++i) {
    double t = steps ? (double)i / steps : 0;
    put_dot(plot, x0 + (int)lround(t * (x1 - x0)), y0 + (int)lround(t * (y1 - y0)));
  }
}

static void fill_plot(plot_t* plot, const rn_series_t* series, events_range_t range) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (size_t i = 0; i < series->points.count; ++i) {
    int64_t step = series->points.items[i].step;
    if (step < first) first = step;
    if (step > last) last = step;
  }
  double steps = (double)last - (double)first, height = range.high - range.low;
  int x0 = 0, y0 = 0;
  bool has_before = false;
  for (size_t i = 0; i < series->points.count; ++i) {
    const rn_point_t* p = &series->points.items[i];
    if (!isfinite(p->value)) {
      has_before = false;
      continue;
    }
    double across = steps > 0 ? ((double)p->step - (double)first) / steps : 0;
    double up = height > 0 ? (p->value - range.low) / height : 0.5;
    int x = (int)lround(across * (2 * plot->columns - 1));
    int y = (int)lround((1 - up) * (4 * plot->rows - 1));
    // A resumed run goes back in steps; draws no line there.
    if (has_before && x >= x0)
      put_line(plot, x0, y0, x, y);
    else
      put_dot(plot, x, y);
    x0 = x;
    y0 = y;
    has_before = true;
  }
}

static void print_plot(const events_job_t* job, const rn_series_t* series, events_range_t range) {
  plot_t* plot = job->plot;
  memset(plot, 0, sizeof *plot);
  plot->columns = (int)job->width;
  plot->rows = (int)job->height;
  fill_plot(plot, series, range);
  for (int y = 0; y < plot->rows; ++y) {
    if (y == 0)
      printf("%*.4g ┤", MARGIN - 2, range.high);
    else if (y == plot->rows - 1)
      printf("%*.4g ┤", MARGIN - 2, range.low);
    else
      printf("%*s │", MARGIN - 2, "");
    for (int x = 0; x < plot->columns; ++x) {
      unsigned code = 0x2800 + plot->dots[y][x];
      printf("%c%c%c", 0xe0 | (int)(code >> 12), 0x80 | (int)(code >> 6 & 0x3f),
             0x80 | (int)(code & 0x3f));
    }
    putchar('\n');
  }
}

static const char* const kind_names[RN_SERIES_KINDS] = {"scalar", "histogram", "image", "audio",
                                                        "text",   "tensor",    "trace", "graph"};

static void print_series(const events_job_t* job, const rn_series_t* series, int width) {
  rn_cli_digits_t digits;
  size_t count = series->points.count;
  const rn_point_t* last = &series->points.items[count - 1];
  printf("  %-9s ", kind_names[series->kind]);
  print_tag(series->tag, width);
  printf("  %7s", rn_cli_digits((int64_t)count, &digits));
  printf(" point%s step %s", count == 1 ? ", " : "s,", rn_cli_digits(last->step, &digits));
  events_range_t range = range_of(series);
  if (series->kind == RN_SERIES_SCALAR) printf(": %.6g", last->value);
  if (series->kind == RN_SERIES_SCALAR && range.low < range.high)
    printf("  (%.4g … %.4g)", range.low, range.high);
  putchar('\n');
  if (series->kind == RN_SERIES_SCALAR && !job->is_list && count > 1 && range.low <= range.high)
    print_plot(job, series, range);
}

static void print_csv(const char* run, const rn_series_t* series) {
  if (series->kind != RN_SERIES_SCALAR) return;
  for (size_t i = 0; i < series->points.count; ++i) {
    const rn_point_t* p = &series->points.items[i];
    printf("%s,", run);
    print_tag(series->tag, 0);
    printf(",%" PRId64 ",%.6f,%.9g\n", p->step, p->wall_time, p->value);
  }
}

static void print_run(events_job_t* job, const char* run, const rn_log_t* log) {
  rn_cli_digits_t digits;
  int width = 0;
  for (size_t i = 0; i < log->series.count; ++i)
    if (is_wanted(job, &log->series.items[i]) && (int)log->series.items[i].tag.size > width)
      width = (int)log->series.items[i].tag.size;
  if (!job->is_csv) {
    if (job->runs > 1) putchar('\n');
    printf("%s: %s event%s", run, rn_cli_digits(log->events, &digits), log->events == 1 ? "" : "s");
    printf(" in %s file%s\n", rn_cli_digits(log->files, &digits), log->files == 1 ? "" : "s");
  }
  for (size_t i = 0; i < log->series.count; ++i) {
    if (!is_wanted(job, &log->series.items[i])) continue;
    if (job->is_csv)
      print_csv(run, &log->series.items[i]);
    else
      print_series(job, &log->series.items[i], width < 60 ? width : 60);
  }
  if (!rn_ok(log->damage))
    fprintf(stderr, "runnel: %s; shown is what came before it\n", rn_status_message(log->damage));
}

static rn_status_t show_folder(events_job_t* job, const char* folder, int depth);

static rn_status_t show_inner(events_job_t* job, const char* folder, int depth) {
  const rn_env_t* env = job->cli->env;
  rn_names_t names;
  rn_strbuf_t path;
  rn_names_init(&names, job->cli->allocator);
  rn_strbuf_init(&path, job->cli->allocator);
  rn_status_t status = env->fs->list(env->fs_self, folder, &names);
  rn_names_sort(&names);
  for (size_t i = 0; i < names.list.count && rn_ok(status); ++i) {
    rn_file_stat_t stat;
    path.size = 0;
    rn_strbuf_printf(&path, "%s/%.*s", folder, RN_STR_ARGS(names.list.items[i]));
    status = rn_strbuf_status(&path);
    if (!rn_ok(status)) break;
    rn_status_t found = env->fs->stat(env->fs_self, path.data, &stat);
    if (rn_ok(found) && stat.is_directory) status = show_folder(job, path.data, depth + 1);
    rn_status_free(found);  // a file that was deleted meanwhile is not shown
  }
  rn_strbuf_clear(&path);
  rn_names_clear(&names);
  return status;
}

static rn_status_t show_folder(events_job_t* job, const char* folder, int depth) {
  if (depth > MAX_FOLDER_DEPTH) return RN_OK;
  rn_log_t log;
  rn_log_init(&log, job->cli->allocator);
  rn_status_t status = rn_log_read(&log, job->cli->env, folder);
  if (rn_ok(status) && log.files) {
    ++job->runs;
    print_run(job, folder, &log);
  }
  rn_log_clear(&log);
  return rn_ok(status) ? show_inner(job, folder, depth) : status;
}

static int64_t terminal_width(void) {
  struct winsize size;
  int columns = 80;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  columns -= MARGIN + 1;
  return columns < 10 ? 10 : columns > MAX_COLUMNS ? MAX_COLUMNS : columns;
}

static rn_status_t events(rn_cli_t* cli) {
  events_job_t job = {.cli = cli,
                      .folder = rn_cli_word(cli, "FOLDER"),
                      .tag = rn_cli_text(cli, "--tag"),
                      .is_list = rn_cli_has(cli, "--list"),
                      .is_csv = rn_cli_has(cli, "--csv"),
                      .width = rn_cli_number(cli, "--width", terminal_width()),
                      .height = rn_cli_number(cli, "--height", 8)};
  RN_RETURN_IF_ERROR(RN_NEW(cli->allocator, &job.plot));
  rn_status_t status = show_folder(&job, job.folder, 0);
  RN_FREE(cli->allocator, job.plot);
  RN_RETURN_IF_ERROR(rn_cli_at(status, job.folder));
  if (job.runs) return RN_OK;
  return rn_not_found("no event files in '%s'", job.folder);
}

static const rn_cli_option_t options[] = {
    RN_OPTION(FLAG, "--list", NULL, "list only, no plots"),
    RN_OPTION(FLAG, "--csv", NULL,
              "the points of the scalars, one per line: run,tag,step,time,value"),
    RN_OPTION(TEXT, "--tag", "TEXT", "only tags that contain TEXT"),
    RN_OPTION(NUMBER, "--width", "N", "columns of a plot (default: as wide as the terminal)",
              .least = 10, .most = MAX_COLUMNS),
    RN_OPTION(NUMBER, "--height", "N", "height of a plot in rows (default 8)", .least = 2,
              .most = MAX_ROWS),
    {0},
};

const rn_cli_command_t rn_cli_events_command = {
    .name = "events",
    .summary = "list a training log, and plot its curves",
    .about =
        "Lists the content of the event files in FOLDER and its subfolders, and plots the scalars.",
    .words = "FOLDER",
    .word_kind = RN_CLI_FOLDER,
    .run = events,
    .options = options,
    .examples =
        "runnel events build/train                                # after make train\n"
        "runnel events build/train --tag loss --height 12\n"
        "runnel events build/train --csv > train.csv",
};
