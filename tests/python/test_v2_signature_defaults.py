"""Defaults of arguments in signatures of SavedModels, and what may not be saved."""

import functools
import tempfile

from both import both as _both

both = functools.partial(_both, v2=True)


@both
def test_defaults_of_signatures(tf, np):
    five, both_of = tf.constant(5.0), {"a": tf.constant(0.5), "b": tf.constant([1, 2])}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x, y=five):
        return x + y

    @tf.function(input_signature=[{"a": tf.TensorSpec([], tf.float32, name="a"), "b": tf.TensorSpec([2], tf.int32, name="b")}])
    def g(x=both_of):
        return x
    module = tf.Module()
    module.f, module.g = f, g
    folder = tempfile.mkdtemp()
    tf.saved_model.save(module, folder, {"f": f, "g": g})

    def run(key, **given):
        with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
            signature = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def[key]
            feeds = {graph.get_tensor_by_name(signature.inputs[name].name): value for name, value in given.items()}
            outputs = {name: graph.get_tensor_by_name(info.name) for name, info in sorted(signature.outputs.items())}
            defaults = {name: tf.make_ndarray(signature.defaults[name]) for name in sorted(signature.defaults)}
            return session.run(outputs, feeds), defaults
    return [run("f", x=2.0), run("f", x=2.0, y=1.0), run("g"), run("g", a=3.0)]


@both
def test_functions_that_cannot_be_saved(tf, np):
    @tf.function(input_signature=[])
    def inner():
        tf.compat.v1.get_default_graph().mark_as_unsaveable("not this one")
        return tf.constant(1)
    module = tf.Module()
    module.f = tf.function(lambda: inner(), input_signature=[])
    results = [module.f.get_concrete_function().graph.saveable]
    try:
        tf.saved_model.save(module, tempfile.mkdtemp())
    except ValueError as error:
        results.append("not this one" in str(error))
    x = tf.constant(1.0)
    for call in (lambda: tf.compat.v1.saved_model.build_tensor_info(x),):
        try:
            call()
        except RuntimeError as error:
            results.append("not supported" in str(error))
    return results


def test_names_that_change_are_logged():
    """The text is stock's, which logs it by absl's own logger."""
    import logging
    import runnel.v2 as tf
    logged = []

    class Handler(logging.Handler):
        def emit(self, record):
            logged.append(record.getMessage())
    logger, handler = logging.getLogger("absl"), Handler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="A-b"), tf.TensorSpec([], tf.int32, name="A/D"), tf.TensorSpec([], tf.int32, name="c")])
    def foo(a, b, c):
        return a + b + c
    module = tf.Module()
    module.foo = foo
    try:
        tf.saved_model.save(module, tempfile.mkdtemp())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert [text for text in logged if "input name" in text] == [
        "Function `foo` contains input name(s) A-b, A/D with unsupported characters which will be renamed to a_b, a_d in the SavedModel."]
