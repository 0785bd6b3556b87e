"""Builds the wheel: `pip install .` at the root of the repository (PEP 517). Needs only CMake, Ninja
and a C compiler.

Builds the library and the command `runnel` under build/wheel, and packs them with the Python files. If
RUNNEL_BUILD names a build folder, packs that one instead. Passes CMAKE_ARGS to CMake.
"""

import base64
import csv
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "python", "runnel")


def version():
    """Returns the version of Runnel, from include/runnel/version.h."""
    text = open(os.path.join(ROOT, "include", "runnel", "version.h"), encoding="utf-8").read()
    return ".".join(re.findall(r"^#define RN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.M))


def project():
    """Returns (version, requirements, oldest Python): the first from version.h, the others from pyproject.toml."""
    text = open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8").read()

    def value(key):
        return re.search(r'^%s = (.*)$' % key, text, re.M).group(1)
    return (version(), re.findall(r'"([^"]+)"', value("dependencies")),
            value("requires-python").strip('"'))


def tag():
    python = "cp%d%d" % sys.version_info[:2]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return "%s-%s-%s" % (python, python, platform)


def metadata():
    number, requirements, python = project()
    lines = ["Metadata-Version: 2.1", "Name: runnel", "Version: " + number,
             "Summary: TensorFlow's 1.x graph API over a small runtime in C", "Requires-Python: " + python]
    return "\n".join(lines + ["Requires-Dist: " + name for name in requirements]) + "\n"


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


def check_tools():
    """Stops if a program that the build needs is missing."""
    missing = [name for name in ("cmake", "ninja", "pkg-config") if shutil.which(name) is None]
    if not any(shutil.which(name) for name in (os.environ.get("CC") or "cc", "gcc", "clang")):
        missing.append("a C compiler")
    if missing:
        stop("Runnel is built from C, and not found here: %s." % ", ".join(missing))


def build_library():
    """Returns the folder with the library, the command and the package's built files."""
    chosen = os.environ.get("RUNNEL_BUILD")
    if chosen:
        return chosen if os.path.isabs(chosen) else os.path.join(ROOT, chosen)
    check_tools()
    folder = os.path.join(ROOT, "build", "wheel")
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DRN_TESTS=OFF", "-DRN_PYTHON=" + sys.executable]
    targets = ["runnel", "runnel_python", "runnel_python_tables", "runnel_python_stubs"]
    if subprocess.run(configure + shlex.split(os.environ.get("CMAKE_ARGS", ""))).returncode != 0:
        stop("CMake failed; the lines above say why.")
    with open(os.path.join(folder, "cuda_part.txt"), encoding="utf-8") as stream:
        if "not built" not in stream.read():
            targets.append("runnel_cuda")
    if subprocess.run(["ninja", "-C", folder] + targets).returncode != 0:
        stop("The build failed; the lines above say why.")
    return folder


def built_files(folder):
    """Returns [(path in the wheel, file)] of the files that the build makes."""
    made = os.path.join(folder, "python", "runnel")
    rows = [("runnel/" + name, os.path.join(made, name)) for name in sorted(os.listdir(made))
            if name != "__pycache__"]
    rows.append(("runnel/libtensorflow.so.2", os.path.join(folder, "libtensorflow.so.2")))
    rows.append(("runnel-%s.data/scripts/runnel" % version(), os.path.join(folder, "cli", "runnel")))
    part = os.path.join(folder, "librunnel_cuda.so.2")  # where there was an nvcc
    if os.path.exists(part):
        rows.append(("runnel/librunnel_cuda.so.2", part))
    for _, path in rows:
        if not os.path.exists(path):
            sys.exit("%s is missing: build the targets runnel and runnel_python there" % path)
    return rows


def source_files():
    rows = []
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".pyi", ".typed")):
                path = os.path.join(folder, name)
                rows.append((os.path.relpath(path, os.path.dirname(PACKAGE)), path))
    return rows


def contents(path):
    """Returns a file's bytes; libraries and programs without debug information."""
    path = os.path.realpath(path)
    strip = shutil.which("strip")
    with open(path, "rb") as stream:
        is_binary = stream.read(4) == b"\x7fELF"
    if is_binary and strip:
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "library")
            subprocess.run([strip, "--strip-unneeded", "-o", stripped, path], check=True)
            with open(stripped, "rb") as stream:
                return stream.read()
    return open(path, "rb").read()


class Wheel:
    """Writes a wheel: the files, then RECORD."""

    def __init__(self, path, name):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info = name + ".dist-info"
        self.rows = []

    def add(self, name, data):
        data = data.encode() if isinstance(data, str) else data
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if ".so" in name or "/scripts/" in name else 0o100644) << 16  # with the regular-file bit, which pip expects
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append((name, "sha256=" + digest, len(data)))

    def close(self, wheel_tag, pure, about=None, scripts="runnel-python = runnel.__main__:main"):
        """Adds what describes the wheel; `about` is its METADATA, by default that of Runnel."""
        self.add(self.info + "/METADATA", about or metadata())
        self.add(self.info + "/WHEEL", "Wheel-Version: 1.0\nGenerator: runnel\nRoot-Is-Purelib: %s\nTag: %s\n" % (
            "true" if pure else "false", wheel_tag))
        if scripts:
            self.add(self.info + "/entry_points.txt", "[console_scripts]\n%s\n" % scripts)
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(self.rows + [(self.info + "/RECORD", "", "")])
        self.zip.writestr(self.info + "/RECORD", out.getvalue())
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel. Returns its name."""
    folder = build_library()
    name = "runnel-" + version()
    file = "%s-%s.whl" % (name, tag())
    wheel = Wheel(os.path.join(wheel_directory, file), name)
    for path, source in source_files() + built_files(folder):
        wheel.add(path, contents(source))
    wheel.close(tag(), pure=False)
    return file


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
    wheel.close("py3-none-any", pure=True)
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
    """Returns no Python packages. Stops early if a program that the build needs is missing."""
    if not os.environ.get("RUNNEL_BUILD"):
        check_tools()
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist
