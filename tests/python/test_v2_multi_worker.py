"""MultiWorkerMirroredStrategy: two processes give what two processes of stock give, and Keras trains as in one process."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
from both import HERE, ROOT, STOCK, compare
from support import stock
from support.ports import free_ports

SCRIPT = os.path.join(HERE, "multi_worker_script.py")
OURS = [sys.executable, "-m", "runnel", "--v2"]
KERAS = """
import json, sys
import numpy as np, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy() if len(sys.argv) > 1 else tf.distribute.get_strategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.05), "mse", metrics=["mae"])
model.set_weights([np.random.RandomState(i).uniform(-1, 1, w.shape) for i, w in enumerate(model.get_weights())])
x = np.random.RandomState(0).randn(32, 4).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(8)
history = model.fit(data, epochs=2, verbose=0, shuffle=False).history
print(json.dumps([history, model.evaluate(data, verbose=0), [w.tolist() for w in model.get_weights()]]))
"""


def printed_by_tasks(command, count=2, environment=None):
    """What the processes of a cluster of workers print, each with its own TF_CONFIG."""
    workers = ["127.0.0.1:%d" % port for port in free_ports(count)]
    tasks = []
    for i in range(count):
        config = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}})
        tasks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env={**(environment or os.environ), "TF_CONFIG": config, "TF_CPP_MIN_LOG_LEVEL": "3"}))
    outputs = [task.communicate(timeout=300) for task in tasks]
    for task, (_, errors) in zip(tasks, outputs):
        assert task.returncode == 0, errors[-3000:]
    return [out for out, _ in outputs]


def asked_stock():
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return json.dumps(printed_by_tasks([STOCK, SCRIPT], environment=environment))


def ours():
    return {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}


def test_as_stock():
    key = hashlib.sha256(open(SCRIPT, "rb").read()).hexdigest()[:16]
    theirs = json.loads(stock.recorded("multi_worker_script.py", key, asked_stock))
    for task, (here, there) in enumerate(zip(printed_by_tasks([*OURS, SCRIPT], environment=ours()), theirs)):
        compare(json.loads(here), json.loads(there), "task %d" % task, 1e-5, 1e-6)


def test_keras(tmp_path):
    script = tmp_path / "keras_script.py"
    script.write_text(KERAS)
    together = printed_by_tasks([*OURS, str(script), "together"], environment=ours())
    alone = printed_by_tasks([*OURS, str(script)], count=1, environment=ours())
    assert together[0] == together[1]
    compare(json.loads(together[0]), json.loads(alone[0]), "trained", 1e-5, 1e-6)


def test_three_tasks_and_uneven_rows(tmp_path):
    script = tmp_path / "rows.py"
    script.write_text("""
import json
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
rows = strategy.gather(tf.fill([rank * 2, 2], float(rank)), 0)
columns = strategy.gather(tf.fill([2, 3 - rank], rank), 1)
truth = strategy.reduce("SUM", tf.constant([rank, 1], tf.int16), axis=None)
print(json.dumps([rows.numpy().tolist(), columns.numpy().tolist(), truth.numpy().tolist()]))
""")
    rows = np.concatenate([np.full([rank * 2, 2], float(rank)) for rank in range(3)]).tolist()
    columns = np.concatenate([np.full([2, 3 - rank], rank) for rank in range(3)], 1).tolist()
    assert [json.loads(text) for text in printed_by_tasks([*OURS, str(script)], 3, ours())] == [[rows, columns, [3, 3]]] * 3


def test_lost_task(tmp_path):
    """A process whose peer ends gets an error that names it."""
    script = tmp_path / "lost.py"
    script.write_text("""
import os
import time
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
assert strategy.reduce("SUM", tf.constant(1.0), axis=None).numpy() == 2
if strategy.cluster_resolver.task_id == 1:
    time.sleep(1)  # the other has its part of the sum by then
    os._exit(0)
try:
    strategy.reduce("SUM", tf.constant(1.0), axis=None)
except tf.errors.UnavailableError as error:
    print("task:1" in str(error))
""")
    assert printed_by_tasks([*OURS, str(script)], 2, {**ours(), "RUNNEL_LEASE": "2"})[0] == "True\n"


def test_after_an_operation(tmp_path):
    script = tmp_path / "late.py"
    script.write_text("""
import tensorflow as tf
tf.constant(1.0) + 1.0
try:
    tf.distribute.MultiWorkerMirroredStrategy()
except RuntimeError as error:
    print(error)
""")
    assert printed_by_tasks([*OURS, str(script)], 2, ours()) == ["Collective ops must be configured at program startup\n"] * 2
