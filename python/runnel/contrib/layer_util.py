"""What the layers of tf.contrib share: named outputs, collections, variables under slim's names."""

import collections as _collections

from runnel.contrib.model_variables import model_variable
from runnel.core.framework import add_to_collections, get_collection, get_default_graph
from runnel.ops.variable_scopes import variable_scope


def append_tensor_alias(tensor, alias):
    """Gives a tensor another name."""
    if not hasattr(tensor, "aliases"):
        tensor.aliases = []
    tensor.aliases.append(alias.rstrip("/"))
    return tensor


def get_tensor_aliases(tensor):
    """The names that a tensor was given; without any, its own."""
    if hasattr(tensor, "aliases"):
        return tensor.aliases
    return [tensor.op.name if tensor.name.endswith(":0") else tensor.name]


def gather_tensors_aliases(tensors):
    """The names of several tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def collect_named_outputs(collections, alias, outputs):
    """Puts a layer's output under its name into collections; the output."""
    if collections:
        append_tensor_alias(outputs, alias)
        add_to_collections(collections, outputs)
    return outputs


def finish(outputs, scope, normalizer_fn, normalizer_params, activation_fn, outputs_collections):
    """The end of a layer: what is normalised and activated, under the layer's name."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect_named_outputs(outputs_collections, scope, outputs)


def convert_collection_to_dict(collection, clear_collection=False):
    """{name: tensor} of a collection of named outputs."""
    named = _collections.OrderedDict(
        (alias, tensor) for tensor in get_collection(collection) for alias in get_tensor_aliases(tensor))
    if clear_collection:
        get_default_graph().clear_collection(collection)
    return named


def get_variable_collections(variables_collections, name):
    """The collections of one kind of variable: of a dict by kind, or of all kinds."""
    if isinstance(variables_collections, dict):
        return variables_collections.get(name, None)
    return variables_collections


def add_variable(variable, variables_collections, name):
    """Puts a variable (or its parts) into the collections of its kind."""
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
    """A variable scope in which the variables of a core layer are the model's, under other names."""
    return variable_scope(scope, default_name, [inputs], reuse=reuse, custom_getter=_getter_of(names))


def two_element_tuple(value):
    """A number twice, or two numbers."""
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
    """The last dimension, which must be known."""
    shape = shape.with_rank_at_least(min_rank)
    if shape.as_list()[-1] is None:
        raise ValueError("last dimension shape must be known but is None")
    return shape.as_list()[-1]


def channels_of(data_format, known="NCHW NHWC"):
    """What core layers call a data format, one of those that are known; None: the usual one."""
    if data_format is None:
        return "channels_last"
    if data_format not in known.split():
        raise ValueError("data_format has to be either %s." % " or ".join(known.split()))
    return "channels_first" if data_format.startswith("NC") else "channels_last"
