// CheckNumerics. A value is not finite if all bits of its exponent are set; only then does it
// matter whether it is NaN or infinite.
#include "kernels/cpu/debug/check_numerics.h"

#include "kernels/kernel_rows.h"

rn_status_t rn_check_numerics_init(const rn_kernel_init_t* init, void* state) {
  rn_check_numerics_t* check = state;
  check->allocator = init->allocator;
  check->names_signs = rn_str_is(rn_str(init->op->name), "CheckNumericsV2");
  return rn_str_dup(init->allocator, rn_init_string(init, "message"), &check->message);
}

void rn_check_numerics_destroy(void* state) {
  rn_check_numerics_t* check = state;
  if (check->message) RN_FREE_ARRAY(check->allocator, check->message, strlen(check->message) + 1);
}

rn_status_t rn_check_numerics_report(const rn_check_numerics_t* check, rn_odd_t odd) {
  static const char* const words[] = {"",    "-Inf",         "+Inf",         "-Inf and +Inf",
                                      "NaN", "-Inf and NaN", "+Inf and NaN", "-Inf, +Inf, and NaN"};
  const bool has_inf = odd.plus || odd.minus;
  if (!odd.nan && !has_inf) return RN_OK;
  const char* had = check->names_signs   ? words[odd.minus | odd.plus << 1 | odd.nan << 2]
                    : odd.nan && has_inf ? "Inf and NaN"
                    : odd.nan            ? "NaN"
                                         : "Inf";
  return rn_invalid_argument("%s : Tensor had %s values", check->message, had);
}

#define SCAN(name, type, exponent, fraction)                               \
  static void scan_##name(const void* data, int64_t n, rn_odd_t* odd) {    \
    const type* bits = data;                                               \
    type worst = 0;                                                        \
    for (int64_t i = 0; i < n; ++i) {                                      \
      type magnitude = bits[i] & (type)((exponent) | (fraction));          \
      worst = magnitude > worst ? magnitude : worst;                       \
    }                                                                      \
    if (worst < (type)(exponent)) return;                                  \
    for (int64_t i = 0; i < n; ++i) {                                      \
      type magnitude = bits[i] & (type)((exponent) | (fraction));          \
      odd->plus |= bits[i] == (type)(exponent);                            \
      odd->minus |= magnitude == (type)(exponent) && bits[i] != magnitude; \
      odd->nan |= magnitude > (type)(exponent);                            \
    }                                                                      \
  }
SCAN(half, uint16_t, 0x7c00, 0x3ff)
SCAN(bfloat16, uint16_t, 0x7f80, 0x7f)
SCAN(float, uint32_t, 0x7f800000, 0x7fffff)
SCAN(double, uint64_t, UINT64_C(0x7ff0000000000000), UINT64_C(0xfffffffffffff))

static void scan(const rn_tensor_t* input, rn_odd_t* odd) {
  switch (input->dtype) {
    case RN_HALF:
      scan_half(input->data, input->count, odd);
      break;
    case RN_BFLOAT16:
      scan_bfloat16(input->data, input->count, odd);
      break;
    case RN_FLOAT:
      scan_float(input->data, input->count, odd);
      break;
    default:
      scan_double(input->data, input->count, odd);
  }
}

static rn_status_t check_numerics(rn_kernel_ctx_t* ctx) {
  rn_odd_t odd = {0};
  scan(rn_in(ctx, 0), &odd);
  RN_RETURN_IF_ERROR(rn_check_numerics_report(ctx->state, odd));
  return rn_forward(ctx, 0, 0);
}

#define ROW(name)                                                                                \
  {                                                                                              \
    .op = name, .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_FORWARDS, \
    .state_size = sizeof(rn_check_numerics_t), .init = rn_check_numerics_init,                   \
    .destroy = rn_check_numerics_destroy, .compute = check_numerics                              \
  }
static const rn_kernel_def_t rows[] = {ROW("CheckNumerics"), ROW("CheckNumericsV2")};
RN_KERNEL_FAMILY(cpu_check_numerics, rows);
