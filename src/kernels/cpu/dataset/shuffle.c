// Shuffles elements through a buffer that is kept full. For the same seeds the order is stock's.
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/seeds.h"

// Walks over the input that may share the buffer: the next one starts to fill it while the previous
// one is drained.
#define MAX_WALKS 3
#define MOST_BETWEEN_LOOKS 65536

typedef struct shuffle_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  int64_t size;            // of the buffer; INT64_MAX for all the data
  int64_t count;           // number of walks; < 0 if endless
  rn_data_seeds_t* seeds;  // Retained
  rn_mutex_t mutex;        // guards |order|
  int64_t* order;          // Owned: of elements by index; NULL until one is asked for
  int64_t ordered;         // their number
} shuffle_t;

// The part of the buffer that holds elements of one walk: positions |start| to |end|, which only
// grow and are taken modulo the buffer's size.
typedef struct shuffle_walk_t {
  int64_t start, end;
  int64_t first;  // initial position; the walk had no elements if |end| equals it
} shuffle_walk_t;

typedef struct shuffle_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_tensor_t* arriving;
  rn_tensor_t* rows;  // Owned; |capacity| rows
  int64_t capacity;
  int64_t held;  // elements in the buffer
  shuffle_walk_t walks[MAX_WALKS + 2];
  int walk_count;
  int64_t walk;  // number of walks started
  bool has_data;
  int64_t seed, seed2, drawn;
  rn_philox_single_t words;
} shuffle_iterator_t;

static rn_status_t shuffle_open(rn_dataset_t* dataset) {
  shuffle_t* shuffle = (shuffle_t*)dataset;
  rn_mutex_init(&shuffle->mutex);
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &shuffle->input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "buffer_size", &shuffle->size));
  if (shuffle->size == RN_DATA_UNKNOWN) shuffle->size = INT64_MAX;
  if (shuffle->size <= 0)
    return rn_invalid_argument("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  shuffle->count = 1;
  if (rn_data_has_input(dataset, "count"))
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "count", &shuffle->count));
  if (shuffle->count < 1 && shuffle->count != -1)
    return rn_invalid_argument("count must be greater than zero or equal to -1.");
  if (shuffle->input->component_count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, shuffle->input->component_count,
                               dataset->component_count);
  return rn_data_seeds_open(dataset, &shuffle->seeds);
}

static void shuffle_close(rn_dataset_t* dataset) {
  shuffle_t* shuffle = (shuffle_t*)dataset;
  if (shuffle->seeds) rn_object_release(&shuffle->seeds->resource.object);
  if (shuffle->order) RN_FREE_ARRAY(dataset->node->allocator, shuffle->order, shuffle->ordered);
  rn_mutex_destroy(&shuffle->mutex);
}

static int64_t shuffle_cardinality(const rn_dataset_t* dataset) {
  const shuffle_t* shuffle = (const shuffle_t*)dataset;
  int64_t n = rn_dataset_cardinality(shuffle->input), all = 0;
  if (shuffle->count == 1) return n;
  if (shuffle->count < 0) return n == 0 ? 0 : RN_DATA_INFINITE;
  if (n < 0) return n;
  return rn_mul_i64_ok(n, shuffle->count, &all) ? all : INT64_MAX;
}

// Elements by index have an order of their own: a shuffle of all, from the generator's first seeds;
// if walks do not differ, from the first of these twice, as in TensorFlow.
static rn_status_t make_order_locked(shuffle_t* shuffle, const rn_step_t* step) {
  int64_t count = shuffle_cardinality(&shuffle->base);
  rn_allocator_t allocator = shuffle->base.node->allocator;
  int64_t* order = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)count, &order));
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  const rn_data_seeds_t* seeds = shuffle->seeds;
  rn_philox_single_t words = rn_philox_single(
      rn_philox((uint64_t)seeds->seed, (uint64_t)(seeds->changes ? seeds->seed2 : seeds->seed)));
  for (int64_t i = 0; i < count; ++i) {
    rn_status_t status =
        i % MOST_BETWEEN_LOOKS == MOST_BETWEEN_LOOKS - 1 ? rn_step_stopped(step) : RN_OK;
    if (!rn_ok(status)) {
      RN_FREE_ARRAY(allocator, order, count);
      return status;
    }
    int64_t place = i + (int64_t)(rn_philox_word(&words) % (uint64_t)(count - i));
    int64_t chosen = order[place];
    order[place] = order[i];
    order[i] = chosen;
  }
  shuffle->order = order;
  shuffle->ordered = count;
  return RN_OK;
}

static rn_status_t shuffle_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                               rn_tensor_t* out) {
  shuffle_t* shuffle = (shuffle_t*)dataset;
  rn_mutex_lock(&shuffle->mutex);
  rn_status_t status = shuffle->order ? RN_OK : make_order_locked(shuffle, step);
  int64_t place = rn_ok(status) ? shuffle->order[index] : 0;
  rn_mutex_unlock(&shuffle->mutex);
  return rn_ok(status) ? rn_dataset_get(shuffle->input, place, step, out) : status;
}

static void seed_words(shuffle_iterator_t* own) {
  own->words = rn_philox_single(rn_philox((uint64_t)own->seed, (uint64_t)own->seed2));
  rn_philox_single_skip(&own->words, (uint64_t)own->drawn);
}

static rn_status_t shuffle_start(rn_data_iterator_t* iterator) {
  shuffle_iterator_t* own = (shuffle_iterator_t*)iterator;
  rn_data_seeds_draw(((const shuffle_t*)iterator->dataset)->seeds, &own->seed, &own->seed2);
  seed_words(own);
  return rn_data_row(iterator, iterator->dataset->component_count, &own->arriving);
}

static rn_tensor_t* row_at(const shuffle_iterator_t* own, int64_t place) {
  int64_t size = ((const shuffle_t*)own->base.dataset)->size;
  return own->rows + (place % size) * own->base.dataset->component_count;
}

static void shuffle_stop(rn_data_iterator_t* iterator) {
  shuffle_iterator_t* own = (shuffle_iterator_t*)iterator;
  int32_t count = iterator->dataset->component_count;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->arriving, count);
  for (int64_t i = 0; i < own->capacity * count; ++i) rn_tensor_clear(&own->rows[i]);
  RN_FREE_ARRAY(iterator->dataset->node->allocator, own->rows, own->capacity * count);
}

// Allocates the row at |place|. Positions below the buffer's size are used in order, so the buffer
// grows with the data.
static rn_status_t make_room(shuffle_iterator_t* own, int64_t place) {
  const shuffle_t* shuffle = (const shuffle_t*)own->base.dataset;
  int64_t count = own->base.dataset->component_count;
  place %= shuffle->size;
  if (place < own->capacity) return RN_OK;
  int64_t capacity = own->capacity ? own->capacity * 2 : 16;
  if (capacity <= place) capacity = place + 1;
  if (capacity > shuffle->size) capacity = shuffle->size;
  rn_allocator_t allocator = shuffle->base.node->allocator;
  rn_tensor_t* rows = NULL;
  int64_t total = 0;
  if (!rn_mul_i64_ok(capacity, count, &total)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)total, &rows));
  if (own->capacity) memcpy(rows, own->rows, (size_t)(own->capacity * count) * sizeof *rows);
  RN_FREE_ARRAY(allocator, own->rows, own->capacity * count);
  own->rows = rows;
  own->capacity = capacity;
  return RN_OK;
}

static rn_status_t put_arrived(shuffle_iterator_t* own) {
  shuffle_walk_t* last = &own->walks[own->walk_count - 1];
  RN_RETURN_IF_ERROR(make_room(own, last->end));
  rn_data_row_move(own->arriving, row_at(own, last->end), own->base.dataset->component_count);
  last->end++;
  own->held++;
  own->has_data = true;
  return RN_OK;
}

static bool should_fill(const shuffle_iterator_t* own) {
  const shuffle_t* shuffle = (const shuffle_t*)own->base.dataset;
  if (!own->source.iterator && shuffle->count != -1 && own->walk >= shuffle->count) return false;
  if (own->walk_count > MAX_WALKS && own->held > 0) return false;
  return own->held < shuffle->size;
}

static rn_status_t begin_walk(shuffle_iterator_t* own) {
  int64_t end = own->walk_count ? own->walks[own->walk_count - 1].end : 0;
  RN_RETURN_IF_ERROR(
      rn_data_source_start(&own->source, &own->base, ((const shuffle_t*)own->base.dataset)->input));
  if (own->walk_count && own->walks[own->walk_count - 1].first == end) own->walk_count--;
  own->walks[own->walk_count++] = (shuffle_walk_t){end, end, end};
  own->walk++;
  return RN_OK;
}

// Drops finished walks; the next one has its own seeds.
static void drop_used_walks(shuffle_iterator_t* own) {
  while (own->walks[0].start == own->walks[0].end) {
    own->walk_count--;
    memmove(own->walks, own->walks + 1, (size_t)own->walk_count * sizeof *own->walks);
    rn_data_seeds_draw(((const shuffle_t*)own->base.dataset)->seeds, &own->seed, &own->seed2);
    own->drawn = 0;
    seed_words(own);
  }
}

static bool draw(shuffle_iterator_t* own) {
  drop_used_walks(own);
  shuffle_walk_t* walk = &own->walks[0];
  uint64_t range = (uint64_t)(walk->end - walk->start);
  int64_t offset = (int64_t)(rn_philox_word(&own->words) % range);
  own->drawn++;
  int32_t count = own->base.dataset->component_count;
  rn_tensor_t* chosen = row_at(own, walk->start + offset);
  rn_data_row_move(chosen, own->base.asked->out, count);
  if (offset) rn_data_row_move(row_at(own, walk->start), chosen, count);
  walk->start++;
  own->held--;
  return rn_data_finish(&own->base, RN_OK);
}

static bool shuffle_next(rn_data_iterator_t* iterator) {
  shuffle_iterator_t* own = (shuffle_iterator_t*)iterator;
  const shuffle_t* shuffle = (const shuffle_t*)iterator->dataset;
  while (iterator->phase || should_fill(own)) {
    rn_status_t status = RN_OK;
    if (iterator->phase == 0) {
      if (!own->source.iterator) status = begin_walk(own);
      if (!rn_ok(status)) return rn_data_finish(iterator, status);
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, own->arriving)) return false;
    }
    iterator->phase = 0;
    status = own->source.request.status;
    if (own->source.request.is_end) {
      // Repeating an empty input forever would never end.
      if (!own->has_data && shuffle->count == -1) break;
      continue;
    }
    if (rn_ok(status)) status = put_arrived(own);
    if (!rn_ok(status)) {
      rn_data_row_clear(own->arriving, iterator->dataset->component_count);
      return rn_data_finish(iterator, status);
    }
  }
  return own->held == 0 ? rn_data_end(iterator) : draw(own);
}

static rn_status_t shuffle_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  shuffle_iterator_t* own = (shuffle_iterator_t*)iterator;
  const int64_t numbers[] = {own->seed, own->seed2, own->drawn, own->walk, own->has_data};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) rn_data_put_int(writer, numbers[i]);
  rn_data_seeds_put(((const shuffle_t*)iterator->dataset)->seeds, writer);
  rn_data_put_int(writer, own->walk_count);
  for (int w = 0; w < own->walk_count; ++w) {
    rn_data_put_int(writer, own->walks[w].end - own->walks[w].start);
    rn_data_put_int(writer, own->walks[w].first != own->walks[w].end);
    for (int64_t p = own->walks[w].start; p < own->walks[w].end; ++p)
      rn_data_put_row(writer, row_at(own, p), iterator->dataset->component_count);
  }
  return rn_data_put_iterator(writer, own->source.iterator);
}

// Only the order within a walk matters, not its positions.
static rn_status_t restore_walk(shuffle_iterator_t* own, rn_data_reader_t* reader) {
  const shuffle_t* shuffle = (const shuffle_t*)own->base.dataset;
  int64_t count = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  if (count < 0 || count > shuffle->size - own->held) return rn_data_bad_state();
  int64_t has_begun = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &has_begun));
  int64_t end = own->walk_count ? own->walks[own->walk_count - 1].end : 0;
  own->walks[own->walk_count++] = (shuffle_walk_t){end, end, has_begun ? end - 1 : end};
  for (int64_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_data_take_row(reader, own->base.dataset->types,
                                        own->base.dataset->component_count, own->arriving));
    RN_RETURN_IF_ERROR(put_arrived(own));
  }
  return RN_OK;
}

static rn_status_t shuffle_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  shuffle_iterator_t* own = (shuffle_iterator_t*)iterator;
  int64_t has_data = 0, walks = 0;
  int64_t* const numbers[] = {&own->seed, &own->seed2, &own->drawn, &own->walk, &has_data};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    RN_RETURN_IF_ERROR(rn_data_take_int(reader, numbers[i]));
  RN_RETURN_IF_ERROR(rn_data_seeds_take(((const shuffle_t*)iterator->dataset)->seeds, reader));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &walks));
  if (walks < 0 || walks > MAX_WALKS + 2 || own->drawn < 0 || own->walk < 0)
    return rn_data_bad_state();
  seed_words(own);
  for (int64_t w = 0; w < walks; ++w) RN_RETURN_IF_ERROR(restore_walk(own, reader));
  own->has_data = has_data != 0;
  return rn_data_restore_source(reader, &own->source, iterator,
                                ((const shuffle_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_shuffle = {.dataset_size = sizeof(shuffle_t),
                                             .iterator_size = sizeof(shuffle_iterator_t),
                                             .open = shuffle_open,
                                             .close = shuffle_close,
                                             .cardinality = shuffle_cardinality,
                                             .start = shuffle_start,
                                             .stop = shuffle_stop,
                                             .next = shuffle_next,
                                             .save = shuffle_save,
                                             .restore = shuffle_restore,
                                             .get = shuffle_get};
