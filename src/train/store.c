// The store of a graph and its collections.
#include "train/store.h"

#include "graph/build.h"

static void free_store(void* attachment) {
  rn_store_t* store = attachment;
  for (size_t i = 0; i < store->collections.count; ++i)
    rn_vec_free(&store->collections.items[i].items, store->allocator);
  rn_vec_free(&store->collections, store->allocator);
  rn_vec_free(&store->opened, store->allocator);
  rn_vec_free(&store->runners, store->allocator);
  rn_map_clear(&store->variables);
  rn_arena_clear(&store->arena);
  RN_FREE(store->allocator, store);
}

rn_store_t* rn_store_of(rn_scope_t* scope) {
  if (!rn_scope_ok(scope)) return NULL;
  rn_graph_t* graph = rn_scope_graph(scope);
  if (graph->attachment) return graph->attachment;
  rn_store_t* store = NULL;
  rn_status_t status = RN_NEW(graph->allocator, &store);
  if (!rn_ok(status)) {
    rn_scope_fail(scope, status);
    return NULL;
  }
  store->allocator = graph->allocator;
  rn_arena_init(&store->arena, graph->allocator);
  rn_map_init(&store->variables, graph->allocator);
  graph->free_attachment = free_store;
  graph->attachment = store;
  return store;
}

static rn_collection_t* find(rn_store_t* store, rn_str_t name) {
  for (size_t i = 0; i < store->collections.count; ++i)
    if (rn_str_eq(store->collections.items[i].name, name)) return &store->collections.items[i];
  return NULL;
}

static rn_status_t collect(rn_store_t* store, rn_str_t name, rn_collected_t item) {
  rn_collection_t* collection = find(store, name);
  if (!collection) {
    rn_collection_t fresh = {0};
    RN_RETURN_IF_ERROR(rn_arena_str(&store->arena, name, &fresh.name));
    RN_RETURN_IF_ERROR(rn_vec_push(&store->collections, store->allocator, fresh));
    collection = &store->collections.items[store->collections.count - 1];
  }
  return rn_vec_push(&collection->items, store->allocator, item);
}

static void add(rn_scope_t* scope, const char* collection, rn_collected_t item) {
  rn_store_t* store = rn_store_of(scope);
  if (!store || !item.edge.node) return;
  rn_status_t status = collection ? collect(store, rn_str(collection), item)
                                  : rn_invalid_argument("A collection needs a name");
  if (!rn_ok(status)) rn_scope_fail(scope, status);
}

RN_API void rn_collect(rn_scope_t* scope, const char* collection, rn_edge_t edge) {
  add(scope, collection, (rn_collected_t){.edge = edge});
}

RN_API void rn_collect_variable(rn_scope_t* scope, const char* collection,
                                const rn_var_t* variable) {
  if (variable) add(scope, collection, (rn_collected_t){variable->handle, variable});
}

RN_API int rn_collection(rn_scope_t* scope, const char* collection, const rn_collected_t** out) {
  rn_store_t* store = rn_store_of(scope);
  rn_collection_t* found = store && collection ? find(store, rn_str(collection)) : NULL;
  if (out) *out = found ? found->items.items : NULL;
  return found ? (int)found->items.count : 0;
}
