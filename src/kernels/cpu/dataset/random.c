// Datasets of random numbers, and random choices of elements.
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/seeds.h"

// A stream of random words whose position can be saved.
typedef struct random_draws_t {
  int64_t seed, seed2;
  int64_t drawn;
  rn_philox_single_t words;
} random_draws_t;

static void draws_seek(random_draws_t* draws) {
  draws->words = rn_philox_single(rn_philox((uint64_t)draws->seed, (uint64_t)draws->seed2));
  rn_philox_single_skip(&draws->words, (uint64_t)draws->drawn);
}

static uint32_t draws_next(random_draws_t* draws) {
  draws->drawn++;
  return rn_philox_word(&draws->words);
}

static void draws_put(const random_draws_t* draws, rn_data_writer_t* writer) {
  rn_data_put_int(writer, draws->seed);
  rn_data_put_int(writer, draws->seed2);
  rn_data_put_int(writer, draws->drawn);
}

static rn_status_t draws_take(random_draws_t* draws, rn_data_reader_t* reader) {
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &draws->seed));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &draws->seed2));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &draws->drawn));
  draws_seek(draws);
  return RN_OK;
}

// Reads the inputs seed and seed2; two zeros request seeds of the runtime's choice.
static rn_status_t draws_open(const rn_dataset_t* dataset, random_draws_t* draws) {
  int64_t seed = 0, seed2 = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "seed", &seed));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "seed2", &seed2));
  rn_philox_t start = rn_philox_seeded(dataset->host->env, seed, seed2);
  *draws = (random_draws_t){.seed = (int64_t)start.key, .seed2 = (int64_t)start.stream};
  draws_seek(draws);
  return RN_OK;
}

// An endless stream of random numbers, one word each.
typedef struct random_t {
  rn_dataset_t base;
  random_draws_t start;    // if there is no generator
  rn_data_seeds_t* seeds;  // Retained; NULL: every iteration has the same numbers
} random_t;

typedef struct random_iterator_t {
  rn_data_iterator_t base;
  random_draws_t draws;
} random_iterator_t;

static rn_status_t random_open(rn_dataset_t* dataset) {
  random_t* random = (random_t*)dataset;
  RN_RETURN_IF_ERROR(draws_open(dataset, &random->start));
  if (!rn_data_has_input(dataset, "seed_generator")) return RN_OK;
  return rn_data_seeds_open(dataset, &random->seeds);
}

static void random_close(rn_dataset_t* dataset) {
  random_t* random = (random_t*)dataset;
  if (random->seeds) rn_object_release(&random->seeds->resource.object);
}

static int64_t infinite(const rn_dataset_t* dataset) {
  (void)dataset;
  return RN_DATA_INFINITE;
}

static rn_status_t random_start(rn_data_iterator_t* iterator) {
  random_draws_t* draws = &((random_iterator_t*)iterator)->draws;
  const random_t* random = (const random_t*)iterator->dataset;
  *draws = random->start;
  if (!random->seeds) return RN_OK;
  rn_data_seeds_draw(random->seeds, &draws->seed, &draws->seed2);
  draws_seek(draws);
  return RN_OK;
}

static bool random_next(rn_data_iterator_t* iterator) {
  uint32_t word = draws_next(&((random_iterator_t*)iterator)->draws);
  return rn_data_finish(
      iterator, rn_data_make_scalar(iterator->dataset->node->memory, iterator->dataset->types[0],
                                    word, iterator->asked->out));
}

static rn_status_t random_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  rn_data_seeds_t* seeds = ((const random_t*)iterator->dataset)->seeds;
  draws_put(&((random_iterator_t*)iterator)->draws, writer);
  if (seeds) rn_data_seeds_put(seeds, writer);
  return RN_OK;
}

static rn_status_t random_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  rn_data_seeds_t* seeds = ((const random_t*)iterator->dataset)->seeds;
  RN_RETURN_IF_ERROR(draws_take(&((random_iterator_t*)iterator)->draws, reader));
  return seeds ? rn_data_seeds_take(seeds, reader) : RN_OK;
}

const rn_data_kind_t rn_data_kind_random = {.dataset_size = sizeof(random_t),
                                            .iterator_size = sizeof(random_iterator_t),
                                            .open = random_open,
                                            .close = random_close,
                                            .cardinality = infinite,
                                            .start = random_start,
                                            .next = random_next,
                                            .save = random_save,
                                            .restore = random_restore};

// SamplingDataset: each element passes with a probability.
typedef struct random_sample_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  float rate;
  random_draws_t start;
} random_sample_t;

typedef struct sample_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  random_draws_t draws;
} sample_iterator_t;

static rn_status_t sample_open(rn_dataset_t* dataset) {
  random_sample_t* sample = (random_sample_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &sample->input));
  const rn_tensor_t* rate = rn_data_input(dataset, "rate", NULL);
  if (rate->rank != 0) return rn_invalid_argument("rate must be a scalar");
  sample->rate = *RN_DATA(rate, const float);
  return draws_open(dataset, &sample->start);
}

static rn_status_t sample_start(rn_data_iterator_t* iterator) {
  sample_iterator_t* own = (sample_iterator_t*)iterator;
  const random_sample_t* sample = (const random_sample_t*)iterator->dataset;
  own->draws = sample->start;
  return rn_data_source_start(&own->source, iterator, sample->input);
}

static void sample_stop(rn_data_iterator_t* iterator) {
  rn_data_source_stop(&((sample_iterator_t*)iterator)->source);
}

static bool sample_next(rn_data_iterator_t* iterator) {
  sample_iterator_t* own = (sample_iterator_t*)iterator;
  float rate = ((const random_sample_t*)iterator->dataset)->rate;
  for (;; iterator->phase = 0) {
    if (iterator->phase == 0) {
      iterator->phase = 1;
      if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
    }
    if (own->source.request.is_end) return rn_data_end(iterator);
    if (!rn_ok(own->source.request.status))
      return rn_data_finish(iterator, own->source.request.status);
    if (rn_word_to_float(draws_next(&own->draws)) < rate) return rn_data_finish(iterator, RN_OK);
    rn_data_row_clear(iterator->asked->out, iterator->dataset->component_count);
  }
}

static rn_status_t sample_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  const sample_iterator_t* own = (const sample_iterator_t*)iterator;
  draws_put(&own->draws, writer);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t sample_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  sample_iterator_t* own = (sample_iterator_t*)iterator;
  RN_RETURN_IF_ERROR(draws_take(&own->draws, reader));
  return rn_data_restore_source(reader, &own->source, iterator,
                                ((const random_sample_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_sample = {.dataset_size = sizeof(random_sample_t),
                                            .iterator_size = sizeof(sample_iterator_t),
                                            .open = sample_open,
                                            .start = sample_start,
                                            .stop = sample_stop,
                                            .next = sample_next,
                                            .save = sample_save,
                                            .restore = sample_restore};
