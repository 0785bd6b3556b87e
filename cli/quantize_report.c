// What `runnel quantize` prints: how the 8-bit graph differs from the float one. See quantize.h.
//
// Both graphs run on the data. The numbers of a layer compare its results in the two graphs, so
// they contain what the layers before it lost.
#include <math.h>
#include <stdio.h>

#include "cli/json.h"
#include "cli/progress.h"
#include "cli/quantize.h"

#define TURNS 20             // of --compare, at most
#define TURNS_NS 3000000000  // and for about as long as this

// How the results of two graphs differ.
typedef struct cli_quant_gap_t {
  double signal, noise, worst;
  int64_t rows, same;         // rows whose largest number is at the same place
  int64_t labelled, good[2];  // rows with a label, and those where it is the largest: float, 8-bit
  bool has_rows;
} cli_quant_gap_t;

typedef struct cli_quant_report_t {
  rn_cli_quant_t* q;
  size_t layer_count;     // with 8 bits
  rn_edge_t* fetches[2];  // of the layers, then of the outputs
  rn_tensor_t* results[2];
  cli_quant_gap_t* gaps;  // one per output
  double seconds[2];      // of one step; 0 if not measured
} cli_quant_report_t;

static double decibels(double signal, double noise) {
  return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

// "31.2", or "exact".
typedef struct cli_quant_text_t {
  char text[32];
} cli_quant_text_t;
static cli_quant_text_t decibel_text(double signal, double noise) {
  cli_quant_text_t out;
  if (noise > 0)
    snprintf(out.text, sizeof out.text, "%.1f", decibels(signal, noise));
  else
    snprintf(out.text, sizeof out.text, "exact");
  return out;
}

static void take_difference(const rn_tensor_t* a, const rn_tensor_t* b, double* signal,
                            double* noise, double* worst) {
  if (a->dtype != RN_FLOAT || a->count != b->count) return;
  const float *x = a->data, *y = b->data;
  for (int64_t i = 0; i < a->count; ++i) {
    double gap = (double)x[i] - y[i];
    *signal += (double)x[i] * x[i];
    *noise += gap * gap;
    *worst = fmax(*worst, fabs(gap));
  }
}

static int64_t top_of(const float* row, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i)
    if (row[i] > row[best]) best = i;
  return best;
}

static void take_rows(const rn_cli_quant_t* q, int64_t begin, int64_t examples,
                      const rn_tensor_t* a, const rn_tensor_t* b, cli_quant_gap_t* gap) {
  if (a->dtype != RN_FLOAT || a->rank < 2 || a->count == 0 || a->count != b->count) return;
  int64_t width = rn_tensor_dim(a, a->rank - 1), rows = a->count / width;
  if (width < 2) return;
  gap->has_rows = true;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t tops[2] = {top_of(RN_DATA(a, float) + r * width, width),
                       top_of(RN_DATA(b, float) + r * width, width)};
    gap->rows += 1;
    gap->same += tops[0] == tops[1];
    if (!rn_tensor_is_set(&q->data.labels) || rows != examples) continue;
    int64_t label = RN_DATA(&q->data.labels, int64_t)[begin + r];
    gap->labelled += 1;
    gap->good[0] += tops[0] == label;
    gap->good[1] += tops[1] == label;
  }
}

static rn_status_t compare_batch(cli_quant_report_t* r, int64_t begin, int64_t count) {
  rn_cli_quant_t* q = r->q;
  int32_t fetch_count = (int32_t)r->layer_count + q->output_count;
  const rn_cli_quant_net_t* nets[2] = {&q->plain, &q->small};
  rn_status_t status = RN_OK;
  for (int n = 0; n < 2 && rn_ok(status); ++n)
    status = rn_cli_quant_step(q, nets[n], r->fetches[n], fetch_count, begin, count, r->results[n]);
  size_t at = 0;
  for (size_t i = 0; rn_ok(status) && i < q->layers.count; ++i) {
    rn_cli_quant_layer_t* layer = &q->layers.items[i];
    if (layer->source < 0) continue;
    take_difference(&r->results[0][at], &r->results[1][at], &layer->signal, &layer->noise,
                    &layer->worst);
    ++at;
  }
  for (int32_t i = 0; rn_ok(status) && i < q->output_count; ++i, ++at) {
    cli_quant_gap_t* gap = &r->gaps[i];
    take_difference(&r->results[0][at], &r->results[1][at], &gap->signal, &gap->noise, &gap->worst);
    take_rows(q, begin, count, &r->results[0][at], &r->results[1][at], gap);
  }
  for (int n = 0; n < 2; ++n)
    for (int32_t i = 0; i < fetch_count; ++i) rn_tensor_clear(&r->results[n][i]);
  return status;
}

static rn_status_t compare_all(cli_quant_report_t* r) {
  const rn_cli_quant_data_t* data = &r->q->data;
  rn_cli_progress_t progress = rn_cli_progress(r->q->cli, "examples, compared", data->count);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < data->count; i += data->batch) {
    status = compare_batch(r, i, data->count - i < data->batch ? data->count - i : data->batch);
    rn_cli_progress_set(&progress, i);
  }
  rn_cli_progress_end(&progress);
  return status;
}

// The best time of a step of each graph, by turns.
static rn_status_t measure(cli_quant_report_t* r) {
  rn_cli_quant_t* q = r->q;
  const rn_env_t* env = q->cli->env;
  const rn_cli_quant_net_t* nets[2] = {&q->plain, &q->small};
  int64_t start = env->now_ns(env->self);
  for (int turn = 0; turn <= TURNS; ++turn)
    for (int n = 0; n < 2; ++n) {
      int64_t begin = env->now_ns(env->self);
      if (turn > 2 && begin - start > TURNS_NS) return RN_OK;
      RN_RETURN_IF_ERROR(rn_cli_quant_step(q, nets[n], nets[n]->outputs, q->output_count, 0,
                                           q->data.batch, r->results[n]));
      double seconds = (double)(env->now_ns(env->self) - begin) * 1e-9;
      for (int32_t i = 0; i < q->output_count; ++i) rn_tensor_clear(&r->results[n][i]);
      // The first turn plans.
      if (turn == 1 || (turn && seconds < r->seconds[n])) r->seconds[n] = seconds;
    }
  return RN_OK;
}

static rn_status_t prepare(cli_quant_report_t* r) {
  rn_cli_quant_t* q = r->q;
  for (size_t i = 0; i < q->layers.count; ++i) r->layer_count += q->layers.items[i].source >= 0;
  size_t count = r->layer_count + (size_t)q->output_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)q->output_count, &r->gaps));
  for (int n = 0; n < 2; ++n) {
    const rn_cli_quant_net_t* net = n ? &q->small : &q->plain;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, count, &r->fetches[n]));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, count, &r->results[n]));
    size_t at = 0;
    for (size_t i = 0; i < q->layers.count; ++i) {
      const rn_cli_quant_layer_t* layer = &q->layers.items[i];
      if (layer->source >= 0)
        r->fetches[n][at++] = (rn_edge_t){rn_graph_find(net->graph, layer->node->name), 0};
    }
    for (int32_t i = 0; i < q->output_count; ++i) r->fetches[n][at++] = net->outputs[i];
  }
  return RN_OK;
}

// The length of the scope that all layers are in, with its '/'.
static size_t common_scope(const rn_cli_quant_t* q) {
  rn_str_t first = q->layers.items[0].node->name;
  size_t size = first.size;
  for (size_t i = 0; i < q->layers.count; ++i) {
    rn_str_t name = q->layers.items[i].node->name;
    size_t same = 0;
    while (same < size && same < name.size && name.data[same] == first.data[same]) ++same;
    size = same;
  }
  while (size && first.data[size - 1] != '/') --size;
  return size;
}

static rn_str_t short_name(const rn_cli_quant_layer_t* layer, size_t scope) {
  return rn_str_n(layer->node->name.data + scope, layer->node->name.size - scope);
}

static void print_layers(const cli_quant_report_t* r) {
  const rn_cli_quant_t* q = r->q;
  size_t scope = common_scope(q);
  int width = 5;
  for (size_t i = 0; i < q->layers.count; ++i)
    if ((int)short_name(&q->layers.items[i], scope).size > width)
      width = (int)short_name(&q->layers.items[i], scope).size;
  if (scope) printf("layers of %.*s\n", (int)scope, q->layers.items[0].node->name.data);
  printf("%-*s  %-21s  %21s  %8s  %9s\n", width, "layer", "op", "range of its input", "SQNR dB",
         "max error");
  for (size_t i = 0; i < q->layers.count; ++i) {
    const rn_cli_quant_layer_t* layer = &q->layers.items[i];
    if (layer->source < 0) continue;
    const rn_cli_quant_source_t* source = &q->sources.items[layer->source];
    char range[48];
    snprintf(range, sizeof range, "[%.4g, %.4g]", source->low, source->high);
    printf("%-*.*s  %-21s  %21s  %8s  %9.3g\n", width, RN_STR_ARGS(short_name(layer, scope)),
           layer->node->op->name, range, decibel_text(layer->signal, layer->noise).text,
           layer->worst);
  }
  printf("%zu of %zu layers have 8 bits\n", r->layer_count, q->layers.count);
  for (size_t i = 0; i < q->layers.count; ++i) {
    const rn_cli_quant_layer_t* layer = &q->layers.items[i];
    if (layer->source < 0)
      printf("left in float: %.*s (%s): %s\n", RN_STR_ARGS(short_name(layer, scope)),
             layer->node->op->name, layer->reason);
  }
}

static void print_output(const rn_cli_quant_t* q, int32_t i, const cli_quant_gap_t* gap) {
  printf("output %.*s: SQNR %s dB, max error %.3g", RN_STR_ARGS(q->outputs[i].name),
         decibel_text(gap->signal, gap->noise).text, gap->worst);
  if (gap->has_rows)
    printf(", same top-1 in %lld of %lld (%.2f %%)", (long long)gap->same, (long long)gap->rows,
           100.0 * (double)gap->same / (double)gap->rows);
  printf("\n");
}

static void print_sides(const cli_quant_report_t* r) {
  const rn_cli_quant_t* q = r->q;
  printf("%-24s %12s %12s\n", "", "float", "8-bit");
  printf("%-24s %12.3f %12.3f   %.2f times as fast\n", "ms per step", r->seconds[0] * 1e3,
         r->seconds[1] * 1e3, r->seconds[0] / r->seconds[1]);
  printf("%-24s %12.1f %12.1f\n", "examples/s", (double)q->data.batch / r->seconds[0],
         (double)q->data.batch / r->seconds[1]);
  for (int32_t i = 0; i < q->output_count; ++i) {
    const cli_quant_gap_t* gap = &r->gaps[i];
    if (!gap->labelled) continue;
    double rows = (double)gap->labelled / 100;
    printf("top-1 %% of %-13.*s %12.2f %12.2f\n", RN_STR_ARGS(q->outputs[i].name),
           (double)gap->good[0] / rows, (double)gap->good[1] / rows);
  }
}

static json_t* json_finite(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t* json_layer(const rn_cli_quant_t* q, const rn_cli_quant_layer_t* layer) {
  json_t* row = json_pack("{s:o, s:s, s:b}", "name", rn_cli_json_str(layer->node->name), "op",
                          layer->node->op->name, "is_8bit", layer->source >= 0);
  if (layer->source < 0) {
    json_object_set_new(row, "reason", json_string(layer->reason));
    return row;
  }
  const rn_cli_quant_source_t* source = &q->sources.items[layer->source];
  json_object_set_new(row, "range", json_pack("[f, f]", source->low, source->high));
  json_object_set_new(row, "sqnr_db", json_finite(decibels(layer->signal, layer->noise)));
  json_object_set_new(row, "max_error", json_real(layer->worst));
  return row;
}

static json_t* json_output(const rn_cli_quant_t* q, int32_t i, const cli_quant_gap_t* gap) {
  json_t* row = json_pack("{s:o, s:o, s:f}", "name", rn_cli_json_str(q->outputs[i].name), "sqnr_db",
                          json_finite(decibels(gap->signal, gap->noise)), "max_error", gap->worst);
  if (gap->has_rows)
    json_object_set_new(row, "same_top1", json_real((double)gap->same / (double)gap->rows));
  if (gap->labelled)
    json_object_set_new(row, "top1",
                        json_pack("[f, f]", (double)gap->good[0] / (double)gap->labelled,
                                  (double)gap->good[1] / (double)gap->labelled));
  return row;
}

static rn_status_t print_json(const cli_quant_report_t* r) {
  const rn_cli_quant_t* q = r->q;
  json_t *layers = json_array(), *outputs = json_array();
  for (size_t i = 0; i < q->layers.count; ++i)
    json_array_append_new(layers, json_layer(q, &q->layers.items[i]));
  for (int32_t i = 0; i < q->output_count; ++i)
    json_array_append_new(outputs, json_output(q, i, &r->gaps[i]));
  json_t* root = json_pack("{s:o, s:o, s:I}", "layers", layers, "outputs", outputs, "examples",
                           (json_int_t)q->data.count);
  if (r->seconds[0] > 0)
    json_object_set_new(root, "ms", json_pack("[f, f]", r->seconds[0] * 1e3, r->seconds[1] * 1e3));
  return rn_cli_json_print(root);
}

rn_status_t rn_cli_quant_report(rn_cli_quant_t* q) {
  cli_quant_report_t r = {.q = q};
  RN_RETURN_IF_ERROR(prepare(&r));
  RN_RETURN_IF_ERROR(compare_all(&r));
  if (rn_cli_has(q->cli, "--compare")) RN_RETURN_IF_ERROR(measure(&r));
  if (rn_cli_has(q->cli, "--json")) return print_json(&r);
  print_layers(&r);
  for (int32_t i = 0; i < q->output_count; ++i) print_output(q, i, &r.gaps[i]);
  if (rn_cli_has(q->cli, "--compare")) print_sides(&r);
  return RN_OK;
}
