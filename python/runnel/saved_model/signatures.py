"""Signatures: functions from named tensors to named tensors, for serving."""

import collections.abc
import re

from runnel import dtypes, nest, raw_ops
from runnel.core import framework
from runnel.core.composite_specs import VariableSpec
from runnel.core.protobuf import message_class
from runnel.core.trackable import SaveType, Trackable, is_function
from runnel.core.type_spec import TensorSpec, TypeSpec
from runnel.eager.def_function import Function
from runnel.eager.tracing import trace, visible_functions
from runnel.saved_model import revived_types
from runnel.saved_model.captures import Captures
from runnel.saved_model.writing import tell_of_new_names


class _SignatureMap(collections.abc.Mapping, Trackable):
    """The signatures of a model by name."""

    def __init__(self, signatures=()):
        self._signatures = dict(signatures)

    def _add_signature(self, name, concrete_function):
        self._signatures[name] = concrete_function

    def __getitem__(self, key):
        return self._signatures[key]

    def __iter__(self):
        return iter(self._signatures)

    def __len__(self):
        return len(self._signatures)

    def __repr__(self):
        return "_SignatureMap(%s)" % (self._signatures,)

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, cache=None, **kwargs):
        return {key: value for key, value in self.items() if is_function(value)} if save_type == SaveType.SAVEDMODEL else {}


revived_types.register_revived_type("signature_map", lambda obj: isinstance(obj, _SignatureMap), [revived_types.VersionedTypeRegistration(
    object_factory=lambda proto: _SignatureMap(), version=1, min_producer_version=1, min_consumer_version=1,
    setter=_SignatureMap._add_signature)])


class SignatureFunction(Trackable):
    """A signature that is about to be written."""

    def __init__(self, captures):
        self.captures = captures


def canonicalize(root, children, signatures):
    """Returns {name: Captures} of the requested signatures; by default the one function with an input_signature."""
    if signatures is None:
        signatures = _default_signature(root, children)
    if signatures is None:
        signatures = {}
    if not isinstance(signatures, collections.abc.Mapping):
        signatures = {"serving_default": signatures}
    made = {key: _as_signature(key, function) for key, function in signatures.items()}
    tell_of_new_names(signatures.values())
    return made


def _default_signature(root, children):
    """Returns the function that an object names, or else the only one with an input_signature and results, or None."""
    try:
        default = getattr(root, "_default_save_signature", None)
    except Exception:  # noqa: BLE001  a property of a library's class may fail in its own way
        default = None
    if default is not None:
        return default if is_function(default) else default()
    fit = [concrete for concrete in (_concrete_of(child) for child in children.values() if is_function(child)) if concrete is not None]
    fit = [concrete for concrete in fit if _is_valid(concrete.described().outputs)]
    return fit[0] if len(fit) == 1 else None


def _is_valid(outputs):
    """Tells whether a function with such results may be a signature."""
    try:
        return bool(_named_outputs(outputs, "", ""))
    except ValueError:
        return False


def _concrete_of(function):
    """Returns the one trace of a function that a signature may call, or None."""
    if hasattr(function, "get_concrete_function"):
        if getattr(function, "input_signature", None) is None:
            return None
        return function.get_concrete_function()
    return function if hasattr(function, "described") else None


def _named_outputs(outputs, name, key):
    """Returns {name: spec} of what a signature returns."""
    if not isinstance(outputs, collections.abc.Mapping):
        if hasattr(outputs, "_asdict"):
            outputs = outputs._asdict()
        else:
            rows = outputs if isinstance(outputs, collections.abc.Sequence) else [outputs]
            outputs = {"output_%d" % i: x for i, x in enumerate(rows)}
    for label, value in outputs.items():
        if not isinstance(label, str):
            raise ValueError("Got a dictionary with a non-string key %r in the output of the function %s used to generate the SavedModel "
                             "signature %r." % (label, name, key))
        if not isinstance(value, TypeSpec):
            raise ValueError("Got a non-Tensor value %r for key %r in the output of the function %s used to generate the SavedModel signature "
                             "%r. Outputs for functions used as signatures must be a single Tensor, a sequence of Tensors, or a dictionary from "
                             "string to Tensor." % (value, label, name, key))
    return dict(outputs)


def _as_signature(key, function):
    if isinstance(function, Captures):
        return function
    concrete = _concrete_of(function) if is_function(function) or hasattr(function, "described") else None
    if concrete is None and isinstance(function, Function) and len(function._list_all_concrete_functions()) == 1:
        concrete = function._list_all_concrete_functions()[0]
    if concrete is None:
        raise ValueError("Expected a TensorFlow function for which to generate a signature, but got %s. Only `tf.functions` with an input "
                         "signature or concrete functions can be used as a signature." % (function,))
    graph = getattr(concrete, "graph", None)
    if graph is not None and graph._scopes.get("unsaveable"):
        raise ValueError("The signature %r is a concrete function that changes all copies of a variable of a strategy, or reads their aggregate; a "
                         "model has one copy. Give tf.saved_model.save a tf.function with an input_signature, which is traced for the model: "
                         "signatures=f_with_input_signature instead of signatures=f.get_concrete_function()." % key)
    inside = concrete.described()
    names = argument_names(concrete, inside)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError("Got non-flat/non-unique argument names for SavedModel signature '%s': more than one argument to '%s' was named '%s'. "
                         "Signatures have one Tensor per named input, so to have predictable names Python functions used to generate these "
                         "signatures should avoid *args and Tensors in nested structures unless unique names are specified for each. Use "
                         "tf.TensorSpec(..., name=...) to provide a name for a Tensor input." % (key, inside.name, twice))
    _check_inputs(inside)
    specs = dict(zip(names, tensor_specs(inside.inputs)))
    outputs = _named_outputs(inside.outputs, inside.name, key)
    order, results = sorted(specs), sorted(outputs)
    flat_names = _flat_names(inside.outputs, outputs)

    def wrapped(*tensors):
        given = dict(zip(order, tensors))
        flat = iter(concrete.call_flat([given[name] for name in names]))
        by_name = {name: [next(flat) for _ in outputs[name]._flat_specs()] for name in flat_names}
        return [raw_ops.Identity(x) for name in results for x in by_name[name]]
    traced = trace(wrapped, [(specs[n].dtype, specs[n].shape) for n in order], "__inference_signature_wrapper_%s" % getattr(
        function, "__name__", key), names=[re.sub("[^a-z0-9_]", "_", n.lower()) for n in order], attributes=_passed_on(inside.name))
    made = Captures(traced.name, traced.captured,
                    ((), {n: TensorSpec(specs[n].shape, specs[n].dtype, n) for n in order}),
                    {n: _called(outputs[n], n) for n in results}, order, traced.dtypes)
    made.defaults = _defaults(function, names)
    return made


def _defaults(function, names):
    """Returns {name: tensor} of the last arguments of a tf.function that have tensors as defaults."""
    if not isinstance(function, Function):
        return {}
    values = nest.flatten(function.function_spec.fullargspec.defaults or ())
    return {name: value for name, value in zip(names[len(names) - len(values):], values) if isinstance(value, framework.Tensor)}


# Attributes of a function that its signature has, too.
_PASSED_ON = ("api_implements", "api_preferred_device", "disable_summaries_at_runtime", "go_backwards", "_implements", "experimental_ints_on_device",
              "_noinline", "function_runs_at_most_once", "runtime_constant_optimization", "_tf_data_function", "time_major", "_OutputsOnOpDevice")


def _passed_on(name):
    """Returns {name: serialized AttrValue} of those attributes of a function of the library."""
    data = visible_functions().get(name)
    found = {} if data is None else message_class("FunctionDef").FromString(data).attr
    return {key: found[key].SerializeToString() for key in _PASSED_ON if key in found}


def _called(spec, name):
    return TensorSpec(spec.shape, spec.dtype, name) if isinstance(spec, TensorSpec) else spec


def _check_inputs(inside):
    if any(isinstance(x, VariableSpec) for x in nest.flatten(list(inside.inputs))):
        raise ValueError("Unable to serialize concrete_function '%s'with tf.Variable input. Functions that expect tf.Variable inputs cannot be "
                         "exported as signatures." % inside.name)


def tensor_specs(inputs):
    """Returns the TensorSpecs of the tensors that a function takes: of composite arguments all, of variables the handle."""
    found = []
    for leaf in nest.flatten(list(inputs)):
        if isinstance(leaf, VariableSpec):
            found.append(TensorSpec((), dtypes.resource))
        elif isinstance(leaf, TypeSpec):
            found += leaf._flat_specs()
    return found


def _flat_names(structure, outputs):
    """Returns the names of the results in the order in which they are flattened."""
    return sorted(outputs) if isinstance(structure, collections.abc.Mapping) else list(outputs)


def argument_names(function, inside):
    """Returns a name for each tensor that a function takes."""
    own = getattr(function, "_arg_keywords", None)
    if own is not None:
        return list(own)
    if inside.keywords:
        return list(inside.keywords)
    names, taken = [], set()
    for spec in tensor_specs(inside.inputs):
        name = spec.name or "args_%d" % len(names)
        while name in taken:
            name += "_1"
        taken.add(name)
        names.append(name)
    return names
