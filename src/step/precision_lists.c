// The lists of ops for mixed precision: see precision.h. They are TensorFlow's, without the ops of
// other libraries. A list is a string in the form that the environment variables have.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "step/precision.h"

#define PREFIX "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

typedef struct paint_row_t {
  const char* name;
  const char* old_name;  // under which the environment may also have it; NULL: none
  const char* both;
  const char* half_gpu;  // more of the lists of half on GPUs
  const char* bfloat16_cpu;
} paint_row_t;

// By rn_paint_t, less one.
static const paint_row_t rows[] = {
    {"ALLOWLIST", "WHITELIST",
     "BatchMatMul,BatchMatMulV2,Conv2D,Conv2DBackpropFilter,Conv2DBackpropInput,Conv3D,"
     "Conv3DBackpropFilterV2,Conv3DBackpropInputV2,DepthwiseConv2dNative,"
     "DepthwiseConv2dNativeBackpropFilter,DepthwiseConv2dNativeBackpropInput,Einsum,MatMul",
     "BlockLSTM,BlockLSTMGrad,BlockLSTMGradV2,BlockLSTMV2,Conv3DBackpropFilter,"
     "Conv3DBackpropInput,CudnnRNN,CudnnRNNBackprop,CudnnRNNBackpropV2,CudnnRNNBackpropV3,"
     "CudnnRNNV2,CudnnRNNV3,GRUBlockCell,GRUBlockCellGrad,LSTMBlockCell,LSTMBlockCellGrad",
     "FusedPadConv2D"},
    {"INFERLIST", "GRAYLIST",
     "Add,AddN,AddV2,AvgPool,AvgPool3D,AvgPool3DGrad,AvgPoolGrad,BiasAdd,BiasAddGrad,BiasAddV1,Elu,"
     "EluGrad,Erf,Erfc,FloorDiv,FusedBatchNormGradV2,FusedBatchNormGradV3,FusedBatchNormV2,"
     "FusedBatchNormV3,Inv,LeakyRelu,LeakyReluGrad,Log,Log1p,LogSoftmax,Mul,Prod,RealDiv,"
     "Reciprocal,Selu,SeluGrad,Sigmoid,SigmoidGrad,Softmax,Softplus,SoftplusGrad,Softsign,"
     "SoftsignGrad,Sqrt,Sub,Tanh,TanhGrad",
     "", "Mean,Rsqrt,Square,SquaredDifference,Sum"},
    {"DENYLIST", "BLACKLIST",
     "Exp,Expm1,L2Loss,Pow,SaveV2,SoftmaxCrossEntropyWithLogits,"
     "SparseSoftmaxCrossEntropyWithLogits",
     "Mean,Sum", ""},
    {"CLEARLIST", NULL,
     "Abs,ArgMax,ArgMin,BatchToSpace,BatchToSpaceND,BroadcastTo,Ceil,CheckNumerics,ClipByValue,"
     "Concat,ConcatV2,DepthToSpace,DynamicPartition,DynamicStitch,EnsureShape,Enter,Equal,Exit,"
     "ExpandDims,Fill,Floor,Gather,GatherNd,GatherV2,Greater,GreaterEqual,Identity,IdentityN,"
     "IsFinite,IsInf,IsNan,Less,LessEqual,Max,MaxPool,MaxPool3D,MaxPool3DGrad,MaxPoolGrad,"
     "MaxPoolGradGrad,MaxPoolGradGradV2,MaxPoolGradV2,MaxPoolV2,Maximum,Merge,Min,Minimum,"
     "MirrorPad,MirrorPadGrad,Neg,NextIteration,NotEqual,OnesLike,Pack,Pad,PadV2,PreventGradient,"
     "Rank,Relu,Relu6,Relu6Grad,ReluGrad,Reshape,ResizeNearestNeighbor,ResizeNearestNeighborGrad,"
     "Reverse,ReverseSequence,ReverseV2,Round,Select,SelectV2,Shape,ShapeN,Sign,Slice,Snapshot,"
     "SpaceToBatch,SpaceToBatchND,SpaceToDepth,Split,SplitV,Squeeze,StopGradient,StridedSlice,"
     "StridedSliceGrad,Switch,TensorListConcat,TensorListConcatLists,TensorListConcatV2,"
     "TensorListFromTensor,TensorListGather,TensorListGetItem,TensorListPopBack,"
     "TensorListPushBack,TensorListPushBackBatch,TensorListScatter,"
     "TensorListScatterIntoExistingList,TensorListScatterV2,TensorListSetItem,TensorListSplit,"
     "TensorListStack,Tile,TopK,TopKV2,Transpose,Unpack,Where,ZerosLike",
     "MaxPool3DGradGrad,OneHot,Size", "ResizeBilinear,ScatterNd"},
};
enum { LISTS = sizeof rows / sizeof *rows };

static bool has(const char* list, rn_str_t op) {
  rn_str_t rest = rn_str(list);
  while (rest.size)
    if (rn_str_eq(rn_str_split(&rest, ','), op)) return true;
  return false;
}

// The value of PREFIX<list><suffix>; NULL if there is none.
static const char* change_of(const char* list, const char* suffix) {
  char name[80];
  if (!list) return NULL;
  snprintf(name, sizeof name, PREFIX "%s%s", list, suffix);
  return getenv(name);
}

static bool is_on(const rn_paint_lists_t* lists, const paint_row_t* row, rn_str_t op) {
  if (lists->is_allow_only && row != rows) return false;
  bool found =
      has(row->both, op) || has(lists->is_bfloat16_cpu ? row->bfloat16_cpu : row->half_gpu, op);
  const char* names[] = {row->name, row->old_name};
  for (int i = 0; i < 2; ++i)
    found =
        (found || has(change_of(names[i], "_ADD"), op)) && !has(change_of(names[i], "_REMOVE"), op);
  return found;
}

rn_paint_t rn_paint_of(const rn_paint_lists_t* lists, const char* op) {
  int row = 0;
  while (row < LISTS && !is_on(lists, &rows[row], rn_str(op))) ++row;
  if (row == LISTS) return RN_PAINT_NONE;
  rn_paint_t paint = (rn_paint_t)(row + 1);
  return paint == RN_PAINT_INFER && lists->infer_is_deny ? RN_PAINT_DENY : paint;
}

// Only additions can put an op on two lists.
static rn_status_t check(const rn_paint_lists_t* lists) {
  for (int i = 0; i < 2 * LISTS; ++i) {
    const paint_row_t* row = &rows[i / 2];
    rn_str_t rest = rn_str(change_of(i % 2 ? row->old_name : row->name, "_ADD"));
    while (rest.size) {
      rn_str_t op = rn_str_split(&rest, ',');
      int count = 0;
      for (int r = 0; r < LISTS; ++r) count += is_on(lists, &rows[r], op);
      if (count > 1) return rn_invalid_argument("Op lists have conflicting entries");
    }
  }
  return RN_OK;
}

rn_status_t rn_paint_lists_init(bool is_bfloat16_cpu, rn_paint_lists_t* out) {
  char level[32] = "";
  const char* given = getenv(PREFIX "LEVEL");
  for (size_t i = 0; given && given[i] && i + 1 < sizeof level; ++i)
    level[i] = (char)toupper((unsigned char)given[i]);
  *out = (rn_paint_lists_t){
      .is_bfloat16_cpu = is_bfloat16_cpu,
      .is_allow_only = !is_bfloat16_cpu && strcmp(level, "TENSOR_CORES_ONLY") == 0,
      .infer_is_deny = strcmp(level, "TREAT_INFER_AS_DENY") == 0,
      .forces_all = strcmp(level, "UNSAFE_FORCE_ALL") == 0,
  };
  if (out->forces_all && is_bfloat16_cpu)
    return rn_invalid_argument(PREFIX
                               "LEVEL cannot be set to UNSAFE_FORCE_ALL when oneDNN is used");
  return check(out);
}

rn_status_t rn_precision_parse(rn_str_t name, rn_precision_t* out) {
  static const struct {
    const char* name;
    rn_precision_t precision;
  } known[] = {{"float16", {.gpu = RN_HALF}},
               {"bfloat16", {.gpu = RN_BFLOAT16, .cpu = RN_BFLOAT16}},
               {"float32", {0}}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (!rn_str_is(name, known[i].name)) continue;
    *out = known[i].precision;
    return RN_OK;
  }
  return rn_invalid_argument("Unknown precision '%.*s'; known are float16, bfloat16 and float32",
                             RN_STR_ARGS(name));
}
