// The methods of the dispatcher about single tasks: which splits they get, and the removal of those
// whose workers are lost.
#include "data_service/dispatcher_internal.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define REMOVAL_NS (10 * (int64_t)1000000000)  // how long a consumer waits for the others

// Splits.
static void put_split(int64_t split, rn_strbuf_t* out) {
  // A TensorProto: dtype, tensor_shape, int64_val.
  size_t tensor = rn_pb_begin(out, rn_pb_data_GetSplitResponse_split_field);
  rn_pb_put_uint(out, rn_pb_TensorProto_dtype_field, RN_INT64);
  rn_pb_end(out, rn_pb_begin(out, rn_pb_TensorProto_tensor_shape_field));
  size_t values = rn_pb_begin(out, rn_pb_TensorProto_int64_val_field);
  rn_pb_put_varint(out, (uint64_t)split);
  rn_pb_end(out, values);
  rn_pb_end(out, tensor);
}

RN_DS_METHOD(get_split) {
  RN_DS_UNUSED();
  rn_pb_data_GetSplitRequest_t* request = NULL;
  RN_RETURN_IF_ERROR(RN_DS_DECODE(GetSplitRequest, call, arena, &request));
  rn_ds_iteration_t* iteration = rn_ds_find_iteration(&self->state, request->iteration_id);
  if (!iteration)
    return rn_not_found("Iteration id %lld not found", (long long)request->iteration_id);
  if (iteration->job->policy != rn_pb_data_ProcessingModeDef_DYNAMIC)
    return rn_failed_precondition(
        "Cannot get split for iteration %lld, since it is not a distributed_epoch iteration.",
        (long long)iteration->id);
  int64_t source = request->split_provider_index;
  if (source < 0 || source >= iteration->split_count)
    return rn_invalid_argument(
        "The iteration %lld has %lld sources of splits; %lld is none of them",
        (long long)iteration->id, (long long)iteration->split_count, (long long)source);
  if (request->repetition < 0 || request->repetition > RN_DS_MAX_REPETITION)
    return rn_invalid_argument("%lld is not the number of a repetition",
                               (long long)request->repetition);
  if (request->repetition < iteration->repetitions[source]) {
    rn_pb_put_uint(out, rn_pb_data_GetSplitResponse_end_of_splits_field, 1);
    return RN_OK;
  }
  rn_ds_splits_t* splits = NULL;
  RN_RETURN_IF_ERROR(
      rn_ds_splits_of(self, iteration->job, iteration->repetition, call, out_is_deferred, &splits));
  if (*out_is_deferred) return RN_OK;
  bool is_new = request->repetition > iteration->repetitions[source];
  int64_t split = 0;
  bool is_there = source < rn_ds_splits_count(splits) &&
                  rn_ds_splits_get(splits, source, is_new ? 0 : iteration->indices[source], &split);
  rn_pb_data_ProduceSplitUpdate_t produce = {.iteration_id = iteration->id,
                                             .repetition = request->repetition,
                                             .split_provider_index = source,
                                             .finished = !is_there};
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_produce_split_field,
                                .produce_split = &produce};
  RN_RETURN_IF_ERROR(rn_ds_change(self, &update));
  if (is_there)
    put_split(split, out);
  else
    rn_pb_put_uint(out, rn_pb_data_GetSplitResponse_end_of_splits_field, 1);
  return RN_OK;
}

// Removal of a task whose worker is lost, from a coordinated job: when all consumers want it, in
// the same round.
static void end_removal(rn_ds_dispatcher_t* self, size_t i, bool is_removed) {
  rn_ds_removal_t removal = self->removals.items[i];
  self->removals.items[i] = self->removals.items[--self->removals.count];
  rn_pb_data_MaybeRemoveTaskResponse_t response = {.removed = is_removed};
  rn_strbuf_t body;
  rn_strbuf_init(&body, self->allocator);
  rn_status_t status = RN_DS_ENCODE(MaybeRemoveTaskResponse, &response, &body);
  for (size_t k = 0; k < removal.calls.count; ++k)
    rn_ds_reply(self->allocator, removal.calls.items[k], rn_status_copy(status), &body);
  rn_status_free(status);
  rn_strbuf_clear(&body);
  rn_vec_free(&removal.calls, self->allocator);
  rn_vec_free(&removal.consumers, self->allocator);
}

void rn_ds_end_removals(rn_ds_dispatcher_t* self, int64_t now_ns) {
  for (size_t i = self->removals.count; i-- > 0;)
    if (self->removals.items[i].deadline_ns <= now_ns) end_removal(self, i, false);
}

static rn_status_t find_removal(rn_ds_dispatcher_t* self,
                                const rn_pb_data_MaybeRemoveTaskRequest_t* request, size_t* out) {
  for (*out = 0; *out < self->removals.count; ++*out)
    if (self->removals.items[*out].task_id == request->task_id) return RN_OK;
  rn_ds_removal_t removal = {.task_id = request->task_id,
                             .round = request->round,
                             .deadline_ns = rn_loop_now(self->loop) + REMOVAL_NS};
  return rn_vec_push(&self->removals, self->allocator, removal);
}

RN_DS_METHOD(maybe_remove_task) {
  RN_DS_UNUSED();
  rn_pb_data_MaybeRemoveTaskRequest_t* request = NULL;
  rn_pb_data_MaybeRemoveTaskResponse_t response = {.removed = true};
  RN_RETURN_IF_ERROR(RN_DS_DECODE(MaybeRemoveTaskRequest, call, arena, &request));
  rn_ds_task_t* task = rn_ds_find_task(&self->state, request->task_id);
  if (!task || task->is_removed) return RN_DS_ENCODE(MaybeRemoveTaskResponse, &response, out);
  int64_t consumers = task->iteration->job->num_consumers;
  if (!consumers)
    return rn_failed_precondition("MaybeRemoveTask called on a non-round-robin task.");
  if (self->is_closing) return rn_cancelled("The dispatcher is shutting down");
  size_t i = 0;
  RN_RETURN_IF_ERROR(find_removal(self, request, &i));
  if (self->removals.items[i].round != request->round) {
    end_removal(self, i, false);
    response.removed = false;
    return RN_DS_ENCODE(MaybeRemoveTaskResponse, &response, out);
  }
  rn_ds_removal_t* removal = &self->removals.items[i];
  RN_RETURN_IF_ERROR(
      rn_vec_reserve(&removal->consumers, self->allocator, removal->consumers.count + 1));
  RN_RETURN_IF_ERROR(rn_vec_push(&removal->calls, self->allocator, call));
  *out_is_deferred = true;
  bool is_known = false;
  for (size_t k = 0; k < removal->consumers.count; ++k)
    is_known |= removal->consumers.items[k] == request->consumer_index;
  if (!is_known) removal->consumers.items[removal->consumers.count++] = request->consumer_index;
  if ((int64_t)removal->consumers.count < consumers) return RN_OK;
  rn_pb_data_RemoveTaskUpdate_t remove = {.task_id = task->id};
  rn_pb_data_Update_t update = {.update_type_case = rn_pb_data_Update_remove_task_field,
                                .remove_task = &remove};
  rn_status_t status = rn_ds_change(self, &update);
  end_removal(self, i, rn_ok(status));
  rn_status_free(status);
  return RN_OK;
}
