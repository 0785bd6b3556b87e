// StringToNumber.
#include "kernels/cpu/parsing/number.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

static rn_status_t convert_all(rn_number_reader_t* reader, const rn_tensor_t* in,
                               rn_tensor_t* out) {
  for (int64_t i = 0; i < in->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(in, const rn_tstring_t)[i]);
    bool ok = false;
    RN_RETURN_IF_ERROR(rn_number_read(reader, text, out, i, &ok));
    if (!ok)
      return rn_invalid_argument("StringToNumberOp could not correctly convert string: %.*s",
                                 RN_STR_ARGS(text));
  }
  return RN_OK;
}

static rn_status_t string_to_number(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  rn_number_reader_t reader;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  rn_status_t status = rn_number_reader_init(&reader, ctx->kernel->allocator);
  if (rn_ok(status)) status = convert_all(&reader, in, out);
  rn_number_reader_clear(&reader);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "StringToNumber",
     .device = "CPU",
     .types = {{"out_type",
                RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_INDEX | RN_T(UINT32) | RN_T(UINT64)}},
     .compute = string_to_number},
};
RN_KERNEL_FAMILY(cpu_string_number, rows);
