// Tensors of plain data: ownership, alignment, copying, reshaping and decoding.
#include <stdlib.h>

#include "util.h"

// A client's buffer and how often it was given back.
typedef struct owned_t {
  int freed;
  void* data;
  size_t length;
} owned_t;

static void give_back(void* data, size_t length, void* arg) {
  owned_t* owned = arg;
  ++owned->freed;
  owned->data = data;
  owned->length = length;
  free(data);
}

CT_TEST(CAPI, Tensor) {
  float* values = aligned_alloc(64, 64);
  for (int i = 0; i < 6; ++i) values[i] = (float)i * 1.5f;
  int64_t dims[] = {2, 3};
  owned_t owned = {0};
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 2, values, 24, give_back, &owned);
  cr_assert_not_null(t);
  CT_INT(owned.freed, 0);
  CT_INT(TF_TensorType(t), TF_FLOAT);
  CT_INT(TF_NumDims(t), 2);
  CT_INT(TF_Dim(t, 0), 2);
  CT_INT(TF_Dim(t, 1), 3);
  CT_INT(TF_TensorElementCount(t), 6);
  CT_INT(TF_TensorByteSize(t), 24);
  // Aligned bytes are taken as they are.
  cr_assert_eq(TF_TensorData(t), values);
  TF_DeleteTensor(t);
  CT_INT(owned.freed, 1);
  cr_assert_eq(owned.data, values);
  CT_INT(owned.length, 24);
}

CT_TEST(CAPI, NewTensorCopiesUnalignedBytes) {
  unsigned char* block = aligned_alloc(64, 128);
  unsigned char* odd = block + 4;
  for (int i = 0; i < 24; ++i) odd[i] = (unsigned char)i;
  int calls = 0;
  int64_t dims[] = {6};
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 1, odd, 24, ct_count_call, &calls);
  cr_assert_not_null(t);
  CT_INT(calls, 1);  // before TF_NewTensor returned
  cr_assert_neq(TF_TensorData(t), (void*)odd);
  CT_INT((uintptr_t)TF_TensorData(t) % 64, 0);
  CT_INT(memcmp(TF_TensorData(t), odd, 24), 0);
  TF_DeleteTensor(t);
  CT_INT(calls, 1);
  free(block);
}

CT_TEST(CAPI, MalformedTensor) {
  int calls = 0;
  float value = 1;
  // A scalar needs four bytes and gets none; the client keeps its buffer.
  cr_assert_null(TF_NewTensor(TF_FLOAT, NULL, 0, &value, 0, ct_count_call, &calls));
  int64_t dims[] = {3};
  cr_assert_null(TF_NewTensor(TF_FLOAT, dims, 1, &value, 11, ct_count_call, &calls));
}

CT_TEST(CAPI, TensorLargerThanItsShape) {
  // More bytes than the shape needs are accepted and kept.
  int calls = 0;
  float* values = aligned_alloc(64, 64);
  int64_t dims[] = {3};
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 1, values, 64, ct_count_call, &calls);
  cr_assert_not_null(t);
  CT_INT(TF_TensorByteSize(t), 64);
  CT_INT(TF_TensorElementCount(t), 3);
  TF_DeleteTensor(t);
  free(values);
}

CT_TEST(CAPI, AllocateTensor) {
  int64_t dims[] = {2, 3};
  TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, dims, 2, 24);
  cr_assert_not_null(t);
  CT_INT(TF_TensorType(t), TF_FLOAT);
  CT_INT(TF_NumDims(t), 2);
  CT_INT(TF_Dim(t, 0), 2);
  CT_INT(TF_Dim(t, 1), 3);
  CT_INT(TF_TensorByteSize(t), 24);
  CT_INT(TF_TensorElementCount(t), 6);
  CT_INT((uintptr_t)TF_TensorData(t) % TF_TensorDefaultAlignment(), 0);
  memset(TF_TensorData(t), 0xff, 24);
  TF_DeleteTensor(t);
}

CT_TEST(CAPI, AllocateEmptyTensor) {
  int64_t dims[] = {0, 7};
  TF_Tensor* t = TF_AllocateTensor(TF_INT64, dims, 2, 0);
  cr_assert_not_null(t);
  CT_INT(TF_TensorElementCount(t), 0);
  CT_INT(TF_TensorByteSize(t), 0);
  CT_INT(TF_Dim(t, 1), 7);
  TF_DeleteTensor(t);
}

CT_TEST(CAPI, AllocateTensorOfEveryDtype) {
  int64_t dims[] = {5};
  for (int dtype = 1; dtype <= 25; ++dtype) {
    size_t size = TF_DataTypeSize((TF_DataType)dtype);
    if (size == 0) continue;
    TF_Tensor* t = TF_AllocateTensor((TF_DataType)dtype, dims, 1, 5 * size);
    cr_assert_not_null(t, "dtype %d", dtype);
    CT_INT(TF_TensorType(t), dtype);
    CT_INT(TF_TensorByteSize(t), 5 * size);
    TF_DeleteTensor(t);
  }
}

CT_TEST(CAPI, TensorDefaultAlignment) { CT_INT(TF_TensorDefaultAlignment(), 64); }

CT_TEST(CAPI, MaybeMove) {
  // The only reference to bytes of the library's own moves; the old handle is used up.
  float values[] = {1, 2, 3};
  int64_t dims[] = {3};
  TF_Tensor* t = ct_tensor(TF_FLOAT, dims, 1, values, 12);
  void* data = TF_TensorData(t);
  TF_Tensor* moved = TF_TensorMaybeMove(t);
  cr_assert_not_null(moved);
  cr_assert_eq(TF_TensorData(moved), data);
  CT_INT(TF_TensorElementCount(moved), 3);
  TF_DeleteTensor(moved);
}

CT_TEST(CAPI, MaybeMoveOfClientBytes) {
  // Bytes that came with a deallocator are not the library's to give away.
  float* values = aligned_alloc(64, 64);
  int64_t dims[] = {3};
  owned_t owned = {0};
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 1, values, 12, give_back, &owned);
  cr_assert_null(TF_TensorMaybeMove(t));
  CT_INT(owned.freed, 0);
  TF_DeleteTensor(t);
  CT_INT(owned.freed, 1);
}

CT_TEST(CAPI, SetShapeOfTensor) {
  float values[] = {0, 1, 2, 3, 4, 5};
  int64_t dims[] = {2, 3};
  TF_Tensor* t = ct_tensor(TF_FLOAT, dims, 2, values, sizeof values);
  int64_t flat[] = {6};
  TF_SetShape(t, flat, 1);
  CT_INT(TF_NumDims(t), 1);
  CT_INT(TF_Dim(t, 0), 6);
  CT_INT(TF_TensorElementCount(t), 6);
  CT_INT(memcmp(TF_TensorData(t), values, sizeof values), 0);
  TF_DeleteTensor(t);
}

CT_TEST(CAPI, TestBitcastFrom_Reshape) {
  TF_Status* s = TF_NewStatus();
  float values[] = {0, 1, 2, 3, 4, 5};
  int64_t dims[] = {2, 3};
  TF_Tensor* a = ct_tensor(TF_FLOAT, dims, 2, values, sizeof values);
  TF_Tensor* b = TF_AllocateTensor(TF_FLOAT, NULL, 0, 4);
  int64_t new_dims[] = {1, 1, 6};
  TF_TensorBitcastFrom(a, TF_FLOAT, b, new_dims, 3, s);
  CT_OK(s);
  CT_INT(TF_TensorElementCount(b), 6);
  CT_INT(TF_TensorByteSize(b), 24);
  CT_INT(TF_NumDims(b), 3);
  // One buffer, two shapes.
  ((float*)TF_TensorData(a))[4] = 9;
  CT_INT(((float*)TF_TensorData(b))[4], 9);
  cr_assert_eq(TF_TensorData(a), TF_TensorData(b));
  TF_DeleteTensor(a);
  CT_INT(((float*)TF_TensorData(b))[5], 5);
  TF_DeleteTensor(b);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, BitcastFromOtherTypes) {
  TF_Status* s = TF_NewStatus();
  int32_t values[] = {0x3f800000, 0x40000000};
  TF_Tensor* a = ct_int32_vector(2, values);
  TF_Tensor* b = TF_AllocateTensor(TF_FLOAT, NULL, 0, 4);
  int64_t two[] = {2};
  TF_TensorBitcastFrom(a, TF_FLOAT, b, two, 1, s);
  CT_OK(s);
  CT_INT(TF_TensorType(b), TF_FLOAT);
  CT_INT(((float*)TF_TensorData(b))[1], 2);
  int64_t one[] = {1};
  TF_TensorBitcastFrom(a, TF_INT64, b, one, 1, s);
  CT_OK(s);
  CT_INT(TF_TensorType(b), TF_INT64);
  CT_INT(((int64_t*)TF_TensorData(b))[0], 0x400000003f800000);
  // The bytes must fit exactly.
  TF_TensorBitcastFrom(a, TF_INT64, b, two, 1, s);
  CT_CODE(s, TF_INVALID_ARGUMENT);
  TF_TensorBitcastFrom(a, TF_UINT8, b, two, 1, s);
  CT_CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteTensor(a);
  TF_DeleteTensor(b);
  TF_DeleteStatus(s);
}

// TensorProto: dtype 1, tensor_shape 2, tensor_content 4, string_val 8.
CT_TEST(CAPI, TestFromProto) {
  TF_Status* s = TF_NewStatus();
  float values[] = {1, 2, 3, 4, 5, 6};
  int64_t dims[] = {2, 3};
  pb_t proto = {0};
  pb_varint(&proto, 1, TF_FLOAT);
  pb_shape(&proto, 2, 2, dims);
  pb_bytes(&proto, 4, values, sizeof values);
  TF_Buffer* buffer = TF_NewBufferFromString(proto.data, proto.length);
  TF_Tensor* t = TF_AllocateTensor(TF_INT32, NULL, 0, 4);
  TF_TensorFromProto(buffer, t, s);
  CT_OK(s);
  CT_INT(TF_TensorType(t), TF_FLOAT);
  CT_INT(TF_NumDims(t), 2);
  CT_INT(TF_TensorByteSize(t), 24);
  CT_INT(memcmp(TF_TensorData(t), values, sizeof values), 0);
  TF_DeleteBuffer(buffer);

  buffer = TF_NewBufferFromString("\xff\xff\xff", 3);
  TF_TensorFromProto(buffer, t, s);
  CT_ERROR(s, TF_INVALID_ARGUMENT, "Unparseable tensorflow.TensorProto proto");
  TF_DeleteBuffer(buffer);
  TF_DeleteTensor(t);
  pb_free(&proto);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, TestTensorAligned) {
  int64_t dims[] = {7};
  TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, dims, 1, 28);
  cr_assert(TF_TensorIsAligned(t));
  TF_DeleteTensor(t);
}

CT_TEST(CAPI, TensorOutlivesItsSession) {
  ct_t t = ct_open();
  TF_Operation* c = ct_scalar(&t, t.graph, "c", 17);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", c);
  TF_Tensor* result = ct_run0(&t, neg);
  ct_close(&t);
  CT_INT(ct_take_int32(result), -17);
}

// A client may ask for a tensor of objects, write to its bytes, and delete it; nobody reads them.
CT_TEST(CAPI, AllocateTensorOfObjects) {
  const TF_DataType types[] = {TF_RESOURCE, TF_VARIANT};
  const int64_t dims[] = {2, 3};
  for (int i = 0; i < 2; ++i) {
    TF_Tensor* tensor = TF_AllocateTensor(types[i], dims, 2, 384);
    cr_assert_not_null(tensor);
    CT_INT(TF_TensorType(tensor), types[i]);
    CT_INT(TF_TensorElementCount(tensor), 6);
    CT_INT(TF_TensorByteSize(tensor), 384);
    cr_assert_not_null(TF_TensorData(tensor));
    memset(TF_TensorData(tensor), 0x5a, 384);
    TF_DeleteTensor(tensor);
    tensor = TF_AllocateTensor(types[i], NULL, 0, 0);
    cr_assert_not_null(tensor);
    CT_INT(TF_TensorByteSize(tensor), 0);
    cr_assert_not_null(TF_TensorData(tensor));
    TF_DeleteTensor(tensor);
  }
}
