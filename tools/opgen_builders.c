// opgen: typed builders (runnel/ops.h) over the generic one of runnel/graph.h.
//
// rn_MatMul(scope, a, b, .transpose_b = true) is a macro over an inline function: the scope, the
// inputs and the required attributes are its parameters, the other attributes are fields of an
// options struct. The macro puts the last parameter into its variadic part, which is therefore
// never empty: ISO C11 requires that, and an initializer inside the braces.
#include <string.h>

#include "opgen.h"

static const char preamble[] =
    "// Typed builders of the library's ops. Made by tools/opgen.c from the .ops files.\n"
    "//\n"
    "//   rn_edge_t y = rn_MatMul(scope, a, b, .transpose_b = true, .name = \"y\");\n"
    "//\n"
    "// Attributes that inputs do not give and that have no default are parameters after the\n"
    "// inputs. The others are options: left out, they keep the op's default. An option whose\n"
    "// default is not zero is set with RN_SET(value), a list with RN_LIST(values, count), a "
    "shape\n"
    "// with RN_SHAPE(dimensions...) or RN_SET_SHAPE(dims, rank), where -1 is a dimension of any\n"
    "// size; strings and types are given as they are. A list of inputs is an array and its\n"
    "// length.\n"
    "//\n"
    "// In C++ the same calls work where the compiler takes such initialisers (g++, clang++, "
    "C++20),\n"
    "// with options in the order in which their struct declares them; or call rn_MatMul_(scope, "
    "a, b,\n"
    "// options) with a struct.\n"
    "#ifndef RUNNEL_OPS_H_\n"
    "#define RUNNEL_OPS_H_\n"
    "\n"
    "#include \"runnel/graph.h\"\n"
    "\n"
    "#ifdef __cplusplus\n"
    "#pragma GCC system_header  // no warnings about options that a call omits\n"
    "#endif\n"
    "\n"
    "// clang-format off\n"
    "#define RN_SET(...) {true, __VA_ARGS__}\n"
    "#define RN_LIST(values, count) {(values), (count)}\n"
    "#define RN_SHAPE_LIST(dims, ranks, count) {(dims), (ranks), (count)}\n"
    "#define RN_SET_SHAPE(dims, rank) {true, (dims), (rank)}\n"
    "#define RN_DIMS_(...) ((const int64_t[]){__VA_ARGS__})\n"
    "#define RN_SHAPE(...) \\\n"
    "  {true, RN_DIMS_(__VA_ARGS__), (int)(sizeof RN_DIMS_(__VA_ARGS__) / sizeof(int64_t))}\n"
    "#define RN_STRUCT_(type, ...) RN_LITERAL(type){__VA_ARGS__}\n"
    "#define RN_OPTIONS_(type, last, ...) last, RN_STRUCT_(type, __VA_ARGS__)\n"
    "\n"
    "typedef struct rn_opt_int_t { bool is_set; int64_t value; } rn_opt_int_t;\n"
    "typedef struct rn_opt_float_t { bool is_set; float value; } rn_opt_float_t;\n"
    "typedef struct rn_opt_bool_t { bool is_set; bool value; } rn_opt_bool_t;\n"
    "typedef struct rn_opt_shape_t { bool is_set; const int64_t* dims; int rank; } "
    "rn_opt_shape_t;\n"
    "typedef struct rn_string_list_t { const char* const* values; int count; } rn_string_list_t;\n"
    "typedef struct rn_int_list_t { const int64_t* values; int count; } rn_int_list_t;\n"
    "typedef struct rn_float_list_t { const float* values; int count; } rn_float_list_t;\n"
    "typedef struct rn_bool_list_t { const bool* values; int count; } rn_bool_list_t;\n"
    "typedef struct rn_type_list_t { const int* values; int count; } rn_type_list_t;\n"
    "typedef struct rn_func_list_t { const char* const* values; int count; } rn_func_list_t;\n"
    "typedef struct rn_shape_list_t {\n"
    "  const int64_t* const* values;\n"
    "  const int* ranks;\n"
    "  int count;\n"
    "} rn_shape_list_t;\n";

// Names that are reserved in C or C++.
static const char* safe(const char* name) {
  static const struct {
    const char* word;
    const char* instead;
  } words[] = {{"default", "default_"},  {"switch", "switch_"}, {"register", "register_"},
               {"signed", "signed_"},    {"double", "double_"}, {"float", "float_"},
               {"int", "int_"},          {"long", "long_"},     {"short", "short_"},
               {"static", "static_"},    {"if", "if_"},         {"else", "else_"},
               {"for", "for_"},          {"while", "while_"},   {"do", "do_"},
               {"case", "case_"},        {"break", "break_"},   {"const", "const_"},
               {"return", "return_"},    {"scope", "scope_"},   {"options", "options_"},
               {"node", "node_"},        {"name", "name_"},     {"out", "out_"},
               {"union", "union_"},      {"struct", "struct_"}, {"bool", "bool_"},
               {"template", "template_"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!strcmp(words[i].word, name)) return words[i].instead;
  }
  return name;
}

static bool is_positional(const attr_t* attr) {
  return attr->inferred_from < 0 && !attr->has_default;
}
static bool is_option(const attr_t* attr) {
  return attr->inferred_from < 0 && attr->has_default && attr->kind != KIND_TENSOR;
}

// Whether the op gets a builder. Ops with a required tensor attribute do not (use rn_const), nor do
// ops whose names begin with an underscore, which are internal.
static bool has_builder(const op_t* op) {
  if (op->name[0] == '_') return false;
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    if (attr->kind == KIND_TENSOR && attr->inferred_from < 0 && !attr->has_default) return false;
  }
  return true;
}

static bool is_zero(const attr_t* attr) {
  const char* word = attr->value.words.items[0];
  if (attr->kind == KIND_BOOL) return !strcmp(word, "false");
  return strspn(word, "+-0.") == strlen(word);
}

static const char* const element_types[KIND_COUNT] = {
    "const char*", "int64_t", "float", "bool", "int", "const int64_t*", NULL, "const char*"};

static void write_option_field(FILE* out, const attr_t* attr) {
  const char* name = safe(attr->name);
  if (attr->is_list) {
    fprintf(out, "  rn_%s_list_t %s;\n", kind_word(attr->kind), name);
  } else if (attr->kind == KIND_SHAPE) {
    fprintf(out, "  rn_opt_shape_t %s;\n", name);
  } else if (attr->kind == KIND_STRING || attr->kind == KIND_TYPE || is_zero(attr)) {
    fprintf(out, "  %s %s;\n", element_types[attr->kind], name);
  } else {
    fprintf(out, "  rn_opt_%s_t %s;\n", kind_word(attr->kind), name);
  }
}

static void write_options(FILE* out, const op_t* op) {
  fprintf(out, "\n// %s\ntypedef struct rn_%s_options_t {\n  const char* name;\n", op->doc,
          op->name);
  for (int i = 0; i < op->attr_count; i++) {
    if (is_option(&op->attrs[i])) write_option_field(out, &op->attrs[i]);
  }
  fprintf(
      out,
      "  char unused_;  // last, because C++ requires initializers in order\n} rn_%s_options_t;\n",
      op->name);
}

// The parameters after the scope: with their types, or (for the macro) only their names.
static names_t parameters(const op_t* op, bool with_types) {
  names_t list = {0};
  char text[512];
#define ADD(type, name, suffix)                                                              \
  do {                                                                                       \
    snprintf(text, sizeof text, "%s%s%s%s", with_types ? (type) : "", with_types ? " " : "", \
             (name), (suffix));                                                              \
    name_add(&list, text);                                                                   \
  } while (0)
  for (int i = 0; i < op->input_count; i++) {
    const char* name = safe(op->inputs[i].name);
    if (op->inputs[i].is_list) {
      ADD("const rn_edge_t*", name, "");
      ADD("int", name, "_count");
    } else {
      ADD("rn_edge_t", name, "");
    }
  }
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    if (!is_positional(attr)) continue;
    const char* name = safe(attr->name);
    if (attr->is_list) {
      char type[64];
      snprintf(type, sizeof type, "%s%s",
               strstr(element_types[attr->kind], "const") ? "" : "const ",
               element_types[attr->kind]);
      if (strstr(element_types[attr->kind], "const")) strcat(type, " const");
      strcat(type, "*");
      ADD(type, name, "");
      if (attr->kind == KIND_SHAPE) ADD("const int*", name, "_ranks");
      ADD("int", name, "_count");
    } else {
      ADD(element_types[attr->kind], name, "");
      if (attr->kind == KIND_SHAPE) ADD("int", name, "_rank");
    }
  }
#undef ADD
  return list;
}

// The length of a list output, as an expression over the parameters.
static void write_list_count(FILE* out, const op_t* op, const arg_t* arg) {
  const attr_t* attr = &op->attrs[attr_index(op, arg->number ? arg->number : arg->type)];
  if (attr->inferred_from >= 0) {
    fprintf(out, "%s_count", safe(op->inputs[attr->inferred_from].name));
  } else if (is_positional(attr)) {
    fprintf(out, arg->number ? "(int)%s" : "%s_count", safe(attr->name));
  } else if (arg->number && is_zero(attr)) {
    fprintf(out, "(int)options.%s", safe(attr->name));
  } else if (arg->number) {
    fprintf(out, "(int)(options.%s.is_set ? options.%s.value : %s)", safe(attr->name),
            safe(attr->name), attr->value.words.items[0]);
  } else {
    fprintf(out, "options.%s.count", safe(attr->name));
  }
}

static void write_result_type(FILE* out, const op_t* op) {
  if (op->output_count == 0) {
    fputs("rn_node_t*", out);
  } else if (op->output_count > 1) {
    fprintf(out, "rn_%s_out_t", op->name);
  } else {
    fputs(op->outputs[0].is_list ? "rn_edges_t" : "rn_edge_t", out);
  }
}

static void write_out_struct(FILE* out, const op_t* op) {
  if (op->output_count < 2) return;
  fprintf(out, "typedef struct rn_%s_out_t {\n", op->name);
  for (int i = 0; i < op->output_count; i++) {
    fprintf(out, "  %s %s;\n", op->outputs[i].is_list ? "rn_edges_t" : "rn_edge_t",
            safe(op->outputs[i].name));
  }
  fprintf(out, "} rn_%s_out_t;\n", op->name);
}

static void write_positional(FILE* out, const attr_t* attr) {
  const char* name = safe(attr->name);
  fprintf(out, "  rn_op_attr_%s%s(scope, \"%s\", %s", kind_word(attr->kind),
          attr->is_list ? "_list" : "", attr->name, name);
  if (attr->is_list && attr->kind == KIND_SHAPE) fprintf(out, ", %s_ranks", name);
  if (attr->is_list) fprintf(out, ", %s_count", name);
  if (!attr->is_list && attr->kind == KIND_SHAPE) fprintf(out, ", %s_rank", name);
  fputs(");\n", out);
}

// Bodies are in braces because gcc checks the indentation of those without, which in a file of this
// length took most of the compile time of every source that includes it.
static void write_optional(FILE* out, const attr_t* attr) {
  const char* name = safe(attr->name);
  const char* kind = kind_word(attr->kind);
  if (attr->is_list) {
    fprintf(out,
            "  if (options.%s.values) {\n"
            "    rn_op_attr_%s_list(scope, \"%s\", options.%s.values%s%s%s, options.%s.count);\n"
            "  }\n",
            name, kind, attr->name, name, attr->kind == KIND_SHAPE ? ", options." : "",
            attr->kind == KIND_SHAPE ? name : "", attr->kind == KIND_SHAPE ? ".ranks" : "", name);
  } else if (attr->kind == KIND_SHAPE) {
    fprintf(out,
            "  if (options.%s.is_set) {\n"
            "    rn_op_attr_shape(scope, \"%s\", options.%s.dims, options.%s.rank);\n"
            "  }\n",
            name, attr->name, name, name);
  } else if (attr->kind == KIND_STRING || attr->kind == KIND_TYPE || is_zero(attr)) {
    fprintf(out, "  if (options.%s) { rn_op_attr_%s(scope, \"%s\", options.%s); }\n", name, kind,
            attr->name, name);
  } else {
    fprintf(out, "  if (options.%s.is_set) { rn_op_attr_%s(scope, \"%s\", options.%s.value); }\n",
            name, kind, attr->name, name);
  }
}

static void write_results(FILE* out, const op_t* op) {
  if (op->output_count == 0) {
    fputs("  return rn_op_finish(scope);\n", out);
    return;
  }
  fputs("  rn_node_t* node = rn_op_finish(scope);\n  ", out);
  write_result_type(out, op);
  if (op->output_count == 1) {
    fputs(" out = {node, 0", out);
    if (op->outputs[0].is_list) {
      fputs(", node ? ", out);
      write_list_count(out, op, &op->outputs[0]);
      fputs(" : 0", out);
    }
    fputs("};\n  return out;\n", out);
    return;
  }
  fputs(" out;\n  int first = 0;\n", out);
  for (int i = 0; i < op->output_count; i++) {
    const arg_t* arg = &op->outputs[i];
    const char* name = safe(arg->name);
    fprintf(out, "  out.%s.node = node;\n  out.%s.%s = node ? first : 0;\n", name, name,
            arg->is_list ? "first" : "index");
    if (arg->is_list) {
      fprintf(out, "  out.%s.count = node ? ", name);
      write_list_count(out, op, arg);
      fprintf(out, " : 0;\n  first += out.%s.count;\n", name);
    } else {
      fputs("  first++;\n", out);
    }
  }
  fputs("  (void)first;\n  return out;\n", out);
}

static void write_function(FILE* out, const op_t* op, const names_t* typed) {
  fputs("static inline ", out);
  write_result_type(out, op);
  fprintf(out, " rn_%s_(rn_scope_t* scope", op->name);
  for (int i = 0; i < typed->count; i++) fprintf(out, ", %s", typed->items[i]);
  fprintf(out, ", rn_%s_options_t options) {\n", op->name);
  fprintf(out, "  if (options.name) { rn_scope_name_next(scope, options.name); }\n");
  fprintf(out, "  rn_op_begin(scope, \"%s\");\n", op->name);
  for (int i = 0; i < op->input_count; i++) {
    const char* name = safe(op->inputs[i].name);
    if (op->inputs[i].is_list) {
      fprintf(out, "  rn_op_input_list(scope, %s, %s_count);\n", name, name);
    } else {
      fprintf(out, "  rn_op_input(scope, %s);\n", name);
    }
  }
  for (int i = 0; i < op->attr_count; i++) {
    if (is_positional(&op->attrs[i])) write_positional(out, &op->attrs[i]);
    if (is_option(&op->attrs[i])) write_optional(out, &op->attrs[i]);
  }
  write_results(out, op);
  fputs("}\n", out);
}

static void write_macro(FILE* out, const op_t* op, const names_t* names) {
  fprintf(out, "#define rn_%s(", op->name);
  if (names->count) fputs("scope, ", out);
  for (int i = 0; i + 1 < names->count; i++) fprintf(out, "%s, ", names->items[i]);
  fprintf(out, "...) rn_%s_(", op->name);
  if (names->count) fputs("(scope), ", out);
  for (int i = 0; i + 1 < names->count; i++) fprintf(out, "(%s), ", names->items[i]);
  fprintf(out, "RN_OPTIONS_(rn_%s_options_t, __VA_ARGS__, .unused_ = 0))\n", op->name);
}

void write_builders(FILE* out, const ops_t* ops) {
  fputs(preamble, out);
  for (int i = 0; i < ops->count; i++) {
    const op_t* op = &ops->items[i];
    if (!has_builder(op)) continue;
    names_t typed = parameters(op, true), names = parameters(op, false);
    write_options(out, op);
    write_out_struct(out, op);
    write_function(out, op, &typed);
    write_macro(out, op, &names);
  }
  fputs("\n// clang-format on\n#endif  // RUNNEL_OPS_H_\n", out);
}
