// Reads the digits: "DIGITS01", three numbers (images, rows, columns), then per image its pixels (0
// … 16) and the digit, one byte each.
#include "digits_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL = DIGITS_TRAINED + DIGITS_HELD_OUT };

digits_t* digits_read(example_t* e) {
  const char* path = RN_DATA_DIR "/digits.bin";
  FILE* file = fopen(path, "rb");
  if (!file) example_fail(path, "cannot be opened");
  char magic[8];
  uint32_t sizes[3];
  if (fread(magic, 8, 1, file) != 1 || memcmp(magic, "DIGITS01", 8) != 0 ||
      fread(sizes, sizeof sizes, 1, file) != 1 || sizes[0] != ALL || sizes[1] != 8 || sizes[2] != 8)
    example_fail(path, "is no file of digits");
  digits_t* digits = calloc(1, sizeof *digits);
  if (!digits) example_fail(path, "no memory");
  // The file is ordered by writer. Shuffles (each image swaps with a random earlier one), so that
  // the held-out images are like the others.
  for (uint32_t i = 0; i < ALL; ++i) {
    uint8_t row[DIGITS_PIXELS + 1];
    if (fread(row, sizeof row, 1, file) != 1) example_fail(path, "ends too early");
    uint32_t at = example_draw(e, i + 1);
    memcpy(digits->images[i], digits->images[at], sizeof digits->images[i]);
    digits->labels[i] = digits->labels[at];
    for (int p = 0; p < DIGITS_PIXELS; ++p) digits->images[at][p] = row[p] / 16.0f;
    digits->labels[at] = row[DIGITS_PIXELS];
  }
  fclose(file);
  return digits;
}

void digits_batch(example_t* e, const digits_t* digits, int count, float* images, int32_t* labels) {
  for (int i = 0; i < count; ++i) {
    uint32_t pick = example_draw(e, DIGITS_TRAINED);
    memcpy(images + i * DIGITS_PIXELS, digits->images[pick], sizeof digits->images[pick]);
    labels[i] = digits->labels[pick];
  }
}
