"""Plug-ins with devices and file systems, each in a process of its own: what is loaded stays loaded.

The plug-ins are those of tests/plugins. Expected values are stock's, which runs the same plug-ins (tests/plugins/run_stock.sh).
"""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")
FOLDER = os.path.join(os.environ.get("RUNNEL_BUILD", ""), "tests", "plugins")
TOY = os.path.join(FOLDER, "libplugins_toy.so")
TOYFS = os.path.join(FOLDER, "libplugins_toyfs.so")
TOY_OPS = os.path.join(os.environ.get("RUNNEL_BUILD", ""), "tests", "cc", "libtoy_ops.so")


def run(program, **env):
    if not os.path.exists(TOY) or not os.path.exists(TOYFS):
        pytest.skip("the plug-ins were not built")
    env = dict(os.environ, PYTHONPATH=PACKAGE, TOY=TOY, TOYFS=TOYFS, **env)
    done = subprocess.run([sys.executable, "-c", "import os\nimport runnel as tf\n" + program], env=env, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_devices():
    assert run("""
print([row.device_type for row in tf.config.list_physical_devices()])
tf.load_pluggable_device_library(os.environ["TOY"])
print([row.name for row in tf.config.list_physical_devices("TOY")])
x = tf.placeholder(tf.float32, [2, 2])
with tf.device("/device:TOY:1"):
    y = tf.matmul(x, x) + 1.0
with tf.Session() as sess:
    print([(row.name, row.memory_limit_bytes) for row in sess.list_devices() if row.device_type == "TOY"])
    print(sess.run(y, {x: [[1, 2], [3, -4]]}).tolist())
    try:
        sess.run(tf.sign(y), {x: [[1, 2], [3, 4]]})
    except tf.errors.DataLossError as error:
        print(error.message.split(chr(10))[0])
try:
    tf.load_pluggable_device_library("/nowhere")
except OSError as error:
    print(error.strerror)
""") == [
        "['CPU']", "['/physical_device:TOY:0', '/physical_device:TOY:1']",
        "[('/job:localhost/replica:0/task:0/device:TOY:0', 806354944), ('/job:localhost/replica:0/task:0/device:TOY:1', 806354944)]",
        "[[8.0, -5.0], [-8.0, 23.0]]", "toys have no sign",
        "The file or folder to load pluggable device libraries from does not exist."]


def test_environment_names_a_plugin():
    assert run("""
print(len(tf.config.list_physical_devices("TOY")))
""", TF_PLUGGABLE_DEVICE_LIBRARY_PATH=TOY) == ["2"]


def test_eager_execution():
    assert run("""
tf.load_pluggable_device_library(os.environ["TOY"])
tf.enable_eager_execution()
x = tf.constant([1.0, 2.0])
y = x + x
print(y.device, y.numpy().tolist(), (-y).numpy().tolist())
v = tf.Variable([1.0, 2.0])
v.assign([3.0, 4.0])
print(v.numpy().tolist(), tf.reshape(y, [2, 1]).numpy().tolist())
""") == ["/job:localhost/replica:0/task:0/device:TOY:0 [2.0, 4.0] [-2.0, -4.0]", "[3.0, 4.0] [[2.0], [4.0]]"]


def test_training_on_the_device():
    assert run("""
tf.load_pluggable_device_library(os.environ["TOY"])
with tf.device("/device:TOY:0"):
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer(), use_resource=True)
    x = tf.placeholder(tf.float32, [4, 2])
    error = tf.matmul(x, w) - 1.0
    step = tf.raw_ops.ResourceApplyGradientDescent(var=w.handle, alpha=0.1, delta=tf.matmul(x, error, transpose_a=True))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(50):
        sess.run(step, {x: [[1, 0], [0, 1], [1, 0], [0, 1]]})
    print(sess.run(w).round(3).tolist())
""") == ["[[1.0], [1.0]]"]


def test_stacks_on_the_device():
    assert run("""
tf.load_pluggable_device_library(os.environ["TOY"])
x = tf.placeholder(tf.float32, [2])
with tf.device("/device:TOY:0"):
    stack = tf.raw_ops.StackV2(max_size=4, elem_type=tf.float32)
    push = tf.raw_ops.StackPushV2(handle=stack, elem=x + x)
    with tf.control_dependencies([push]):
        y = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32) + 1.0
    i, z = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * z), [0, x])
    grad = tf.gradients(z, x)[0]
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    print(sess.run([y, grad], {x: [1, 2]}))
""") == ["[array([3., 5.], dtype=float32), array([   8., 1024.], dtype=float32)]"]


def test_files():
    assert run("""
tf.experimental.register_filesystem_plugin(os.environ["TOYFS"])
gfile = tf.gfile
gfile.MakeDirs("toyfs://disk/a/b")
with gfile.GFile("toyfs://disk/a/b/text", "w") as stream:
    stream.write("one" + chr(10) + "two" + chr(10))
with gfile.GFile("toyfs://disk/a/b/text", "a") as stream:
    stream.write("three")
print([line.strip() for line in gfile.GFile("toyfs://disk/a/b/text")])
print(gfile.Exists("toyfs://disk/a/b/text"), gfile.Exists("toyfs://disk/none"), gfile.IsDirectory("toyfs://disk/a"))
print(gfile.Stat("toyfs://disk/a/b/text").length, gfile.ListDirectory("toyfs://disk/a/b"), gfile.Glob("toyfs://disk/*/b/te*"))
print([row for row in gfile.Walk("toyfs://disk/a")])
gfile.Copy("toyfs://disk/a/b/text", "toyfs://disk/copy")
gfile.Rename("toyfs://disk/copy", "toyfs://disk/moved")
print(gfile.Exists("toyfs://disk/copy"), gfile.GFile("toyfs://disk/moved").read(3))
gfile.DeleteRecursively("toyfs://disk/a")
try:
    gfile.GFile("toyfs://disk/a/b/text").read()
except tf.errors.NotFoundError as error:
    print("/a/b/text is not in the toy box" in error.message)
try:
    gfile.Stat("nofs://x")
except tf.errors.UnimplementedError as error:
    print(error.message)
""") == [
        "['one', 'two', 'three']", "True False True", "13 ['text'] ['toyfs://disk/a/b/text']",
        "[('toyfs://disk/a', ['b'], []), ('toyfs://disk/a/b', [], ['text'])]", "False one", "True",
        "File system scheme 'nofs' not implemented (file: 'nofs://x')"]


def test_checkpoints_models_and_records():
    assert run("""
tf.experimental.register_filesystem_plugin(os.environ["TOYFS"])
tf.gfile.MakeDirs("toyfs://disk/ckpt")
v = tf.get_variable("v", initializer=[1.0, 2.0])
saver = tf.train.Saver(max_to_keep=1)
with tf.Session() as sess:
    sess.run(v.initializer)
    for step in (1, 2):
        sess.run(v.assign_add([1.0, 1.0]))
        saver.save(sess, "toyfs://disk/ckpt/model", global_step=step)
    sess.run(v.assign([0.0, 0.0]))
    print(tf.train.latest_checkpoint("toyfs://disk/ckpt"))
    saver.restore(sess, tf.train.latest_checkpoint("toyfs://disk/ckpt"))
    print(sess.run(v).tolist(), sorted(tf.gfile.ListDirectory("toyfs://disk/ckpt")))
    tf.saved_model.simple_save(sess, "toyfs://disk/model", {"v": v}, {"v": tf.identity(v, "out")})
with tf.Session(graph=tf.Graph()) as sess:
    tf.saved_model.load(sess, ["serve"], "toyfs://disk/model")
    print(sess.run("out:0").tolist())
with tf.python_io.TFRecordWriter("toyfs://disk/records") as writer:
    for text in (b"a", b"bc"):
        writer.write(text)
print(list(tf.python_io.tf_record_iterator("toyfs://disk/records")))
item = tf.data.TFRecordDataset("toyfs://disk/records").batch(2).make_one_shot_iterator().get_next()
with tf.Session() as sess:
    print(sess.run(item).tolist())
writer = tf.summary.FileWriter("toyfs://disk/logs", tf.get_default_graph())
writer.close()
print(len(tf.gfile.ListDirectory("toyfs://disk/logs")))
""") == [
        "toyfs://disk/ckpt/model-2",
        "[3.0, 4.0] ['checkpoint', 'model-2.data-00000-of-00001', 'model-2.index', 'model-2.meta']",
        "[3.0, 4.0]", "[b'a', b'bc']", "[b'a', b'bc']", "1"]


@pytest.mark.skipif(not os.path.exists(TOY_OPS), reason="the ops in C++ were not built")
def test_names_of_ops():
    assert run("""
ops = tf.load_op_library(os.environ["TOY_OPS"])
digits = ops.toy_split_digits([37, 5])
print(type(digits).__name__, digits._fields)
with tf.Session() as sess:
    print([part.tolist() for part in sess.run(digits)])
    counter = ops.ToyCounterOfItsOwn()
    with tf.control_dependencies([ops.toy_counter_next(counter)]):
        print(sess.run(ops.toy_counter_next(counter)))
""", TOY_OPS=TOY_OPS) == ["Toy_SplitDigits ('tens', 'ones')", "[[3, 0], [7, 5]]", "8"]
