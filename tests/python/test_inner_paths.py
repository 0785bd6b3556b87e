"""tensorflow.python.*: a test in the style of TensorFlow's own passes here as it does in stock."""

import os
import re
import subprocess
import sys

from both import HERE, ROOT, both
from support import stock

ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
SCRIPT = os.path.join(HERE, "inner_paths_script.py")


def test_script():
    done = subprocess.run([sys.executable, "-m", "runnel", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout
    ran = stock.recorded("inner_paths", stock.digest(SCRIPT), lambda: re.search(r"Ran \d+ tests", stock.run(SCRIPT, errors=True)).group())
    assert ran == "Ran 11 tests"
    assert ran in done.stdout, done.stdout


def test_what_is_not_there(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from tensorflow.python.ops import array_ops\n"
                      "try:\n    array_ops.no_such_name\nexcept AttributeError as error:\n    print(error)\n"
                      "try:\n    import tensorflow.python.no_such\nexcept ImportError as error:\n    print(error)\n"
                      "from tensorflow.python.tpu import feature_column\n"
                      "print(isinstance(1, feature_column._TPUEmbeddingColumn))\n"
                      "try:\n    feature_column.embedding_column(1)\n"
                      "except NotImplementedError as error:\n    print(error)\n")
    done = subprocess.run([sys.executable, "-m", "runnel", str(script)], stdout=subprocess.PIPE, text=True, check=True,
                          env=ENVIRONMENT)
    assert done.stdout.splitlines() == [
        "tensorflow.python.ops.array_ops has no 'no_such_name' in Runnel: see doc/python.md",
        "tensorflow.python.no_such is private to TensorFlow, and Runnel has no counterpart", "False",
        "tensorflow.python.tpu.feature_column.embedding_column is not in Runnel: see doc/python.md"]


@both
def test_arguments_of_raw_ops(tf, np):
    import inspect
    names = ("Sum All EuclideanNorm ExpandDims Split SplitV Squeeze Where Select MatMul Conv2D ConcatV2 "
             "SaveV2 InTopKV2 Einsum Cast Assign VarHandleOp StridedSlice").split()
    return {name: list(inspect.signature(getattr(tf.raw_ops, name)).parameters) for name in names}
