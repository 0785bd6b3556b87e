// See dial.h.
#include "dist/rpc/dial.h"

#define MAX_TRIES 3
// Responses that may miss a line before it counts as failed: the greeting is on its way.
#define MAX_WAITS 100

void rn_dial_init(rn_dial_t* dial, rn_wire_t* wire, const rn_env_t* env, rn_str_t peer) {
  *dial = (rn_dial_t){.wire = wire, .env = env, .peer = peer};
  rn_mutex_init(&dial->mutex);
}

void rn_dial_clear(rn_dial_t* dial) { rn_mutex_destroy(&dial->mutex); }

static void switch_off_locked(rn_dial_t* dial, const char* why) {
  dial->is_off = true;
  rn_log(dial->env, RN_LOG_WARNING, "%.*s %s: its tensors come over the ordinary connection",
         RN_STR_ARGS(dial->peer), why);
}

static void drop_line_locked(rn_dial_t* dial) {
  if (dial->has_line) rn_wire_hang_up(dial->wire, dial->line);
  dial->has_line = dial->has_worked = false;
  dial->waits = 0;
  if (++dial->tries == MAX_TRIES) switch_off_locked(dial, "cannot be reached by UCX");
}

void rn_dial_stop(rn_dial_t* dial) {
  if (!dial->wire) return;
  rn_mutex_lock(&dial->mutex);
  if (dial->has_line) rn_wire_hang_up(dial->wire, dial->line);
  dial->has_line = false;
  dial->is_off = true;
  rn_mutex_unlock(&dial->mutex);
}

bool rn_dial_ask(rn_dial_t* dial, rn_wire_take_t* take, rn_wire_ask_t* out) {
  *out = (rn_wire_ask_t){.is_there = false};
  if (!dial->wire) return false;
  rn_mutex_lock(&dial->mutex);
  if (dial->has_line && !rn_wire_has(dial->wire, dial->line)) drop_line_locked(dial);
  out->is_there = !dial->is_off;
  bool has_line = dial->has_line && !dial->is_off;
  take->line = dial->line;
  rn_mutex_unlock(&dial->mutex);
  if (!has_line) return false;
  rn_status_t status = rn_wire_expect(dial->wire, take);
  bool ok = rn_ok(status);
  rn_status_free(status);
  out->has_line = ok;
  out->line = take->line;
  out->number = take->number;
  return ok;
}

// The peer does not know the line that the request named, or it named none.
static void take_address_locked(rn_dial_t* dial, rn_str_t address) {
  if (dial->has_line && !dial->has_worked && ++dial->waits < MAX_WAITS) return;
  if (dial->has_line) drop_line_locked(dial);
  if (dial->is_off) return;
  rn_status_t status = rn_wire_dial(dial->wire, address, &dial->line);
  dial->has_line = rn_ok(status);
  if (!dial->has_line) drop_line_locked(dial);
  rn_status_free(status);
}

void rn_dial_learn(rn_dial_t* dial, const rn_wire_ask_t* ask, rn_status_t status,
                   const rn_wire_answer_t* answer) {
  if (!ask->is_there) {
    // A peer that is gone may come back with a wire.
    if (!dial->wire || rn_status_code(status) != RN_CODE_UNAVAILABLE) return;
    rn_mutex_lock(&dial->mutex);
    if (dial->tries < MAX_TRIES) dial->is_off = false;
    rn_mutex_unlock(&dial->mutex);
    return;
  }
  if (!rn_ok(status)) return;
  rn_mutex_lock(&dial->mutex);
  bool is_current = !ask->has_line || (dial->has_line && rn_loan_name_eq(ask->line, dial->line));
  if (answer->is_sent && ask->has_line && is_current) {
    if (!dial->has_worked)
      rn_log(dial->env, RN_LOG_INFO, "large tensors of %.*s come by UCX", RN_STR_ARGS(dial->peer));
    dial->has_worked = true;
    dial->tries = dial->waits = 0;
  } else if (answer->address.size && is_current && (ask->has_line || !dial->has_line)) {
    take_address_locked(dial, answer->address);
  } else if (!answer->address.size && !ask->has_line && !dial->has_line && !dial->is_off) {
    switch_off_locked(dial, "has no wire by UCX");
  }
  rn_mutex_unlock(&dial->mutex);
}
