// The gradient rule of Einsum, which uses Einsum again.
//
// With operands A and B, labels LA and LB and output labels LC, the gradient of A is the product
// "LC,LB->LA" of dC and B, with three exceptions:
// - Labels of A that neither C nor B has: A was summed over them, so the gradient is repeated along
//   them.
// - Labels that A has twice: the gradient is on the diagonal.
// - Axes of the ellipsis, which broadcast: the gradient is summed where A had size 1 or no axis,
//   and that comes last, because Einsum itself does not sum over them.
#include "ops/rules.h"

enum { LABELS = 2 * RN_MAX_RANK };

// The labels of an operand, and the position of its ellipsis.
typedef struct linalg_einsum_grad_labels_t {
  char text[LABELS];
  int count;
  int dots;  // number of labels before the ellipsis; -1 if there is none
} linalg_einsum_grad_labels_t;

static bool has_dots(const linalg_einsum_grad_labels_t* labels) { return labels->dots >= 0; }

static bool has(const linalg_einsum_grad_labels_t* labels, char label) {
  return memchr(labels->text, label, (size_t)labels->count) != NULL;
}

// Parses labels up to a character of |ends| and returns the text after it; NULL if there are too
// many labels.
static const char* parse(const char* text, const char* ends, linalg_einsum_grad_labels_t* out) {
  *out = (linalg_einsum_grad_labels_t){.dots = -1};
  for (; *text && !strchr(ends, *text); ++text) {
    if (*text == ' ') continue;
    if (!strncmp(text, "...", 3)) {
      out->dots = out->count;
      text += 2;
    } else if (out->count == LABELS) {
      return NULL;
    } else {
      out->text[out->count++] = *text;
    }
  }
  return text + (*text == '-') + (*text != 0);
}

// An equation under construction.
typedef struct equation_t {
  char text[4 * LABELS + 32];
  size_t size;
} equation_t;

static void add_text(equation_t* equation, const char* text, size_t size) {
  memcpy(equation->text + equation->size, text, size);
  equation->size += size;
  equation->text[equation->size] = 0;
}

static void add_labels(equation_t* equation, const linalg_einsum_grad_labels_t* labels) {
  int before = has_dots(labels) ? labels->dots : labels->count;
  add_text(equation, labels->text, (size_t)before);
  if (has_dots(labels)) add_text(equation, "...", 3);
  add_text(equation, labels->text + before, (size_t)(labels->count - before));
}

static rn_edge_t einsum1(rn_grad_t* g, rn_edge_t x, const linalg_einsum_grad_labels_t* from,
                         const linalg_einsum_grad_labels_t* to) {
  equation_t equation = {.size = 0};
  add_labels(&equation, from);
  add_text(&equation, "->", 2);
  add_labels(&equation, to);
  return rn_Einsum(g->scope, &x, 1, equation.text);
}

// The parsed equation of the node.
typedef struct linalg_einsum_grad_product_t {
  int count;  // number of operands
  linalg_einsum_grad_labels_t in[2];
  linalg_einsum_grad_labels_t out;
} linalg_einsum_grad_product_t;

// dC times the other operand, summed to the labels |to|.
static rn_edge_t core(rn_grad_t* g, const linalg_einsum_grad_product_t* p, int operand,
                      const linalg_einsum_grad_labels_t* to) {
  rn_edge_t inputs[2] = {rn_grad_dy(g, 0), RN_NO_EDGE};
  equation_t equation = {.size = 0};
  add_labels(&equation, &p->out);
  if (p->count == 2) {
    inputs[1] = rn_rule_conj(g, rn_grad_in(g, 1 - operand));
    add_text(&equation, ",", 1);
    add_labels(&equation, &p->in[1 - operand]);
  }
  add_text(&equation, "->", 2);
  add_labels(&equation, to);
  return rn_Einsum(g->scope, inputs, p->count, equation.text);
}

static rn_edge_t to_operand(rn_grad_t* g, const linalg_einsum_grad_product_t* p, int operand) {
  const linalg_einsum_grad_labels_t* own = &p->in[operand];
  const linalg_einsum_grad_labels_t* other = p->count == 2 ? &p->in[1 - operand] : NULL;
  bool joint_dots = has_dots(&p->out) || (other && has_dots(other));
  // Each label once, the ellipsis first. |once|: all labels; |known|: those that dC or the other
  // operand has.
  linalg_einsum_grad_labels_t once = {.dots = has_dots(own) ? 0 : -1};
  linalg_einsum_grad_labels_t known = {.dots = joint_dots ? 0 : -1};
  for (int i = 0; i < own->count; ++i) {
    char label = own->text[i];
    if (has(&once, label)) continue;
    once.text[once.count++] = label;
    if (has(&p->out, label) || (other && has(other, label))) known.text[known.count++] = label;
  }
  bool is_plain = once.count == own->count && once.dots == own->dots;
  bool is_repeated = known.count < once.count || (has_dots(own) && !joint_dots);
  rn_edge_t value = core(g, p, operand, &known), like = rn_grad_in(g, operand);
  if (!is_plain && (is_repeated || joint_dots)) like = einsum1(g, like, own, &once);
  for (int i = once.count - 1; i >= 0; --i)
    if (!has(&known, once.text[i])) value = rn_rule_expand(g, value, i - once.count);
  if (is_repeated && has_dots(&known)) {
    value = rn_AddV2(g->scope, value, rn_ZerosLike(g->scope, like));
  } else if (is_repeated) {
    value = rn_BroadcastTo(g->scope, value, rn_rule_shape(g, like, RN_INT32));
  }
  if (has_dots(&known)) value = rn_rule_unbroadcast(g, value, like, value, once.count);
  return is_plain ? value : einsum1(g, value, &once, own);
}

RN_RULE(einsum) {
  linalg_einsum_grad_product_t p = {.count = g->input_count};
  if (p.count > 2) return rn_unimplemented("Einsum of more than two operands");
  const char* text = RN_RULE_TEXT(g, "equation");
  for (int i = 0; text && i < p.count; ++i) text = parse(text, ",-", &p.in[i]);
  if (text) text = parse(text, "", &p.out);
  if (!text) return rn_invalid_argument("Einsum equation is too long");
  for (int i = 0; i < p.count; ++i)
    if (rn_grad_wants(g, i)) rn_grad_to(g, i, to_operand(g, &p, i));
  return RN_OK;
}
