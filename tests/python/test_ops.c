// A plug-in with the definitions of the ops that TensorFlow's own tests build graphs of
// (FloatOutput, IntInputFloatInput, ...).
//
// Stock's packages have them for these tests. They have no kernels here: graphs with them are
// built, placed, imported and exported, and not run. RUNNEL_TEST_OPS names this library for `python
// -m runnel` (doc/python.md).
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

// One op per row, its parts divided by "|": A an attribute, I an input, O an output, S stateful, D
// the version that deprecates it and why.
// clang-format off
static const char* const kOps[] = {
    "A|O out: float",
    "Any|A keep_dims: bool = false|A Tidx: {int32, int64} = DT_INT32|I input: bool"
    "|I reduction_indices: Tidx|O output: bool",
    "Attr|A a: int",
    "AttrBool|A a: bool",
    "AttrBoolList|A a: list(bool)",
    "AttrDefault|A a: string = 'banana'",
    "AttrEmptyListDefault|A a: list(float) = []",
    "AttrEnum|A a: {'apples', 'oranges'}",
    "AttrEnumList|A a: list({'apples', 'oranges'})",
    "AttrFloat|A a: float",
    "AttrListDefault|A a: list(int) = [5, 15]",
    "AttrListMin|A a: list(int) >= 2",
    "AttrListTypeDefault|A T: type = DT_INT32|A N: int >= 1|I a: N * T|I b: N * T",
    "AttrMin|A a: int >= 5",
    "AttrPartialShape|A a: shape",
    "AttrPartialShapeList|A a: list(shape)",
    "AttrShape|A a: shape",
    "AttrShapeList|A a: list(shape)",
    "AttrTypeDefault|A T: type = DT_INT32|I a: T",
    "B|O out: float",
    "Binary|A T: type|I a: T|I b: T|O out: T",
    "ComplexStruct|A n_a: int >= 0|A n_b: int >= 0|A t_c: list(type) >= 0|O a: n_a * int32"
    "|O b: n_b * int64|O c: t_c",
    "CopyOp|A T: type|I a: T|O b: T",
    "DefaultAttrs|A string_val: string = 'abc'|A string_list_val: list(string) = ['abc', '']"
    "|A int_val: int = 123|A int_list_val: list(int) = [1, 2, 3]|A float_val: float = 10.0"
    "|A float_list_val: list(float) = [10.0]|A bool_val: bool = true"
    "|A bool_list_val: list(bool) = [true, false]|A type_val: type = DT_INT32"
    "|A type_list_val: list(type) = [DT_INT32, DT_FLOAT]"
    "|A shape_val: shape = { dim { size: 2 } dim { size: 1 } }"
    "|A shape_list_val: list(shape) = [{  }, { dim { size: 1 } }]"
    "|A tensor_val: tensor = { dtype: DT_INT32 tensor_shape { } int_val: 1 }"
    "|A tensor_list_val: list(tensor) = [{ dtype: DT_INT32 tensor_shape { } int_val: 1 }]",
    "DevicePlacementOp|O device: string|S",
    "DtypeWithDefaultOp|A T: type = DT_UINT8|I in: T|O dtype: string|S",
    "FiveFloatOutputs|O a: float|O b: float|O c: float|O d: float|O e: float",
    "FloatInput|I a: float",
    "FloatOutput|O a: float",
    "FloatOutputStringOutput|O a: float|O b: string",
    "Foo1|I a: float|I b: int32|I c: int32|O d: float|O e: int32",
    "Foo2|I a: float|I b: string|I c: string|O d: float|O e: int32",
    "Foo3|I a: float|I b: string|I c: float|O d: float|O e: int32",
    "FuncAttr|A f: func",
    "FuncListAttr|A f: list(func)",
    "GetDeadline|O deadline_from_epoch_micros: int64",
    "GraphDefVersion|O version: int32|S",
    "InPolymorphicTwice|A T: type = DT_INT32|A N: int >= 0|A M: int >= 0|I a: N * T"
    "|I b: M * T",
    "Int64Output|O out: int64",
    "IntAttr|A foo: int = 1|O out: int64",
    "IntInput|I a: int32",
    "IntInputFloatInput|I a: int32|I b: float",
    "IntInputIntOutput|I a: int32|O b: int32",
    "IntOutput|O a: int32",
    "IntOutputFloatOutput|O a: int32|O b: float",
    "IsResourceHandleRefCounting|I handle: resource|O result: bool|S",
    "IsTensorFloat32Enabled|O enabled: bool|S",
    "KernelLabel|O result: string",
    "KernelLabelRequired|I input: int32|O result: string",
    "ListInput|A N: int >= 1|A T: type|I a: N * T",
    "ListOutput|A T: list(type) >= 1|O a: T",
    "MakeWeakResourceHandle|I handle: resource|O dup: resource|S",
    "MixedStruct|A n_a: int >= 0|O a: n_a * int32|O b: float",
    "NInPolymorphicTwice|A T: type|A N: int >= 0|I a: N * T|I b: N * T",
    "NInTwice|A N: int >= 0|I a: N * int32|I b: N * string",
    "NInTwoTypeVariables|A S: type|A T: type|A N: int >= 0|I a: N * S|I b: N * T",
    "NIntsIn|A N: int >= 2|I a: N * int32",
    "NIntsOut|A N: int >= 2|O a: N * int32",
    "NIntsOutDefault|A N: int >= 2 = 3|O a: N * int32",
    "NPolymorphicIn|A T: type|A N: int >= 2|I a: N * T",
    "NPolymorphicOut|A T: type|A N: int >= 2|O a: N * T",
    "NPolymorphicOutDefault|A T: type = DT_BOOL|A N: int >= 2 = 2|O a: N * T",
    "NPolymorphicRestrictIn|A T: {string, bool}|A N: int >= 2|I a: N * T",
    "NPolymorphicRestrictOut|A T: {string, bool}|A N: int >= 2|O a: N * T",
    "None",
    "Old|D 8 For reasons",
    "OpWithDefaultAttr|A default_float: float = 123.0|O a: int32",
    "OpWithFutureDefaultAttr",
    "OutT|A T: type|O a: T",
    "OutTypeList|A T: list(type) >= 0|O out: T",
    "OutTypeListRestrict|A t: list({string, bool}) >= 1|O out: t",
    "Polymorphic|A T: type|I a: T|O out: T",
    "PolymorphicDefaultOut|A T: type = DT_STRING|O out: T",
    "PolymorphicOut|A T: type|O out: T",
    "RefIn|A T: type|I a: Ref(T)",
    "RefInputFloatInput|I a: Ref(float)|I b: float",
    "RefInputFloatInputIntOutput|I a: Ref(float)|I b: float|O c: int32",
    "RefInputIntInput|I a: Ref(int32)|I b: int32",
    "RefOut|A T: type|O a: Ref(T)",
    "RefOutput|O a: Ref(int32)",
    "RefOutputFloatOutput|O a: Ref(float)|O b: float",
    "RequiresOlderGraphVersion|O version: int32|S",
    "ReservedAttr|A range: int",
    "ReservedInput|I input: int32",
    "ResourceCreateOp|I resource: resource|S",
    "ResourceInitializedOp|I resource: resource|O initialized: bool|S",
    "ResourceUsingOp|I resource: resource|S",
    "Restrict|A T: {string, bool}|I a: T|O out: T",
    "Simple|I a: int32|O out: float",
    "SimpleStruct|A n_a: int >= 0|O a: n_a * int32",
    "SleepIdentityOp|A T: type|I sleep_seconds: int32|I input: T|O output: T|S",
    "SleepOp|I sleep_seconds: int32|S",
    "StringListAttr|A a: list(string)|A b: string",
    "StubResourceHandleOp|A container: string = ''|A shared_name: string = ''"
    "|O resource: resource|S",
    "TestAttr|A T: {float, double}|O out: T|S",
    "TestStringOutput|I input: float|O output1: float|O output2: string",
    "TwoFloatInputs|I a: float|I b: float",
    "TwoFloatInputsFloatOutput|I a: float|I b: float|O c: float",
    "TwoFloatInputsIntOutput|I a: float|I b: float|O c: int32",
    "TwoFloatOutputs|O a: float|O b: float",
    "TwoIntInputs|I a: int32|I b: int32",
    "TwoIntOutputs|O a: int32|O b: int32",
    "TwoRefsIn|A T: type|I a: Ref(T)|I b: Ref(T)",
    "TypeList|A T: list(type) >= 0|I a: T",
    "TypeListRestrict|A T: list({string, bool}) >= 1|I a: T",
    "TypeListTwice|A T: list(type) >= 0|I a: T|I b: T",
    "Unary|A T: type|I a: T|O b: T",
};
// clang-format on

static void unknown_shapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

static void add_part(TF_OpDefinitionBuilder* op, char* part) {
  char* text = strlen(part) > 1 ? part + 2 : part + 1;
  if (*part == 'A') TF_OpDefinitionBuilderAddAttr(op, text);
  if (*part == 'I') TF_OpDefinitionBuilderAddInput(op, text);
  if (*part == 'O') TF_OpDefinitionBuilderAddOutput(op, text);
  if (*part == 'S') TF_OpDefinitionBuilderSetIsStateful(op, true);
  if (*part == 'D') {
    char* why = NULL;
    int version = (int)strtol(text, &why, 10);
    TF_OpDefinitionBuilderDeprecated(op, version, why + 1);
  }
}

static void register_op(const char* row) {
  char* parts = strdup(row);
  if (parts == NULL) return;
  char* rest = NULL;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(strtok_r(parts, "|", &rest));
  for (char* part = strtok_r(NULL, "|", &rest); part != NULL; part = strtok_r(NULL, "|", &rest))
    add_part(op, part);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, unknown_shapes);
  TF_Status* status = TF_NewStatus();
  TF_RegisterOpDefinition(op, status);  // an op that exists keeps its definition
  TF_DeleteStatus(status);
  free(parts);
}

__attribute__((constructor)) static void register_all(void) {
  for (size_t i = 0; i < sizeof kOps / sizeof kOps[0]; ++i) register_op(kOps[i]);
}
