#!/usr/bin/env python3
"""The wheels of `make wheel`, made once and installed into a clean virtual environment of every Python here.

usage: wheel_test.py SOURCE BUILD_FOLDER

Skipped (77) without an index of packages, or without a Python that has its headers.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

SOURCE, BUILD = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
MOST_BYTES = 15_000_000
sys.path.insert(0, os.path.join(SOURCE, "python", "tools"))
import make_wheel  # noqa: E402
import wheel_file  # noqa: E402

# Uses every library of the wheel. Prints those that are mapped, and what was computed.
PROGRAM = """
import base64, importlib.metadata, os, subprocess, sys, tempfile
import numpy
import tensorflow as tf
assert tf.__version__ == importlib.metadata.version("tensorflow") == "2.21.0"
x, w = tf.ones([1, 8, 8, 4]), tf.ones([3, 3, 4, 8])
with tf.GradientTape() as tape:
    tape.watch(w)
    y = tf.nn.conv2d(x, w, 1, "VALID")
assert tape.gradient(y, w).numpy().tolist() == numpy.full([3, 3, 4, 8], 36.0).tolist()
pixels = tf.constant(numpy.arange(48, dtype=numpy.uint8).reshape(4, 4, 3))
assert (tf.io.decode_png(tf.io.encode_png(pixels)).numpy() == pixels.numpy()).all()
assert tf.io.decode_jpeg(tf.io.encode_jpeg(pixels)).shape == (4, 4, 3)
webp = base64.b64decode("UklGRjIAAABXRUJQVlA4TCUAAAAvBQABEM1lRP8DihlJghhGYN7jr3jtIgz2oAgEUthKT4AO7MQbAA==")
assert tf.image.decode_webp(webp).numpy().size > 0
assert tf.strings.regex_replace("a1b22", "[0-9]+", "-").numpy() == b"a-b-"
folder = tempfile.mkdtemp()
make = "import sqlite3 as s, sys; c = s.connect(sys.argv[1]); c.execute('create table t (a)'); c.execute('insert into t values (7)'); c.commit()"
subprocess.run([sys.executable, "-c", make, os.path.join(folder, "t.db")], check=True)  # the module would load the system's library
assert [row[0].numpy() for row in tf.data.experimental.SqlDataset("sqlite", os.path.join(folder, "t.db"), "select a from t", (tf.int32,))] == [7]
print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}), sep="\\n")
"""


def run(*words, **options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "RUNNEL_", "LD_", "VIRTUAL_ENV"))}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/", env=environment, **options)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(words), done.stdout))
    return done.stdout


def check_lists():
    """Every library that the sources open is in the wheel, or left out for a reason."""
    opened = set()
    for path in glob.glob(os.path.join(SOURCE, "src", "**", "*.c"), recursive=True):
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        if "dlopen(" in text and os.sep + "cuda" + os.sep not in path:
            opened.update(re.findall(r'"(lib[\w+-]+\.so\.[\d.]*\d)"', text))
    opened -= {"librunnel_cuda.so.2", "libtensorflow_protos.so.2"}  # ours
    unknown = opened - set(make_wheel.LIBRARIES) - set(make_wheel.LEFT_OUT)
    assert len(opened) > 5 and not unknown, "neither in LIBRARIES nor in LEFT_OUT of make_wheel.py: %s" % sorted(unknown)


def check_archive(wheel, onednn):
    names = zipfile.ZipFile(wheel).namelist()
    info = "runnel-%s.dist-info" % wheel_file.version()
    metadata = zipfile.ZipFile(wheel).read(info + "/METADATA").decode()
    for line in ("License-Expression: Apache-2.0", "Description-Content-Type: text/markdown", "Requires-Dist: numpy"):
        assert line in metadata.splitlines(), metadata[:2000]
    for line in metadata.splitlines():
        if line.startswith("License-File: "):
            assert "%s/licenses/%s" % (info, line[14:]) in names, line
    assert "runnel/py.typed" in names and "runnel/__init__.pyi" in names
    assert len([name for name in names if name.startswith("runnel/_core.cpython-")]) == len(make_wheel.pythons())
    if not onednn:
        print("build/onednn is missing: the wheel has Debian's oneDNN, so its size and its tag are not checked (make wheel builds a small one)")
        return
    assert os.path.getsize(wheel) <= MOST_BYTES, "%d bytes" % os.path.getsize(wheel)


def check_tag(tools, wheel):
    """auditwheel finds that the wheel needs nothing but what its tag promises."""
    said = " ".join(run(os.path.join(tools, "bin", "auditwheel"), "show", wheel).split())
    tag = re.search(r"-(manylinux_\w+)\.whl$", wheel).group(1)
    assert 'consistent with the following platform tag: "%s"' % tag in said, said


def check_installed(python, folder, wheels):
    run(python, "-m", "venv", folder)
    bin = os.path.join(folder, "bin")
    run(os.path.join(bin, "pip"), "install", "-q", *wheels)
    run(os.path.join(bin, "pip"), "check")
    loaded = run(os.path.join(bin, "python"), "-c", PROGRAM).splitlines()
    used = {os.path.basename(path): path for path in loaded}
    expected = set(make_wheel.LIBRARIES) - {"libjansson.so.4", "libhiredis.so.0.14"}  # of the command
    assert expected <= set(used), sorted(expected - set(used))
    outside = [used[name] for name in expected if not used[name].startswith(folder)]
    assert not outside, outside
    said = run(os.path.join(bin, "runnel"), "--version")
    assert said.startswith("runnel " + wheel_file.version()), said
    needed = run("ldd", os.path.join(bin, "runnel"))
    for name in ("libjansson.so.4", "libsleef.so.3"):
        path = re.search(r"%s => (\S+)" % re.escape(name), needed).group(1)
        assert os.path.realpath(path).startswith(folder), needed
    assert run(os.path.join(bin, "runnel-python"), "--version").startswith("runnel ")
    missing = os.path.join(SOURCE, "examples", "python", "softmax_digits.py")
    run(os.path.join(bin, "runnel"), "python-compat", missing)
    run(os.path.join(bin, "pip"), "uninstall", "-q", "-y", "runnel-tensorflow", "runnel")
    left = glob.glob(os.path.join(folder, "lib", "python*", "site-packages", "*runnel*")) + glob.glob(os.path.join(bin, "runnel*"))
    assert not left, left


def update_other():
    """Objects come from another build (tools/reuse_objects.sh) only if it is up to date."""
    other = os.environ.get("RN_REUSE_FROM")
    if other and subprocess.run(["ninja", "-C", other, "runnel", "runnel_python"], stdout=subprocess.PIPE).returncode:
        del os.environ["RN_REUSE_FROM"]


def main():
    check_lists()
    update_other()
    found = make_wheel.pythons()
    if not found:
        print("no Python with its headers")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        tools = os.path.join(folder, "tools")
        subprocess.run([found[max(found)], "-m", "venv", tools], check=True)
        if subprocess.run([os.path.join(tools, "bin", "pip"), "install", "-q", "auditwheel", "numpy"]).returncode:
            print("no index of packages")
            return 77
        onednn = os.path.join(SOURCE, "build", "onednn")
        onednn = onednn if os.path.exists(os.path.join(onednn, "libdnnl.so.2")) else None
        command = [sys.executable, os.path.join(SOURCE, "python", "tools", "make_wheel.py"), "--out", folder, "--build", BUILD]
        run(*command, *(["--onednn", onednn] if onednn else []))
        wheel, = glob.glob(os.path.join(folder, "runnel-*.whl"))
        check_archive(wheel, onednn)
        if onednn:
            check_tag(tools, wheel)
        for key in sorted(found):
            check_installed(found[key], os.path.join(folder, "python%d.%d" % key), [wheel] + glob.glob(os.path.join(folder, "runnel_tensorflow-*.whl")))
            print("Python %d.%d: installed, used, removed" % key)
    return 0


if __name__ == "__main__":
    sys.exit(main())
