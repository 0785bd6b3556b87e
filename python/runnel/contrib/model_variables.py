"""Variables of models, and slim's collections of them."""

from runnel import dtypes, logging
from runnel.contrib.arg_scope import add_arg_scope
from runnel.core.framework import (
    GraphKeys, add_to_collection, device as device_scope, get_collection, get_default_graph)
from runnel.ops.variable_scopes import get_variable_scope
from runnel.train.training_util import create_global_step, get_global_step, get_or_create_global_step


@add_arg_scope
def variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=True,
             collections=None, caching_device=None, device="", partitioner=None, custom_getter=None,
             use_resource=None, **_):
    """Returns the variable of this name, creating it if needed, in GLOBAL_VARIABLES and `collections`."""
    collections = list(collections if collections is not None else [GraphKeys.GLOBAL_VARIABLES])
    collections = list(dict.fromkeys(collections))  # without duplicates
    from runnel.ops.variable_scopes import get_variable
    getter = get_variable
    if custom_getter is not None:
        def getter(*args, **kwargs):
            return custom_getter(*args, reuse=get_variable_scope().reuse, **kwargs)
    with device_scope(device or ""):
        return getter(name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
                      trainable=trainable, collections=collections, caching_device=caching_device,
                      partitioner=partitioner, use_resource=use_resource)


@add_arg_scope
def model_variable(name, shape=None, dtype=dtypes.float32, initializer=None, regularizer=None,
                   trainable=True, collections=None, caching_device=None, device=None,
                   partitioner=None, custom_getter=None, use_resource=None, **_):
    """Like variable, and also in MODEL_VARIABLES."""
    collections = list(collections or []) + [GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
                    trainable=trainable, collections=collections, caching_device=caching_device,
                    device=device or "", partitioner=partitioner, custom_getter=custom_getter,
                    use_resource=use_resource)


def add_model_variable(var):
    """Adds a variable to MODEL_VARIABLES, once."""
    if not any(var is other for other in get_collection(GraphKeys.MODEL_VARIABLES)):
        add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def local_variable(initial_value, validate_shape=True, name=None, use_resource=None):
    """Creates a variable that checkpoints do not contain."""
    from runnel.ops.variables import VariableV1
    return VariableV1(initial_value, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES],
                      validate_shape=validate_shape, name=name, use_resource=use_resource)


def global_variable(initial_value, validate_shape=True, name=None, use_resource=None):
    """Creates a variable that is not trained."""
    from runnel.ops.variables import VariableV1
    return VariableV1(initial_value, trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES],
                      validate_shape=validate_shape, name=name, use_resource=use_resource)


def get_variables(scope=None, suffix=None, collection=GraphKeys.GLOBAL_VARIABLES):
    """Returns the variables of a scope whose names end in `suffix`."""
    scope = getattr(scope, "name", scope)
    if suffix is not None:
        suffix = suffix if ":" in suffix else suffix + ":0"
        scope = (scope or "") + ".*" + suffix
    return get_collection(collection, scope)


def get_model_variables(scope=None, suffix=None):
    """Returns the model variables of a scope."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope=None, suffix=None):
    """Returns the local variables of a scope."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope=None, suffix=None):
    """Returns the trainable variables of a scope."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix, scope=None):
    """Returns the variables whose names end in `suffix`."""
    return get_variables(scope=scope, suffix=suffix)


def get_variables_by_name(given_name, scope=None):
    """Returns the variables whose last name is `given_name`."""
    return get_variables(scope=scope, suffix="/" + given_name + ":|^" + given_name + ":")


def get_unique_variable(var_op_name):
    """Returns the only variable of this name."""
    found = [v for v in get_variables(scope=var_op_name) if v.op.name == var_op_name]
    if not found:
        raise ValueError("Variable %s not found" % var_op_name)
    return found[0]


def get_variables_to_restore(include=None, exclude=None):
    """Returns the variables of the scopes in `include` (by default all) and not of those in `exclude`."""
    chosen = []
    for scope in [None] if include is None else include:
        chosen += [v for v in get_variables(scope) if not any(v is other for other in chosen)]
    unwanted = {v.op.name for scope in exclude or () for v in get_variables(scope)}
    return [v for v in chosen if v.op.name not in unwanted]


def filter_variables(var_list, include_patterns=None, exclude_patterns=None, reg_search=True):
    """Returns the variables that match one of `include_patterns` (by default all) and none of `exclude_patterns`."""
    import re
    match = re.search if reg_search else re.match

    def is_one(var, patterns):
        return any(match(pattern, var.op.name) for pattern in patterns)

    if include_patterns:
        var_list = [v for v in var_list if is_one(v, include_patterns)]
    return [v for v in var_list if not is_one(v, exclude_patterns or ())]


def get_variable_full_name(var):
    """Returns the name of a variable in checkpoints, without the suffix of a partition."""
    info = getattr(var, "_save_slice_info", None)
    return info.full_name if info else var.op.name


def assign_from_values(var_names_to_values):
    """Returns (op, feed_dict) that set variables."""
    from runnel.ops.array_ops import placeholder
    from runnel.ops.control_flow import group
    feeds, assignments = {}, []
    for name, value in var_names_to_values.items():
        var = get_unique_variable(name)
        given = placeholder(var.dtype.base_dtype, shape=getattr(value, "shape", None))
        feeds[given] = value.reshape(var.shape.as_list())
        assignments.append(var.assign(_reshaped(given, var)))
    return group(*assignments), feeds


def _reshaped(value, var):
    from runnel.ops.array_ops import reshape
    return reshape(value, var.shape.as_list())


def assign_from_values_fn(var_names_to_values):
    """Returns a function of a session that sets variables."""
    assign, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(assign, feeds)


def _by_checkpoint_name(var_list):
    if isinstance(var_list, dict):
        return {name: list(v) if isinstance(v, (list, tuple)) else [v] for name, v in var_list.items()}
    grouped = {}
    for var in var_list:
        grouped.setdefault(get_variable_full_name(var), []).append(var)
    return grouped


def assign_from_checkpoint(model_path, var_list, ignore_missing_vars=False):
    """Returns (op, feed_dict) that restore variables, given as a list or {name: variable}, from a checkpoint."""
    from runnel.ops.array_ops import placeholder
    from runnel.ops.control_flow import group
    from runnel.train.checkpoint_reader import NewCheckpointReader
    reader = NewCheckpointReader(model_path)
    feeds, assignments = {}, []
    for name, parts in _by_checkpoint_name(var_list).items():
        if not reader.has_tensor(name):
            text = "Checkpoint is missing variable [%s]" % name
            if not ignore_missing_vars:
                raise ValueError(text)
            logging.warning(text)
            continue
        value = reader.get_tensor(name)
        for var in parts:
            info, part = getattr(var, "_save_slice_info", None), value
            if info:
                part = value[tuple(slice(at, at + size) for at, size in zip(info.var_offset, info.var_shape))]
            if list(part.shape) != var.shape.as_list():
                raise ValueError("Total size of new array must be unchanged for %s lh_shape: [%s], rh_shape: [%s]"
                                 % (name, part.shape, var.shape))
            given = placeholder(var.dtype.base_dtype, shape=part.shape, name="placeholder/" + var.op.name)
            feeds[given] = part
            assignments.append(var.assign(given))
    return group(*assignments), feeds


def assign_from_checkpoint_fn(model_path, var_list, ignore_missing_vars=False, reshape_variables=False):
    """Returns a function of a session that restores variables from a checkpoint; None if there are none."""
    if not var_list:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        from runnel.train.checkpoint_reader import NewCheckpointReader
        reader = NewCheckpointReader(model_path)
        named = var_list if isinstance(var_list, dict) else {v.op.name: v for v in var_list}
        var_list = {}
        for name, var in named.items():
            if reader.has_tensor(name):
                var_list[name] = var
            else:
                logging.warning("Variable %s missing in checkpoint %s", name, model_path)
        if not var_list:
            logging.warning("No Variables to restore")
            return None
    from runnel.train.saver import Saver
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


class VariableDeviceChooser:
    """Distributes variables over parameter servers, round-robin."""

    def __init__(self, num_tasks=0, job_name="ps", device_type="CPU", device_index=0, replica=None):
        self._tasks, self._job, self._next = num_tasks, job_name, 0
        self._device, self._replica = (device_type, device_index), replica

    def __call__(self, op):
        from runnel.core.device_spec import DeviceSpec
        spec = DeviceSpec(device_type=self._device[0], device_index=self._device[1], replica=self._replica)
        if self._tasks > 0:
            spec.job, spec.task = self._job, self._next
            self._next = (self._next + 1) % self._tasks
        return spec.to_string()




def get_name_scope():
    """Returns the current name scope."""
    return get_default_graph().get_name_scope()


__all__ = [
    "variable", "model_variable", "add_model_variable", "local_variable", "global_variable", "get_variables",
    "get_model_variables", "get_local_variables", "get_trainable_variables", "get_variables_by_suffix",
    "get_variables_by_name", "get_unique_variable", "get_variables_to_restore", "filter_variables",
    "get_variable_full_name", "assign_from_values", "assign_from_values_fn", "assign_from_checkpoint",
    "assign_from_checkpoint_fn", "VariableDeviceChooser", "get_name_scope", "create_global_step",
    "get_global_step", "get_or_create_global_step"]
