// runnel ops: lists the ops of the library and describes one.
#include <stdio.h>
#include <strings.h>

#include "cli/color.h"
#include "cli/json.h"
#include "cli/ops.h"
#include "device/part.h"
#include "framework/kernel.h"
#include "framework/op_face.h"

static const rn_cli_op_place_t places[] = {
#include "op_places.inc"
};
static const char* const kernel_places[] = {
#include "kernel_places.inc"
};

static const rn_cli_op_place_t* place_of(const char* op) {
  static const rn_cli_op_place_t none = {"", "", "", "", "", ""};
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i)
    if (strcmp(places[i].op, op) == 0) return &places[i];
  return &none;
}

const char* rn_cli_kernel_place(const rn_kernel_def_t* def) {
  for (size_t i = 0; rn_builtin_kernels[i]; ++i) {
    const rn_kernel_family_t* family = rn_builtin_kernels[i];
    if (def >= family->rows && def < family->rows + family->count) return kernel_places[i];
  }
  return "";
}

static bool is_family(const char* name) {
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i)
    if (strcmp(places[i].family, name) == 0) return true;
  return false;
}

static rn_status_t no_family(const char* name) {
  rn_strbuf_t names;
  rn_strbuf_init(&names, rn_allocator_default());
  const char* last = "";
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    if (strcmp(places[i].family, last) == 0) continue;
    rn_strbuf_printf(&names, "%s%s", *last ? ", " : "", places[i].family);
    last = places[i].family;
  }
  rn_status_t status = rn_not_found("there is no family of ops called '%s'; there are %s", name,
                                    rn_strbuf_view(&names).data);
  rn_strbuf_clear(&names);
  return status;
}

static bool contains(const char* text, const char* part) {
  size_t length = strlen(part);
  for (; *text; ++text)
    if (strncasecmp(text, part, length) == 0) return true;
  return length == 0;
}

// The executor runs these itself, whatever the device.
static bool is_built_in(const rn_op_def_t* op) {
  return (op->role >= RN_ROLE_SWITCH && op->role <= RN_ROLE_CONTROL_TRIGGER) ||
         op->role == RN_ROLE_NO_OP;
}

typedef struct devices_t {
  const char* op;
  bool has_cpu;
  rn_strbuf_t* names;  // may be NULL
} devices_t;

static rn_status_t note_device(const rn_kernel_def_t* def, void* arg) {
  devices_t* devices = arg;
  if (strcmp(def->op, devices->op) != 0) return RN_OK;
  if (strcmp(def->device, "CPU") == 0) devices->has_cpu = true;
  if (!devices->names || strstr(rn_strbuf_view(devices->names).data, def->device)) return RN_OK;
  rn_strbuf_printf(devices->names, "%s%s", devices->names->size ? " " : "", def->device);
  return RN_OK;
}

typedef struct list_t {
  const rn_cli_t* cli;
  const char* family;
  const char* search;
  bool only_missing;
  json_t* json;  // an array to fill; NULL to print instead
  int shown, with_cpu;
} list_t;

// "CPU GPU" as a list; "-" is the empty list.
static json_t* json_of_words(const char* words) {
  json_t* list = json_array();
  for (rn_str_t rest = rn_str(words); rest.size;) {
    rn_str_t word = rn_str_split(&rest, ' ');
    if (!rn_str_is(word, "-")) json_array_append_new(list, rn_cli_json_str(word));
  }
  return list;
}

static rn_status_t list_op(const rn_op_def_t* op, void* arg) {
  list_t* list = arg;
  if (list->family && strcmp(place_of(op->name)->family, list->family) != 0) return RN_OK;
  if (list->search && !contains(op->name, list->search) && !contains(op->summary, list->search))
    return RN_OK;
  rn_strbuf_t names;
  rn_strbuf_init(&names, list->cli->allocator);
  devices_t devices = {.op = rn_op_base_name(op->name), .names = &names};
  rn_status_t status = rn_kernel_each(note_device, &devices);
  bool has_cpu = devices.has_cpu || is_built_in(op);
  if (rn_ok(status) && !(list->only_missing && has_cpu)) {
    list->shown++;
    list->with_cpu += has_cpu;
    const char* where = is_built_in(op) ? "any" : names.size ? names.data : "-";
    if (list->json)
      json_array_append_new(list->json,
                            json_pack("{s:s, s:s, s:o, s:b, s:s}", "name", op->name, "family",
                                      place_of(op->name)->family, "devices", json_of_words(where),
                                      "has_gradient", op->grad != NULL, "summary", op->summary));
    else
      printf("%s%-40s%s %-8s %-4s %s\n", RN_COLORED(list->cli, BOLD, op->name), where,
             op->grad ? "grad" : "-", op->summary);
  }
  rn_strbuf_clear(&names);
  return status;
}

static void print_type_set(rn_dtypes_t set) {
  bool is_first = true;
  putchar('{');
  for (rn_dtype_t t = 1; t < RN_DTYPE_COUNT; ++t) {
    if (!rn_dtypes_has(set, t)) continue;
    printf("%s%s", is_first ? "" : ", ", rn_dtype_name(t));
    is_first = false;
  }
  putchar('}');
}

static void print_args(const rn_op_def_t* op, const rn_arg_def_t* args, int count) {
  putchar('(');
  for (int i = 0; i < count; ++i) {
    const rn_arg_def_t* arg = &args[i];
    printf("%s%s: %s", i ? ", " : "", arg->name, arg->is_ref ? "ref " : "");
    if (arg->type_list_attr >= 0) {
      printf("list %s", op->attrs[arg->type_list_attr].name);
      continue;
    }
    if (arg->number_attr >= 0) printf("%s * ", op->attrs[arg->number_attr].name);
    printf("%s", arg->type_attr >= 0 ? op->attrs[arg->type_attr].name : rn_dtype_name(arg->type));
  }
  putchar(')');
}

static void print_attr(const rn_cli_t* cli, const rn_attr_def_t* attr) {
  printf("  %s: %s", attr->name, rn_attr_kind_name(attr->kind, attr->is_list));
  if (attr->has_minimum) printf(" >= %lld", (long long)attr->minimum);
  for (int i = 0; i < attr->allowed_count; ++i)
    printf("%s%s", i ? ", " : " in {",
           attr->kind == RN_ATTR_TYPE ? rn_dtype_name(attr->allowed_types[i])
                                      : attr->allowed_strings[i]);
  if (attr->allowed_count) putchar('}');
  if (attr->has_default) {
    rn_strbuf_t buf;
    rn_strbuf_init(&buf, cli->allocator);
    rn_attr_value_print(&buf, &attr->default_value);
    printf(" = %s", rn_strbuf_view(&buf).data);
    rn_strbuf_clear(&buf);
  }
  putchar('\n');
}

static void print_flags(const rn_op_def_t* op) {
  static const struct {
    int flag;
    const char* name;
  } names[] = {{RN_OP_STATEFUL, "stateful"},
               {RN_OP_COMMUTATIVE, "commutative"},
               {RN_OP_AGGREGATE, "aggregate"},
               {RN_OP_ALLOWS_UNINITIALIZED, "takes uninitialised variables"},
               {RN_OP_DISTRIBUTED, "distributed communication"}};
  bool is_first = true;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (!(op->flags & names[i].flag)) continue;
    printf("%s%s", is_first ? "flags       " : ", ", names[i].name);
    is_first = false;
  }
  if (!is_first) putchar('\n');
}

static rn_status_t print_kernel(const rn_kernel_def_t* def, void* arg) {
  devices_t* devices = arg;
  if (strcmp(def->op, devices->op) != 0) return RN_OK;
  devices->has_cpu = true;  // here: some row was printed
  printf("  %-5s", def->device);
  for (int i = 0; i < 4 && def->types[i].attr; ++i) {
    printf("%s%s in ", i ? ", " : " ", def->types[i].attr);
    print_type_set(def->types[i].types);
  }
  if (!def->types[0].attr) printf(" every type");
  for (int i = 0; def->host_args && def->host_args[i]; ++i)
    printf("%s%s", i ? ", " : "; on the host: ", def->host_args[i]);
  if (def->label) printf("; _kernel = \"%s\"", def->label);
  const char* place = rn_cli_kernel_place(def);
  printf(*place ? "\n        %s\n" : "\n", place);
  return RN_OK;
}

static void print_place(const char* title, const char* path) {
  if (*path) printf("%-11s %s\n", title, path);
}

static rn_status_t explain(const rn_cli_t* cli, const rn_op_def_t* op) {
  printf("%s", op->name);
  print_args(op, op->inputs, op->input_count);
  printf(" -> ");
  print_args(op, op->outputs, op->output_count);
  printf("\n  %s\n\n", op->summary);
  if (op->attr_count) printf("attributes\n");
  for (int i = 0; i < op->attr_count; ++i) print_attr(cli, &op->attrs[i]);
  if (op->attr_count) putchar('\n');
  const rn_cli_op_place_t* place = place_of(op->name);
  print_place("family", place->family);
  print_place("definition", place->definition);
  print_place("shapes", place->shapes);
  print_flags(op);
  if (op->deprecated_at)
    printf("deprecated  from GraphDef version %d on: %s\n", op->deprecated_at, op->deprecation);
  const char* rule = *place->gradient ? place->gradient : "yes";
  printf("gradient    %s\n", op->grad                    ? rule
                             : op->flags & RN_OP_NO_GRAD ? "no gradient flows through it"
                                                         : "no rule");
  print_place("tests", place->cases);
  printf("kernels\n");
  devices_t devices = {.op = rn_op_base_name(op->name)};
  if (is_built_in(op)) {
    printf("  any   the executor runs it itself\n");
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_kernel_each(print_kernel, &devices));
  if (!devices.has_cpu) printf("  none: graphs may contain it, but steps cannot run it\n");
  return RN_OK;
}

static rn_status_t note_nearest(const rn_op_def_t* op, void* arg) {
  rn_cli_near_try(arg, op->name);
  return RN_OK;
}

static rn_status_t not_found(const char* name) {
  rn_cli_near_t nearest = {.wanted = name};
  RN_RETURN_IF_ERROR(rn_op_each(note_nearest, &nearest));
  if (nearest.best)
    return rn_not_found("no op is called '%s'; did you mean '%s'?", name, nearest.best);
  return rn_not_found("no op is called '%s'; try 'runnel ops --search TEXT'", name);
}

static rn_status_t ops(rn_cli_t* cli) {
  const rn_device_part_t* part = NULL;
  rn_status_free(rn_cuda_part_load(&part));  // registers the kernels for GPUs, if there are any
  const char* name = rn_cli_word(cli, "NAME");
  list_t list = {.cli = cli,
                 .family = rn_cli_text(cli, "--family"),
                 .search = rn_cli_text(cli, "--search"),
                 .only_missing = rn_cli_has(cli, "--missing")};
  if (list.family && !is_family(list.family)) return no_family(list.family);
  if (name && (list.family || list.search || list.only_missing))
    return rn_cli_usage(cli, "give either the name of an op or options that select ops");
  if (name) {
    const rn_op_def_t* op = rn_op_find(rn_str(name));
    if (op && rn_cli_has(cli, "--json"))
      return rn_cli_json_print(rn_cli_op_json(op, place_of(op->name), is_built_in(op)));
    return op ? explain(cli, op) : not_found(name);
  }
  if (rn_cli_has(cli, "--json")) list.json = json_array();
  RN_RETURN_IF_ERROR(rn_op_each(list_op, &list));
  if (list.json) return rn_cli_json_print(list.json);
  if (list.shown == 0) return rn_not_found("no op matches");
  printf("%d ops, %d of them run on the CPU\n", list.shown, list.with_cpu);
  return RN_OK;
}

static const rn_cli_option_t options[] = {
    RN_CLI_JSON_OPTION(NULL),
    RN_OPTION(TEXT, "--family", "FAMILY", "only ops of this family: math, nn, array, state ..."),
    RN_OPTION(TEXT, "--search", "TEXT", "only ops with TEXT in their name or description"),
    RN_OPTION(FLAG, "--missing", NULL,
              "only ops without a CPU kernel: graphs may contain them, but steps cannot run them"),
    {0},
};

const rn_cli_command_t rn_cli_ops_command = {
    .name = "ops",
    .summary = "list the ops, or describe one",
    .about =
        "Lists the ops of this library, or explains one. A line of the list has the name, the "
        "devices that can run it, 'grad' if it has a gradient, and what it does.",
    .words = "[NAME]",
    .word_kind = RN_CLI_OP,
    .run = ops,
    .options = options,
    .examples =
        "runnel ops                        # everything\n"
        "runnel ops Conv2D                 # its signature, attributes, types, devices\n"
        "runnel ops --family training      # the update rules\n"
        "runnel ops --search softmax       # everything about softmax",
};
