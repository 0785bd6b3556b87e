// A container in C: the mean and the largest number of each row.
//
// container.pbtxt beside the program, in the folder of a version:
//   command: "./container"
#include "runnel/container.h"

static int run(void* self, rn_guest_call_t* call) {
  (void)self;
  const rn_guest_tensor_t* x = &call->inputs[0];
  const float* from = (const float*)x->data;
  const int64_t rows = x->dims[0], columns = x->dims[1];
  if (columns == 0) return rn_guest_fail(call, RN_GUEST_INVALID_ARGUMENT, "a row is empty");
  float* largest = (float*)rn_guest_output(call, 0, 1, &rows, (size_t)rows * sizeof(float));
  float* mean = (float*)rn_guest_output(call, 1, 1, &rows, (size_t)rows * sizeof(float));
  if (!largest || !mean) return RN_GUEST_NO_MEMORY;
  for (int64_t row = 0; row < rows; ++row) {
    const float* numbers = from + row * columns;
    double sum = 0;
    largest[row] = numbers[0];
    for (int64_t i = 0; i < columns; ++i) {
      sum += numbers[i];
      if (numbers[i] > largest[row]) largest[row] = numbers[i];
    }
    mean[row] = (float)(sum / (double)columns);
  }
  return 0;
}

int main(void) {
  static const int64_t matrix[] = {-1, -1}, vector[] = {-1};
  static const rn_guest_port_t inputs[] = {{"x", RN_GUEST_FLOAT, 2, matrix}};
  static const rn_guest_port_t outputs[] = {{"largest", RN_GUEST_FLOAT, 1, vector},
                                            {"mean", RN_GUEST_FLOAT, 1, vector}};
  static const rn_guest_signature_t signature = {
      "serving_default", inputs, 1, outputs, 2, RN_GUEST_BATCHED | RN_GUEST_PURE, NULL};
  static const rn_guest_options_t options = {&signature, 1, run, NULL, 0};
  return rn_guest_serve(&options);
}
