// Runs shape functions on the cases in standard input. Lines:
//
//   op NAME                           begins a case
//   attr NAME KIND [VALUE...]         KIND is i b f s type shape li lt ls lshape; a shape is "*",
//                                     "2,?,3" or "[]"
//   in TYPE SHAPE [const VALUE...]    an input, optionally with its value
//   run                               prints "ok SHAPE SHAPE …" or "err MESSAGE"
#include <stdio.h>

#include "framework/shape_fn.h"

enum { MAX_INPUTS = 32, MAX_OUTPUTS = 64, MAX_ATTRS = 32, MAX_WORDS = 64 };

typedef struct rn_case_t {
  rn_arena_t arena;
  const rn_op_def_t* op;
  rn_attr_value_t attrs[MAX_ATTRS];
  int input_count;
  rn_shape_t shapes[MAX_INPUTS];
  rn_dtype_t types[MAX_INPUTS];
  const rn_tensor_t* values[MAX_INPUTS];
  rn_tensor_t tensors[MAX_INPUTS];
  rn_partial_t partials[MAX_INPUTS];
  rn_handle_data_t handles[MAX_INPUTS];
} rn_case_t;

static void* take(rn_case_t* c, size_t size) {
  void* memory = NULL;
  rn_status_free(rn_arena_alloc(&c->arena, size, &memory));
  if (!memory) abort();
  return memory;
}

static rn_shape_t parse_shape(rn_case_t* c, const char* text) {
  if (!strcmp(text, "*")) return RN_SHAPE_UNKNOWN;
  int64_t* dims = take(c, strlen(text) * sizeof *dims + 8);
  int rank = 0;
  for (const char* p = text; *p && strcmp(text, "[]"); p += strcspn(p, ","), p += *p == ',') {
    dims[rank++] = *p == '?' ? RN_UNKNOWN : atoll(p);
  }
  return (rn_shape_t){rank, dims};
}

static void begin(rn_case_t* c, const char* name) {
  rn_arena_clear(&c->arena);
  c->input_count = 0;
  c->op = rn_op_find(rn_str(name));
  for (int i = 0; c->op && i < c->op->attr_count; i++) c->attrs[i] = c->op->attrs[i].default_value;
}

static void set_attr(rn_case_t* c, char** words, int count) {
  int at = c->op ? rn_op_attr_index(c->op, rn_str(words[1])) : -1;
  if (at < 0) return;
  const char* kind = words[2];
  int n = count - 3;
  rn_attr_value_t v = {.kind = c->op->attrs[at].kind, .is_list = kind[0] == 'l', .count = n};
  if (!strcmp(kind, "i")) v.i = atoll(words[3]);
  if (!strcmp(kind, "b")) v.b = !strcmp(words[3], "True");
  if (!strcmp(kind, "f")) v.f = (float)atof(words[3]);
  if (!strcmp(kind, "s")) {
    char* s = take(c, n ? strlen(words[3]) + 1 : 1);
    if (n) strcpy(s, words[3]);
    v.s = rn_str(s);
  }
  if (!strcmp(kind, "type")) v.type = rn_dtype_parse(rn_str(words[3]));
  if (!strcmp(kind, "shape")) v.shape = parse_shape(c, words[3]);
  if (!strcmp(kind, "li")) {
    int64_t* items = take(c, (size_t)n * sizeof *items + 1);
    for (int i = 0; i < n; i++) items[i] = atoll(words[3 + i]);
    v.list_i = items;
  }
  if (!strcmp(kind, "lt")) {
    rn_dtype_t* items = take(c, (size_t)n * sizeof *items + 1);
    for (int i = 0; i < n; i++) items[i] = rn_dtype_parse(rn_str(words[3 + i]));
    v.list_type = items;
  }
  if (!strcmp(kind, "lf")) {
    float* items = take(c, (size_t)n * sizeof *items + 1);
    for (int i = 0; i < n; i++) items[i] = (float)atof(words[3 + i]);
    v.list_f = items;
  }
  if (!strcmp(kind, "lshape")) {
    rn_shape_t* items = take(c, (size_t)n * sizeof *items + 1);
    for (int i = 0; i < n; i++) items[i] = parse_shape(c, words[3 + i]);
    v.list_shape = items;
  }
  c->attrs[at] = v;
}

static void add_input(rn_case_t* c, char** words, int count) {
  int i = c->input_count++, n = count - 4;
  c->types[i] = rn_dtype_parse(rn_str(words[1]));
  c->shapes[i] = parse_shape(c, words[2]);
  c->values[i] = NULL;
  c->partials[i] = (rn_partial_t){0};
  c->handles[i] = (rn_handle_data_t){0};
  int64_t elements;
  bool known = rn_shape_is_full(c->shapes[i]) && rn_shape_count(c->shapes[i], &elements);
  if (!known || n != elements) return;
  if (rn_dtype_size(c->types[i]) > 8) return;
  rn_tensor_t* tensor = &c->tensors[i];
  if (!rn_ok(rn_tensor_init(tensor, c->types[i], c->shapes[i]))) abort();
  tensor->data = take(c, (size_t)n * 8 + 8);
  int64_t* partial = take(c, (size_t)n * sizeof *partial + 8);
  for (int j = 0; j < n; j++) {
    partial[j] = atoll(words[4 + j]);
    if (c->types[i] == RN_INT32) ((int32_t*)tensor->data)[j] = (int32_t)partial[j];
    if (c->types[i] == RN_INT64) ((int64_t*)tensor->data)[j] = partial[j];
    if (c->types[i] == RN_FLOAT) ((float*)tensor->data)[j] = (float)atof(words[4 + j]);
  }
  c->values[i] = tensor;
  bool is_int = c->types[i] == RN_INT32 || c->types[i] == RN_INT64;
  if (is_int && c->shapes[i].rank <= 1) {
    c->partials[i] = (rn_partial_t){true, c->shapes[i].rank == 0, n, partial};
  }
}

// How many outputs the definition and the attributes make.
static int count_outputs(const rn_case_t* c) {
  int count = 0;
  for (int i = 0; i < c->op->output_count; i++) {
    const rn_arg_def_t* arg = &c->op->outputs[i];
    if (arg->number_attr >= 0) {
      count += (int)c->attrs[arg->number_attr].i;
    } else {
      count += arg->type_list_attr >= 0 ? c->attrs[arg->type_list_attr].count : 1;
    }
  }
  return count;
}

static void infer(rn_case_t* c, rn_strbuf_t* out) {
  rn_shape_t outputs[MAX_OUTPUTS];
  rn_handle_data_t handles[MAX_OUTPUTS] = {0};
  int count = c->op ? count_outputs(c) : 0;
  if (!c->op || count > MAX_OUTPUTS) {
    rn_strbuf_append(out, RN_STR("err no such op"));
    return;
  }
  for (int i = 0; i < count; i++) outputs[i] = RN_SHAPE_UNKNOWN;
  rn_shape_ctx_t ctx = {.op = c->op, .attrs = c->attrs, .arena = &c->arena, .graph_version = 2474};
  ctx.input_count = c->input_count;
  ctx.inputs = c->shapes;
  ctx.input_types = c->types;
  ctx.input_values = c->values;
  ctx.input_partials = c->partials;
  ctx.input_handles = c->handles;
  ctx.output_count = count;
  ctx.outputs = outputs;
  ctx.output_handles = handles;
  rn_status_t status = rn_shape_infer(&ctx);
  rn_strbuf_append(out, rn_ok(status) ? RN_STR("ok") : RN_STR("err "));
  for (const char* p = rn_status_message(status); *p; p++) {
    rn_strbuf_append(out, *p == '\n' ? RN_STR("\\n") : rn_str_n(p, 1));
  }
  for (int i = 0; rn_ok(status) && i < count; i++) {
    rn_strbuf_append(out, RN_STR(" "));
    rn_shape_print(out, outputs[i]);
  }
  rn_status_free(status);
}

static bool run(rn_case_t* c, const char* expected) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  infer(c, &text);
  bool same = !expected || !strcmp(text.data, expected);
  if (!expected) printf("%s\n", text.data);
  if (!same) {
    printf("%s\n  expected %s\n  got      %s\n", c->op ? c->op->name : "?", expected, text.data);
  }
  rn_strbuf_clear(&text);
  return same;
}

int main(void) {
  static rn_case_t c;
  rn_arena_init(&c.arena, rn_allocator_default());
  char line[4096];
  int failures = 0, cases = 0;
  while (fgets(line, sizeof line, stdin)) {
    char *words[MAX_WORDS], *save = NULL;
    int count = 0;
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "expect ", 7)) {
      cases++;
      failures += !run(&c, line + 7);
      continue;
    }
    for (char* word = strtok_r(line, " \n", &save); word && count < MAX_WORDS;
         word = strtok_r(NULL, " \n", &save)) {
      words[count++] = word;
    }
    if (!count) continue;
    if (!strcmp(words[0], "op")) begin(&c, words[1]);
    if (!strcmp(words[0], "attr")) set_attr(&c, words, count);
    if (!strcmp(words[0], "in") && c.input_count < MAX_INPUTS) add_input(&c, words, count);
    if (!strcmp(words[0], "run")) run(&c, NULL);
    fflush(stdout);
  }
  rn_arena_clear(&c.arena);
  if (cases) printf("%d cases, %d failed\n", cases, failures);
  return failures ? 1 : 0;
}
