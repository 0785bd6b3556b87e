"""tf.compat.v2: the functions of 1.x with the parameters of 2.x.

A name is looked up here, then in tf: most are the same. What differs is mostly the order of the parameters, so _ORDERS
is a table "function: parameters". It neither makes execution eager nor changes how tf itself works.
"""

import functools
import importlib
import inspect
import types

import runnel as _v1
from runnel import dtypes
from runnel.core.framework import name_scope as _name_scope
from runnel.ops import array_ops
from runnel.ops.variables import _VariableMeta as _V1Meta

# The parameters of functions that differ from 1.x, as in a def.
_ORDERS = {}
for _row in """
argmax argmin math.argmax math.argmin: input, axis=None, output_type=int64, name=None
assert_equal assert_greater assert_less: x, y, message=None, summarize=None, name=None
debugging.assert_equal debugging.assert_greater debugging.assert_less: x, y, message=None, summarize=None, name=None
debugging.assert_greater_equal debugging.assert_less_equal: x, y, message=None, summarize=None, name=None
debugging.assert_none_equal: x, y, summarize=None, message=None, name=None
debugging.assert_near: x, y, rtol=None, atol=None, message=None, summarize=None, name=None
debugging.assert_negative debugging.assert_positive: x, message=None, summarize=None, name=None
debugging.assert_non_negative debugging.assert_non_positive: x, message=None, summarize=None, name=None
assert_rank debugging.assert_rank debugging.assert_rank_at_least: x, rank, message=None, name=None
debugging.assert_rank_in: x, ranks, message=None, name=None
debugging.assert_scalar: tensor, message=None, name=None
debugging.assert_all_finite: x, message, name=None
batch_to_space: input, block_shape, crops, name=None
space_to_batch nn.space_to_batch: input, block_shape, paddings, name=None
boolean_mask: tensor, mask, axis=None, name='boolean_mask'
cond: pred, true_fn=None, false_fn=None, name=None
constant: value, dtype=None, shape=None, name='Const'
convert_to_tensor: value, dtype=None, dtype_hint=None, name=None
expand_dims: input, axis, name=None
gather: params, indices, validate_indices=None, axis=None, batch_dims=0, name=None
gather_nd: params, indices, batch_dims=0, name=None
gradients: ys, xs, grad_ys=None, name='gradients', gate_gradients=False, aggregation_method=None, stop_gradients=None, unconnected_gradients=NONE
hessians: ys, xs, gate_gradients=False, aggregation_method=None, name='hessians'
image.crop_and_resize: image, boxes, box_indices, crop_size, method='bilinear', extrapolation_value=0, name=None
image.draw_bounding_boxes: images, boxes, colors, name=None
io.decode_csv: records, record_defaults, field_delim=',', use_quote_delim=True, na_value='', select_cols=None, name=None
io.parse_example io.parse_single_example: serialized, features, example_names=None, name=None
io.serialize_many_sparse io.serialize_sparse: sp_input, out_type=string, name=None
math.confusion_matrix: labels, predictions, num_classes=None, weights=None, dtype=int32, name=None
math.count_nonzero: input, axis=None, keepdims=None, dtype=int64, name=None
math.in_top_k nn.in_top_k: targets, predictions, k, name=None
math.log_softmax math.softmax nn.log_softmax nn.softmax: logits, axis=None, name=None
nn.avg_pool2d: input, ksize, strides, padding, data_format='NHWC', name=None
nn.batch_norm_with_global_normalization: input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization, name=None
nn.conv1d: input, filters, stride, padding, data_format='NWC', dilations=None, name=None
nn.conv2d: input, filters, strides, padding, data_format='NHWC', dilations=None, name=None
nn.conv3d: input, filters, strides, padding, data_format='NDHWC', dilations=None, name=None
nn.conv2d_transpose: input, filters, output_shape, strides, padding='SAME', data_format='NHWC', dilations=None, name=None
nn.conv3d_transpose: input, filters, output_shape, strides, padding='SAME', data_format='NDHWC', dilations=None, name=None
nn.crelu: features, axis=-1, name=None
nn.depth_to_space nn.space_to_depth: input, block_size, data_format='NHWC', name=None
nn.depthwise_conv2d: input, filter, strides, padding, data_format=None, dilations=None, name=None
nn.dropout: x, rate, noise_shape=None, seed=None, name=None
nn.embedding_lookup_sparse: params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None
nn.max_pool_with_argmax: input, ksize, strides, padding, data_format='NHWC', output_dtype=int64, include_batch_in_index=False, name=None
nn.moments nn.sufficient_statistics: x, axes, shift=None, keepdims=False, name=None
nn.weighted_moments: x, axes, frequency_weights, keepdims=False, name=None
nn.separable_conv2d: input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None, name=None
nn.softmax_cross_entropy_with_logits: labels, logits, axis=-1, name=None
nn.sparse_softmax_cross_entropy_with_logits: labels, logits, name=None
nn.weighted_cross_entropy_with_logits: labels, logits, pos_weight, name=None
norm linalg.norm: tensor, ord='euclidean', axis=None, keepdims=None, name=None
pad: tensor, paddings, mode='CONSTANT', constant_values=0, name=None
random.poisson: shape, lam, dtype=float32, seed=None, name=None
reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean: input_tensor, axis=None, keepdims=False, name=None
reduce_min reduce_prod reduce_sum math.reduce_all math.reduce_any: input_tensor, axis=None, keepdims=False, name=None
math.reduce_logsumexp math.reduce_max math.reduce_mean: input_tensor, axis=None, keepdims=False, name=None
math.reduce_min math.reduce_prod math.reduce_sum: input_tensor, axis=None, keepdims=False, name=None
shape size: input, out_type=int32, name=None
sparse.concat: axis, sp_inputs, expand_nonconcat_dims=False, name=None
sparse.split: sp_input=None, num_split=None, axis=None, name=None
sparse.segment_mean sparse.segment_sqrt_n sparse.segment_sum: data, indices, segment_ids, num_segments=None, name=None
squeeze: input, axis=None, name=None
strings.length: input, unit='BYTE', name=None
strings.substr: input, pos, len, unit='BYTE', name=None
strings.to_hash_bucket: input, num_buckets, name=None
strings.to_number: input, out_type=float32, name=None
transpose: a, perm=None, conjugate=False, name='transpose'
tuple: tensors, control_inputs=None, name=None
while_loop: cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False, maximum_iterations=None, name=None
""".strip().splitlines():
    _functions, _, _parameters = _row.partition(": ")
    _ORDERS.update(dict.fromkeys(_functions.split(), _parameters))

# Names that are in another place in tf.
_ELSEWHERE = dict(item.split("=") for item in """
where=where_v2 nn.avg_pool=nn.avg_pool_v2 nn.max_pool=nn.max_pool_v2 random.set_seed=set_random_seed
nn.softmax_cross_entropy_with_logits=nn.softmax_cross_entropy_with_logits_v2
nn.ctc_beam_search_decoder=nn.ctc_beam_search_decoder_v2 nn.ctc_loss=nn.ctc_loss_v2
losses=keras.losses metrics=keras.metrics optimizers=keras.optimizers initializers=keras.initializers
newaxis=newaxis autodiff.GradientTape=GradientTape
""".split())

# Names that 2.x moved from tf into a namespace.
_GONE = frozenset("""
get_variable variable_scope placeholder Session InteractiveSession layers app flags gfile logging log_sigmoid lgamma
log log1p digamma get_default_session global_variables_initializer reset_default_graph to_float to_int32 to_int64
set_random_seed random_uniform random_normal truncated_normal mod div ConfigProto
""".split())
_MODULES = frozenset("""math nn linalg random debugging strings sparse image io bitwise train data""".split())


def _ordered(function, parameters):
    """Returns the function with these parameters; those not given keep its defaults."""
    names = vars(dtypes) | {"NONE": _v1.UnconnectedGradients.NONE}
    signature = inspect.signature(eval("lambda %s: None" % parameters, dict(names)))

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(**signature.bind(*args, **kwargs).arguments)

    del call.__wrapped__
    call.__signature__ = signature
    return call


def _find(path):
    """Returns what "nn.dropout" is in 2.x. Raises AttributeError if it is absent."""
    value = _v1
    for part in _ELSEWHERE.get(path, path).split("."):
        value = getattr(value, part)
    return _ordered(value, _ORDERS[path]) if path in _ORDERS else value


class _Module(types.ModuleType):
    """A namespace such as tf.compat.v2.nn: that of tf, except for what differs."""

    def __init__(self, name):
        super().__init__(__name__ + "." + name)
        self.__path__ = []
        self._place = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = _find(self._place + "." + name)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return dir(importlib.import_module("runnel." + self._place))


def name_scope(name):
    """A context manager for a name scope; a scope that was opened before is entered again."""
    return _name_scope(name)


def ones_like(input, dtype=None, name=None):  # noqa: A002
    """Creates ones with the shape of `input`."""
    return array_ops.ones_like(input, dtype, name)


def zeros_like(input, dtype=None, name=None):  # noqa: A002
    """Creates zeros with the shape of `input`."""
    return array_ops.zeros_like(input, dtype, name)


class _VariableMeta(_V1Meta):
    def __call__(cls, *args, **kwargs):
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        return _v1.Variable(use_resource=True, **_VARIABLE.bind(*args, **kwargs).arguments)

    def __instancecheck__(cls, value):
        return isinstance(value, _v1.Variable) if cls is Variable else super().__instancecheck__(value)


class Variable(_v1.Variable, metaclass=_VariableMeta):
    """A resource variable; tf.Variable creates reference variables. Every variable is an instance."""


_VARIABLE = inspect.signature(
    lambda initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None, variable_def=None,
    dtype=None, import_scope=None, constraint=None, synchronization=None, aggregation=None, shape=None: None)


def random_normal_initializer(mean=0.0, stddev=0.05, seed=None):
    """Returns an initializer with a normal distribution."""
    return _v1.random_normal_initializer(mean, stddev, seed)


def random_uniform_initializer(minval=-0.05, maxval=0.05, seed=None):
    """Returns an initializer with a uniform distribution."""
    return _v1.random_uniform_initializer(minval, maxval, seed)


def zeros_initializer():
    """Returns an initializer with zeros."""
    return _v1.zeros_initializer()


def ones_initializer():
    """Returns an initializer with ones."""
    return _v1.ones_initializer()


def constant_initializer(value=0, support_partition=False):
    """Returns an initializer with the given values."""
    return _v1.constant_initializer(value)


def get_current_name_scope():
    """Returns the current name scope."""
    return _v1.get_default_graph().get_name_scope()


__version__ = _v1.__version__


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _GONE:
        raise AttributeError("tf.compat.v2 has no %r" % name)
    value = _Module(name) if name in _MODULES else _find(name)
    globals()[name] = value
    return value


def __dir__():
    return sorted((set(dir(_v1)) | set(_ELSEWHERE) | set(globals())) - _GONE)
