// The loops of a pool: rn_pool_for and its relatives.
//
// A loop is a slot with some shares of pieces, one share per thread that is invited. Nothing is
// assigned: a thread claims pieces one chunk after the other, of its own share first and then of
// the others, so a thread that does not come, or is not running, costs the one chunk that it holds.
// The caller needs no one: it works too and waits only for chunks that others hold.
//
// A fork is one store to a line that looking workers read, a claim or an end is an exchange on a
// line that usually no one else uses, and the join reads those lines. In consecutive loops a worker
// gets the same share, whose data its cache has. Waking a sleeper costs microseconds: a caller
// wakes one at most, workers that join wake two others each. Short loops wake no one until many of
// them have missed a sleeper.
#include "base/pool_internal.h"

#define WAKE_NS 15000  // what a wake-up costs
#define LATE_NS 2000   // after this, workers join that were not invited: others have not come
#define CHUNK_NS 2000  // shorter pieces are claimed several at once
// A share has at least this many chunks if it has as many pieces, so that the last ones are short.
#define LEAST_CHUNKS 8
#define FANOUT 2  // workers that a worker wakes
// Pieces that are enough for many threads; a loop of fewer has shorter ones, if the caller allows.
#define ENOUGH_PIECES 64

#define FLAG_BACKWARDS 1u  // last pieces of a share first
#define FLAG_WAKES 2u      // worth a wake-up

// Generation and number of a word of rn_pool_part_t. 2^40 loops take weeks: no thread is delayed so
// long that it mistakes one for another.
#define NUMBER_BITS 24
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)
#define GENERATION_MASK (UINT64_MAX >> NUMBER_BITS)

// The thread's last slot, of whichever pool: a hint, since that slot is in its cache.
static _Thread_local unsigned last_slot __attribute__((tls_model("initial-exec")));

// What a thread needs of a loop: a copy, since the slot may get another loop at any time at which
// the thread holds no chunk.
typedef struct view_t {
  rn_pool_loop_t* loop;
  uint64_t generation;
  rn_pool_body_t body;
  void* arg;
  int64_t count, grain, chunks;
  uint32_t chunk, parts, base, flags;
} view_t;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// False: no loop is open. Acquire and release on all fields: if a field is of a later loop, so is
// the generation that is read after it.
static bool look_at(rn_pool_loop_t* loop, view_t* out) {
  uint64_t generation = atomic_load_explicit(&loop->generation, memory_order_acquire);
  if (generation % 2 == 0) return false;
  *out = (view_t){.loop = loop,
                  .generation = generation & GENERATION_MASK,
                  .body = atomic_load_explicit(&loop->body, memory_order_acquire),
                  .arg = atomic_load_explicit(&loop->arg, memory_order_acquire),
                  .count = atomic_load_explicit(&loop->count, memory_order_acquire),
                  .grain = atomic_load_explicit(&loop->grain, memory_order_acquire),
                  .chunk = atomic_load_explicit(&loop->chunk, memory_order_acquire),
                  .parts = atomic_load_explicit(&loop->parts, memory_order_acquire),
                  .base = atomic_load_explicit(&loop->base, memory_order_acquire),
                  .flags = atomic_load_explicit(&loop->flags, memory_order_acquire)};
  if (atomic_load_explicit(&loop->generation, memory_order_relaxed) != generation) return false;
  out->chunks = ceil_div(ceil_div(out->count, out->grain), out->chunk);
  return true;
}

static bool is_over(const view_t* view) {
  return (atomic_load_explicit(&view->loop->generation, memory_order_relaxed) & GENERATION_MASK) !=
         view->generation;
}

static int64_t first_chunk(const view_t* view, uint32_t part) {
  int64_t each = view->chunks / view->parts, more = view->chunks % view->parts;
  return part * each + least(part, more);
}

// The number in a word of |view|'s generation; that of an older one is 0. False: of a later one.
static bool number_in(const view_t* view, uint64_t word, int64_t* out) {
  uint64_t age = (view->generation - (word >> NUMBER_BITS)) & GENERATION_MASK;
  *out = age == 0 ? (int64_t)(word & NUMBER_MASK) : 0;
  return age <= GENERATION_MASK / 2;
}

static uint64_t word_of(const view_t* view, int64_t number) {
  return view->generation << NUMBER_BITS | (uint64_t)number;
}

// Claims a chunk of share |part|. -1: there is none.
static int64_t claim(const view_t* view, uint32_t part, int64_t size) {
  _Atomic uint64_t* word = &view->loop->shares[part].claimed;
  uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
  int64_t number;
  // If the exchange succeeds, the loop is under way and stays so until the chunk is done: all
  // chunks of a loop that has ended were claimed in its generation.
  do {
    if (!number_in(view, old, &number) || number >= size) return -1;
  } while (!atomic_compare_exchange_weak_explicit(word, &old, word_of(view, number + 1),
                                                  memory_order_relaxed, memory_order_relaxed));
  return number;
}

static void ring(rn_pool_loop_t* loop) {
  atomic_fetch_add(&loop->bell, 1);
  rn_pool_futex_wake(&loop->bell);
}

// Says that |number| chunks of share |part| are done. After this the slot may get another loop.
static void report(const view_t* view, uint32_t part, int64_t number) {
  rn_pool_loop_t* loop = view->loop;
  _Atomic uint64_t* word = &loop->shares[part].done;
  uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
  int64_t before;
  // Sequentially consistent, like the caller's side: either it sees that the chunks are done, or we
  // see that it waits. Waking the caller of a later loop does no harm.
  do {
    number_in(view, old, &before);
  } while (!atomic_compare_exchange_weak(word, &old, word_of(view, before + number)));
  if (atomic_load(&loop->is_awaited)) ring(loop);
}

static void run_chunk(const view_t* view, int64_t chunk) {
  int64_t piece = chunk * view->chunk, pieces = ceil_div(view->count, view->grain);
  for (int64_t end = least(piece + view->chunk, pieces); piece < end; ++piece) {
    int64_t begin = piece * view->grain;
    view->body(view->arg, begin, begin + least(view->grain, view->count - begin));
  }
}

// Claims and runs chunks of share |part| until none is left. False: there was none.
static bool work_on(const view_t* view, uint32_t part) {
  int64_t first = first_chunk(view, part), size = first_chunk(view, part + 1) - first;
  int64_t done = 0, chunk;
  while ((chunk = claim(view, part, size)) >= 0) {
    run_chunk(view, first + (view->flags & FLAG_BACKWARDS ? size - 1 - chunk : chunk));
    ++done;
  }
  if (done) report(view, part, done);
  return done > 0;
}

static bool work(const view_t* view, uint32_t home) {
  bool has_worked = false;
  for (uint32_t i = 0; i < view->parts && !is_over(view); ++i) {
    uint32_t part = home + i < view->parts ? home + i : home + i - view->parts;
    has_worked |= work_on(view, part);
  }
  return has_worked;
}

// The worker that share |i| + 1 is for.
static uint32_t invited(const rn_pool_t* pool, const view_t* view, uint32_t i) {
  return (view->base + i) % ((uint32_t)pool->threads - 1);
}

static bool is_asleep(rn_pool_t* pool, uint32_t index) {
  return atomic_load_explicit(&pool->asleep[index / 64], memory_order_relaxed) >> index % 64 & 1;
}

// Wakes up to |most| workers that are invited and sleep.
static void wake_workers(rn_pool_t* pool, const view_t* view, int most) {
  while (most > 0) {
    uint32_t i = atomic_fetch_add_explicit(&view->loop->next_wake, 1, memory_order_relaxed);
    if (i + 1 >= view->parts) return;
    uint32_t index = invited(pool, view, i);
    if (is_asleep(pool, index) && rn_pool_wake(&pool->workers[index])) --most;
  }
}

// The share that a loop has for worker |index|; 0 if it is not invited.
static uint32_t share_of(const rn_pool_t* pool, const view_t* view, uint32_t index) {
  uint32_t workers = (uint32_t)pool->threads - 1;
  uint32_t place = index >= view->base ? index - view->base : index + workers - view->base;
  return place + 1 < view->parts ? place + 1 : 0;
}

// True if |self| has seen this loop for a while already.
static bool is_late(rn_pool_worker_t* self, const view_t* view, uint32_t slot) {
  int64_t now = rn_pool_now_ns();
  if (self->seen_slot == slot && self->seen_generation == view->generation)
    return now - self->seen_ns > LATE_NS;
  self->seen_slot = slot;
  self->seen_generation = view->generation;
  self->seen_ns = now;
  return false;
}

static bool help_slot(rn_pool_t* pool, rn_pool_worker_t* self, uint32_t slot) {
  view_t view;
  if (!look_at(&pool->loops[slot], &view)) return false;
  if (!self) return work(&view, 1);
  if (self->left[slot] == view.generation) return false;
  uint32_t share = share_of(pool, &view, self->index);
  if (!share && !is_late(self, &view, slot)) return false;
  rn_pool_set_busy(self);
  if (view.flags & FLAG_WAKES) wake_workers(pool, &view, FANOUT);
  work(&view, share ? share : 1 + self->index % (view.parts - 1));
  self->left[slot] = view.generation;
  return true;
}

static uint32_t count_open(rn_pool_t* pool, uint32_t slots) {
  uint32_t open = 0;
  for (uint32_t s = 0; s < slots; ++s)
    open += atomic_load_explicit(&pool->loops[s].generation, memory_order_relaxed) % 2;
  return open;
}

bool rn_pool_help_loops(rn_pool_t* pool, rn_pool_worker_t* self) {
  uint32_t slots = atomic_load_explicit(&pool->slots_used, memory_order_acquire);
  // With several loops under way their callers are at work too, and need processors.
  if (self && slots > 1 && self->index + count_open(pool, slots) >= (uint32_t)pool->processors &&
      self->index > 0)
    return false;
  for (uint32_t i = 0; i < slots; ++i) {
    uint32_t slot = self ? (self->index + i) % slots : i;
    if (help_slot(pool, self, slot)) return true;
  }
  return false;
}

// Takes a free slot; NULL if there is none.
static rn_pool_loop_t* take_slot(rn_pool_t* pool) {
  for (unsigned i = 0; i <= RN_POOL_SLOTS; ++i) {
    unsigned slot = i ? i - 1 : last_slot;
    rn_pool_loop_t* loop = &pool->loops[slot];
    if (atomic_load_explicit(&loop->is_taken, memory_order_relaxed) ||
        atomic_exchange_explicit(&loop->is_taken, true, memory_order_acquire))
      continue;
    last_slot = slot;
    uint32_t used = atomic_load_explicit(&pool->slots_used, memory_order_relaxed);
    while (used <= slot && !atomic_compare_exchange_weak(&pool->slots_used, &used, slot + 1)) {
    }
    return loop;
  }
  return NULL;
}

static void open_loop(rn_pool_loop_t* loop, const view_t* view) {
  atomic_store_explicit(&loop->next_wake, 0, memory_order_relaxed);
  atomic_store_explicit(&loop->body, view->body, memory_order_release);
  atomic_store_explicit(&loop->arg, view->arg, memory_order_release);
  atomic_store_explicit(&loop->count, view->count, memory_order_release);
  atomic_store_explicit(&loop->grain, view->grain, memory_order_release);
  atomic_store_explicit(&loop->chunk, view->chunk, memory_order_release);
  atomic_store_explicit(&loop->parts, view->parts, memory_order_release);
  atomic_store_explicit(&loop->base, view->base, memory_order_release);
  atomic_store_explicit(&loop->flags, view->flags, memory_order_release);
  uint64_t generation = atomic_load_explicit(&loop->generation, memory_order_relaxed);
  atomic_store_explicit(&loop->generation, generation + 1, memory_order_release);
}

static bool is_done(const view_t* view) {
  for (uint32_t p = 0; p < view->parts; ++p) {
    int64_t number;
    number_in(view, atomic_load(&view->loop->shares[p].done), &number);
    if (number < first_chunk(view, p + 1) - first_chunk(view, p)) return false;
  }
  return true;
}

// Waits until every chunk is done. All are claimed, so this waits for running threads, or for one
// chunk of a thread that is not running.
static void join(rn_pool_t* pool, const view_t* view) {
  rn_pool_loop_t* loop = view->loop;
  rn_pool_spin_t spin = {0};
  bool done;
  while (!(done = is_done(view)) && rn_pool_spin_again(pool, &spin, RN_POOL_LONG_LOOK_NS)) {
  }
  if (done) return;
  atomic_store(&loop->is_awaited, true);
  for (;;) {
    uint32_t bell = atomic_load(&loop->bell);
    if (is_done(view)) break;
    rn_pool_futex_wait(&loop->bell, bell);
  }
  atomic_store(&loop->is_awaited, false);
}

static void close_loop(rn_pool_loop_t* loop) {
  uint64_t generation = atomic_load_explicit(&loop->generation, memory_order_relaxed);
  atomic_store_explicit(&loop->generation, generation + 1, memory_order_release);
  atomic_store_explicit(&loop->is_taken, false, memory_order_release);
}

// True if the loop is worth waking a worker: if those that sleep have cost as much as that, by this
// loop or by those before it. |time_ns| is 0 if it is not known.
static bool is_worth_a_wake(rn_pool_t* pool, const view_t* view, double time_ns, bool is_small) {
  if (time_ns == 0) return !is_small;
  bool misses = atomic_load_explicit(&pool->started, memory_order_relaxed) < (int)view->parts - 1;
  for (uint32_t i = 0; i + 1 < view->parts && !misses; ++i)
    misses = is_asleep(pool, invited(pool, view, i));
  view->loop->debt_ns = misses ? view->loop->debt_ns + time_ns : 0;
  if (view->loop->debt_ns < WAKE_NS) return false;
  view->loop->debt_ns = 0;
  return true;
}

static void call_workers(rn_pool_t* pool, const view_t* view) {
  if (atomic_load_explicit(&pool->started, memory_order_relaxed) < (int)view->parts - 1)
    rn_pool_start_workers(pool, (int)view->parts - 1);
  else
    wake_workers(pool, view, 1);
}

static void run_shared(rn_pool_t* pool, rn_pool_loop_t* loop, view_t* view, double time_ns,
                       bool is_small) {
  uint32_t slots = atomic_load_explicit(&pool->slots_used, memory_order_relaxed);
  uint32_t others = slots > 1 ? count_open(pool, slots) : 0;
  // Loops that are under way at the same time invite different workers.
  view->base = others * (view->parts - 1) % ((uint32_t)pool->threads - 1);
  view->loop = loop;
  if (is_worth_a_wake(pool, view, time_ns, is_small)) view->flags |= FLAG_WAKES;
  open_loop(loop, view);
  view->generation = atomic_load_explicit(&loop->generation, memory_order_relaxed);
  view->generation &= GENERATION_MASK;
  if (view->flags & FLAG_WAKES) call_workers(pool, view);
  work(view, 0);
  join(pool, view);
  close_loop(loop);
}

static void run_alone(const rn_pool_work_t* work) {
  int64_t pieces = ceil_div(work->count, work->grain);
  for (int64_t i = 0; i < pieces; ++i) {
    int64_t begin = (work->is_backwards ? pieces - 1 - i : i) * work->grain;
    work->body(work->arg, begin, begin + least(work->grain, work->count - begin));
  }
}

// Pieces per chunk, for |parts| threads; |piece_ns| is 0 if it is not known.
static uint32_t chunk_of(int64_t pieces, int parts, double piece_ns) {
  int64_t most = pieces / (parts * LEAST_CHUNKS);
  int64_t wanted = piece_ns > 0 ? (int64_t)(CHUNK_NS / piece_ns) : 1;
  int64_t chunk = wanted < most ? wanted : most;
  int64_t fewest = pieces >> (NUMBER_BITS - 1);  // so that the numbers fit in their bits
  if (chunk < fewest + 1) chunk = fewest + 1;
  return chunk > UINT32_MAX ? UINT32_MAX : (uint32_t)chunk;
}

// A loop of several pieces, by up to |most| threads.
static void run_loop(rn_pool_t* pool, const rn_pool_work_t* work, int most) {
  rn_pool_choice_t choice = rn_pool_cost_choose(pool->costs, work, most);
  int64_t start = rn_pool_now_ns();
  rn_pool_loop_t* loop = choice.threads > 1 ? take_slot(pool) : NULL;
  if (!loop) {
    run_alone(work);
    if (choice.threads > 1) return;
  } else {
    int64_t pieces = ceil_div(work->count, work->grain);
    double piece_ns = choice.time_ns * choice.threads / (double)pieces;
    view_t view = {.body = work->body,
                   .arg = work->arg,
                   .count = work->count,
                   .grain = work->grain,
                   .chunk = chunk_of(pieces, choice.threads, piece_ns),
                   .flags = work->is_backwards ? FLAG_BACKWARDS : 0};
    view.chunks = ceil_div(pieces, view.chunk);
    view.parts = (uint32_t)least(choice.threads, view.chunks);
    run_shared(pool, loop, &view, choice.time_ns, work->is_small);
  }
  rn_pool_cost_record(&choice, most, rn_pool_now_ns() - start);
}

void rn_pool_run(rn_pool_t* pool, const rn_pool_work_t* given) {
  if (given->count <= 0) return;
  rn_pool_work_t work = *given;
  if (work.grain < 1) work.grain = 1;
  if (work.count <= work.grain) {
    work.body(work.arg, 0, work.count);
    return;
  }
  int most = (int)least(rn_pool_loop_threads(pool), ceil_div(work.count, work.grain));
  if (most > 1)
    run_loop(pool, &work, most);
  else
    run_alone(&work);
}

void rn_pool_for(rn_pool_t* pool, int64_t count, int64_t grain, rn_pool_body_t body, void* arg) {
  rn_pool_run(pool, &(rn_pool_work_t){.count = count, .grain = grain, .body = body, .arg = arg});
}

void rn_pool_for_small(rn_pool_t* pool, int64_t count, int64_t grain, int64_t small,
                       rn_pool_body_t body, void* arg) {
  bool is_small = count <= grain && count > small;
  int64_t piece = count / ENOUGH_PIECES;
  if (piece < small) piece = small;
  rn_pool_run(pool, &(rn_pool_work_t){.count = count,
                                      .grain = piece < grain ? piece : grain,
                                      .body = body,
                                      .arg = arg,
                                      .is_small = is_small});
}
