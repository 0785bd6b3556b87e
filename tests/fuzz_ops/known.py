"""Intended differences from stock, and results that stock does not determine, each with a one-line reason.

A rule is (op names, kinds of difference or None, condition or None, reason). doc/bindings.md lists those
that users can encounter.
"""

import base64
import functools
import os
import re

import numpy as np

import compare
import oracle
import rows
import values


def tensor_inputs(case):
    """All tensors that go into the case, as (dtype, array)."""
    for node in case["nodes"]:
        for spec in node["inputs"]:
            for one in spec if isinstance(spec, list) else [spec]:
                if one[0] == "tensor" and one[1] != "string":
                    yield one[1], values.array_of(one[1], one[2], one[3])


def has_odd_number(case):
    """NaN, an infinity, or a number whose square leaves the range."""
    for dtype, array in tensor_inputs(case):
        if dtype in values.LIMITS:
            _, least, most = values.LIMITS[dtype]
            with np.errstate(all="ignore"):
                size = np.abs(array.astype("c16" if dtype in values.COMPLEX else "f8"))
                if not np.all((size == 0) | ((size > least**0.4) & (size < most**0.4))):
                    return True
    return False


def has_complex(case):
    return any(dtype in values.COMPLEX for dtype, _ in tensor_inputs(case))


def has_empty(case):
    return any(array.size == 0 for _, array in tensor_inputs(case))


def has_empty_strings(case):
    """A tensor of strings without elements."""
    inputs = [x for node in case["nodes"] for x in node["inputs"] if isinstance(x, tuple)]
    return any(x[0] == "tensor" and x[1] == "string" and 0 in x[2] for x in inputs)


def is_unseeded(case):
    """A random op whose seeds are 0, so that every run has its own numbers."""
    for node in case["nodes"]:
        seeds = [node["attrs"].get(name, ("int", 0))[1] for name in ("seed", "seed2")]
        if seeds == [0, 0] and RANDOM.search(node["op"]):
            return True
    return False


RANDOM = re.compile("Random|Truncated|Multinomial|Sampler|Normal$|SampleDistorted|Shuffle|NonDeterministic")


def ours_is_exact(case, ours, stock):
    """Whether every element that differs is right here, by oracle.py."""
    node = case["nodes"][0]
    if len(case["nodes"]) != 1 or not 1 <= len(node["inputs"]) <= 2:
        return False
    if not all(isinstance(x, tuple) and x[0] == "tensor" for x in node["inputs"]):
        return False
    dtype = node["inputs"][0][1]
    if dtype not in values.FLOATS:
        return False
    arguments = [values.array_of(*x[1:4]).astype("f8") for x in node["inputs"]]
    try:
        arguments = [np.array(a) for a in np.broadcast_arrays(*arguments)]
    except ValueError:
        return False
    exact = oracle.exact(node["op"], arguments)
    if exact is None:
        return False
    got, other = (values.array_of(*x[1][0][0]).astype("f8") for x in (ours, stock))
    if got.shape != exact.shape:
        return False
    with np.errstate(all="ignore"):
        rounded = values.array_of(dtype, exact.shape, values.data_of(dtype, exact)).astype("f8")
    ulps = compare.ULPS[dtype]
    for g, s, e in zip(got.reshape(-1), other.reshape(-1), rounded.reshape(-1)):
        one = np.array([g]), np.array([s]), np.array([e])
        if compare.float_difference("", dtype, one[0], one[1], ulps, 0):
            if compare.float_difference("", dtype, one[0], one[2], ulps, 0):
                return False
    return True


def odd(case, found, ours, stock):
    return has_odd_number(case)


def has_subnormal(case):
    for dtype, array in tensor_inputs(case):
        if dtype in ("float", "double", "bfloat16", "complex64", "complex128"):
            parts = np.stack([array.real, array.imag]) if dtype in values.COMPLEX else array
            if np.any((parts != 0) & (np.abs(parts.astype("f8")) < values.LIMITS[dtype][1])):
                return True
    return False


def below_zero(case, found, ours, stock):
    """The last input has numbers below zero."""
    spec = case["nodes"][0]["inputs"][-1]
    return bool(np.any(values.array_of(*spec[1:4]) < 0))


def of_type(name):
    return lambda case, *_: any(dtype == name for dtype, _ in tensor_inputs(case))


def has_nan_output(case, found, ours, stock):
    return "nan" in found[1]


def ours_has_nan(case, found, ours, stock):
    return any(a[2] is not None and a[0] in values.LIMITS and np.any(np.isnan(values.array_of(*a))) for a in sum(ours[1], []))


def has_far_number(case, found, ours, stock):
    """A float that is no place in an image: beyond a million, or no number."""
    return any(dtype == "float" and not np.all(np.abs(array) < 1e6) for dtype, array in tensor_inputs(case))


def of_complex(case, found, ours, stock):
    return has_complex(case)


def empty(case, found, ours, stock):
    return has_empty(case)


def eager(case, found, ours, stock):
    return case["mode"] == "eager"


def says(*parts):
    """An error message has one of these parts in it."""
    return lambda case, found, ours, stock: any(part in found[1] for part in parts)


def both(*conditions):
    return lambda *args: all(condition(*args) for condition in conditions)


def is_unsigned(case, found, ours, stock):
    return any(dtype.startswith("uint") for dtype, _ in tensor_inputs(case))


def is_no_dimension(case, found, ours, stock):
    """Some number of the input is no dimension of four, nor one from the end."""
    return any(np.any((array < -4) | (array > 3)) for _, array in tensor_inputs(case))


def has_double_slash(case, found, ours, stock):
    return any(b"//" in text for spec in case["nodes"][0]["inputs"] for text in spec[3])


def draws_noise(case, found, ours, stock):
    return case["nodes"][0]["attrs"].get("noise", (0, b"uniform"))[1] != b"zero"


def output(*numbers):
    """The difference is in one of these outputs."""
    return lambda case, found, ours, stock: any("output %d " % n in found[1] for n in numbers)


def nothing_out(case, found, ours, stock):
    """Stock's first output has no elements."""
    return stock[0] == "ok" and 0 in sum(stock[1], [])[0][1]


def matches(pattern):
    """An error message matches a regular expression."""
    return lambda case, found, ours, stock: bool(re.search(pattern, found[1]))


def sum_type_differs(case, found, ours, stock):
    """SparseAdd: the threshold has not the type of the values, or of their parts."""
    inputs = case["nodes"][0]["inputs"]
    real = {"complex64": "float", "complex128": "double"}
    return inputs[6][1] != real.get(inputs[1][1], inputs[1][1])


def zero_byte(case, found, ours, stock):
    return r"\x00" in found[1] or r"\x00" in repr(case["nodes"])


def attr_above(name, value):
    return lambda case, *_: any(n["attrs"].get(name, (0, value))[1] > value for n in case["nodes"])


def attr(name, value):
    return lambda case, *_: any(n["attrs"].get(name, (0, None))[1] == value for n in case["nodes"])


def within(relative):
    """Whether all numbers are that close together, by the largest of them."""

    def condition(case, found, ours, stock):
        for a, b in zip(sum(ours[1], []), sum(stock[1], [])):
            if a[0] not in values.LIMITS or a[2] is None:
                continue
            x, y = values.array_of(*a), values.array_of(*b)
            fine = np.isfinite(x) & np.isfinite(y)
            if not np.array_equal(np.isfinite(x), np.isfinite(y)):
                return False
            if fine.any() and np.max(np.abs(x[fine] - y[fine])) > relative * np.max(np.abs(y[fine])):
                return False
        return True

    return condition


def first_outputs(ours, stock):
    """The first output of both, as arrays of complex numbers."""
    return [values.array_of(*sum(answer[1], [])[0]).astype("c16") for answer in (ours, stock)]


def same_values(case, found, ours, stock):
    """Eig: the same eigenvalues, by the largest of them, in another order."""
    if "output 0 " not in found[1]:
        return False
    a, b = first_outputs(ours, stock)
    for x, y in zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])):
        near, left = 2e-3 * np.max(np.abs(y)), list(y)
        for value in x:
            place = int(np.argmin(np.abs(np.array(left) - value)))
            if not abs(left[place] - value) <= near:
                return False
            left.pop(place)
    return True


def crosses_the_cut(case, found, ours, stock):
    """MatrixLogarithm: an eigenvalue is on the negative axis, or so near that float does not tell."""
    for _, array in tensor_inputs(case):
        found_values = np.linalg.eigvals(array.astype("c16"))
        size = np.max(np.abs(found_values), -1, keepdims=True)
        if np.any((found_values.real < 0) & (np.abs(found_values.imag) < 1e-3 * size)):
            return True
    return False


def is_wide_spread(case, found, ours, stock):
    """The eigenvectors of some matrix are nearly parallel: its functions have few digits."""
    for _, array in tensor_inputs(case):
        _, vectors = np.linalg.eig(array.astype("c16"))
        if np.any(np.linalg.cond(vectors) > 1e3):
            return True
    return False


def solves_better(case, found, ours, stock):
    """MatrixSolveLs: ours is no further from the solution that NumPy finds in double precision."""
    (_, a), (_, b), (_, factor) = list(tensor_inputs(case))[:3]
    if a.size == 0 or factor.size != 1:
        return a.size == 0
    a, b = a.astype("c16"), b.astype("c16")
    x, y = first_outputs(ours, stock)
    m, n = a.shape[-2:]
    root = np.sqrt(float(factor.reshape(-1)[0])) * np.eye(n)
    for i, matrix in enumerate(a.reshape(-1, m, n)):
        right = np.concatenate([b.reshape(-1, m, b.shape[-1])[i], np.zeros((n, b.shape[-1]))])
        exact = np.linalg.lstsq(np.concatenate([matrix, root]), right, rcond=None)[0]
        mine, theirs = (np.max(np.abs(z.reshape(-1, n, b.shape[-1])[i] - exact)) for z in (x, y))
        if not mine <= max(2 * theirs, 1e-3 * np.max(np.abs(exact))):
            return False
    return True


def is_animation(case, found, ours, stock):
    return "ANIM" in repr(case["nodes"][0]["inputs"])


def is_ill_conditioned(case, found, ours, stock):
    """Some matrix is so nearly singular that its normal equations are, in its own type."""
    dtype, array = next(tensor_inputs(case))
    most = 1e7 if dtype in ("double", "complex128") else 1e3
    return array.size > 0 and bool(np.any(np.linalg.cond(array.astype("c16")) > most))


def inputs_of(case, op):
    """The inputs of the first node of an op, as arrays; None where another node makes one."""
    node = next(n for n in case["nodes"] if n["op"] == op)
    return [values.array_of(*x[1:4]) if isinstance(x, tuple) and x[0] == "tensor" and x[1] != "string" else None for x in node["inputs"]]


def has_wide_axis(case, found, ours, stock):
    """An axis that 32 bits do not hold."""
    return bool(np.any(np.abs(inputs_of(case, case["op"])[1].astype("f8")) > 2**31))


def has_index_outside(case, found, ours, stock):
    """A sparse tensor with an index outside of its shape."""
    for node in case["nodes"]:
        if node["op"].startswith("Serialize"):
            indices, _, shape = (values.array_of(*x[1:4]) if x[0] == "tensor" and x[1] != "string" else None for x in node["inputs"])
            if indices is not None and shape is not None and indices.ndim == 2 and indices.shape[1] == shape.size:
                if np.any((indices < 0) | (indices >= shape)):
                    return True
    return False


def label_is_blank(case, found, ours, stock):
    """A label of CTCLoss that is the blank class, or beyond all classes."""
    logits, _, labels = inputs_of(case, "CTCLoss")[:3]
    return bool(np.any(labels >= logits.shape[2] - 1))


def step_is_none(case, found, ours, stock):
    """The number of a training step is 0 or less."""
    return any(n["op"].endswith("AdagradDA") and np.any(values.array_of(*n["inputs"][-1][1:4]) <= 0) for n in case["nodes"])


def ids_descend(case, found, ours, stock):
    """Row ids or row splits that do not ascend, or splits that do not begin with 0."""
    node = case["nodes"][0]
    kinds = node["attrs"]["row_partition_types"][1]
    for kind, spec in zip(kinds, node["inputs"][3]):
        array = values.array_of(*spec[1:4]).astype("i8").reshape(-1)
        if np.any(np.diff(array) < 0) or (kind == b"ROW_SPLITS" and array.size and array[0] != 0):
            return True
    return False


def range_is_odd(case, found, ours, stock):
    """A quantized range that is empty, upside down, not finite, or wider than a float's square root."""
    floats = [a.astype("f8").reshape(-1) for d, a in tensor_inputs(case) if d == "float" and a.ndim == 0]
    numbers = np.concatenate(floats) if floats else np.zeros(0)
    if not np.all(np.isfinite(numbers)) or np.any(np.abs(numbers) > 1e18):
        return True
    return any(low >= high for low, high in zip(numbers[::2], numbers[1::2]))


def broadcasts_inside(case, found, ours, stock):
    """The smaller input is not simply repeated: its shape is no end of the other's."""
    a, b = sorted((x for x in inputs_of(case, case["op"])[:2]), key=lambda x: x.size)
    small = list(a.shape)
    while small and small[0] == 1:
        small.pop(0)
    return bool(small) and list(b.shape)[-len(small):] != small


@functools.lru_cache(None)
def whole_pictures():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops", "cases")
    texts = (value for row in rows.load(folder)["DecodeJpeg"] for value in row["inputs"][0]["values"])
    return {base64.b64decode(text["b64"]) for text in texts if isinstance(text, dict)}


def is_damaged(case, found, ours, stock):
    """A picture whose remains are asked for, or that was changed after it was made."""
    node = case["nodes"][-1]
    recovers = node["attrs"].get("try_recover_truncated", (0, False))[1] or node["attrs"].get("acceptable_fraction", (0, 1.0))[1] < 1
    return recovers or not set(node["inputs"][0][3]) <= whole_pictures()


def has_late_mark(case, found, ours, stock):
    """A string other than the first begins with a byte order mark."""
    texts = case["nodes"][0]["inputs"][0][3][1:]
    return any(text.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"\xef\xbb\xbf")) for text in texts)


def leaves_integers(case, found, ours, stock):
    """A number that the integer type of the result does not hold."""
    wanted = [n["attrs"].get("DstT", (0, ""))[1] for n in case["nodes"]]
    whole = [np.iinfo(values.NUMPY[w]) for w in wanted if w in values.NUMPY and np.dtype(values.NUMPY[w]).kind in "iu"]
    least, most = max([i.min for i in whole], default=0), min([i.max for i in whole], default=0)
    if any(w.startswith("float8") for w in wanted):
        least, most = max(least, -240), min(most, 240)
    numbers = [array.real.astype("f8").reshape(-1) for _, array in tensor_inputs(case)]
    return bool(whole) and not all(np.all((x > least - 1.0) & (x < most + 1.0)) for x in numbers)


def same_nibbles(case, found, ours, stock):
    """Bytes that differ in their upper halves alone."""
    texts = re.findall(r"bytes ([0-9a-f]*), stock ([0-9a-f]*)", found[1])
    return bool(texts) and all(len(a) == len(b) and a[1::2] == b[1::2] for a, b in texts)


def ends_early(case, found, ours, stock):
    """seq_len_max is less than the number of steps."""
    length, x = inputs_of(case, case["op"])[:2]
    return bool(np.any(length < x.shape[0]))


def has_zero(case, found, ours, stock):
    return any(np.any(array == 0) for _, array in tensor_inputs(case))


def of_integers(case, found, ours, stock):
    return all(array.dtype.kind in "iu" for _, array in tensor_inputs(case))


def has_large_integer(case, found, ours, stock):
    """An integer that is more than half of the largest one."""
    whole = [array for _, array in tensor_inputs(case) if array.dtype.kind in "iu"]
    return any(np.any(np.abs(array.astype("f8")) * 2 >= np.iinfo(array.dtype).max) for array in whole)


def has_wide_level(case, found, ours, stock):
    """An integer that a float does not hold in full."""
    whole = [array for _, array in tensor_inputs(case) if array.dtype.kind in "iu"]
    return any(np.any(np.abs(array.astype("f8")) >= 1 << 24) for array in whole)


def has_surrogate(case, found, ours, stock):
    """Some text has a surrogate, in UTF-8 or spelled out."""
    return bool(re.search(r"\\xed\\x[ab][0-9a-f]|[dD][89a-fA-F][0-9a-fA-F]{2}", repr(case["nodes"])))


def leaves_over(case, found, ours, stock):
    """SAME padding with a stride that is larger than the window."""
    node = case["nodes"][0]
    window = node["attrs"]["ksize"][1][1:4] if "ksize" in node["attrs"] else node["inputs"][1][2][:3]
    return node["attrs"]["padding"][1] == b"SAME" and any(s > w for s, w in zip(node["attrs"]["strides"][1][1:4], window))


def has_dilation(case, found, ours, stock):
    return any(d > 1 for n in case["nodes"] for d in n["attrs"].get("dilations", (0, [1]))[1])


def has_negative_size(case, found, ours, stock):
    """The first input of EncodeProto, the sizes of its fields."""
    return bool(np.any(inputs_of(case, case["op"])[0] < 0))


def skips_far(case, found, ours, stock):
    """SobolSample leaves out 2^30 points or more."""
    return bool(np.any(inputs_of(case, case["op"])[2] >= 2**30 - 2**20))


def has_index_vector(case, found, ours, stock):
    return any(n["op"] == "ScatterNdNonAliasingAdd" and n["inputs"][1][0] == "tensor" and len(n["inputs"][1][2]) == 1 for n in case["nodes"])


def load_open():
    """Differences that are to go, from open.txt: op, kind of difference, what is wrong."""
    found = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "open.txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                op, kind, text = line.split(None, 2)
                found[op, kind] = text.strip()
    return found


OPEN = load_open()
RULES = []


def rule(ops, kinds, reason, condition=None):
    RULES.append((set(ops.split()), set(kinds.split()), condition, reason))


SPECIAL = (
    "BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 "
    "BesselY1 Dawsn Expint FresnelCos FresnelSin Spence Igamma Igammac IgammaGradA RandomGammaGrad Betainc "
    "Polygamma Zeta Ndtri Erfinv Digamma Erfc Erf"
)
CONVOLUTIONS = (
    "Conv2D Conv2DBackpropInput Conv2DBackpropFilter DepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput "
    "DepthwiseConv2dNativeBackpropFilter Conv3D Conv3DBackpropInput Conv3DBackpropInputV2 Conv3DBackpropFilter "
    "Conv3DBackpropFilterV2 LRN LRNGrad Dilation2D Dilation2DBackpropInput Dilation2DBackpropFilter"
)
FTRL = (
    "ApplyFtrl ApplyFtrlV2 SparseApplyFtrl SparseApplyFtrlV2 ResourceApplyFtrl ResourceApplyFtrlV2 "
    "ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2"
)
DECOMPOSITIONS = "Svd SelfAdjointEig SelfAdjointEigV2 Qr Eig MatrixSquareRoot MatrixLogarithm MatrixExponential"

# What stock leaves open.
rule("Empty FakeParam", "value", "stock's output is uninitialised")
rule("QuantizedMatMul", "value", "stock's product over nothing is uninitialised", empty)
rule("Cholesky", "value", "stock leaves uninitialised what has no Cholesky factor; NaN here", ours_has_nan)
rule("Svd SelfAdjointEigV2 Eig", "value", "vectors are determined up to a factor; those not asked for are uninitialised in stock", output(1, 2))
rule("Qr SelfAdjointEig", "value", "vectors are determined up to a factor")
rule(DECOMPOSITIONS, "value", "matrices that are nearly singular lose digits", within(1e-2))
rule(
    DECOMPOSITIONS + " MatrixInverse MatrixSolve MatrixSolveLs Lu BandedTriangularSolve",
    "refused accepted value",
    "matrices that are not finite",
    odd,
)
CSR = (
    "SparseTensorToCSRSparseMatrix DenseToCSRSparseMatrix CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor "
    "CSRSparseMatrixComponents SparseMatrixNNZ SparseMatrixMatMul SparseMatrixSparseMatMul SparseMatrixTranspose "
    "SparseMatrixSparseCholesky SparseMatrixOrderingAMD"
)
rule(CSR, "accepted", "matrices of unknown shape, when a graph is built", says("known rank", "Unable to access shape", "rank is not 2: -1", "saw: -1", "must be rank -1"))
rule(CSR, "refused", "batches out of order make an inconsistent matrix in stock", says("after those of batch"))
rule("SparseMatrixOrderingAMD", "value", "another order with few entries")
rule("AudioSpectrogram", "value", "spectra of what is not finite", odd)
rule("DecodeWebP DecodeJxl DecodeImage DecodePng DecodeJpeg DecodeBmp", "value", "stock writes four channels of animations where there is room for three", is_animation)
rule("Eig", "value", "eigenvalues of the same size come in any order", same_values)
rule("MatrixLogarithm", "value", "on which side of the negative axis rounding puts an eigenvalue", crosses_the_cut)
rule("MatrixLogarithm MatrixSquareRoot", "value", "functions of matrices with nearly parallel eigenvectors lose digits", is_wide_spread)
rule("MatrixSolveLs", "refused accepted", "whether normal equations are regular is up to rounding", is_ill_conditioned)
rule("MatrixSolveLs", "value", "stock solves normal equations in float, and leaves uninitialised what has no rows", solves_better)
rule(
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
    "value",
    "reserved space is uninitialised in stock",
    output(3, 4, 5),
)
rule("FusedBatchNormV3", "shape", "the third reserve is a scalar in stock without oneDNN", output(5))
rule("TopK TopKV2", "value", "the order of what is not sorted", attr("sorted", False))
rule("Cast", "value", "numbers out of the range of an integer type", leaves_integers)
rule("QuantizeV2", "value", "numbers and ranges that no integer type holds", odd)
rule("QuantizeV2", "value", "numbers and ranges that no integer type holds", range_is_odd)
rule("QuantizeV2", "value", "the largest qint32, which is the smallest in stock", attr("T", "qint32"))
rule(
    "ParseSequenceExample ParseSequenceExampleV2 ParseSingleSequenceExample",
    "accepted",
    "damage in feature lists that nobody asks for: they are not read here",
    says("Could not parse example input"),
)
rule("ReadFile", "refused", "stock leaves out the slash that a name ends with", says("Not a directory"))
rule("Conv3D", "refused", "stock looks at nothing else when there is nothing to compute", nothing_out)
rule("TensorListScatterIntoExistingList", "accepted", "stock gives elements that nothing was put into the shape [0]", says("vs. [0]"))
rule("Cast", "value", "the upper half of a byte that holds an int4: copies of its sign here, 0 in stock", same_nibbles)
rule("Cast", "value", "stock drops all digits of a complex number that is truncated", both(attr("Truncate", True), attr("DstT", "complex64")))
rule("BlockLSTM BlockLSTMV2", "value", "halves are computed with as floats here: what is not finite meets no 0", both(of_type("half"), odd))
rule("BlockLSTM BlockLSTMV2", "value", "steps beyond seq_len_max are uninitialised in stock", ends_early)
rule("ParallelConcat", "value shape", "stock leaves rows that nothing was put into uninitialised")
rule("ArgMax ArgMin", "accepted", "stock reads a 16-bit axis as 32 bits", of_type("int16"))
rule("ArgMax ArgMin", "refused", "stock reads half of a 64-bit axis", has_wide_axis)
rule("CTCLoss", "value", "blank labels: stock's losses are below zero", label_is_blank)
rule("DecodeJpeg", "accepted value", "what is recovered of damaged pictures", is_damaged)
rule("DeserializeSparse", "value", "indices outside of the shape, which stock makes others of", has_index_outside)
rule("RaggedTensorToTensor", "value refused", "rows that are not in order", ids_descend)
rule("Requantize QuantizedConcat QuantizedMul QuantizeDownAndShrinkRange", "value", "ranges that hold no numbers", range_is_odd)
rule("QuantizedMul QuantizedAdd", "value", "stock repeats the smaller input, whatever its dimensions are", broadcasts_inside)
rule("ResourceSparseApplyAdagradDA SparseApplyAdagradDA", "value", "steps are numbered from 1", step_is_none)
rule("MutableDenseHashTableV2", "accepted", "stock's tables of eager calls before, under the same name", both(eager, says("Conflicting key/value dtypes")))
rule("MutableDenseHashTableV2", "refused", "stock's tables of eager calls before, under the same name", both(eager, matches("mpty|deleted|buckets|max_load_factor")))
rule("CumulativeLogsumexp TopK TopKV2 MaxPool3D Betainc", "value", "NaN is passed over in stock, in some types", odd)
rule("AsString", "value", "the precision of strings, which stock ignores without a width")
rule("NonDeterministicInts", "value", "random numbers without a seed")
rule("ClipByValue", "value", "stock drops the imaginary part", of_complex)

rule(
    "AvgPoolGrad AvgPool3DGrad FractionalAvgPoolGrad",
    "refused",
    "gradients of another batch or depth than the input: stock's go to pixels of others",
    says("out_backprop must have the"),
)
rule(
    "FractionalAvgPoolGrad",
    "refused",
    "pooling sequences that leave the input or go back",
    says("pooling_sequence must ascend"),
)
rule(
    "BlockLSTMGrad BlockLSTMGradV2",
    "refused",
    "weights that do not fit the states: stock's gradients do not look at them",
    says("w.dim_size(0) != input_size + cell_size", "w.dim_size(1) != cell_size * 4"),
)
rule("DataFormatDimMap", "value", "stock reads past the end of its table", is_no_dimension)
rule(
    "DenseToSparseSetOperation",
    "refused accepted shape value",
    "indices out of range, where stock was told not to look",
    attr("validate_indices", False),
)
rule("Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput", "refused", "stock's kernels take rates below 1",
     says("Dilation rate must be", "rates values must be"))  # fmt: skip
rule("ImageProjectiveTransformV2 ImageProjectiveTransformV3", "value", "transforms that are not finite", odd)
rule("QuantizeAndDequantizeV3", "accepted", "stock takes the axis -1, which is none, for one of a scalar", says("Axis: -1 Input Dimensions: 0"))
rule("QuantizedBatchNormWithGlobalNormalization", "accepted", "one channel: stock wants two", says("Must have at least a"))
rule("FractionalMaxPoolGrad", "refused", "pooling sequences that leave the input: stock's gradients go to pixels of other rows", says("must not be negative"))
rule("Conv3D MaxPool3D AvgPool3D", "value", "SAME with strides that leave elements over: stock's windows begin at 1", leaves_over)
rule("Einsum", "refused", "stock's kernel does not look at labels of the result", both(eager, says("not present in the input subscripts")))
rule("Dequantize", "refused", "stock's kernel does not look at the rank of limits", both(eager, says("Shape must be rank 1")))
rule("ImageProjectiveTransformV2 ImageProjectiveTransformV3", "value", "integers that floats round beyond their type", has_large_integer)
rule("Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput", "value", "sums that leave the integer type", has_large_integer)
rule("Sigmoid Tanh", "value", "complex numbers next to a pole, of which stock loses digits", both(of_complex, within(1e-3)))
rule("Dilation2DBackpropFilter Dilation2DBackpropInput", "value",
     "a window whose sums are all 0 has no largest in stock: its gradient goes to the corner", is_unsigned)  # fmt: skip
rule("DrawBoundingBoxes DrawBoundingBoxesV2", "value", "corners that no integer type holds", has_far_number)
rule("DrawBoundingBoxes DrawBoundingBoxesV2", "accepted", "boxes in images without pixels", empty)
rule("ExtractGlimpse ExtractGlimpseV2", "value", "noise, which no seed determines", draws_noise)
rule("FractionalMaxPool MaxPool QuantizeAndDequantizeV2 QuantizeAndDequantizeV4", "value", "NaN is passed over in stock, by its place", odd)
rule("Gather GatherV2", "refused", "stock does not look at indices of rows without elements", says("is not in [0, "))
rule("MapClear OrderedMapClear", "refused", "stock looks at staged indices when it takes elements out", says("was out of bounds"))
rule("MatchingFiles", "refused", "stock reads patterns up to a zero byte, or past it", says("must not contain a NUL"))
rule("MergeSummary", "value", "fields that no summary has are dropped in stock")
rule("MatchingFiles", "value shape", "wildcards before a double slash match nothing in stock", has_double_slash)
rule("ParameterizedTruncatedNormal StatelessParameterizedTruncatedNormal", "accepted value", "distributions that are not finite", odd)
rule(
    "ExtractImagePatches ExtractVolumePatches MaxPool MaxPoolV2 MaxPoolWithArgmax QuantizeV2",
    "refused",
    "attributes that stock refuses in graphs and takes in eager calls",
    both(
        eager,
        says(
            "attribute to contain",
            "Stride must be > 0",
            "axis should be at least -1",
            "explicit_paddings attribute must be empty",
            "Negative dimension size caused",
        ),
    ),
)
rule("MaxPoolV2", "refused", "strides over the depth that are fed: stock's kernel does not look at them", says("Stride must be > 0"))
rule("QuantizedConv2D", "dtype", "stock does not set its outputs")
rule("TensorSummaryV2", "value", "metadata that does not parse: stock makes up the bytes that are missing")
rule("ResourceGather", "refused", "stock reads beyond the variable, or leaves the output uninitialised", attr("batch_dims", 1))
rule("SparseAdd", "shape value", "stock reads a threshold of another type as one of the values' type", sum_type_differs)
rule("StringLower StringUpper", "value", "stock ends a string at its first zero byte", zero_byte)
rule("UnicodeDecode UnicodeDecodeWithOffsets UnicodeTranscode", "value shape", "stock looks for a byte order mark in the first string alone", has_late_mark)

# What stock does not look at.
rule(
    "StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomPoisson StatelessRandomUniformFullInt StatelessRandomUniformInt "
    "StatelessRandomUniformFullIntV2 StatelessRandomUniformIntV2 StatelessRandomUniformV2",
    "refused",
    "stock looks at nothing else when there is nothing to draw",
    nothing_out,
)
rule("SparseTensorDenseMatMul", "refused", "stock does not look at indices when the product has no elements", nothing_out)
rule("QuantizedAvgPool", "refused", "stock ignores windows and strides over images and channels", matches("Non-spatial"))
rule("SetSize", "refused", "indices below zero without validation, of which stock dies or makes sets up", attr("validate_indices", False))
rule("SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient", "refused", "rows below zero", matches("is negative"))
rule("RaggedTensorToTensor", "refused", "stock reads values that are not there", matches("name [0-9]+ values"))
rule(
    "ResizeNearestNeighborGrad",
    "refused",
    "half_pixel_centers with align_corners, which the op itself refuses",
    both(attr("half_pixel_centers", True), attr("align_corners", True)),
)
rule("TFRecordDataset TFRecordDatasetV2", "refused", "stock looks at files when it reads", matches("compression_type|byte_offsets"))
rule("RecordInput", "refused", "stock looks for files when it reads")

rule("TensorSliceDataset", "accepted", "stock's optimizer makes of Shuffle and Repeat(0) what it then refuses")
rule("EmptyTensorList", "refused", "stock does not look at indices of elements without numbers")

# Where stock is wrong or less exact.
rule("Round", "value", "stock rounds integers to 0", of_integers)
rule("NotEqual", "value", "stock compares qint32 as floats", of_type("qint32"))
rule(SPECIAL, "value", "stock's approximations lose digits", within(2e-3))
rule("IgammaGradA", "value", "stock's approximations lose digits", within(1e-2))
rule(SPECIAL, "value", "stock's approximations leave the range early", odd)
rule(SPECIAL, "value", "stock's approximations leave the range early", says("stock inf", "stock -inf"))
rule("RandomPoissonV2", "value", "rates that are not finite, as integers", odd)
rule("Zeta Polygamma", "value", "terms of both signs cancel", below_zero)
rule("Elu Selu SeluGrad EluGrad Softplus", "value", "stock subtracts from 1 what is close to it", within(1e-2))
rule("Log", "value", "stock takes subnormal numbers for zero in vectors and not behind them", odd)
rule(
    "Igamma IgammaGradA RandomGammaGrad",
    "value",
    "0 in stock for x = 0, whatever a is; NaN here where a is outside of the domain",
    has_zero,
)
rule(
    "SqrtGrad RsqrtGrad ReciprocalGrad InvGrad SigmoidGrad TanhGrad SoftsignGrad",
    "value",
    "products in another order, which leave the range earlier or later",
    odd,
)
rule("Prod", "value", "complex products with infinities", of_complex)
rule("BlockLSTMGrad BlockLSTMGradV2", "value", "halves are rounded once here, and overflow in stock", of_type("half"))
rule("AdjustHue AdjustSaturation AdjustContrastv2 RGBToHSV HSVToRGB", "value", "colours that are not finite", odd)
rule(
    "SparseApplyRMSProp SparseApplyCenteredRMSProp ResourceSparseApplyRMSProp ResourceSparseApplyCenteredRMSProp",
    "value",
    "roots of numbers below zero, and infinities",
    odd,
)
rule(
    "ResourceSparseApplyCenteredRMSProp SparseApplyCenteredRMSProp",
    "value",
    "roots of numbers below zero",
    has_nan_output,
)
rule("LRN", "value", "powers of numbers below zero: NaN in stock", has_nan_output)
for small in ("half", "bfloat16"):
    rule("Cross", "value", "stock rounds products before it subtracts", of_type(small))
    rule("Dilation2DBackpropFilter Dilation2DBackpropInput", "value", "stock rounds sums before it compares them", of_type(small))
    for condition in (odd, has_zero):
        rule(FTRL, "value", "16 bits are computed with as floats here: infinities, and rates of 0, meet a difference that stock rounds to 0",
             both(of_type(small), condition))  # fmt: skip
    rule("CumulativeLogsumexp", "value", "stock adds up in 16 bits", both(of_type(small), within(0.25)))
rule("FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient", "value", "bounds that are not finite", odd)
rule("CTCBeamSearchDecoder", "value shape", "the order of scores that are not finite", odd)
rule("CTCBeamSearchDecoder CTCLoss", "value shape", "stock computes doubles in float", of_type("double"))
rule("DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter", "refused",
     "stock takes dilations and ignores them", says("does not support dilations"))  # fmt: skip
rule("CropAndResizeGradBoxes CropAndResizeGradImage", "refused", "stock reads outside the image, or dies", says("not finite"))
rule("Conv3DBackpropFilterV2 Conv3DBackpropInputV2", "accepted", "stock without oneDNN refuses what has no elements", says("at least 1 element"))
rule("DecodeCompressed", "refused", "stock takes a stream that is cut off for its end", says("ends early"))
rule("SobolSample", "value", "stock's numbers beyond 2^30 skipped points are negative", skips_far)
rule("QuantizedAdd", "value", "ranges that are not finite", odd)
rule("QuantizedConcat", "value", "stock reads the next tensor with an empty one's limits", empty)
rule("QuantizedConv2D", "value", "SAME with strides that leave two or more elements over: stock's windows begin at 1", attr("padding", b"SAME"))
rule("ScatterNdNonAliasingAdd", "refused", "a vector of indices: stock adds the first update alone", has_index_vector)
rule("StaticRegexFullMatch StaticRegexReplace RegexFullMatch RegexReplace", "value refused", "surrogates are no characters", has_surrogate)
rule("DenseCountSparseOutput SparseCountSparseOutput RaggedCountSparseOutput", "refused", "the largest int64: stock's shape is -1", says("must be smaller"))
rule("SobolSample", "refused", "more dimensions than there are numbers for", says("SobolSample supports up to"))
rule("StringSplitV2", "shape", "stock adds an empty word where the last split is at the end", attr_above("maxsplit", 0))
rule("ResizeBilinearGrad ResizeBicubicGrad", "value", "stock adds doubles up with weights in float", both(of_type("double"), within(1e-5)))
rule("ResizeBilinearGrad ResizeBicubicGrad", "value", "what is not finite, or no float", both(of_type("double"), odd))
rule("ScaleAndTranslateGrad", "value", "the order of sums", within(1e-5))
rule("ScaleAndTranslate ScaleAndTranslateGrad", "value", "what is not finite, beside the window", odd)
rule(CONVOLUTIONS, "value", "infinities times the zeros of the padding: in other places", odd)
rule(" ".join(kind + "FFT" + axes for kind in ("", "I", "R", "IR") for axes in ("", "2D", "3D")),
     "value", "sums with what is not finite: in another order", odd)  # fmt: skip

rule("UniformQuantizedAdd UniformRequantize", "value", "stock computes with levels as floats, which hold 24 bits", has_wide_level)
rule("UniformQuantize", "value", "floats that no integer type holds", has_far_number)
rule("UniformQuantize", "value", "zero points beyond the levels", has_large_integer)
rule("ParseSequenceExample ParseSequenceExampleV2", "refused", "stock does not read lists that nobody asks for",
     says("Invalid protocol message"))  # fmt: skip
rule("CollectiveReduce CollectiveReduceV2 CollectiveGather CollectiveGatherV2", "accepted", "stock keeps the error of another call",
     says("timed out waiting for other workers"))  # fmt: skip
rule("Batch", "refused", "stock takes a negative number of batches for a very large one", says("must be non-negative"))
rule("IRFFT IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D", "value", "stock leaves transforms of nothing unset", empty)
rule("CholeskyGrad", "value", "what is not finite", odd)
rule("RaggedTensorToVariantGradient", "refused", "stock gives values another type than it says", says("Expected values Tensor dtype"))
rule("Batch", "value", "numbers of batches are random", says("output 1 element 0", "output 2"))
rule("KmeansPlusPlusInitialization", "value", "distances that are not finite", odd)
rule("QuantizedResizeBilinear", "shape accepted", "stock sets no limits without images", empty)
rule("QuantizedResizeBilinear", "value", "images that are not finite", odd)
rule("UniformQuantizedDot UniformQuantizedConvolution UniformDequantize UniformQuantizedAdd", "value",
     "zero points beyond the levels: stock's sums leave int32", has_large_integer)  # fmt: skip
rule("UniformQuantizedDotHybrid UniformQuantizedConvolutionHybrid", "value", "zero points beyond the levels", has_large_integer)
rule("UniformQuantize UniformQuantizedDotHybrid UniformQuantizedConvolutionHybrid UniformDequantize UniformQuantizedDot", "value",
     "numbers or scales that are not finite", odd)  # fmt: skip
rule("RequantizationRangePerChannel", "value", "the least int32 has no absolute value in stock", has_large_integer)
rule("RequantizePerChannel", "refused", "stock reads limits behind their end", says("must have same number of channels"))
rule("RequantizePerChannel", "value", "limits that are not finite", odd)
rule("ApproxTopK", "value", "the order of NaN", odd)
rule("ApproxTopK", "accepted", "other axes than the last, and the smallest", says("No OpKernel was registered", "Could not find device for node"))
rule("ApproxTopK", "refused", "attributes that stock refuses in graphs and takes in eager calls", eager)
rule("EncodeProto", "value", "stock writes a packed field of a negative size as a length without values", has_negative_size)
rule("DecodeProtoV2", "refused", "tags of more than 32 bits, of which stock takes the low ones", says("Failed to consume entire buffer"))

# What runs here, and not in stock.
rule("UniformQuantizedConvolution UniformQuantizedConvolutionHybrid", "accepted",
     "stock keeps the number of dimensions of an eager op's first call", both(eager, says("must be dims - 2", "rank - 2")))  # fmt: skip
rule("GetSessionHandle GetSessionHandleV2", "accepted", "eager handles work here", eager)
rule("ParallelConcat AccumulateNV2", "accepted", "stock runs it through its optimizer only")
rule("QuantizedAdd QuantizedMul", "accepted", "stock broadcasts scalars and last dimensions alone", matches("Broadcast between|at least 1 element"))
rule("Substr", "accepted", "stock refuses shapes that it does not know yet", matches("shapes must match.*vs. \\?|: \\? vs."))
rule("ResourceGather ResourceStridedSliceAssign", "accepted", "variables of quantized types", matches("Unsupported dtype: q"))
rule("TensorScatterSub TensorScatterMin TensorScatterMax TensorScatterAdd", "accepted", "a vector is one index", matches("must match dimensions"))
rule("QuantizedReluX CTCLossV2 FFTND IFFTND RFFTND IRFFTND", "accepted", "stock has no CPU kernel")
rule("AnonymousRandomSeedGenerator", "accepted", "stock's kernel asks for an input that the op does not have")
rule("QuantizeAndDequantizeV2 QuantizeAndDequantizeV4", "accepted", "scalar limits hold for every slice",
     says("Shape must be rank 1"))  # fmt: skip
rule(
    "Enter Exit Switch Merge NextIteration LoopCond RefEnter RefExit RefSwitch RefMerge",
    "accepted refused",
    "control flow outside of a loop",
)
rule("Conv2DBackpropFilter Conv2DBackpropInput Conv3DBackpropFilterV2 Conv3DBackpropInputV2", "accepted", "stock has no dilations in gradients on CPUs", has_dilation)
rule("Conv2DBackpropFilter Conv2DBackpropInput", "accepted", "gradients of grouped convolutions", says("grouped convolutions are not supported"))
rule("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", "accepted", "stock wants NHWC in inference", says("only support NHWC"))
rule("QuantizedConv2D", "accepted refused", "stock checks its arguments late or not at all")

rule("RandomIndexShuffle", "refused value", "stock reads keys that it has not made", says("Rounds must be even"))
rule("RandomIndexShuffle", "refused", "stock walks on from a number outside the permutation", says("is greater than max_index"))
rule("RaggedTensorToVariantGradient", "refused", "stock writes as many values as there are", says("values than dense_values_shape"))
rule("Fingerprint", "value", "stock leaves the hash of no strings unset", lambda case, found, ours, stock: has_empty_strings(case))


def reason(case, found, ours, stock):
    """Why a difference is no finding, or None."""
    kind = found[0]
    if (case["op"], kind) in OPEN:
        return "open: " + OPEN[case["op"], kind]
    if kind in ("crash", "hang"):
        return None
    if kind == "accepted" and "Timed out waiting for notification" in found[1]:
        return "stock took too long"
    if kind == "value" and is_unseeded(case):
        return "random numbers without a seed"
    for ops, kinds, condition, text in RULES:
        if kind in kinds and any(n["op"] in ops for n in case["nodes"]):
            if condition is None or condition(case, found, ours, stock):
                return text
    if kind == "value" and ours_is_exact(case, ours, stock):
        return "ours is the exact value"
    if kind in ("value", "shape") and has_subnormal(case):
        return "numbers too small to be held in full: stock takes them for zero in some places"
    is_at_end = has_odd_number(case) or re.search("nan|inf", found[1])
    if kind == "value" and has_complex(case) and is_at_end:
        return "complex arithmetic at the ends of the range: the C standard's here, textbook formulas in stock"
    return None
