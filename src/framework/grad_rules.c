// Gradient rules that clients register: a short process-wide list, never freed, like the op
// registry.
#include "base/sync.h"
#include "framework/grad_def.h"

typedef struct grad_rules_entry_t grad_rules_entry_t;
struct grad_rules_entry_t {
  grad_rules_entry_t* next;
  char* name;  // Owned
  rn_grad_rule_t rule;
};

static struct {
  rn_mutex_t mutex;
  grad_rules_entry_t* first;
} rules = {.mutex = RN_MUTEX_INIT};

static rn_grad_rule_t find_locked(rn_str_t name) {
  for (const grad_rules_entry_t* entry = rules.first; entry; entry = entry->next)
    if (rn_str_is(name, entry->name)) return entry->rule;
  return (rn_grad_rule_t){0};
}

static rn_status_t add_locked(rn_str_t name, rn_grad_rule_t rule) {
  if (find_locked(name).fn)
    return rn_already_exists("Gradient for %.*s is already registered.", RN_STR_ARGS(name));
  grad_rules_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &entry));
  rn_status_t status = rn_str_dup(rn_allocator_system(), name, &entry->name);
  if (!rn_ok(status)) {
    RN_FREE(rn_allocator_system(), entry);
    return status;
  }
  entry->rule = rule;
  entry->next = rules.first;
  rules.first = entry;
  return RN_OK;
}

rn_status_t rn_grad_rule_register(rn_str_t name, rn_grad_rule_t rule) {
  if (!name.size || !rule.fn) return rn_invalid_argument("A gradient needs a name and a function");
  rn_mutex_lock(&rules.mutex);
  rn_status_t status = add_locked(name, rule);
  rn_mutex_unlock(&rules.mutex);
  return status;
}

rn_grad_rule_t rn_grad_rule_find(rn_str_t name) {
  rn_mutex_lock(&rules.mutex);
  rn_grad_rule_t rule = find_locked(name);
  rn_mutex_unlock(&rules.mutex);
  return rule;
}
