"""Builds the wheel of runnel-tensorflow: one file, and a .pth file that imports it when Python starts."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools"))

import wheel_file  # noqa: E402

METADATA = """Metadata-Version: 2.4
Name: runnel-tensorflow
Version: %s
Summary: import tensorflow finds Runnel
Requires-Python: >=3.9
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Dist: runnel
"""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel. Returns its name."""
    name = "runnel_tensorflow-" + wheel_file.version()
    file = name + "-py3-none-any.whl"
    wheel = wheel_file.Wheel(os.path.join(wheel_directory, file), name)
    with open(os.path.join(HERE, "_runnel_tensorflow.py"), encoding="utf-8") as stream:
        wheel.add("_runnel_tensorflow.py", stream.read())
    wheel.add("runnel_tensorflow.pth", "import _runnel_tensorflow\n")
    wheel.close(["py3-none-any"], True, METADATA % wheel_file.version())
    return file


def get_requires_for_build_wheel(config_settings=None):
    """Needs no packages."""
    return []
