// See predict.h.
#include "serve/predict.h"

void rn_predict_clear(rn_predict_t* predict) {
  for (int i = 0; i < predict->input_count; ++i) rn_tensor_clear(&predict->inputs[i].value);
  for (int i = 0; i < predict->output_count; ++i) rn_tensor_clear(&predict->outputs[i].value);
  if (predict->outputs)
    RN_FREE_ARRAY(predict->allocator, predict->outputs, (size_t)predict->output_count);
  predict->outputs = NULL;
  predict->output_count = 0;
}
