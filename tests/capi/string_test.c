// TF_TString: the four memory layouts, and tensors of strings.
#include <stdlib.h>

#include "util.h"

// TensorProto: dtype 1, tensor_shape 2, tensor_content 4, string_val 8.
CT_TEST(CAPI, FromProtoStrings) {
  TF_Status* s = TF_NewStatus();
  int64_t dims[] = {2};
  pb_t proto = {0};
  pb_varint(&proto, 1, TF_STRING);
  pb_shape(&proto, 2, 1, dims);
  pb_string(&proto, 8, "short");
  pb_string(&proto, 8, "a string of more than twenty-two bytes");
  TF_Buffer* buffer = TF_NewBufferFromString(proto.data, proto.length);
  TF_Tensor* t = TF_AllocateTensor(TF_INT32, NULL, 0, 4);
  TF_TensorFromProto(buffer, t, s);
  CT_OK(s);
  CT_INT(TF_TensorType(t), TF_STRING);
  CT_INT(TF_TensorByteSize(t), 48);
  TF_TString* strings = TF_TensorData(t);
  CT_STR(TF_StringGetDataPointer(&strings[0]), "short");
  CT_INT(TF_StringGetType(&strings[0]), TF_TSTR_SMALL);
  CT_STR(TF_StringGetDataPointer(&strings[1]), "a string of more than twenty-two bytes");
  CT_INT(TF_StringGetType(&strings[1]), TF_TSTR_LARGE);
  TF_DeleteTensor(t);
  TF_DeleteBuffer(buffer);
  pb_free(&proto);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, TestTensorIsNotAligned) {
  // A string tensor is taken as it is, wherever it lies.
  TF_TString* block = aligned_alloc(64, 128);
  TF_TString* odd = (TF_TString*)((char*)block + 8);
  TF_StringInit(odd);
  int calls = 0;
  TF_Tensor* t = TF_NewTensor(TF_STRING, NULL, 0, odd, sizeof *odd, ct_count_call, &calls);
  cr_assert_not_null(t);
  CT_INT(calls, 0);
  cr_assert_eq(TF_TensorData(t), odd);
  TF_DeleteTensor(t);
  CT_INT(calls, 1);
  free(block);
}

CT_TEST(CAPI, TestTensorNonScalarBytesAllocateDelete) {
  int64_t dims[] = {3, 4};
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims, 2, 12 * sizeof(TF_TString));
  cr_assert_not_null(t);
  TF_TString* strings = TF_TensorData(t);
  for (int i = 0; i < 12; ++i) {
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], "a string that does not fit inline, so it owns memory", 51);
  }
  TF_DeleteTensor(t);
}

CT_TEST(CAPI, AllocateStringTensorUninitializedDelete) {
  int64_t dims[] = {3};
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims, 1, 3 * sizeof(TF_TString));
  cr_assert_not_null(t);
  TF_TString* strings = TF_TensorData(t);
  for (int i = 0; i < 3; ++i) {
    CT_INT(TF_StringGetSize(&strings[i]), 0);
    CT_INT(TF_StringGetType(&strings[i]), TF_TSTR_SMALL);
  }
  TF_DeleteTensor(t);
}

// A client that lays out a short string itself asks for no more than it writes.
CT_TEST(TF_TString, FewerBytesThanAnElement) {
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, NULL, 0, 5);
  cr_assert_not_null(t);
  CT_INT(TF_TensorByteSize(t), 5);
  memcpy(TF_TensorData(t), "\x10word", 5);
  TF_TString* text = TF_TensorData(t);
  CT_INT(TF_StringGetSize(text), 4);
  cr_assert_eq(memcmp(TF_StringGetDataPointer(text), "word", 4), 0);

  TF_Graph* graph = TF_NewGraph();
  TF_Status* s = TF_NewStatus();
  TF_OperationDescription* desc = TF_NewOperation(graph, "Const", "c");
  TF_SetAttrType(desc, "dtype", TF_STRING);
  TF_SetAttrTensor(desc, "value", t, s);
  CT_OK(s);
  TF_Operation* op = TF_FinishOperation(desc, s);
  CT_OK(s);
  TF_Tensor* value = NULL;
  TF_OperationGetAttrTensor(op, "value", &value, s);
  CT_OK(s);
  CT_INT(TF_StringGetSize(TF_TensorData(value)), 4);
  TF_DeleteTensor(value);
  TF_DeleteTensor(t);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, StringKinds) {
  TF_TString s;
  TF_StringInit(&s);
  CT_INT(TF_StringGetSize(&s), 0);
  CT_INT(TF_StringGetType(&s), TF_TSTR_SMALL);
  CT_INT(TF_StringGetCapacity(&s), 22);
  CT_STR(TF_StringGetDataPointer(&s), "");

  const char* text = "0123456789012345678901";
  TF_StringCopy(&s, text, 22);
  CT_INT(TF_StringGetType(&s), TF_TSTR_SMALL);
  CT_INT(TF_StringGetSize(&s), 22);
  CT_STR(TF_StringGetDataPointer(&s), text);
  CT_INT(((unsigned char*)&s)[0], 22 << 2);

  TF_StringCopy(&s, "01234567890123456789012", 23);
  CT_INT(TF_StringGetType(&s), TF_TSTR_LARGE);
  CT_INT(TF_StringGetSize(&s), 23);
  CT_INT(TF_StringGetCapacity(&s), 31);
  CT_STR(TF_StringGetDataPointer(&s), "01234567890123456789012");
  CT_INT(s.u.large.size, (23 << 2) | 1);

  TF_StringCopy(&s, "a\0b", 3);
  CT_INT(TF_StringGetType(&s), TF_TSTR_SMALL);
  CT_INT(TF_StringGetSize(&s), 3);
  CT_INT(memcmp(TF_StringGetDataPointer(&s), "a\0b", 4), 0);

  TF_StringAssignView(&s, text, 10);
  CT_INT(TF_StringGetType(&s), TF_TSTR_VIEW);
  CT_INT(TF_StringGetSize(&s), 10);
  CT_INT(TF_StringGetCapacity(&s), 0);
  cr_assert_eq(TF_StringGetDataPointer(&s), text);
  TF_StringDealloc(&s);

  TF_StringInit(&s);
  TF_StringCopy(&s, "01234567890123456789012", 23);
  TF_StringDealloc(&s);
  CT_INT(TF_StringGetSize(&s), 0);
  TF_StringDealloc(&s);
}

CT_TEST(CAPI, StringOffsetKind) {
  // A table of structs with the bytes behind it, each found from its struct's own address.
  struct {
    TF_TString table[2];
    char bytes[16];
  } block;
  memset(&block, 0, sizeof block);
  memcpy(block.bytes, "firstsecond", 11);
  block.table[0].u.offset = (TF_TString_Offset){.size = (5 << 2) | 2, .offset = 48, .count = 1};
  block.table[1].u.offset = (TF_TString_Offset){.size = (6 << 2) | 2, .offset = 29, .count = 1};
  CT_INT(TF_StringGetType(&block.table[0]), TF_TSTR_OFFSET);
  CT_INT(TF_StringGetSize(&block.table[1]), 6);
  CT_INT(memcmp(TF_StringGetDataPointer(&block.table[0]), "first", 5), 0);
  CT_INT(memcmp(TF_StringGetDataPointer(&block.table[1]), "second", 6), 0);
}

// The exported accessors and those a client compiles in must agree on every kind.
CT_TEST(CAPI, StringInlineAccessorsAgree) {
  const char* texts[] = {"", "x", "exactly twenty-two ch.", "exactly twenty-three ch",
                         "well over the inline capacity of a string"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
    TF_TString a, b;
    TF_StringInit(&a);
    TF_TString_Init(&b);
    TF_StringCopy(&a, texts[i], strlen(texts[i]));
    TF_TString_Copy(&b, texts[i], strlen(texts[i]));
    CT_STR(TF_TString_GetDataPointer(&a), texts[i]);
    CT_STR(TF_StringGetDataPointer(&b), texts[i]);
    CT_INT(TF_TString_GetSize(&a), TF_StringGetSize(&b));
    CT_INT(TF_TString_GetType(&a), TF_StringGetType(&b));
    CT_INT(TF_TString_GetCapacity(&a), TF_StringGetCapacity(&b));
    // One heap: each side frees what the other made.
    TF_TString_Dealloc(&a);
    TF_StringDealloc(&b);
  }
}

static void check_round_trip(ct_t* t, TF_Operation* feed, TF_Operation* identity, TF_Tensor* value,
                             int count, const char* const* texts) {
  TF_Tensor* result = ct_run1(t, feed, value, identity);
  CT_INT(TF_TensorType(result), TF_STRING);
  CT_INT(TF_TensorElementCount(result), count);
  const TF_TString* strings = TF_TensorData(result);
  for (int i = 0; i < count; ++i) {
    CT_INT(TF_StringGetSize(&strings[i]), strlen(texts[i]));
    CT_INT(memcmp(TF_StringGetDataPointer(&strings[i]), texts[i], strlen(texts[i])), 0);
  }
  TF_DeleteTensor(result);
}

static const char* const kTexts[] = {"one", "", "a much longer string that lives on the heap",
                                     "four"};

CT_TEST(CAPI, TensorEncodeDecodeStrings) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_STRING);
  TF_Operation* identity = ct_unary(&t, t.graph, "Identity", "identity", ct_out(feed, 0));
  check_round_trip(&t, feed, identity, ct_string_vector(4, kTexts), 4, kTexts);
  ct_close(&t);
}

CT_TEST(CAPI, StringTensorFilledAfterItWasMade) {
  // The library must neither read nor copy the structs when the tensor is made.
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_STRING);
  TF_Operation* identity = ct_unary(&t, t.graph, "Identity", "identity", ct_out(feed, 0));
  TF_TString* table = malloc(4 * sizeof *table);
  memset(table, 0xee, 4 * sizeof *table);
  int64_t dims[] = {4};
  int calls = 0;
  TF_Tensor* value =
      TF_NewTensor(TF_STRING, dims, 1, table, 4 * sizeof *table, ct_count_call, &calls);
  cr_assert_not_null(value);
  for (int i = 0; i < 4; ++i) {
    TF_TString_Init(&table[i]);
    TF_TString_Copy(&table[i], kTexts[i], strlen(kTexts[i]));
  }
  check_round_trip(&t, feed, identity, value, 4, kTexts);
  ct_close(&t);
  CT_INT(calls, 1);
  // Still the client's: the library freed no string of them.
  CT_STR(TF_TString_GetDataPointer(&table[2]), kTexts[2]);
  for (int i = 0; i < 4; ++i) TF_TString_Dealloc(&table[i]);
  free(table);
}

CT_TEST(CAPI, OffsetStringsThroughASession) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_STRING);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "StringJoin", "join");
  TF_Output inputs[] = {ct_out(feed, 0), ct_out(feed, 0)};
  TF_AddInputList(desc, inputs, 2);
  TF_Operation* join = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  char* block = aligned_alloc(64, 128);
  memset(block, 0, 128);
  TF_TString* table = (TF_TString*)block;
  memcpy(block + 48, "firstsecond", 11);
  table[0].u.offset = (TF_TString_Offset){.size = (5 << 2) | 2, .offset = 48, .count = 1};
  table[1].u.offset = (TF_TString_Offset){.size = (6 << 2) | 2, .offset = 29, .count = 1};
  int64_t dims[] = {2};
  int calls = 0;
  TF_Tensor* value = TF_NewTensor(TF_STRING, dims, 1, block, 59, ct_count_call, &calls);
  cr_assert_not_null(value);
  TF_Tensor* result = ct_run1(&t, feed, value, join);
  const TF_TString* strings = TF_TensorData(result);
  CT_STR(TF_StringGetDataPointer(&strings[0]), "firstfirst");
  CT_STR(TF_StringGetDataPointer(&strings[1]), "secondsecond");
  // A result is never of a kind that breaks when a client copies the struct.
  for (int i = 0; i < 2; ++i) cr_assert(TF_StringGetType(&strings[i]) <= TF_TSTR_LARGE);
  TF_DeleteTensor(result);
  ct_close(&t);
  free(block);
}
