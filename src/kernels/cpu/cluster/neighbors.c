// NearestNeighbors: the k centres closest to each point, nearest first, by the squares of their
// distances.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

// Products per piece of work.
#define PIECE_PRODUCTS (1 << 16)

typedef struct neighbors_job_t {
  const float *points, *centers;
  int64_t center_count, depth, k;
  int64_t* indices;
  float* distances;
} neighbors_job_t;

static float distance_of(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// Keeps the best so far in order: each centre sinks to its place among them.
static void find_point(const neighbors_job_t* job, int64_t point) {
  const float* x = job->points + point * job->depth;
  int64_t *indices = job->indices + point * job->k, found = 0;
  float* distances = job->distances + point * job->k;
  for (int64_t c = 0; c < job->center_count; ++c) {
    float distance = distance_of(x, job->centers + c * job->depth, job->depth);
    if (found == job->k && !(distance < distances[found - 1])) continue;
    int64_t at = found < job->k ? found++ : found - 1;
    for (; at > 0 && distance < distances[at - 1]; --at) {
      distances[at] = distances[at - 1];
      indices[at] = indices[at - 1];
    }
    distances[at] = distance;
    indices[at] = c;
  }
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  for (int64_t p = begin; p < end; ++p) find_point(arg, p);
}

static rn_status_t check(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *points = rn_in(ctx, 0), *centers = rn_in(ctx, 1), *k = rn_in(ctx, 2);
  if (points->rank != 2) return rn_invalid_argument("Input points should be a matrix.");
  if (centers->rank != 2) return rn_invalid_argument("Input centers should be a matrix.");
  if (k->rank != 0) return rn_invalid_argument("Input k should be a scalar.");
  if (rn_tensor_dim(points, 0) == 0) return rn_invalid_argument("Expected points.rows() > 0.");
  if (rn_tensor_dim(points, 1) != rn_tensor_dim(centers, 1))
    return rn_invalid_argument("Expected point_dimensions == center_dimensions: %" PRId64
                               " vs %" PRId64 ".",
                               rn_tensor_dim(points, 1), rn_tensor_dim(centers, 1));
  if (rn_int_at(k, 0) < 0)
    return rn_invalid_argument("Expected k >= 0, got %" PRId64, rn_int_at(k, 0));
  return RN_OK;
}

static rn_status_t neighbors_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(check(ctx));
  const rn_tensor_t *points = rn_in(ctx, 0), *centers = rn_in(ctx, 1);
  neighbors_job_t job = {.points = points->data,
                         .centers = centers->data,
                         .center_count = rn_tensor_dim(centers, 0),
                         .depth = rn_tensor_dim(points, 1),
                         .k = rn_int_at(rn_in(ctx, 2), 0)};
  if (job.k > job.center_count) job.k = job.center_count;
  int64_t dims[2] = {rn_tensor_dim(points, 0), job.k};
  rn_tensor_t *indices = NULL, *distances = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &indices));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){2, dims}, &distances));
  if (indices->count == 0) return RN_OK;
  job.indices = indices->data, job.distances = distances->data;
  rn_pool_for(rn_ctx_pool(ctx), dims[0], PIECE_PRODUCTS / (centers->count + 1) + 1, run_piece,
              &job);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "NearestNeighbors", .device = "CPU", .compute = neighbors_compute},
};
RN_KERNEL_FAMILY(cpu_neighbors, rows);
