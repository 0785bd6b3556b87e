// See batcher.h.
#include "serve/model/batcher.h"

#include <stdatomic.h>

#include "base/container.h"

struct rn_batcher_t {
  rn_batcher_options_t options;
  rn_backend_t* backend;  // Borrowed
  _Atomic int64_t running, batches, rows;
};

// One request that runs alone.
typedef struct batch_t {
  rn_backend_run_t run;
  rn_job_t job;
  rn_batcher_t* batcher;
  rn_predict_t* predict;
  int64_t begun_ns;
  size_t size;            // bytes of this block
  rn_tensor_t tensors[];  // inputs, outputs; then |wanted|
} batch_t;

static int64_t now_ns(const rn_batcher_t* batcher) {
  return batcher->options.env->now_ns(batcher->options.env->self);
}

rn_status_t rn_batcher_create(const rn_batcher_options_t* options, rn_backend_t* backend,
                              rn_batcher_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, out));
  (*out)->options = *options;
  (*out)->backend = backend;
  return RN_OK;
}

void rn_batcher_destroy(rn_batcher_t* batcher) {
  if (batcher) RN_FREE(batcher->options.allocator, batcher);
}

static void on_done(rn_backend_run_t* run, rn_status_t status) {
  batch_t* batch = RN_CONTAINER_OF(run, batch_t, run);
  rn_batcher_t* batcher = batch->batcher;
  rn_predict_t* predict = batch->predict;
  const rn_serve_signature_t* signature = &batcher->backend->signatures[run->signature];
  predict->times.run_ns = now_ns(batcher) - batch->begun_ns;
  for (int i = 0; i < signature->input_count; ++i) rn_tensor_clear(&batch->tensors[i]);
  for (int i = 0; i < predict->output_count && rn_ok(status); ++i) {
    int port = rn_serve_port(signature->outputs, signature->output_count, predict->outputs[i].name);
    predict->outputs[i].value = run->outputs[port];
    run->outputs[port] = (rn_tensor_t){0};
  }
  for (int i = 0; i < signature->output_count; ++i) rn_tensor_clear(&run->outputs[i]);
  rn_free(batcher->options.allocator, batch, batch->size);
  atomic_fetch_sub(&batcher->running, 1);
  rn_predict_finish(predict, status);
}

static void run_job(rn_job_t* job) {
  batch_t* batch = RN_CONTAINER_OF(job, batch_t, job);
  rn_backend_t* backend = batch->batcher->backend;
  batch->begun_ns = now_ns(batch->batcher);
  batch->predict->times.queue_ns = batch->begun_ns - batch->predict->come_ns;
  backend->vtable->run(backend, &batch->run);
}

void rn_batcher_add(rn_batcher_t* batcher, rn_predict_t* predict) {
  rn_backend_t* backend = batcher->backend;
  const rn_serve_signature_t* signature = &backend->signatures[predict->signature_index];
  predict->come_ns = now_ns(batcher);
  if (predict->deadline_ns <= predict->come_ns) {
    rn_predict_finish(predict, rn_deadline_exceeded("The deadline passed before the model ran"));
    return;
  }
  size_t ports = (size_t)signature->input_count + (size_t)signature->output_count;
  size_t size = sizeof(batch_t) + ports * sizeof(rn_tensor_t) + (size_t)signature->output_count + 1;
  batch_t* batch = NULL;
  rn_status_t status = rn_alloc_zeroed(batcher->options.allocator, size, (void**)&batch);
  if (!rn_ok(status)) {
    rn_predict_finish(predict, status);
    return;
  }
  bool* wanted = (bool*)(batch->tensors + ports);
  for (int i = 0; i < predict->output_count; ++i)
    wanted[rn_serve_port(signature->outputs, signature->output_count, predict->outputs[i].name)] =
        true;
  for (int i = 0; i < signature->input_count; ++i) {
    batch->tensors[i] = predict->inputs[i].value;
    predict->inputs[i].value = (rn_tensor_t){0};
  }
  batch->run = (rn_backend_run_t){.signature = predict->signature_index,
                                  .inputs = batch->tensors,
                                  .outputs = batch->tensors + signature->input_count,
                                  .wanted = wanted,
                                  .cancel = predict->cancel,
                                  .deadline_ns = predict->deadline_ns,
                                  .done = on_done};
  batch->batcher = batcher;
  batch->predict = predict;
  batch->size = size;
  batch->job.run = run_job;
  atomic_fetch_add(&batcher->running, 1);
  atomic_fetch_add(&batcher->batches, 1);
  if (backend->blocks && batcher->options.pool)
    rn_pool_submit(batcher->options.pool, &batch->job);
  else
    run_job(&batch->job);
}

rn_batcher_stats_t rn_batcher_stats(const rn_batcher_t* batcher) {
  return (rn_batcher_stats_t){.running = batcher->running, .batches = batcher->batches, .limit = 1};
}
