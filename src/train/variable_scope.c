// Variable scopes: the prefix and the defaults of variables.
#include "train/store.h"
#include "train/words.h"

static const rn_variable_frame_t root_frame = {
    .prefix = (char*)(uintptr_t) "",
    .options = {.reuse = RN_REUSE_NEVER, .dtype = RN_FLOAT, .kind = RN_VARIABLE_RESOURCE},
};

const rn_variable_frame_t* rn_variable_frame_of(const rn_scope_t* scope) {
  const rn_variable_frame_t* frame = rn_scope_context(scope);
  return frame ? frame : &root_frame;
}

static void free_frame(rn_allocator_t allocator, void* context) {
  rn_variable_frame_t* frame = context;
  if (frame->prefix) rn_free(allocator, frame->prefix, strlen(frame->prefix) + 1);
  RN_FREE(allocator, frame);
}

// |options| with unset fields taken from the enclosing scope.
static rn_variable_scope_options_t complete(rn_variable_scope_options_t options,
                                            const rn_variable_scope_options_t* around) {
  if (options.reuse == RN_REUSE_INHERIT || around->reuse == RN_REUSE_ALWAYS)
    options.reuse = around->reuse;
  if (!options.dtype) options.dtype = around->dtype;
  if (options.kind == RN_VARIABLE_DEFAULT) options.kind = around->kind;
  if (!options.initializer.make) options.initializer = around->initializer;
  if (!options.regularizer.make) options.regularizer = around->regularizer;
  return options;
}

// Forgets the scopes inside |prefix|, so that reopening a scope gives the same names.
static void forget_inside(rn_store_t* store, rn_str_t prefix) {
  size_t kept = 0;
  for (size_t i = 0; i < store->opened.count; ++i)
    if (!rn_str_starts_with(store->opened.items[i], prefix))
      store->opened.items[kept++] = store->opened.items[i];
  store->opened.count = kept;
}

static bool was_opened(const rn_store_t* store, rn_str_t name) {
  for (size_t i = 0; i < store->opened.count; ++i)
    if (rn_str_eq(store->opened.items[i], name)) return true;
  return false;
}

// Records "name", without the trailing slash, as opened.
static rn_status_t note_opened(rn_store_t* store, const char* prefix) {
  rn_str_t name = rn_str_n(prefix, strlen(prefix) - 1), copy;
  forget_inside(store, rn_str(prefix));
  if (was_opened(store, name)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_arena_str(&store->arena, name, &copy));
  return rn_vec_push(&store->opened, store->allocator, copy);
}

static rn_status_t make_frame(rn_scope_t* scope, const char* name,
                              const rn_variable_scope_options_t* options) {
  rn_allocator_t allocator = rn_scope_allocator(scope);
  const rn_variable_frame_t* around = rn_variable_frame_of(scope);
  rn_store_t* store = rn_store_of(scope);
  rn_variable_frame_t* frame = NULL;
  rn_strbuf_t prefix;
  if (!store) return RN_OK;
  rn_strbuf_init(&prefix, allocator);
  rn_strbuf_printf(&prefix, "%s%s/", options->absolute ? "" : around->prefix, name);
  rn_status_t status = rn_strbuf_status(&prefix);
  if (rn_ok(status)) status = RN_NEW(allocator, &frame);
  if (rn_ok(status)) {
    frame->options = complete(*options, &around->options);
    frame->setter = around->setter;
    status = rn_str_dup(allocator, rn_strbuf_view(&prefix), &frame->prefix);
    if (rn_ok(status)) status = note_opened(store, frame->prefix);
    rn_scope_set_context(scope, frame, free_frame);
  }
  rn_strbuf_clear(&prefix);
  return status;
}

rn_status_t rn_variable_frame_set_setter(rn_scope_t* scope, rn_setter_t* setter) {
  rn_allocator_t allocator = rn_scope_allocator(scope);
  const rn_variable_frame_t* around = rn_variable_frame_of(scope);
  rn_variable_frame_t* frame = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &frame));
  frame->options = around->options;
  frame->setter = setter;
  rn_status_t status = rn_str_dup(allocator, rn_str(around->prefix), &frame->prefix);
  if (rn_ok(status))
    rn_scope_set_context(scope, frame, free_frame);
  else
    free_frame(allocator, frame);
  return status;
}

RN_API rn_scope_t* rn_variable_scope_(rn_scope_t* parent, const char* name,
                                      rn_variable_scope_options_t options) {
  if (!rn_scope_ok(parent)) return NULL;
  if (!name || !*name) {
    rn_refuse(parent, "A variable scope needs a name");
    return NULL;
  }
  rn_scope_t* scope = rn_scope_child(parent, name);
  rn_status_t status = scope ? make_frame(scope, name, &options) : RN_OK;
  if (!rn_ok(status)) rn_scope_fail(parent, status);
  return scope;
}

RN_API rn_scope_t* rn_unique_variable_scope(rn_scope_t* parent, const char* name) {
  rn_store_t* store = rn_store_of(parent);
  if (!store) return NULL;
  rn_strbuf_t whole;
  rn_strbuf_init(&whole, store->allocator);
  const char* prefix = rn_variable_frame_of(parent)->prefix;
  size_t around = strlen(prefix);
  rn_strbuf_printf(&whole, "%s%s", prefix, name ? name : "");
  for (int i = 1; rn_ok(rn_strbuf_status(&whole)) && was_opened(store, rn_strbuf_view(&whole));
       ++i) {
    whole.size = around;
    rn_strbuf_printf(&whole, "%s_%d", name, i);
  }
  rn_strbuf_append(&whole, rn_str_n("", 1));
  rn_scope_t* scope = NULL;
  rn_status_t status = rn_strbuf_status(&whole);
  if (rn_ok(status))
    scope = rn_variable_scope(parent, whole.data + around);
  else
    rn_scope_fail(parent, status);
  rn_strbuf_clear(&whole);
  return scope;
}
