"""tf.estimator, if the package tensorflow_estimator is installed: training, evaluation, prediction, export, canned estimators."""

import importlib.util
import os
import subprocess
import sys

import pytest

from both import ROOT

SCRIPT = """
import os
import tempfile
import numpy as np
import tensorflow as tf
tf.logging.set_verbosity(tf.logging.ERROR)
X = np.random.RandomState(0).randn(200, 4).astype(np.float32)
Y = (X[:, 0] + 2 * X[:, 1] > 0).astype(np.int32)


def model(features, labels, mode, params):
    logits = tf.layers.dense(features["x"], 2, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
    classes = {"classes": tf.argmax(logits, 1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=classes)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.AdamOptimizer(params["rate"]).minimize(loss, global_step=tf.train.get_global_step())
    accuracy = tf.metrics.accuracy(labels, classes["classes"])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops={"accuracy": accuracy})


def rows(times):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(times).batch(20)


def serving():
    x = tf.placeholder(tf.float32, [None, 4])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


folder = tempfile.mkdtemp()
config = tf.estimator.RunConfig(tf_random_seed=7, save_checkpoints_steps=50)
mine = tf.estimator.Estimator(model, folder, config=config, params={"rate": 0.05})
spec = tf.estimator.EvalSpec(rows(1), throttle_secs=0, exporters=tf.estimator.FinalExporter("last", serving))
tf.estimator.train_and_evaluate(mine, tf.estimator.TrainSpec(rows(None), max_steps=100), spec)
assert mine.evaluate(rows(1))["accuracy"] > 0.95
assert np.mean([p["classes"] for p in mine.predict(rows(1))] == Y) > 0.95
assert mine.get_variable_value("global_step") == 100
exported = os.path.join(folder, "export", "last", os.listdir(os.path.join(folder, "export", "last"))[0])
with tf.Graph().as_default(), tf.Session() as sess:
    meta = tf.saved_model.load(sess, ["serve"], exported)
    signature = meta.signature_def["serving_default"]
    found = sess.run(signature.outputs["classes"].name, {signature.inputs["x"].name: X})
    assert np.mean(found == Y) > 0.95
columns = [tf.feature_column.numeric_column("x", shape=[4])]
for name, options in (("LinearClassifier", {}), ("DNNClassifier", {"hidden_units": [8]})):
    made = getattr(tf.estimator, name)(feature_columns=columns, model_dir=tempfile.mkdtemp(), config=config, **options)
    made.train(rows(None), steps=100)
    assert made.evaluate(rows(1))["accuracy"] > 0.9, name
    print(sorted(made.get_variable_names()))
"""


@pytest.mark.skipif(importlib.util.find_spec("tensorflow_estimator") is None,
                    reason="pip install --no-deps tensorflow_estimator==1.15.1")
def test_estimators(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([os.path.join(ROOT, "python"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-m", "runnel", str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=path))
    assert done.returncode == 0, done.stderr
    linear, deep = done.stdout.splitlines()
    assert linear == str(["global_step", "linear/linear_model/bias_weights", "linear/linear_model/bias_weights/part_0/Ftrl",
                          "linear/linear_model/bias_weights/part_0/Ftrl_1", "linear/linear_model/x/weights",
                          "linear/linear_model/x/weights/part_0/Ftrl", "linear/linear_model/x/weights/part_0/Ftrl_1"])
    assert "dnn/hiddenlayer_0/kernel/t_0/Adagrad" in deep and "dnn/logits/bias" in deep


def test_without_the_package(tmp_path):
    script = ("import sys\nsys.modules['tensorflow_estimator'] = None\nimport runnel as tf\n"
              "try:\n    tf.estimator.Estimator\nexcept AttributeError as error:\n    print(error)\n")
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.stdout == "tf.estimator needs a package: pip install --no-deps tensorflow_estimator==1.15.1\n"
