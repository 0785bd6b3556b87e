// The kernel registry, and creating a kernel for a node.
#include "framework/kernel.h"

#include "base/map.h"
#include "base/vec.h"
#include "framework/op_face.h"

// Rows by op, one chain per op in order of registration. Built once from the families; plug-ins
// append rows under the lock. If there is no memory for it, lookups search the families directly.
typedef struct row_t {
  const rn_kernel_def_t* def;
  struct row_t* _Atomic next;
} row_t;

static struct {
  rn_mutex_t mutex;
  bool is_built;
  rn_map_t by_op;  // op name -> first row
  row_t* rows;     // of the families, in one block
} registry = {.mutex = RN_MUTEX_INIT};

// Puts |row| at the end of its op's chain.
static rn_status_t link_row(row_t* row, const rn_kernel_def_t* def) {
  row->def = def;
  rn_str_t op = rn_str(def->op);
  row_t* first = rn_map_get(&registry.by_op, op);
  if (!first) return rn_map_put(&registry.by_op, op, row);
  while (first->next) first = first->next;
  first->next = row;
  return RN_OK;
}

static size_t count_builtin(void) {
  size_t count = 0;
  for (const rn_kernel_family_t* const* family = rn_builtin_kernels; *family; ++family)
    count += (*family)->count;
  return count;
}

static rn_status_t add_families(void) {
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_allocator_system(), count_builtin(), &registry.rows));
  row_t* row = registry.rows;
  for (const rn_kernel_family_t* const* family = rn_builtin_kernels; *family; ++family)
    for (size_t i = 0; i < (*family)->count; ++i)
      RN_RETURN_IF_ERROR(link_row(row++, &(*family)->rows[i]));
  return RN_OK;
}

// Builds everything or nothing; the next lookup after a failure tries again.
static rn_status_t build_locked(void) {
  if (registry.is_built) return RN_OK;
  rn_map_init(&registry.by_op, rn_allocator_system());
  rn_status_t status = add_families();
  registry.is_built = rn_ok(status);
  if (!registry.is_built) {
    rn_map_clear(&registry.by_op);
    RN_FREE_ARRAY(rn_allocator_system(), registry.rows, count_builtin());
    registry.rows = NULL;
  }
  return status;
}

static bool type_holds(const rn_op_def_t* op, const rn_attr_value_t* attrs,
                       const rn_kernel_type_t* type) {
  int index = rn_op_attr_index(op, rn_str(type->attr));
  if (index < 0) return false;
  const rn_attr_value_t* value = &attrs[index];
  if (!value->is_list) return rn_dtypes_has(type->types, value->type);
  for (int i = 0; i < value->count; ++i)
    if (!rn_dtypes_has(type->types, value->list_type[i])) return false;
  return true;
}

static bool row_fits(const rn_kernel_def_t* def, const rn_op_def_t* op,
                     const rn_attr_value_t* attrs, const char* label, const char* device) {
  if (strcmp(def->device, device) != 0) return false;
  if (strcmp(def->label ? def->label : "", label ? label : "") != 0) return false;
  for (size_t i = 0; i < sizeof def->types / sizeof *def->types && def->types[i].attr; ++i)
    if (!type_holds(op, attrs, &def->types[i])) return false;
  return true;
}

// False if there is no memory for the table; then there are no plug-in rows either.
static bool first_row(rn_str_t op, row_t** out) {
  rn_mutex_lock(&registry.mutex);
  rn_status_t status = build_locked();
  bool is_built = rn_ok(status);
  *out = is_built ? rn_map_get(&registry.by_op, op) : NULL;
  rn_status_free(status);
  rn_mutex_unlock(&registry.mutex);
  return is_built;
}

static const rn_kernel_def_t* find_without_table(const rn_op_def_t* op,
                                                 const rn_attr_value_t* attrs, const char* label,
                                                 const char* device) {
  const rn_kernel_def_t* best = NULL;
  const char* name = rn_op_base_name(op->name);
  for (const rn_kernel_family_t* const* family = rn_builtin_kernels; *family; ++family) {
    for (size_t i = 0; i < (*family)->count; ++i) {
      const rn_kernel_def_t* def = &(*family)->rows[i];
      if (strcmp(def->op, name) == 0 && row_fits(def, op, attrs, label, device) &&
          (!best || def->priority > best->priority))
        best = def;
    }
  }
  return best;
}

static const rn_kernel_def_t* best_row(const row_t* first, const rn_op_def_t* op,
                                       const rn_attr_value_t* attrs, const char* label,
                                       const char* device) {
  const rn_kernel_def_t* best = NULL;
  for (const row_t* row = first; row; row = row->next)
    if (row_fits(row->def, op, attrs, label, device) &&
        (!best || row->def->priority > best->priority))
      best = row->def;
  return best;
}

const rn_kernel_def_t* rn_kernel_find(const rn_op_def_t* op, const rn_attr_value_t* attrs,
                                      const char* label, const char* device) {
  row_t* first = NULL;
  if (!first_row(rn_str(rn_op_base_name(op->name)), &first))
    return find_without_table(op, attrs, label, device);
  const rn_kernel_def_t* found = best_row(first, op, attrs, label, device);
  return found ? found : best_row(first, op, attrs, label, "DEFAULT");
}

rn_status_t rn_kernel_register(const rn_kernel_def_t* def) {
  rn_mutex_lock(&registry.mutex);
  rn_status_t status = build_locked();
  row_t* row = NULL;
  if (rn_ok(status)) status = RN_NEW(rn_allocator_system(), &row);
  if (rn_ok(status)) {
    status = link_row(row, def);
    if (!rn_ok(status)) RN_FREE(rn_allocator_system(), row);
  }
  rn_mutex_unlock(&registry.mutex);
  return status;
}

static int compare_rows(const void* a, const void* b) {
  return strcmp((*(row_t* const*)a)->def->op, (*(row_t* const*)b)->def->op);
}

rn_status_t rn_kernel_each(rn_status_t (*visit)(const rn_kernel_def_t* def, void* arg), void* arg) {
  RN_VEC(row_t*) firsts = {0};
  rn_allocator_t allocator = rn_allocator_default();
  rn_mutex_lock(&registry.mutex);
  rn_status_t status = build_locked();
  size_t position = 0;
  const rn_map_entry_t* entry;
  while (rn_ok(status) && (entry = rn_map_next(&registry.by_op, &position)))
    status = rn_vec_push(&firsts, allocator, entry->value);
  rn_mutex_unlock(&registry.mutex);
  if (firsts.count) qsort(firsts.items, firsts.count, sizeof *firsts.items, compare_rows);
  for (size_t i = 0; rn_ok(status) && i < firsts.count; ++i)
    for (row_t* row = firsts.items[i]; rn_ok(status) && row; row = row->next)
      status = visit(row->def, arg);
  rn_vec_free(&firsts, allocator);
  return status;
}

bool rn_kernel_arg_is_host(const rn_kernel_def_t* def, const rn_arg_def_t* arg, rn_dtype_t dtype) {
  // A device cannot follow pointers into host memory.
  if (def->flags & RN_KERNEL_ON_HOST || !rn_dtype_is_plain(rn_dtype_base(dtype))) return true;
  for (const char* const* name = def->host_args; name && *name; ++name)
    if (strcmp(*name, arg->name) == 0) return true;
  return false;
}

static void mark_host(const rn_kernel_def_t* def, const rn_kernel_init_t* init,
                      const rn_arg_def_t* args, int arg_count, const rn_dtype_t* types,
                      bool* is_host, int flat_count) {
  int flat = 0;
  for (int a = 0; a < arg_count; ++a) {
    int length = rn_arg_length(&args[a], init->attrs);
    for (int i = 0; i < length && flat < flat_count; ++i, ++flat)
      is_host[flat] = init->is_host || rn_kernel_arg_is_host(def, &args[a], types[flat]);
  }
}

// The size of the block that holds the kernel, its types, host marks, name and state.
static size_t kernel_block(const rn_kernel_def_t* def, const rn_kernel_init_t* init,
                           size_t* out_state) {
  size_t types = (size_t)init->input_count + (size_t)init->output_count;
  size_t size =
      sizeof(rn_kernel_t) + types * (sizeof(rn_dtype_t) + sizeof(bool)) + init->node.size + 1;
  size = (size + 15) & ~(size_t)15;
  *out_state = size;
  return size + def->state_size;
}

rn_status_t rn_kernel_create(const rn_kernel_def_t* def, const rn_kernel_init_t* init,
                             rn_kernel_t** out) {
  *out = NULL;
  size_t state_offset;
  size_t size = kernel_block(def, init, &state_offset);
  rn_kernel_t* kernel = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(init->allocator, size, (void**)&kernel));
  rn_dtype_t* types = (rn_dtype_t*)(kernel + 1);
  bool* hosts = (bool*)(types + init->input_count + init->output_count);
  char* name = (char*)(hosts + init->input_count + init->output_count);
  for (int i = 0; i < init->input_count; ++i) types[i] = init->input_types[i];
  for (int i = 0; i < init->output_count; ++i) types[init->input_count + i] = init->output_types[i];
  memcpy(name, init->node.data, init->node.size);
  mark_host(def, init, init->op->inputs, init->op->input_count, types, hosts, init->input_count);
  mark_host(def, init, init->op->outputs, init->op->output_count, types + init->input_count,
            hosts + init->input_count, init->output_count);
  *kernel = (rn_kernel_t){
      .def = def,
      .op = init->op,
      .node = rn_str_n(name, init->node.size),
      .device = init->device,
      .resources = init->resources,
      .allocator = init->allocator,
      .device_memory = def->flags & RN_KERNEL_ON_HOST ? init->host_memory : init->device_memory,
      .host_memory = init->host_memory,
      .input_count = init->input_count,
      .output_count = init->output_count,
      .input_types = types,
      .output_types = types + init->input_count,
      .input_is_host = hosts,
      .output_is_host = hosts + init->input_count,
      .state = (char*)kernel + state_offset,
      .block_size = size,
  };
  if (def->init) {
    rn_kernel_init_t own = *init;
    own.def = def;
    rn_status_t status = def->init(&own, kernel->state);
    if (!rn_ok(status)) {
      rn_kernel_destroy(kernel);
      return status;
    }
  }
  *out = kernel;
  return RN_OK;
}

void rn_kernel_destroy(rn_kernel_t* kernel) {
  if (!kernel) return;
  if (kernel->def->destroy) kernel->def->destroy(kernel->state);
  rn_free(kernel->allocator, kernel, kernel->block_size);
}
