"""python -m runnel script.py [arguments]: runs a script that says `import tensorflow as tf` with Runnel.
python -m runnel -m module | -c code: the same of a module or of code.
python -m runnel --names script.py ...: lists the names of tf in scripts that are not here.
"""

import runpy
import sys

from runnel import alias


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    if sys.argv[1] == "--names":
        from runnel import script_names
        return script_names.main(sys.argv[2:])
    alias.install()
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif sys.argv[0] == "-c":
        code = sys.argv.pop(1)
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    else:
        import os
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
