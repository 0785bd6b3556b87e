// TF_CheckpointReader: the tensors of a checkpoint by name.
#include "io/checkpoint.h"
#include "capi/internal.h"
#include "tensorflow/c/c_api_experimental.h"

struct TF_CheckpointReader {
  rn_checkpoint_t* checkpoint;  // Owned
};

TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status) {
  if (!filename) {
    rn_capi_set(status, RN_CAPI_NULL("filename"));
    return NULL;
  }
  TF_CheckpointReader* reader = NULL;
  rn_status_t made = RN_NEW(rn_capi_allocator(), &reader);
  if (rn_ok(made)) made = rn_checkpoint_open(rn_capi_env(), filename, &reader->checkpoint);
  if (!rn_ok(made)) {
    TF_DeleteCheckpointReader(reader);
    reader = NULL;
  }
  rn_capi_set(status, made);
  return reader;
}

void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) {
  if (!reader) return;
  rn_checkpoint_close(reader->checkpoint);
  RN_FREE(rn_capi_allocator(), reader);
}

// Type and shape of the tensor |name|; false if there is none.
static bool find(const TF_CheckpointReader* reader, const char* name, rn_checkpoint_tensor_t* out) {
  return reader && name && rn_checkpoint_find(reader->checkpoint, rn_str(name), out);
}

int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name) {
  rn_checkpoint_tensor_t tensor;
  return find(reader, name, &tensor);
}

const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index) {
  if (!reader || index < 0 || (size_t)index >= rn_checkpoint_count(reader->checkpoint)) return NULL;
  return rn_checkpoint_tensor(reader->checkpoint, (size_t)index).name.data;
}

int TF_CheckpointReaderSize(TF_CheckpointReader* reader) {
  return reader ? (int)rn_checkpoint_count(reader->checkpoint) : 0;
}

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name) {
  rn_checkpoint_tensor_t tensor;
  return (TF_DataType)(find(reader, name, &tensor) ? tensor.dtype : 0);
}

static rn_status_t not_found(const char* name) {
  return rn_not_found("Key %s not found in checkpoint", name);
}

void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name,
                                         int64_t* dims, int num_dims, TF_Status* status) {
  rn_checkpoint_tensor_t tensor;
  if (!reader || !name || (num_dims > 0 && !dims))
    return rn_capi_set(status, RN_CAPI_NULL(!reader ? "reader" : !name ? "name" : "dims"));
  if (!find(reader, name, &tensor)) return rn_capi_set(status, not_found(name));
  if (num_dims != tensor.shape.rank)
    return rn_capi_set(status, rn_invalid_argument("Expected rank is %d but actual rank is %d",
                                                   num_dims, tensor.shape.rank));
  for (int i = 0; i < num_dims; ++i) dims[i] = tensor.shape.dims[i];
  rn_capi_set(status, RN_OK);
}

int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name) {
  rn_checkpoint_tensor_t tensor;
  return find(reader, name, &tensor) ? tensor.shape.rank : -1;
}

TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name,
                                        TF_Status* status) {
  if (!reader || !name) {
    rn_capi_set(status, RN_CAPI_NULL(reader ? "name" : "reader"));
    return NULL;
  }
  rn_tensor_t tensor;
  TF_Tensor* out = NULL;
  rn_status_t read =
      rn_checkpoint_read(reader->checkpoint, rn_str(name), NULL, rn_capi_allocator(), &tensor);
  if (rn_ok(read)) read = rn_capi_tensor_wrap(&tensor, &out);
  rn_capi_set(status, read);
  return out;
}
