"""tf.train.Checkpoint of 2.x: deferred restoring, statuses, slots, Python states, files in parts, views."""

import json
import os

import pytest
from both import both
from support import stock


@both(v2=True)
def test_objects_that_are_made_after_restoring(tf, np, tmp="deferred"):
    import tempfile
    folder = tempfile.mkdtemp()
    model = tf.Module()
    model.inner, model.rows = tf.Module(), [tf.Variable(1.0), tf.Variable([2.0, 3.0])]
    model.inner.v, model.names = tf.Variable(4.0), {"a": tf.Variable(5.0)}
    path = tf.train.Checkpoint(model=model).save(folder + "/ckpt")
    new = tf.Module()
    status = tf.train.Checkpoint(model=new).restore(path)
    new.inner = tf.Module()
    new.inner.v = tf.Variable(0.0)
    new.rows = [tf.Variable(0.0)]
    new.rows.append(tf.Variable([0.0, 0.0]))
    new.names = {"a": tf.Variable(0.0)}
    status.assert_consumed()
    return [new.inner.v.numpy(), [v.numpy() for v in new.rows], new.names["a"].numpy(), os.path.basename(path)]


@both(v2=True)
def test_what_statuses_say(tf, np):
    import tempfile
    folder, out = tempfile.mkdtemp(), []
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(folder + "/ckpt")
    for objects in ({"a": tf.Variable(0.0)}, {"a": tf.Variable(0.0), "b": tf.Variable(0.0), "c": tf.Variable(0.0)}, {"c": tf.Module()}):
        status = tf.train.Checkpoint(**objects).restore(path).expect_partial()
        for check in ("assert_consumed", "assert_existing_objects_matched", "assert_nontrivial_match"):
            try:
                out.append(getattr(status, check)() is status)
            except AssertionError as error:
                out.append(str(error).split(":")[0].split(" (")[0])
    return out


@both(v2=True)
def test_lists_that_cannot_be_saved(tf, np):
    import tempfile
    out = []

    def replace(rows):
        rows[0] = tf.Variable(2.0)

    def behind(rows):
        held.append(tf.Variable(3.0))
    for change in (replace, behind, lambda rows: rows.append(tf.Variable(1.0)), lambda rows: rows.insert(0, 1)):
        model, held = tf.Module(), [tf.Variable(1.0)]
        model.rows = held
        change(model.rows)
        try:
            tf.train.Checkpoint(model=model).write(tempfile.mkdtemp() + "/ckpt")
            out.append(len(model.rows))
        except ValueError as error:
            out.append([word for word in ("replaced", "modified outside") if word in str(error)])
    model.names = {3: tf.Variable(1.0)}
    try:
        tf.train.Checkpoint(model=model).write(tempfile.mkdtemp() + "/ckpt")
    except ValueError as error:
        out.append("non-string key" in str(error) or "replaced" in str(error))
    return out


@both(v2=True)
def test_python_states_and_counters(tf, np):
    import tempfile
    folder = tempfile.mkdtemp()

    class State(tf.train.experimental.PythonState):
        def __init__(self):
            self.text = "one"

        def serialize(self):
            return self.text

        def deserialize(self, string_value):
            self.text = string_value.decode() if isinstance(string_value, bytes) else string_value
    state = State()
    checkpoint = tf.train.Checkpoint(state=state, v=tf.Variable(1.0))
    first = checkpoint.save(folder + "/ckpt")
    state.text = "two"
    second = checkpoint.save(folder + "/ckpt")
    checkpoint.restore(first).assert_consumed()
    view = tf.train.CheckpointView(second)
    return [state.text, checkpoint.save_counter.numpy(), os.path.basename(second), sorted(view.children(0)), view.descendants(),
            sorted(tf.train.list_variables(second))]


@both(v2=True)
def test_files_in_parts(tf, np):
    import tempfile
    folder = tempfile.mkdtemp()
    v, w = tf.Variable(np.arange(24, dtype=np.float32).reshape(4, 6)), tf.Variable([1, 2, 3])
    options = tf.train.CheckpointOptions(experimental_sharding_callback=tf.train.experimental.MaxShardSizePolicy(40))
    path = tf.train.Checkpoint(v=v, w=w).write(folder + "/ckpt", options)
    files = sorted(os.listdir(folder))
    new, other = tf.Variable(tf.zeros([4, 6])), tf.Variable([0, 0, 0])
    tf.train.Checkpoint(v=new, w=other).read(path).assert_consumed()
    return [files, new.numpy(), other.numpy()]


@both(v2=True)
def test_writing_asynchronously(tf, np):
    import tempfile
    folder, seen = tempfile.mkdtemp(), []
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    options = tf.train.CheckpointOptions(enable_async=True, experimental_write_callbacks=[lambda path: seen.append(os.path.basename(path))])
    path = checkpoint.save(folder + "/ckpt", options)
    v.assign(2.0)
    checkpoint.sync()
    checkpoint.restore(path)
    return [v.numpy(), seen[:1], os.path.basename(tf.train.latest_checkpoint(folder))]


@both(v2=True)
def test_managers(tf, np):
    import tempfile
    folder = tempfile.mkdtemp()
    step = tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), folder, 2, step_counter=step, checkpoint_interval=2)
    out = []
    for _ in range(6):
        path = manager.save()
        out.append(path and os.path.basename(path))
        step.assign_add(1)
    again = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), folder, 2)
    step.assign(0)
    again.restore_or_initialize()
    return out, [os.path.basename(path) for path in again.checkpoints], step.numpy(), sorted(os.listdir(folder))


SLOTS = """
import json, sys
sys.path[:0] = [%r]
%s
tf.compat.v1.enable_eager_execution() if hasattr(tf, "compat") and not tf.executing_eagerly() else None
v = tf.Variable([1.0, 2.0])
optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
checkpoint = tf.train.Checkpoint(optimizer=optimizer, v=v)
if sys.argv[1] == "write":
    for _ in range(3):
        optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
    checkpoint.save(sys.argv[2])
    optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
else:
    status = checkpoint.restore(sys.argv[2] + "-1")
    optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
    status.assert_consumed()
print(json.dumps([round(x, 4) for x in v.numpy().tolist()]))
"""


@pytest.mark.skipif(not stock.is_there(), reason="no stock TensorFlow")
@pytest.mark.parametrize("writer,reader", [("ours", "stock"), ("stock", "ours")])
def test_slots_are_exchanged_with_stock(tmp_path, writer, reader):
    """The slots are made from the checkpoint before the optimizer would make them: the next step is the same."""
    import subprocess
    import sys

    from both import ROOT
    results = []
    for who, what in ((writer, "write"), (reader, "read")):
        package = os.path.join(ROOT, "python")
        program = SLOTS % (package, "import runnel.v2 as tf" if who == "ours" else "import tensorflow as tf")
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
        environment.pop("PYTHONPATH", None)
        done = subprocess.run([sys.executable, "-c", program, what, str(tmp_path / "ckpt")], stdout=subprocess.PIPE, check=True, text=True,
                              env=environment)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    assert results[0] == results[1]
