"""What a tf.function's FunctionDef says, variables that it creates, and what a SavedModel of it brings back: the same programs in stock."""

import functools
import tempfile

from both import both as _both

both = functools.partial(_both, v2=True)


@both
def test_attributes(tf, np):
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)], experimental_attributes={"disable_summaries_at_runtime": ["x", True]})
    def f(x):
        return x * 2.0

    @tf.function(experimental_implements="twice")
    def g(x):
        return x * 2.0

    module = tf.Module()
    module.f = f
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        signature = tf.saved_model.load(folder).signatures["serving_default"]
        value = signature(x=tf.constant(3.0))["output_0"]
    own, listed = [x.function_def.attr for x in (g.get_concrete_function(tf.constant(1.0)), f.get_concrete_function())]
    saved = signature.function_def.attr["disable_summaries_at_runtime"].list
    found = listed["disable_summaries_at_runtime"].list
    return value, own["_implements"].s, list(found.s), list(found.b), list(saved.s), list(saved.b)


@both
def test_control_outputs(tf, np):
    v = tf.Variable(1.0)
    concrete = tf.function(lambda: v.assign(2.0, name="assigned")).get_concrete_function()
    pure = tf.function(lambda x: x + 1.0).get_concrete_function(tf.constant(1.0))
    return ("AssignVariableOp" in [op.type for op in concrete.graph.control_outputs], len(concrete.function_def.control_ret) > 0,
            len(pure.graph.control_outputs))


@both
def test_shape_of_a_variable_from_an_argument(tf, np):
    class Made(tf.Module):
        v = None

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def make(self, value):
            if self.v is None:
                self.v = tf.Variable(value)
            return self.v

    made = Made()
    first = made.make([1, 2, 3])
    made.v.assign([1, 2, 3, 4])
    return first, made.v.shape.as_list(), made.make([1])


@both
def test_datasets_of_saved_functions(tf, np):
    class Sums(tf.Module):
        def __init__(self):
            super().__init__()
            self.dataset = tf.data.Dataset.range(5).map(lambda x: x ** 2)

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
        def __call__(self, x):
            total = tf.zeros([], tf.int64)
            for element in self.dataset:
                total += x * element
            return total

    sums = Sums()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(sums, folder)
        loaded = tf.saved_model.load(folder)
        with tempfile.TemporaryDirectory() as again:
            tf.saved_model.save(loaded, again)
            twice = tf.saved_model.load(again)
            return [f(tf.constant(3, tf.int64)) for f in (sums, loaded, twice)]


@both
def test_warnings_of_traces(tf, np):
    import logging
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.extend([record.getMessage()[:26]] if "out of the last" in record.getMessage() else [])
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        @tf.function
        def f(x):
            return x

        @tf.function
        def outer(x):
            return f(x) * 2

        for i in range(4):
            f(i)
        for i in range(4, 8):
            outer(i)
        counts = [len(lines)]
        for i in range(8, 18):
            f(i)
        counts.append(len(lines))
        for i in range(5):
            tf.function(lambda x: x)(i)
        counts.append(len(lines))
        return counts, lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@both
def test_memory_of_tensors(tf, np):
    x, variable = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.Variable(1.0)
    view, texts = memoryview(x), []
    for handle in (variable.handle, tf.data.Dataset.range(2)._variant_tensor):
        for convert in (memoryview, lambda t: t.numpy()):
            try:
                convert(handle)
            except (BufferError, tf.errors.InvalidArgumentError) as error:
                texts.append((type(error).__name__, str(error)))
    return (view.shape, view.format, view.readonly, np.array(view), np.asarray(x).flags.writeable, x.numpy().flags.writeable, np.asarray(tf.constant("a")).item(),
            np.asarray(tf.constant(["a", "b"])).tolist(), np.array(memoryview(tf.constant(3.0))), np.array([x, x]), bytes(tf.constant([1, 2], tf.uint8)), texts)


@both
def test_variables_that_a_tape_watches(tf, np):
    a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        a.assign_add(1.0)
        c.assign(2.0)
    first = len(tape.watched_variables())
    with tf.GradientTape() as tape:
        a.assign(5.0)
        y = a * b
    return first, len(tape.watched_variables()), tape.gradient(y, [a, b])


@both
def test_fingerprints(tf, np):
    class Model(tf.Module):
        def __init__(self, factor):
            super().__init__()
            self.v = tf.Variable(1.0)
            self.factor = factor

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return self.factor * x * self.v

    kind, found = tf.saved_model.experimental.Fingerprint, []
    for factor in (2.0, 2.0, 3.0):
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(Model(factor), folder)
            found.append(tf.saved_model.experimental.read_fingerprint(folder))
    first, same, other = found
    errors = []
    for wrong in (lambda: tf.saved_model.experimental.read_fingerprint("there is none"), lambda: kind().singleprint()):
        try:
            wrong()
        except (FileNotFoundError, ValueError) as error:
            errors.append((type(error).__name__, str(error)[:28]))
    parts = first.singleprint().split("/")
    return (first.graph_def_program_hash == same.graph_def_program_hash,
            first.signature_def_hash == same.signature_def_hash, first.saved_object_graph_hash == same.saved_object_graph_hash,
            first == kind(*(getattr(first, name) for name in vars(first))), first == other, first == 3, len(parts), int(parts[0]) == first.graph_def_program_hash,
            str(kind(1, 2, 3, 4, 5, 6)), repr(kind(1, 2, 3, 4, 5, 6)), min(int(part) > 0 for part in parts), first.saved_model_checksum > 0,
            first.version.producer, errors)


def test_untraced_functions_of_saved_models():
    import logging

    import runnel.v2 as tf

    class Model(tf.Module):
        @tf.function
        def never(self, x):
            return x

        @tf.function
        def once(self, x):
            return x + 1

    lines, model, logger = [], Model(), logging.getLogger("absl")
    handler, level = logging.Handler(), logger.level
    handler.emit = lambda record: lines.extend([record.getMessage()] if "untraced" in record.getMessage() else [])
    model.once(1)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(model, folder)
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
    assert lines == ["Found untraced functions such as never while saving (showing 1 of 1). These functions will not be directly callable after loading."]
