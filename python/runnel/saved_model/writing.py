"""Helpers of the writers of SavedModels: names, functions that others call, files."""

import logging
import os
import re

from runnel.core.protobuf import message_class
from runnel.eager.def_function import Function
from runnel.io import any_files

_MOST_NAMES = 5  # in a message


def untracked(captures, tensor):
    """Returns the error of a function that reads a resource of no object of the model."""
    from runnel.core.trackable_resource import owner_of
    from runnel.ops.resource_variable import variable_of
    if captures.keywords is None:
        return KeyError("Failed to add concrete function '%s' to object-based SavedModel as it captures tensor %s which is unsupported or not "
                        "reachable from root. One reason could be that a stateful object or a variable that the function depends on is not "
                        "assigned to an attribute of the serialized trackable object (see SaveTest.test_captures_unreachable_variable)." % (
                            captures.name, tensor))
    owner = variable_of(tensor)
    owner = owner_of(tensor) if owner is None else owner
    return AssertionError(
        "Tried to export a function which references an 'untracked' resource. TensorFlow objects (e.g. tf.Variable) captured by functions must be "
        "'tracked' by assigning them to an attribute of a tracked object or assigned to an attribute of the main object directly. See the "
        "information below:\n\tFunction name = %s\n\tCaptured Tensor = %s\n\tTrackable referencing this tensor = %s\n\tInternal Tensor = %s" % (
            captures.name, tensor, owner, tensor))


def constant_of(tensor):
    """Returns the value of a tensor that a function captures and no object of the model owns."""
    from runnel.core.tensor_util import constant_value
    value = constant_value(tensor)
    if value is None:
        raise ValueError("Unable to save function because it captures graph tensor %s from a parent function which cannot be converted to a "
                         "constant with `tf.get_static_value`." % (tensor,))
    return value


def verify_ops(graph_def, namespace_whitelist):
    """Raises ValueError if a graph has ops of namespaces ("Namespace>Op") that are not listed; None lists all."""
    if namespace_whitelist is None:
        return
    nodes = [node.op for node in graph_def.node] + [node.op for function in graph_def.library.function for node in function.node_def]
    bad = sorted({op for op in nodes if ">" in op and op.split(">")[0] not in namespace_whitelist})
    if bad:
        raise ValueError(
            "Attempted to save ops from non-whitelisted namespaces to SavedModel: %s.\nPlease verify that these ops should be saved, since "
            "they must be available when loading the SavedModel. If loading from Python, you must import the library defining these ops. "
            "From C++, link the custom ops to the serving binary. Once you've confirmed this, add the following namespaces to the "
            "`namespace_whitelist` argument in tf.saved_model.SaveOptions: %s." % (bad, {op.split(">")[0] for op in bad}))


def safe_name(name):
    """Returns a name of an argument as one that a node may have."""
    if re.match(r"^[A-Za-z0-9.][A-Za-z0-9_.\\-]*$", name):
        return name
    return re.sub(r"[^A-Za-z0-9_.\\-]", "_", re.sub(r"^[^A-Za-z0-9.]*", "", name))


def names_of(function):
    """Returns the names of the library functions of a tf.function, a trace, or a collection of traces."""
    import collections.abc
    if isinstance(function, Function):
        return [concrete.described().name for concrete in function._list_all_concrete_functions_for_serialization()]
    if hasattr(function, "described"):
        return [function.described().name]
    if isinstance(function, collections.abc.Iterable) and all(hasattr(x, "described") for x in function):
        return [x.described().name for x in function]
    raise TypeError("Unsupported type f%s. Functions in `function_aliases` should be created by tf.function, or concrete functions, or "
                    "collections of concrete functions." % type(function))


def tell_of_untraced(objects):
    """Logs the functions among the objects of a model that have no traces: those cannot be called when it is loaded."""
    names = [obj._name for obj in objects if isinstance(obj, Function) and not obj._list_all_concrete_functions()]
    if names:
        logging.getLogger("absl").info(
            "Found untraced functions such as %s while saving (showing %d of %d). These functions will not be directly callable after loading.",
            ", ".join(names[:_MOST_NAMES]), min(_MOST_NAMES, len(names)), len(names))


def tell_of_new_names(functions):
    """Logs the arguments of signatures whose names a FunctionDef cannot have: those get other ones in its signature."""
    told = 0
    for function in functions:
        concrete = function.get_concrete_function() if getattr(function, "input_signature", None) is not None else function
        names = getattr(concrete, "_arg_keywords", None) or ()
        renamed = {name: re.sub("[^a-z0-9_]", "_", name.lower()) for name in names}
        renamed = {name: new for name, new in renamed.items() if name != new}
        if renamed and told < _MOST_NAMES:
            told += 1
            logging.getLogger("absl").info(
                "Function `%s` contains input name(s) %s with unsupported characters which will be renamed to %s in the SavedModel.",
                concrete.graph.name, ", ".join(renamed), ", ".join(renamed.values()))


def replace_file(path, data):
    """Writes a file atomically: readers see the old one or the new one."""
    if any_files.has_scheme(path):
        with any_files.open(path, "wb") as file:
            file.write(data)
        return
    temporary = path + ".tmp%d" % os.getpid()
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _called(definition):
    """Returns the names of the functions that a FunctionDef's nodes call."""
    for node in definition.node_def:
        for key in node.attr:
            value = node.attr[key]
            if value.WhichOneof("value") == "func":
                yield value.func.name
            for function in value.list.func:
                yield function.name


def reachable(names, known):
    """Returns {name: serialized FunctionDef} of functions and of those they call, among the `known` ones."""
    order, waiting = {}, list(names)
    while waiting:
        name = waiting.pop()
        if name in order or name not in known:
            continue
        order[name] = known[name]
        waiting += _called(message_class("FunctionDef").FromString(known[name]))
    return order
