// See batch.h.
#include "serve/model/batch.h"

#include <stdatomic.h>

#include "base/container.h"
#include "serve/model/batch_join.h"

#define FEW 64  // requests whose tensors are listed on the stack

rn_status_t rn_batch_create(const rn_backend_t* backend, int signature, rn_allocator_t allocator,
                            rn_batch_t** out) {
  const rn_serve_signature_t* described = &backend->signatures[signature];
  size_t ports = (size_t)described->input_count + (size_t)described->output_count;
  size_t size = sizeof(rn_batch_t) + ports * sizeof(rn_tensor_t) + (size_t)described->output_count;
  rn_batch_t* batch = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, size, (void**)&batch));
  atomic_init(&batch->refs, 1);
  rn_cancel_init(&batch->cancel);
  batch->allocator = allocator;
  batch->size = size;
  batch->signature = described;
  batch->device = backend->device;
  batch->ports = (int)ports;
  batch->wanted = (bool*)(batch->tensors + ports);
  batch->run.signature = signature;
  batch->run.inputs = batch->tensors;
  batch->run.outputs = batch->tensors + described->input_count;
  *out = batch;
  return RN_OK;
}

static void release(rn_batch_t* batch) {
  if (atomic_fetch_sub_explicit(&batch->refs, 1, memory_order_acq_rel) > 1) return;
  rn_cancel_destroy(&batch->cancel);
  rn_free(batch->allocator, batch, batch->size);
}

void rn_batch_destroy(rn_batch_t* batch) {
  for (int i = 0; i < batch->ports; ++i) rn_tensor_clear(&batch->tensors[i]);
  rn_status_free(batch->status);
  release(batch);
}

void rn_batch_retain(rn_batch_t* batch) {
  atomic_fetch_add_explicit(&batch->refs, 1, memory_order_relaxed);
}

void rn_batch_cancel(rn_batch_t* batch) {
  rn_cancel(&batch->cancel);
  release(batch);
}

void rn_batch_add(rn_batch_t* batch, rn_predict_t* predict) {
  predict->next = NULL;
  if (batch->last)
    batch->last->next = predict;
  else
    batch->first = predict;
  batch->last = predict;
  ++batch->count;
  if (predict->deadline_ns > batch->deadline_ns) batch->deadline_ns = predict->deadline_ns;
  batch->rows += predict->rows < 0 ? 1 : predict->rows;
}

rn_predict_t* rn_batch_pop(rn_batch_t* batch) {
  rn_predict_t* predict = batch->first;
  if (!predict) return NULL;
  batch->first = predict->next;
  if (!batch->first) batch->last = NULL;
  --batch->count;
  batch->rows -= predict->rows < 0 ? 1 : predict->rows;
  return predict;
}

static int output_port(const rn_batch_t* batch, const rn_predict_t* predict, int output) {
  return rn_serve_port(batch->signature->outputs, batch->signature->output_count,
                       predict->outputs[output].name);
}

static void on_cancel(rn_cancel_entry_t* entry) {
  rn_batch_t* batch = RN_CONTAINER_OF(entry, rn_batch_t, entry);
  rn_batch_retain(batch);
  rn_batch_cancel(batch);
}

// One request can end the run; several need not agree. The last deadline ends it, too.
static void set_cancel(rn_batch_t* batch) {
  rn_cancel_t* cancel = batch->count == 1 ? batch->first->cancel : NULL;
  batch->run.cancel = cancel;
  if (batch->run.deadline_ns == INT64_MAX) return;
  batch->run.cancel = &batch->cancel;
  if (!cancel) return;
  batch->entry = (rn_cancel_entry_t){.fn = on_cancel};
  if (rn_cancel_add(cancel, &batch->entry)) return;
  batch->entry.fn = NULL;
  rn_cancel(&batch->cancel);
}

void rn_batch_end(rn_batch_t* batch) {
  if (batch->entry.fn) rn_cancel_remove(batch->first->cancel, &batch->entry);
  batch->entry.fn = NULL;
}

static void describe_run(rn_batch_t* batch) {
  batch->run.wanted = batch->wanted;
  batch->run.deadline_ns = 0;
  for (rn_predict_t* predict = batch->first; predict; predict = predict->next) {
    if (predict->deadline_ns > batch->run.deadline_ns)
      batch->run.deadline_ns = predict->deadline_ns;
    for (int i = 0; i < predict->output_count; ++i)
      batch->wanted[output_port(batch, predict, i)] = true;
  }
  set_cancel(batch);
}

rn_status_t rn_batch_join_inputs(rn_batch_t* batch, int64_t run_rows, bool pads) {
  describe_run(batch);
  batch->run_rows = run_rows;
  if (batch->count == 1 && run_rows == batch->rows) {
    for (int i = 0; i < batch->signature->input_count; ++i) {
      batch->tensors[i] = batch->first->inputs[i].value;
      batch->first->inputs[i].value = (rn_tensor_t){0};
    }
    return RN_OK;
  }
  const rn_tensor_t* few[FEW];
  const rn_tensor_t** parts = few;
  if (batch->count > FEW)
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(batch->allocator, (size_t)batch->count, &parts));
  rn_status_t status = RN_OK;
  for (int i = 0; i < batch->signature->input_count && rn_ok(status); ++i) {
    int count = 0;
    for (rn_predict_t* predict = batch->first; predict; predict = predict->next)
      parts[count++] = &predict->inputs[i].value;
    status = rn_batch_join(parts, count, run_rows, pads, batch->device, batch->allocator,
                           &batch->tensors[i]);
  }
  if (parts != few) RN_FREE_ARRAY(batch->allocator, parts, (size_t)batch->count);
  return status;
}

static rn_status_t check_outputs(const rn_batch_t* batch) {
  for (int i = 0; i < batch->signature->output_count; ++i) {
    const rn_tensor_t* output = &batch->run.outputs[i];
    if (!batch->wanted[i]) continue;
    if (!rn_tensor_is_set(output))
      return rn_internal("The model gave no output %.*s",
                         RN_STR_ARGS(batch->signature->outputs[i].name));
    if (batch->count == 1 && batch->run_rows == batch->rows) continue;
    if (!output->rank) return rn_failed_precondition("Batched output tensor has 0 dimensions");
    if (rn_tensor_dim(output, 0) != batch->run_rows)
      return rn_failed_precondition(
          "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes "
          "of the input tensors");
  }
  return RN_OK;
}

rn_status_t rn_batch_split_outputs(rn_batch_t* batch) {
  RN_RETURN_IF_ERROR(check_outputs(batch));
  if (batch->count == 1 && batch->run_rows == batch->rows) {
    rn_predict_t* predict = batch->first;
    for (int i = 0; i < predict->output_count; ++i) {
      rn_tensor_t* output = &batch->run.outputs[output_port(batch, predict, i)];
      predict->outputs[i].value = *output;
      *output = (rn_tensor_t){0};
    }
    return RN_OK;
  }
  int64_t begin = 0;
  for (rn_predict_t* predict = batch->first; predict; predict = predict->next) {
    for (int i = 0; i < predict->output_count; ++i) {
      const rn_tensor_t* output = &batch->run.outputs[output_port(batch, predict, i)];
      RN_RETURN_IF_ERROR(rn_batch_rows(output, begin, predict->rows, &predict->outputs[i].value));
    }
    begin += predict->rows;
  }
  return RN_OK;
}
