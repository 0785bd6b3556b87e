"""Rows of other families with another value of one attribute: values that no row there tries."""

import copy
import importlib
import json
import os

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
# Where to look for rows, and the values to try there, as "Op attribute=value".
FAMILIES = "math array nn state training data_flow string sparse linalg lookup counts ragged image quantized".split()
VALUES = """
BatchMatMul grad_x=True
BatchMatMul grad_y=True
BatchMatMulV2 grad_x=True
BatchMatMulV2 grad_y=True
BatchMatMulV3 grad_x=True
BatchMatMulV3 grad_y=True
ConditionalAccumulator reduction_type=SUM
Conv2D use_cudnn_on_gpu=False
Conv2DBackpropFilter use_cudnn_on_gpu=False
Conv2DBackpropInput use_cudnn_on_gpu=False
DenseToDenseSetOperation validate_indices=False
Dilation2DBackpropFilter padding=VALID
Dilation2DBackpropInput padding=VALID
Enter is_constant=True
FractionalAvgPool deterministic=False
FractionalMaxPool deterministic=False
Gather validate_indices=False
MaxPoolGrad padding=EXPLICIT
MaxPoolGradGrad padding=SAME
MaxPoolGradV2 padding=SAME
MaxPoolGradWithArgmax padding=SAME
QuantizedConv2DPerChannel padding=SAME
QuantizedConv2DWithBiasSumAndRelu padding=SAME
QuantizedMatMulWithBias transpose_a=True
QuantizedMatMulWithBias transpose_b=True
QuantizedMatMulWithBiasAndDequantize transpose_a=True
QuantizedMatMulWithBiasAndDequantize transpose_b=True
QuantizedMatMulWithBiasAndRelu transpose_a=True
QuantizedMatMulWithBiasAndRelu transpose_b=True
QuantizedMatMulWithBiasAndReluAndRequantize transpose_a=True
QuantizedMatMulWithBiasAndReluAndRequantize transpose_b=True
QuantizedMatMulWithBiasAndRequantize transpose_a=True
QuantizedMatMulWithBiasAndRequantize transpose_b=True
RaggedCountSparseOutput binary_output=True
RefEnter is_constant=True
ResourceConditionalAccumulator reduction_type=SUM
ResourceGather validate_indices=False
ResourceScatterNdAdd use_locking=False
ResourceScatterNdMax use_locking=False
ResourceScatterNdMin use_locking=False
ResourceScatterNdSub use_locking=False
ResourceScatterNdUpdate use_locking=False
ResourceSparseApplyAdadelta use_locking=True
ResourceSparseApplyAdagrad use_locking=True
ResourceSparseApplyAdagradDA use_locking=True
ResourceSparseApplyAdagradV2 use_locking=True
ResourceSparseApplyCenteredRMSProp use_locking=True
ResourceSparseApplyFtrl use_locking=True
ResourceSparseApplyFtrlV2 use_locking=True
ResourceSparseApplyKerasMomentum use_locking=True
ResourceSparseApplyMomentum use_locking=True
ResourceSparseApplyProximalAdagrad use_locking=True
ResourceSparseApplyProximalGradientDescent use_locking=True
ResourceSparseApplyRMSProp use_locking=True
ScatterAdd use_locking=True
ScatterDiv use_locking=True
ScatterMax use_locking=True
ScatterMin use_locking=True
ScatterMul use_locking=True
ScatterNdAdd use_locking=True
ScatterNdMax use_locking=True
ScatterNdMin use_locking=True
ScatterNdSub use_locking=True
ScatterNdUpdate use_locking=False
ScatterSub use_locking=True
ScatterUpdate use_locking=False
SparseApplyAdadelta use_locking=True
SparseApplyAdagrad use_locking=True
SparseApplyAdagradDA use_locking=True
SparseApplyAdagradV2 use_locking=True
SparseApplyCenteredRMSProp use_locking=True
SparseApplyFtrl use_locking=True
SparseApplyFtrlV2 use_locking=True
SparseApplyMomentum use_locking=True
SparseApplyProximalAdagrad use_locking=True
SparseApplyProximalGradientDescent use_locking=True
SparseApplyRMSProp use_locking=True
SparseConditionalAccumulator reduction_type=SUM
SparseCountSparseOutput binary_output=True
SparseMatMul b_is_sparse=True
SparseSegmentMean sparse_gradient=True
SparseSegmentMeanWithNumSegments sparse_gradient=True
SparseSegmentSqrtN sparse_gradient=True
SparseSegmentSqrtNWithNumSegments sparse_gradient=True
SparseSegmentSum sparse_gradient=True
SparseSegmentSumWithNumSegments sparse_gradient=True
SparseToSparseSetOperation validate_indices=False
UnicodeDecode errors=ignore
UnicodeDecodeWithOffsets errors=strict
UnicodeTranscode errors=strict
_FusedConv2D padding=VALID
_FusedConv2D use_cudnn_on_gpu=False
"""


def ran(family):
    """The names of a family's rows that run in stock."""
    rows = {}
    for kind in ("cases", "golden"):
        with open(os.path.join(ROOT, "tests/ops", kind, family + ".jsonl")) as file:
            rows[kind] = [json.loads(line) for line in file if line.startswith("{")]
    return {row["name"] for row, answer in zip(rows["cases"], rows["golden"]) if "error" not in answer}


def fill(t):
    wanted = [line.split() for line in VALUES.strip().splitlines()]
    for family in FAMILIES:
        table, names = type(t)(), ran(family)
        importlib.import_module("cases." + family).fill(table)
        first = {}
        for row in table.rows:
            if row["name"] in names and "grad" not in row:
                first.setdefault(row["op"], row)
        for op, setting in [w for w in wanted if w[0] in first]:
            name, _, value = setting.partition("=")
            row = copy.deepcopy(first[op])
            attrs = dict(row.pop("attrs", None) or {}, **{name: {"True": True, "False": False}.get(value, value)})
            more = {k: v for k, v in row.items() if k not in ("name", "op", "inputs")}
            t.row("%s_%s" % (name, value), op, row.get("inputs", []), attrs, **more)
            wanted.remove([op, setting])
