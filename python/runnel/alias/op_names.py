"""Names of TensorFlow's implementation that are public under another name, in TensorFlow 2 or in both APIs.

inner_paths looks here for what it finds nowhere else.
"""

import contextlib
import importlib

# Name -> place in runnel. "v2:" is the API of TensorFlow 2.
_PUBLIC = {
    "Constant": "v2:constant_initializer",
    "GetTempDir": "test.get_temp_dir",
    "IsBuiltWithCuda": "test.is_built_with_cuda",
    "IsGoogleCudaEnabled": "test.is_built_with_cuda",
    "Ones": "v2:ones_initializer",
    "RandomNormal": "v2:random_normal_initializer",
    "RandomUniform": "v2:random_uniform_initializer",
    "ResizeMethodV1": "image.ResizeMethod",
    "VariableAggregationV2": "v2:VariableAggregation",
    "Zeros": "v2:zeros_initializer",
    "ctc_loss_v3": "v2:nn.ctc_loss",
    "extract_image_patches_v2": "v2:image.extract_patches",
    "general_dropout": "v2:nn.experimental.general_dropout",
    "generate_bounding_box_proposals": "v2:image.generate_bounding_box_proposals",
    "inverse_mdct": "signal.inverse_mdct",
    "linspace_nd": "v2:linspace",
    "mdct": "signal.mdct",
    "resize_image_with_pad_v2": "v2:image.resize_with_pad",
    "resize_images_v2": "v2:image.resize",
    "set_seed": "v2:random.set_seed",
    "sparse_concat_v2": "v2:sparse.concat",
    "sparse_reduce_sum_v2": "v2:sparse.reduce_sum",
    "sparse_segment_mean_v2": "v2:sparse.segment_mean",
    "sparse_segment_sqrt_n_v2": "v2:sparse.segment_sqrt_n",
    "sparse_segment_sum_v2": "v2:sparse.segment_sum",
    "stateless_dropout": "v2:nn.experimental.stateless_dropout",
    "string_bytes_split": "v2:strings.bytes_split",
    "strings_split_v1": "strings.split",
}


# Modules that others of TensorFlow's import, and that programs find there.
_MODULES = {
    "fingerprint_pb2": "core.protobuf.fingerprint_pb2",
    "tf_logging": "python.platform.tf_logging",
}


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module("tensorflow." + _MODULES[name])
    if name == "ENABLE_CONTROL_FLOW_V2":
        import runnel
        return runnel.control_flow_v2_enabled()
    if name.startswith("gen_") and name.endswith("_ops"):  # modules of ops see each other
        return importlib.import_module("tensorflow.python.ops." + name)
    where = _PUBLIC.get(name)
    if where is None:
        raise AttributeError(name)
    api, _, path = where.rpartition(":")
    value = importlib.import_module("runnel.v2" if api else "runnel")
    for part in path.split("."):
        value = getattr(value, part)
    return value


def tensor_equals(self, other):
    """The operator ==: elementwise, and False for None."""
    return False if other is None else self == other


def tensor_not_equals(self, other):
    """The operator !=: elementwise, and True for None."""
    return True if other is None else self != other


def batch_gather_nd(params, indices, batch_dims, name=None):
    """Gathers slices, within each batch."""
    import runnel
    return runnel.gather_nd(params, indices, name=name, batch_dims=batch_dims)


@contextlib.contextmanager
def forward_compatibility_horizon(year, month, day):
    """A context manager without effect: there is no older version that must read what this one writes."""
    yield
