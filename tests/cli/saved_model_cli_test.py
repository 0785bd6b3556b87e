"""The spellings of stock TensorFlow's saved_model_cli: the same arguments give both programs the same outputs.

usage: saved_model_cli_test.py RUNNEL
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

try:
    import tensorflow as tf
except ImportError:
    sys.exit(77)

RUNNEL = os.path.abspath(sys.argv[1])
STOCK = os.path.join(os.path.dirname(sys.executable), "saved_model_cli")
if not os.path.exists(STOCK):
    sys.exit(77)

failures = 0


class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x"), tf.TensorSpec(None, tf.int64, "y")])
    def numbers(self, x, y):
        return {"sum": tf.reduce_sum(x, 1), "more": y + 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def parse(self, examples):
        features = {"age": tf.io.VarLenFeature(tf.int64), "size": tf.io.VarLenFeature(tf.float32),
                    "name": tf.io.VarLenFeature(tf.string)}
        parsed = tf.io.parse_example(examples, features)
        return {key: tf.sparse.to_dense(value) for key, value in parsed.items()}


def plain(array):
    return array.astype("S") if array.dtype == object else array  # stock pickles strings


def run(program, arguments, folder):
    got = subprocess.run(program + ["run", "--dir", "model", "--tag_set", "serve", "--outdir", folder] + arguments,
                         capture_output=True, text=True, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES=""))
    if got.returncode:
        return got.stderr.strip().splitlines()[-1:]
    return {name: plain(np.load(os.path.join(folder, name), allow_pickle=True)) for name in sorted(os.listdir(folder))}


def same(*arguments):
    global failures
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as stock:
        got, wanted = run([RUNNEL, "saved_model"], list(arguments), ours), run([STOCK], list(arguments), stock)
    if isinstance(wanted, list):
        print("FAILED: stock refuses", arguments, wanted)
        failures += 1
    elif isinstance(got, list) or got.keys() != wanted.keys() or not all(np.array_equal(got[key], wanted[key]) for key in wanted):
        print("FAILED:", arguments, "\n  ours: ", got, "\n  stock:", wanted)
        failures += 1


os.chdir(tempfile.mkdtemp())
model = Model()
tf.saved_model.save(model, "model", {"numbers": model.numbers, "parse": model.parse})
np.save("x.npy", np.array([[1.5, 2], [3, 4]]))  # double, as NumPy makes it
np.save("y.npy", np.array([7, 8], np.int32))
same("--signature_def", "numbers", "--inputs", "x=x.npy;y=y.npy")
same("--signature_def", "numbers", "--inputs", "x=x.npy", "--input_exprs", "y=[1, 2]")
same("--signature_def", "numbers", "--input_exprs", "x=[(1, 2), [3, 4.5],];y=3")
same("--signature_def", "parse", "--input_examples",
     "examples=[{'age': [22, -3], 'name': ['a b', 'c\"d']}, {'size': [0.25, 2.0], \"name\": ['e']}]")

# show takes the same arguments; what it prints is its own.
for arguments in (["--all"], ["--tag_set", "serve"], ["--tag_set", "serve", "--signature_def", "numbers"]):
    got = subprocess.run([RUNNEL, "saved_model", "show", "--dir", "model"] + arguments, capture_output=True, text=True)
    if got.returncode or "signature numbers" not in got.stdout or ("signature parse" in got.stdout) == ("numbers" in arguments):
        print("FAILED: show", arguments, got.stdout, got.stderr)
        failures += 1

# Files that are there stay, unless --overwrite says otherwise.
os.mkdir("out")
call = [RUNNEL, "saved_model", "run", "--dir", "model", "--signature_def", "numbers", "--input_exprs", "x=[[1,2]];y=3", "--outdir", "out"]
codes = [subprocess.run(call + more, capture_output=True).returncode for more in ([], [], ["--overwrite"])]
if codes != [0, 1, 0]:
    print("FAILED: --overwrite", codes)
    failures += 1
sys.exit(bool(failures))
