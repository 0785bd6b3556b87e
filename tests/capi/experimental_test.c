// Op support for given types, clusters from text, free ports.
#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

CT_TEST(Experimental, what_can_run) {
  TF_Status* status = TF_NewStatus();
  TF_AttrBuilder* builder = TF_NewAttrBuilder("Mul");
  TF_AttrBuilderSetType(builder, "T", TF_FLOAT);
  TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", status);
  CT_OK(status);
  TF_AttrBuilderCheckCanRunOnDevice(builder, "NOSUCH", status);
  CT_CODE(status, TF_NOT_FOUND);
  TF_DeleteAttrBuilder(builder);
  builder = TF_NewAttrBuilder("Mul");
  TF_AttrBuilderSetType(builder, "T", TF_RESOURCE);
  TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", status);
  CT_CODE(status, TF_NOT_FOUND);
  TF_DeleteAttrBuilder(builder);
  builder = TF_NewAttrBuilder("IdentityN");
  TF_AttrBuilderSetTypeList(builder, "T", (TF_DataType[]){TF_FLOAT, TF_INT32}, 2);
  TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", status);
  CT_OK(status);
  TF_DeleteAttrBuilder(builder);
  TF_DeleteStatus(status);
}

CT_TEST(Experimental, a_cluster_from_text) {
  TF_Status* status = TF_NewStatus();
  TF_Buffer* def = TFE_GetServerDef(
      "cluster { job { name: 'worker' tasks { key: 0 value: 'localhost:2222' } } } job_name: "
      "'worker' task_index: 0 protocol: 'grpc'",
      status);
  CT_OK(status);
  static const char wanted[] =
      "\n\x1e\n\x1c\n\x06worker\x12\x12\x08\x00\x12\x0elocalhost:2222\x12\x06worker*\x04grpc";
  // Job and protocol are there; how a key of 0 is written is the encoder's choice.
  cr_assert(memmem(def->data, def->length, "localhost:2222", 14) != NULL);
  cr_assert(memmem(def->data, def->length, "*\x04grpc", 6) != NULL);
  cr_assert(def->length <= sizeof wanted - 1);
  TF_DeleteBuffer(def);
  cr_assert_null(TFE_GetServerDef("no such field: 1", status));
  cr_assert_neq(TF_GetCode(status), TF_OK);
  TF_DeleteStatus(status);
}

CT_TEST(Experimental, free_ports) {
  int port = TF_PickUnusedPortOrDie();
  cr_assert(port > 0 && port < 65536);
}
