"""Runs scripts that say `import tensorflow as tf` with Runnel.

usage: python -m runnel [--v2] SCRIPT [ARGUMENT ...]
       python -m runnel [--v2] -m MODULE [ARGUMENT ...]
       python -m runnel [--v2] -c CODE [ARGUMENT ...]
       python -m runnel [--v2] --names SCRIPT ...

--v2       tensorflow is the API of 2.x, not of 1.x
--names    lists the names of tf that the scripts use and Runnel lacks
--version  prints the version
--help     prints this text
"""

import os
import runpy
import sys

from runnel.alias import finder as alias


def _complain(text):
    print("python -m runnel: %s" % text, file=sys.stderr)
    return 2


def _print(text):
    """Prints to stdout. Ignores a reader that closed the pipe, as `head` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so the flush at exit succeeds


def _version(is_v2):
    import runnel
    from runnel.compat.v2.places import VERSION
    return "runnel %s (the API of TensorFlow %s, Python %s)" % (
        runnel.runnel_version, VERSION if is_v2 else runnel.__version__, sys.version.split()[0])


def main():
    is_v2 = "--v2" in sys.argv[1:2]
    if is_v2:
        del sys.argv[1]
    arguments = sys.argv[1:]
    first = arguments[0] if arguments else None
    if first is None:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if first in ("-h", "--help"):
        _print(__doc__.strip())
        return 0
    if first in ("-V", "--version"):
        _print(_version(is_v2))
        return 0
    if first in ("-m", "-c", "--names") and len(arguments) < 2:
        return _complain("%s needs %s; see --help" % (first, {"-m": "a module", "-c": "code"}.get(first, "a script")))
    if first == "--names":
        from runnel.alias import script_names
        return script_names.main(arguments[1:], _print, is_v2)
    if first.startswith("-") and first not in ("-m", "-c"):
        return _complain("there is no option '%s'; see --help" % first)
    alias.install(is_v2)
    del sys.argv[0]
    if first == "-m":
        return _run_module()
    if first == "-c":
        code = sys.argv.pop(1)
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    else:
        return _run_script(first)
    return 0


def _run_module():
    import importlib.util
    del sys.argv[0]
    name = sys.argv[0]
    sys.path.insert(0, os.getcwd())
    try:
        is_there = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        return _complain("there is no module '%s'" % name)
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    return 0


def _run_script(path):
    try:
        with open(path if not os.path.isdir(path) else os.path.join(path, "__main__.py"), "rb"):
            pass
    except OSError as error:
        return _complain("cannot read '%s': %s" % (error.filename, error.strerror))
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    runpy.run_path(path, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
