// A request of more rows than a batch may have, as several.
#ifndef RUNNEL_SERVE_MODEL_BATCH_SPLIT_H_
#define RUNNEL_SERVE_MODEL_BATCH_SPLIT_H_

#include "serve/model/batcher.h"

// Adds |predict| to |batcher| in parts of at most |max_rows| rows, and answers it when all of them
// are answered: with their outputs, joined, or with the first error.
void rn_batch_split(rn_batcher_t* batcher, rn_predict_t* predict, int64_t max_rows);

#endif  // RUNNEL_SERVE_MODEL_BATCH_SPLIT_H_
