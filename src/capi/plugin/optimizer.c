// Loading and calling the graph optimizers of plug-ins. Messages are stock's.
#include "capi/plugin/optimizer.h"

#include "capi/plugin/call.h"

// Never freed once registered.
typedef struct plugin_optimizer_t {
  rn_graph_optimizer_t base;  // first
  TP_Optimizer functions;
  char* type;  // Owned
} plugin_optimizer_t;

// An optimizer object lives for one graph, as in stock.
static rn_status_t optimize(const rn_graph_optimizer_t* base, const rn_graph_item_t* item,
                            rn_strbuf_t* out) {
  const TP_Optimizer* functions = &((const plugin_optimizer_t*)base)->functions;
  void* object = functions->create_func ? functions->create_func() : NULL;
  TF_Buffer graph = {.data = item->graph.data, .length = item->graph.size};
  TF_Buffer result = {0};
  rn_status_t status = RN_PLUGIN_CALL(functions->optimize_func, object, &graph,
                                      (const TF_GrapplerItem*)item, &result);
  if (rn_ok(status)) {
    rn_strbuf_append(out, rn_str_n(result.data, result.length));
    status = rn_strbuf_status(out);
  }
  if (result.data_deallocator && result.data)
    result.data_deallocator((void*)(uintptr_t)result.data, result.length);
  if (functions->destroy_func) functions->destroy_func(object);
  return status;
}

// The toggles that mean something here: for the others there is no such pass, or no way without it.
static uint32_t passes_off(const TP_OptimizerConfigs* configs) {
  uint32_t off = 0;
  if (configs->arithmetic_optimization == TF_TriState_Off) off |= RN_PASS_ARITHMETIC;
  if (configs->common_subgraph_elimination == TF_TriState_Off) off |= RN_PASS_COMMON_SUBGRAPHS;
  if (configs->constant_folding == TF_TriState_Off) off |= RN_PASS_CONSTANTS;
  if (configs->dependency_optimization == TF_TriState_Off) off |= RN_PASS_DEPENDENCIES;
  if (configs->loop_optimization == TF_TriState_Off) off |= RN_PASS_LOOPS;
  if (configs->remapping == TF_TriState_Off) off |= RN_PASS_REMAPPING;
  if (configs->auto_mixed_precision == TF_TriState_Off) off |= RN_PASS_PRECISION;
  return off;
}

static rn_status_t check_size(size_t found, const char* type, const char* size) {
  if (found) return RN_OK;
  return rn_failed_precondition("struct_size field in %s must be set to %s.", type, size);
}

static rn_status_t check(const TP_OptimizerRegistrationParams* params) {
  RN_RETURN_IF_ERROR(check_size(params->struct_size, "TP_OptimizerRegistrationParams",
                                "TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE"));
  if (!params->device_type)
    return rn_failed_precondition(
        "'device_type' field in TP_OptimizerRegistrationParams must be set.");
  RN_RETURN_IF_ERROR(
      check_size(params->optimizer->struct_size, "TP_Optimizer", "TP_OPTIMIZER_STRUCT_SIZE"));
  if (!params->optimizer->optimize_func)
    return rn_failed_precondition("'optimize_func' field in TP_Optimizer must be set.");
  return check_size(params->optimizer_configs->struct_size, "TP_OptimizerConfigs",
                    "TP_OPTIMIZER_CONFIGS_STRUCT_SIZE");
}

rn_status_t rn_plugin_optimizer_load(rn_plugin_graph_init_t init) {
  TP_Optimizer functions = {.struct_size = TP_OPTIMIZER_STRUCT_SIZE};
  TP_OptimizerConfigs configs = {.struct_size = TP_OPTIMIZER_CONFIGS_STRUCT_SIZE};
  TP_OptimizerRegistrationParams params = {
      .struct_size = TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE,
      .major_version = GO_MAJOR,
      .minor_version = GO_MINOR,
      .patch_version = GO_PATCH,
      .optimizer_configs = &configs,
      .optimizer = &functions};
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(init, &params));
  RN_RETURN_IF_ERROR(check(&params));
  plugin_optimizer_t* own = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &own));
  own->functions = functions;
  own->base = (rn_graph_optimizer_t){.keeps_all = configs.disable_model_pruning == TF_TriState_On,
                                     .off = passes_off(&configs),
                                     .optimize = optimize};
  rn_status_t status = rn_str_dup(rn_allocator_system(), rn_str(params.device_type), &own->type);
  if (rn_ok(status)) {
    own->base.device_type = own->type;
    status = rn_graph_optimizer_register(&own->base);
  }
  if (rn_ok(status)) return RN_OK;
  if (own->type) rn_free(rn_allocator_system(), own->type, strlen(own->type) + 1);
  RN_FREE(rn_allocator_system(), own);
  return status;
}

// --- Names of nodes

static void list_sizes(const rn_str_t* names, int32_t count, int* num_values, size_t* storage_size,
                       TF_Status* status) {
  size_t total = 0;
  for (int32_t i = 0; i < count; ++i) total += names[i].size;
  if (num_values) *num_values = count;
  if (storage_size) *storage_size = total;
  rn_capi_set(status, num_values && storage_size ? RN_OK : RN_CAPI_NULL("num_values"));
}

static rn_status_t copy_names(const rn_str_t* names, int32_t count, char** values, size_t* lengths,
                              int num_values, char* storage, size_t storage_size) {
  if (num_values > 0 && count > 0 && (!values || !lengths || !storage))
    return rn_invalid_argument("There is no room for the list of nodes");
  for (int32_t i = 0; i < count && i < num_values; ++i) {
    if (names[i].size > storage_size)
      return rn_invalid_argument("Not enough storage to hold the requested list of nodes");
    values[i] = storage;
    lengths[i] = names[i].size;
    if (names[i].size) memcpy(storage, names[i].data, names[i].size);
    storage += names[i].size;
    storage_size -= names[i].size;
  }
  return RN_OK;
}

void TF_GetNodesToPreserveListSize(const TF_GrapplerItem* item, int* num_values,
                                   size_t* storage_size, TF_Status* status) {
  const rn_graph_item_t* own = rn_plugin_item(item);
  list_sizes(own ? own->kept : NULL, own ? own->kept_count : 0, num_values, storage_size, status);
  if (!own) rn_capi_set(status, RN_CAPI_NULL("item"));
}

void TF_GetNodesToPreserveList(const TF_GrapplerItem* item, char** values, size_t* lengths,
                               int num_values, void* storage, size_t storage_size,
                               TF_Status* status) {
  const rn_graph_item_t* own = rn_plugin_item(item);
  rn_capi_set(status, own ? copy_names(own->kept, own->kept_count, values, lengths, num_values,
                                       storage, storage_size)
                          : RN_CAPI_NULL("item"));
}

void TF_GetFetchNodesListSize(const TF_GrapplerItem* item, int* num_values, size_t* storage_size,
                              TF_Status* status) {
  const rn_graph_item_t* own = rn_plugin_item(item);
  list_sizes(own ? own->fetches : NULL, own ? own->fetch_count : 0, num_values, storage_size,
             status);
  if (!own) rn_capi_set(status, RN_CAPI_NULL("item"));
}

void TF_GetFetchNodesList(const TF_GrapplerItem* item, char** values, size_t* lengths,
                          int num_values, void* storage, size_t storage_size, TF_Status* status) {
  const rn_graph_item_t* own = rn_plugin_item(item);
  rn_capi_set(status, own ? copy_names(own->fetches, own->fetch_count, values, lengths, num_values,
                                       storage, storage_size)
                          : RN_CAPI_NULL("item"));
}
