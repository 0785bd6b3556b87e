#!/usr/bin/env python3
"""Records the results of stock TensorFlow for the tests' programs, so that the tests need not start it.

usage: build/venv/bin/python tests/python/record.py [--check | --all | --texts] [FILE ...]

Without FILE, takes all test files. Skips those whose recording is up to date, unless --all is given. --check lists those whose
recording is out of date, and fails if there are any. --texts runs the tests that use recorded/texts.json and updates that file.

Stock is imported once; each file runs in a child of that process, because eager execution cannot be switched off again.
"""

import glob
import gzip
import os
import pickle
import subprocess
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1", CUDA_VISIBLE_DEVICES="")

import both


def record(path):
    results = both.run_in_stock(path)
    for name, outcome in results.items():
        if outcome[0] == "failed in stock":
            print("%s: %s: %s: %s" % (path, name, *outcome[1:]))
            return 1
    with open(both.recording(path), "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as stream:
        pickle.dump((both.digest(path), results), stream, 4)
    print("%s: %d programs" % (path, len(results)), flush=True)
    return 0


def record_texts(files):
    files = [path for path in files if "stock.printed(" in open(path).read() or "recorded(" in open(path).read()]
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
                          env=dict(os.environ, RUNNEL_RECORD="1")).returncode


def main():
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    files = [word for word in sys.argv[1:] if not word.startswith("--")]
    files = [os.path.abspath(path) for path in files or sorted(glob.glob(os.path.join(both.HERE, "test_*.py")))]
    if "--texts" in options:
        return record_texts(files)
    files = [path for path in files if "@both" in open(path).read() or " both(" in open(path).read()]
    if "--all" not in options:
        files = [path for path in files if both.recorded(path) is None]
    if "--check" in options:
        print("".join("%s: the recording is out of date\n" % path for path in files), end="")
        return len(files) > 0
    os.makedirs(os.path.dirname(both.recording("x.py")), exist_ok=True)
    if files:
        import tensorflow.compat.v1  # noqa: F401, for all children
    failed = 0
    for path in files:
        child = os.fork()
        if child == 0:
            os._exit(record(path))
        failed += os.waitpid(child, 0)[1] != 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
