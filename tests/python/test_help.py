"""Help for users: docstrings, reprs, pictures of graphs, and the list of names that a script uses and Runnel lacks."""

import inspect
import os
import pydoc
import re
import subprocess
import sys
import types
from xml.etree import ElementTree

import pytest
from both import ROOT, eager_mode

FUNCTIONS = """abs add argmax assign boolean_mask cast clip_by_value concat cond constant control_dependencies convert_to_tensor device equal exp
    expand_dims fill gather get_variable gradients group identity linspace log map_fn matmul maximum multiply name_scope one_hot ones pad placeholder
    random_normal random_uniform range reduce_max reduce_mean reduce_sum reshape scan shape sigmoid slice split sqrt square squeeze stack stop_gradient
    tanh tile transpose truncated_normal unstack where while_loop zeros nn.relu nn.softmax nn.conv2d nn.max_pool nn.dropout nn.embedding_lookup
    nn.dynamic_rnn nn.softmax_cross_entropy_with_logits nn.sampled_softmax_loss nn.nce_loss nn.top_k nn.lrn layers.dense layers.conv2d losses.mean_squared_error
    metrics.accuracy train.Saver train.AdamOptimizer train.MonitoredTrainingSession summary.scalar data.Dataset image.resize_images
    Graph Session Variable Tensor Operation raw_ops.MatMul strings.join keras.Sequential keras.layers.Dense""".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help(name):
    import runnel as tf
    value = tf
    for part in name.split("."):
        value = getattr(value, part)
    text = pydoc.plain(pydoc.render_doc(value))
    assert "runnel" in text.splitlines()[0]
    assert value.__doc__ and re.match(r"\S", value.__doc__.strip()), "no docstring"
    if not inspect.isclass(value):
        assert "(*args" not in text, "no real signature: " + text[:200]
        assert value.__name__ + "(" in text


def test_every_public_name_has_a_docstring():
    """help() shows a sentence, and the name under which the function is public, not that of a helper."""
    import runnel as tf
    problems = []
    with open(os.path.join(ROOT, "python", "tools", "stock_names.txt"), encoding="utf-8") as stream:
        for name in stream.read().split():
            value = tf
            for part in name.split("."):
                value = getattr(value, part, None)
            if not isinstance(value, (type, types.FunctionType)):
                continue
            first = (value.__doc__ or "").strip().partition("\n")[0]
            if not re.match(r"[A-Z`].*[.:)]$", first) and not name.startswith("raw_ops."):
                problems.append((name, first))
            if value.__name__ in ("call", "check", "function", "metric", "reduce", "wrapper", "<lambda>") and name != "function":
                problems.append((name, value.__name__))
    assert problems == []


def network(tf):
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    with tf.name_scope("hidden"):
        w = tf.Variable(tf.random_normal([4, 8]), name="w")
        h = tf.nn.relu(tf.matmul(x, w))
    with tf.name_scope("out"):
        y = tf.reduce_sum(h, name="y")
    tf.train.GradientDescentOptimizer(0.1).minimize(y)
    return w, y


def labels(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_picture_of_a_graph():
    import runnel as tf
    with tf.Graph().as_default() as graph:
        network(tf)
    shown = labels(graph._repr_svg_())
    assert {"x", "hidden", "w", "MatMul", "Relu", "out", "y", "VariableV2"} <= set(shown)
    assert "random_normal" in shown and "RandomStandardNormal" not in shown  # its parts belong to the box
    assert "Const" not in shown


def test_picture_of_a_large_graph_is_small():
    import runnel as tf
    with tf.Graph().as_default() as graph:
        for i in range(20):
            with tf.name_scope("tower_%d" % i):
                network(tf)
    shown = labels(graph._repr_svg_())
    assert "tower_0" not in shown or len(shown) < 200
    with tf.Graph().as_default() as graph:
        for i in range(500):
            tf.placeholder(tf.float32, name="p%d" % i)
    assert labels(graph._repr_svg_()) == ["a graph of 500 operations in 500 scopes"]


def test_representations():
    import runnel as tf
    with tf.Graph().as_default() as graph:
        w, y = network(tf)
        assert repr(w) == "<tf.Variable 'hidden/w:0' shape=(4, 8) dtype=float32_ref>"
        assert repr(y) == "<tf.Tensor 'out/y:0' shape=() dtype=float32>"
        assert repr(y.op) == "<tf.Operation 'out/y' type=Sum>"
        assert "operations" in repr(graph)


def test_names_of_a_script(tmp_path):
    script = tmp_path / "old.py"
    script.write_text("import tensorflow as tf\nx = tf.nn.relu(tf.constant(1.0))\ny = tf.contrib.tensorrt.create_inference_graph(x)\n")
    good = os.path.join(ROOT, "examples", "python", "gan.py")
    commands = [[sys.executable, "-m", "runnel", "--names"]]
    tool = os.path.join(ROOT, os.environ.get("RUNNEL_BUILD", "build/release"), "cli", "runnel")
    if os.path.exists(tool):
        commands.append([tool, "python-compat"])
    for command in commands:
        environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), PYTHON=sys.executable)
        done = [subprocess.run(command + [str(path)], stdout=subprocess.PIPE, text=True, env=environment) for path in (script, good)]
        assert done[0].stdout == "%s:3: tf.contrib.tensorrt\n" % script
        assert done[0].returncode == 1
        assert (done[1].stdout, done[1].returncode) == ("", 0)


def test_errors_say_what_to_write_instead():
    import runnel as tf
    with tf.Graph().as_default():
        with pytest.raises(AttributeError, match=r"tf.enable_eager_execution\(\)"):
            tf.constant(1.0).numpy()
        with pytest.raises(NotImplementedError, match=r"tf.enable_eager_execution\(\)"):
            tf.get_variable("v", initializer=1.0, use_resource=True).numpy()
        assert not hasattr(tf.constant(1.0), "numpy") and not hasattr(tf.constant(1.0), "nothing")
        with pytest.raises(TypeError, match="^Using a symbolic `tf.Tensor` as a Python `bool` is not allowed.*tf.cond"):
            bool(tf.constant(True))
    with eager_mode(tf):
        with pytest.raises(TypeError, match=r"tf.cond\(condition, true_fn, false_fn\) instead of `if`"):
            tf.function(lambda x: x if x > 0 else -x, autograph=False)(tf.constant(1.0))
        with pytest.raises(AttributeError, match="tf.py_function"):
            tf.function(lambda x: x.numpy())(tf.constant(1.0))
