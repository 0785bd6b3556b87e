"""Builds the wheel: `pip install .` at the root of the repository (PEP 517).

Builds the library and the command `runnel` in a folder that is removed afterwards, and packs them with the Python files. If
RUNNEL_BUILD names a build folder, packs that one instead. Passes CMAKE_ARGS to CMake. The wheel is for this machine, whose libraries
it uses; make_wheel.py makes one that has them inside.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from wheel_file import ROOT, Wheel, contents, metadata, version

PACKAGE = os.path.join(ROOT, "python", "runnel")
COMMANDS = "runnel-python = runnel.__main__:main"


def tag():
    python = "cp%d%d" % sys.version_info[:2]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return "%s-%s-%s" % (python, python, platform)


def packages():
    """Returns the Debian packages of packages.txt that a build needs."""
    names, is_needed = [], False
    for line in open(os.path.join(ROOT, "packages.txt"), encoding="utf-8"):
        line = line.strip()
        if line.startswith("#"):
            is_needed = line[1:].strip().startswith(("build", "libraries of the product", "the Python client"))
        elif line and is_needed:
            names.append(line)
    return names


def stop(problem):
    """Ends the build with a message, which pip shows."""
    sys.exit("%s\nOn Debian and Ubuntu, this command installs everything that a build needs:\n  apt install %s" % (problem, " ".join(packages())))


def has_cmake():
    """Whether this machine has a CMake that is new enough."""
    try:
        said = subprocess.run(["cmake", "--version"], stdout=subprocess.PIPE, text=True).stdout
    except OSError:
        return False
    found = re.search(r"version (\d+)\.(\d+)", said)
    return found is not None and tuple(map(int, found.groups())) >= (3, 22)


def build(folder, options, targets):
    """Configures and builds in `folder`, and stops with a message that says what is missing."""
    if not any(shutil.which(name) for name in (os.environ.get("CC") or "cc", "gcc", "clang")):
        stop("Runnel is built from C, and there is no C compiler here.")
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DRN_TESTS=OFF"] + options
    if subprocess.run(configure + shlex.split(os.environ.get("CMAKE_ARGS", ""))).returncode != 0:
        stop("CMake failed; the lines above say why.")
    with open(os.path.join(folder, "cuda_part.txt"), encoding="utf-8") as stream:
        if "not built" not in stream.read():
            targets = targets + ["runnel_cuda"]
    if subprocess.run(["ninja", "-C", folder] + targets).returncode != 0:
        stop("The build failed; the lines above say why.")


TARGETS = ["runnel", "runnel_python", "runnel_python_tables", "runnel_python_stubs"]


def built_files(folder):
    """Returns [(path in the wheel, file)] of the files that the build makes."""
    made = os.path.join(folder, "python", "runnel")
    rows = [("runnel/" + os.path.relpath(os.path.join(where, name), made), os.path.join(where, name))
            for where, _, names in sorted(os.walk(made)) for name in sorted(names) if not where.endswith("__pycache__")]
    rows.append(("runnel/libtensorflow.so.2", os.path.join(folder, "libtensorflow.so.2")))
    rows.append(("runnel-%s.data/scripts/runnel" % version(), os.path.join(folder, "cli", "runnel")))
    for _, path in rows:
        if not os.path.exists(path):
            sys.exit("%s is missing: build the targets runnel and runnel_python there" % path)
    return rows


def cuda_files(folder):
    """Returns [(path in the wheel, file)] of the CUDA part, where there was an nvcc."""
    part = os.path.join(folder, "librunnel_cuda.so.2")
    return [("runnel/librunnel_cuda.so.2", part)] if os.path.exists(part) else []


def source_files():
    rows = []
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".pyi", ".typed")):
                path = os.path.join(folder, name)
                rows.append((os.path.relpath(path, os.path.dirname(PACKAGE)), path))
    return rows


def pack(wheel_directory, folder):
    """Writes the wheel of what was built in `folder`. Returns its name."""
    name = "runnel-" + version()
    file = "%s-%s.whl" % (name, tag())
    wheel = Wheel(os.path.join(wheel_directory, file), name)
    for path, source in source_files() + built_files(folder) + cuda_files(folder):
        wheel.add(path, contents(source))
    wheel.close([tag()], False, metadata(), COMMANDS)
    return file


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel. Returns its name."""
    chosen = os.environ.get("RUNNEL_BUILD")
    if chosen:
        return pack(wheel_directory, os.path.join(ROOT, chosen))
    with tempfile.TemporaryDirectory(prefix="runnel-build-") as folder:
        build(folder, ["-DRN_PYTHON=" + sys.executable], TARGETS)
        return pack(wheel_directory, folder)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata only, so that pip can read it without a build."""
    folder = "runnel-%s.dist-info" % version()
    os.makedirs(os.path.join(metadata_directory, folder), exist_ok=True)
    with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as stream:
        stream.write(metadata())
    return folder


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes a wheel that points to the source tree (`pip install -e .`); build/release there has the C part."""
    name = "runnel-" + version()
    file = "%s-py3-none-any.whl" % name
    wheel = Wheel(os.path.join(wheel_directory, file), name)
    wheel.add("runnel_source.pth", os.path.dirname(PACKAGE) + "\n")
    wheel.close(["py3-none-any"], True, metadata(), COMMANDS)
    return file


def build_sdist(sdist_directory, config_settings=None):
    """Writes an archive of the files that git tracks."""
    number = version()
    file = "runnel-%s.tar.gz" % number
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, text=True,
                            stdout=subprocess.PIPE).stdout.split("\n")
    import tarfile
    with tarfile.open(os.path.join(sdist_directory, file), "w:gz") as tar:
        for path in listed:
            if path and os.path.exists(os.path.join(ROOT, path)):
                tar.add(os.path.join(ROOT, path), "runnel-%s/%s" % (number, path))
        data = metadata().encode()
        info = tarfile.TarInfo("runnel-%s/PKG-INFO" % number)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return file


def get_requires_for_build_wheel(config_settings=None):
    """Returns the packages that pip installs for the build: CMake and Ninja, if the machine has none."""
    if os.environ.get("RUNNEL_BUILD"):
        return []
    return ([] if has_cmake() else ["cmake>=3.22"]) + ([] if shutil.which("ninja") else ["ninja"])


def get_requires_for_build_sdist(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist
