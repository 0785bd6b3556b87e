"""Defun: Python functions as functions of a graph, in the style of 1.x (tensorflow.python.framework.function).

A call is a node whose op is the function. Its gradient is the function's own, or one that is given:
`python_grad_func(op, *grads)`, or `grad_func`, a Defun of the inputs and the incoming gradients.
"""

import itertools

from runnel import _core, dtypes, errors, raw_ops
from runnel.core import framework
from runnel.core.convert import convert_to_tensor
from runnel.core.gradients_impl import RegisterGradient
from runnel.core.protobuf import message_class
from runnel.eager.func_graph import FuncGraph

_numbers = itertools.count()
_TYPE_NAMES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "int32": "i32", "uint8": "i8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "int16": "i16", "int8": "i8", "string": "s", "complex64": "c64", "complex128": "c128", "int64": "i64", "bool": "b", "qint8": "qi8",
    "quint8": "qu8", "qint16": "qi16", "quint16": "qu16", "qint32": "qi32", "bfloat16": "b16", "float8_e5m2": "f8e5m2",
    "float8_e4m3fn": "f8e4m3fn"}


class Defun:
    """A decorator: @Defun(tf.float32, func_name="f").

    Args:
      *input_types: the types of the arguments; without them, each call decides, and the function has a definition per types.
      func_name: the name in the library; by default that of the function with a hash of the definition.
      grad_func, python_grad_func: the gradient, see above.
      out_names: the names of the results in the definition.
      shape_func: returns the shapes of the results of a call, which is its argument.
      capture_by_value: whether the body gets copies of the operations outside that it reads, instead of arguments for them.
      capture_resource_var_by_value: whether tf.get_variable returns values in the body, not resource variables.
      noinline, compiled, _implements, ...: attributes of the function and of its calls.
    """

    def __init__(self, *input_types, **kwargs):
        self._input_types = tuple(dtypes.as_dtype(kind) for kind in input_types)
        self._options = kwargs

    def __call__(self, func):
        if not callable(func):
            raise ValueError("Function %s must be a callable." % (func,))
        import inspect
        parameters = list(inspect.signature(func).parameters.values())
        defaults = [p.default for p in parameters if p.default is not p.empty]
        keywords = [p.name for p in parameters if p.kind == p.VAR_KEYWORD]
        if defaults or keywords:
            raise ValueError("Functions with argument defaults or keywords arguments are not supported. %s has defaults %s and keywords %s." % (
                func, tuple(defaults) or None, keywords[0] if keywords else None))
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        most = 1000000 if any(p.kind == p.VAR_POSITIONAL for p in parameters) else len(names)
        count = len(self._input_types)
        if self._input_types and not len(names) <= count <= most:
            raise ValueError("The number of tf.function input types is not compatible with the allowed arguments of %s. The tf.function have %d "
                             "input types, while the python function allows minimum %d and maximum %d arguments." % (
                                 func, count, len(names), most))
        if self._input_types or most == 0:
            return _DefinedFunction(func, names, self._input_types, **self._options)
        return _OverloadedFunction(func, names, **self._options)


class _BodyGraph(FuncGraph):
    """The graph of a body. Variables that it gets are those of the graph around it."""

    def __init__(self, name, outer, by_value, allowed, variables_by_value):
        super().__init__(name, collections={}, outer=outer)
        from runnel.ops import variable_scopes as scopes
        self._by_value, self._allowed, self._variables_by_value = by_value, allowed, variables_by_value
        self.extra_vars = []
        for key in scopes_of_variables():
            self._collections[key] = outer.get_collection_ref(key)
        with outer.as_default():
            self._scope = scopes.get_variable_scope()

    def get_variable(self, getter, name, **options):
        """For the variable scope of the body: gets a variable outside of it."""
        from runnel.ops import variable_scopes as scopes
        with self.outer.as_default():
            variable = self._scope.get_variable(scopes._store(), name, **options)
        self.extra_vars.append(variable)
        return variable.value() if self._variables_by_value and hasattr(variable, "handle") else variable

    def _take(self, tensor, name=None):
        if not self._by_value or tensor._graph is self or tensor.op is None:
            return super()._take(tensor, name)
        return self._copy(tensor.op).outputs[tensor.value_index]

    def _as_control_input(self, op, item):
        return framework.Graph._as_control_input(self, op, item)

    def _copy(self, op):
        """Returns the copy of an operation in this graph."""
        if op not in self._inner:
            from runnel.graph.node_defs import create_c_op
            if op.op_def.is_stateful and op not in self._allowed:
                raise ValueError("Cannot capture a stateful node (name:%s, type:%s) by value." % (op.name, op.type))
            if op.type in ("Placeholder", "PlaceholderV2"):
                raise ValueError("Cannot capture a placeholder (name:%s, type:%s) by value." % (op.name, op.type))
            inputs = [self._copy(x.op).outputs[x.value_index] for x in op.inputs]
            node_def = op.node_def
            node_def.name = self.unique_name(op.name)
            self._inner[op] = create_c_op(self, node_def, inputs, [])
        return self._inner[op]


def scopes_of_variables():
    """Returns the names of the collections that a body shares with the graph around it."""
    keys = framework.GraphKeys
    return [keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES, keys.METRIC_VARIABLES, keys.MODEL_VARIABLES, keys.TRAINABLE_VARIABLES,
            keys.MOVING_AVERAGE_VARIABLES]


class _DefinedFunction:
    """A function with arguments of given types. Its definition is made when it is first needed."""

    def __init__(self, func, argnames, input_types, func_name=None, grad_func=None, python_grad_func=None, out_names=None, shape_func=None,
                 capture_by_value=False, allowlisted_stateful_ops=None, capture_resource_var_by_value=True, **kwargs):
        if grad_func is not None and python_grad_func is not None:
            raise ValueError("Gradient defined twice for function %s" % func_name)
        self._func, self._argnames, self._input_types, self._func_name = func, list(argnames), tuple(input_types), func_name
        self._grad_func, self._python_grad_func = grad_func, python_grad_func
        self._out_names, self._shape_func, self._attrs = out_names, shape_func, kwargs
        self._capturing = capture_by_value, set(allowlisted_stateful_ops or ()), capture_resource_var_by_value
        graph = _core.current()
        self._device = graph._device_stack[-1] if graph is not None and graph._device_stack else None
        self._rule = self._definition = None
        self._captured, self._stateful, self._others = [], [], {}

    @property
    def name(self):
        """The function's name."""
        self._define()
        return self._func_name

    @property
    def definition(self):
        """The FunctionDef."""
        self._define()
        return self._definition

    cached_definition = definition

    @property
    def _signature(self):
        return self.definition.signature

    @property
    def declared_input_types(self):
        """The types of the arguments."""
        return self._input_types

    @property
    def captured_inputs(self):
        """The tensors outside of the body that it reads; each call passes them."""
        self._define()
        return self._captured

    @property
    def stateful_ops(self):
        """[(name, op)] of the stateful operations of the body."""
        self._define()
        return self._stateful

    @property
    def grad_func_name(self):
        """The name of the function that is the gradient, or None."""
        return self._grad_func.name if self._grad_func else None

    @property
    def python_grad_func(self):
        """The Python function that builds the gradient, or None."""
        return self._python_grad_func

    def set_grad_func(self, grad_func):
        """Makes another function the gradient."""
        if self._grad_func is not None or not isinstance(grad_func, _DefinedFunction):
            raise ValueError("The gradient of %s cannot become %r" % (self._func_name, grad_func))
        self._grad_func = grad_func

    def _define(self):
        if self._definition is not None:
            return
        stem = self._func_name or getattr(self._func, "__name__", None) or "func"
        if not self._func_name and self._grad_func is not None:
            stem += "_" + self._grad_func.name
        outer = framework.get_default_graph()
        body = _BodyGraph(stem, outer, *self._capturing)
        outputs = self._trace(body, stem)
        if self._out_names and len(self._out_names) != len(outputs):
            raise errors.InvalidArgumentError(None, None, "output names must be either empty or equal in size to outputs. output names size = "
                                              "%d outputs size = %d" % (len(self._out_names), len(outputs)))
        library = framework.Graph()
        name = _core.define_function(library, stem, body, body.arguments + body.standing, outputs, self._out_names or None,
                                     with_hash=self._func_name is None, description=self._func.__doc__)
        definition = message_class("FunctionDef").FromString(_core.functions_of(library)[name])
        for key, value in _attributes(stem, dict(self._attrs)).items():
            definition.attr[key].CopyFrom(value)
        self._definition, self._func_name = definition, name
        self._captured, self._others = body.captured, _core.functions_of(body)
        self._stateful = [(op.name, op.type) for op in body.get_operations() if op.op_def.is_stateful]

    def _trace(self, body, name):
        from runnel.ops import variable_scopes as scopes
        with body.as_default(), body.device(self._device):
            for i, kind in enumerate(self._input_types):
                own = self._argnames[i] if i < len(self._argnames) else "arg%d" % i
                body.arguments.append(raw_ops.Placeholder(dtype=kind, shape=None, name=own))
            with scopes.variable_scope("", custom_getter=body.get_variable):
                outputs = self._func(*body.arguments)
            if outputs is None or isinstance(outputs, framework.Operation):
                outputs = []
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            if any(one is None for one in outputs):
                raise ValueError("Function %s can not return None." % name)
            return [one if one._graph is body else body._take(one) for one in map(convert_to_tensor, outputs)]

    def add_to_graph(self, g):
        """Adds the function, those that it calls and its gradient to the library of a graph."""
        self._define()
        gradient = None
        if self._grad_func is not None:
            self._grad_func.add_to_graph(g)
            gradient = self._grad_func.definition.SerializeToString()
        for definition in self._others.values():
            _core.add_function_def(g, definition)
        _core.add_function_def(g, self._definition.SerializeToString(), gradient)

    def _gradient_rule(self):
        """Returns the name under which the gradient is registered, or None if it is the function's own."""
        given = self._python_grad_func
        if given is None and self._grad_func is not None:
            def given(op, *grads):
                return self._grad_func(*op.inputs, *grads)
        if self._rule is None and given is not None:
            def rule(op, *grads):
                found = given(op, *grads)
                found = list(found) if isinstance(found, (list, tuple)) else [found]
                return found + [None] * (len(op.inputs) - len(found))

            self._rule = "Defun_%s_%d" % (self._func_name, next(_numbers))
            RegisterGradient(self._rule)(rule)
        return self._rule

    def __call__(self, *args, **kwargs):
        graph = framework.get_default_graph()
        signature = self._signature
        name = kwargs.pop("name", None)
        attrs = _attributes(self._func_name, kwargs)
        inputs = [convert_to_tensor(value) for value in args] + self._captured
        if len(inputs) != len(signature.input_arg):
            raise ValueError("Expected %d arguments, got %d." % (len(signature.input_arg), len(inputs)))
        if framework.executing_eagerly():
            return self._run(inputs)
        self.add_to_graph(graph)
        if graph._capture is not None:
            inputs = [value if value._graph is graph else graph._capture(value) for value in inputs]
        rule = self._gradient_rule()
        own = (name or self._func_name)
        own = own[:-1] if own.endswith("/") else graph.unique_name(own)
        with graph._attr_scope(attrs), graph.gradient_override_map({self._func_name: rule} if rule else {}):
            op = _core.create_call(graph, self._func_name, own, inputs)
        if self._shape_func is not None:
            shapes = self._shape_func(op)
            if len(shapes) != len(op.outputs):
                raise ValueError("shape_func %s produced %d shapes, which does not match %d outputs." % (
                    self._shape_func, len(shapes), len(op.outputs)))
            for result, shape in zip(op.outputs, shapes):
                result.set_shape(shape)
        results = tuple(op.outputs)
        return results[0] if len(results) == 1 else results or op

    def _run(self, inputs):
        """In eager execution: returns the results."""
        from runnel.eager import tracing
        tracing.add_functions([*self._others.values(), self._definition.SerializeToString()])
        results = raw_ops.StatefulPartitionedCall(args=inputs, f=self._func_name,
                                                  Tout=[dtypes.as_dtype(arg.type) for arg in self._signature.output_arg])
        return results[0] if len(results) == 1 else tuple(results or ())


class _OverloadedFunction:
    """A function with arguments of any types: a _DefinedFunction per types."""

    def __init__(self, func, argnames, func_name=None, grad_func=None, python_grad_func=None, **kwargs):
        self._func, self._argnames, self._func_name, self._kwargs = func, argnames, func_name, kwargs
        self._grad_func, self._python_grad_func = grad_func, python_grad_func
        self._overload = {}

    def instantiate(self, input_types):
        """Returns the function with arguments of these types."""
        input_types = [dtypes.as_dtype(kind) for kind in input_types]
        key = "".join(_type_name(kind) for kind in input_types)
        if key not in self._overload:
            name = self._func_name and "%s_%s" % (self._func_name, key)
            defined = _DefinedFunction(self._func, self._argnames, input_types, name, None, self._python_grad_func, **self._kwargs)
            results = [dtypes.as_dtype(arg.type) for arg in defined.definition.signature.output_arg]
            if self._grad_func is not None:
                defined._grad_func = self._grad_func.instantiate(input_types + results)
            self._overload[key] = defined
        return self._overload[key]

    def __call__(self, *args, **kwargs):
        tensors = [convert_to_tensor(value) for value in args]
        return self.instantiate([tensor.dtype.base_dtype for tensor in tensors])(*tensors, **kwargs)


def _type_name(kind):
    if kind.name not in _TYPE_NAMES:
        raise ValueError("Unsupported dtypes %s in `types`. Supported dtypes are %s." % ([kind], list(_TYPE_NAMES)))
    return _TYPE_NAMES[kind.name]


def _attributes(function, options):
    """Returns {name: AttrValue} of the options of a function or of a call."""
    attr = message_class("AttrValue")
    attrs = {"_disable_call_shape_inference": attr(b=True)}
    noinline, compiled = options.pop("noinline", None), options.pop("compiled", None)
    separate = options.pop("separate_compiled_gradients", None)
    if noinline is not None:
        attrs["_noinline"] = attr(b=bool(noinline))
    if compiled is not None:
        attrs["_XlaCompile"], attrs["_XlaSeparateCompiledGradients"] = attr(b=bool(compiled)), attr(b=bool(separate))
        attrs["_XlaScope"] = attr(s=b"function_" + function.encode())
    for key in [key for key in options if key.startswith("experimental_") or key in ("_implements", "_reference")]:
        value = options.pop(key)
        if isinstance(value, str):
            attrs[key] = attr(s=value.encode())
        elif key in ("_implements", "_reference"):
            raise ValueError("Attribute %s must be str. Got %s." % (key, type(value)))
        elif isinstance(value, (bool, int, float)):
            attrs[key] = attr(**{"b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f": value})
        else:
            raise ValueError("Attribute %s must be bool, int, float, or str. Got %s." % (key, type(value)))
    if options:
        raise ValueError("Unknown keyword arguments: %s." % options.keys())
    return attrs


def _from_definition(fdef, grad_func=None):
    """Returns the function of a FunctionDef."""
    made = _DefinedFunction(None, [arg.name for arg in fdef.signature.input_arg],
                            [dtypes.as_dtype(arg.type) for arg in fdef.signature.input_arg], fdef.signature.name, grad_func)
    made._definition = fdef
    return made


def from_library(lib):
    """Returns the functions of a FunctionDefLibrary, with those that are their gradients. Raises ValueError if one of these is missing."""
    functions = {function.signature.name: function for function in lib.function}
    gradients = {row.function_name: row.gradient_func for row in lib.gradient}
    for name in (*gradients, *gradients.values()):
        if name not in functions:
            raise ValueError("FunctionDefLibrary missing '%s' FunctionDef\n%s" % (name, lib))
    made: dict = {}
    left = list(functions)
    while left:
        ready = [name for name in left if gradients.get(name) is None or gradients[name] in made]
        if not ready:
            raise ValueError("FunctionDefLibrary contains cyclic gradient functions!\n%s" % lib)
        for name in ready:
            made[name] = _from_definition(functions[name], made.get(gradients.get(name)))
        left = [name for name in left if name not in made]
    return list(made.values())


def _body():
    graph = _core.current()
    return graph if isinstance(graph, _BodyGraph) else None


def get_extra_vars():
    """In the body of a function: returns the variables that it got so far."""
    return _body().extra_vars if _body() else []


def get_extra_inputs():
    """In the body of a function: returns the tensors outside of it that it reads so far."""
    return _body().captured if _body() else []


def get_extra_args():
    """In the body of a function: returns the arguments that stand for get_extra_inputs()."""
    return _body().standing if _body() else []
