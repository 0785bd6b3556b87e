// opgen: writes the C++ classes of ops, tensorflow/cc/ops/*_ops.h, on top of
// tensorflow/cc/framework/op_builder.h.
//
//   ops::MatMul(scope, a, b, ops::MatMul::TransposeA(true))
//
// Constructors take the scope, the inputs and the attributes that have no default and cannot be
// inferred from the inputs; a second constructor takes the others as Attrs. src/ops/cc_classes.def
// says which op is in which header, and where a class has other names than its op.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "opgen.h"

// One class of a header.
typedef struct class_t {
  const char* name;
  const op_t* op;
  names_t aliases;
  names_t renamed;  // pairs: the name in the op, the name in the class
} class_t;

static const op_t* find_op(const ops_t* ops, const char* name) {
  for (int i = 0; i < ops->count; i++) {
    if (!strcmp(ops->items[i].name, name)) return &ops->items[i];
  }
  return NULL;
}

static const char* name_in(const class_t* class, const char* name) {
  for (int i = 0; i + 1 < class->renamed.count; i += 2) {
    if (!strcmp(class->renamed.items[i], name)) return class->renamed.items[i + 1];
  }
  return name;
}

// TensorFlow appends an underscore to names that are words of C++.
static const char* word_of(const class_t* class, const char* name) {
  static const char* const reserved[] = {"default", "template", "switch", "namespace", "operator"};
  const char* found = name_in(class, name);
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
    if (strcmp(reserved[i], found)) continue;
    char* text = malloc(strlen(found) + 2);
    if (!text) exit(1);
    sprintf(text, "%s_", found);
    return text;
  }
  return found;
}

static bool is_required(const attr_t* attr) {
  return attr->inferred_from < 0 && !attr->has_default;
}
static bool is_optional(const attr_t* attr) { return attr->inferred_from < 0 && attr->has_default; }
static bool has_optional(const op_t* op) {
  for (int i = 0; i < op->attr_count; i++) {
    if (is_optional(&op->attrs[i])) return true;
  }
  return false;
}

// The type of an attribute's value.
static const char* type_of(const attr_t* attr) {
  static const char* const one[KIND_COUNT] = {"StringPiece", "int64",       "float",
                                              "bool",        "DataType",    "PartialTensorShape",
                                              "TensorProto", "NameAttrList"};
  static const char* const many[KIND_COUNT] = {"gtl::ArraySlice<::tensorflow::tstring>",
                                               "gtl::ArraySlice<int>",
                                               "gtl::ArraySlice<float>",
                                               "gtl::ArraySlice<bool>",
                                               "DataTypeSlice",
                                               "gtl::ArraySlice<PartialTensorShape>",
                                               "gtl::ArraySlice<TensorProto>",
                                               "gtl::ArraySlice<NameAttrList>"};
  return attr->is_list ? many[attr->kind] : one[attr->kind];
}

// Writes the type as a parameter: what is not cheap to copy is passed by reference.
static void write_parameter_type(FILE* out, const attr_t* attr) {
  bool by_reference = attr->is_list || attr->kind == KIND_TENSOR || attr->kind == KIND_FUNC;
  fprintf(out, "%s%s%s", by_reference ? "const " : "", type_of(attr), by_reference ? "&" : "");
}

static void write_camel(FILE* out, const char* name) {
  bool is_start = true;
  for (; *name; name++) {
    if (*name == '_') {
      is_start = true;
    } else {
      fputc(is_start ? toupper((unsigned char)*name) : *name, out);
      is_start = false;
    }
  }
}

static void write_shape(FILE* out, const dims_t* shape) {
  fputs("::tensorflow::PartialTensorShape(", out);
  if (shape->rank >= 0) {
    fputc('{', out);
    for (int i = 0; i < shape->rank; i++)
      fprintf(out, i ? ", %lld" : "%lld", (long long)shape->dims[i]);
    fputc('}', out);
  }
  fputc(')', out);
}

// Writes value |i| of a default.
static void write_value(FILE* out, const attr_t* attr, int i) {
  const char* word = attr->value.words.items[i];
  switch (attr->kind) {
    case KIND_STRING:
      write_string(out, word);
      break;
    case KIND_TYPE:
      fprintf(out, "DT_%s", dtype_enumerator(word));
      break;
    case KIND_FLOAT:
      fprintf(out, strpbrk(word, ".e") ? "%sf" : "%s.0f", word);
      break;
    case KIND_SHAPE:
      write_shape(out, &attr->value.shapes[i]);
      break;
    default:
      fputs(word, out);
  }
}

// A default tensor: "uint8 [255, 0, 0, 255]", one word each.
static void write_tensor_default(FILE* out, const attr_t* attr) {
  fputs("Input::Initializer({", out);
  const names_t* words = &attr->value.words;
  for (int i = 1; i < words->count; i++) {
    fprintf(out, "%sstatic_cast<::tensorflow::%s>(%s)", i > 1 ? ", " : "", words->items[0],
            words->items[i]);
  }
  fputs("}).AsTensorProto()", out);
}

static void write_default(FILE* out, const class_t* class, const attr_t* attr) {
  if (attr->is_list && attr->value.words.count == 0) {
    fputs("{}", out);
  } else if (attr->is_list) {
    fprintf(out, "Default_%s()", name_in(class, attr->name));
  } else if (attr->kind == KIND_TENSOR) {
    write_tensor_default(out, attr);
  } else {
    write_value(out, attr, 0);
  }
}

// Lists that are not empty by default lie in static storage, because an ArraySlice owns nothing.
static void write_storage(FILE* out, const class_t* class, const attr_t* attr) {
  static const char* const elements[KIND_COUNT] = {
      "::tensorflow::tstring", "int", "float", "bool", "DataType",
      "PartialTensorShape",    NULL,  NULL};
  fprintf(out, "    static %s Default_%s() {\n      static const %s kStorage[] = {", type_of(attr),
          name_in(class, attr->name), elements[attr->kind]);
  for (int i = 0; i < attr->value.words.count; i++) {
    if (i) fputs(", ", out);
    write_value(out, attr, i);
  }
  fprintf(out, "};\n      return %s(kStorage);\n    }\n", type_of(attr));
}

static void write_attrs(FILE* out, const class_t* class) {
  const op_t* op = class->op;
  fputs("  struct Attrs {\n", out);
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    if (!is_optional(attr)) continue;
    fputs("    TF_MUST_USE_RESULT Attrs ", out);
    write_camel(out, name_in(class, attr->name));
    fputc('(', out);
    write_parameter_type(out, attr);
    fprintf(out, " x) {\n      Attrs ret = *this;\n      ret.%s_ = x;\n      return ret;\n    }\n",
            name_in(class, attr->name));
  }
  bool has_storage = false;
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    if (!is_optional(attr)) continue;
    fprintf(out, "    %s %s_ = ", type_of(attr), name_in(class, attr->name));
    write_default(out, class, attr);
    fputs(";\n", out);
    has_storage = has_storage || (attr->is_list && attr->value.words.count);
  }
  if (has_storage) fputs("  private:\n", out);
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    if (is_optional(attr) && attr->is_list && attr->value.words.count) {
      write_storage(out, class, attr);
    }
  }
  fputs("  };\n", out);
}

// The parameters of a constructor, or (for a call) only their names.
static void write_parameters(FILE* out, const class_t* class, bool with_types) {
  const op_t* op = class->op;
  fputs(with_types ? "const ::tensorflow::Scope& scope" : "scope", out);
  for (int i = 0; i < op->input_count; i++) {
    fputs(", ", out);
    if (with_types) {
      fprintf(out, "::tensorflow::Input%s ", op->inputs[i].is_list ? "List" : "");
    }
    fputs(word_of(class, op->inputs[i].name), out);
  }
  for (int i = 0; i < op->attr_count; i++) {
    if (!is_required(&op->attrs[i])) continue;
    fputs(", ", out);
    if (with_types) {
      write_parameter_type(out, &op->attrs[i]);
      fputc(' ', out);
    }
    fputs(word_of(class, op->attrs[i].name), out);
  }
}

static void write_outputs(FILE* out, const class_t* class) {
  const op_t* op = class->op;
  bool has_lists = false;
  for (int i = 0; i < op->output_count; i++) has_lists = has_lists || op->outputs[i].is_list;
  if (!has_lists) {
    for (int i = 0; i < op->output_count; i++) {
      fprintf(out, "    this->%s = Output(operation, %d);\n", word_of(class, op->outputs[i].name),
              i);
    }
    return;
  }
  fputs("    int next = 0;\n", out);
  for (int i = 0; i < op->output_count; i++) {
    const char* name = word_of(class, op->outputs[i].name);
    if (op->outputs[i].is_list) {
      fprintf(out, "    this->%s = internal::OutputsOf(operation, \"%s\", &next);\n", name,
              op->outputs[i].name);
    } else {
      fprintf(out, "    this->%s = Output(operation, next++);\n", name);
    }
  }
}

static void write_constructors(FILE* out, const class_t* class) {
  const op_t* op = class->op;
  bool is_short = has_optional(op);
  if (is_short) {
    fprintf(out, "  %s(", class->name);
    write_parameters(out, class, true);
    fprintf(out, ") : %s(", class->name);
    write_parameters(out, class, false);
    fprintf(out, ", Attrs()) {}\n");
  }
  fprintf(out, "  %s%s(", is_short || op->input_count + op->attr_count ? "" : "explicit ",
          class->name);
  write_parameters(out, class, true);
  if (is_short) fprintf(out, ", const Attrs& attrs");
  fprintf(out, ") {\n    internal::OpBuilder op_builder(scope, \"%s\", \"%s\");\n", class->name,
          op->name);
  for (int i = 0; i < op->input_count; i++) {
    fprintf(out, "    op_builder.In(%s);\n", word_of(class, op->inputs[i].name));
  }
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    if (is_required(attr)) {
      fprintf(out, "    op_builder.Attr(\"%s\", %s);\n", attr->name, word_of(class, attr->name));
    } else if (is_optional(attr)) {
      fprintf(out, "    op_builder.Attr(\"%s\", attrs.%s_);\n", attr->name,
              name_in(class, attr->name));
    }
  }
  fputs("    operation = op_builder.Finish();\n", out);
  if (op->output_count) fputs("    if (!operation.node()) { return; }\n", out);
  write_outputs(out, class);
  fputs("  }\n", out);
}

static void write_conversions(FILE* out, const class_t* class) {
  const op_t* op = class->op;
  if (op->output_count == 0) {
    fputs("  operator ::tensorflow::Operation() const { return operation; }\n", out);
  } else if (op->output_count == 1 && op->outputs[0].is_list) {
    fprintf(out, "  ::tensorflow::Output operator[](size_t index) const { return %s[index]; }\n",
            word_of(class, op->outputs[0].name));
  } else if (op->output_count == 1) {
    const char* name = word_of(class, op->outputs[0].name);
    fprintf(out, "  operator ::tensorflow::Output() const { return %s; }\n", name);
    fprintf(out, "  operator ::tensorflow::Input() const { return %s; }\n", name);
    fprintf(out, "  ::tensorflow::Node* node() const { return %s.node(); }\n", name);
  }
}

static void write_class(FILE* out, const class_t* class) {
  const op_t* op = class->op;
  fprintf(out, "\n// %s\nclass %s {\n public:\n", op->doc, class->name);
  if (has_optional(op)) write_attrs(out, class);
  write_constructors(out, class);
  write_conversions(out, class);
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    if (!is_optional(attr)) continue;
    fputs("  static Attrs ", out);
    write_camel(out, name_in(class, attr->name));
    fputc('(', out);
    write_parameter_type(out, attr);
    fputs(" x) { return Attrs().", out);
    write_camel(out, name_in(class, attr->name));
    fputs("(x); }\n", out);
  }
  fputs("  Operation operation;\n", out);
  for (int i = 0; i < op->output_count; i++) {
    fprintf(out, "  ::tensorflow::Output%s %s;\n", op->outputs[i].is_list ? "List" : "",
            word_of(class, op->outputs[i].name));
  }
  fputs("};\n", out);
  for (int i = 0; i < class->aliases.count; i++) {
    fprintf(out, "typedef %s %s;\n", class->name, class->aliases.items[i]);
  }
}

static void write_guard(FILE* out, const char* header) {
  fputs("TENSORFLOW_CC_OPS_", out);
  for (; *header; header++) fputc(toupper((unsigned char)*header), out);
  fputs("_H_\n", out);
}

void begin_cc_header(FILE* out, const char* header) {
  fputs("// Classes of ops, generated by tools/opgen_cc.c from the .ops files.\n#ifndef ", out);
  write_guard(out, header);
  fputs("#define ", out);
  write_guard(out, header);
  fputs(
      "\n#pragma GCC system_header\n"
      "#include \"tensorflow/cc/framework/op_builder.h\"\n"
      "\nnamespace tensorflow {\nnamespace ops {\n",
      out);
  if (strstr(header, "_internal")) fputs("namespace internal {\n", out);
}

void end_cc_header(FILE* out, const char* header) {
  if (strstr(header, "_internal")) fputs("\n}  // namespace internal\n", out);
  fputs("\n}  // namespace ops\n}  // namespace tensorflow\n#endif\n", out);
}

// Writes the class that |line| of cc_classes.def describes: CLASS, CLASS=OP, then words "+ALIAS"
// and "old:new". Returns the word that is wrong, or NULL.
const char* write_cc_class(FILE* out, const ops_t* ops, char* line) {
  char* save = NULL;
  class_t class = {.name = strtok_r(line, " ", &save)};
  char* equals = strchr(class.name, '=');
  if (equals) *equals = '\0';
  class.op = find_op(ops, equals ? equals + 1 : class.name);
  if (!class.op) return equals ? equals + 1 : class.name;
  for (char* word = strtok_r(NULL, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    char* colon = strchr(word, ':');
    if (*word == '+') {
      name_add(&class.aliases, word + 1);
    } else if (colon) {
      *colon = '\0';
      name_add(&class.renamed, word);
      name_add(&class.renamed, colon + 1);
    } else {
      return word;
    }
  }
  write_class(out, &class);
  return NULL;
}
