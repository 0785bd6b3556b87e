// Eager execution: collecting graphs, which does nothing.

#include "capi/unimplemented/unimplemented.h"
#include "tensorflow/c/eager/c_api_experimental.h"

void TFE_ContextEnableGraphCollection(TFE_Context* ctx) {}
void TFE_ContextDisableGraphCollection(TFE_Context* ctx) {}
