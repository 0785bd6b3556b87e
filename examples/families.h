// A generated text of words in families: words of one family occur near each other. That is the
// only structure in it.
#ifndef RUNNEL_EXAMPLES_FAMILIES_H_
#define RUNNEL_EXAMPLES_FAMILIES_H_

#include "example.h"

enum { FAMILIES = 50, FAMILIES_MEMBERS = 8, FAMILIES_WORDS = FAMILIES * FAMILIES_MEMBERS };

// Generates words, and for each a word that occurs near it.
void families_pairs(example_t* e, int count, int32_t* words, int64_t* neighbours);
// The nearest words of each word by cosine similarity, starting with itself:
// [FAMILIES_WORDS][FAMILIES_MEMBERS]. |vectors| has one row per word.
rn_edge_t families_nearest(rn_scope_t* s, rn_edge_t vectors);
// The fraction of these neighbors that are in the word's family: 0 ... 1.
float families_found(const int32_t found[FAMILIES_WORDS][FAMILIES_MEMBERS]);

#endif  // RUNNEL_EXAMPLES_FAMILIES_H_
