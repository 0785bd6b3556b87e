"""tf.saved_model.save and load as in 2.x: stock loads objects that are saved here, and vice versa."""

import os
import subprocess
import sys

import pytest
from both import HERE, ROOT
from support import stock

SCRIPT = os.path.join(HERE, "saved_objects_script.py")


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("zero\none\ntwo\n")
    return str(path)


def _ours(code, *args):
    head = "import sys; sys.path[:0] = %r; import runnel as tf; tf.enable_eager_execution()\n" % [os.path.join(ROOT, "python"), HERE]
    subprocess.run([sys.executable, "-c", head + code, *args], check=True)


def _stocks(code, *args):
    stock.run("import sys; sys.path[:0] = %r; import tensorflow as tf\n" % [HERE] + code, *args)


RUN = "import saved_objects_script as s; s.run(tf, *sys.argv[1:])"


def test_here(tmp_path, words):
    path = str(tmp_path / "model")
    _ours(RUN, "save", path, words)
    os.remove(words)  # it is in the model
    _ours(RUN, "again", path, words)
    _ours(RUN, "check", path + "_again", words)


@pytest.mark.skipif(not stock.is_there(), reason="no stock TensorFlow")
def test_there_and_back(tmp_path, words):
    ours, stocks = str(tmp_path / "ours"), str(tmp_path / "stocks")
    _ours(RUN, "save", ours, words)
    _stocks(RUN, "save", stocks, words)
    os.remove(words)
    _stocks(RUN, "again", ours, words)
    _ours(RUN, "again", stocks, words)
    _ours(RUN, "check", ours + "_again", words)
    _stocks(RUN, "check", stocks + "_again", words)


KERAS = """
import numpy as np
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu", input_shape=(3,)), tf.keras.layers.Dense(2)])
x = np.arange(6, dtype=np.float32).reshape(2, 3)
np.save(sys.argv[1] + ".npy", model(tf.constant(x)).numpy())
tf.saved_model.save(model, sys.argv[1])
loaded = tf.saved_model.load_v2(sys.argv[1])
(name,) = loaded.signatures["serving_default"](tf.constant(x))
assert name == model.layers[-1].name and len(loaded.variables) == 4
np.testing.assert_array_equal(loaded.layers[-1].kernel.numpy(), model.layers[-1].kernel.numpy())
"""
CHECK = """
import numpy as np
loaded = tf.saved_model.load(sys.argv[1])
(y,) = loaded.signatures["serving_default"](tf.reshape(tf.range(6.0), [2, 3])).values()
np.testing.assert_allclose(y.numpy(), np.load(sys.argv[1] + ".npy"), rtol=1e-6)
assert [v.shape.as_list() for v in loaded.trainable_variables] == [[3, 4], [4], [4, 2], [2]]
"""


def test_keras(tmp_path):
    path = str(tmp_path / "model")
    _ours(KERAS, path)
    if stock.is_there():
        _stocks(CHECK, path)


def test_what_is_refused(tmp_path):
    _ours("""
class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([])])
    def call(self, x):
        return x + outside
outside = tf.Variable(1.0)
try:
    tf.saved_model.save(Model(), sys.argv[1])
except AssertionError as error:
    assert "untracked" in str(error)
else:
    raise SystemExit("a variable that the file would not have")
try:
    tf.saved_model.save(3, sys.argv[1])
except ValueError as error:
    assert "Trackable" in str(error)
else:
    raise SystemExit("saved a number")
""", str(tmp_path / "none"))


def test_first_generation(tmp_path):
    """A model without objects is its signatures."""
    path = str(tmp_path / "model")
    _ours("""
with tf.Graph().as_default(), tf.Session() as session:
    x = tf.placeholder(tf.float32, [None], "x")
    y = x * tf.get_variable("w", initializer=3.0)
    session.run(tf.global_variables_initializer())
    tf.saved_model.simple_save(session, sys.argv[1], {"x": x}, {"y": y})
loaded = tf.saved_model.load(sys.argv[1])
assert loaded.signatures["serving_default"](x=tf.constant([1.0, 2]))["y"].numpy().tolist() == [3, 6]
""", path)


def test_concrete_functions():
    _ours("""
v = tf.Variable(2.0)
@tf.function
def f(x, y):
    return {"sum": x + y * v}
c = f.get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([None], name="other"))
assert c(tf.constant([1.0]), tf.constant([2.0]))["sum"].numpy().tolist() == [5]
assert c(x=tf.constant([1.0]), other=tf.constant([2.0]))["sum"].numpy().tolist() == [5]
assert [s.name for s in c.structured_input_signature[0]] == ["x", "other"] and c.captured_inputs[0] is v.handle
assert c.structured_outputs["sum"].shape.as_list() == [None]
""")


def test_names():
    import runnel as tf
    assert tf.saved_model.SaveOptions(function_aliases={"a": None}).function_aliases == {"a": None}
    assert tf.saved_model.LoadOptions(allow_partial_checkpoint=True).allow_partial_checkpoint
    assert tf.saved_model.Asset
