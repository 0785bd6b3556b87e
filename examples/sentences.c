// The grammar, and rows of its text. See sentences.h.
#include "sentences.h"

#include <math.h>

enum { NOUNS = 30, ADVERBS = 20, SUITING = 3 };  // verbs: as many as nouns
enum { THE, STOP, THAT, ADVERB, NOUN = ADVERB + ADVERBS, VERB = NOUN + 2 * NOUNS };
_Static_assert(SENTENCES_WORDS == VERB + 2 * NOUNS, "every word has a number");

void sentences_write(example_t* e, sentences_t* text) {
  for (int at = 0; at < SENTENCES_LENGTH;) {
    int noun = (int)example_draw(e, NOUNS), plural = (int)example_draw(e, 2);
    int verb = (noun + (int)example_draw(e, SUITING)) % NOUNS;
    int adverb = (int)example_draw(e, ADVERBS), has_adverb = (int)example_draw(e, 2);
    const int32_t words[] = {
        THE, NOUN + 2 * noun + plural, THAT, ADVERB + adverb, VERB + 2 * verb + plural, STOP};
    const int odds[] = {1, 2 * NOUNS, 2, ADVERBS, has_adverb ? SUITING : 2 * SUITING, 1};
    for (int i = 0; i < 6 && at < SENTENCES_LENGTH; ++i) {
      if (!has_adverb && (i == 2 || i == 3)) continue;
      text->words[at] = words[i];
      text->surprise[at++] = logf((float)odds[i]);
    }
  }
}

float sentences_batch(example_t* e, const sentences_t* text, int count, int time, int32_t* words,
                      int32_t* next) {
  float surprise = 0;
  for (int i = 0; i < count; ++i) {
    int at = (int)example_draw(e, SENTENCES_LENGTH - 2 * (uint32_t)time);
    while (text->words[at] != STOP) ++at;
    for (int k = 0; k < time; ++k) {
      words[i * time + k] = text->words[at + k];
      next[i * time + k] = text->words[at + k + 1];
      surprise += text->surprise[at + k + 1];
    }
  }
  return surprise / (float)(count * time);
}
