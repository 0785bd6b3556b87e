"""Facts about single ops and arguments that the generators need."""

import os
import re

import values

# Ops that are not asked, with the reason.
EXCLUDED = {
    "Abort": "ends the process",
    "PyFunc": "needs Python's registry", "PyFuncStateless": "needs Python's registry",
    "EagerPyFunc": "needs Python's registry",
    "Recv": "waits for a peer", "Send": "waits for a peer", "_Recv": "waits for a peer", "_HostRecv": "waits for a peer", "_Send": "waits for a peer",
    "_HostSend": "waits for a peer",
    "DumpTensor": "writes files", "WriteFile": "writes files", "MergeV2Checkpoints": "writes files", "Save": "writes files",
    "SaveV2": "writes files", "SaveSlices": "writes files", "SaveDataset": "writes files",
    "SaveDatasetV2": "writes files", "ShardedFilename": "has no kernel of its own to compare",
    "Timestamp": "the time", "PrintV2": "prints", "Print": "prints", "LogicalOrOfTime": "the time",
    "TensorSummary": "serialized differently where equal",
}  # fmt: skip

# Ops with rows in the case tables whose drawn calls cannot be compared.
for _reason, _names in {
    "stock has it with oneDNN only": """
        QuantizedConv2DAndRelu
        QuantizedConv2DAndReluAndRequantize
        QuantizedConv2DAndRequantize
        QuantizedConv2DPerChannel
        QuantizedConv2DWithBias
        QuantizedConv2DWithBiasAndRelu
        QuantizedConv2DWithBiasAndReluAndRequantize
        QuantizedConv2DWithBiasAndRequantize
        QuantizedConv2DWithBiasSignedSumAndReluAndRequantize
        QuantizedConv2DWithBiasSumAndRelu
        QuantizedConv2DWithBiasSumAndReluAndRequantize
        QuantizedDepthwiseConv2D
        QuantizedDepthwiseConv2DWithBias
        QuantizedDepthwiseConv2DWithBiasAndRelu
        QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize
        QuantizedMatMulWithBias
        QuantizedMatMulWithBiasAndDequantize
        QuantizedMatMulWithBiasAndRelu
        QuantizedMatMulWithBiasAndReluAndRequantize
        QuantizedMatMulWithBiasAndRequantize
        QuantizedConcatV2""",
    "stock is wrong for more than one image": "FusedPadConv2D FusedResizeAndPadConv2D",
    "stock adds 16-bit floats in their own type": "IsotonicRegression",
    "differences of large squares": "NearestNeighbors",
    "stock draws by the width of its vectors": "StochasticCastToInt",
    "stock visits examples in a random order": "SdcaOptimizer SdcaOptimizerV2",
    "parts have checks of their own": """
        _FusedConv2D _FusedConv3D _FusedMatMul _FusedBatchNormEx _FusedDepthwiseConv2dNative _UnaryOpsComposition
        _TensorToHashBucketFast""",
}.items():
    EXCLUDED.update(dict.fromkeys(_names.split(), _reason))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/ops/xla.ops")) as _file:
    EXCLUDED.update(dict.fromkeys(re.findall(r"^op (\w+)\(", _file.read(), re.M), "has a definition only"))

# Attributes that are not changed: names of state, and what costs memory or time.
FIXED_ATTRS = {
    "shared_name", "container", "capacity", "memory_limit", "timeout_ms", "name", "device",
    "num_threads", "max_intra_op_parallelism", "send_device", "recv_device", "tensor_name",
    "config_proto", "seed", "seed2", "_class", "max_bytes", "cache_size", "buffer_size",
    "vocab_size", "num_sampled", "num_reserved_ids", "range_max", "num_true", "num_shards",
}  # fmt: skip

WAITING = (
    "Queue Dequeue Enqueue Barrier Stage Unstage MapStage MapUnstage MapPeek StagePeek OrderedMap "
    "Accumulator Mutex ReaderRead Batch Unbatch Iterator".split()
)

# Sums whose order differs: values stay where no order overflows, and ranges where they are not gigabytes.
TAME = (
    "MatMul Conv Einsum Sum Mean Prod Norm Lrn LRN Softmax Svd Eig Qr Cholesky Inverse Solve Determinant "
    "Pool Cumsum Cumulative Segment Resize Crop Gru GRU Lstm LSTM RNN CTC FFT AddN Bias L2Loss Tridiag "
    "Variance Apply Dilation Backprop Sparse Image HSV RGB Adjust Logm Expm Bincount Histogram "
    "Scatter Accumul Glimpse Lu Moments Contrast Unbatch Sampler Range Xent CrossEntropy Quantiz Trilinear MinMaxVars"
).split()

# Rows of these keep sizes, given numbers and attributes: other ones wait for ever, or take all memory.
CAREFUL = "Queue Barrier Stage Unstage MapPeek MapUnstage MapSize Fill Range LinSpace Sampler Dataset Iterator".split()


RANDOM = "Random Multinomial Sampler TruncatedNormal SampleDistorted Shuffle Glimpse Fractional".split()


def has_part(name, parts):
    return any(p in name for p in parts)


def is_tame(op):
    return has_part(op, TAME)


def is_careful(op):
    return has_part(op, CAREFUL)


def may_wait(op):
    return has_part(op, WAITING)


def has_random_state(op):
    """Whether an eager call goes on where the one before it ended, which another case may have made."""
    return op.is_stateful and has_part(op.name, RANDOM)


def other_types(rng, op):
    """Types for the type attributes of |op| that a kernel of stock has."""
    kernels = [k for k in op.kernels if k]
    if not kernels:
        return {}
    drawn = {}
    for name, types in rng.choice(kernels).items():
        types = [t for t in types if values.can_draw(t)]
        if types and name in op.attrs and op.attrs[name].kind == "type":
            drawn[name] = rng.choice(types)
    return drawn
