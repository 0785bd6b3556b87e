// opgen: writes the registry's tables (framework/op_def.h) and the reference pages.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "opgen.h"

static void write_upper(FILE* out, const char* text) {
  for (; *text; text++) fputc(toupper((unsigned char)*text), out);
}

static const char* type_of(const char* name) { return dtype_enumerator(name); }

// Declares each shape function and gradient once.
static void write_externs(FILE* out, const ops_t* ops) {
  names_t seen = {0};
  for (int i = 0; i < ops->count; i++) {
    const op_t* op = &ops->items[i];
    if (name_find(&seen, op->shape) < 0) {
      fprintf(out, "rn_status_t rn_shape_fn_%s(rn_shape_ctx_t* ctx);\n", op->shape);
      name_add(&seen, op->shape);
    }
  }
  names_t rules = {0};
  for (int i = 0; i < ops->count; i++) {
    const char* grad = ops->items[i].grad;
    if (!grad || !strcmp(grad, "none") || !strcmp(grad, "refused")) continue;
    if (name_find(&rules, grad) < 0) {
      fprintf(out, "rn_status_t rn_grad_fn_%s(rn_grad_t* grad);\n", grad);
      name_add(&rules, grad);
    }
  }
  fputc('\n', out);
}

static void write_bytes(FILE* out, const char* digits) {
  fputs("{\"", out);
  for (size_t i = 0; digits[i]; i += 2) fprintf(out, "\\x%.2s", digits + i);
  fprintf(out, "\", %zu}", strlen(digits) / 2);
}

static void write_args(FILE* out, const op_t* op, const char* part, const arg_t* args, int count) {
  if (!count) return;
  fprintf(out, "static const rn_arg_def_t %s_%s[] = {\n", op->name, part);
  for (int i = 0; i < count; i++) {
    const arg_t* arg = &args[i];
    int attr = type_of(arg->type) ? -1 : attr_index(op, arg->type);
    bool mixed = is_mixed_list(arg);
    fprintf(out, "    {.name = \"%s\"", arg->name);
    if (attr < 0) fprintf(out, ", .type = RN_%s", type_of(arg->type));
    fprintf(out, ", .type_attr = %d, .number_attr = %d, .type_list_attr = %d", mixed ? -1 : attr,
            arg->number ? attr_index(op, arg->number) : -1, mixed ? attr : -1);
    if (arg->is_ref) fputs(", .is_ref = true", out);
    if (arg->full) {
      fputs(", .full_type = &(const rn_str_t)", out);
      write_bytes(out, arg->full);
    }
    fputs("},\n", out);
  }
  fputs("};\n", out);
}

static void write_scalar(FILE* out, const attr_t* attr, int i) {
  const char* word = attr->value.words.items[i];
  switch (attr->kind) {
    case KIND_STRING:
      fputc('{', out);
      write_string(out, word);
      fprintf(out, ", %zu}", strlen(word));
      break;
    case KIND_INT:
      if (!strcmp(word, "-9223372036854775808")) {
        fputs("INT64_MIN", out);
      } else {
        fprintf(out, "INT64_C(%s)", word);
      }
      break;
    case KIND_FLOAT:
      if (strstr(word, "inf"))
        fprintf(out, "%s__builtin_inff()", *word == '-' ? "-" : "");
      else
        fprintf(out, "(float)%s", word);
      break;
    case KIND_TYPE:
      fprintf(out, "RN_%s", type_of(word));
      break;
    default:
      fputs(word, out);
      break;
  }
}

// Writes a default tensor. It borrows its elements, integers of the C type with the same name.
static void write_tensor(FILE* out, const op_t* op, const attr_t* attr) {
  const names_t* words = &attr->value.words;
  if (!words->count) return;
  fprintf(out, "static const %s_t %s_%s_data[] = {", words->items[0], op->name, attr->name);
  for (int i = 1; i < words->count; i++) fprintf(out, "%s%s", i > 1 ? ", " : "", words->items[i]);
  fprintf(out,
          "};\nstatic const rn_tensor_t %s_%s_tensor = {.data = (void*)%s_%s_data, "
          ".count = %d, .dtype = RN_%s, .rank = 1, .inline_dims = {%d}};\n",
          op->name, attr->name, op->name, attr->name, words->count - 1, type_of(words->items[0]),
          words->count - 1);
}

// Writes the arrays that a default refers to: the dims of shapes, the elements of lists.
static void write_value_arrays(FILE* out, const op_t* op, const attr_t* attr) {
  static const char* const element[] = {"rn_str_t",   "int64_t",    "float", "bool",
                                        "rn_dtype_t", "rn_shape_t", NULL,    NULL};
  const value_t* value = &attr->value;
  if (attr->kind == KIND_TENSOR) {
    write_tensor(out, op, attr);
    return;
  }
  if (attr->kind == KIND_SHAPE) {
    for (int i = 0; i < value->words.count; i++) {
      if (value->shapes[i].rank <= 0) continue;
      fprintf(out, "static const int64_t %s_%s_dims%d[] = {", op->name, attr->name, i);
      for (int j = 0; j < value->shapes[i].rank; j++) {
        fprintf(out, "%s%lld", j ? ", " : "", (long long)value->shapes[i].dims[j]);
      }
      fputs("};\n", out);
    }
  }
  if (!attr->is_list || !value->words.count) return;
  fprintf(out, "static const %s %s_%s_default[] = {", element[attr->kind], op->name, attr->name);
  for (int i = 0; i < value->words.count; i++) {
    if (i) fputs(", ", out);
    if (attr->kind != KIND_SHAPE) {
      write_scalar(out, attr, i);
    } else if (value->shapes[i].rank <= 0) {
      fprintf(out, "{%d, NULL}", value->shapes[i].rank);
    } else {
      fprintf(out, "{%d, %s_%s_dims%d}", value->shapes[i].rank, op->name, attr->name, i);
    }
  }
  fputs("};\n", out);
}

static void write_default(FILE* out, const op_t* op, const attr_t* attr) {
  static const char* const field[] = {"s", "i", "f", "b", "type", "shape", "tensor", "func"};
  const value_t* value = &attr->value;
  fputs(",\n     .has_default = true, .default_value = {.kind = RN_ATTR_", out);
  write_upper(out, kind_word(attr->kind));
  if (attr->is_list) {
    fprintf(out, ", .is_list = true, .count = %d", value->words.count);
    if (value->words.count) {
      fprintf(out, ", .list_%s = %s_%s_default", field[attr->kind], op->name, attr->name);
    }
  } else if (attr->kind == KIND_SHAPE) {
    int rank = value->shapes[0].rank;
    fprintf(out, ", .shape = {%d, ", rank);
    if (rank > 0) {
      fprintf(out, "%s_%s_dims0}", op->name, attr->name);
    } else {
      fputs("NULL}", out);
    }
  } else if (attr->kind == KIND_TENSOR) {
    fprintf(out, ", .tensor = &%s_%s_tensor", op->name, attr->name);
  } else {
    fprintf(out, ", .%s = ", field[attr->kind]);
    write_scalar(out, attr, 0);
  }
  fputc('}', out);
}

// Equal sets of allowed values share one array; |*sets| maps the text of each set that was written
// to its array.
static int write_allowed_array(FILE* out, const attr_t* attr, names_t* sets) {
  size_t size = 2;
  for (int i = 0; i < attr->allowed.count; i++) size += strlen(attr->allowed.items[i]) + 8;
  char* key = malloc(size);
  if (!key) exit(2);
  strcpy(key, attr->kind == KIND_TYPE ? "t" : "s");
  for (int i = 0; i < attr->allowed.count; i++) {
    strcat(key, " ");
    strcat(key, attr->allowed.items[i]);
  }
  int found = name_find(sets, key);
  if (found < 0) {
    found = sets->count;
    name_add(sets, key);
    fprintf(out, "static const %s allowed_%d[] = {",
            attr->kind == KIND_TYPE ? "rn_dtype_t" : "char* const", found);
    for (int i = 0; i < attr->allowed.count; i++) {
      if (i) fputs(", ", out);
      if (attr->kind == KIND_TYPE) {
        fprintf(out, "RN_%s", type_of(attr->allowed.items[i]));
      } else {
        write_string(out, attr->allowed.items[i]);
      }
    }
    fputs("};\n", out);
  }
  free(key);
  return found;
}

static void write_attrs(FILE* out, const op_t* op, names_t* sets) {
  if (!op->attr_count) return;
  int* allowed = calloc((size_t)op->attr_count, sizeof *allowed);
  if (!allowed) exit(2);
  for (int i = 0; i < op->attr_count; i++) {
    write_value_arrays(out, op, &op->attrs[i]);
    if (op->attrs[i].allowed.count) allowed[i] = write_allowed_array(out, &op->attrs[i], sets);
  }
  fprintf(out, "static const rn_attr_def_t %s_attrs[] = {\n", op->name);
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    fprintf(out, "    {.name = \"%s\", .kind = RN_ATTR_", attr->name);
    write_upper(out, kind_word(attr->kind));
    if (attr->is_list) fputs(", .is_list = true", out);
    if (attr->has_minimum) {
      fprintf(out, ", .has_minimum = true, .minimum = %lld", (long long)attr->minimum);
    }
    if (attr->has_default) write_default(out, op, attr);
    if (attr->allowed.count) {
      fprintf(out, ",\n     .allowed_count = %d, .allowed_%s = allowed_%d", attr->allowed.count,
              attr->kind == KIND_TYPE ? "types" : "strings", allowed[i]);
      for (int j = 0; attr->kind == KIND_TYPE && j < attr->allowed.count; j++) {
        fprintf(out, "%sRN_TYPES1(RN_%s)",
                j ? " | " : ",\n     .allowed_set = ", type_of(attr->allowed.items[j]));
      }
    }
    fputs("},\n", out);
  }
  fputs("};\n", out);
  free(allowed);
}

static void write_op(FILE* out, const op_t* op) {
  fprintf(out, "static const rn_op_def_t %s_op = {\n    .name = \"%s\",\n    .summary = ", op->name,
          op->name);
  write_string(out, op->doc);
  fputs(",\n", out);
  if (op->input_count) {
    fprintf(out, "    .input_count = %d, .inputs = %s_inputs,\n", op->input_count, op->name);
  }
  if (op->output_count) {
    fprintf(out, "    .output_count = %d, .outputs = %s_outputs,\n", op->output_count, op->name);
  }
  if (op->attr_count) {
    fprintf(out, "    .attr_count = %d, .attrs = %s_attrs,\n", op->attr_count, op->name);
  }
  bool none = op->grad && !strcmp(op->grad, "none");
  if (op->flags.count || none) {
    fputs("    .flags = 0", out);
    for (int i = 0; i < op->flags.count; i++) {
      fputs(" | RN_OP_", out);
      write_upper(out, op->flags.items[i]);
    }
    fprintf(out, "%s,\n", none ? " | RN_OP_NO_GRAD" : "");
  }
  if (op->role) {
    fputs("    .role = RN_ROLE_", out);
    write_upper(out, op->role);
    fputs(",\n", out);
  }
  if (op->deprecation) {
    fprintf(out, "    .deprecated_at = %d, .deprecation = ", op->deprecated_at);
    write_string(out, op->deprecation);
    fputs(",\n", out);
  }
  fprintf(out, "    .shape = rn_shape_fn_%s,\n", op->shape);
  if (op->grad && !none && strcmp(op->grad, "refused")) {
    fprintf(out, "    .grad = rn_grad_fn_%s,\n", op->grad);
  }
  fputs("};\n\n", out);
}

void write_table(FILE* out, const ops_t* ops) {
  fputs("// The library's op definitions, generated by tools/opgen.c from the .ops files.\n", out);
  fputs("#include \"framework/op_face.h\"\n\n", out);
  write_externs(out, ops);
  names_t sets = {0};
  for (int i = 0; i < ops->count; i++) {
    const op_t* op = &ops->items[i];
    write_args(out, op, "inputs", op->inputs, op->input_count);
    write_args(out, op, "outputs", op->outputs, op->output_count);
    write_attrs(out, op, &sets);
    write_op(out, op);
  }
  fputs("const rn_op_def_t* const rn_builtin_ops[] = {\n", out);
  for (int i = 0; i < ops->count; i++) fprintf(out, "    &%s_op,\n", ops->items[i].name);
  fprintf(out, "};\nconst int rn_builtin_op_count = %d;\n\n", ops->count);
  fputs("const rn_op_face_t rn_op_faces[] = {\n", out);
  for (int i = 0; i < ops->count; i++) {
    const op_t* op = &ops->items[i];
    if (op->face_of) fprintf(out, "    {\"%s\", \"%s\"},\n", op->name, op->face_of);
  }
  fputs("    {NULL, NULL},\n};\n", out);
}

// Reference pages.

static void page_args(FILE* out, const char* title, const arg_t* args, int count) {
  for (int i = 0; i < count; i++) {
    const arg_t* arg = &args[i];
    fprintf(out, "- %s `%s`: %s%s%s%s%s\n", title, arg->name, arg->is_ref ? "reference to " : "",
            arg->number ? arg->number : "", arg->number ? " × " : "",
            is_mixed_list(arg) ? "list of " : "", arg->type);
  }
}

static void page_attr(FILE* out, const attr_t* attr) {
  fprintf(out, "- attribute `%s`: %s%s%s", attr->name, attr->is_list ? "list of " : "",
          kind_word(attr->kind), attr->inferred_from >= 0 ? ", from the inputs" : "");
  if (attr->has_minimum) fprintf(out, ", at least %lld", (long long)attr->minimum);
  for (int i = 0; i < attr->allowed.count; i++) {
    fprintf(out, "%s%s", i ? ", " : "; one of ", attr->allowed.items[i]);
  }
  if (attr->has_default && attr->kind != KIND_SHAPE) {
    fprintf(out, "; default %s", attr->is_list ? "[" : "`");
    for (int i = 0; i < attr->value.words.count; i++) {
      fprintf(out, "%s%s", i ? ", " : "", attr->value.words.items[i]);
    }
    fputs(attr->is_list ? "]" : "`", out);
  } else if (attr->has_default) {
    fputs("; default unknown", out);
  }
  fputc('\n', out);
}

void write_page(FILE* out, const ops_t* ops, const char* family) {
  fprintf(out, "# Ops: %s\n", family);
  for (int i = 0; i < ops->count; i++) {
    const op_t* op = &ops->items[i];
    if (strcmp(op->family, family)) continue;
    fprintf(out, "\n## %s\n\n%s\n\n", op->name, op->doc);
    page_args(out, "input", op->inputs, op->input_count);
    page_args(out, "output", op->outputs, op->output_count);
    for (int j = 0; j < op->attr_count; j++) page_attr(out, &op->attrs[j]);
    for (int j = 0; j < op->flags.count; j++) fprintf(out, "- %s\n", op->flags.items[j]);
    if (op->deprecation) {
      fprintf(out, "- not in graphs of version %d and later: %s\n", op->deprecated_at,
              op->deprecation);
    }
    const char* grad = op->grad ? op->grad : "none";
    fprintf(out, "- gradient: %s\n",
            !strcmp(grad, "none") || !strcmp(grad, "refused") ? grad : "yes");
  }
}
