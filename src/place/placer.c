// The placer: feasible devices for each node, groups that must stay together, then a choice.
//
// A node may go where its requested device allows and where there is a kernel for it. Nodes stay
// together if one holds state that another uses (reference and resource edges), or if the user says
// so ("_class" = "loc:@node"). Among the devices that remain, a preferred one wins (a GPU), then
// the first, which is the CPU. As in stock, a constant or another source with one reader goes to
// its reader, and an op that only looks at a value's shape goes to the value. Stateful nodes stay
// where the whole graph's placement has put them (homes.h).
#include "device/part.h"
#include "framework/function.h"
#include "place/auto/wishes.h"
#include "place/homes.h"

// Longer than any kernel's label.
#define MAX_LABEL 64

// A set of devices is |words| of these.
typedef uint64_t word_t;
#define WORD_BITS 64

typedef struct placer_t {
  rn_ir_t* ir;
  const rn_place_options_t* options;
  rn_device_spec_t* specs;    // by device
  int words;                  // of a set
  word_t *all, *asked, *fit;  // every device; scratch sets for the current node
  word_t* defaults;           // the devices that nodes without one should go to; NULL: any
  int32_t* group;             // by node: union-find
  word_t* masks;              // a set by node: where it may go; of the whole group at its root
  word_t* supported;          // likewise: where there are kernels, whatever was requested
  word_t* unwished;           // likewise: where to go only if nothing else is left
  rn_map_t by_name;           // node name -> node number + 1, made for the first "_class"
  int32_t* wished;            // by node that stands for a group: device + 1; NULL: no wishes
  rn_ir_uses_t* uses;         // by node; NULL if no device is preferred to the CPU
  const rn_homes_t* homes;    // of stateful nodes; NULL: none are kept
  bool is_survey;  // of a whole graph, for |homes|: what cannot be placed is no error, and no log
} placer_t;

static word_t* set_of(const placer_t* placer, word_t* sets, int32_t node) {
  return sets + (size_t)node * (size_t)placer->words;
}

// The first device of a set; -1: it is empty.
static int first_of(const placer_t* placer, const word_t* set) {
  for (int w = 0; w < placer->words; ++w)
    if (set[w]) return w * WORD_BITS + __builtin_ctzll(set[w]);
  return -1;
}

static void include(word_t* set, int device) {
  set[device / WORD_BITS] |= (word_t)1 << device % WORD_BITS;
}

static void copy_set(const placer_t* placer, word_t* to, const word_t* from) {
  memcpy(to, from, (size_t)placer->words * sizeof *to);
}

// |out| = |a| and |b|; true if it is not empty.
static bool intersect(const placer_t* placer, const word_t* a, const word_t* b, word_t* out) {
  word_t any = 0;
  for (int w = 0; w < placer->words; ++w) any |= out[w] = a[w] & b[w];
  return any != 0;
}

static int32_t find_root(placer_t* placer, int32_t index) {
  while (placer->group[index] != index)
    index = placer->group[index] = placer->group[placer->group[index]];
  return index;
}

// The executor runs these itself, on any device.
static bool needs_kernel(const rn_ir_node_t* node) {
  uint8_t role = node->op->role;
  return node->feed < 0 && role != RN_ROLE_NO_OP && !rn_ir_is_control_flow(role) && !node->constant;
}

static const rn_kernel_def_t* find_kernel(const rn_ir_node_t* node, const rn_device_t* device) {
  char text[MAX_LABEL] = "";
  const rn_attr_value_t* label = node->extra_count > 0 ? rn_ir_attr(node, RN_STR("_kernel")) : NULL;
  if (label && label->kind == RN_ATTR_STRING) {
    if (label->s.size >= sizeof text) return NULL;
    memcpy(text, label->s.data, label->s.size);
  }
  return rn_kernel_find(node->op, node->attrs, text, device->type);
}

static void print_devices(const placer_t* placer, rn_strbuf_t* buf) {
  for (int d = 0; d < placer->options->device_count; ++d)
    rn_strbuf_printf(buf, "%s%.*s", d ? ", " : "", RN_STR_ARGS(placer->options->devices[d]->name));
}

static rn_status_t unknown_device(const placer_t* placer, const rn_ir_node_t* node,
                                  const rn_device_spec_t* spec) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, placer->ir->allocator);
  print_devices(placer, &buf);
  bool lacks_gpus = rn_str_is(spec->type, "GPU");
  for (int d = 0; d < placer->options->device_count; ++d)
    lacks_gpus = lacks_gpus && strcmp(placer->options->devices[d]->type, "GPU") != 0;
  rn_status_t status = rn_invalid_argument(
      "Cannot assign a device for operation %.*s: {{node %.*s}} was explicitly assigned to %.*s "
      "but available devices are "
      "[ %.*s ]. Make sure the device specification refers to a valid device.%s",
      RN_STR_ARGS(node->name), RN_STR_ARGS(node->name), RN_STR_ARGS(node->requested_device),
      RN_STR_ARGS(rn_strbuf_view(&buf)),
      lacks_gpus ? " The requested device appears to be a GPU, but CUDA is not enabled." : "");
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t no_kernel(const placer_t* placer, const rn_ir_node_t* node) {
  rn_strbuf_t attrs, devices;
  rn_strbuf_init(&attrs, placer->ir->allocator);
  rn_strbuf_init(&devices, placer->ir->allocator);
  for (int a = 0; a < node->op->attr_count; ++a) {
    rn_strbuf_printf(&attrs, "%s%s=", a ? ", " : "", node->op->attrs[a].name);
    rn_attr_value_print(&attrs, &node->attrs[a]);
  }
  const char* last = "";
  for (int d = 0; d < placer->options->device_count; ++d) {
    const char* type = placer->options->devices[d]->type;
    if (strcmp(type, last) != 0) rn_strbuf_printf(&devices, "%s%s", d ? ", " : "", type);
    last = type;
  }
  rn_status_t status = rn_invalid_argument(
      "No OpKernel was registered to support Op '%s' used by {{node %.*s}} with these attrs: "
      "[%.*s]\n"
      "Registered devices: [%.*s]",
      node->op->name, RN_STR_ARGS(node->name), RN_STR_ARGS(rn_strbuf_view(&attrs)),
      RN_STR_ARGS(rn_strbuf_view(&devices)));
  rn_strbuf_clear(&attrs);
  rn_strbuf_clear(&devices);
  return status;
}

// There is a kernel, but not where the node must run.
static rn_status_t no_kernel_there(const placer_t* placer, const rn_ir_node_t* node) {
  return rn_invalid_argument(
      "Cannot assign a device for operation %.*s: Could not satisfy explicit device specification "
      "'%.*s' because no supported kernel for %s devices is available.",
      RN_STR_ARGS(node->name), RN_STR_ARGS(node->requested_device),
      placer->options->devices[first_of(placer, placer->asked)]->type);
}

// Puts the devices that |spec| allows into |asked|; true if there are any.
static bool ask_for(const placer_t* placer, const rn_device_spec_t* spec) {
  memset(placer->asked, 0, (size_t)placer->words * sizeof *placer->asked);
  for (int d = 0; d < placer->options->device_count; ++d)
    if (rn_device_spec_matches(spec, &placer->specs[d])) include(placer->asked, d);
  return first_of(placer, placer->asked) >= 0;
}

static rn_status_t find_requested(const placer_t* placer, const rn_ir_node_t* node) {
  rn_device_spec_t spec;
  if (!rn_device_spec_parse(node->requested_device, &spec))
    return rn_invalid_argument("Malformed device specification '%.*s' in node: {{node %.*s}}",
                               RN_STR_ARGS(node->requested_device), RN_STR_ARGS(node->name));
  if (ask_for(placer, &spec)) return RN_OK;
  // Soft placement ignores the type and the number of the device, but not the task.
  rn_device_spec_t softer = spec;
  softer.type = RN_STR("");
  softer.index = -1;
  if (placer->options->allow_soft_placement && ask_for(placer, &softer)) return RN_OK;
  return unknown_device(placer, node, &spec);
}

// Devices with a kernel for |node|, and those whose kernel is for nodes that ask for the device.
// Devices of one type are usually adjacent.
static void find_supported(const placer_t* placer, const rn_ir_node_t* node, word_t* out,
                           word_t* out_unwished) {
  const char* type = NULL;
  const rn_kernel_def_t* kernel = NULL;
  for (int d = 0; d < placer->options->device_count; ++d) {
    const rn_device_t* device = placer->options->devices[d];
    if (!type || strcmp(type, device->type) != 0) kernel = find_kernel(node, device);
    type = device->type;
    if (kernel) include(out, d);
    if (kernel && kernel->priority <= RN_PRIORITY_ON_REQUEST) include(out_unwished, d);
  }
}

static rn_status_t find_allowed(const placer_t* placer, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(placer->ir, index);
  word_t *out = set_of(placer, placer->masks, index),
         *out_supported = set_of(placer, placer->supported, index);
  copy_set(placer, placer->asked, placer->all);
  if (node->requested_device.size) RN_RETURN_IF_ERROR(find_requested(placer, node));
  if (!needs_kernel(node)) {
    copy_set(placer, out_supported, placer->all);
    copy_set(placer, out, placer->asked);
    return RN_OK;
  }
  find_supported(placer, node, out_supported, set_of(placer, placer->unwished, index));
  if (intersect(placer, placer->asked, out_supported, out)) return RN_OK;
  if (first_of(placer, out_supported) < 0) return no_kernel(placer, node);
  if (!placer->options->allow_soft_placement) return no_kernel_there(placer, node);
  copy_set(placer, out, out_supported);
  return RN_OK;
}

static int number_of(const placer_t* placer, const rn_device_t* device) {
  for (int d = 0; d < placer->options->device_count; ++d)
    if (placer->options->devices[d] == device) return d;
  return -1;
}

static bool has(const word_t* set, int device) {
  return set[device / WORD_BITS] >> device % WORD_BITS & 1;
}

static rn_status_t find_feasible(const placer_t* placer, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(placer->ir, index);
  word_t *out = set_of(placer, placer->masks, index),
         *out_supported = set_of(placer, placer->supported, index);
  rn_status_t status = find_allowed(placer, index);
  if (!rn_ok(status) && placer->is_survey) {
    rn_status_free(status);
    status = RN_OK;
    copy_set(placer, out, placer->all);
    copy_set(placer, out_supported, placer->all);
  }
  if (!rn_ok(status) || !placer->homes || !(node->op->flags & RN_OP_STATEFUL)) return status;
  int home = number_of(placer, rn_map_get(&placer->homes->devices, node->name));
  if (home < 0 || !has(out_supported, home)) return RN_OK;
  memset(out, 0, (size_t)placer->words * sizeof *out);
  include(out, home);
  copy_set(placer, out_supported, out);
  return RN_OK;
}

// Whether some device of |a| and one of |b| are of one task.
static bool share_task(const placer_t* placer, const word_t* a, const word_t* b) {
  for (int d = 0; d < placer->options->device_count; ++d) {
    rn_device_spec_t task = placer->specs[d];
    task.type = RN_STR("");
    task.index = -1;
    for (int e = 0; has(a, d) && e < placer->options->device_count; ++e)
      if (has(b, e) && rn_device_spec_matches(&task, &placer->specs[e])) return true;
  }
  return false;
}

// Colocates |a| with |b|. A user of state follows the state, whatever device was requested. With
// soft placement, state follows a user that has no kernel where the state should be.
static rn_status_t join(placer_t* placer, int32_t a, int32_t b, bool by_user) {
  int32_t x = find_root(placer, a), y = find_root(placer, b);
  if (x == y) return RN_OK;
  word_t *mine = set_of(placer, placer->masks, x), *other = set_of(placer, placer->masks, y);
  word_t* support = set_of(placer, placer->supported, x);
  word_t* supported = set_of(placer, placer->supported, y);
  bool meets = intersect(placer, mine, other, placer->fit);
  if (!meets && !by_user) meets = intersect(placer, support, other, placer->fit);
  if (!meets && !by_user && placer->options->allow_soft_placement)
    meets = intersect(placer, support, supported, placer->fit);
  // A function's own nodes go to the state, so the call may be on another device of its task.
  if (!meets && rn_op_names_function(rn_ir_node(placer->ir, a)->op) &&
      share_task(placer, mine, other))
    return RN_OK;
  if (!meets) {
    if (placer->is_survey || (by_user && placer->options->allow_soft_placement)) return RN_OK;
    const rn_ir_node_t *p = rn_ir_node(placer->ir, a), *q = rn_ir_node(placer->ir, b);
    return rn_invalid_argument(
        "Cannot assign a device for operation %.*s: Cannot colocate nodes {{node %.*s}} and {{node "
        "%.*s}} because no device "
        "type supports both of those nodes and the other nodes colocated with them, or they were "
        "assigned to different "
        "devices: '%.*s' and '%.*s'",
        RN_STR_ARGS(p->name), RN_STR_ARGS(p->name), RN_STR_ARGS(q->name),
        RN_STR_ARGS(p->requested_device), RN_STR_ARGS(q->requested_device));
  }
  placer->group[x] = y;
  copy_set(placer, other, placer->fit);
  intersect(placer, supported, support, supported);
  word_t *unwished = set_of(placer, placer->unwished, y),
         *more = set_of(placer, placer->unwished, x);
  for (int w = 0; w < placer->words; ++w) unwished[w] |= more[w];
  return RN_OK;
}

static rn_status_t name_nodes(placer_t* placer) {
  if (placer->by_name.count) return RN_OK;
  for (size_t n = 0; n < placer->ir->nodes.count; ++n)
    if (!placer->ir->nodes.items[n].is_removed)
      RN_RETURN_IF_ERROR(
          rn_map_put(&placer->by_name, placer->ir->nodes.items[n].name, (void*)(uintptr_t)(n + 1)));
  return RN_OK;
}

static rn_status_t join_class(placer_t* placer, int32_t index) {
  const rn_attr_value_t* value = rn_ir_attr(rn_ir_node(placer->ir, index), RN_STR("_class"));
  if (!value || !value->is_list || value->kind != RN_ATTR_STRING) return RN_OK;
  RN_RETURN_IF_ERROR(name_nodes(placer));
  rn_str_t prefix = RN_STR("loc:@");
  for (int32_t i = 0; i < value->count; ++i) {
    rn_str_t text = value->list_s[i];
    if (!rn_str_starts_with(text, prefix)) continue;
    uintptr_t found = (uintptr_t)rn_map_get(
        &placer->by_name, rn_str_n(text.data + prefix.size, text.size - prefix.size));
    if (found) RN_RETURN_IF_ERROR(join(placer, index, (int32_t)found - 1, true));
  }
  return RN_OK;
}

static rn_status_t join_neighbours(placer_t* placer, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(placer->ir, index);
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    rn_dtype_t type = rn_ir_node(placer->ir, source)->types[node->inputs[i].output];
    bool is_state = (rn_dtype_is_ref(type) && rn_ir_wants_ref(node, i)) || type == RN_RESOURCE;
    if (is_state && rn_ir_node(placer->ir, source)->feed < 0)
      RN_RETURN_IF_ERROR(join(placer, index, source, false));
  }
  return node->extra_count ? join_class(placer, index) : RN_OK;
}

// The device of |set| to use for |node|; it is not empty.
static int best_of(const placer_t* placer, const rn_ir_node_t* node, const word_t* set,
                   const word_t* unwished) {
  if (placer->defaults && !node->requested_device.size &&
      intersect(placer, placer->defaults, set, placer->fit))
    set = placer->fit;
  for (int d = 0; d < placer->options->device_count; ++d)
    if (placer->options->devices[d]->is_preferred && has(set, d) && !has(unwished, d)) return d;
  for (int d = 0; d < placer->options->device_count; ++d)
    if (has(set, d) && !has(unwished, d)) return d;
  return first_of(placer, set);
}

// Whether |node| computes without inputs for a single reader. It is placed after the reader.
static bool is_source(const placer_t* placer, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(placer->ir, index);
  return placer->uses && node->input_count == 0 && node->output_count == 1 && node->feed < 0 &&
         !rn_dtype_is_ref(node->types[0]) && rn_ir_only_reader(&placer->uses[index]) >= 0;
}

// The node whose device |index| should share if it may; -1: none.
static int32_t wanted_neighbour(const placer_t* placer, int32_t index) {
  if (!placer->uses) return -1;
  const rn_ir_node_t* node = rn_ir_node(placer->ir, index);
  if (is_source(placer, index)) return rn_ir_only_reader(&placer->uses[index]);
  return node->op->flags & RN_OP_METADATA && node->input_count ? node->inputs[0].node : -1;
}

// Finds the device that the wishes give to each group.
static rn_status_t find_wishes(placer_t* placer) {
  const rn_wishes_t* wishes = placer->options->wishes;
  size_t n = placer->ir->nodes.count;
  if (!wishes) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&placer->ir->arena, n + 1, &placer->wished));
  for (size_t i = 0; i < n; ++i) {
    const rn_ir_node_t* node = &placer->ir->nodes.items[i];
    if (node->is_removed) continue;
    int32_t root = find_root(placer, (int32_t)i);
    intptr_t device = (intptr_t)rn_map_get(&wishes->devices, node->name) - 1;
    if (placer->wished[root] || device < 0 || device >= placer->options->device_count) continue;
    if (has(set_of(placer, placer->masks, root), (int)device))
      placer->wished[root] = (int32_t)device + 1;
  }
  return RN_OK;
}

// The device of |set| that is wished for |index|, or for an input of it if the wishes do not know
// it; -1: none.
static int wished_device(placer_t* placer, int32_t index, const word_t* set) {
  if (!placer->wished) return -1;
  const rn_ir_node_t* node = rn_ir_node(placer->ir, index);
  int32_t root = find_root(placer, index);
  if (placer->wished[root]) return placer->wished[root] - 1;
  if (root != index || node->requested_device.size) return -1;
  for (int32_t i = 0; i < node->input_count; ++i) {
    int device = placer->wished[find_root(placer, node->inputs[i].node)] - 1;
    if (device >= 0 && has(set, device)) return device;
  }
  return -1;
}

static void choose(placer_t* placer, int32_t index) {
  rn_ir_node_t* node = rn_ir_node(placer->ir, index);
  const int32_t root = find_root(placer, index);
  const word_t* set = set_of(placer, placer->masks, root);
  int device = best_of(placer, node, set, set_of(placer, placer->unwished, root));
  RN_ASSERT(device >= 0);  // find_feasible and join leave no set empty
  int wished = wished_device(placer, index, set);
  if (wished >= 0) device = wished;
  int32_t neighbour = wished < 0 ? wanted_neighbour(placer, index) : -1;
  if (neighbour >= 0) {
    int near = number_of(placer, rn_ir_node(placer->ir, neighbour)->device);
    if (near >= 0 && has(set, near)) device = near;
  }
  // A constant needs a kernel on the CPU only: other devices receive it.
  if (node->feed >= 0 || (node->constant && !find_kernel(node, placer->options->devices[device])))
    device = 0;
  rn_device_t* const* memory = placer->options->feed_memory;
  if (node->feed >= 0 && memory && memory[node->feed])
    device = number_of(placer, memory[node->feed]);
  node->device = placer->options->devices[device];
  node->kernel = node->feed >= 0 ? NULL : find_kernel(node, node->device);
  RN_ASSERT(placer->is_survey || node->kernel || !needs_kernel(node));  // invariant 20a
  if (placer->options->log_placement && !placer->is_survey)
    rn_log(placer->options->env, RN_LOG_INFO, "%.*s: (%s): %.*s", RN_STR_ARGS(node->name),
           node->op->name, RN_STR_ARGS(node->device->name));
}

static rn_status_t prepare(placer_t* placer) {
  rn_arena_t* arena = &placer->ir->arena;
  int devices = placer->options->device_count;
  placer->words = devices / WORD_BITS + 1;
  size_t words = (size_t)placer->words, n = placer->ir->nodes.count + 1, total;
  if (!rn_mul_ok(n, words, &total)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)devices, &placer->specs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, words, &placer->all));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, words, &placer->asked));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, words, &placer->fit));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &placer->group));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, total, &placer->masks));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, total, &placer->supported));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, total, &placer->unwished));
  for (int d = 0; d < devices; ++d) {
    rn_device_spec_parse(placer->options->devices[d]->name, &placer->specs[d]);
    include(placer->all, d);
  }
  return RN_OK;
}

// A node that uses a fed resource goes where that is, whatever device was requested.
static void follow_feeds(const placer_t* placer) {
  const rn_str_t* devices = placer->options->feed_devices;
  for (size_t n = 0; devices && n < placer->ir->nodes.count; ++n) {
    rn_ir_node_t* node = &placer->ir->nodes.items[n];
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i) {
      const rn_ir_node_t* source = rn_ir_node(placer->ir, node->inputs[i].node);
      bool is_fed = source->feed >= 0 && source->types[node->inputs[i].output] == RN_RESOURCE;
      if (is_fed && devices[source->feed].size) node->requested_device = devices[source->feed];
    }
  }
}

static bool has_choice(const rn_place_options_t* options) {
  for (int d = 0; d < options->device_count; ++d)
    if (options->devices[d]->is_preferred) return true;
  return false;
}

// An unknown default device is an error if a node needs it.
static rn_status_t find_defaults(placer_t* placer) {
  for (size_t n = 0; placer->options->default_device.size && n < placer->ir->nodes.count; ++n) {
    rn_ir_node_t node = placer->ir->nodes.items[n];
    if (node.is_removed || node.feed >= 0 || node.requested_device.size) continue;
    node.requested_device = placer->options->default_device;
    RN_RETURN_IF_ERROR(find_requested(placer, &node));
    RN_RETURN_IF_ERROR(
        RN_ARENA_ARRAY(&placer->ir->arena, (size_t)placer->words, &placer->defaults));
    copy_set(placer, placer->defaults, placer->asked);
    return RN_OK;
  }
  return RN_OK;
}

// Finds the groups and where they may go.
static rn_status_t find_groups(placer_t* placer) {
  size_t n = placer->ir->nodes.count;
  RN_RETURN_IF_ERROR(prepare(placer));
  RN_RETURN_IF_ERROR(find_defaults(placer));
  follow_feeds(placer);
  if (has_choice(placer->options)) RN_RETURN_IF_ERROR(rn_ir_count_uses(placer->ir, &placer->uses));
  for (size_t i = 0; i < n; ++i) {
    placer->group[i] = (int32_t)i;
    if (placer->ir->nodes.items[i].is_removed) continue;
    rn_status_t status = find_feasible(placer, (int32_t)i);
    if (!rn_ok(status))
      return rn_status_annotate(status, "\n\t [[%.*s]]",
                                RN_STR_ARGS(placer->ir->nodes.items[i].name));
  }
  for (size_t i = 0; placer->options->device_count > 1 && i < n; ++i)
    if (!placer->ir->nodes.items[i].is_removed)
      RN_RETURN_IF_ERROR(join_neighbours(placer, (int32_t)i));
  return RN_OK;
}

static rn_status_t place(placer_t* placer) {
  size_t n = placer->ir->nodes.count;
  RN_RETURN_IF_ERROR(find_groups(placer));
  RN_RETURN_IF_ERROR(find_wishes(placer));
  for (size_t i = 0; i < n; ++i)
    if (!placer->ir->nodes.items[i].is_removed && !is_source(placer, (int32_t)i))
      choose(placer, (int32_t)i);
  for (size_t i = 0; i < n; ++i)
    if (!placer->ir->nodes.items[i].is_removed && is_source(placer, (int32_t)i))
      choose(placer, (int32_t)i);
  return RN_OK;
}

static rn_status_t place_ir(placer_t placer) {
  rn_map_init(&placer.by_name, placer.ir->allocator);
  rn_status_t status = place(&placer);
  rn_map_clear(&placer.by_name);
  return status;
}

static rn_status_t place_nodes(rn_homes_t* homes, const rn_place_options_t* options,
                               rn_node_t* const* nodes, size_t count) {
  rn_ir_t* ir = NULL;
  rn_signature_t all = {.targets = nodes, .target_count = (int32_t)count};
  RN_RETURN_IF_ERROR(rn_ir_create(homes->graph, &all, &ir));
  rn_status_t status = rn_pass_inline_calls(ir, &homes->calls);
  if (rn_ok(status))
    status = place_ir((placer_t){.ir = ir, .options = options, .homes = homes, .is_survey = true});
  if (rn_ok(status)) status = rn_homes_record(homes, ir);
  rn_ir_destroy(ir);
  return status;
}

// Places the whole graph if it has grown. A graph that cannot be placed as a whole leaves homes as
// they were: the step at hand may be sound.
static rn_status_t survey(rn_homes_t* homes, const rn_place_options_t* options) {
  rn_arena_t scratch;
  rn_node_t** nodes = NULL;
  rn_arena_init(&scratch, homes->arena.allocator);
  rn_mutex_lock(&homes->graph->mutex);
  size_t count = homes->graph->nodes.count;
  rn_status_t status = count == homes->seen ? RN_OK : RN_ARENA_ARRAY(&scratch, count + 1, &nodes);
  if (nodes) memcpy(nodes, homes->graph->nodes.items, count * sizeof *nodes);
  rn_mutex_unlock(&homes->graph->mutex);
  if (nodes) status = place_nodes(homes, options, nodes, count);
  rn_arena_clear(&scratch);
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  rn_status_free(status);
  homes->seen = count;
  return RN_OK;
}

rn_status_t rn_place_find_groups(rn_ir_t* ir, const rn_place_options_t* options,
                                 rn_place_groups_t* out) {
  placer_t placer = {
      .ir = ir, .options = options, .homes = options->homes, .is_survey = options->is_lenient};
  size_t n = ir->nodes.count;
  if (options->device_count > WORD_BITS)
    return rn_invalid_argument("A search for a placement takes at most %d devices, not %d",
                               WORD_BITS, options->device_count);
  rn_map_init(&placer.by_name, ir->allocator);
  rn_status_t status = find_groups(&placer);
  rn_map_clear(&placer.by_name);
  RN_RETURN_IF_ERROR(status);
  out->group = placer.group;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &out->allowed));
  for (size_t i = 0; i < n; ++i) {
    out->group[i] = find_root(&placer, (int32_t)i);
    word_t mask = *set_of(&placer, placer.masks, out->group[i]);
    word_t unwished = *set_of(&placer, placer.unwished, out->group[i]);
    out->allowed[out->group[i]] = mask & ~unwished ? mask & ~unwished : mask;
  }
  return RN_OK;
}

rn_status_t rn_place(rn_ir_t* ir, const rn_place_options_t* options) {
  placer_t placer = {.ir = ir, .options = options, .is_survey = options->is_lenient};
  rn_homes_t* homes = options->homes;
  bool keeps_homes = has_choice(options) || options->automatic;
  if (!homes || homes->graph != ir->graph || !keeps_homes) return place_ir(placer);
  rn_mutex_lock(&homes->mutex);
  rn_place_options_t wished = *options;
  placer.homes = homes;
  placer.options = &wished;
  rn_status_t status = RN_OK;
  if (options->automatic) status = rn_auto_place_wish(options->automatic, &wished);
  if (rn_ok(status)) status = survey(homes, &wished);
  if (rn_ok(status)) status = place_ir(placer);
  rn_mutex_unlock(&homes->mutex);
  return status;
}
