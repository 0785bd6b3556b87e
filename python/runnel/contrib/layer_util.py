"""Helpers of tf.contrib's layers: named outputs, collections, variables under slim's names."""

import collections as _collections

from runnel.contrib.model_variables import model_variable
from runnel.core.framework import add_to_collections, get_collection, get_default_graph
from runnel.ops.variable_scopes import variable_scope


def append_tensor_alias(tensor, alias):
    """Adds an alias to a tensor."""
    if not hasattr(tensor, "aliases"):
        tensor.aliases = []
    tensor.aliases.append(alias.rstrip("/"))
    return tensor


def get_tensor_aliases(tensor):
    """Returns the aliases of a tensor, or its name if it has none."""
    if hasattr(tensor, "aliases"):
        return tensor.aliases
    return [tensor.op.name if tensor.name.endswith(":0") else tensor.name]


def gather_tensors_aliases(tensors):
    """Returns the aliases of several tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def collect_named_outputs(collections, alias, outputs):
    """Adds a layer's output under an alias to collections. Returns the output."""
    if collections:
        append_tensor_alias(outputs, alias)
        add_to_collections(collections, outputs)
    return outputs


def finish(outputs, scope, normalizer_fn, normalizer_params, activation_fn, outputs_collections):
    """Ends a layer: normalizes, activates, and names the output."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect_named_outputs(outputs_collections, scope, outputs)


def convert_collection_to_dict(collection, clear_collection=False):
    """Returns {alias: tensor} of a collection of named outputs."""
    named = _collections.OrderedDict(
        (alias, tensor) for tensor in get_collection(collection) for alias in get_tensor_aliases(tensor))
    if clear_collection:
        get_default_graph().clear_collection(collection)
    return named


def get_variable_collections(variables_collections, name):
    """Returns the collections of one kind of variable, from a dict by kind or a list for all."""
    if isinstance(variables_collections, dict):
        return variables_collections.get(name, None)
    return variables_collections


def add_variable(variable, variables_collections, name):
    """Adds a variable, or its parts, to the collections of its kind."""
    wanted = list(get_variable_collections(variables_collections, name) or [])
    for part in variable if hasattr(variable, "_get_variable_list") else [variable]:
        for collection in wanted:
            if not any(part is other for other in get_collection(collection)):
                add_to_collections(collection, part)


def _getter_of(names):
    def renamed(getter, name, *args, **kwargs):
        head, slash, last = name.rpartition("/")
        kwargs.pop("reuse", None)
        return model_variable(head + slash + names.get(last, last), *args, custom_getter=getter, **kwargs)
    return renamed


def layer_scope(scope, default_name, inputs, reuse, **names):
    """A context manager: a variable scope that renames a core layer's variables and adds them to MODEL_VARIABLES."""
    return variable_scope(scope, default_name, [inputs], reuse=reuse, custom_getter=_getter_of(names))


def two_element_tuple(value):
    """Returns two numbers, given one or two."""
    if isinstance(value, (list, tuple)):
        if len(value) != 2:
            raise ValueError("List must be of length 2: %s" % (value,))
        return tuple(value)
    if isinstance(value, int):
        return value, value
    if hasattr(value, "as_list"):
        return two_element_tuple(value.as_list())
    raise ValueError("Must be an int, a list with 2 elements or a TensorShape of length 2")


def last_dimension(shape, min_rank=1):
    """Returns the last dimension, which must be known."""
    shape = shape.with_rank_at_least(min_rank)
    if shape.as_list()[-1] is None:
        raise ValueError("last dimension shape must be known but is None")
    return shape.as_list()[-1]


def channels_of(data_format, known="NCHW NHWC"):
    """Returns the core layers' name of a data format, which must be one of `known`; by default the usual one."""
    if data_format is None:
        return "channels_last"
    if data_format not in known.split():
        raise ValueError("data_format has to be either %s." % " or ".join(known.split()))
    return "channels_first" if data_format.startswith("NC") else "channels_last"
