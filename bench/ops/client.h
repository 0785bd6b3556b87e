// The client of the bench of single ops: a call of an op, written as text in ops.tsv.
//
// Every function ends the process by bench_fail when the text is wrong or the library reports an
// error.
#ifndef BENCH_OPS_CLIENT_H_
#define BENCH_OPS_CLIENT_H_

#include "tensorflow/c/eager/c_api.h"

enum { kMostInputs = 64, kMostOutputs = 64 };

// Inputs in order; those of a list argument have the same |list|, others -1.
typedef struct {
  TFE_TensorHandle* handles[kMostInputs];  // Owned.
  int list[kMostInputs];
  int count;
} inputs_t;

// Makes the values that |text| describes (README.md has the form). |text| is changed.
void inputs_read(inputs_t* inputs, TFE_Context* context, char* text);
void inputs_close(inputs_t* inputs);

// Adds the inputs to an op, and the attributes "name=value name=value" of |text|.
void inputs_add(const inputs_t* inputs, TFE_Op* op, TF_Status* status);
void attributes_add(TFE_Op* op, const char* text, TF_Status* status);

// The type of a name as in the .ops files: "float", "int32".
TF_DataType type_of_name(const char* name);

#endif  // BENCH_OPS_CLIENT_H_
