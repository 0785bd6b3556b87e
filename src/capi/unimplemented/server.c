// Importing C++ objects: not implemented.

#include "capi/unimplemented/unimplemented.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"

// Takes a C++ object in the buffer, which no C library can read.
TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
