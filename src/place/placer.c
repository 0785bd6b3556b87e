// The placer: feasible devices for each node, groups that must stay together, then a choice.
//
// A node may go where its requested device allows and where there is a kernel for it. Nodes stay
// together if one holds state that another uses (reference and resource edges), or if the user says
// so ("_class" = "loc:@node"). Among what is left the first device wins: the CPU comes first, so
// nothing goes to an accelerator that was not asked for by name.
#include "place/place.h"

#define MAX_DEVICES 64
// No label of a kernel is as long.
#define MAX_LABEL 64

typedef uint64_t mask_t;  // of devices

typedef struct placer_t {
  rn_ir_t* ir;
  const rn_place_options_t* options;
  rn_device_spec_t specs[MAX_DEVICES];
  int32_t* group;     // by node: union-find
  mask_t* masks;      // by node: where it may go; of the whole group at its root
  mask_t* supported;  // likewise: where there are kernels, whatever was requested
  rn_map_t by_name;   // node name -> node number + 1, made when a "_class" asks for it
} placer_t;

static rn_ir_node_t* node_at(const placer_t* placer, int32_t index) {
  return &placer->ir->nodes.items[index];
}

static int32_t find_root(placer_t* placer, int32_t index) {
  while (placer->group[index] != index)
    index = placer->group[index] = placer->group[placer->group[index]];
  return index;
}

// The executor runs these itself, on any device.
static bool needs_kernel(const rn_ir_node_t* node) {
  uint8_t role = node->op->role;
  bool is_control_flow = role >= RN_ROLE_SWITCH && role <= RN_ROLE_CONTROL_TRIGGER;
  return node->feed < 0 && role != RN_ROLE_NO_OP && !is_control_flow && !node->constant;
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
  bool is_gpu = rn_str_is(spec->type, "GPU");
  rn_status_t status = rn_invalid_argument(
      "Cannot assign a device for operation %.*s: {{node %.*s}} was explicitly assigned to %.*s "
      "but available devices are "
      "[ %.*s ]. Make sure the device specification refers to a valid device.%s",
      RN_STR_ARGS(node->name), RN_STR_ARGS(node->name), RN_STR_ARGS(node->requested_device),
      RN_STR_ARGS(rn_strbuf_view(&buf)),
      is_gpu ? " The requested device appears to be a GPU, but CUDA is not enabled." : "");
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
static rn_status_t no_kernel_there(const placer_t* placer, const rn_ir_node_t* node,
                                   mask_t requested) {
  return rn_invalid_argument(
      "Cannot assign a device for operation %.*s: Could not satisfy explicit device specification "
      "'%.*s' because no supported kernel for %s devices is available.",
      RN_STR_ARGS(node->name), RN_STR_ARGS(node->requested_device),
      placer->options->devices[__builtin_ctzll(requested)]->type);
}

static mask_t matching(const placer_t* placer, const rn_device_spec_t* spec) {
  mask_t mask = 0;
  for (int d = 0; d < placer->options->device_count; ++d)
    if (rn_device_spec_matches(spec, &placer->specs[d])) mask |= (mask_t)1 << d;
  return mask;
}

static rn_status_t requested_mask(const placer_t* placer, const rn_ir_node_t* node, mask_t* out) {
  rn_device_spec_t spec;
  if (!rn_device_spec_parse(node->requested_device, &spec))
    return rn_invalid_argument("Malformed device specification '%.*s' in node: {{node %.*s}}",
                               RN_STR_ARGS(node->requested_device), RN_STR_ARGS(node->name));
  *out = matching(placer, &spec);
  if (*out) return RN_OK;
  // Soft placement forgives the kind and the number of the device, not the task.
  rn_device_spec_t softer = spec;
  softer.type = RN_STR("");
  softer.index = -1;
  if (placer->options->allow_soft_placement) *out = matching(placer, &softer);
  return *out ? RN_OK : unknown_device(placer, node, &spec);
}

static rn_status_t feasible_mask(const placer_t* placer, const rn_ir_node_t* node, mask_t* out,
                                 mask_t* out_supported) {
  mask_t requested = placer->options->device_count >= 64
                         ? ~(mask_t)0
                         : ((mask_t)1 << placer->options->device_count) - 1;
  mask_t all = requested;
  *out_supported = all;
  if (node->requested_device.size) RN_RETURN_IF_ERROR(requested_mask(placer, node, &requested));
  if (!needs_kernel(node)) {
    *out = requested;
    return RN_OK;
  }
  mask_t supported = 0;
  for (int d = 0; d < placer->options->device_count; ++d)
    if (find_kernel(node, placer->options->devices[d])) supported |= (mask_t)1 << d;
  *out_supported = supported;
  *out = requested & supported;
  if (!*out && supported && placer->options->allow_soft_placement) *out = all & supported;
  if (*out) return RN_OK;
  return supported ? no_kernel_there(placer, node, requested) : no_kernel(placer, node);
}

// Puts |a| where |b| is. Who uses state follows it, wherever else it was asked to be.
static rn_status_t join(placer_t* placer, int32_t a, int32_t b, bool by_user) {
  int32_t x = find_root(placer, a), y = find_root(placer, b);
  if (x == y) return RN_OK;
  mask_t both = placer->masks[x] & placer->masks[y];
  if (!both && !by_user) both = placer->supported[x] & placer->masks[y];
  if (!both) {
    if (by_user && placer->options->allow_soft_placement) return RN_OK;
    const rn_ir_node_t *p = node_at(placer, a), *q = node_at(placer, b);
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
  placer->masks[y] = both;
  placer->supported[y] &= placer->supported[x];
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
  const rn_attr_value_t* value = rn_ir_attr(node_at(placer, index), RN_STR("_class"));
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
  const rn_ir_node_t* node = node_at(placer, index);
  for (int32_t i = 0; i < node->input_count; ++i) {
    int32_t source = node->inputs[i].node;
    rn_dtype_t type = node_at(placer, source)->types[node->inputs[i].output];
    bool is_state = (rn_dtype_is_ref(type) && rn_ir_wants_ref(node, i)) || type == RN_RESOURCE;
    if (is_state && node_at(placer, source)->feed < 0)
      RN_RETURN_IF_ERROR(join(placer, index, source, false));
  }
  return node->extra_count ? join_class(placer, index) : RN_OK;
}

static void choose(placer_t* placer, int32_t index) {
  rn_ir_node_t* node = node_at(placer, index);
  int device = __builtin_ctzll(placer->masks[find_root(placer, index)]);
  // A value that is known already needs no kernel but on the CPU: others receive it.
  if (node->feed >= 0 || (node->constant && !find_kernel(node, placer->options->devices[device])))
    device = 0;
  node->device = placer->options->devices[device];
  node->kernel = node->feed >= 0 ? NULL : find_kernel(node, node->device);
  if (placer->options->log_placement)
    rn_log(placer->options->env, RN_LOG_INFO, "%.*s: (%s): %.*s", RN_STR_ARGS(node->name),
           node->op->name, RN_STR_ARGS(node->device->name));
}

static rn_status_t place(placer_t* placer) {
  size_t n = placer->ir->nodes.count;
  if (placer->options->device_count > MAX_DEVICES)
    return rn_invalid_argument("A session may have %d devices at most", MAX_DEVICES);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&placer->ir->arena, n + 1, &placer->group));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&placer->ir->arena, n + 1, &placer->masks));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&placer->ir->arena, n + 1, &placer->supported));
  for (int d = 0; d < placer->options->device_count; ++d)
    rn_device_spec_parse(placer->options->devices[d]->name, &placer->specs[d]);
  for (size_t i = 0; i < n; ++i) {
    placer->group[i] = (int32_t)i;
    if (placer->ir->nodes.items[i].is_removed) continue;
    rn_status_t status = feasible_mask(placer, &placer->ir->nodes.items[i], &placer->masks[i],
                                       &placer->supported[i]);
    if (!rn_ok(status))
      return rn_status_annotate(status, "\n\t [[%.*s]]",
                                RN_STR_ARGS(placer->ir->nodes.items[i].name));
  }
  for (size_t i = 0; placer->options->device_count > 1 && i < n; ++i)
    if (!placer->ir->nodes.items[i].is_removed)
      RN_RETURN_IF_ERROR(join_neighbours(placer, (int32_t)i));
  for (size_t i = 0; i < n; ++i)
    if (!placer->ir->nodes.items[i].is_removed) choose(placer, (int32_t)i);
  return RN_OK;
}

rn_status_t rn_place(rn_ir_t* ir, const rn_place_options_t* options) {
  placer_t placer = {.ir = ir, .options = options};
  rn_map_init(&placer.by_name, ir->allocator);
  rn_status_t status = place(&placer);
  rn_map_clear(&placer.by_name);
  return status;
}
