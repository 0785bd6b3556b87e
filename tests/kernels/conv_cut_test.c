// Checks that oneDNN has an optimized implementation for every piece of the convolutions of common
// networks, and never uses its reference loops. Nothing is computed. How a convolution is split
// does not depend on the number of threads; the test still checks 1 to 16 threads, so that the
// constants of conv_cut.c may change.
#include "kernels/cpu/nn/conv_cut.h"
#include "../support/status.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "../support/status.h"
#include "kernels/cpu/nn/window.h"

typedef struct shape_t {
  char text[128];
  int64_t rows, columns, in, out, filter_rows, filter_columns, stride, dilation, groups;
  bool is_same;
} shape_t;

static bool read_shape(FILE* file, shape_t* out) {
  char padding[8];
  long long n[9];
  while (fgets(out->text, sizeof out->text, file)) {
    out->text[strcspn(out->text, "\n")] = '\0';
    if (sscanf(out->text, "%*s %lld %lld %lld %lld %lld %lld %lld %7s %lld %lld", &n[0], &n[1],
               &n[2], &n[3], &n[4], &n[5], &n[6], padding, &n[7], &n[8]) != 10)
      continue;
    out->rows = n[0], out->columns = n[1], out->in = n[2], out->out = n[3];
    out->filter_rows = n[4], out->filter_columns = n[5], out->stride = n[6];
    out->dilation = n[7], out->groups = n[8];
    out->is_same = strcmp(padding, "SAME") == 0;
    return true;
  }
  return false;
}

static rn_conv_t conv_of(const shape_t* shape, rn_conv_kind_t kind, int64_t batch) {
  rn_conv_t conv = {.kind = kind,
                    .batch = batch,
                    .in_depth = shape->in,
                    .out_depth = shape->out,
                    .groups = shape->groups};
  rn_window_attrs_t attrs = {.padding = shape->is_same ? RN_PADDING_SAME : RN_PADDING_VALID};
  for (int i = 0; i < 4; ++i) {
    attrs.strides[i] = i == 1 || i == 2 ? shape->stride : 1;
    attrs.dilations[i] = i == 1 || i == 2 ? shape->dilation : 1;
  }
  rn_status_t status = rn_window_axis(&attrs, 1, shape->rows, shape->filter_rows, &conv.rows);
  OK(status);
  status = rn_window_axis(&attrs, 2, shape->columns, shape->filter_columns, &conv.columns);
  OK(status);
  return conv;
}

typedef struct asked_t {
  rn_conv_cut_t cut;
  rn_conv_cache_t cache;
  const rn_dnnl_t* dnnl;
  int64_t pieces;
} asked_t;

// Counts the pieces and looks at their names.
static void check(asked_t* asked, const shape_t* shape, const rn_conv_t* conv, const char* how,
                  rn_status_t status, bool is_possible) {
  cr_assert(rn_ok(status), "%s: %s", shape->text, rn_status_message(status));
  cr_expect(is_possible, "%s, kind %d, batch %d, %s: no piece but by reference loops", shape->text,
            conv->kind, (int)conv->batch, how);
  for (int32_t p = 0; p < asked->cut.count; ++p) {
    const char* name = asked->cut.pieces[p].plan->name;
    cr_expect(name && !strstr(name, "ref") && !strstr(name, ":any"), "%s, %s: %s", shape->text, how,
              name ? name : "nothing");
    ++asked->pieces;
  }
  rn_conv_cut_drop(&asked->cut);
}

static void ask(asked_t* asked, const shape_t* shape, rn_conv_t conv, int64_t then) {
  bool is_possible = false;
  char how[48];
  conv.then = then;
  rn_status_t status = rn_conv_cut(&asked->cut, asked->dnnl, &conv, &is_possible);
  if (then && rn_ok(status) && !is_possible) {  // then steps come after it, as in conv_then.c
    rn_conv_cut_drop(&asked->cut);
    return;
  }
  snprintf(how, sizeof how, "as cut, steps %llx", (unsigned long long)then);
  check(asked, shape, &conv, how, status, is_possible);
  for (int64_t pieces = 1; pieces <= 16 && !then; pieces *= 2) {
    if (conv.kind == RN_CONV_FORWARD && conv.batch * pieces <= RN_CONV_MOST_CUTS &&
        conv.batch < 8 && conv.rows.out / pieces > conv.rows.filter * conv.rows.dilation) {
      status = rn_conv_cut_rows(&asked->cut, asked->dnnl, &conv, pieces, &is_possible);
      snprintf(how, sizeof how, "rows in %d", (int)pieces);
      check(asked, shape, &conv, how, status, is_possible);
    }
    if (conv.batch >= pieces) {
      int64_t images = (conv.batch + pieces - 1) / pieces;
      status = rn_conv_cut_images(&asked->cut, asked->dnnl, &conv, images, &is_possible);
      snprintf(how, sizeof how, "images in %d", (int)pieces);
      check(asked, shape, &conv, how, status, is_possible);
    }
  }
}

// What models have behind a convolution: a bias, a batch normalisation, a shortcut.
#define STEP(code, form, i) ((int64_t)((code) | (form) << 4) << (8 * (i)))
static const int64_t steps[] = {
    0,
    STEP(RN_CONV_ADD, RN_CONV_CHANNEL, 0),
    STEP(RN_CONV_MUL, RN_CONV_CHANNEL, 0) | STEP(RN_CONV_ADD, RN_CONV_CHANNEL, 1),
    STEP(RN_CONV_ADD, RN_CONV_CHANNEL, 0) | STEP(RN_CONV_ADD, RN_CONV_FULL, 1),
};

static void ask_all(rn_conv_kind_t kind) {
  static const int64_t batches[] = {1, 3, 16};
  asked_t asked = {0};
  rn_status_t status = rn_dnnl(&asked.dnnl);
  if (!rn_ok(status)) {
    rn_status_free(status);
    cr_skip_test("oneDNN is not there");
  }
  FILE* file = fopen(RN_CONV_SHAPES, "r");
  cr_assert(file);
  shape_t shape;
  int64_t shapes = 0;
  int threads = rn_dnnl_enter(asked.dnnl);
  for (; read_shape(file, &shape); ++shapes) {
    rn_conv_cache_init(&asked.cache);  // of one kernel each
    asked.cut.cache = &asked.cache;
    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; ++b)
      for (size_t s = 0; s < (kind == RN_CONV_FORWARD ? sizeof steps / sizeof steps[0] : 1); ++s)
        ask(&asked, &shape, conv_of(&shape, kind, batches[b]), steps[s]);
    rn_conv_cache_clear(&asked.cache);
  }
  rn_dnnl_leave(asked.dnnl, threads);
  fclose(file);
  cr_assert_gt(shapes, 100);
  cr_log_info("%lld shapes, %lld pieces", (long long)shapes, (long long)asked.pieces);
}

Test(conv_cut, forward) { ask_all(RN_CONV_FORWARD); }
Test(conv_cut, input) { ask_all(RN_CONV_INPUT); }
Test(conv_cut, filter) { ask_all(RN_CONV_FILTER); }
