// Versions, statuses, enums, struct layouts and buffers, which all other calls use.
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "util.h"

CT_TEST(CAPI, Version) { CT_STR(TF_Version(), "2.21.0"); }

CT_TEST(CAPI, Status) {
  TF_Status* s = TF_NewStatus();
  CT_INT(TF_GetCode(s), TF_OK);
  CT_STR(TF_Message(s), "");
  TF_SetStatus(s, TF_CANCELLED, "cancel");
  CT_ERROR(s, TF_CANCELLED, "cancel");
  TF_SetStatus(s, TF_UNAUTHENTICATED, "who are you");
  CT_ERROR(s, TF_UNAUTHENTICATED, "who are you");
  TF_SetStatus(s, TF_OK, "ignored");
  CT_ERROR(s, TF_OK, "");
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, StatusKeepsItsOwnCopyOfTheMessage) {
  char message[] = "first";
  TF_Status* s = TF_NewStatus();
  TF_SetStatus(s, TF_INTERNAL, message);
  memcpy(message, "other", 5);
  CT_ERROR(s, TF_INTERNAL, "first");
  TF_DeleteStatus(s);
}

typedef struct seen_t {
  int count;
  char last[64];
  bool a, b;
} seen_t;

static void visit(const char* key, const char* value, void* capture) {
  seen_t* seen = capture;
  ++seen->count;
  seen->a |= strcmp(key, "key_a") == 0 && strcmp(value, "value_a") == 0;
  seen->b |= strcmp(key, "key_b") == 0 && strcmp(value, "value_b2") == 0;
}

CT_TEST(CAPI, StatusPayloads) {
  TF_Status* s = TF_NewStatus();
  // An OK status carries none.
  TF_SetPayload(s, "key_a", "value_a");
  seen_t seen = {0};
  TF_ForEachPayload(s, visit, &seen);
  CT_INT(seen.count, 0);

  TF_SetStatus(s, TF_DATA_LOSS, "lost");
  TF_SetPayload(s, "key_a", "value_a");
  TF_SetPayload(s, "key_b", "value_b1");
  TF_SetPayload(s, "key_b", "value_b2");
  TF_ForEachPayload(s, visit, &seen);
  CT_INT(seen.count, 2);
  cr_assert(seen.a && seen.b);
  CT_ERROR(s, TF_DATA_LOSS, "lost");

  // A new status has no payload of the old one.
  TF_SetStatus(s, TF_DATA_LOSS, "again");
  seen = (seen_t){0};
  TF_ForEachPayload(s, visit, &seen);
  CT_INT(seen.count, 0);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, StatusFromIOError) {
  static const struct {
    int error;
    TF_Code code;
  } rows[] = {
      {EINVAL, TF_INVALID_ARGUMENT},
      {ENOENT, TF_NOT_FOUND},
      {EEXIST, TF_ALREADY_EXISTS},
      {EACCES, TF_PERMISSION_DENIED},
      {EPERM, TF_PERMISSION_DENIED},
      {ENOTDIR, TF_FAILED_PRECONDITION},
      {ENOSPC, TF_RESOURCE_EXHAUSTED},
      {ERANGE, TF_OUT_OF_RANGE},
      {ENOSYS, TF_UNIMPLEMENTED},
      {EAGAIN, TF_UNAVAILABLE},
      {ETIMEDOUT, TF_DEADLINE_EXCEEDED},
      {EDEADLK, TF_ABORTED},
      {ECANCELED, TF_CANCELLED},
      {EBADF, TF_FAILED_PRECONDITION},
      {ENOMEM, TF_RESOURCE_EXHAUSTED},
      {EIO, TF_UNKNOWN},
      {0, TF_OK},
  };
  TF_Status* s = TF_NewStatus();
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    TF_SetStatusFromIOError(s, rows[i].error, "some_file");
    CT_CODE(s, rows[i].code);
    if (rows[i].code == TF_OK) continue;
    char expected[256];
    snprintf(expected, sizeof expected, "some_file; %s", strerror(rows[i].error));
    CT_STR(TF_Message(s), expected);
  }
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, StatusEnum) {
  CT_INT(TF_OK, 0);
  CT_INT(TF_CANCELLED, 1);
  CT_INT(TF_UNKNOWN, 2);
  CT_INT(TF_INVALID_ARGUMENT, 3);
  CT_INT(TF_DEADLINE_EXCEEDED, 4);
  CT_INT(TF_NOT_FOUND, 5);
  CT_INT(TF_ALREADY_EXISTS, 6);
  CT_INT(TF_PERMISSION_DENIED, 7);
  CT_INT(TF_RESOURCE_EXHAUSTED, 8);
  CT_INT(TF_FAILED_PRECONDITION, 9);
  CT_INT(TF_ABORTED, 10);
  CT_INT(TF_OUT_OF_RANGE, 11);
  CT_INT(TF_UNIMPLEMENTED, 12);
  CT_INT(TF_INTERNAL, 13);
  CT_INT(TF_UNAVAILABLE, 14);
  CT_INT(TF_DATA_LOSS, 15);
  CT_INT(TF_UNAUTHENTICATED, 16);
}

// Every dtype: its number and the bytes of an element, 0 for those that are not plain bytes.
CT_TEST(CAPI, DataTypeEnum) {
  static const struct {
    TF_DataType dtype;
    int number;
    size_t size;
  } rows[] = {
      {TF_FLOAT, 1, 4},        {TF_DOUBLE, 2, 8},         {TF_INT32, 3, 4},
      {TF_UINT8, 4, 1},        {TF_INT16, 5, 2},          {TF_INT8, 6, 1},
      {TF_STRING, 7, 0},       {TF_COMPLEX64, 8, 8},      {TF_COMPLEX, 8, 8},
      {TF_INT64, 9, 8},        {TF_BOOL, 10, 1},          {TF_QINT8, 11, 1},
      {TF_QUINT8, 12, 1},      {TF_QINT32, 13, 4},        {TF_BFLOAT16, 14, 2},
      {TF_QINT16, 15, 2},      {TF_QUINT16, 16, 2},       {TF_UINT16, 17, 2},
      {TF_COMPLEX128, 18, 16}, {TF_HALF, 19, 2},          {TF_RESOURCE, 20, 0},
      {TF_VARIANT, 21, 0},     {TF_UINT32, 22, 4},        {TF_UINT64, 23, 8},
      {TF_FLOAT8_E5M2, 24, 1}, {TF_FLOAT8_E4M3FN, 25, 1}, {TF_INT4, 29, 1},
      {TF_UINT4, 30, 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    CT_INT(rows[i].dtype, rows[i].number);
    CT_INT(TF_DataTypeSize(rows[i].dtype), rows[i].size);
  }
  CT_INT(TF_DataTypeSize((TF_DataType)0), 0);
  CT_INT(TF_DataTypeSize((TF_DataType)99), 0);
}

CT_TEST(CAPI, PublicStructLayout) {
  CT_INT(sizeof(TF_Buffer), 24);
  CT_INT(sizeof(TF_Output), 16);
  CT_INT(sizeof(TF_Input), 16);
  CT_INT(sizeof(TF_TString), 24);
  CT_INT(sizeof(TF_AttrMetadata), 32);
  CT_INT(offsetof(TF_AttrMetadata, list_size), 8);
  CT_INT(offsetof(TF_AttrMetadata, type), 16);
  CT_INT(offsetof(TF_AttrMetadata, total_size), 24);
  CT_INT(sizeof(TF_WhileParams), 72);
  CT_INT(offsetof(TF_WhileParams, cond_graph), 8);
  CT_INT(offsetof(TF_WhileParams, cond_inputs), 16);
  CT_INT(offsetof(TF_WhileParams, cond_output), 24);
  CT_INT(offsetof(TF_WhileParams, body_graph), 40);
  CT_INT(offsetof(TF_WhileParams, body_inputs), 48);
  CT_INT(offsetof(TF_WhileParams, body_outputs), 56);
  CT_INT(offsetof(TF_WhileParams, name), 64);
}

CT_TEST(CAPI, MessageBufferConversion) {
  char bytes[] = "some\0bytes";
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, 10);
  cr_assert_not_null(buffer);
  CT_INT(buffer->length, 10);
  cr_assert_neq(buffer->data, (const void*)bytes);
  CT_INT(memcmp(buffer->data, bytes, 10), 0);
  cr_assert_not_null((void*)(uintptr_t)buffer->data_deallocator);
  TF_Buffer view = TF_GetBuffer(buffer);
  cr_assert_eq(view.data, buffer->data);
  CT_INT(view.length, 10);
  TF_DeleteBuffer(buffer);

  buffer = TF_NewBuffer();
  cr_assert_null(buffer->data);
  CT_INT(buffer->length, 0);
  cr_assert(buffer->data_deallocator == NULL);
  TF_DeleteBuffer(buffer);
}

static size_t freed_length;
static void free_bytes(void* data, size_t length) {
  freed_length = length;
  free(data);
}

CT_TEST(CAPI, BufferFieldsAreTheClients) {
  TF_Buffer* buffer = TF_NewBuffer();
  buffer->data = malloc(11);
  buffer->length = 11;
  buffer->data_deallocator = free_bytes;
  TF_DeleteBuffer(buffer);
  CT_INT(freed_length, 11);
}

CT_TEST(CAPI, BufferMustBeEmptyToReceive) {
  ct_t t = ct_open();
  TF_Buffer* buffer = TF_NewBufferFromString("x", 1);
  TF_GraphToGraphDef(t.graph, buffer, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Passing non-empty TF_Buffer is invalid.");
  TF_DeleteBuffer(buffer);
  ct_close(&t);
}

CT_TEST(CAPI, SessionOptions) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  cr_assert_not_null(options);
  TF_SetTarget(options, "");
  TF_Status* s = TF_NewStatus();
  // ConfigProto: intra_op_parallelism_threads 2, inter_op_parallelism_threads 5.
  pb_t config = {0};
  pb_varint(&config, 2, 1);
  pb_varint(&config, 5, 1);
  TF_SetConfig(options, config.data, config.length, s);
  CT_OK(s);
  TF_SetConfig(options, "\xff\xff", 2, s);
  CT_ERROR(s, TF_INVALID_ARGUMENT, "Unparseable ConfigProto");
  pb_free(&config);
  TF_DeleteSessionOptions(options);
  TF_DeleteStatus(s);
}

CT_TEST(CAPI, DeletingNullPointerIsSafe) {
  TF_Status* s = TF_NewStatus();
  TF_DeleteStatus(NULL);
  TF_DeleteBuffer(NULL);
  TF_DeleteTensor(NULL);
  TF_DeleteSessionOptions(NULL);
  TF_DeleteGraph(NULL);
  TF_DeleteImportGraphDefOptions(NULL);
  TF_DeleteImportGraphDefResults(NULL);
  TF_DeleteFunction(NULL);
  TF_DeleteSession(NULL, s);
  CT_OK(s);
  TF_DeletePRunHandle(NULL);
  TF_DeleteDeprecatedSession(NULL, s);
  CT_OK(s);
  TF_DeleteDeviceList(NULL);
  TF_DeleteLibraryHandle(NULL);
  TF_DeleteApiDefMap(NULL);
  TF_DeleteStatus(s);
}
