"""Runs TensorFlow's own Python tests with Runnel and with stock TensorFlow, and compares what passes.

usage: python tools/tensorflow_tests.py run SOURCES RESULTS PATH ... [--stock] [--jobs N] [--seconds N]
       python tools/tensorflow_tests.py compare STOCK_RESULTS RESULTS [PATH ...] [--list] [--why]

SOURCES is a source tree of TensorFlow; a PATH is a folder or a file below its `tensorflow` (python/util). `run` executes every
`*_test.py` there in a process of its own and appends one line of JSON per test to RESULTS. `compare` prints, per file, how many tests
pass in stock and how many of them with Runnel; --list names the others, --why adds the last line of each failure.
Set RUNNEL_BUILD to the build folder, and RUNNEL_TEST_OPS to libpython_test_ops.so, which stock has built in.
"""

import argparse
import collections
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import runpy
import signal
import sys
import time
import traceback
import unittest

_PASSED, _SKIPPED, _FAILED = "passed", "skipped", "failed"


def _record_results(write):
    """Makes every unittest.TestResult call |write|(test's id, outcome, reason)."""
    failed = set()

    def name_of(test):
        test = getattr(test, "test_case", test)  # a subtest counts for its test
        return "%s.%s" % (type(test).__name__, getattr(test, "_testMethodName", test))  # ids contain parameters, with addresses

    def watch(method, outcome, reason_of):
        original = getattr(unittest.TestResult, method)

        def recorded(self, test, *args):
            original(self, test, *args)
            name, reason = name_of(test), reason_of(*args)
            if outcome == _FAILED and reason is not None and name not in failed:
                failed.add(name)
                write(name, _FAILED, reason)
            elif outcome != _FAILED and name not in failed:
                write(name, outcome, reason)

        setattr(unittest.TestResult, method, recorded)

    def last_line(error):
        return "".join(traceback.format_exception_only(error[0], error[1])).strip()[:2000]

    watch("addSuccess", _PASSED, lambda: "")
    watch("addExpectedFailure", _PASSED, lambda error: "")
    watch("addSkip", _SKIPPED, lambda reason: reason)
    watch("addError", _FAILED, last_line)
    watch("addFailure", _FAILED, last_line)
    watch("addUnexpectedSuccess", _FAILED, lambda: "passed unexpectedly")
    watch("addSubTest", _FAILED, lambda test, error: error and last_line(error))


def _run_file(path, name, results, log):
    """Executes one file of tests as the main program; runs in a forked process."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    lines = open(results, "a", buffering=1)

    def write(test, outcome, reason):
        lines.write(json.dumps({"file": name, "test": test, "outcome": outcome, "reason": reason}) + "\n")

    _record_results(write)
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit:
        pass
    except BaseException as error:
        traceback.print_exc()
        write("", _FAILED, "%s: %s" % (type(error).__name__, error))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _files(sources, paths):
    for path in paths:
        top = os.path.join(sources, "tensorflow", path)
        if os.path.isfile(top):
            yield top
        for folder, _, names in sorted(os.walk(top)):
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith("_test.py"))


# Modules that only tests need.
_HELPERS = (r"tensorflow\..*\.(fake_\w+|benchmarks(\.\w+)*"
            r"|autograph\.(utils\.testing|core\.converter_testing|pyct\.testing(\.\w+)?|pyct\.static_analysis\.\w+_test)"
            r"|distribute\.(combinations|strategy_combinations|multi_process_\w+|multi_worker_test_base|strategy_test_lib|test_util"
            r"|single_loss_example))")


class _SourceFinder(importlib.abc.MetaPathFinder):
    """Finds modules in the sources: for stock those that its packages lack, helpers of tests and what later versions removed."""

    def __init__(self, sources, names):
        self._sources, self._names = sources, re.compile(names)

    def find_spec(self, name, path, target=None):
        top = os.path.join(self._sources, *name.split("."))
        if not self._names.fullmatch(name):
            return None
        if os.path.isdir(top):
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        return importlib.util.spec_from_file_location(name, top + ".py") if os.path.isfile(top + ".py") else None


def _without_processes():
    """Lets files of tests begin whose main function looks for the program of a Bazel target; their tests of several processes fail."""
    processes = importlib.import_module("tensorflow.python.distribute.multi_process_lib")
    processes.test_main = importlib.import_module("tensorflow.python.eager.test").main


def _run(arguments):
    sys.path[0] = os.getcwd()
    if arguments.stock:
        sys.meta_path.append(_SourceFinder(arguments.sources, r"tensorflow\..*"))
    else:
        sys.path[0] = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
        from runnel.alias import finder
        finder.install(True)
        sys.meta_path.insert(0, _SourceFinder(arguments.sources, _HELPERS))
    importlib.import_module("tensorflow")  # so that the processes forked here need not
    ops = importlib.import_module("tensorflow.python.framework.ops")
    ops.Tensor = importlib.import_module("tensorflow.python.framework.tensor").Tensor  # its place in earlier versions
    if any(path.startswith("python/distribute") for path in arguments.paths):
        _without_processes()
    running = {}
    logs = arguments.results + ".logs"
    os.makedirs(logs, exist_ok=True)

    def reap():
        while running:
            for process, (name, started) in list(running.items()):
                if os.waitpid(process, os.WNOHANG)[0]:
                    del running[process]
                    return
                if time.monotonic() - started > arguments.seconds:
                    os.killpg(process, signal.SIGKILL)
                    with open(arguments.results, "a") as lines:
                        lines.write(json.dumps({"file": name, "test": "", "outcome": _FAILED, "reason": "time is up"}) + "\n")
            time.sleep(0.2)

    for path in _files(arguments.sources, arguments.paths):
        if len(running) >= arguments.jobs:
            reap()
        name = os.path.relpath(path, os.path.join(arguments.sources, "tensorflow"))
        with open(arguments.results, "a") as lines:
            lines.write(json.dumps({"file": name, "test": "", "outcome": "started", "reason": ""}) + "\n")
        process = os.fork()
        if process == 0:
            _run_file(path, name, arguments.results, os.path.join(logs, name.replace("/", ".") + ".log"))
        running[process] = (name, time.monotonic())
    while running:
        reap()


def _read(path):
    """Returns {file: {test: (outcome, reason)}} of the last run of each file."""
    files = collections.defaultdict(dict)
    with open(path) as lines:
        for line in lines:
            row = json.loads(line)
            if row["outcome"] == "started":
                files[row["file"]] = {}
            else:
                files[row["file"]][row["test"]] = (row["outcome"], row["reason"])
    return files


def _compare(arguments):
    stock, ours = _read(arguments.stock_results), _read(arguments.results)
    sums = collections.Counter()
    for name, tests in sorted(stock.items()):
        if arguments.paths and not name.startswith(tuple(arguments.paths)):
            continue
        wanted = [test for test, (outcome, _) in tests.items() if outcome == _PASSED and test]
        missing = [test for test in wanted if ours[name].get(test, ("", ""))[0] != _PASSED]
        folder = os.path.dirname(name)
        sums[folder, "stock"] += len(wanted)
        sums[folder, "ours"] += len(wanted) - len(missing)
        if not wanted or not (missing or arguments.all):
            continue
        print("%-70s %5d %5d" % (name, len(wanted), len(wanted) - len(missing)))
        if arguments.list or arguments.why:
            whole = ours[name].get("", ("", ""))[1]
            for test in missing:
                reason = ours[name].get(test, ("", whole or "did not run"))[1]
                print("    %s%s" % (test, ": " + reason.replace("\n", " ")[:arguments.width] if arguments.why else ""))
    print()
    for folder in sorted({key[0] for key in sums}) + [""]:
        stock_sum, our_sum = (sum(n for key, n in sums.items() if key[1] == who and folder in ("", key[0])) for who in ("stock", "ours"))
        print("%-50s %5d %5d  %5.1f %%" % (folder or "all", stock_sum, our_sum, 100.0 * our_sum / max(stock_sum, 1)))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("sources")
    run.add_argument("results")
    run.add_argument("paths", nargs="+")
    run.add_argument("--stock", action="store_true")
    run.add_argument("--jobs", type=int, default=1)
    run.add_argument("--seconds", type=float, default=600)
    compare = commands.add_parser("compare")
    compare.add_argument("stock_results")
    compare.add_argument("results")
    compare.add_argument("paths", nargs="*")
    compare.add_argument("--list", action="store_true")
    compare.add_argument("--why", action="store_true")
    compare.add_argument("--all", action="store_true")
    compare.add_argument("--width", type=int, default=200)
    arguments = parser.parse_args()
    (_run if arguments.command == "run" else _compare)(arguments)


if __name__ == "__main__":
    main()
