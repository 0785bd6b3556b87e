// A text made on the spot by a small grammar: "the dogs [that often] bark ."
//
// A verb suits its noun, and agrees with it in number, also across what may stand between: who
// guesses it has to remember. The author notes for each word how many there were to choose from,
// and so knows the perplexity that no reader can go below: about 4.6. Who does not remember stays
// above 6.
#ifndef RUNNEL_EXAMPLES_SENTENCES_H_
#define RUNNEL_EXAMPLES_SENTENCES_H_

#include "example.h"

// Words are numbers below SENTENCES_WORDS, small ones frequent.
enum { SENTENCES_WORDS = 143, SENTENCES_LENGTH = 20000 };

typedef struct sentences_t {
  int32_t words[SENTENCES_LENGTH];
  float surprise[SENTENCES_LENGTH];  // the logarithm of how many words were equally likely
} sentences_t;

void sentences_write(example_t* e, sentences_t* text);
// |count| rows of |time| words, each from the start of a sentence on, and the words that follow
// them. Returns the mean surprise of those.
float sentences_batch(example_t* e, const sentences_t* text, int count, int time, int32_t* words,
                      int32_t* next);

#endif  // RUNNEL_EXAMPLES_SENTENCES_H_
