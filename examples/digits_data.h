// The handwritten digits of examples/data: 1,797 images of 8 x 8.
#ifndef RUNNEL_EXAMPLES_DIGITS_DATA_H_
#define RUNNEL_EXAMPLES_DIGITS_DATA_H_

#include "example.h"

enum { DIGITS_PIXELS = 64, DIGITS_CLASSES = 10, DIGITS_TRAINED = 1500, DIGITS_HELD_OUT = 297 };

typedef struct digits_t {
  float images[DIGITS_TRAINED + DIGITS_HELD_OUT][DIGITS_PIXELS];  // 0 … 1
  int32_t labels[DIGITS_TRAINED + DIGITS_HELD_OUT];
} digits_t;

// Reads all images, shuffled: the first DIGITS_TRAINED are for training, the rest are held out. The
// caller frees the result.
digits_t* digits_read(example_t* e);
// Picks |count| random training images.
void digits_batch(example_t* e, const digits_t* digits, int count, float* images, int32_t* labels);

#endif  // RUNNEL_EXAMPLES_DIGITS_DATA_H_
