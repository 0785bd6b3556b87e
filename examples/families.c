// Families of words. See families.h.
#include "families.h"

// The family is the remainder of the word's number, so that members are spread over the whole
// table.
static int family_of(int word) { return word % FAMILIES; }

void families_pairs(example_t* e, int count, int32_t* words, int64_t* neighbours) {
  for (int i = 0; i < count; ++i) {
    words[i] = (int32_t)example_draw(e, FAMILIES_WORDS);
    neighbours[i] = family_of(words[i]) + FAMILIES * (int64_t)example_draw(e, FAMILIES_MEMBERS);
  }
}

rn_edge_t families_nearest(rn_scope_t* s, rn_edge_t vectors) {
  rn_edge_t squares = rn_Sum(s, rn_Square(s, vectors), rn_const_int32(s, 1), .keep_dims = true);
  rn_edge_t unit = rn_Mul(s, vectors, rn_Rsqrt(s, squares));
  rn_edge_t cosines = rn_MatMul(s, unit, unit, .transpose_b = true);
  return rn_TopKV2(s, cosines, rn_const_int32(s, FAMILIES_MEMBERS)).indices;
}

float families_found(const int32_t found[FAMILIES_WORDS][FAMILIES_MEMBERS]) {
  int right = 0;
  for (int i = 0; i < FAMILIES_WORDS; ++i)
    for (int k = 1; k < FAMILIES_MEMBERS; ++k) right += family_of(found[i][k]) == family_of(i);
  return (float)right / (FAMILIES_WORDS * (FAMILIES_MEMBERS - 1));
}
