// Seeds of shuffles and of random datasets: see seeds.h.
#include "kernels/cpu/dataset/seeds.h"

static void seeds_destroy(rn_object_t* object) {
  rn_data_seeds_t* seeds = (rn_data_seeds_t*)object;
  rn_mutex_destroy(&seeds->mutex);
  RN_FREE(seeds->allocator, seeds);
}

rn_status_t rn_data_seeds_create(rn_allocator_t allocator, const rn_env_t* env, int64_t seed,
                                 int64_t seed2, bool changes, rn_data_seeds_t** out) {
  rn_data_seeds_t* seeds = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &seeds));
  seeds->resource = (rn_resource_t){{.refs = 1, .destroy = seeds_destroy}, RN_DATA_SEEDS_TYPE};
  seeds->allocator = allocator;
  if (seed == 0 && seed2 == 0) {
    seed = (int64_t)env->random(env->self);
    seed2 = (int64_t)env->random(env->self);
  }
  seeds->seed = seed;
  seeds->seed2 = seed2;
  seeds->changes = changes;
  seeds->words = rn_philox_single(rn_philox((uint64_t)seed, (uint64_t)seed2));
  rn_mutex_init(&seeds->mutex);
  *out = seeds;
  return RN_OK;
}

void rn_data_seeds_draw(rn_data_seeds_t* seeds, int64_t* out_seed, int64_t* out_seed2) {
  rn_mutex_lock(&seeds->mutex);
  *out_seed = seeds->seed;
  *out_seed2 = seeds->seed2;
  if (seeds->changes) {
    *out_seed = rn_philox_word(&seeds->words);
    *out_seed2 = rn_philox_word(&seeds->words);
    seeds->drawn += 2;
  }
  rn_mutex_unlock(&seeds->mutex);
}

rn_status_t rn_data_seeds_open(const rn_dataset_t* dataset, rn_data_seeds_t** out) {
  const rn_tensor_t* handle = rn_data_input(dataset, "seed_generator", NULL);
  rn_resource_t* resource = NULL;
  *out = NULL;
  if (handle) {
    rn_status_t status = rn_handle_resource(handle, NULL, RN_DATA_SEEDS_TYPE, &resource);
    if (rn_ok(status)) {
      *out = (rn_data_seeds_t*)resource;
      rn_object_retain(&resource->object);
      return RN_OK;
    }
    // An empty handle requests a seed generator of the dataset's own; V2 has no seed inputs.
    if (!rn_data_has_input(dataset, "seed")) return status;
    rn_status_free(status);
  }
  int64_t seed = 0, seed2 = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "seed", &seed));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "seed2", &seed2));
  bool changes = rn_data_flag(dataset, "reshuffle_each_iteration") ||
                 rn_data_flag(dataset, "rerandomize_each_iteration");
  return rn_data_seeds_create(dataset->node->allocator, dataset->host->env, seed, seed2, changes,
                              out);
}

void rn_data_seeds_put(rn_data_seeds_t* seeds, rn_data_writer_t* writer) {
  rn_mutex_lock(&seeds->mutex);
  const int64_t numbers[] = {seeds->seed, seeds->seed2, seeds->drawn};
  rn_mutex_unlock(&seeds->mutex);
  for (int i = 0; i < 3; ++i) rn_data_put_int(writer, numbers[i]);
}

rn_status_t rn_data_seeds_take(rn_data_seeds_t* seeds, rn_data_reader_t* reader) {
  int64_t numbers[3];
  for (int i = 0; i < 3; ++i) RN_RETURN_IF_ERROR(rn_data_take_int(reader, &numbers[i]));
  if (numbers[2] < 0) return rn_data_bad_state();
  rn_mutex_lock(&seeds->mutex);
  seeds->seed = numbers[0];
  seeds->seed2 = numbers[1];
  seeds->drawn = numbers[2];
  seeds->words = rn_philox_single(rn_philox((uint64_t)numbers[0], (uint64_t)numbers[1]));
  rn_philox_single_skip(&seeds->words, (uint64_t)numbers[2]);
  rn_mutex_unlock(&seeds->mutex);
  return RN_OK;
}
