// The manager of a card's memory, on blocks that do not exist: it never touches what it hands out.
#include "device/cuda/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../support/status.h"

#define MIB ((size_t)1 << 20)
#define UNIT ((size_t)256)

// What the memory should look like: every chunk, in the order of addresses. Blocks lie side by
// side, so that a merge across their border would show.
typedef struct segment_t {
  uint64_t address;
  size_t size;
  bool is_free;
  bool is_first;  // of its block
} segment_t;

enum { MAX_SEGMENTS = 8192, MAX_SIZES = 64 };

// A source of blocks that keeps the model.
typedef struct card_t {
  segment_t segments[MAX_SEGMENTS];
  size_t count;
  uint64_t next_address;
  size_t capacity;  // of all blocks together
  size_t reserved, in_use, peak;
  size_t blocks;
  int calls, fail_at;       // the |fail_at|-th call of alloc fails, counted from 1
  bool fail_all_after;      // and those after it
  size_t sizes[MAX_SIZES];  // that alloc was asked for, in turn
} card_t;

static uint64_t card_alloc(void* self, size_t size) {
  card_t* card = self;
  int call = ++card->calls;
  if (call <= MAX_SIZES) card->sizes[call - 1] = size;
  if (card->fail_at && (card->fail_all_after ? call >= card->fail_at : call == card->fail_at))
    return 0;
  if (size > card->capacity - card->reserved) return 0;
  uint64_t address = card->next_address;
  card->next_address += size;
  card->reserved += size;
  card->blocks++;
  cr_assert_lt(card->count, MAX_SEGMENTS);
  card->segments[card->count++] = (segment_t){address, size, true, true};
  return address;
}

static size_t find(const card_t* card, uint64_t address) {
  for (size_t i = 0; i < card->count; i++)
    if (card->segments[i].address == address) return i;
  cr_assert_fail("no chunk starts at %llx", (unsigned long long)address);
  return 0;
}

static bool ends_block(const card_t* card, size_t i) {
  return i + 1 == card->count || card->segments[i + 1].is_first;
}

static void erase(card_t* card, size_t i) {
  memmove(&card->segments[i], &card->segments[i + 1],
          (card->count - i - 1) * sizeof *card->segments);
  card->count--;
}

// Blocks are given back whole. With live allocations only when the memory is destroyed, which ends
// the model.
static void card_free(void* self, uint64_t address, size_t size) {
  card_t* card = self;
  size_t i = find(card, address), bytes = 0;
  cr_assert(card->segments[i].is_first);
  do {
    bytes += card->segments[i].size;
    erase(card, i);
  } while (i < card->count && !card->segments[i].is_first);
  cr_assert_eq(bytes, size);
  card->reserved -= size;
  card->blocks--;
}

static rn_counting_allocator_t counting;

static rn_cuda_memory_t* make(card_t* card, size_t capacity, size_t block_size, size_t limit) {
  *card = (card_t){.next_address = UINT64_C(0x7f0000000000), .capacity = capacity};
  counting = (rn_counting_allocator_t){.base = rn_allocator_system()};
  rn_cuda_memory_options_t options = {
      .source = {card, card_alloc, card_free}, .block_size = block_size, .limit = limit};
  rn_cuda_memory_t* memory = NULL;
  OK(rn_cuda_memory_create(&options, rn_allocator_counting(&counting), &memory));
  return memory;
}

static void end(card_t* card, rn_cuda_memory_t* memory) {
  rn_cuda_memory_destroy(memory);
  cr_assert_eq(card->reserved, 0);
  cr_assert_eq(card->blocks, 0);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
}

static rn_cuda_memory_stats_t stats_of(rn_cuda_memory_t* memory) {
  rn_cuda_memory_stats_t stats;
  rn_cuda_memory_stats(memory, &stats);
  return stats;
}

// The free segment that best fit takes; |count| if none is large enough.
static size_t best(const card_t* card, size_t size) {
  size_t found = card->count;
  for (size_t i = 0; i < card->count; i++) {
    const segment_t* segment = &card->segments[i];
    if (!segment->is_free || segment->size < size) continue;
    if (found == card->count || segment->size < card->segments[found].size) found = i;
  }
  return found;
}

// Allocates and checks that the address is the one that best fit gives.
static uint64_t get(card_t* card, rn_cuda_memory_t* memory, size_t size) {
  size_t rounded = size ? (size + UNIT - 1) / UNIT * UNIT : UNIT;
  bool fits = best(card, rounded) < card->count;
  int calls = card->calls;
  uint64_t address = rn_cuda_memory_alloc(memory, size, "model");
  if (!address) return 0;
  cr_assert_eq(address % UNIT, 0);
  if (fits) cr_assert_eq(card->calls, calls, "asked for a block, though there was room");
  size_t i = best(card, rounded);  // it may be in a new block
  cr_assert_lt(i, card->count);
  cr_assert_eq(card->segments[i].address, address);
  segment_t rest = card->segments[i];
  if (rest.size > rounded) {
    cr_assert_lt(card->count, MAX_SEGMENTS);
    memmove(&card->segments[i + 1], &card->segments[i], (card->count - i) * sizeof rest);
    card->count++;
    card->segments[i + 1] = (segment_t){rest.address + rounded, rest.size - rounded, true, false};
  }
  card->segments[i].size = rounded;
  card->segments[i].is_free = false;
  card->in_use += rounded;
  if (card->in_use > card->peak) card->peak = card->in_use;
  return address;
}

static void put(card_t* card, rn_cuda_memory_t* memory, uint64_t address) {
  rn_cuda_memory_free(memory, address);
  size_t i = find(card, address);
  segment_t* segments = card->segments;
  card->in_use -= segments[i].size;
  segments[i].is_free = true;
  if (!ends_block(card, i) && segments[i + 1].is_free) {
    segments[i].size += segments[i + 1].size;
    erase(card, i + 1);
  }
  if (!segments[i].is_first && segments[i - 1].is_free) {
    segments[i - 1].size += segments[i].size;
    erase(card, i);
  }
}

static void check(const card_t* card, rn_cuda_memory_t* memory) {
  rn_cuda_memory_stats_t stats = stats_of(memory);
  size_t largest = 0, live = 0;
  for (size_t i = 0; i < card->count; i++) {
    const segment_t* segment = &card->segments[i];
    live += !segment->is_free;
    if (segment->is_free && segment->size > largest) largest = segment->size;
  }
  cr_assert_eq(stats.bytes_in_use, card->in_use);
  cr_assert_eq(stats.peak_bytes_in_use, card->peak);
  cr_assert_eq(stats.bytes_reserved, card->reserved);
  cr_assert_eq(stats.largest_free_chunk, largest);
  cr_assert_eq(stats.live_allocations, (int64_t)live);
}

static uint32_t next_random(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  return *state ^= *state << 5;
}

// Mostly small sizes, now and then as large as |largest|.
static size_t random_size(uint32_t* random, size_t largest) {
  size_t bound = largest >> next_random(random) % 16;
  return next_random(random) % (bound + 1);
}

// |steps| allocations and frees in random order; then all is freed.
static void churn(card_t* card, rn_cuda_memory_t* memory, uint32_t seed, int steps,
                  size_t largest) {
  enum { N = 400 };
  uint64_t held[N] = {0};
  uint32_t random = seed;
  for (int step = 0; step < steps; step++) {
    uint64_t* slot = &held[next_random(&random) % N];
    if (*slot) {
      put(card, memory, *slot);
      *slot = 0;
    } else {
      *slot = get(card, memory, random_size(&random, largest));
    }
    if (next_random(&random) % 500 == 0) rn_cuda_memory_trim(memory);
    if (step % 16 == 0) check(card, memory);
  }
  for (int i = 0; i < N; i++)
    if (held[i]) put(card, memory, held[i]);
  check(card, memory);
  for (size_t i = 0; i < card->count; i++) cr_assert(card->segments[i].is_first);
  cr_assert_eq(card->in_use, 0);
}

static card_t card;  // too large for a stack

Test(cuda_memory, best_fit_as_in_the_model, .timeout = 60) {
  for (uint32_t seed = 1; seed <= 4; seed++) {
    rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 2 * MIB, 0);
    churn(&card, memory, seed, 10000, 4 * MIB);
    rn_cuda_memory_trim(memory);
    cr_assert_eq(card.blocks, 0);
    check(&card, memory);
    end(&card, memory);
  }
}

Test(cuda_memory, best_fit_when_memory_is_short, .timeout = 60) {
  for (uint32_t seed = 1; seed <= 4; seed++) {
    // A limit, and a card that is full before it.
    rn_cuda_memory_t* memory = make(&card, seed % 2 ? 33 * MIB : SIZE_MAX, 2 * MIB, 40 * MIB + 300);
    churn(&card, memory, seed, 10000, 8 * MIB);
    cr_assert_leq(card.peak, 40 * MIB + 300);
    end(&card, memory);
  }
}

Test(cuda_memory, every_size_has_an_aligned_address) {
  rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 0, 0);
  uint64_t zero = get(&card, memory, 0), other = get(&card, memory, 0);
  cr_assert(zero && other && zero != other);
  for (size_t size = 1; size <= 1025; size++) cr_assert(get(&card, memory, size));
  check(&card, memory);
  rn_cuda_memory_free(memory, 0);
  cr_assert_eq(stats_of(memory).allocations, 1027);
  cr_assert_eq(card.sizes[0], 64 * MIB);
  end(&card, memory);
  rn_cuda_memory_destroy(NULL);
}

Test(cuda_memory, sizes_beyond_any_card) {
  rn_cuda_memory_t* memory = make(&card, 100 * MIB, 0, 0);
  size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 254, SIZE_MAX - 255, SIZE_MAX - 256,
                    SIZE_MAX / 2 + 1, SIZE_MAX / 2,   101 * MIB};
  for (int i = 0; i < 7; i++) cr_assert_eq(get(&card, memory, sizes[i]), 0);
  check(&card, memory);
  cr_assert(get(&card, memory, 99 * MIB));
  end(&card, memory);
  rn_cuda_memory_options_t options = {.block_size = SIZE_MAX};
  FAILS(rn_cuda_memory_create(&options, rn_allocator_system(), &memory), INVALID_ARGUMENT);
  cr_assert_null(memory);
}

Test(cuda_memory, blocks_double_up_to_a_gibibyte) {
  rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 0, 0);
  for (int i = 0; i < 7; i++) cr_assert(get(&card, memory, 40 * MIB << (i < 5 ? i : 4)));
  size_t expected[] = {64, 128, 256, 512, 1024, 1024, 1024};
  for (int i = 0; i < 7; i++) cr_assert_eq(card.sizes[i], expected[i] * MIB);
  // A block of its own.
  cr_assert(get(&card, memory, 3000 * MIB + 1));
  cr_assert_eq(card.sizes[7], 3002 * MIB);
  end(&card, memory);
  memory = make(&card, SIZE_MAX, 700 * MIB, 0);
  for (int i = 0; i < 2; i++) cr_assert(get(&card, memory, 600 * MIB));
  cr_assert_eq(card.sizes[0], 700 * MIB);
  cr_assert_eq(card.sizes[1], 1024 * MIB);
  end(&card, memory);
}

Test(cuda_memory, the_limit_holds) {
  size_t limit = 100 * MIB + 1000;
  rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 0, limit);
  cr_assert_eq(stats_of(memory).bytes_limit, limit);
  uint64_t a = get(&card, memory, 50 * MIB), b = get(&card, memory, 30 * MIB);
  // The second block has what is left, in whole chunks.
  cr_assert_eq(card.sizes[1], 36 * MIB + 768);
  cr_assert_eq(card.reserved, limit / UNIT * UNIT);
  cr_assert_eq(get(&card, memory, 20 * MIB), 0);
  check(&card, memory);
  put(&card, memory, b);
  cr_assert(get(&card, memory, 36 * MIB + 700));
  put(&card, memory, a);
  // The first block is given back for this one.
  cr_assert_eq(get(&card, memory, 64 * MIB + 1), 0);
  cr_assert(get(&card, memory, 64 * MIB));
  end(&card, memory);
}

Test(cuda_memory, free_blocks_are_given_back_before_a_request_fails) {
  rn_cuda_memory_t* memory = make(&card, 200 * MIB, 0, 0);
  uint64_t a = get(&card, memory, 60 * MIB), b = get(&card, memory, 100 * MIB);
  put(&card, memory, a);
  put(&card, memory, b);
  cr_assert_eq(card.blocks, 2);
  cr_assert(get(&card, memory, 190 * MIB));
  cr_assert_eq(card.blocks, 1);
  check(&card, memory);
  end(&card, memory);
}

Test(cuda_memory, smaller_blocks_when_there_are_no_large_ones) {
  rn_cuda_memory_t* memory = make(&card, 50 * MIB, 0, 0);
  cr_assert(get(&card, memory, 1000));
  cr_assert_eq(card.sizes[1], 32 * MIB);
  cr_assert(get(&card, memory, 31 * MIB));
  cr_assert_eq(get(&card, memory, 18 * MIB + 1), 0);
  cr_assert(get(&card, memory, 17 * MIB));
  cr_assert_eq(card.reserved, 50 * MIB);
  end(&card, memory);
}

Test(cuda_memory, the_source_fails_at_each_call) {
  for (int all_after = 0; all_after < 2; all_after++) {
    for (int n = 1; n <= 40; n++) {
      rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 2 * MIB, 0);
      card.fail_at = n;
      card.fail_all_after = all_after;
      churn(&card, memory, (uint32_t)n, 400, 16 * MIB);
      end(&card, memory);
    }
  }
}

Test(cuda_memory, host_memory_fails_at_each_call) {
  int64_t n = 0, calls = 0;
  do {
    rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 2 * MIB, 0);
    counting.fail_at = counting.allocations + ++n;
    counting.fail_all_after = n % 2;
    churn(&card, memory, 7, 600, 4 * MIB);
    calls = counting.allocations;
    end(&card, memory);
  } while (calls >= counting.fail_at);
  cr_assert_gt(n, 5);
  // And when the memory is made.
  for (n = 1; n <= 2; n++) {
    counting = (rn_counting_allocator_t){.base = rn_allocator_system(), .fail_at = n};
    rn_cuda_memory_options_t options = {.source = {&card, card_alloc, card_free}};
    rn_cuda_memory_t* memory = NULL;
    FAILS(rn_cuda_memory_create(&options, rn_allocator_counting(&counting), &memory),
          RESOURCE_EXHAUSTED);
    cr_assert_null(memory);
    cr_assert_eq(counting.live_blocks, 0);
  }
}

Test(cuda_memory, trim_gives_free_blocks_back) {
  rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 2 * MIB, 0);
  uint64_t a[4];
  for (int i = 0; i < 4; i++) a[i] = get(&card, memory, 2 * MIB << i);
  uint64_t small = get(&card, memory, 100);
  cr_assert_eq(card.blocks, 5);
  cr_assert_eq(rn_cuda_memory_trim(memory), 0);
  put(&card, memory, a[0]);
  put(&card, memory, a[2]);
  cr_assert_eq(rn_cuda_memory_trim(memory), 10 * MIB);
  check(&card, memory);
  put(&card, memory, a[1]);
  put(&card, memory, small);
  cr_assert_eq(rn_cuda_memory_trim(memory), 36 * MIB);
  check(&card, memory);
  put(&card, memory, a[3]);
  end(&card, memory);
}

// While work is recorded, other work must not get what the recorded work still reads.
Test(cuda_memory, held_memory_is_handed_out_later) {
  rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 2 * MIB, 0);
  uint64_t a = get(&card, memory, MIB);
  rn_cuda_memory_hold(memory);
  rn_cuda_memory_hold(memory);
  cr_assert(rn_cuda_memory_free(memory, a));
  cr_assert(!rn_cuda_memory_free(memory, a), "freed twice");
  uint64_t b = rn_cuda_memory_alloc(memory, MIB, "b");
  cr_assert_neq(a, b);
  rn_cuda_memory_resume(memory);
  uint64_t c = rn_cuda_memory_alloc(memory, 256, "c");
  cr_assert_neq(a, c);
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_cuda_memory_describe(memory, &text);  // with a chunk that is neither free nor allocated
  rn_strbuf_clear(&text);
  rn_cuda_memory_resume(memory);
  uint64_t d = rn_cuda_memory_alloc(memory, MIB, "d");
  cr_assert_eq(a, d);
  rn_cuda_memory_destroy(memory);
}

// Each allocation is a block of its own, of the size that was asked for.
typedef struct exact_t {
  size_t blocks, last;
  uint64_t next;
} exact_t;

static uint64_t exact_alloc(void* self, size_t size) {
  exact_t* exact = self;
  exact->blocks++;
  exact->last = size;
  return exact->next += 16 * MIB;
}

static void exact_free(void* self, uint64_t address, size_t size) {
  (void)address, (void)size;
  ((exact_t*)self)->blocks--;
}

Test(cuda_memory, exact_blocks) {
  exact_t exact = {0};
  rn_cuda_memory_options_t options = {
      .source = {&exact, exact_alloc, exact_free}, .is_exact = true, .limit = 4 * MIB};
  rn_cuda_memory_t* memory = NULL;
  OK(rn_cuda_memory_create(&options, rn_allocator_system(), &memory));
  uint64_t a = rn_cuda_memory_alloc(memory, 4, "a"), b = rn_cuda_memory_alloc(memory, 1000, "b");
  cr_assert(a && b);
  cr_assert_eq(exact.last, 1000);
  cr_assert_eq(exact.blocks, 2);
  cr_assert(rn_cuda_memory_free(memory, a));
  cr_assert_eq(exact.blocks, 1);
  cr_assert_eq(rn_cuda_memory_alloc(memory, 5 * MIB, "c"), 0, "above the limit");
  rn_cuda_memory_destroy(memory);
  cr_assert_eq(exact.blocks, 0);
}

static void expect_description(rn_cuda_memory_t* memory, const char* expected) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_cuda_memory_describe(memory, &text);
  OK(rn_strbuf_status(&text));
  cr_assert_str_eq(text.data, expected, "%s", text.data);
  rn_strbuf_clear(&text);
}

#define TITLE "holder                                           bytes   chunks\n"

Test(cuda_memory, describes_who_holds_what) {
  rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 2 * MIB, 0);
  expect_description(memory,
                     TITLE "0 bytes in use (peak 0), 0 reserved, largest free chunk 0, no limit\n");
  rn_cuda_memory_alloc(memory, 1000, "variables");
  rn_cuda_memory_alloc(memory, 100, NULL);
  rn_cuda_memory_alloc(memory, MIB, "a name that is too long for the table of holders");
  uint64_t step = rn_cuda_memory_alloc(memory, 5000, "step");
  char name[] = "variables";  // holders are equal if their text is
  rn_cuda_memory_alloc(memory, 3000, name);
  rn_cuda_memory_alloc(memory, 256, "another");
  rn_cuda_memory_free(memory, step);
  const char* table = TITLE
      "a name that is too long for the table          1048576        1\n"
      "variables                                         4096        2\n"
      "(unnamed)                                          256        1\n"
      "another                                            256        1\n";
  char expected[1000];
  const char* totals =
      "1053184 bytes in use (peak 1058304), 2097152 reserved, largest free chunk 1038848, "
      "no limit\n";
  snprintf(expected, sizeof expected, "%s%s", table, totals);
  expect_description(memory, expected);
  // Without host memory for the table there are still the totals.
  counting.fail_at = counting.allocations + 1;
  expect_description(memory, totals);
  end(&card, memory);
}

Test(cuda_memory, describes_the_largest_of_many_holders) {
  rn_cuda_memory_t* memory = make(&card, SIZE_MAX, 2 * MIB, 8 * MIB);
  for (size_t i = 1; i <= 40; i++) {
    char name[20];
    snprintf(name, sizeof name, "node %zu", i);
    rn_cuda_memory_alloc(memory, i * UNIT, name);
  }
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_cuda_memory_describe(memory, &text);
  cr_assert(strstr(text.data, TITLE "node 40"));
  cr_assert(strstr(text.data, "node 11 "));
  cr_assert_null(strstr(text.data, "node 10 "));
  cr_assert(strstr(text.data,
                   "\n(10 others)                                      14080       10\n"
                   "209920 bytes in use"));
  cr_assert(strstr(text.data, ", limit 8388608\n"));
  rn_strbuf_clear(&text);
  end(&card, memory);
}

Test(cuda_memory, is_an_allocator) {
  rn_cuda_memory_t* memory = make(&card, 10 * MIB, 2 * MIB, 0);
  rn_allocator_t allocator = rn_cuda_memory_allocator(memory);
  void* p = NULL;
  OK(rn_alloc(allocator, 5000, &p));
  cr_assert_eq((uintptr_t)p, card.segments[0].address);
  cr_assert_null(allocator.fn(allocator.self, p, 5000, 6000));
  cr_assert_eq(allocator.fn(allocator.self, p, 5000, 3000), p);
  cr_assert_null(allocator.fn(allocator.self, NULL, 0, 0));
  cr_assert_eq(stats_of(memory).live_allocations, 1);
  rn_free(allocator, p, 3000);
  cr_assert_eq(stats_of(memory).bytes_in_use, 0);
  FAILS(rn_alloc(allocator, 11 * MIB, &p), RESOURCE_EXHAUSTED);
  cr_assert_null(p);
  end(&card, memory);
}

// One owner per unit of the card: the thread's number, 0 if nobody has it.
enum { OWNED_UNITS = 1 << 16, THREADS = 6 };
static _Atomic uint8_t owners[OWNED_UNITS];
static rn_cuda_memory_t* shared;
static uint64_t shared_address;

static void own(uint64_t address, size_t size, uint8_t from, uint8_t to) {
  size_t first = (address - shared_address) / UNIT;
  for (size_t i = first; i <= first + (size ? size - 1 : 0) / UNIT; i++) {
    cr_assert_lt(i, OWNED_UNITS);
    uint8_t owner = atomic_exchange_explicit(&owners[i], to, memory_order_relaxed);
    cr_assert_eq(owner, from);
  }
}

static void* churn_shared(void* arg) {
  uint8_t me = *(uint8_t*)arg;
  uint32_t random = me * 7919u;
  enum { N = 32 };
  uint64_t held[N] = {0};
  size_t sizes[N];
  for (int step = 0; step < 4000; step++) {
    uint32_t i = next_random(&random) % N;
    if (held[i]) {
      own(held[i], sizes[i], me, 0);
      rn_cuda_memory_free(shared, held[i]);
      held[i] = 0;
    } else {
      sizes[i] = random_size(&random, MIB);
      held[i] = rn_cuda_memory_alloc(shared, sizes[i], "thread");
      if (held[i]) own(held[i], sizes[i], 0, me);
    }
    if (step % 1000 == 999) {
      rn_cuda_memory_trim(shared);
      rn_strbuf_t text;
      rn_strbuf_init(&text, rn_allocator_system());
      rn_cuda_memory_describe(shared, &text);
      rn_strbuf_clear(&text);
    }
  }
  for (int i = 0; i < N; i++) {
    if (held[i]) own(held[i], sizes[i], me, 0);
    rn_cuda_memory_free(shared, held[i]);
  }
  return NULL;
}

// Blocks are parts of one stretch, found by first fit.
static uint64_t stretch_alloc(void* self, size_t size) {
  bool* used = self;  // one per 2 MiB
  size_t count = size / (2 * MIB), run = 0;
  for (size_t i = 0; i < OWNED_UNITS * UNIT / (2 * MIB); i++) {
    run = used[i] ? 0 : run + 1;
    if (run < count) continue;
    for (size_t k = i + 1 - run; k <= i; k++) used[k] = true;
    return shared_address + (i + 1 - run) * 2 * MIB;
  }
  return 0;
}

static void stretch_free(void* self, uint64_t address, size_t size) {
  bool* used = self;
  size_t first = (address - shared_address) / (2 * MIB);
  for (size_t k = first; k < first + size / (2 * MIB); k++) used[k] = false;
}

Test(cuda_memory, many_threads, .timeout = 60) {
  bool used[OWNED_UNITS * UNIT / (2 * MIB)] = {0};
  shared_address = UINT64_C(0x7f0000000000);
  rn_cuda_memory_options_t options = {.source = {used, stretch_alloc, stretch_free},
                                      .block_size = 2 * MIB};
  OK(rn_cuda_memory_create(&options, rn_allocator_system(), &shared));
  pthread_t threads[THREADS];
  uint8_t numbers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = (uint8_t)(i + 1);
    cr_assert_eq(pthread_create(&threads[i], NULL, churn_shared, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  rn_cuda_memory_stats_t stats = stats_of(shared);
  cr_assert_eq(stats.bytes_in_use, 0);
  cr_assert_eq(rn_cuda_memory_trim(shared), stats.bytes_reserved);
  rn_cuda_memory_destroy(shared);
}
