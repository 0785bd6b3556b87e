// A hash of what a dataset produces: see data.h. Snapshots are identified by it.
#include "base/hash.h"
#include "base/vec.h"
#include "kernels/cpu/dataset/data.h"

#define MAX_DEPTH 256  // nesting of datasets

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

// The hashes found so far: several datasets may read one.
typedef struct dataset_digest_t {
  RN_VEC(const rn_dataset_t*) datasets;  // Borrowed
  RN_VEC(uint64_t) hashes;
} dataset_digest_t;

static rn_status_t of_dataset(dataset_digest_t* digest, const rn_dataset_t* dataset, int depth,
                              uint64_t* out);

static rn_status_t of_attr(const rn_dataset_t* dataset, const rn_attr_value_t* value,
                           uint64_t* out) {
  return rn_attr_digest(dataset->functions, value, dataset->node->allocator, out);
}

static rn_status_t of_input(dataset_digest_t* digest, const rn_dataset_t* dataset,
                            const rn_tensor_t* input, int depth, uint64_t* out) {
  *out = input->dtype;
  if (input->dtype == RN_RESOURCE) return RN_OK;
  if (input->dtype == RN_VARIANT) {
    rn_dataset_t* inner = NULL;
    rn_status_t status = rn_dataset_of(input, &inner);
    rn_status_free(status);
    return inner ? of_dataset(digest, inner, depth, out) : RN_OK;
  }
  rn_attr_value_t value = {.kind = RN_ATTR_TENSOR, .tensor = input};
  return of_attr(dataset, &value, out);
}

// Whether input |i| is a seed of a shuffle, which does not count: programs that set none draw new
// ones.
static bool is_seed(const rn_dataset_t* dataset, int32_t i) {
  if (dataset->kind != &rn_data_kind_shuffle) return false;
  rn_str_t name = rn_str(dataset->node->op->inputs[i].name);
  return rn_str_is(name, "seed") || rn_str_is(name, "seed2") || rn_str_is(name, "seed_generator");
}

static rn_status_t of_dataset(dataset_digest_t* digest, const rn_dataset_t* dataset, int depth,
                              uint64_t* out) {
  const rn_data_node_t* node = dataset->node;
  uint64_t hash = rn_farm_fingerprint64(rn_str(node->op->name)), value = 0;
  for (size_t i = 0; i < digest->hashes.count; ++i)
    if (digest->datasets.items[i] == dataset) {
      *out = digest->hashes.items[i];
      return RN_OK;
    }
  if (depth == MAX_DEPTH || !node->attrs)
    return rn_unimplemented("A dataset of this kind has no fingerprint: %s", node->op->name);
  for (int i = 0; i < node->op->attr_count; ++i) {
    if (strcmp(node->op->attrs[i].name, "metadata") == 0) continue;
    RN_RETURN_IF_ERROR(of_attr(dataset, &node->attrs[i], &value));
    hash = mix(hash, value);
  }
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (is_seed(dataset, i)) continue;
    RN_RETURN_IF_ERROR(of_input(digest, dataset, &dataset->inputs[i], depth + 1, &value));
    hash = mix(hash, value);
  }
  *out = hash;
  RN_RETURN_IF_ERROR(rn_vec_push(&digest->datasets, node->allocator, dataset));
  return rn_vec_push(&digest->hashes, node->allocator, hash);
}

rn_status_t rn_data_digest(rn_dataset_t* dataset, uint64_t* out) {
  if (!rn_data_host_enter(dataset->host)) return rn_cancelled("The session is closed");
  dataset_digest_t digest = {0};
  rn_status_t status = of_dataset(&digest, dataset, 0, out);
  rn_vec_free(&digest.datasets, dataset->node->allocator);
  rn_vec_free(&digest.hashes, dataset->node->allocator);
  rn_data_host_leave(dataset->host);
  return status;
}
