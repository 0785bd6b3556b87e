"""Functions of graphs in the style of 1.x: their definitions, what they capture, their calls and gradients."""

from both import both


def _module(tf):
    """Returns the module of Defun, here or in stock."""
    if tf.__name__.startswith("runnel"):
        from runnel.eager import defun
        return defun
    from tensorflow.python.framework import function
    return function


def _facts(definition):
    """Returns what a FunctionDef says, without notes for the runtime."""
    signature = definition.signature
    return (signature.description, [(arg.name, arg.type) for arg in signature.input_arg],
            [(arg.name, arg.type) for arg in signature.output_arg], signature.is_stateful,
            [(node.name, node.op, list(node.input)) for node in definition.node_def], sorted(definition.ret.items()),
            sorted(key for key in definition.attr if key != "_construction_context"))


@both
def test_definitions(tf, np):
    function = _module(tf)

    @function.Defun(tf.float32, tf.float32, func_name="Named", out_names=["total", "product"], noinline=True, experimental_answer=42)
    def named(a, b):
        """Adds and multiplies."""
        return a + b, a * b

    @function.Defun(tf.int32, tf.int32)
    def rest(first, *others):
        return tf.Print(first + others[0], [first])

    @function.Defun()
    def constant():
        return tf.constant(42)

    @function.Defun()
    def any_type(x):
        return x * 2

    found = [_facts(one.definition) for one in (named, rest, constant, any_type.instantiate([tf.int64]))]
    names = named.name, rest.name.startswith("rest_"), constant.name.startswith("constant_"), rest.name == rest.name
    return found, names, rest.stateful_ops, named.stateful_ops, named.declared_input_types


@both(graph=True)
def test_calls_are_nodes_of_the_function(tf, np):
    function = _module(tf)

    @function.Defun(tf.float32, func_name="Twice")
    def twice(x):
        return x * 2

    @function.Defun(tf.float32, func_name="Outer")
    def outer(x):
        return twice(x) + 1, twice(x, name="own")

    with tf.name_scope("scope"):
        y, z = outer(3.0)
    w = twice(y, name="again", noinline=True)
    library = tf.get_default_graph().as_graph_def().library
    with tf.Session() as sess:
        return [y.op.type, w.op.type, w.op.get_attr("_noinline"), sorted(one.signature.name for one in library.function)] + sess.run([y, z, w])


@both
def test_captures(tf, np):
    function = _module(tf)
    c, p = tf.constant(10, tf.int64), tf.placeholder(tf.int64, name="p")
    inside = []

    @function.Defun(tf.int64)
    def by_argument(x):
        y = x + c * c
        inside.extend([[t.op.name for t in function.get_extra_inputs()], len(function.get_extra_args()), len(function.get_extra_vars())])
        return y

    @function.Defun(tf.int64, capture_by_value=True)
    def by_value(x):
        return x + c

    def fails(tensor):
        try:
            function.Defun(tf.int64, capture_by_value=True)(lambda x: x + tensor).definition
        except ValueError as error:
            return str(error)

    copied = function._from_definition(by_argument.definition)
    with tf.Session() as sess:
        values = sess.run([by_argument(tf.constant(1, tf.int64)), by_value(tf.constant(1, tf.int64))])
    return (values, inside, [t.op.name for t in by_argument.captured_inputs], len(by_value.captured_inputs),
            sorted(node.op for node in by_value.definition.node_def), copied.declared_input_types, len(copied.captured_inputs), fails(p))


@both
def test_variables_are_those_outside(tf, np):
    function = _module(tf)

    @function.Defun(tf.float32)
    def f(x):
        return x * tf.get_variable("v", shape=[], initializer=tf.constant_initializer(3.0))

    with tf.variable_scope("scope"):
        y = f(2.0)
    with tf.variable_scope("scope", reuse=True):
        v = tf.get_variable("v")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [one.name for one in tf.global_variables()], sess.run([y, v] + tf.gradients(y, v))


@both
def test_libraries(tf, np):
    function = _module(tf)

    @function.Defun(tf.float32, tf.float32)
    def back(x, dy):
        return x * dy

    @function.Defun(tf.float32, grad_func=back)
    def forth(x):
        return tf.exp(x)

    with tf.Graph().as_default() as graph:
        x = tf.constant(2.0)
        dx, = tf.gradients(forth(x), x)
        library = graph.as_graph_def().library
        with tf.Session() as sess:
            value = sess.run(dx)
    found = {one.name.split("_")[0]: (one.grad_func_name or "").split("_")[0] for one in function.from_library(library)}
    rows = [(row.function_name.split("_")[0], row.gradient_func.split("_")[0]) for row in library.gradient]
    del library.function[:]
    try:
        function.from_library(library)
        missing = False
    except ValueError:
        missing = True
    return value, found, rows, missing, list(function.from_library(type(library)()))


@both
def test_wrong_calls(tf, np):
    function = _module(tf)
    one = function.Defun(tf.int32)(lambda a: a + 1)
    other = tf.Graph()
    with other.as_default():
        outside = tf.constant(1)
    texts = []
    for call in (
            lambda: one(), lambda: one(1, 2), lambda: one(1, device="x"), lambda: function.Defun(tf.int32)(lambda a, b: a),
            lambda: function.Defun(tf.int32)(5), lambda: function.Defun(tf.int32)(lambda a, b=1: a),
            lambda: function.Defun(tf.int32, out_names=["a", "b"])(lambda a: a)(1), lambda: function.Defun(tf.int32)(lambda a: [None])(1),
            lambda: tf.get_default_graph().control_dependencies([outside]).__enter__()):
        try:
            call()
            texts.append("no error")
        except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
            texts.append("%s: %s" % (type(error).__name__, str(error).split("<")[0]))
    return texts


@both
def test_training_nodes_are_removed(tf, np):
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([tf.check_numerics(a, "a", name="check")]):
        b = tf.identity(a, name="b")
    c = tf.identity(b, name="c")
    with tf.control_dependencies([c]):
        d = tf.identity(a, name="d")
    with tf.colocate_with(tf.identity(d, name="e")):
        tf.add(tf.identity(d, name="f"), b, name="g")
    kept = tf.graph_util.remove_training_nodes(tf.get_default_graph().as_graph_def(), ["f"])
    return [(node.name, node.op, list(node.input)) for node in kept.node]


def _graphs_of_functions(tf):
    """Returns the modules that turn FunctionDefs into graphs and back, here or in stock."""
    if tf.__name__.startswith("runnel"):
        from runnel.alias.util import function_graphs
        return function_graphs, function_graphs
    from tensorflow.python.framework import function_def_to_graph, graph_to_function_def
    return function_def_to_graph, graph_to_function_def


@both
def test_graphs_of_functions(tf, np):
    to_graph, to_definition = _graphs_of_functions(tf)
    with tf.Graph().as_default() as source:
        x, y = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, name="y")
        with tf.control_dependencies([y]):
            total = tf.add(x, 1.0, name="total")
        halves = tf.split(total, 2, name="halves")
    definition = to_definition.graph_to_function_def(source, source.get_operations(), [x, y], [total, halves[1]], out_names=["t", "h"])
    nameless = definition.signature.name
    definition.signature.name = "named"
    graph = to_graph.function_def_to_graph(definition, input_shapes=[tf.TensorShape([4]), None])
    with tf.Session(graph=graph) as sess:
        values = sess.run(graph.outputs, dict(zip(graph.inputs, ([1.0, 2.0, 3.0, 4.0], 0.0))))
    graph_def, names = to_graph.function_def_to_graph_def(definition, input_shapes=[None, tf.TensorShape([2])])
    try:
        to_graph.function_def_to_graph(definition, input_shapes=[None])
        error = None
    except ValueError as found:
        error = str(found)
    return (nameless, graph.name, _facts(definition), values, [str(t.shape) for t in graph.inputs + graph.outputs],
            [(node.name, node.op, list(node.input)) for node in graph_def.node], sorted(names.items()), error)
