// Colocation: the "_class" attribute, set by TF_ColocateWith, as a list of strings or as a proto,
// in every order.
#include "util.h"

typedef struct colocation_t {
  ct_t t;
  TF_Operation* feed1;
  TF_Operation* feed2;
  TF_OperationDescription* desc;
} colocation_t;

static colocation_t begin(void) {
  colocation_t c = {.t = ct_open()};
  c.feed1 = ct_placeholder(&c.t, c.t.graph, "feed1", TF_INT32);
  c.feed2 = ct_placeholder(&c.t, c.t.graph, "feed2", TF_INT32);
  c.desc = TF_NewOperation(c.t.graph, "AddN", "add");
  TF_Output inputs[] = {ct_out(c.feed1, 0), ct_out(c.feed2, 0)};
  TF_AddInputList(c.desc, inputs, 2);
  return c;
}

static void set_list(colocation_t* c, int count, const char* const* values) {
  size_t lengths[4];
  for (int i = 0; i < count; ++i) lengths[i] = strlen(values[i]);
  TF_SetAttrStringList(c->desc, "_class", (const void* const*)values, lengths, count);
}

static void set_proto(colocation_t* c, int count, const char* const* values) {
  pb_t list = {0}, value = {0};
  for (int i = 0; i < count; ++i) pb_string(&list, 2, values[i]);
  pb_message(&value, 1, &list);  // AttrValue.list
  TF_SetAttrValueProto(c->desc, "_class", value.data, value.length, c->t.status);
  CT_OK(c->t.status);
  pb_free(&value);
}

// Finishes the operation; its "_class" must be exactly |values|, or absent when |count| is 0.
static void end(colocation_t* c, int count, const char* const* values) {
  TF_Operation* add = TF_FinishOperation(c->desc, c->t.status);
  CT_OK(c->t.status);
  TF_AttrMetadata meta = TF_OperationGetAttrMetadata(add, "_class", c->t.status);
  if (count == 0) {
    CT_ERROR(c->t.status, TF_INVALID_ARGUMENT, "Operation 'add' has no attr named '_class'.");
    ct_close(&c->t);
    return;
  }
  CT_OK(c->t.status);
  CT_INT(meta.is_list, 1);
  CT_INT(meta.list_size, count);
  CT_INT(meta.type, TF_ATTR_STRING);
  void* found[4];
  size_t lengths[4];
  char storage[256];
  TF_OperationGetAttrStringList(add, "_class", found, lengths, count, storage, sizeof storage,
                                c->t.status);
  CT_OK(c->t.status);
  for (int i = 0; i < count; ++i) {
    cr_assert(lengths[i] == strlen(values[i]) && memcmp(found[i], values[i], lengths[i]) == 0,
              "value %d is '%.*s', not '%s'", i, (int)lengths[i], (char*)found[i], values[i]);
  }
  ct_close(&c->t);
}

static const char* const kOne[] = {"loc:@feed1"};
static const char* const kTwo[] = {"loc:@feed2"};
static const char* const kBoth[] = {"loc:@feed1", "loc:@feed2"};

CT_TEST(CApiColocationTest, ColocateWith) {
  colocation_t c = begin();
  TF_ColocateWith(c.desc, c.feed1);
  end(&c, 1, kOne);
}

CT_TEST(CApiColocationTest, TwoColocateWith) {
  colocation_t c = begin();
  // In name order, whatever the order of the calls.
  TF_ColocateWith(c.desc, c.feed2);
  TF_ColocateWith(c.desc, c.feed1);
  TF_ColocateWith(c.desc, c.feed1);
  end(&c, 2, kBoth);
}

CT_TEST(CApiColocationTest, StringList) {
  colocation_t c = begin();
  set_list(&c, 1, kOne);
  end(&c, 1, kOne);
}

CT_TEST(CApiColocationTest, Proto) {
  colocation_t c = begin();
  set_proto(&c, 1, kOne);
  end(&c, 1, kOne);
}

CT_TEST(CApiColocationTest, ColocateWith_StringList) {
  colocation_t c = begin();
  TF_ColocateWith(c.desc, c.feed1);
  set_list(&c, 1, kTwo);
  end(&c, 1, kTwo);
}

CT_TEST(CApiColocationTest, ColocateWith_Proto) {
  colocation_t c = begin();
  TF_ColocateWith(c.desc, c.feed1);
  set_proto(&c, 1, kTwo);
  end(&c, 1, kTwo);
}

CT_TEST(CApiColocationTest, StringList_ColocateWith) {
  colocation_t c = begin();
  set_list(&c, 1, kTwo);
  TF_ColocateWith(c.desc, c.feed1);
  end(&c, 2, kBoth);
}

CT_TEST(CApiColocationTest, StringList_Proto) {
  colocation_t c = begin();
  set_list(&c, 1, kTwo);
  set_proto(&c, 1, kOne);
  end(&c, 1, kOne);
}

CT_TEST(CApiColocationTest, Proto_ColocateWith) {
  colocation_t c = begin();
  set_proto(&c, 1, kTwo);
  TF_ColocateWith(c.desc, c.feed1);
  end(&c, 2, kBoth);
}

CT_TEST(CApiColocationTest, Proto_StringList) {
  colocation_t c = begin();
  set_proto(&c, 1, kOne);
  set_list(&c, 1, kTwo);
  end(&c, 1, kTwo);
}

CT_TEST(CApiColocationTest, ClearViaStringList) {
  colocation_t c = begin();
  TF_ColocateWith(c.desc, c.feed1);
  set_list(&c, 0, NULL);
  end(&c, 0, NULL);
}

CT_TEST(CApiColocationTest, ClearViaProto) {
  colocation_t c = begin();
  TF_ColocateWith(c.desc, c.feed1);
  set_proto(&c, 0, NULL);
  end(&c, 0, NULL);
}

CT_TEST(CApiColocationTest, ColocatedOperationsRunTogether) {
  colocation_t c = begin();
  TF_ColocateWith(c.desc, c.feed1);
  TF_Operation* add = TF_FinishOperation(c.desc, c.t.status);
  CT_OK(c.t.status);
  TF_Output feeds[] = {ct_out(c.feed1, 0), ct_out(c.feed2, 0)};
  TF_Tensor* values[] = {ct_int32(2), ct_int32(3)};
  CT_INT(ct_take_int32(ct_run(&c.t, 2, feeds, values, ct_out(add, 0))), 5);
  ct_close(&c.t);
}
