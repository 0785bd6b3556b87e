// Walks of kernels over datasets: see drive.h.
#include "kernels/cpu/dataset/drive.h"

void rn_data_drive_end(rn_data_drive_t* drive, rn_status_t status) {
  rn_kernel_ctx_t* ctx = drive->ctx;
  rn_allocator_t allocator = ctx->kernel->allocator;
  rn_data_host_t* host = drive->dataset->host;
  rn_object_retain(&host->object);
  if (drive->end) status = drive->end(drive, status);
  if (drive->run) rn_cancel(&drive->run->cancel);
  if (drive->iterator) rn_data_call_clear(&drive->call, &drive->func);
  rn_data_func_close(&drive->func);
  rn_data_iterator_drop(drive->iterator);
  if (drive->run) rn_object_release(&drive->run->object);
  rn_data_row_clear(drive->row, drive->row_count);
  RN_FREE_ARRAY(allocator, drive->row, drive->row_count);
  rn_dataset_release(drive->dataset);
  RN_FREE(allocator, drive);
  rn_done(ctx, status);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

void rn_data_drive_go(rn_data_drive_t* drive) {
  while (drive->step(drive)) {
  }
}

static void drive_answered(rn_data_request_t* request) {
  rn_data_drive_go((rn_data_drive_t*)request);
}

rn_data_drive_t* rn_data_drive_over(rn_kernel_ctx_t* ctx, rn_dataset_t* dataset,
                                    int32_t state_count, bool (*step)(rn_data_drive_t* drive)) {
  rn_data_drive_t* drive = NULL;
  rn_allocator_t allocator = ctx->kernel->allocator;
  rn_status_t status = RN_OK;
  if (!rn_data_host_enter(dataset->host))
    status = rn_cancelled("The session is closed");
  else {
    status = RN_NEW(allocator, &drive);
    if (!rn_ok(status)) rn_data_host_leave(dataset->host);
  }
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return NULL;
  }
  drive->ctx = ctx;
  drive->dataset = dataset;
  rn_object_retain(&dataset->object);
  drive->state_count = state_count;
  drive->step = step;
  drive->request = (rn_data_request_t){.step = ctx->step, .done = drive_answered};
  drive->row_count = state_count + dataset->component_count;
  status = rn_data_run_create(dataset->host, NULL, ctx->step->call_depth, &drive->run);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)drive->row_count, &drive->row);
  if (rn_ok(status)) status = rn_data_iterator_create(dataset, drive->run, NULL, &drive->iterator);
  if (rn_ok(status)) return drive;
  if (!drive->row) drive->row_count = 0;
  rn_data_drive_end(drive, status);
  return NULL;
}

rn_data_drive_t* rn_data_drive_begin(rn_kernel_ctx_t* ctx, int i, int32_t state_count,
                                     bool (*step)(rn_data_drive_t* drive)) {
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_of(rn_in(ctx, i), &dataset);
  if (rn_ok(status)) return rn_data_drive_over(ctx, dataset, state_count, step);
  rn_done(ctx, status);
  return NULL;
}

bool rn_data_drive_ask(rn_data_drive_t* drive) {
  if (drive->phase != 0) return true;
  drive->phase = 1;
  drive->request.out = drive->row + drive->state_count;
  return rn_data_next(drive->iterator, &drive->request);
}
