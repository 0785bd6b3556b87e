// Variables: creates them, finds them by name, and adds them to collections.
#include "train/store.h"
#include "train/words.h"

// "(2, 3)", "(2,)", "()": how TensorFlow's Python prints shapes.
static void print_dims(rn_strbuf_t* buf, const int64_t* dims, int rank) {
  rn_strbuf_append(buf, RN_STR("("));
  for (int i = 0; i < rank; ++i) {
    if (i) rn_strbuf_append(buf, RN_STR(", "));
    if (dims[i] < 0)
      rn_strbuf_append(buf, RN_STR("None"));
    else
      rn_strbuf_printf(buf, "%lld", (long long)dims[i]);
  }
  rn_strbuf_append(buf, rank == 1 ? RN_STR(",)") : RN_STR(")"));
}

// "float32" for RN_FLOAT: the other names are those of rn_dtype_name.
static const char* type_name(int dtype) {
  return dtype == RN_FLOAT    ? "float32"
         : dtype == RN_DOUBLE ? "float64"
         : dtype == RN_HALF   ? "float16"
                              : rn_dtype_name((rn_dtype_t)dtype);
}

static rn_status_t check_dims(rn_str_t name, const int64_t* dims, int rank) {
  bool is_full = rank >= 0 && rank <= RN_MAX_RANK && (rank == 0 || dims);
  for (int i = 0; is_full && i < rank; ++i) is_full = dims[i] >= 0;
  if (is_full) return RN_OK;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_strbuf_printf(&buf, "Shape of a new variable (%.*s) must be fully defined, but instead was ",
                   RN_STR_ARGS(name));
  if (rank < 0 || rank > RN_MAX_RANK || (rank > 0 && !dims))
    rn_strbuf_append(&buf, RN_STR("<unknown>"));
  else
    print_dims(&buf, dims, rank);
  rn_strbuf_append(&buf, RN_STR("."));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &buf);
}

static rn_status_t check_shared(const rn_var_t* v, rn_str_t name, const int64_t* dims, int rank,
                                int dtype) {
  bool fits = rank == v->rank && (rank == 0 || dims);
  for (int i = 0; fits && i < rank; ++i) fits = dims[i] < 0 || dims[i] == v->dims[i];
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  if (!fits && rank >= 0 && rank <= RN_MAX_RANK && (rank == 0 || dims)) {
    rn_strbuf_printf(&buf, "Trying to share variable %.*s, but specified shape ",
                     RN_STR_ARGS(name));
    print_dims(&buf, dims, rank);
    rn_strbuf_append(&buf, RN_STR(" and found shape "));
    print_dims(&buf, v->dims, v->rank);
    rn_strbuf_append(&buf, RN_STR("."));
    return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &buf);
  }
  if (dtype != v->dtype)
    return rn_invalid_argument(
        "Trying to share variable %.*s, but specified dtype %s and found dtype %s.",
        RN_STR_ARGS(name), type_name(dtype), type_name(v->dtype));
  return RN_OK;
}

static rn_edge_t read_node(rn_scope_t* scope, const rn_var_t* v, const char* name) {
  return v->is_resource ? rn_ReadVariableOp(scope, v->handle, v->dtype, .name = name)
                        : rn_Identity(scope, v->handle, .name = name);
}

// The nodes of a variable: itself at |outer|, what belongs to it at |inner| ("name/").
static void build(rn_scope_t* outer, rn_scope_t* inner, rn_scope_t* init, rn_var_t* v,
                  const char* name, const rn_variable_options_t* options) {
  v->handle = v->is_resource ? rn_VarHandleOp(outer, v->dtype, v->dims, v->rank,
                                              .shared_name = name, .name = name)
                             : rn_VariableV2(outer, v->dims, v->rank, v->dtype, .name = name);
  if (!v->initial_value.node)
    v->initial_value = rn_initial_value(init, options->initializer, v->dims, v->rank, v->dtype);
  if (v->is_resource) {
    v->init = rn_AssignVariableOp(inner, v->handle, v->initial_value, .name = "Assign");
    v->value = read_node(inner, v, "Read/ReadVariableOp");
  } else {
    v->init = rn_Assign(inner, v->handle, v->initial_value, .name = "Assign").node;
    v->value = read_node(inner, v, "read");
  }
}

// Adds the variable to the store and its collections.
static void file_away(rn_scope_t* scope, rn_scope_t* inner, const rn_var_t* v,
                      const rn_variable_options_t* options) {
  rn_collect_variable(scope, options->collection ? options->collection : RN_GLOBAL_VARIABLES, v);
  if (v->is_trainable) rn_collect_variable(scope, RN_TRAINABLE_VARIABLES, v);
  if (!options->regularizer.make || !rn_dtype_is_floating((rn_dtype_t)v->dtype)) return;
  rn_scope_t* part = rn_scope_child(inner, "Regularizer");
  rn_collect(scope, RN_REGULARIZATION_LOSSES,
             options->regularizer.make(part, &options->regularizer, v->value));
  rn_scope_destroy(part);
}

static rn_status_t make(rn_scope_t* scope, rn_store_t* store, rn_str_t name, rn_var_t* v,
                        const rn_variable_options_t* options) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, store->allocator);
  rn_strbuf_printf(&text, "%.*s/Initializer/", RN_STR_ARGS(name));
  rn_status_t status = rn_strbuf_status(&text);
  if (!rn_ok(status)) {
    rn_strbuf_clear(&text);
    return status;
  }
  rn_scope_t* outer = rn_scope_at(scope, RN_STR(""));
  rn_scope_t* inner = rn_scope_at(scope, rn_str_n(text.data, name.size + 1));
  rn_scope_t* init = rn_scope_at(scope, rn_strbuf_view(&text));
  text.data[name.size] = 0;
  if (outer && inner && init) {
    bool is_local = options->collection && strcmp(options->collection, RN_LOCAL_VARIABLES) == 0;
    status =
        rn_setter_place(scope, name, v, is_local, (rn_scope_t* const[]){outer, inner, init}, 3);
    if (rn_ok(status)) build(outer, inner, init, v, text.data, options);
  }
  if (rn_ok(status) && rn_scope_ok(scope)) {
    v->name = v->handle.node->name.data;
    file_away(scope, inner, v, options);
  }
  rn_scope_destroy(init);
  rn_scope_destroy(inner);
  rn_scope_destroy(outer);
  rn_strbuf_clear(&text);
  return status;
}

const rn_var_t* rn_var_make(rn_scope_t* scope, rn_str_t name, const int64_t* dims, int rank,
                            rn_edge_t initial_value, const rn_variable_options_t* options) {
  rn_store_t* store = rn_store_of(scope);
  if (!store) return NULL;
  rn_var_t* v = NULL;
  rn_shape_t shape = {rank, dims};
  rn_status_t status = check_dims(name, dims, rank);
  if (rn_ok(status)) status = RN_ARENA_NEW(&store->arena, &v);
  if (rn_ok(status)) {
    *v = (rn_var_t){.initial_value = initial_value,
                    .dtype = options->dtype,
                    .rank = rank,
                    .is_resource = options->kind != RN_VARIABLE_REFERENCE,
                    .is_trainable = !options->not_trainable};
    status = rn_shape_copy(&store->arena, shape, &shape);
    v->dims = shape.dims;
  }
  if (rn_ok(status)) status = make(scope, store, name, v, options);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  return rn_scope_ok(scope) ? v : NULL;
}

static rn_variable_options_t complete(rn_variable_options_t options,
                                      const rn_variable_frame_t* frame) {
  const rn_variable_scope_options_t* around = &frame->options;
  if (!options.dtype) options.dtype = around->dtype;
  if (options.kind == RN_VARIABLE_DEFAULT) options.kind = around->kind;
  if (!options.initializer.make) options.initializer = around->initializer;
  if (!options.regularizer.make && !options.no_regularizer)
    options.regularizer = around->regularizer;
  return options;
}

static rn_status_t get(rn_scope_t* scope, rn_store_t* store, rn_str_t name, const int64_t* dims,
                       int rank, const rn_variable_options_t* options, rn_reuse_t reuse,
                       const rn_var_t** out) {
  *out = rn_map_get(&store->variables, name);
  if (*out && reuse == RN_REUSE_NEVER)
    return rn_invalid_argument(
        "Variable %.*s already exists, disallowed. Did you mean to set reuse=True or "
        "reuse=tf.AUTO_REUSE in VarScope?",
        RN_STR_ARGS(name));
  if (*out) return check_shared(*out, name, dims, rank, options->dtype);
  if (reuse == RN_REUSE_ALWAYS)
    return rn_invalid_argument(
        "Variable %.*s does not exist, or was not created with tf.get_variable(). Did you mean to "
        "set reuse=tf.AUTO_REUSE in VarScope?",
        RN_STR_ARGS(name));
  rn_str_t key;
  RN_RETURN_IF_ERROR(rn_arena_str(&store->arena, name, &key));
  *out = rn_var_make(scope, key, dims, rank, RN_NO_EDGE, options);
  return *out ? rn_map_put(&store->variables, key, (void*)(uintptr_t)*out) : RN_OK;
}

RN_API const rn_var_t* rn_get_variable_(rn_scope_t* scope, const char* name, const int64_t* dims,
                                        int rank, rn_variable_options_t options) {
  rn_store_t* store = rn_store_of(scope);
  if (!store) return NULL;
  if (!name || !*name) {
    rn_refuse(scope, "A variable needs a name");
    return NULL;
  }
  const rn_variable_frame_t* frame = rn_variable_frame_of(scope);
  const rn_var_t* variable = NULL;
  rn_strbuf_t whole;
  rn_strbuf_init(&whole, store->allocator);
  rn_strbuf_printf(&whole, "%s%s", frame->prefix, name);
  options = complete(options, frame);
  rn_status_t status = rn_strbuf_status(&whole);
  if (rn_ok(status))
    status = get(scope, store, rn_strbuf_view(&whole), dims, rank, &options, frame->options.reuse,
                 &variable);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  rn_strbuf_clear(&whole);
  return rn_scope_ok(scope) ? variable : NULL;
}

// Creates a variable with |initial_value|, or the one that |options| describe, called |name| or, if
// that is taken, "name_1" … Takes |name|, which may be in a failed state.
static const rn_var_t* make_unique(rn_scope_t* scope, rn_strbuf_t* name, const int64_t* dims,
                                   int rank, rn_edge_t initial_value,
                                   const rn_variable_options_t* options) {
  rn_graph_t* graph = rn_scope_graph(scope);
  rn_str_t unique = {0};
  rn_status_t status = rn_strbuf_status(name);
  if (rn_ok(status)) {
    rn_mutex_lock(&graph->mutex);
    status = rn_graph_unique_name_locked(graph, rn_strbuf_view(name), &unique);
    rn_mutex_unlock(&graph->mutex);
  }
  const rn_var_t* variable = NULL;
  if (rn_ok(status))
    variable = rn_var_make(scope, unique, dims, rank, initial_value, options);
  else
    rn_scope_fail(scope, status);
  rn_strbuf_clear(name);
  return variable;
}

RN_API const rn_var_t* rn_new_variable_(rn_scope_t* scope, const char* name,
                                        rn_edge_t initial_value, rn_variable_options_t options) {
  if (!name) name = "Variable";
  if (!rn_is_edge(scope, initial_value, name, "the initial value")) return NULL;
  options = complete(options, rn_variable_frame_of(scope));
  options.dtype = rn_edge_dtype(initial_value);
  rn_shape_t shape = rn_shape_of_edge(initial_value);
  rn_strbuf_t whole;
  rn_strbuf_init(&whole, rn_scope_allocator(scope));
  rn_strbuf_append(&whole, rn_scope_prefix(scope));
  rn_strbuf_append(&whole, rn_str(name));
  return make_unique(scope, &whole, shape.dims, shape.rank, initial_value, &options);
}

const rn_var_t* rn_var_slot(rn_scope_t* scope, const rn_var_t* primary, const char* suffix,
                            const int64_t* dims, int rank, int dtype, rn_edge_t initial_value,
                            rn_initializer_t initializer) {
  if (!rn_scope_ok(scope) || !primary) return NULL;
  rn_scope_t* beside = rn_scope_at(scope, rn_scope_prefix(scope));
  if (!beside) return NULL;
  rn_scope_set_device(beside, primary->handle.node->device.data);
  rn_variable_options_t options = {
      .dtype = dtype,
      .kind = primary->is_resource ? RN_VARIABLE_RESOURCE : RN_VARIABLE_REFERENCE,
      .initializer = initializer,
      .not_trainable = true};
  rn_strbuf_t whole;
  rn_strbuf_init(&whole, rn_scope_allocator(scope));
  rn_strbuf_printf(&whole, "%s%s/%s", rn_variable_frame_of(scope)->prefix, primary->name, suffix);
  const rn_var_t* slot = make_unique(beside, &whole, dims, rank, initial_value, &options);
  rn_scope_destroy(beside);
  return slot;
}

RN_API const rn_var_t* rn_find_variable(rn_scope_t* scope, const char* name) {
  rn_store_t* store = name ? rn_store_of(scope) : NULL;
  if (!store) return NULL;
  const rn_var_t* found = rn_map_get(&store->variables, rn_str(name));
  static const char* const lists[] = {RN_GLOBAL_VARIABLES, RN_LOCAL_VARIABLES};
  for (int k = 0; !found && k < 2; ++k) {
    const rn_collected_t* items;
    int count = rn_collection(scope, lists[k], &items);
    for (int i = 0; i < count && !found; ++i)
      if (items[i].variable && strcmp(items[i].variable->name, name) == 0)
        found = items[i].variable;
  }
  return found;
}

RN_API const rn_var_t* rn_global_step(rn_scope_t* scope) {
  const rn_collected_t* items;
  if (rn_collection(scope, RN_GLOBAL_STEP, &items) > 0) return items[0].variable;
  rn_store_t* store = rn_store_of(scope);
  if (!store) return NULL;
  rn_variable_options_t options = {.dtype = RN_INT64,
                                   .kind = rn_variable_frame_of(scope)->options.kind,
                                   .initializer = rn_init_zeros(),
                                   .not_trainable = true};
  const rn_var_t* step = rn_var_make(scope, RN_STR("global_step"), NULL, 0, RN_NO_EDGE, &options);
  rn_collect_variable(scope, RN_GLOBAL_STEP, step);
  return step;
}
