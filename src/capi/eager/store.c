// Options of a context, its log of ops, and its key-value store, which it shares with other tasks
// if they coordinate.
#include "capi/eager/eager.h"
#include "dist/coordination/agent.h"
#include "dist/eager/client.h"

void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  if (ctx) rn_eager_set_logging(rn_capi_eager(ctx), enable != 0);
  rn_capi_set(status, ctx ? RN_OK : RN_CAPI_NULL("ctx"));
}

// These options have no effect: every call runs one kernel and nothing is compiled, so results are
// the same either way.
void TFE_ContextSetRunEagerOpAsFunction(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  (void)enable;
  rn_capi_set(status, ctx ? RN_OK : RN_CAPI_NULL("ctx"));
}

void TFE_ContextSetJitCompileRewrite(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  (void)enable;
  rn_capi_set(status, ctx ? RN_OK : RN_CAPI_NULL("ctx"));
}

void TFE_SetLogicalCpuDevices(TFE_Context* ctx, int num_cpus, const char* prefix,
                              TF_Status* status) {
  bool is_local = !prefix || !*prefix || !strcmp(prefix, "/job:localhost/replica:0/task:0");
  rn_capi_set(status, !ctx        ? RN_CAPI_NULL("ctx")
                      : !is_local ? rn_unimplemented("Devices of another task: %s", prefix)
                                  : rn_eager_set_cpus(rn_capi_eager(ctx), num_cpus));
}

// Moves |text| to |buf| if |status| is OK.
static rn_status_t give(rn_status_t outcome, rn_strbuf_t* text, TF_Buffer* buf) {
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(text, buf);
  rn_strbuf_clear(text);
  return outcome;
}

// The task of the first CPU: its name without the device.
void TFE_HostAddressSpace(TFE_Context* ctx, TF_Buffer* buf) {
  rn_device_t* cpu = NULL;
  rn_status_t outcome =
      ctx ? rn_eager_device(rn_capi_eager(ctx), RN_STR(""), &cpu) : RN_CAPI_NULL("ctx");
  if (rn_ok(outcome)) outcome = rn_capi_buffer_check(buf);
  if (rn_ok(outcome)) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_capi_allocator());
    const char* device = strstr(cpu->name.data, "/device:");
    rn_strbuf_append_n(&text, cpu->name.data,
                       device ? (size_t)(device - cpu->name.data) : cpu->name.size);
    outcome = give(rn_strbuf_status(&text), &text, buf);
  }
  rn_status_free(outcome);
}

void TFE_GetExecutedOpNames(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status) {
  rn_status_t outcome = ctx ? rn_capi_buffer_check(buf) : RN_CAPI_NULL("ctx");
  if (rn_ok(outcome)) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_capi_allocator());
    outcome = give(rn_eager_executed(rn_capi_eager(ctx), &text), &text, buf);
  }
  rn_capi_set(status, outcome);
}

static rn_status_t check(TFE_Context* ctx, const char* function, const char* key) {
  if (!ctx) return rn_capi_null(function, "ctx");
  if (!key) return rn_capi_null(function, "key");
  return RN_OK;
}

void TFE_InsertConfigKeyValue(TFE_Context* ctx, const char* key, const char* value,
                              TF_Status* status) {
  rn_status_t outcome = check(ctx, __func__, key);
  if (rn_ok(outcome) && !value) outcome = rn_capi_null(__func__, "value");
  rn_agent_t* agent = rn_ok(outcome) ? rn_eager_client_agent(rn_capi_eager(ctx)) : NULL;
  if (agent)
    outcome = rn_agent_insert(agent, rn_str(key), rn_str(value));
  else if (rn_ok(outcome))
    outcome = rn_eager_set_value(rn_capi_eager(ctx), rn_str(key), rn_str(value));
  rn_capi_set(status, outcome);
}

void TFE_GetConfigKeyValue(TFE_Context* ctx, const char* key, int64_t timeout_in_ms,
                           TF_Buffer* value_buf, TF_Status* status) {
  rn_status_t outcome = check(ctx, __func__, key);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_check(value_buf);
  if (rn_ok(outcome)) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_capi_allocator());
    rn_agent_t* agent = rn_eager_client_agent(rn_capi_eager(ctx));
    outcome = agent ? rn_agent_get(agent, rn_str(key), timeout_in_ms, &text)
                    : rn_eager_get_value(rn_capi_eager(ctx), rn_str(key), timeout_in_ms, &text);
    outcome = give(outcome, &text, value_buf);
  }
  rn_capi_set(status, outcome);
}

void TFE_DeleteConfigKeyValue(TFE_Context* ctx, const char* key, TF_Status* status) {
  rn_status_t outcome = check(ctx, __func__, key);
  rn_agent_t* agent = rn_ok(outcome) ? rn_eager_client_agent(rn_capi_eager(ctx)) : NULL;
  if (agent)
    outcome = rn_agent_remove(agent, rn_str(key));
  else if (rn_ok(outcome))
    rn_eager_remove_value(rn_capi_eager(ctx), rn_str(key));
  rn_capi_set(status, outcome);
}
