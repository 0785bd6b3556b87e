// Gradient rules of quantization: between the limits, rounding counts as the identity.
#include "ops/rules.h"

RN_RULE(fake_quant_args) {
  rn_edge_t x = rn_grad_in(g, 0);
  rn_grad_to(g, 0, RN_RULE_ALIKE(g, "FakeQuantWithMinMaxArgsGradient", rn_grad_dy(g, 0), x));
  return RN_OK;
}

// Gradients of the input and of both limits.
static rn_status_t limits(rn_grad_t* g, const char* op) {
  rn_edge_t d =
      RN_RULE_ALIKE(g, op, rn_grad_dy(g, 0), rn_grad_in(g, 0), rn_grad_in(g, 1), rn_grad_in(g, 2));
  for (int i = 0; d.node && i < 3; ++i) rn_grad_to(g, i, (rn_edge_t){d.node, i});
  return RN_OK;
}

RN_RULE(fake_quant_vars) { return limits(g, "FakeQuantWithMinMaxVarsGradient"); }
RN_RULE(fake_quant_channels) { return limits(g, "FakeQuantWithMinMaxVarsPerChannelGradient"); }

// The gradient passes where the input is inside the limits; the derivative with respect to the
// input is zero almost everywhere.
RN_RULE(fake_quant_args_grad) {
  rn_edge_t inputs = rn_grad_in(g, 1);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0, RN_RULE_ALIKE(g, "FakeQuantWithMinMaxArgsGradient", rn_grad_dy(g, 0), inputs));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_ZerosLike(g->scope, inputs));
  return RN_OK;
}

// The same, with the axis of the op.
RN_RULE(quantize_and_dequantize_v4) { return limits(g, "QuantizeAndDequantizeV4Grad"); }

// The gradient passes where the forward value did; the limits get none.
RN_RULE(quantize_and_dequantize_v4_grad) {
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0,
               RN_RULE_ALIKE(g, "QuantizeAndDequantizeV4Grad", rn_grad_dy(g, 0), rn_grad_in(g, 1),
                             rn_grad_in(g, 2), rn_grad_in(g, 3)));
  for (int i = 1; i < 4; ++i)
    if (rn_grad_wants(g, i)) rn_grad_to(g, i, rn_ZerosLike(g->scope, rn_grad_in(g, i)));
  return RN_OK;
}
