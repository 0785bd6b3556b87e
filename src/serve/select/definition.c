// Definitions of applications: checks, and what is derived from them. See apps.h.
#include <stdatomic.h>

#include "serve/select/apps_internal.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define MAX_NAME 256
#define MAX_SLO_US (INT64_C(3600) * 1000000)

static rn_status_t check_name(rn_str_t name) {
  static const char* const taken[] = {"admin", "v1", "v2", "metrics"};
  if (!name.size || name.size > MAX_NAME || memchr(name.data, '/', name.size) ||
      memchr(name.data, '\0', name.size))
    return rn_invalid_argument("An application's name must have 1 to %d bytes and no '/': '%.*s'",
                               MAX_NAME, RN_STR_ARGS(name));
  for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i)
    if (rn_str_is(name, taken[i]))
      return rn_invalid_argument("An application cannot be named '%s'", taken[i]);
  return RN_OK;
}

static rn_status_t check_models(const rn_app_definition_t* definition) {
  if (definition->model.count > RN_POLICY_MAX_ARMS)
    return rn_invalid_argument("Application '%.*s' has %u models; %d are allowed",
                               RN_STR_ARGS(definition->name), definition->model.count,
                               RN_POLICY_MAX_ARMS);
  for (uint32_t i = 0; i < definition->model.count; ++i) {
    const rn_pb_runnel_ApplicationModel_t* model = &definition->model.items[i];
    if (!model->name.size || model->version < 0)
      return rn_invalid_argument("Application '%.*s': model %u needs a name, and a version >= 0",
                                 RN_STR_ARGS(definition->name), i);
    for (uint32_t j = 0; j < i; ++j)
      if (rn_str_eq(definition->model.items[j].name, model->name))
        return rn_invalid_argument("Application '%.*s' lists model '%.*s' twice",
                                   RN_STR_ARGS(definition->name), RN_STR_ARGS(model->name));
  }
  return RN_OK;
}

static rn_status_t check_fields(const rn_app_definition_t* definition) {
  RN_RETURN_IF_ERROR(check_name(definition->name));
  RN_RETURN_IF_ERROR(check_models(definition));
  if (definition->input_type < rn_pb_runnel_Application_INTS ||
      definition->input_type > rn_pb_runnel_Application_STRINGS)
    return rn_invalid_argument("Application '%.*s' has no input type",
                               RN_STR_ARGS(definition->name));
  if (definition->loss < 0 || definition->loss > rn_pb_runnel_Application_ABSOLUTE)
    return rn_invalid_argument("Application '%.*s' has an unknown loss",
                               RN_STR_ARGS(definition->name));
  if (definition->latency_slo_micros < 1 || definition->latency_slo_micros > MAX_SLO_US)
    return rn_invalid_argument("Application '%.*s': latency_slo_micros must be from 1 to %lld",
                               RN_STR_ARGS(definition->name), (long long)MAX_SLO_US);
  if (!(definition->confidence_threshold >= 0 && definition->confidence_threshold <= 1))
    return rn_invalid_argument("Application '%.*s': confidence_threshold must be from 0 to 1",
                               RN_STR_ARGS(definition->name));
  return RN_OK;
}

static rn_status_t set_policy(rn_app_t* app) {
  static const rn_pb_runnel_ApplicationPolicy_t none = {0};
  const rn_app_definition_t* definition = app->definition;
  const rn_pb_runnel_ApplicationPolicy_t* policy = definition->policy ? definition->policy : &none;
  app->policy = policy->name.size ? rn_policy_find(policy->name) : &rn_policy_static;
  if (!app->policy)
    return rn_invalid_argument("Application '%.*s': there is no policy '%.*s'",
                               RN_STR_ARGS(definition->name), RN_STR_ARGS(policy->name));
  rn_policy_params_t* params = &app->params;
  *params = app->policy->defaults;
  if (policy->has_eta) params->eta = policy->eta;
  if (policy->has_explore) params->explore = policy->explore;
  if (policy->has_forget) params->forget = policy->forget;
  if (policy->has_prior) params->prior = policy->prior;
  app->view = (rn_policy_view_t){params, (int)definition->model.count, 0};
  int answering = -1;
  for (int i = 0; i < app->view.arms; ++i) {
    const rn_pb_runnel_ApplicationModel_t* model = &definition->model.items[i];
    params->shares[i] = (float)model->share;
    if (model->is_unlinked) continue;
    app->view.active |= UINT64_C(1) << i;
    if (answering < 0 || rn_str_eq(model->name, policy->model)) answering = i;
  }
  params->arm = answering < 0 ? 0 : answering;
  return app->view.active ? rn_policy_check(app->policy, &app->view) : RN_OK;
}

static rn_status_t copy_definition(const rn_app_definition_t* definition, rn_app_t* app) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, app->allocator);
  rn_pb_limits_t limits = {.copy_bytes = true};
  rn_pb_runnel_Application_t* copy = NULL;
  rn_status_t status = RN_PB_ENCODE(runnel_Application, definition, NULL, &bytes);
  if (rn_ok(status))
    status = RN_PB_DECODE(runnel_Application, rn_strbuf_view(&bytes), &limits, &app->arena, &copy);
  rn_strbuf_clear(&bytes);
  app->definition = copy;
  return status;
}

static rn_status_t set_up(rn_app_t* app, const rn_app_definition_t* definition,
                          const rn_app_t* previous) {
  RN_RETURN_IF_ERROR(check_fields(definition));
  RN_RETURN_IF_ERROR(copy_definition(definition, app));
  app->loss =
      definition->loss == rn_pb_runnel_Application_ABSOLUTE ? RN_LOSS_ABSOLUTE : RN_LOSS_ZERO_ONE;
  app->slo_ns = definition->latency_slo_micros * 1000;
  RN_RETURN_IF_ERROR(set_policy(app));
  RN_RETURN_IF_ERROR(
      rn_answer_of_text(definition->default_output, app->allocator, &app->default_answer));
  if (previous) {
    app->history = previous->history;
    atomic_fetch_add(&app->history->refs, 1);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(RN_NEW(app->allocator, &app->history));
  app->history->allocator = app->allocator;
  atomic_init(&app->history->refs, 1);
  rn_mutex_init(&app->history->mutex);
  return RN_OK;
}

rn_status_t rn_app_create(const rn_app_definition_t* definition, const rn_app_t* previous,
                          rn_allocator_t allocator, rn_app_t** out) {
  *out = NULL;
  rn_app_t* app = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &app));
  app->allocator = allocator;
  atomic_init(&app->refs, 1);
  rn_arena_init(&app->arena, allocator);
  rn_status_t status = set_up(app, definition, previous);
  if (!rn_ok(status)) {
    rn_app_release(app);
    return status;
  }
  *out = app;
  return RN_OK;
}

rn_status_t rn_app_check(const rn_app_definition_t* definition, rn_allocator_t allocator) {
  rn_app_t* app = NULL;
  RN_RETURN_IF_ERROR(rn_app_create(definition, NULL, allocator, &app));
  rn_app_release(app);
  return RN_OK;
}

static void release_history(rn_app_history_t* history) {
  if (!history || atomic_fetch_sub(&history->refs, 1) > 1) return;
  for (int i = 0; i < RN_POLICY_MAX_ARMS; ++i)
    rn_answer_clear(&history->averages[i].value, history->allocator);
  rn_mutex_destroy(&history->mutex);
  RN_FREE(history->allocator, history);
}

void rn_app_retain(rn_app_t* app) { atomic_fetch_add(&app->refs, 1); }

void rn_app_release(rn_app_t* app) {
  if (!app || atomic_fetch_sub(&app->refs, 1) > 1) return;
  release_history(app->history);
  rn_answer_clear(&app->default_answer, app->allocator);
  rn_arena_clear(&app->arena);
  RN_FREE(app->allocator, app);
}

const rn_pb_runnel_Application_t* rn_app_definition(const rn_app_t* app) { return app->definition; }

rn_dtype_t rn_app_input_dtype(const rn_app_t* app) {
  switch (app->definition->input_type) {
    case rn_pb_runnel_Application_INTS:
      return RN_INT64;
    case rn_pb_runnel_Application_FLOATS:
      return RN_FLOAT;
    case rn_pb_runnel_Application_DOUBLES:
      return RN_DOUBLE;
    case rn_pb_runnel_Application_BYTES:
      return RN_UINT8;
    default:
      return RN_STRING;
  }
}
