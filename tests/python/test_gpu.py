"""tf.config, tf.test and eager execution on two emulated GPUs: a process of its own, because devices are chosen once."""

import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")
FOLDER = os.path.join(os.environ.get("RUNNEL_BUILD", ""), "tests", "gpu", "cuda")
PART = os.path.join(FOLDER, "librunnel_cuda.so.2")


def run(program, tmp_path):
    if not os.path.exists(PART) or not os.path.exists(os.path.join(FOLDER, "libcuda.so.1")):
        pytest.skip("the emulated CUDA part was not built")
    env = dict(os.environ, RN_EMULATED_GPUS="2", RUNNEL_CUDA_PATH=FOLDER, RUNNEL_CUDA_PART=PART, RUNNEL_CACHE_DIR=str(tmp_path),
               PYTHONPATH=PACKAGE)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_devices_and_their_settings(tmp_path):
    assert run("""
import runnel as tf
experimental = tf.config.experimental
cpu, first, second = tf.config.list_physical_devices()
print(first.name, experimental.get_device_details(first), experimental.get_device_details(cpu))
print(experimental.get_memory_growth(first))
experimental.set_memory_growth(first, True)
print(experimental.get_memory_growth(first))
experimental.set_virtual_device_configuration(second, [experimental.VirtualDeviceConfiguration(memory_limit=n) for n in (64, 32)])
tf.config.set_visible_devices([second], "GPU")
with tf.Session(graph=tf.Graph()) as sess:
    print([(row.device_type, row.memory_limit_bytes >> 20) for row in sess.list_devices()][1:])
tf.enable_eager_execution()
print([row.name for row in tf.config.list_logical_devices()])
print(tf.test.gpu_device_name(), tf.test.is_gpu_available(), tf.test.is_gpu_available(min_cuda_compute_capability=(99, 0)))
for change in (lambda: tf.config.set_visible_devices([], "GPU"), lambda: experimental.set_memory_growth(first, False),
               lambda: experimental.set_memory_growth(cpu, True), lambda: experimental.get_memory_info("GPU:2")):
    try:
        change()
    except (RuntimeError, ValueError) as error:
        print(error)
""", tmp_path) == [
        "/physical_device:GPU:0 {'device_name': 'Emulated GPU', 'compute_capability': (9, 0)} {}",
        "None", "True", "[('GPU', 64), ('GPU', 32)]", "['/device:CPU:0', '/device:GPU:0', '/device:GPU:1']",
        "/device:GPU:0 True False",
        "Visible devices cannot be modified after being initialized",
        "Physical devices cannot be modified after being initialized",
        "Cannot set memory growth on non-GPU and non-Pluggable devices",
        "No matching devices found for 'GPU:2'"]


def test_eager_values(tmp_path):
    assert run("""
import runnel as tf
tf.enable_eager_execution()
x = tf.constant([1., 2.])
y = x + x
print(y.device[-5:], y.backing_device[-5:], y.numpy(), y.gpu(1).device[-5:], y.cpu().backing_device[-5:])
print((tf.shape(y) + 1).backing_device[-5:])
print(tf.config.experimental.get_memory_info("GPU:0")["current"] > 0)
with tf.device("/gpu:1"):
    v = tf.Variable([3.])
v.assign_add([1.])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(v * v)
print(v.device[-5:], v.numpy(), tape.gradient(loss, v).numpy())
print(tf.contrib.eager.defun(lambda a: tf.matmul(a, a) + 1)(tf.ones([2, 2]))[0].numpy())
""", tmp_path) == ["GPU:0 GPU:0 [2. 4.] GPU:1 CPU:0", "CPU:0", "True", "GPU:1 [4.] [8.]", "[3. 3.]"]


def test_functions_follow_their_variables(tmp_path):
    assert run("""
import runnel as tf
tf.enable_eager_execution()
vs = []
for device in ("/cpu:0", "/gpu:0", "/gpu:1"):
    with tf.device(device):
        vs.append(tf.Variable([float(len(vs)) + 1]))
@tf.contrib.eager.defun
def step(x):
    for v in vs:
        v.assign_add(x)
    return tf.add_n([v * v for v in vs]) + x
for x in (1., 2.):
    print(step(tf.constant([x])).numpy(), [(v.device[-5:], float(v.numpy()[0])) for v in vs])
with tf.device("/gpu:1"):
    y = step(tf.constant([0.]))
print(y.device[-5:], y.numpy())
with tf.GradientTape() as tape:
    loss = step(tf.constant([0.]))
print([float(g.numpy()[0]) for g in tape.gradient(loss, vs)])
""", tmp_path) == ["[30.] [('CPU:0', 2.0), ('GPU:0', 3.0), ('GPU:1', 4.0)]", "[79.] [('CPU:0', 4.0), ('GPU:0', 5.0), ('GPU:1', 6.0)]",
                   "GPU:1 [77.]", "[8.0, 10.0, 12.0]"]


@pytest.mark.parametrize("name, arguments", [("image_networks", ["--net", "resnet50"]), ("language_model", []), ("transformer", [])])
def test_examples(name, arguments, tmp_path):
    folder = os.path.join(os.path.dirname(PACKAGE), "examples", "python")
    program = """
import sys
sys.path.insert(0, %r)
sys.argv = [%r, "--steps", "1", "--device"] + %r
exec(open(sys.argv[0]).read())
"""
    path = os.path.join(folder, name + ".py")
    cpu, gpu = ([float(word) for word in re.findall(r"\d+\.\d+", run(program % (folder, path, [device, *arguments]), tmp_path)[-1])]
                for device in ("cpu", "gpu"))
    assert cpu
    assert gpu == pytest.approx(cpu, rel=1e-3)
