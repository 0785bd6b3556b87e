"""Savers, checkpoints and MetaGraphDefs, exchanged with stock in both directions."""

import os
import subprocess
import sys
import tempfile

import pytest
from both import HERE, ROOT, both
from support import stock


def folder():
    return tempfile.mkdtemp(prefix="runnel_saver")


@both(graph=True)
def test_graph(tf, np):
    tf.Variable([1.0, 2.0], name="w")
    tf.get_variable("r", [3], use_resource=True, initializer=tf.ones_initializer())
    tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer())
    saver = tf.train.Saver(max_to_keep=3)
    sharded = tf.train.Saver(sharded=True, name="shards")
    some = tf.train.Saver({"other": tf.global_variables()[0]}, name="some", restore_sequentially=True, reshape=True)
    return [str(s.as_saver_def()) for s in (saver, sharded, some)]


@both
def test_round_trip(tf, np):
    where = folder()
    step = tf.train.get_or_create_global_step()
    w = tf.Variable([1.0, 2.0], name="w")
    more = tf.group(w.assign_add([1.0, 1.0]), step.assign_add(1))
    saver = tf.train.Saver(max_to_keep=2)
    out = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            sess.run(more)
            out.append(os.path.basename(saver.save(sess, os.path.join(where, "m"), global_step=step)))
        out.append([os.path.basename(p) for p in saver.last_checkpoints])
        sess.run(w.assign([0.0, 0.0]))
        saver.restore(sess, tf.train.latest_checkpoint(where))
        out.append(sess.run([w, step]))
        saver.restore(sess, saver.last_checkpoints[0])
        out.append(sess.run([w, step]))
    state = tf.train.get_checkpoint_state(where)
    out += [os.path.basename(state.model_checkpoint_path), [os.path.basename(p) for p in state.all_model_checkpoint_paths]]
    out += [sorted(os.listdir(where)), tf.train.list_variables(where), tf.train.load_variable(where, "w")]
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(where))
    return out + [reader.has_tensor("w"), reader.has_tensor("x"), reader.get_tensor("global_step"),
                  tf.train.checkpoint_exists(os.path.join(where, "m-1")), open(os.path.join(where, "checkpoint")).read().replace(where, "")]


@both
def test_relative_paths(tf, np):
    where = folder()
    w = tf.Variable([1.0, 2.0], name="w")
    saver = tf.train.Saver(save_relative_paths=True, pad_step_number=True)
    with tf.Session() as sess:
        sess.run(w.initializer)
        saver.save(sess, os.path.join(where, "m"), global_step=7, latest_filename="list", write_meta_graph=False)
    return open(os.path.join(where, "list")).read(), sorted(os.listdir(where)), tf.train.latest_checkpoint(where) is None


@both
def test_names_and_slices(tf, np):
    where = folder()
    p = tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.random_normal_initializer(seed=3))
    saver = tf.train.Saver({"whole": p})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, os.path.join(where, "m"))
    with tf.Graph().as_default():
        whole = tf.get_variable("q", [4, 2])
        with tf.Session() as sess:
            tf.train.Saver({"whole": whole}).restore(sess, path)
            return sess.run(whole)


@both
def test_first_format(tf, np):
    where = folder()
    w = tf.Variable([1.0, 2.0], name="w")
    saver = tf.train.Saver(write_version=tf.train.SaverDef.V1)
    with tf.Session() as sess:
        sess.run(w.initializer)
        path = saver.save(sess, os.path.join(where, "m"))
        sess.run(w.assign([0.0, 0.0]))
        saver.restore(sess, path)
        return sess.run(w), sorted(os.listdir(where)), tf.train.list_variables(path)


@both
def test_init_from_checkpoint(tf, np):
    where = folder()
    with tf.variable_scope("old"):
        w = tf.get_variable("w", initializer=[1.0, 2.0])
    with tf.Session() as sess:
        sess.run(w.initializer)
        path = tf.train.Saver().save(sess, os.path.join(where, "m"))
    with tf.Graph().as_default():
        with tf.variable_scope("new"):
            v = tf.get_variable("w", [2])
            r = tf.get_variable("r", [2], use_resource=True)
        tf.train.init_from_checkpoint(path, {"old/w": "new/w"})
        tf.train.init_from_checkpoint(where, {"old/w": r})
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return sess.run([v, r])


@both(raises=True)
def test_missing_checkpoint(tf, np):
    tf.Variable(1.0)
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, "/nonexistent/model")


@both(raises=True)
def test_missing_name(tf, np):
    where = folder()
    w = tf.Variable(1.0, name="w")
    with tf.Session() as sess:
        sess.run(w.initializer)
        path = tf.train.Saver().save(sess, os.path.join(where, "m"))
    with tf.Graph().as_default():
        tf.Variable(1.0, name="another")
        with tf.Session() as sess:
            tf.train.Saver().restore(sess, path)


@both(raises=True)
def test_no_folder(tf, np):
    w = tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(w.initializer)
        tf.train.Saver().save(sess, "/nonexistent/folder/model")


@both(raises=True)
def test_nothing_to_save(tf, np):
    tf.train.Saver()


@both
def test_export_scope(tf, np):
    with tf.variable_scope("a"):
        w = tf.get_variable("w", initializer=[1.0, 2.0])
        tf.multiply(w, 2.0, name="y")
    meta = tf.train.export_meta_graph(export_scope="a", clear_devices=True)
    names = [node.name for node in meta.graph_def.node]
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta, import_scope="b")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return names, sorted(meta.collection_def), [v.name for v in tf.global_variables()], sess.run("b/y:0")


# --- Files of one read by the other

PROGRAM = '''
import os, sys
which, what, where = sys.argv[1:]
if which == "stock":
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
else:
    import runnel as tf
import numpy as np

data = np.arange(6).reshape(2, 3).astype("f") / 6
if what == "save":
    tf.set_random_seed(5)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.variable_scope("l", partitioner=tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", [3, 4])
    b = tf.Variable(tf.zeros([4]), name="b")
    r = tf.get_variable("r", [4], use_resource=True, initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w) + b) * r - 1.0), name="loss")
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.1, name="A").minimize(loss, global_step=step)
    tf.add_to_collection("train", train)
    tf.add_to_collection("numbers", 3)
    queue = tf.train.range_input_producer(4, shuffle=False)
    tf.add_to_collection("next", queue.dequeue())
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train, {x: data})
        saver.save(sess, os.path.join(where, "m"), global_step=step)
else:
    path = tf.train.latest_checkpoint(where)
    saver = tf.train.import_meta_graph(path + ".meta")
    with tf.Session() as sess:
        saver.restore(sess, path)
        print("%.5f" % sess.run("loss:0", {"x:0": data}), tf.get_collection("numbers"))
        for _ in range(3):
            sess.run(tf.get_collection("train")[0], {"x:0": data})
        print("%.5f" % sess.run("loss:0", {"x:0": data}), sess.run(tf.train.get_global_step()))
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        print([int(sess.run(tf.get_collection("next")[0])) for _ in range(3)])
        coord.request_stop()
        coord.join(threads)
    print(os.path.basename(path), [v.name for v in tf.global_variables()], [v.name for v in tf.trainable_variables()])
    print(saver.saver_def, tf.train.list_variables(path))
'''


def run(which, what, where, program=PROGRAM):
    if which == "stock":
        return stock.run(program, which, what, where, cwd=HERE)
    return subprocess.run([sys.executable, "-c", program, which, what, where], check=True, stdout=subprocess.PIPE, text=True, cwd=HERE,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))).stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = {}
    for which in ("stock", "runnel"):
        out[which] = str(tmp_path_factory.mktemp(which))
        run(which, "save", out[which])
    return out


@pytest.fixture(scope="module")
def expected(written):
    return run("stock", "load", written["stock"])


@pytest.mark.parametrize("reader,writer", [("runnel", "runnel"), ("runnel", "stock"), ("stock", "runnel")])
def test_files_go_both_ways(written, expected, reader, writer):
    assert run(reader, "load", written[writer]) == expected


OBJECTS = '''
import os, sys
which, what, where = sys.argv[1:]
if which == "stock":
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
else:
    import runnel as tf

name = "v" if what == "save" else "called_otherwise"
v = tf.Variable([1.0, 2.0], name=name, use_resource=True)
w = tf.Variable(3.0, name="w", use_resource=True)
optimizer = tf.train.AdamOptimizer(0.1)
train = optimizer.minimize(tf.reduce_sum(tf.square(v)) * w)
checkpoint = tf.train.Checkpoint(first=v, optimizer=optimizer, more=[w])
with tf.Session() as sess:
    if what == "save":
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        manager = tf.train.CheckpointManager(checkpoint, where, 2)
        for _ in range(3):
            manager.save()
        assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-2", "ckpt-3"]
    else:
        path = tf.train.latest_checkpoint(where)
        status = checkpoint.restore(path).assert_consumed()
        status.initialize_or_restore(sess)
        print(sess.run([v, w, optimizer.get_slot(v, "m"), optimizer._get_beta_accumulators()[0], checkpoint.save_counter]))
        print(tf.train.list_variables(path), sorted(os.listdir(where)))
'''


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    out = {}
    for which in ("stock", "runnel"):
        out[which] = str(tmp_path_factory.mktemp("objects_" + which))
        run(which, "save", out[which], OBJECTS)
    return out, run("stock", "load", out["stock"], OBJECTS)


@pytest.mark.parametrize("reader,writer", [("runnel", "runnel"), ("runnel", "stock"), ("stock", "runnel")])
def test_objects_go_both_ways(objects, reader, writer):
    assert run(reader, "load", objects[0][writer], OBJECTS) == objects[1]


def test_broken_index(tmp_path):
    import runnel as tf
    with tf.Graph().as_default(), tf.Session() as sess:
        w = tf.Variable([1.0, 2.0], name="w")
        sess.run(w.initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    data = (tmp_path / "m.index").read_bytes()
    for length in range(0, len(data), 7):
        (tmp_path / "m.index").write_bytes(data[:length])
        with pytest.raises(tf.errors.DataLossError):
            tf.train.NewCheckpointReader(path)
    for at in range(len(data)):
        (tmp_path / "m.index").write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
        try:
            tf.train.NewCheckpointReader(path).get_variable_to_shape_map()
        except (tf.errors.DataLossError, TypeError):
            pass


@both
def test_shapes_of_restored_parts(tf, np):
    parts = tf.raw_ops.RestoreV2(prefix="x", tensor_names=["a", "b"], shape_and_slices=["", "4 3 0,2:-"], dtypes=[tf.float32, tf.float32])
    old = tf.raw_ops.RestoreSlice(file_pattern="x", tensor_name="a", shape_and_slice="1 4 -:1,2", dt=tf.float32)
    return [str(x.shape) for x in list(parts) + [old]]
