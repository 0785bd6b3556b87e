// Functions: TF_Function handles, made from graphs or messages, and the functions of a graph.
#include "capi/function.h"

#include "proto/function.pb.h"
#include "tensorflow/c/c_api_experimental.h"
#include "wire/text.h"

rn_status_t rn_capi_function_wrap(rn_function_t* function, TF_Function** out) {
  *out = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), out);
  if (!rn_ok(status)) {
    rn_function_release(function);
    return status;
  }
  (*out)->function = function;
  return RN_OK;
}

void TF_DeleteFunction(TF_Function* func) {
  if (!func) return;
  rn_function_release(func->function);
  RN_FREE(rn_capi_allocator(), func);
}

// Converts the client's names to strings; NULL stays NULL.
static rn_status_t view_names(rn_arena_t* arena, const char* const* names, int count,
                              const rn_str_t** out) {
  *out = NULL;
  if (!names) return RN_OK;
  rn_str_t* views = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)(count > 0 ? count : 0), &views));
  for (int i = 0; i < count; ++i) views[i] = rn_str(names[i]);
  *out = views;
  return RN_OK;
}

static rn_status_t check_arrays(const rn_function_spec_t* spec) {
  if (!spec->graph) return rn_capi_null("TF_GraphToFunction", "fn_body");
  if (!spec->name.data) return rn_capi_null("TF_GraphToFunction", "fn_name");
  if (spec->node_count > 0 && !spec->nodes) return rn_capi_null("TF_GraphToFunction", "opers");
  if (spec->input_count > 0 && !spec->inputs) return rn_capi_null("TF_GraphToFunction", "inputs");
  if (spec->output_count > 0 && !spec->outputs)
    return rn_capi_null("TF_GraphToFunction", "outputs");
  if (spec->control_count > 0 && !spec->controls)
    return rn_capi_null("TF_GraphToFunction", "control_outputs");
  return RN_OK;
}

TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names, int ncontrol_outputs,
    const TF_Operation* const* control_outputs, const char* const* control_output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status) {
  (void)opts;
  rn_function_spec_t spec = {
      .graph = rn_capi_graph((TF_Graph*)(uintptr_t)fn_body),
      .name = rn_str(fn_name),
      .append_hash = append_hash_to_fn_name != 0,
      .nodes = (rn_node_t* const*)(uintptr_t)opers,
      .node_count = num_opers,
      .inputs = (const rn_edge_t*)inputs,
      .input_count = ninputs,
      .outputs = (const rn_edge_t*)outputs,
      .output_count = noutputs,
      .controls = (rn_node_t* const*)(uintptr_t)control_outputs,
      .control_count = ncontrol_outputs,
      .description = rn_str(description),
  };
  TF_Function* handle = NULL;
  rn_function_t* function = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = check_arrays(&spec);
  if (rn_ok(outcome)) outcome = view_names(&arena, output_names, noutputs, &spec.output_names);
  if (rn_ok(outcome))
    outcome = view_names(&arena, control_output_names, ncontrol_outputs, &spec.control_names);
  if (rn_ok(outcome)) outcome = rn_function_create(&spec, &function);
  if (rn_ok(outcome)) outcome = rn_capi_function_wrap(function, &handle);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
  return handle;
}

TF_Function* TF_GraphToFunction(const TF_Graph* fn_body, const char* fn_name,
                                unsigned char append_hash_to_fn_name, int num_opers,
                                const TF_Operation* const* opers, int ninputs,
                                const TF_Output* inputs, int noutputs, const TF_Output* outputs,
                                const char* const* output_names, const TF_FunctionOptions* opts,
                                const char* description, TF_Status* status) {
  return TF_GraphToFunctionWithControlOutputs(
      fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs, inputs, noutputs,
      outputs, output_names, 0, NULL, NULL, opts, description, status);
}

const char* TF_FunctionName(TF_Function* func) { return func ? func->function->name.data : NULL; }

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad,
                          TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (!func)
    outcome = rn_invalid_argument("'func' argument to TF_GraphCopyFunction cannot be null");
  else if (!g)
    outcome = RN_CAPI_NULL("g");
  else
    outcome = rn_graph_add_function(rn_capi_graph(g), func->function, grad ? grad->function : NULL);
  rn_capi_set(status, outcome);
}

void TF_GraphRemoveFunction(TF_Graph* g, const char* func_name, TF_Status* status) {
  rn_status_t outcome = !g ? RN_CAPI_NULL("g")
                        : !func_name
                            ? RN_CAPI_NULL("func_name")
                            : rn_graph_remove_function(rn_capi_graph(g), rn_str(func_name));
  rn_capi_set(status, outcome);
}

int TF_GraphNumFunctions(TF_Graph* g) {
  return g ? (int)rn_graph_function_count(rn_capi_graph(g)) : 0;
}

int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status) {
  RN_CAPI_CLEAR(funcs, max_func);
  rn_status_t outcome = !g                       ? RN_CAPI_NULL("g")
                        : max_func > 0 && !funcs ? RN_CAPI_NULL("funcs")
                                                 : RN_OK;
  int count = 0;
  while (rn_ok(outcome) && count < max_func) {
    rn_function_t* function = rn_graph_function_at(rn_capi_graph(g), (size_t)count);
    if (!function) break;
    outcome = rn_capi_function_wrap(function, &funcs[count]);
    count += rn_ok(outcome);
  }
  if (!rn_ok(outcome)) {
    while (count > 0) TF_DeleteFunction(funcs[--count]);
  }
  rn_capi_set(status, outcome);
  return count;
}

void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status) {
  rn_status_t outcome = func ? rn_capi_buffer_check(output_func_def) : RN_CAPI_NULL("func");
  if (rn_ok(outcome)) {
    rn_strbuf_t bytes;
    rn_strbuf_init(&bytes, rn_capi_allocator());
    rn_strbuf_append(&bytes, func->function->bytes);
    outcome = rn_capi_buffer_take(&bytes, output_func_def);
  }
  rn_capi_set(status, outcome);
}

TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status) {
  TF_Function* handle = NULL;
  rn_function_t* function = NULL;
  rn_status_t outcome = RN_OK;
  rn_arena_t arena;
  rn_pb_FunctionDef_t* def = NULL;
  rn_arena_init(&arena, rn_capi_allocator());
  if (proto || !proto_len)
    outcome = RN_PB_DECODE(FunctionDef, rn_str_n(proto, proto_len), NULL, &arena, &def);
  bool is_bad = !rn_ok(outcome) && rn_status_code(outcome) != RN_CODE_RESOURCE_EXHAUSTED;
  if (is_bad || (!proto && proto_len)) {
    rn_status_free(outcome);
    outcome = rn_invalid_argument("Invalid FunctionDef given to TF_FunctionImportFunctionDef");
  }
  rn_arena_clear(&arena);
  if (rn_ok(outcome))
    outcome = rn_function_parse(rn_capi_allocator(), rn_str_n(proto, proto_len), &function);
  if (rn_ok(outcome)) outcome = rn_capi_function_wrap(function, &handle);
  rn_capi_set(status, outcome);
  return handle;
}

// The message of |function|, decoded; it points into the function.
static rn_status_t decode(const rn_function_t* function, rn_arena_t* arena,
                          rn_pb_FunctionDef_t** out) {
  return RN_PB_DECODE(FunctionDef, function->bytes, NULL, arena, out);
}

static rn_status_t with_attr(const rn_function_t* function, rn_str_t name, rn_str_t bytes,
                             rn_arena_t* arena, rn_function_t** out) {
  rn_pb_FunctionDef_t* def = NULL;
  rn_pb_AttrValue_t* value = NULL;
  rn_status_t status = RN_PB_DECODE(AttrValue, bytes, NULL, arena, &value);
  if (!rn_ok(status)) {
    if (rn_status_code(status) != RN_CODE_INVALID_ARGUMENT) return status;
    rn_status_free(status);
    return rn_invalid_argument(
        "Unparseable AttrValue proto passed to TF_FunctionSetAttrValueProto");
  }
  RN_RETURN_IF_ERROR(decode(function, arena, &def));
  rn_pb_FunctionDef_AttrEntry_t* grown = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)def->attr.count + 1, &grown));
  uint32_t count = 0;
  for (uint32_t i = 0; i < def->attr.count; ++i)
    if (!rn_str_eq(def->attr.items[i].key, name)) grown[count++] = def->attr.items[i];
  grown[count++] = (rn_pb_FunctionDef_AttrEntry_t){.key = name, .value = value};
  def->attr.items = grown;
  def->attr.count = count;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  status = rn_capi_encode(&rn_pb_FunctionDef_desc, def, &buf);
  if (rn_ok(status)) status = rn_function_parse(rn_capi_allocator(), rn_strbuf_view(&buf), out);
  rn_strbuf_clear(&buf);
  return status;
}

// Functions are immutable: the handle gets a new one, and graphs with the old one keep it.
void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name, const void* proto,
                                  size_t proto_len, TF_Status* status) {
  rn_status_t outcome = !func                 ? RN_CAPI_NULL("func")
                        : !attr_name          ? RN_CAPI_NULL("attr_name")
                        : !proto && proto_len ? RN_CAPI_NULL("proto")
                                              : RN_OK;
  if (rn_ok(outcome)) {
    rn_arena_t arena;
    rn_arena_init(&arena, rn_capi_allocator());
    rn_function_t* changed = NULL;
    outcome =
        with_attr(func->function, rn_str(attr_name), rn_str_n(proto, proto_len), &arena, &changed);
    if (rn_ok(outcome)) {
      rn_function_release(func->function);
      func->function = changed;
    }
    rn_arena_clear(&arena);
  }
  rn_capi_set(status, outcome);
}

static rn_status_t get_attr(const rn_function_t* function, rn_str_t name, rn_arena_t* arena,
                            TF_Buffer* out) {
  rn_pb_FunctionDef_t* def = NULL;
  RN_RETURN_IF_ERROR(decode(function, arena, &def));
  for (uint32_t i = 0; i < def->attr.count; ++i) {
    if (!rn_str_eq(def->attr.items[i].key, name)) continue;
    static const rn_pb_AttrValue_t none = {0};
    const rn_pb_AttrValue_t* value = def->attr.items[i].value;
    rn_strbuf_t buf;
    rn_strbuf_init(&buf, rn_capi_allocator());
    rn_status_t status = rn_capi_encode(&rn_pb_AttrValue_desc, value ? value : &none, &buf);
    if (rn_ok(status)) return rn_capi_buffer_take(&buf, out);
    rn_strbuf_clear(&buf);
    return status;
  }
  return rn_invalid_argument("Function '%.*s' has no attr named '%.*s'.",
                             RN_STR_ARGS(function->name), RN_STR_ARGS(name));
}

void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                  TF_Buffer* output_attr_value, TF_Status* status) {
  rn_status_t outcome = !func        ? RN_CAPI_NULL("func")
                        : !attr_name ? RN_CAPI_NULL("attr_name")
                                     : rn_capi_buffer_check(output_attr_value);
  if (rn_ok(outcome)) {
    rn_arena_t arena;
    rn_arena_init(&arena, rn_capi_allocator());
    outcome = get_attr(func->function, rn_str(attr_name), &arena, output_attr_value);
    rn_arena_clear(&arena);
  }
  rn_capi_set(status, outcome);
}

char* TF_FunctionDebugString(TF_Function* func, size_t* len) {
  if (len) *len = 0;
  if (!func) return NULL;
  rn_arena_t arena;
  rn_strbuf_t text;
  rn_pb_FunctionDef_t* def = NULL;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_status_t status = decode(func->function, &arena, &def);
  if (rn_ok(status)) status = rn_pb_print(&rn_pb_FunctionDef_desc, def, &text);
  char* copy = rn_ok(status) ? malloc(text.size + 1) : NULL;  // the client calls free
  if (copy) {
    memcpy(copy, rn_strbuf_view(&text).data, text.size);
    copy[text.size] = '\0';
    if (len) *len = text.size;
  }
  rn_status_free(status);
  rn_strbuf_clear(&text);
  rn_arena_clear(&arena);
  return copy;
}
