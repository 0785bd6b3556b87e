// Seed generators for shuffles: one pair of seeds per walk over the data.
#ifndef RUNNEL_KERNELS_CPU_DATASET_SEEDS_H_
#define RUNNEL_KERNELS_CPU_DATASET_SEEDS_H_

#include "framework/resource.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/random/philox.h"

#define RN_DATA_SEEDS_TYPE "SeedGenerator"

// A resource, since several datasets may share it. |mutex| guards the stream.
typedef struct rn_data_seeds_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  int64_t seed, seed2;
  bool changes;  // each walk gets different seeds
  rn_mutex_t mutex;
  rn_philox_single_t words;
  int64_t drawn;
} rn_data_seeds_t;

// Replaces seeds 0 and 0 with unique ones.
RN_MUST_USE rn_status_t rn_data_seeds_create(rn_allocator_t allocator, const rn_env_t* env,
                                             int64_t seed, int64_t seed2, bool changes,
                                             rn_data_seeds_t** out);
// The generator in the input seed_generator; a new one from the inputs seed and seed2 if there is
// none. The caller owns a reference.
RN_MUST_USE rn_status_t rn_data_seeds_open(const rn_dataset_t* dataset, rn_data_seeds_t** out);
void rn_data_seeds_draw(rn_data_seeds_t* seeds, int64_t* out_seed, int64_t* out_seed2);
// Save and restore the place in the stream of seeds.
void rn_data_seeds_put(rn_data_seeds_t* seeds, rn_data_writer_t* writer);
RN_MUST_USE rn_status_t rn_data_seeds_take(rn_data_seeds_t* seeds, rn_data_reader_t* reader);

#endif  // RUNNEL_KERNELS_CPU_DATASET_SEEDS_H_
