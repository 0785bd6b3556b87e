"""tf.get_variable and tf.variable_scope: variables by name, created once and then shared."""

import contextlib
import enum
import functools
import inspect
import threading

from runnel import _core, dtypes
from runnel.core import convert, framework, tensor_shape
from runnel.core.framework import GraphKeys, Tensor
from runnel.ops import variables
from runnel.ops.partitioned_variables import PartitionedVariable, _PartitionInfo, _partitions, _slices
from runnel.ops.variables import VariableAggregation, VariableSynchronization  # noqa: F401


class _ReuseMode(enum.Enum):
    """The values of `reuse` besides True and False."""

    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE


def no_regularizer(_):
    """A regularizer that does nothing: use it to override the scope's."""
    return None


# --- Variable stores

_known = {}  # (type, name) -> whether calls of its objects accept an argument of that name


def _accepts(function, name):
    """Tells whether a function has an argument of that name."""
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__"):
        return name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    is_object = not inspect.isroutine(function) and not isinstance(function, functools.partial)
    key = (type(function), name)
    if is_object and key in _known:
        return _known[key]
    try:
        found = name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        found = False
    if is_object:
        _known[key] = found
    return found


def _takes_any(function):
    try:
        return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False


def _needs_no_arguments(function):
    try:
        return all(p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
                   for p in inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False


class _VariableStore:
    """The variables that get_variable has created in a graph, by name."""

    def __init__(self):
        self._vars = {}
        self._partitioned_vars = {}
        self._store_eager_variables = False

    def get_variable(self, name, shape=None, dtype=dtypes.float32, custom_getter=None, reuse=None,
                     trainable=None, synchronization=VariableSynchronization.AUTO,
                     aggregation=VariableAggregation.NONE, constraint=None, **kwargs):
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError("Passed a custom_getter which is not callable: %s" % (custom_getter,))
        if _core.current() is None:
            if not self._store_eager_variables and reuse:
                raise RuntimeError("When eager execution is enabled variable reuse is only supported "
                                   "when an EagerVariableStore is active.")
            if self._store_eager_variables:
                reuse = AUTO_REUSE
            kwargs["use_resource"] = True
        trainable = variables._checked_trainable(synchronization, trainable, name)
        kwargs.update(shape=shape, dtype=getattr(dtype, "base_dtype", dtype), reuse=reuse,
                      trainable=trainable, synchronization=synchronization, aggregation=aggregation)
        if custom_getter is None:
            return self._get(name, constraint=constraint, **kwargs)
        if _accepts(custom_getter, "constraint") or _takes_any(custom_getter):
            kwargs["constraint"] = constraint
        return custom_getter(getter=self._get, name=name, **kwargs)

    def _get(self, name, shape=None, dtype=dtypes.float32, initializer=None, regularizer=None,
             reuse=None, trainable=None, collections=None, caching_device=None, partitioner=None,
             validate_shape=True, use_resource=None, constraint=None,
             synchronization=VariableSynchronization.AUTO, aggregation=VariableAggregation.NONE):
        rest = dict(regularizer=regularizer, reuse=reuse, trainable=trainable, collections=collections,
                    caching_device=caching_device, validate_shape=validate_shape,
                    use_resource=use_resource, constraint=constraint, synchronization=synchronization,
                    aggregation=aggregation)
        is_scalar = isinstance(shape, (list, tuple)) and not shape
        if partitioner is not None and not is_scalar:
            if not callable(partitioner):
                raise ValueError("Partitioner must be callable, but received: %s" % (partitioner,))
            with framework.name_scope(None, skip_on_eager=False):
                return self._get_partitioned(name, partitioner, shape, dtype, initializer, rest)
        if reuse is True and partitioner is None and name in self._partitioned_vars:
            return self._get_partitioned(name, None, shape, dtype, initializer, rest)
        if name + "/part_0" in self._vars:
            raise ValueError("No partitioner was provided, but a partitioned version of the variable "
                             "was found: %s/part_0. Perhaps a variable of the same name was already "
                             "created with partitioning?" % name)
        return self._get_single(name, shape, dtype, initializer, None, **rest)

    def _get_partitioned(self, name, partitioner, shape, dtype, initializer, rest):
        from runnel import raw_ops
        if name in self._vars:
            raise ValueError("A partitioner was provided, but an unpartitioned version of the variable "
                             "was found: %s.  Perhaps a variable of the same name was already created "
                             "without partitioning?" % name)
        shape = tensor_shape.as_shape(shape)
        dtype = dtypes.as_dtype(dtype)
        if isinstance(initializer, Tensor):
            shape = shape.merge_with(initializer.shape)
        parts = None
        if not rest["reuse"] or partitioner:
            parts = _partitions(partitioner, shape, dtype)
        if name in self._partitioned_vars:
            return self._shared_partitioned(name, shape, dtype, parts, rest["reuse"])
        if rest["reuse"] is True:
            raise ValueError("PartitionedVariable %s does not exist, or was not created with "
                             "tf.get_variable(). Did you mean to set reuse=False or "
                             "reuse=tf.AUTO_REUSE in VarScope?" % name)
        made = []
        for i, (offset, size) in enumerate(_slices(shape.as_list(), parts)):
            full_name = "%s/part_%d" % (name, i)
            part, part_shape = initializer, size
            with framework.name_scope(full_name + "/PartitionedInitializer"):
                if initializer is None:
                    part = _default_initializer(name, dtype)
                elif not callable(initializer):
                    whole = convert.convert_to_tensor(
                        initializer, None if isinstance(initializer, Tensor) else dtype)
                    part = raw_ops.Slice(input=whole, begin=offset, size=size)
                    dtype, part_shape = part.dtype.base_dtype, None
            with framework.name_scope(None, skip_on_eager=False):
                variable = self._get_single(
                    full_name, part_shape, dtype, part,
                    _PartitionInfo(shape.as_list(), offset), **rest)
            variable._set_save_slice_info(variables.SaveSliceInfo(
                name, shape.as_list(), offset, size))
            made.append(variable)
        out = PartitionedVariable(name, shape, dtype, made, parts)
        self._partitioned_vars[name] = out
        return out

    def _shared_partitioned(self, name, shape, dtype, parts, reuse):
        if reuse is False:
            raise ValueError("Partitioned variable with name %s already exists. Did you mean to set "
                             "reuse=True or reuse=tf.AUTO_REUSE in VarScope?" % name)
        found = self._partitioned_vars[name]
        what = "Trying to reuse partitioned variable %s, but specified %s %s and found %s %s."
        if not shape.is_compatible_with(found.shape):
            raise ValueError(what % (name, "shape", shape, "shape", found.shape))
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(what % (name, "dtype", dtype.name, "dtype", found.dtype.name))
        if parts is not None and found._get_partitions() != list(parts):
            raise ValueError(what % (name, "partitions", parts, "partitions", found._get_partitions()))
        return found

    def _get_single(self, name, shape, dtype, initializer, partition_info, regularizer=None,
                    reuse=None, **rest):
        is_value = initializer is not None and not callable(initializer)
        if shape is not None and is_value:
            raise ValueError("If initializer is a constant, do not specify shape.")
        dtype = dtypes.as_dtype(dtype)
        if shape is not None:
            shape = tensor_shape.as_shape(shape)
        if name in self._vars:
            return self._shared(name, shape, dtype, reuse)
        if reuse is True:
            raise ValueError("Variable %s does not exist, or was not created with tf.get_variable(). "
                             "Did you mean to set reuse=tf.AUTO_REUSE in VarScope?" % name)
        if initializer is None:
            if shape is None:
                raise ValueError("Variable %s did not get an initializer, so its `shape` argument must "
                                 "be specified." % name)
            initializer = _default_initializer(name, dtype)
        variable_dtype = None
        if not is_value:
            if inspect.isclass(initializer):
                initializer = initializer()
            if shape is not None and shape.is_fully_defined():
                extra = {"partition_info": partition_info} if _accepts(
                    initializer, "partition_info") else {}
                initializer = functools.partial(initializer, shape.as_list(), dtype=dtype, **extra)
                variable_dtype = dtype.base_dtype
            elif not _needs_no_arguments(initializer):
                raise ValueError(
                    "The initializer passed is not valid. It should be a callable with no arguments "
                    "and the shape should not be provided or an instance of "
                    "`tf.keras.initializers.*' and `shape` should be fully defined.")
        variable = variables.Variable(initializer, name=name, dtype=variable_dtype, **rest)
        if _core.current() is not None or self._store_eager_variables:
            self._vars[name] = variable
        if regularizer:
            _add_loss(variable, name, regularizer)
        return variable

    def _shared(self, name, shape, dtype, reuse):
        found = self._vars[name]
        if reuse is False:
            text = ("Variable %s already exists, disallowed. Did you mean to set reuse=True or "
                    "reuse=tf.AUTO_REUSE in VarScope?" % name)
            where = found.op._defined_at if found.op is not None else None
            if where is not None:
                text += " Originally defined at:\n\n  File \"%s\", line %d, in %s\n" % tuple(where[:3])
            raise ValueError(text)
        if shape is not None and not shape.is_compatible_with(found.shape):
            raise ValueError("Trying to share variable %s, but specified shape %s and found shape %s." % (
                name, shape, found.shape))
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError("Trying to share variable %s, but specified dtype %s and found dtype %s." % (
                name, dtype.name, found.dtype.name))
        return found


def _default_initializer(name, dtype):
    from runnel.ops import init_ops
    if dtype.is_floating:
        return init_ops.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_unsigned or dtype.is_bool or dtype == dtypes.string:
        return init_ops.zeros_initializer()
    raise ValueError("An initializer for variable %s of %s is required" % (name, dtype.base_dtype))


def _add_loss(variable, name, regularizer):
    """Adds the regularization loss of a new variable to its collection.

    The regularizer is called once in the caller's scopes, to see whether it returns a loss, and once in the
    variable's own scope.
    """
    if regularizer(variable) is None:
        return
    with framework.colocate_with(variable.op), framework.name_scope(name + "/Regularizer/"):
        loss = regularizer(variable)
    framework.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


class EagerVariableStore:
    """Keeps the variables that get_variable creates in eager execution, so that they can be shared."""

    def __init__(self, store=None):
        self._store = store or _VariableStore()
        self._store._store_eager_variables = True

    def as_default(self):
        """A context manager in which get_variable uses this store."""
        return _with_store(self._store)

    def variables(self):
        """Returns all variables."""
        return sorted(self._store._vars.values(), key=lambda v: v.name)

    def trainable_variables(self):
        """Returns the trainable variables."""
        return [v for v in self.variables() if v.trainable]

    def non_trainable_variables(self):
        """Returns the variables that are not trainable."""
        return [v for v in self.variables() if not v.trainable]


@contextlib.contextmanager
def _with_store(store):
    kept = framework.get_default_graph()._scopes
    before = kept.get("variable_store")
    kept["variable_store"] = store
    try:
        yield
    finally:
        kept["variable_store"] = before


def _store():
    kept = framework.get_default_graph()._scopes
    store = kept.get("variable_store")
    if store is None:
        store = kept["variable_store"] = _VariableStore()
    return store


# --- Scopes

_INHERITED = ("initializer", "regularizer", "caching_device", "partitioner", "custom_getter", "dtype",
              "use_resource", "constraint")


class VariableScope:
    """A prefix for the names of variables, and defaults for the arguments of get_variable."""

    def __init__(self, reuse, name="", initializer=None, regularizer=None, caching_device=None,
                 partitioner=None, custom_getter=None, name_scope="", dtype=dtypes.float32,
                 use_resource=None, constraint=None):
        self._name = name
        self._name_scope = name_scope
        self._reuse = reuse
        self._initializer = initializer
        self._regularizer = regularizer
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._dtype = dtype
        self._use_resource = use_resource
        self._constraint = constraint
        if _core.current() is None:
            self._reuse = AUTO_REUSE
            self._use_resource = True

    @property
    def name(self):
        """The prefix, without its last "/"."""
        return self._name

    @property
    def original_name_scope(self):
        """The name scope that was opened with it, with its last "/"."""
        return self._name_scope

    @property
    def reuse(self):
        """Whether variables are shared: True, False or tf.AUTO_REUSE."""
        return self._reuse

    def reuse_variables(self):
        """From now on, shares existing variables instead of creating new ones."""
        self._reuse = True

    def get_collection(self, name):
        """Returns the members of a collection that are in this scope."""
        return framework.get_collection(name, self._name + "/" if self._name else "")

    def trainable_variables(self):
        """Returns the trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self):
        """Returns the global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self):
        """Returns the local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, var_store, name, shape=None, dtype=None, initializer=None, regularizer=None,
                     reuse=None, trainable=None, collections=None, caching_device=None,
                     partitioner=None, validate_shape=True, use_resource=None, custom_getter=None,
                     constraint=None, synchronization=VariableSynchronization.AUTO,
                     aggregation=VariableAggregation.NONE):
        """Returns the variable of that name in this scope, creating it if needed."""
        if _core.current() is None:
            reuse, use_resource = False, True
        elif reuse is None:
            reuse = self._reuse
        given = dict(initializer=initializer, regularizer=regularizer, caching_device=caching_device,
                     partitioner=partitioner, custom_getter=custom_getter, dtype=dtype,
                     use_resource=use_resource, constraint=constraint)
        with framework.name_scope(None, skip_on_eager=False):
            if dtype is not None and initializer is not None and not callable(initializer):
                found = convert.convert_to_tensor(initializer).dtype.base_dtype
                if found != dtypes.as_dtype(dtype):
                    raise ValueError("Initializer type '%s' and explicit dtype '%s' don't match." % (
                        found, dtype))
            for key in _INHERITED:
                if given[key] is None:
                    given[key] = getattr(self, "_" + key)
            return var_store.get_variable(
                self._name + "/" + name if self._name else name, shape=shape, reuse=reuse,
                trainable=trainable, collections=collections, validate_shape=validate_shape,
                synchronization=synchronization, aggregation=aggregation, **given)


def _add_property(name):
    def setter(self, value):
        setattr(self, "_" + name, value)

    setattr(VariableScope, name, property(lambda self: getattr(self, "_" + name)))
    setattr(VariableScope, "set_" + name, setter)


for _name in _INHERITED:
    _add_property(_name)


class _Scopes(threading.local):
    """The current scope of each thread, and how often each scope was opened."""

    def __init__(self):
        self.current = VariableScope(False)
        self.counts = {}
        self.below = {}  # scope -> scopes that were opened inside it

    def open(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1
        at = name.rfind("/")
        while at > 0:
            self.below.setdefault(name[:at], set()).add(name)
            at = name.rfind("/", 0, at)

    def forget_below(self, name):
        for inner in self.below.pop(name, ()):
            self.counts[inner] = 0


def _scopes():
    kept = framework.get_default_graph()._scopes
    scopes = kept.get("variable_scopes")
    if scopes is None:
        scopes = kept["variable_scopes"] = _Scopes()
    return scopes


def get_variable_scope():
    """Returns the current variable scope."""
    return _scopes().current


def get_variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=None,
                 collections=None, caching_device=None, partitioner=None, validate_shape=True,
                 use_resource=None, custom_getter=None, constraint=None,
                 synchronization=VariableSynchronization.AUTO, aggregation=VariableAggregation.NONE):
    """Returns the variable of that name in the current variable scope: a new one, or a shared one if the scope reuses.

    Args:
      name: name of the variable in the scope.
      shape: shape of a new variable.
      dtype: type of a new variable; by default the scope's, which is float32.
      initializer: a function (shape, dtype) that returns the initial value, or the value itself. By default the
        scope's, else Glorot's uniform initializer for floats and zeros for integers.
      regularizer: a function of the variable that returns a loss for GraphKeys.REGULARIZATION_LOSSES.
      trainable: whether optimizers update it by default.
      collections: names of collections; by default that of the global variables.
      caching_device: where reads are cached.
      partitioner: a function (shape, dtype) that returns the number of parts on each axis.
      validate_shape: whether the shape of the initial value must be known.
      use_resource: creates a resource variable instead of a reference variable.
      custom_getter: a function (getter, name, ...) that is called instead of creating the variable.
      constraint: a function that optimizers apply to the value after each update.
    """
    return get_variable_scope().get_variable(
        _store(), name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
        trainable=trainable, collections=collections, caching_device=caching_device,
        partitioner=partitioner, validate_shape=validate_shape, use_resource=use_resource,
        custom_getter=custom_getter, constraint=constraint, synchronization=synchronization,
        aggregation=aggregation)


def get_local_variable(name, shape=None, dtype=None, initializer=None, regularizer=None,
                       trainable=False, collections=None, caching_device=None, partitioner=None,
                       validate_shape=True, use_resource=None, custom_getter=None, constraint=None,
                       synchronization=VariableSynchronization.AUTO,
                       aggregation=VariableAggregation.NONE):
    """Like get_variable, for a variable of this process only, which is not saved."""
    collections = list(collections or []) + [GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
        trainable=False, collections=collections, caching_device=caching_device,
        partitioner=partitioner, validate_shape=validate_shape, use_resource=use_resource,
        custom_getter=custom_getter, constraint=constraint, synchronization=synchronization,
        aggregation=aggregation)


def _wrapped(inner, outer):
    """Returns a custom getter that calls `inner`; the getter that `inner` calls is `outer`."""
    if outer is None:
        return inner

    def wrapped(getter, *args, **kwargs):
        return inner(functools.partial(outer, getter), *args, **kwargs)
    return wrapped


class variable_scope:  # noqa: N801
    """A context manager: `with tf.variable_scope("layer1")` gives variables and operations the prefix "layer1/".

    Args:
      name_or_scope: a name, or a scope that was opened before.
      default_name: a name that is made unique, used if the first is None.
      values: tensors that determine the graph.
      initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource, constraint:
        defaults for get_variable in the scope.
      reuse: True shares variables, tf.AUTO_REUSE creates or shares them, None inherits.
      auxiliary_name_scope: if False, operations do not get the prefix.
    """

    def __init__(self, name_or_scope, default_name=None, values=None, initializer=None,
                 regularizer=None, caching_device=None, partitioner=None, custom_getter=None,
                 reuse=None, dtype=None, use_resource=None, constraint=None,
                 auxiliary_name_scope=True):
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse is False:
            reuse = None
        if reuse not in (True, None, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError("The auxiliary_name_scope must be `True` or `False`, while get %r" % (
                auxiliary_name_scope,))
        if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse
        self._auxiliary = auxiliary_name_scope
        self._given = dict(initializer=initializer, regularizer=regularizer,
                           caching_device=caching_device, partitioner=partitioner,
                           custom_getter=custom_getter, dtype=dtype, use_resource=use_resource,
                           constraint=constraint)
        self._graph = None
        if _core.current() is not None:
            graph = framework.get_default_graph()
            self._graph = framework._graph_of(values or (), graph)
        self._entered = []
        self._names = None  # the name scope of the first time, entered again the next time

    def __enter__(self):
        contexts = contextlib.ExitStack()
        try:
            if self._graph is not None and not framework.get_default_graph()._building_function:
                contexts.enter_context(self._graph.as_default())
            scopes = _scopes()
            before = scopes.current
            name_scope = self._enter_names(contexts)
            scope, counts = self._open(scopes, before, name_scope)
        except BaseException:
            contexts.close()
            raise
        scopes.current = scope
        self._entered.append((contexts, scopes, before, scope, counts))
        return scope

    def _enter_names(self, contexts):
        """Enters the name scope. Returns its name with "/", or None if there is none."""
        name = self._name_or_scope
        if not self._auxiliary:
            here = framework.get_default_graph().get_name_scope()
            return contexts.enter_context(framework.name_scope(here + "/" if here else None))
        if self._names is not None:
            return contexts.enter_context(framework.name_scope(self._names, skip_on_eager=False))
        if name is None:
            name = self._default_name
        elif isinstance(name, VariableScope):
            name = name.name.split("/")[-1]
        if not name:
            return None
        self._names = contexts.enter_context(framework.name_scope(name, skip_on_eager=False))
        return self._names

    def _open(self, scopes, before, name_scope):
        name = self._name_or_scope
        if name is None:
            if self._reuse:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
            name = _unique_scope(scopes, before, self._default_name)
        if isinstance(name, VariableScope):
            base, full = name, name.name
            scope = VariableScope(self._reuse or base.reuse, name=full,
                                  name_scope=base.original_name_scope)
        else:
            base, full = before, before.name + "/" + name if before.name else name
            scope = VariableScope(self._reuse or base.reuse, name=full,
                                  name_scope=name if name_scope is None else name_scope)
        for key in _INHERITED:
            value = self._given[key]
            if value is None:
                value = getattr(base, key)
            elif key == "custom_getter":
                value = _wrapped(value, base.custom_getter)
            setattr(scope, "_" + key, value)
        scopes.open(full)
        counts = dict(scopes.counts) if isinstance(name, VariableScope) else full
        return scope, counts

    def __exit__(self, *exc):
        contexts, scopes, before, scope, counts = self._entered.pop()
        try:
            if scopes.current is not scope:
                raise RuntimeError("Improper nesting of variable_scope.")
            if isinstance(counts, dict):
                scopes.counts = counts
            else:
                scopes.forget_below(counts)
            scopes.current = before
        finally:
            contexts.__exit__(*exc)


def _unique_scope(scopes, current, prefix):
    name = current.name + "/" + prefix if current.name else prefix
    if not scopes.counts.get(name):
        return prefix
    number = 1
    while scopes.counts.get("%s_%d" % (name, number)):
        number += 1
    return "%s_%d" % (prefix, number)


def variable_op_scope(values, name_or_scope, default_name=None, initializer=None, regularizer=None,
                      caching_device=None, partitioner=None, custom_getter=None, reuse=None,
                      dtype=None, use_resource=None, constraint=None):
    """The old spelling of variable_scope."""
    variables.warn_once("variable_op_scope", "variable_scope(name, default_name, values)")
    return variable_scope(name_or_scope, default_name, values, initializer, regularizer,
                          caching_device, partitioner, custom_getter, reuse, dtype, use_resource,
                          constraint)


def variable(initial_value=None, trainable=None, collections=None, validate_shape=True, caching_device=None, name=None,
             dtype=None, use_resource=None, constraint=None, synchronization=None, aggregation=None, shape=None):
    """Creates a tf.Variable."""
    kwargs = {"synchronization": synchronization, "aggregation": aggregation}
    return variables.Variable(
        initial_value, trainable, collections, validate_shape, caching_device, name, dtype=dtype, use_resource=use_resource,
        constraint=constraint, shape=shape, **{key: value for key, value in kwargs.items() if value is not None})


@contextlib.contextmanager
def variable_creator_scope(variable_creator):
    """A context manager in which tf.Variable calls `variable_creator(next_creator, **kwargs)`."""
    kept = framework.get_default_graph()._scopes
    before = kept.get("variable_creators", ())
    kept["variable_creators"] = before + (variable_creator,)
    try:
        yield
    finally:
        kept["variable_creators"] = before


def create_partitioned_variables(shape, slicing, initializer, dtype=dtypes.float32, trainable=True,
                                 collections=None, name=None, reuse=None):
    """Creates the parts of a new variable. Returns them as a list."""
    if len(shape) != len(slicing):
        raise ValueError("The 'shape' and 'slicing' of a partitioned Variable must have the length: "
                         "shape: %s, slicing: %s" % (shape, slicing))
    if len(shape) < 1:
        raise ValueError("A partitioned Variable must have rank at least 1: shape: %s" % (shape,))
    with variable_scope(name, "PartitionedVariable", reuse=reuse):
        scope = get_variable_scope()
        with framework.name_scope(None):
            out = _store()._get(
                scope.name, shape=shape, dtype=dtype, initializer=initializer, reuse=scope.reuse,
                trainable=trainable, collections=collections, regularizer=scope.regularizer,
                caching_device=scope.caching_device, use_resource=scope.use_resource,
                constraint=scope.constraint, partitioner=lambda **unused: list(slicing))
    return list(out)
