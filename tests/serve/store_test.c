// The stores of states: one set of tests over each kind, and the faults of each.
#include "serve/select/store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/memory_place.h"
#include "fake_redis.h"
#include "serve/select/store_log.h"

// A change adds its four bytes, a number, to the value.
static size_t add(void* self, rn_str_t key, rn_str_t value, rn_str_t change, void* out) {
  (void)self;
  (void)key;
  uint32_t sum = 0, more;
  if (value.size == 4) memcpy(&sum, value.data, 4);
  memcpy(&more, change.data, 4);
  sum += more;
  memcpy(out, &sum, 4);
  return 4;
}

static void change(rn_state_store_t* store, const char* key, uint32_t by) {
  OK(rn_state_store_change(store, rn_str(key), rn_str_n((const char*)&by, 4)));
}

static uint32_t get(rn_state_store_t* store, const char* key) {
  uint32_t value = 0;
  return rn_state_store_get(store, rn_str(key), &value, 4) == 4 ? value : 0;
}

static rn_state_store_t* open_log(place_t* place, size_t compact_bytes) {
  rn_store_log_options_t options = {.folder = "states",
                                    .commit_ns = 1000000,
                                    .retry_ns = 1000000,
                                    .compact_bytes = compact_bytes,
                                    .env = &place->env,
                                    .allocator = place->env.allocator};
  rn_state_store_t* store = NULL;
  OK(rn_store_log_open(&options, &store));
  rn_state_store_attach(store, add, NULL, NULL);
  return store;
}

Test(state_map, values_grow_shrink_and_vanish_as_in_a_model) {
  enum { KEYS = 500, MOST = 300 };
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_state_map_t* map = NULL;
  OK(rn_state_map_create(rn_env_system(), rn_allocator_counting(&counting), 0, &map));
  static int size[KEYS];
  uint32_t random = 1;
  char value[MOST], got[MOST], name[16];
  for (int n = 0; n < 200000; ++n) {
    random = random * 1664525 + 1013904223;
    int key = (int)(random >> 8) % KEYS, next = (int)(random >> 20) % MOST;
    memset(value, key & 0xff, sizeof value);
    snprintf(name, sizeof name, "key %d", key);
    size_t had = rn_state_map_get(map, rn_str(name), got, sizeof got);
    cr_assert_eq(had, (size_t)size[key]);
    cr_assert_eq(memcmp(got, value, had), 0);
    OK(rn_state_map_put(map, rn_str(name), rn_str_n(value, (size_t)next), n & 1));
    size[key] = next;
  }
  rn_state_map_destroy(map);
  cr_assert_eq(counting.live_bytes, 0);
}

static void count_entry(void* arg, rn_str_t key, rn_str_t value) {
  (void)key;
  (void)value;
  ++*(int*)arg;
}

Test(state_map, dirty_entries_are_taken_once_also_after_they_moved) {
  rn_state_map_t* map = NULL;
  OK(rn_state_map_create(rn_env_system(), rn_allocator_system(), 0, &map));
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 1000; ++i) {
      char name[16];
      snprintf(name, sizeof name, "%d", i);
      OK(rn_state_map_put(map, rn_str(name), rn_str_n("0123456789abcdef", 1 + (size_t)round * 7),
                          true));
    }
  int count = 0;
  rn_state_map_take(map, count_entry, &count);
  cr_assert_eq(count, 1000);
  count = 0;
  rn_state_map_take(map, count_entry, &count);
  cr_assert_eq(count, 0);
  rn_state_map_destroy(map);
}

Test(state_map, limits_are_kept) {
  rn_state_map_t* map = NULL;
  OK(rn_state_map_create(rn_env_system(), rn_allocator_system(), 1 << 20, &map));
  char value[1000] = {1}, name[16];
  rn_status_t status = RN_OK;
  int kept = 0;
  for (; rn_ok(status) && kept < 2000; ++kept) {
    snprintf(name, sizeof name, "%d", kept);
    status = rn_state_map_put(map, rn_str(name), rn_str_n(value, sizeof value), false);
  }
  FAILS(status, RESOURCE_EXHAUSTED);
  cr_assert_leq(rn_state_map_stats(map).bytes, 1 << 20);
  FAILS(rn_state_map_put(map, RN_STR(""), RN_STR("x"), false), INVALID_ARGUMENT);
  static char large[RN_STATE_MAX_VALUE + 1];
  FAILS(rn_state_map_put(map, RN_STR("a"), rn_str_n(large, sizeof large), false), INVALID_ARGUMENT);
  rn_state_map_destroy(map);
}

// Goal: a million users of an application of eight models in 128 MB.
Test(state_map, a_million_users_fit_into_128_megabytes) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_state_map_t* map = NULL;
  OK(rn_state_map_create(rn_env_system(), rn_allocator_counting(&counting), 0, &map));
  char value[4 + 2 * 8 * sizeof(float)] = {1}, name[32];  // the largest state: two floats per model
  for (int i = 0; i < 1000000; ++i) {
    snprintf(name, sizeof name, "app/user%07d", i);
    OK(rn_state_map_put(map, rn_str(name), rn_str_n(value, sizeof value), false));
  }
  cr_log_info("%.1f MB, at most %.1f", (double)counting.live_bytes / 1e6,
              (double)counting.peak_bytes / 1e6);
  cr_assert_leq(counting.peak_bytes, 128 * 1000 * 1000);
  rn_state_map_destroy(map);
}

// What every store does; |open| opens it again and again.
static void check_store(rn_state_store_t* (*open)(void* self), void* self) {
  rn_state_store_t* store = open(self);
  char name[16], value[200];
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 20; ++i) {
      snprintf(name, sizeof name, "user %d", i);
      change(store, name, (uint32_t)i);
    }
    if (round % 10 == 9) {
      OK(rn_state_store_flush(store));
      cr_assert_eq(rn_state_store_stats(store).unsaved, 0);
      rn_state_store_destroy(store);
      store = open(self);
      for (int i = 0; i < 20; ++i) {  // a value that is not in memory is fetched meanwhile
        snprintf(name, sizeof name, "user %d", i);
        for (int n = 0; get(store, name) != (uint32_t)(i * (round + 1)) && n < 3000; ++n)
          usleep(5000);
        cr_assert_eq(get(store, name), (uint32_t)(i * (round + 1)), "%s", name);
      }
    }
  }
  memset(value, 'v', sizeof value);
  OK(rn_state_store_put(store, RN_STR("/app/a"), rn_str_n(value, sizeof value)));
  OK(rn_state_store_put(store, RN_STR("/app/b"), RN_STR("1")));
  OK(rn_state_store_put(store, RN_STR("/app/b"), RN_STR("")));
  OK(rn_state_store_put(store, RN_STR("user 3"), RN_STR("")));
  cr_assert_eq(get(store, "user 3"), 0);
  rn_state_store_destroy(store);  // saves
  store = open(self);
  int entries = 0;
  rn_state_store_each(store, RN_STR("/app/"), count_entry, &entries);
  cr_assert_eq(entries, 1);
  cr_assert_eq(rn_state_store_get(store, RN_STR("/app/a"), value, sizeof value), sizeof value);
  cr_assert_eq(get(store, "user 3"), 0);
  cr_assert_eq(rn_state_store_get(store, RN_STR("nothing"), value, sizeof value), 0);
  rn_state_store_destroy(store);
}

static rn_state_store_t* open_in_folder(void* self) { return open_log(self, 500); }

Test(store, in_a_folder_does_what_every_store_does) {
  place_t place;
  open_counted_place(&place);
  check_store(open_in_folder, &place);
  close_counted_place(&place);
}

static rn_counting_allocator_t redis_memory;

static rn_state_store_t* open_in_redis(void* self) {
  rn_state_store_t* store = redis_store(self, 0, rn_allocator_counting(&redis_memory));
  rn_state_store_attach(store, add, NULL, NULL);
  return store;
}

static void start_redis(redis_t* redis) {
  redis_memory = (rn_counting_allocator_t){.base = rn_allocator_system()};
  if (!redis_open(redis)) cr_skip_test("there is no redis-server");
}

static void end_redis(redis_t* redis) {
  redis_close(redis);
  cr_assert_eq(redis_memory.live_blocks, 0);
}

Test(store, in_redis_does_what_every_store_does, .timeout = 100) {
  redis_t redis;
  start_redis(&redis);
  check_store(open_in_redis, &redis);
  end_redis(&redis);
}

typedef struct front_end_t {
  pthread_t thread;
  redis_t* redis;
} front_end_t;

static void* front_end(void* arg) {
  rn_state_store_t* store = open_in_redis(((front_end_t*)arg)->redis);
  for (int i = 0; i < 500; ++i) {
    change(store, "a/", 1);
    change(store, "a/anna", 2);
    if (i % 50 == 0) usleep(2000);
  }
  for (int i = 0; i < 100 && rn_state_store_stats(store).unsaved; ++i)
    rn_status_free(rn_state_store_flush(store));  // others may be faster, many times
  cr_assert_eq(rn_state_store_stats(store).unsaved, 0);
  rn_state_store_destroy(store);
  return NULL;
}

Test(store_redis, several_front_ends_lose_no_change_of_each_other, .timeout = 100) {
  enum { FRONT_ENDS = 4 };
  redis_t redis;
  start_redis(&redis);
  front_end_t ends[FRONT_ENDS];
  for (int i = 0; i < FRONT_ENDS; ++i) {
    ends[i].redis = &redis;
    cr_assert_eq(pthread_create(&ends[i].thread, NULL, front_end, &ends[i]), 0);
  }
  for (int i = 0; i < FRONT_ENDS; ++i) pthread_join(ends[i].thread, NULL);
  rn_state_store_t* store = open_in_redis(&redis);
  for (int n = 0; get(store, "a/anna") != 1000 * FRONT_ENDS && n < 3000; ++n) usleep(5000);
  get(store, "a/");
  for (int n = 0; get(store, "a/") != 500 * FRONT_ENDS && n < 3000; ++n) usleep(5000);
  cr_assert_eq(get(store, "a/anna"), 1000 * FRONT_ENDS);
  cr_assert_eq(get(store, "a/"), 500 * FRONT_ENDS);
  // What one changes, the others see soon.
  rn_state_store_t* other = open_in_redis(&redis);
  change(other, "a/", 7);
  for (int n = 0; get(store, "a/") != 500 * FRONT_ENDS + 7 && n < 3000; ++n) usleep(5000);
  cr_assert_eq(get(store, "a/"), 500 * FRONT_ENDS + 7);
  rn_state_store_destroy(other);
  rn_state_store_destroy(store);
  end_redis(&redis);
}

Test(store_redis, gone_and_back_loses_no_change_that_waits, .timeout = 100) {
  redis_t redis;
  start_redis(&redis);
  rn_state_store_t* store = open_in_redis(&redis);
  change(store, "a/", 1);
  OK(rn_state_store_flush(store));
  redis_stop(&redis);
  change(store, "a/", 2);
  FAILS(rn_state_store_flush(store), UNAVAILABLE);
  cr_assert_eq(get(store, "a/"), 3);  // serving goes on
  cr_assert_eq(rn_state_store_stats(store).unsaved, 1);
  change(store, "a/", 4);
  FAILS(rn_state_store_flush(store), UNAVAILABLE);
  // Another one that begins now has nothing, and works.
  rn_state_store_t* other = open_in_redis(&redis);
  cr_assert_eq(get(other, "a/"), 0);
  change(other, "b/", 5);
  cr_assert_eq(get(other, "b/"), 5);
  cr_assert(redis_start(&redis));  // empty: it saved nothing
  for (int n = 0; rn_state_store_stats(store).unsaved && n < 3000; ++n) usleep(5000);
  for (int n = 0; rn_state_store_stats(other).unsaved && n < 3000; ++n) usleep(5000);
  rn_state_store_destroy(store);
  rn_state_store_destroy(other);
  store = open_in_redis(&redis);
  for (int n = 0; get(store, "a/") != 6 && n < 3000; ++n) usleep(5000);
  cr_assert_eq(get(store, "a/"), 6, "what waited, applied to nothing: %u", get(store, "a/"));
  for (int n = 0; get(store, "b/") != 5 && n < 3000; ++n) usleep(5000);
  cr_assert_eq(get(store, "b/"), 5);
  rn_state_store_destroy(store);
  end_redis(&redis);
}

Test(store_redis, changes_that_wait_are_bounded, .timeout = 100) {
  redis_t redis;
  start_redis(&redis);
  rn_state_store_t* store = redis_store(&redis, 1000, rn_allocator_counting(&redis_memory));
  rn_state_store_attach(store, add, NULL, NULL);
  redis_stop(&redis);
  for (int i = 0; i < 1000; ++i) change(store, "a/", 1);
  cr_assert_eq(get(store, "a/"), 1000);
  rn_state_store_stats_t stats = rn_state_store_stats(store);
  cr_assert_gt(stats.dropped, 900);
  cr_assert_leq(stats.unsaved, 100);
  rn_state_store_destroy(store);
  cr_assert(redis_start(&redis));
  end_redis(&redis);
}

Test(store_redis, a_bad_address_is_refused) {
  rn_state_store_t* store = NULL;
  rn_redis_config_t config = {.address = "host:port"};
  rn_store_redis_options_t options = {
      .config = &config, .env = rn_env_system(), .allocator = rn_allocator_system()};
  rn_status_t status = rn_store_redis_open(&options, &store);
  if (rn_status_code(status) == RN_CODE_UNIMPLEMENTED) cr_skip_test("there is no hiredis");
  FAILS_WITH(status, INVALID_ARGUMENT, "HOST:PORT");
}

Test(store_log, states_survive_a_restart_and_compaction) {
  place_t place;
  open_counted_place(&place);
  rn_state_store_t* store = open_log(&place, 2000);
  char name[16];
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) {
      snprintf(name, sizeof name, "user %d", i);
      change(store, name, 1);
    }
    if (round % 5 == 0) OK(rn_state_store_flush(store));
    if (round == 30) {
      rn_state_store_destroy(store);
      store = open_log(&place, 2000);
    }
  }
  OK(rn_state_store_put(store, RN_STR("user 3"), RN_STR("")));
  rn_state_store_destroy(store);
  store = open_log(&place, 2000);
  for (int i = 0; i < 20; ++i) {
    snprintf(name, sizeof name, "user %d", i);
    cr_assert_eq(get(store, name), i == 3 ? 0 : 50, "%s", name);
  }
  int entries = 0;
  rn_state_store_each(store, RN_STR("user 1"), count_entry, &entries);
  cr_assert_eq(entries, 11);
  rn_state_store_destroy(store);
  rn_names_t names;
  rn_names_init(&names, rn_allocator_system());
  OK(place.env.fs->list(place.env.fs_self, "states", &names));
  cr_assert_leq(names.list.count, 3, "old files are left");  // a snapshot, a log and the lock
  rn_names_clear(&names);
  close_counted_place(&place);
}

// After a crash with any number of unsynced bytes kept, what was flushed is there, and the store
// goes on.
Test(store_log, a_torn_tail_is_cut) {
  for (int64_t torn = 0; torn < 60; ++torn) {
    place_t place;
    open_counted_place(&place);
    rn_state_store_t* store = open_log(&place, 0);
    change(store, "a", 5);
    OK(rn_state_store_flush(store));
    // Syncing fails from now on, so that nothing that follows is safe.
    rn_memory_fs_fail(place.fs, 2, 1000000, EIO);
    change(store, "a", 1);
    FAILS(rn_state_store_flush(store), UNKNOWN);
    rn_memory_fs_crash(place.fs, torn);
    rn_state_store_destroy(store);
    rn_memory_fs_fail(place.fs, 1, 0, EIO);
    store = open_log(&place, 0);
    uint32_t value = get(store, "a");
    cr_assert(value == 5 || value == 6, "%u", value);
    change(store, "a", 10);
    OK(rn_state_store_flush(store));
    rn_memory_fs_crash(place.fs, 0);
    rn_state_store_destroy(store);
    store = open_log(&place, 0);
    cr_assert_eq(get(store, "a"), value + 10);
    rn_state_store_destroy(store);
    close_counted_place(&place);
  }
}

Test(store_log, a_full_disk_is_reported_and_writing_goes_on_when_there_is_room) {
  place_t place;
  open_counted_place(&place);
  rn_state_store_t* store = open_log(&place, 0);
  change(store, "a", 1);
  OK(rn_state_store_flush(store));
  rn_memory_fs_limit(place.fs, 60);
  char name[16];
  for (int i = 0; i < 100; ++i) {
    snprintf(name, sizeof name, "user %d", i);
    change(store, name, 1);
  }
  FAILS(rn_state_store_flush(store), RESOURCE_EXHAUSTED);
  cr_assert_gt(rn_state_store_stats(store).failures, 0);
  change(store, "user 7", 1);  // serving goes on
  cr_assert_eq(get(store, "user 7"), 2);
  rn_memory_fs_limit(place.fs, INT64_MAX);
  OK(rn_state_store_flush(store));
  rn_memory_fs_crash(place.fs, 0);
  rn_state_store_destroy(store);
  store = open_log(&place, 0);
  cr_assert_eq(get(store, "user 7"), 2);
  cr_assert_eq(get(store, "user 99"), 1);
  cr_assert_eq(get(store, "a"), 1);
  rn_state_store_destroy(store);
  close_counted_place(&place);
}

// Every call of the file system fails once, also within compaction: nothing that was flushed is
// lost.
Test(store_log, one_failure_anywhere_loses_nothing) {
  for (int64_t at = 1; at < 120; ++at) {
    place_t place;
    open_counted_place(&place);
    rn_state_store_t* store = open_log(&place, 100);
    rn_memory_fs_fail(place.fs, at, 1, EIO);
    uint32_t sum = 0;
    for (uint32_t i = 1; i <= 12; ++i) {
      change(store, "a", i);
      sum += i;
      rn_status_free(rn_state_store_flush(store));
    }
    OK(rn_state_store_flush(store));
    rn_memory_fs_crash(place.fs, 0);
    rn_state_store_destroy(store);
    store = open_log(&place, 100);
    cr_assert_eq(get(store, "a"), sum, "call %lld: %u", (long long)at, get(store, "a"));
    rn_state_store_destroy(store);
    close_counted_place(&place);
  }
}

Test(store_log, a_damaged_snapshot_is_refused) {
  place_t place;
  open_counted_place(&place);
  rn_state_store_t* store = open_log(&place, 1);
  change(store, "a", 5);
  OK(rn_state_store_flush(store));
  rn_state_store_destroy(store);
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  OK(rn_fs_read(&place.env, "states/snapshot-1", 1000, &bytes));
  bytes.data[bytes.size - 6] ^= 1;
  OK(rn_fs_write(&place.env, "states/snapshot-1", rn_strbuf_view(&bytes)));
  rn_strbuf_clear(&bytes);
  rn_store_log_options_t options = {
      .folder = "states", .env = &place.env, .allocator = place.env.allocator};
  FAILS_WITH(rn_store_log_open(&options, &store), DATA_LOSS, "snapshot-1");
  close_counted_place(&place);
}

// kill -9 loses at most one second: a child counts and reports, the parent kills it.
Test(store_log, a_killed_process_loses_at_most_a_second) {
  char folder[] = "/tmp/runnel_states_XXXXXX";
  cr_assert(mkdtemp(folder));
  int pipes[2];
  cr_assert_eq(pipe(pipes), 0);
  pid_t child = fork();
  rn_store_log_options_t options = {
      .folder = folder, .env = rn_env_system(), .allocator = rn_allocator_system()};
  rn_state_store_t* store = NULL;
  if (child == 0) {
    if (!rn_ok(rn_store_log_open(&options, &store))) _exit(1);
    rn_state_store_attach(store, add, NULL, NULL);
    for (uint32_t n = 1;; ++n) {
      change(store, "n", 1);
      if (write(pipes[1], &n, 4) != 4) _exit(1);
      usleep(1000);
    }
  }
  close(pipes[1]);
  uint32_t last = 0;
  while (last < 1500 && read(pipes[0], &last, 4) == 4) {
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  close(pipes[0]);
  OK(rn_store_log_open(&options, &store));
  cr_log_info("%u of %u changes were kept", get(store, "n"), last);
  cr_assert_geq(get(store, "n"), last - 1000);  // a change takes at least a millisecond
  rn_state_store_destroy(store);
  int64_t files, directories;
  OK(rn_fs_remove_tree(rn_env_system(), folder, &files, &directories));
}
