// A text of words in families: who has read a word will soon read another of its family. That is
// all there is to find in it.
#ifndef RUNNEL_EXAMPLES_FAMILIES_H_
#define RUNNEL_EXAMPLES_FAMILIES_H_

#include "example.h"

enum { FAMILIES = 50, FAMILIES_MEMBERS = 8, FAMILIES_WORDS = FAMILIES * FAMILIES_MEMBERS };

// Words, and for each another that was near it.
void families_pairs(example_t* e, int count, int32_t* words, int64_t* neighbours);
// The nearest words of each, by the angle between their vectors, itself first:
// [FAMILIES_WORDS][FAMILIES_MEMBERS]. |vectors| has a row for each word.
rn_edge_t families_nearest(rn_scope_t* s, rn_edge_t vectors);
// How many of the others that were found are of the word's family: 0 ... 1.
float families_found(const int32_t found[FAMILIES_WORDS][FAMILIES_MEMBERS]);

#endif  // RUNNEL_EXAMPLES_FAMILIES_H_
