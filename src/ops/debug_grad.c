// Gradient rules of checks and prints.
#include "ops/rules.h"

// Checks the gradient, too.
RN_RULE(check_numerics) {
  static const char what[] = "Not a number (NaN) or infinity (Inf) values detected in gradient. ";
  rn_str_t message = rn_grad_attr(g, "message")->s;
  char* text = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, sizeof what + message.size, &text));
  memcpy(text, what, sizeof what - 1);
  if (message.size) memcpy(text + sizeof what - 1, message.data, message.size);
  rn_grad_to(g, 0, rn_CheckNumerics(g->scope, rn_grad_dy(g, 0), text));
  return RN_OK;
}

RN_RULE(print) {
  rn_grad_to(g, 0, rn_grad_dy(g, 0));
  return RN_OK;
}
