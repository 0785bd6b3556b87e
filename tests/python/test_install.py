"""The wheel: packs the build, installs it into a new folder, and uses it from there."""

import os
import subprocess
import sys

import pytest
from both import ROOT

PROGRAM = """
import runnel as tf, sys
assert tf.__file__.startswith(sys.argv[1]), tf.__file__
assert tf._core.__file__.startswith(sys.argv[1])
assert "Multiplies two matrices" in tf.raw_ops.MatMul.__doc__
print(tf.Session().run(tf.matmul([[2.0]], [[3.0]])).tolist())
loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libtensorflow" in line]
assert all(path.startswith(sys.argv[1]) for path in loaded) and loaded, loaded
"""


def test_wheel(tmp_path):
    target = str(tmp_path / "site")
    build = os.environ.get("RUNNEL_BUILD", "build/release")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--target", target, ROOT], check=True,
                   env=dict(os.environ, RUNNEL_BUILD=build))
    environment = {key: value for key, value in os.environ.items() if key != "RUNNEL_BUILD"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, target], check=True, stdout=subprocess.PIPE, text=True, cwd=str(tmp_path),
                          env=dict(environment, PYTHONPATH=target))
    assert done.stdout == "[[6.0]]\n"
    done = subprocess.run([os.path.join(target, "bin", "runnel"), "ops", "MatMul"], check=True, stdout=subprocess.PIPE, text=True, env={})
    assert done.stdout.startswith("MatMul(")


@pytest.mark.parametrize("where", ["--target", "--prefix"])
def test_wheel_has_the_cuda_part(tmp_path, where):
    """The command and the package find the CUDA part that was installed with them. The driver is an emulated one."""
    built = os.path.join(ROOT, os.environ.get("RUNNEL_BUILD", "build/release"))
    emulated, part = os.path.join(built, "tests", "gpu", "cuda"), os.path.join(built, "librunnel_cuda.so.2")
    if not os.path.exists(os.path.join(emulated, "libcuda.so.1")):
        pytest.skip("the emulated driver is not built")
    # Where there is no nvcc, the emulated part stands for the real one.
    files = {"librunnel_cuda.so.2": part if os.path.exists(part) else os.path.join(emulated, "librunnel_cuda.so.2")}
    files.update({name: os.path.join(built, name) for name in ("python", "cli", "libtensorflow.so.2")})
    (tmp_path / "build").mkdir()
    for name, file in files.items():
        os.symlink(file, tmp_path / "build" / name)
    installed = tmp_path / "installed [1]*"  # no pattern
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--ignore-installed", where,
                    str(installed), ROOT], check=True, env=dict(os.environ, RUNNEL_BUILD=str(tmp_path / "build")))
    environment = {key: value for key, value in os.environ.items() if key not in ("RUNNEL_BUILD", "RUNNEL_CUDA_PART")}
    environment["RUNNEL_CUDA_PATH"] = emulated
    folders = [folder for folder, _, names in os.walk(installed) if "runnel" in names and os.path.basename(folder) == "bin"]
    packages = [os.path.dirname(folder) for folder, _, names in os.walk(installed) if "librunnel_cuda.so.2" in names]
    assert len(folders) == 1 and len(packages) == 1, (folders, packages)
    done = subprocess.run(["runnel", "devices"], check=True, stdout=subprocess.PIPE, text=True, cwd="/",
                          env=dict(environment, PATH=folders[0] + ":" + os.environ["PATH"]))
    assert "\nGPU:0 " in done.stdout, done.stdout
    program = "import runnel as tf; print([d.name for d in tf.Session().list_devices()])"
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True, cwd="/",
                          env=dict(environment, PYTHONPATH=packages[0]))
    assert "device:GPU:0" in done.stdout, done.stdout


STUB = """
import site, sys
site.addsitedir(sys.argv[1])
sys.path[:0] = sys.argv[2:]
import importlib.metadata
print(importlib.metadata.version("tensorflow"), [d.version for d in importlib.metadata.distributions(name="tensorflow")])
import tensorflow as tf
from tensorflow.python.framework import ops
import runnel.v2
print(tf is runnel.v2, tf.reduce_sum(tf.constant([1, 2])).numpy())
"""
BESIDE = """
import importlib.metadata, importlib.util, site, sys
site.addsitedir(sys.argv[1])
print(len(list(importlib.metadata.distributions(name="tensorflow"))), "runnel" in sys.modules, importlib.util.find_spec("tensorflow").origin)
"""


def test_stub_distribution(tmp_path):
    """runnel-tensorflow: `import tensorflow` is the API of 2.x. Beside a real TensorFlow it does nothing."""
    import numpy
    target, alone = str(tmp_path / "site"), tmp_path / "numpy_only"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--target", target,
                    os.path.join(ROOT, "python", "packages", "runnel-tensorflow")], check=True)
    assert not os.path.exists(os.path.join(target, "tensorflow"))
    alone.mkdir()
    packages = os.path.dirname(os.path.dirname(numpy.__file__))
    for name in os.listdir(packages):
        if name in ("numpy", "numpy.libs", "ml_dtypes"):
            os.symlink(os.path.join(packages, name), alone / name)
    done = subprocess.run([sys.executable, "-S", "-c", STUB, target, os.path.join(ROOT, "python"), str(alone)], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "2.21.0 ['2.21.0']\nTrue 3\n"
    done = subprocess.run([sys.executable, "-c", BESIDE, target], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.startswith("1 False %s" % packages), done.stdout


def test_wheel_without_tools(tmp_path):
    """What is missing is said, and which packages have it; no traceback. CMake and Ninja come from the index of packages."""
    environment = {key: value for key, value in os.environ.items() if key != "RUNNEL_BUILD"}
    environment["PATH"] = str(tmp_path / "bin")
    (tmp_path / "bin").mkdir()
    asked = "import build_backend as b; print(b.get_requires_for_build_wheel())"
    tools = dict(environment, PYTHONPATH=os.path.join(ROOT, "python", "tools"))
    done = subprocess.run([sys.executable, "-c", asked], check=True, stdout=subprocess.PIPE, text=True, env=tools)
    assert done.stdout == "['cmake>=3.22', 'ninja']\n"
    (tmp_path / "bin" / "ninja").symlink_to("/bin/true")
    (tmp_path / "bin" / "cmake").write_text("#!/bin/sh\necho cmake version 3.25.1\n")
    (tmp_path / "bin" / "cmake").chmod(0o755)
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-cache-dir", "-w", str(tmp_path), ROOT],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert done.returncode != 0 and "Traceback" not in done.stdout, done.stdout
    assert "there is no C compiler here" in done.stdout and "apt install gcc" in done.stdout and "libdnnl-dev" in done.stdout, done.stdout


def run_module(*arguments, cwd=None):
    done = subprocess.run([sys.executable, "-m", "runnel", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def test_module_says_what_is_wrong(tmp_path):
    assert run_module()[0] == 2
    assert run_module("--help")[0] == 0 and "usage: python -m runnel" in run_module("--help")[1]
    assert run_module("--version")[0] == 0 and run_module("--version")[1].startswith("runnel ")
    assert run_module("nofile.py", cwd=tmp_path) == (2, "python -m runnel: cannot read 'nofile.py': No such file or directory\n")
    assert run_module("-m", "no.module") == (2, "python -m runnel: there is no module 'no.module'\n")
    assert run_module("-m") == (2, "python -m runnel: -m needs a module; see --help\n")
    assert run_module("--names", "nofile.py", cwd=tmp_path) == (2, "cannot read 'nofile.py': No such file or directory\n")
    (tmp_path / "odd.py").write_text("x = 1\nif x\n")
    assert run_module("--names", "odd.py", cwd=tmp_path) == (2, "odd.py:2: expected ':'\n")
    assert run_module("--nothing") == (2, "python -m runnel: there is no option '--nothing'; see --help\n")


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_closed_pipe_is_no_error(argument):
    """`python -m runnel --help | head -1` prints no traceback."""
    process = subprocess.Popen([sys.executable, "-m", "runnel", argument], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 0)


def test_missing_numpy_is_named():
    script = "import sys\nsys.modules['numpy'] = None\nimport runnel as tf\nx = tf.constant([1.0]) + 1.0\ntf.Session().run(x)\n"
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: Runnel needs NumPy for the values of tensors: pip install numpy"


IMPORTS = """
import importlib, runnel
from runnel import alias
alias.install()
for row in open("%s"):
    parts = row.strip().split(".")
    for length in range(1, len(parts)):
        name = ".".join(parts[:length])
        value = runnel
        for part in parts[:length]:
            value = getattr(value, part, None)
        if value is not None:
            assert importlib.import_module("runnel." + name) is value, name
            assert importlib.import_module("tensorflow." + name) is value, name
            assert importlib.import_module("tensorflow.compat.v1." + name) is value, name
from runnel.data.experimental import map_and_batch
from tensorflow.data.experimental import map_and_batch
from runnel.lookup.experimental import MutableHashTable
for name in ("runnel.data.nothing", "runnel.nn.relu", "runnel.nothing"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(name)
print("all", runnel.gfile.__spec__.name)
"""


def test_every_part_can_be_imported():
    names = os.path.join(ROOT, "python", "tools", "stock_names.txt")
    done = subprocess.run([sys.executable, "-c", IMPORTS % names], check=True, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.stdout.startswith("all ")


def test_module_runs_scripts(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nimport tensorflow as tf\nfrom tensorflow.compat.v1 import errors\nimport tensorflow.compat.v1 as tf1\n"
                      "assert tf1 is tf and tf.compat.v1 is tf\nprint(sys.argv[1], tf.Session().run(tf.constant(1) + 2), __name__)\n")
    done = subprocess.run([sys.executable, "-m", "runnel", str(script), "argument"], check=True, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.stdout == "argument 3 __main__\n"


TYPED = """
import runnel as tf
import runnel.v2 as tf2
x = tf.placeholder(tf.float32, [None, 2])
reveal_type(tf.raw_ops.MatMul(x, x, transpose_b=True))
tf.raw_ops.MatMul(x, x, transpose_b="no")
tf.sin(x)
tf.nn.relu(x)
tf.placehodler(tf.float32)
tf.reduce_sum(x, axsi=0)
tf.nn.reul(x)
tf.nn.softmax(x, axsi=0)
tf.train.AdamOptimzer(0.1)
tf.raw_ops.MatMull(x, x)
tf2.distribute.MirroredStrateg()
tf2.reduce_sum(x, axsi=0)
tf2.signal.vorbis_windw(4)
v = tf.Variable(1.0)
y = 2.0 * v + v * [1.0]
try:
    tf.Session().run([tf.reduce_sum(y, axis=0), tf.zeros_initializer()([2])])
except tf.errors.OutOfRangeError as error:
    print(error.message)
w = tf2.Variable([1.0])
tf2.data.Dataset.range(3).map(lambda row: row * w)
tf2.distribute.experimental.partitioners.FixedShardsPartitioner(2)
"""


def test_stubs(tmp_path):
    pytest.importorskip("mypy")
    build = os.environ.get("RUNNEL_BUILD", "build/release")
    subprocess.run(["ninja", "-C", os.path.join(ROOT, build), "runnel_python_stubs"], check=True, stdout=subprocess.DEVNULL)
    target = str(tmp_path / "site")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--target", target, ROOT], check=True,
                   env=dict(os.environ, RUNNEL_BUILD=build))
    script = tmp_path / "user.py"
    script.write_text(TYPED)
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--ignore-missing-imports", "--follow-imports=silent", str(script)],
                          stdout=subprocess.PIPE, text=True, env=dict(os.environ, MYPYPATH=target), cwd=str(tmp_path))
    lines = [line for line in done.stdout.splitlines() if line.startswith("user.py")]
    assert 'Revealed type is "runnel.graph.graph_tensor.Tensor"' in lines[0]
    assert 'transpose_b' in lines[1] and 'expected "bool"' in lines[1]
    wrong = ("placehodler", "axsi", "reul", "axsi", "AdamOptimzer", "MatMull", "MirroredStrateg", "axsi", "vorbis_windw")
    errors = [line for line in lines[2:] if " error: " in line]
    assert len(errors) == len(wrong) and all('"%s"' % name in line for name, line in zip(wrong, errors)), done.stdout
