// Softmax, LogSoftmax and the cross entropies; isa/softmax.c has the loops.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/softmax.h"
#include "kernels/cpu/nn/softmax.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Elements per piece of work: about 20 us of exp.
#define PIECE_ELEMENTS (1 << 15)

static int64_t rows_of_piece(int64_t columns) { return PIECE_ELEMENTS / (columns + 1) + 1; }

static bool is_narrow(rn_dtype_t dtype) { return dtype == RN_HALF || dtype == RN_BFLOAT16; }

static void widen(rn_dtype_t dtype, const void* in, void* out, int64_t n) {
  const rn_vector_table_t* table = rn_vector_table();
  (dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(in, out, n);
}
static void narrow(rn_dtype_t dtype, const void* in, void* out, int64_t n) {
  const rn_vector_table_t* table = rn_vector_table();
  (dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)(in, out, n);
}

// One call of a loop over rows. 16-bit floats were converted before.
typedef struct softmax_job_t {
  const rn_softmax_fns_t* fns;
  const char *logits, *labels;
  const int64_t* places;  // sparse labels
  char *out, *loss;       // softmax, or the gradient
  int64_t logits_step, labels_step, columns;
  size_t item;
  bool is_log;
} softmax_job_t;

static void softmax_piece(void* arg, int64_t begin, int64_t end) {
  const softmax_job_t* job = arg;
  size_t at = (size_t)(begin * job->columns) * job->item;
  job->fns->softmax(job->logits + at, job->out + at, end - begin, job->columns, job->is_log);
}

static void cross_piece(void* arg, int64_t begin, int64_t end) {
  const softmax_job_t* job = arg;
  size_t at = (size_t)(begin * job->columns) * job->item, item = job->item;
  job->fns->cross_entropy(job->logits + (size_t)(begin * job->logits_step) * item, job->logits_step,
                          job->labels + (size_t)(begin * job->labels_step) * item, job->labels_step,
                          job->loss + (size_t)begin * item, job->out + at, end - begin,
                          job->columns);
}

static void sparse_piece(void* arg, int64_t begin, int64_t end) {
  const softmax_job_t* job = arg;
  size_t at = (size_t)(begin * job->columns) * job->item;
  job->fns->sparse_cross_entropy(job->logits + at, job->places + begin,
                                 job->loss + (size_t)begin * job->item, job->out + at, end - begin,
                                 job->columns);
}

typedef struct softmax_state_t {
  bool is_log;
} softmax_state_t;

static rn_status_t log_init(const rn_kernel_init_t* init, void* state) {
  (void)init;
  ((softmax_state_t*)state)->is_log = true;
  return RN_OK;
}

static rn_status_t softmax_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* logits = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_softmax_check(logits));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  if (out->count == 0) return RN_OK;
  bool narrowed = is_narrow(logits->dtype);
  rn_dtype_t dtype = narrowed ? RN_FLOAT : logits->dtype;
  int64_t columns = rn_tensor_dim(logits, logits->rank - 1);
  rn_tensor_t temp = {0};
  if (narrowed) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &out->count}, &temp));
    widen(logits->dtype, logits->data, temp.data, out->count);
  }
  softmax_job_t job = {.fns = &RN_ISA_PICK(rn_softmax_)[dtype],
                       .logits = narrowed ? temp.data : logits->data,
                       .out = narrowed ? temp.data : out->data,
                       .columns = columns,
                       .item = rn_dtype_size(dtype),
                       .is_log = ((const softmax_state_t*)ctx->state)->is_log};
  rn_pool_for(rn_ctx_pool(ctx), out->count / columns, rows_of_piece(columns), softmax_piece, &job);
  if (narrowed) narrow(logits->dtype, temp.data, out->data, out->count);
  rn_tensor_clear(&temp);
  return RN_OK;
}

// Copies a matrix that is broadcast along its columns or has 16-bit floats, so that the loops can
// read it. |dims| are those of the result.
static rn_status_t prepare(rn_kernel_ctx_t* ctx, const rn_tensor_t* in, const int64_t dims[2],
                           rn_tensor_t* temp, const char** out_data, int64_t* out_step) {
  int64_t rows = in->rank == 2 ? rn_tensor_dim(in, 0) : 1;
  int64_t columns = in->rank ? rn_tensor_dim(in, in->rank - 1) : 1;
  *out_step = rows == 1 ? 0 : dims[1];
  *out_data = in->data;
  bool narrowed = is_narrow(in->dtype), stretched = columns != dims[1];
  if (!narrowed && !stretched) return RN_OK;
  rn_dtype_t dtype = narrowed ? RN_FLOAT : in->dtype;
  size_t item = rn_dtype_size(dtype);
  int64_t shape[2] = {rows, dims[1]};
  RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, (rn_shape_t){2, shape}, temp));
  *out_data = temp->data;
  if (!stretched) {
    widen(in->dtype, in->data, temp->data, in->count);
    return RN_OK;
  }
  for (int64_t r = 0; r < rows; ++r) {
    char* row = (char*)temp->data + (size_t)(r * dims[1]) * item;
    if (narrowed)
      widen(in->dtype, (const uint16_t*)in->data + r, row, 1);
    else
      memcpy(row, (const char*)in->data + (size_t)r * item, item);
    for (int64_t c = 1; c < dims[1]; ++c) memcpy(row + (size_t)c * item, row, item);
  }
  return RN_OK;
}

typedef struct cross_temps_t {
  rn_tensor_t logits, labels, loss, gradient;
} cross_temps_t;

static rn_status_t cross_run(rn_kernel_ctx_t* ctx, const int64_t dims[2], rn_tensor_t* loss,
                             rn_tensor_t* gradient, cross_temps_t* temps) {
  const rn_tensor_t *logits = rn_in(ctx, 0), *labels = rn_in(ctx, 1);
  bool narrowed = is_narrow(logits->dtype);
  rn_dtype_t dtype = narrowed ? RN_FLOAT : logits->dtype;
  softmax_job_t job = {.fns = &RN_ISA_PICK(rn_softmax_)[dtype],
                       .columns = dims[1],
                       .item = rn_dtype_size(dtype),
                       .loss = loss->data,
                       .out = gradient->data};
  RN_RETURN_IF_ERROR(prepare(ctx, logits, dims, &temps->logits, &job.logits, &job.logits_step));
  RN_RETURN_IF_ERROR(prepare(ctx, labels, dims, &temps->labels, &job.labels, &job.labels_step));
  if (narrowed) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, rn_tensor_shape(loss), &temps->loss));
    RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, rn_tensor_shape(gradient), &temps->gradient));
    job.loss = temps->loss.data;
    job.out = temps->gradient.data;
  }
  rn_pool_for(rn_ctx_pool(ctx), dims[0], rows_of_piece(dims[1]), cross_piece, &job);
  if (narrowed) {
    narrow(logits->dtype, job.loss, loss->data, loss->count);
    narrow(logits->dtype, job.out, gradient->data, gradient->count);
  }
  return RN_OK;
}

static rn_status_t cross_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *logits = rn_in(ctx, 0), *labels = rn_in(ctx, 1);
  int64_t dims[2] = {0};
  RN_RETURN_IF_ERROR(rn_cross_entropy_check(logits, labels, dims));
  rn_tensor_t *loss = NULL, *gradient = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, dims}, &loss));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){2, dims}, &gradient));
  if (dims[0] == 0) return RN_OK;
  if (dims[1] == 0) {
    memset(loss->data, 0, rn_tensor_bytes(loss));
    return RN_OK;
  }
  cross_temps_t temps = {0};
  rn_status_t status = cross_run(ctx, dims, loss, gradient, &temps);
  rn_tensor_clear(&temps.logits);
  rn_tensor_clear(&temps.labels);
  rn_tensor_clear(&temps.loss);
  rn_tensor_clear(&temps.gradient);
  return status;
}

static rn_status_t label_error(const rn_tensor_t* labels, const int64_t* places, int64_t bad,
                               int64_t columns) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  for (int64_t i = 0; i < labels->count; ++i)
    rn_strbuf_printf(&buf, i ? " %" PRId64 : "%" PRId64, places[i]);
  rn_status_t status = rn_invalid_argument("Received a label value of %" PRId64
                                           " which is outside the valid range of [0, %" PRId64
                                           ").  Label values: %.*s",
                                           bad, columns, RN_STR_ARGS(rn_strbuf_view(&buf)));
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t sparse_run(rn_kernel_ctx_t* ctx, const int64_t* places, rn_tensor_t* loss,
                              rn_tensor_t* gradient, rn_tensor_t* temp) {
  const rn_tensor_t* logits = rn_in(ctx, 0);
  bool narrowed = is_narrow(logits->dtype);
  rn_dtype_t dtype = narrowed ? RN_FLOAT : logits->dtype;
  int64_t columns = rn_tensor_dim(logits, 1), total = logits->count + loss->count;
  softmax_job_t job = {.fns = &RN_ISA_PICK(rn_softmax_)[dtype],
                       .logits = logits->data,
                       .places = places,
                       .columns = columns,
                       .item = rn_dtype_size(dtype),
                       .loss = loss->data,
                       .out = gradient->data};
  if (narrowed) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, temp));
    widen(logits->dtype, logits->data, temp->data, logits->count);
    job.logits = job.out = temp->data;
    job.loss = (char*)temp->data + (size_t)logits->count * sizeof(float);
  }
  rn_pool_for(rn_ctx_pool(ctx), loss->count, rows_of_piece(columns), sparse_piece, &job);
  if (narrowed) {
    narrow(logits->dtype, job.out, gradient->data, gradient->count);
    narrow(logits->dtype, job.loss, loss->data, loss->count);
  }
  return RN_OK;
}

static rn_status_t sparse_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *logits = rn_in(ctx, 0), *labels = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_sparse_cross_entropy_check(logits, labels));
  int64_t columns = rn_tensor_dim(logits, 1);
  rn_tensor_t *loss = NULL, *gradient = NULL, temp = {0}, places = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(labels), &loss));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(logits), &gradient));
  if (labels->count == 0) return RN_OK;
  const int64_t* wide = labels->data;
  if (labels->dtype == RN_INT32) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, rn_tensor_shape(labels), &places));
    for (int64_t i = 0; i < labels->count; ++i)
      RN_DATA(&places, int64_t)[i] = RN_DATA(labels, const int32_t)[i];
    wide = places.data;
  }
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < labels->count && rn_ok(status); ++i)
    if (wide[i] < 0 || wide[i] >= columns) status = label_error(labels, wide, wide[i], columns);
  if (rn_ok(status)) status = sparse_run(ctx, wide, loss, gradient, &temp);
  rn_tensor_clear(&temp);
  rn_tensor_clear(&places);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Softmax",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS}},
     .state_size = sizeof(softmax_state_t),
     .compute = softmax_compute},
    {.op = "LogSoftmax",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS}},
     .state_size = sizeof(softmax_state_t),
     .init = log_init,
     .compute = softmax_compute},
    {.op = "SoftmaxCrossEntropyWithLogits",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS}},
     .compute = cross_compute},
    {.op = "SparseSoftmaxCrossEntropyWithLogits",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS}, {"Tlabels", RN_TYPES_INDEX}},
     .compute = sparse_compute},
};
RN_KERNEL_FAMILY(cpu_softmax, rows);
