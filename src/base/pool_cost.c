// The cost model of loops: see pool_cost.h.
#include "base/pool_cost.h"

#define WAYS RN_POOL_COST_WAYS
#define TRIAL_LOOPS 8
// The start of a trial wakes workers and moves data to other caches.
#define WARM_LOOPS 2
#define WARM_NS 60000
#define FIRST_INTERVAL 8
#define MOST_INTERVAL 2048
// The same for long loops: they are hardly ever better with fewer threads, and need no start.
#define LONG_TRIAL_LOOPS 4
#define LONG_FIRST_INTERVAL 32
// A trial must win by this much, since moving the work between threads has a price of its own.
#define CLEAR_WIN 0.96f
// A level that is this much worse than the best is not worth a look at the one beyond it.
#define HOPELESS 1.5f
#define LONG_HOPELESS 1.1f  // of a long loop: the trial ends
#define CHANGED 1.5f        // times that differ by this are those of another machine, or other data
// The weight of a new time. Interruptions make times longer, and nothing makes them shorter.
#define STEP_DOWN (1.0f / 4)
#define STEP_UP (1.0f / 16)
// A longer time than this is an interruption, and counts as this; one that is so much shorter shows
// that the times before were one.
#define MOST_RATIO 4

static int level_of(int threads) {
  int level = 0;
  while (level + 1 < RN_POOL_COST_LEVELS && (2 << level) <= threads) ++level;
  return level + 1 < RN_POOL_COST_LEVELS && (1 << level) < threads ? level + 1 : level;
}

static int threads_of(int level, int most) {
  return level >= level_of(most) || (1 << level) > most ? most : 1 << level;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static uint32_t key_of(const rn_pool_work_t* work, int most) {
  uint64_t hash = mix((uint64_t)most, (uintptr_t)work->body);
  hash = mix(mix(hash, (uint64_t)work->count), (uint64_t)work->grain);
  uint32_t key = (uint32_t)(mix(hash, work->kind) >> 32);
  return key ? key : 1;
}

static uint32_t key_in(rn_pool_cost_t* entry) {
  return atomic_load_explicit(&entry->key, memory_order_relaxed);
}

static bool lock(rn_pool_cost_t* entry) {
  return !atomic_load_explicit(&entry->is_locked, memory_order_relaxed) &&
         !atomic_exchange_explicit(&entry->is_locked, true, memory_order_acquire);
}

static void unlock(rn_pool_cost_t* entry) {
  atomic_store_explicit(&entry->is_locked, false, memory_order_release);
}

static bool is_long(const rn_pool_cost_t* entry) {
  return entry->time_ns[entry->best] > RN_POOL_COST_LONG_NS;
}

static int first_interval(const rn_pool_cost_t* entry) {
  return is_long(entry) ? LONG_FIRST_INTERVAL : FIRST_INTERVAL;
}

static void start_trial_locked(rn_pool_cost_t* entry, int level) {
  entry->trial_left = is_long(entry) ? LONG_TRIAL_LOOPS : TRIAL_LOOPS + WARM_LOOPS;
  entry->trial = (uint8_t)level;
  entry->warm_ns = 0;
  entry->time_ns[level] = 0;
}

static void reset_locked(rn_pool_cost_t* entry, uint32_t key, int top) {
  atomic_store_explicit(&entry->key, key, memory_order_relaxed);
  entry->best = (uint8_t)top;
  entry->is_upwards = false;
  entry->interval = entry->countdown = FIRST_INTERVAL;
  for (int i = 0; i < RN_POOL_COST_LEVELS; ++i) entry->time_ns[i] = 0;
  start_trial_locked(entry, top);
}

// The level to try next; the best itself if there is none.
static int candidate_locked(rn_pool_cost_t* entry, int top) {
  int best = entry->best;
  entry->is_upwards = !entry->is_upwards;
  int first = entry->is_upwards && best < top ? best + 1 : best - 1;
  if (first < 0) first = best < top ? best + 1 : best;
  // Unknown levels come first. The way down ends where the times get much worse.
  for (int level = best - 1; level >= 0 && !is_long(entry); --level) {
    if (entry->time_ns[level] == 0) return level;
    if (entry->time_ns[level] > HOPELESS * entry->time_ns[best]) break;
  }
  return first;
}

static int level_locked(rn_pool_cost_t* entry, int top) {
  if (entry->trial_left) return entry->trial;
  if (entry->time_ns[entry->best] == 0 || --entry->countdown) return entry->best;
  entry->countdown = entry->interval;
  int trial = candidate_locked(entry, top);
  if (trial != entry->best) start_trial_locked(entry, trial);
  return trial;
}

// The place of the loop |key|, or the one that it gets, locked; NULL if another thread has that.
static rn_pool_cost_t* lock_entry(rn_pool_costs_t* costs, uint32_t key) {
  rn_pool_cost_t* set = &costs->entries[key % RN_POOL_COST_ENTRIES / WAYS * WAYS];
  rn_pool_cost_t* entry = NULL;
  for (uint32_t i = 0; i < WAYS; ++i) {
    uint32_t found = key_in(&set[i]);
    if (found == key) return lock(&set[i]) ? &set[i] : NULL;
    if (!found && !entry) entry = &set[i];
  }
  if (entry) return lock(entry) ? entry : NULL;
  // None is free: the first that has not run since a loop passed it by here.
  for (uint32_t i = 0; i <= WAYS; ++i) {
    entry = &set[(key / RN_POOL_COST_ENTRIES + i) % WAYS];
    if (!lock(entry)) return NULL;
    if (!entry->was_used) return entry;
    entry->was_used = false;
    unlock(entry);
  }
  return NULL;
}

rn_pool_choice_t rn_pool_cost_choose(rn_pool_costs_t* costs, const rn_pool_work_t* work, int most) {
  rn_pool_choice_t choice = {.key = key_of(work, most), .threads = most};
  rn_pool_cost_t* entry = lock_entry(costs, choice.key);
  if (!entry) return choice;
  int top = level_of(most);
  if (key_in(entry) != choice.key) reset_locked(entry, choice.key, top);
  entry->was_used = true;
  choice.entry = entry;
  choice.level = level_locked(entry, top);
  choice.threads = threads_of(choice.level, most);
  choice.time_ns = entry->time_ns[choice.level];
  unlock(entry);
  return choice;
}

static void end_trial_locked(rn_pool_cost_t* entry) {
  if (entry->trial == entry->best) {  // the very first
    entry->interval = (uint16_t)first_interval(entry);
  } else if (entry->time_ns[entry->trial] < CLEAR_WIN * entry->time_ns[entry->best]) {
    entry->best = entry->trial;
    entry->interval = (uint16_t)first_interval(entry);
  } else if (entry->interval < MOST_INTERVAL) {
    entry->interval *= 2;
  }
  entry->countdown = entry->interval;
}

static float mixed(float before, float now) {
  if (before == 0 || before > MOST_RATIO * now) return now;
  if (now > MOST_RATIO * before) now = MOST_RATIO * before;
  return before + (now < before ? STEP_DOWN : STEP_UP) * (now - before);
}

static void record_trial_locked(rn_pool_cost_t* entry, float time_ns) {
  if (entry->trial_left > TRIAL_LOOPS) {
    entry->warm_ns += time_ns;
    if (entry->trial_left > TRIAL_LOOPS + 1 || entry->warm_ns >= WARM_NS) --entry->trial_left;
    return;
  }
  entry->time_ns[entry->trial] = mixed(entry->time_ns[entry->trial], time_ns);
  const float best_ns = entry->time_ns[entry->best];
  bool is_hopeless = is_long(entry) && entry->time_ns[entry->trial] > LONG_HOPELESS * best_ns;
  if (is_hopeless) entry->trial_left = 1;
  if (--entry->trial_left == 0) end_trial_locked(entry);
}

static void hasten_locked(rn_pool_cost_t* entry, int interval) {
  const int least = first_interval(entry);
  entry->interval = (uint16_t)(interval < least ? least : interval);
  if (entry->countdown > entry->interval) entry->countdown = entry->interval;
}

// Old trials mean nothing if the best time is no longer what it was.
static void watch_locked(rn_pool_cost_t* entry) {
  float now = entry->time_ns[entry->best];
  if (now < CHANGED * entry->settled_ns && entry->settled_ns < CHANGED * now) return;
  entry->settled_ns = now;
  hasten_locked(entry, 0);
}

void rn_pool_cost_record(const rn_pool_choice_t* choice, int most, int64_t time_ns) {
  rn_pool_cost_t* entry = choice->entry;
  if (!entry || !lock(entry)) return;
  float time = (float)time_ns + 1;
  if (key_in(entry) == choice->key && entry->trial_left) {
    if (entry->trial == choice->level) record_trial_locked(entry, time);
  } else if (key_in(entry) == choice->key) {
    entry->time_ns[choice->level] = mixed(entry->time_ns[choice->level], time);
    // The best may have got worse than another one was.
    uint8_t best = entry->best;
    for (int i = 0; i <= level_of(most); ++i)
      if (entry->time_ns[i] && entry->time_ns[i] < CLEAR_WIN * entry->time_ns[entry->best])
        entry->best = (uint8_t)i;
    if (entry->best != best) hasten_locked(entry, entry->interval / 16);
    watch_locked(entry);
  }
  unlock(entry);
}
