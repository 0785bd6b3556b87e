// Feedback by the id of a query. See apps.h.
//
// The query may have been answered by another front end that shares a Redis (redis_queries.h):
// then its answers are read there. Either way, feedback counts when its claim was the first,
// also if it reached several front ends.
#include <math.h>

#include "serve/select/apps_internal.h"
#include "wire/decode.h"
#include "wire/encode.h"

typedef rn_pb_runnel_ServedQuery_t shared_query_t;
typedef rn_pb_runnel_ServedAnswer_t shared_answer_t;

// A ServedQuery that has is_judged alone.
const rn_str_t rn_app_judged = {"\x08\x01", 2};

static shared_answer_t shared_answer(int arm, const rn_answer_t* answer) {
  return (shared_answer_t){.arm = arm,
                           .is_text = answer->is_text,
                           .is_integer = answer->is_integer,
                           .is_json = answer->is_json,
                           .number = answer->number,
                           .text = rn_str_n(answer->text, answer->is_text ? answer->size : 0)};
}

static rn_redis_query_name_t name_of(rn_str_t app, int64_t id) {
  return (rn_redis_query_name_t){id, rn_str_hash(app)};
}

void rn_app_share(rn_apps_t* apps, const rn_served_query_t* query) {
  shared_answer_t answers[RN_POLICY_MAX_ARMS];
  if (!apps->options.queries) return;
  shared_query_t shared = {.app = query->app,
                           .user = query->user,
                           .run = query->selection.run,
                           .served = query->selection.served + 1,
                           .probability = query->selection.probability,
                           .answer = {.items = answers}};
  for (uint64_t left = query->arrived; left; left &= left - 1) {
    int arm = __builtin_ctzll(left);
    answers[shared.answer.count++] = shared_answer(arm, &query->answers[arm]);
  }
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, apps->options.allocator);
  rn_status_t status = RN_PB_ENCODE(runnel_ServedQuery, &shared, NULL, &bytes);
  if (rn_ok(status))
    rn_redis_queries_put(apps->options.queries, name_of(query->app, query->id),
                         rn_served_leaving(apps->served, query->id), rn_strbuf_view(&bytes));
  rn_status_free(status);
  rn_strbuf_clear(&bytes);
}

void rn_app_share_late(rn_apps_t* apps, rn_str_t app, int64_t id, int arm,
                       const rn_answer_t* answer) {
  if (!apps->options.queries) return;
  shared_answer_t late = shared_answer(arm, answer);
  shared_query_t shared = {.answer = {.items = &late, .count = 1}};
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, apps->options.allocator);
  rn_status_t status = RN_PB_ENCODE(runnel_ServedQuery, &shared, NULL, &bytes);
  if (rn_ok(status))
    rn_redis_queries_append(apps->options.queries, name_of(app, id), rn_strbuf_view(&bytes));
  rn_status_free(status);
  rn_strbuf_clear(&bytes);
}

// A model that was to answer alone, and did not, was as good as wrong.
static void judge_missing(rn_observation_t* inout) {
  uint64_t served = inout->served >= 0 ? UINT64_C(1) << inout->served : 0;
  if (!(served & ~inout->seen)) return;
  inout->seen |= served;
  inout->loss[inout->served] = 1;
}

// What |label| says about a query that was taken from the window, whose answers it clears.
static rn_observation_t judge(const rn_apps_t* apps, const rn_app_t* app, const rn_answer_t* label,
                              rn_served_query_t* query) {
  rn_observation_t seen = {.served = query->selection.served,
                           .probability = query->selection.probability,
                           .seen = query->arrived};
  for (uint64_t left = query->arrived; left; left &= left - 1) {
    int arm = __builtin_ctzll(left);
    seen.loss[arm] = (float)rn_answer_loss(app->loss, label, &query->answers[arm]);
    rn_answer_clear(&query->answers[arm], apps->options.allocator);
  }
  judge_missing(&seen);
  return seen;
}

// The same for a query of another front end, which may send anything: false if it is none of |app|.
static bool judge_shared(const rn_app_t* app, const rn_answer_t* label, const shared_query_t* query,
                         rn_observation_t* out) {
  *out = (rn_observation_t){.served = query->served - 1, .probability = query->probability};
  if (!rn_str_eq(query->app, app->definition->name) || out->served < -1 ||
      out->served >= app->view.arms || !(out->probability > 0 && out->probability <= 1) ||
      query->user.size >= RN_SERVED_USER)
    return false;
  for (uint32_t i = 0; i < query->answer.count; ++i) {
    const shared_answer_t* from = &query->answer.items[i];
    if (from->arm < 0 || from->arm >= app->view.arms) return false;
    const rn_answer_t answer = {.is_set = true,
                                .is_text = from->is_text,
                                .is_integer = from->is_integer,
                                .is_json = from->is_json,
                                .number = isfinite(from->number) ? from->number : 0,
                                .text = (char*)from->text.data,
                                .size = from->text.size};
    out->seen |= UINT64_C(1) << from->arm;
    out->loss[from->arm] = (float)rn_answer_loss(app->loss, label, &answer);
  }
  judge_missing(out);
  return true;
}

// Feedback that waits for its claim.
typedef struct rn_app_claim_t {
  rn_redis_claim_t claim;  // first
  rn_apps_t* apps;
  rn_app_t* app;          // Retained
  rn_answer_t label;      // of another front end's query
  rn_observation_t seen;  // of one's own
  char user[RN_SERVED_USER];
  size_t user_size;
} rn_app_claim_t;

static void observe(rn_apps_t* apps, rn_app_t* app, rn_str_t user, const rn_observation_t* seen) {
  if (app->view.active) rn_app_observe(apps, app, user, seen);
}

static void claimed(rn_redis_claim_t* base, rn_str_t found) {
  rn_app_claim_t* claim = (rn_app_claim_t*)base;
  rn_apps_t* apps = claim->apps;
  rn_arena_t arena;
  rn_arena_init(&arena, apps->options.allocator);
  shared_query_t* query = NULL;
  rn_observation_t seen;
  rn_status_t status = RN_PB_DECODE(runnel_ServedQuery, found, NULL, &arena, &query);
  bool is_read = rn_ok(status);
  rn_status_free(status);
  if (is_read && query->is_judged)
    rn_app_count_feedback(apps, claim->app, "duplicate");
  else if (base->is_own)
    observe(apps, claim->app, rn_str_n(claim->user, claim->user_size), &claim->seen);
  else if (is_read && judge_shared(claim->app, &claim->label, query, &seen))
    observe(apps, claim->app, query->user, &seen);
  else
    rn_app_count_feedback(apps, claim->app, "unknown");
  rn_arena_clear(&arena);
  rn_answer_clear(&claim->label, apps->options.allocator);
  rn_app_release(claim->app);
  RN_FREE(apps->options.allocator, claim);
}

static rn_status_t make_claim(rn_apps_t* apps, rn_app_t* app, int64_t id, rn_app_claim_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(apps->options.allocator, out));
  (*out)->claim = (rn_redis_claim_t){.name = name_of(app->definition->name, id), .done = claimed};
  (*out)->apps = apps;
  (*out)->app = app;
  rn_app_retain(app);
  return RN_OK;
}

// Claims a query of this front end, which was taken from the window. Without memory for that, it
// counts at once.
static void claim_own(rn_apps_t* apps, rn_app_t* app, const rn_served_query_t* query,
                      const rn_observation_t* seen) {
  rn_app_claim_t* claim = NULL;
  rn_status_t status = make_claim(apps, app, query->id, &claim);
  if (!rn_ok(status)) {
    rn_status_free(status);
    observe(apps, app, query->user, seen);
    return;
  }
  claim->claim.is_own = true;
  claim->seen = *seen;
  claim->user_size = query->user.size;
  if (query->user.size) memcpy(claim->user, query->user.data, query->user.size);
  rn_redis_queries_claim(apps->options.queries, &claim->claim);
}

static bool claim_other(rn_apps_t* apps, rn_app_t* app, int64_t id, const rn_answer_t* label) {
  rn_app_claim_t* claim = NULL;
  rn_allocator_t allocator = apps->options.allocator;
  rn_status_t status = make_claim(apps, app, id, &claim);
  if (rn_ok(status)) status = rn_answer_copy(label, allocator, &claim->label);
  if (rn_ok(status) && rn_redis_queries_claim(apps->options.queries, &claim->claim)) return true;
  rn_status_free(status);
  if (claim) {
    rn_answer_clear(&claim->label, allocator);
    rn_app_release(app);
    RN_FREE(allocator, claim);
  }
  return false;
}

rn_served_outcome_t rn_app_feedback(rn_apps_t* apps, rn_app_t* app, int64_t id,
                                    const rn_answer_t* label) {
  rn_served_query_t query;
  char user[RN_SERVED_USER];
  bool is_shared = apps->options.queries != NULL;
  if (is_shared && !rn_served_is_own(apps->served, id) && claim_other(apps, app, id, label))
    return RN_SERVED_PASSED_ON;
  rn_served_outcome_t outcome =
      rn_served_take(apps->served, app->definition->name, id, user, &query);
  if (outcome != RN_SERVED_TAKEN) {
    rn_app_count_feedback(apps, app, outcome == RN_SERVED_DUPLICATE ? "duplicate" : "unknown");
    return outcome;
  }
  rn_observation_t seen = judge(apps, app, label, &query);
  if (is_shared)
    claim_own(apps, app, &query, &seen);
  else
    observe(apps, app, query.user, &seen);
  return outcome;
}
