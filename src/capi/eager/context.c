// Contexts of eager execution: options, devices, functions, steps, statistics.
#include "capi/eager/eager.h"
#include "capi/function.h"
#include "capi/session.h"
#include "runnel/session.h"

TFE_ContextOptions* TFE_NewContextOptions(void) {
  TFE_ContextOptions* options = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &options);
  rn_status_free(status);
  if (!options) return NULL;
  rn_session_options_init(&options->eager.session);
  options->eager.policy = TFE_DEVICE_PLACEMENT_SILENT;
  rn_strbuf_init(&options->config, rn_capi_allocator());
  return options;
}

void TFE_DeleteContextOptions(TFE_ContextOptions* options) {
  if (!options) return;
  rn_strbuf_clear(&options->config);
  RN_FREE(rn_capi_allocator(), options);
}

static rn_status_t set_config(TFE_ContextOptions* options, const void* proto, size_t length) {
  if (!options) return rn_capi_null("TFE_ContextOptionsSetConfig", "options");
  if (!proto && length) return rn_capi_null("TFE_ContextOptionsSetConfig", "proto");
  rn_session_options_t parsed;
  rn_session_options_init(&parsed);
  rn_status_t status = rn_session_options_parse(rn_str_n(proto, length), &parsed);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    return rn_invalid_argument("Unparseable ConfigProto");
  }
  RN_RETURN_IF_ERROR(status);
  rn_strbuf_clear(&options->config);
  rn_strbuf_append_n(&options->config, proto, length);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&options->config));
  parsed.config = rn_str("");
  options->eager.session = parsed;
  return RN_OK;
}

void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto, size_t proto_len,
                                 TF_Status* status) {
  rn_capi_set(status, set_config(options, proto, proto_len));
}

void TFE_ContextOptionsSetAsync(TFE_ContextOptions* options, unsigned char enable) {
  if (options) options->eager.is_async = enable != 0;
}

void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions* options,
                                                TFE_ContextDevicePlacementPolicy policy) {
  if (options) options->eager.policy = (int)policy;
}

void TFE_ContextOptionsSetTfrt(TFE_ContextOptions* options, bool use_tfrt) {
  (void)options;
  (void)use_tfrt;  // there is only one runtime
}

TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status) {
  rn_eager_options_t options = {.policy = TFE_DEVICE_PLACEMENT_SILENT};
  rn_session_options_init(&options.session);
  if (opts) {
    options = opts->eager;
    options.session.config = rn_strbuf_view(&opts->config);
  }
  rn_eager_t* eager = NULL;
  rn_capi_set(status, rn_eager_create(&options, rn_capi_env(), rn_capi_allocator(), &eager));
  return (TFE_Context*)eager;
}

void TFE_DeleteContext(TFE_Context* ctx) {
  if (!ctx) return;
  rn_eager_close(rn_capi_eager(ctx));
  rn_eager_release(rn_capi_eager(ctx));
}

TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status) {
  TF_DeviceList* list = NULL;
  rn_status_t outcome = RN_CAPI_NULL("ctx");
  if (ctx) {
    rn_status_free(outcome);
    TF_Session view = {.session = rn_eager_session(rn_capi_eager(ctx))};
    outcome = rn_capi_session_devices(&view, &list);
    if (rn_ok(outcome)) outcome = rn_capi_list_remote(rn_capi_eager(ctx), list);
    if (!rn_ok(outcome)) {
      TF_DeleteDeviceList(list);
      list = NULL;
    }
  }
  rn_capi_set(status, outcome);
  return list;
}

void TFE_ContextClearCaches(TFE_Context* ctx) {
  if (ctx) rn_eager_clear_caches(rn_capi_eager(ctx));
}

void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context* ctx,
                                                    TFE_ContextDevicePlacementPolicy policy) {
  if (ctx) rn_eager_set_policy(rn_capi_eager(ctx), (int)policy);
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context* ctx) {
  return ctx ? (TFE_ContextDevicePlacementPolicy)rn_eager_policy(rn_capi_eager(ctx))
             : TFE_DEVICE_PLACEMENT_EXPLICIT;
}

uint64_t TFE_GetContextId(TFE_Context* ctx) { return ctx ? rn_eager_id(rn_capi_eager(ctx)) : 0; }

void TFE_ContextSetSoftDevicePlacement(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  if (ctx) rn_eager_set_soft_placement(rn_capi_eager(ctx), enable != 0);
  rn_capi_set(status, ctx ? RN_OK : RN_CAPI_NULL("ctx"));
}

// --- Functions

static rn_status_t add_function_def(TFE_Context* ctx, const char* bytes, size_t size) {
  if (!ctx) return rn_capi_null("TFE_ContextAddFunctionDef", "ctx");
  TF_Status outcome = {0};
  TF_Function* function = TF_FunctionImportFunctionDef(bytes, size, &outcome);
  rn_status_t status = outcome.rep;
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT && !function) {
    rn_status_free(status);
    return rn_invalid_argument("Invalid FunctionDef proto");
  }
  if (rn_ok(status)) status = rn_eager_add_function(rn_capi_eager(ctx), function->function);
  TF_DeleteFunction(function);
  return status;
}

void TFE_ContextAddFunctionDef(TFE_Context* ctx, const char* serialized_function_def, size_t size,
                               TF_Status* status) {
  rn_capi_set(status, add_function_def(ctx, serialized_function_def, size));
}

void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function, TF_Status* status) {
  rn_status_t outcome = !ctx        ? RN_CAPI_NULL("ctx")
                        : !function ? RN_CAPI_NULL("function")
                                    : rn_eager_add_function(rn_capi_eager(ctx), function->function);
  rn_capi_set(status, outcome);
}

void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  rn_status_t outcome = !ctx    ? RN_CAPI_NULL("ctx")
                        : !name ? RN_CAPI_NULL("name")
                                : rn_eager_remove_function(rn_capi_eager(ctx), rn_str(name));
  rn_capi_set(status, outcome);
}

static rn_function_t* find_function(TFE_Context* ctx, const char* name) {
  if (!ctx || !name) return NULL;
  return rn_graph_get_function(rn_eager_library(rn_capi_eager(ctx)), rn_str(name));
}

unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) {
  rn_function_t* function = find_function(ctx, name);
  rn_function_release(function);
  return function != NULL;
}

static rn_status_t no_function(const char* name) {
  return rn_not_found("Unable to find FunctionDef with name: %s", name ? name : "");
}

// Stores the bytes of a function's definition in |buf|, or no bytes.
static void get_function(const char* caller, TFE_Context* ctx, const char* name, bool wants_bytes,
                         TF_Buffer* buf, TF_Status* status) {
  rn_function_t* function = find_function(ctx, name);
  rn_status_t outcome = !ctx        ? rn_capi_null(caller, "ctx")
                        : !function ? no_function(name)
                                    : rn_capi_buffer_check(buf);
  if (rn_ok(outcome)) {
    rn_strbuf_t bytes;
    rn_strbuf_init(&bytes, rn_capi_allocator());
    if (wants_bytes) rn_strbuf_append(&bytes, function->bytes);
    outcome = rn_capi_buffer_take(&bytes, buf);
  }
  rn_function_release(function);
  rn_capi_set(status, outcome);
}

void TFE_ContextGetFunctionDef(TFE_Context* ctx, const char* function_name, TF_Buffer* buf,
                               TF_Status* status) {
  get_function(__func__, ctx, function_name, true, buf, status);
}

// Returns an empty GraphDebugInfo: source locations of nodes are not known.
void TFE_ContextGetGraphDebugInfo(TFE_Context* ctx, const char* function_name, TF_Buffer* buf,
                                  TF_Status* status) {
  get_function(__func__, ctx, function_name, false, buf, status);
}

TF_Function* TFE_ContextGetFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  TF_Function* handle = NULL;
  rn_function_t* function = find_function(ctx, name);
  rn_capi_set(status, !ctx        ? RN_CAPI_NULL("ctx")
                      : !function ? no_function(name)
                                  : rn_capi_function_wrap(function, &handle));
  return handle;
}

// --- Steps and statistics

void TFE_ContextStartStep(TFE_Context* ctx) {
  if (ctx) rn_eager_start_step(rn_capi_eager(ctx));
}

void TFE_ContextEndStep(TFE_Context* ctx) {
  if (ctx) rn_eager_end_step(rn_capi_eager(ctx));
}

void TFE_ContextEnableRunMetadata(TFE_Context* ctx) {
  if (ctx) rn_eager_enable_stats(rn_capi_eager(ctx), true);
}

void TFE_ContextDisableRunMetadata(TFE_Context* ctx) {
  if (ctx) rn_eager_enable_stats(rn_capi_eager(ctx), false);
}

static void write_stats(void* arg, const rn_step_stats_t* stats) {
  rn_capi_write_metadata(arg, stats);
}

void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status) {
  rn_status_t outcome = ctx ? rn_capi_buffer_check(buf) : RN_CAPI_NULL("ctx");
  if (rn_ok(outcome)) outcome = rn_eager_wait(rn_capi_eager(ctx));
  if (rn_ok(outcome)) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_capi_allocator());
    rn_eager_take_stats(rn_capi_eager(ctx), write_stats, &text);
    outcome = rn_strbuf_status(&text);
    if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&text, buf);
    rn_strbuf_clear(&text);
  }
  rn_capi_set(status, outcome);
}

static rn_status_t memory_use(TFE_Context* context, const char* name, rn_device_memory_t* out) {
  rn_device_t* device = NULL;
  *out = (rn_device_memory_t){0};
  if (!context) return rn_capi_null("rn_context_memory_use", "context");
  RN_RETURN_IF_ERROR(rn_eager_device(rn_capi_eager(context), rn_str(name), &device));
  if (!device->vtable->memory_use)
    return rn_not_found("The memory of %s is not counted", device->name.data);
  device->vtable->memory_use(device, out);
  return RN_OK;
}

RN_API void rn_context_memory_use(TFE_Context* context, const char* device_name, int64_t* out_now,
                                  int64_t* out_peak, TF_Status* status) {
  rn_device_memory_t use;
  rn_capi_set(status, memory_use(context, device_name, &use));
  if (out_now) *out_now = use.now;
  if (out_peak) *out_peak = use.peak;
}
