"""Makes the wheels that run anywhere (`make wheel`): one for every CPython on this machine, with the libraries of others inside.

    make_wheel.py [--build FOLDER] [--onednn FOLDER] [--out FOLDER]

The C part is built once per Python; everything else serves all of them, so one wheel has them all. (The stable ABI would need Python
3.12, for calls without a tuple of arguments.) The libraries lie in runnel/lib, where the loader looks for them first.
"""

import argparse
import glob
import os
import platform
import re
import subprocess
import sys

import build_backend
from wheel_file import ROOT, Wheel, contents, is_elf, metadata, version

# What we link with or open when it is first used, by soname. The C library, zlib and the loader are those of the machine, as the
# manylinux rules say. So are the libraries of LEFT_OUT.
LIBRARIES = ["libdnnl.so.2", "libsleef.so.3", "libpcre2-8.so.0", "libnghttp2.so.14", "libjansson.so.4", "libhiredis.so.0.14",
             "libjpeg.so.62", "libpng16.so.16", "libwebp.so.7", "libwebpdemux.so.2", "libsqlite3.so.0"]
LEFT_OUT = {"libssl.so.3": "the system updates it", "libcrypto.so.3": "the system updates it",
            "libjxl.so.0.7": "large, and few pictures need it", "libzstd.so.1": "few records need it, and most machines have it",
            "libcuda.so.1": "belongs to the driver", "libmpi.so.40": "must be the one of mpirun",
            "libucp.so.0": "belongs to the network's drivers", "libucs.so.0": "belongs to the network's drivers"}
FACTS = """
import os, sys, sysconfig
include = sysconfig.get_paths()["include"]
if sys.implementation.name == "cpython" and os.path.exists(os.path.join(include, "Python.h")) and not sysconfig.get_config_var("Py_GIL_DISABLED"):
    print("%d %d" % sys.version_info[:2])
"""


def pythons():
    """Returns {(3, minor): interpreter} of the CPythons here that have their headers: the PATH's, Debian's and pyenv's."""
    names = ["python3.%d" % minor for minor in range(9, 15)]
    candidates = [os.path.join(folder, name) for name in names for folder in os.environ["PATH"].split(os.pathsep)]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    found = {}
    for path in candidates:
        if not os.access(path, os.X_OK):
            continue
        said = subprocess.run([path, "-c", FACTS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()
        key = tuple(map(int, said))
        if key >= (3, 9) and key not in found:
            found[key] = os.path.realpath(path)
    return found


def find_libraries(onednn):
    """Returns {soname: (file, file with its licence)}; of oneDNN, the one in the folder `onednn` if that is given."""
    lines = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    machine = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(platform.machine(), platform.machine())
    paths = {line.split()[0]: line.split()[-1] for line in reversed(lines) if "=>" in line and machine in line}
    rows = {}
    for name in LIBRARIES:
        if onednn and name == "libdnnl.so.2":
            rows[name] = (os.path.join(onednn, name), os.path.join(onednn, "copyright"))
            continue
        if name not in paths:
            build_backend.stop("%s, which goes into the wheel, is not found here." % name)
        # A package of a merged /usr may be registered under either path.
        for path in (paths[name], re.sub("^/usr", "", paths[name]), os.path.realpath(paths[name])):
            owner = subprocess.run(["dpkg", "-S", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split(":")[0]
            if owner:
                break
        rows[name] = (os.path.realpath(paths[name]), "/usr/share/doc/%s/copyright" % owner)
    return rows


def glibc_of(files):
    """Returns the minor version of the oldest glibc that has all symbols which `files` need."""
    newest = 17
    for path in files:
        said = subprocess.run(["readelf", "--wide", "--version-info", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        needs = said.partition("Version needs section")[2]
        newest = max([newest] + [int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", needs)])
        if "GLIBC_ABI_DT_RELR" in needs:
            newest = max(newest, 36)
    return newest


def write(out, name, tags, rows, about, commands="", licences=()):
    """Writes the wheel `name` with the files `rows`. Returns its path."""
    parts = [sorted({tag.split("-")[i] for tag in tags}, key=lambda part: (len(part), part)) for i in range(3)]
    path = os.path.join(out, "%s-%s-%s.whl" % (name, version(), "-".join(".".join(part) for part in parts)))
    wheel = Wheel(path, "%s-%s" % (name, version()))
    for target, source in rows:
        wheel.add(target, contents(source))
    for target, source in licences:
        wheel.add("%s/licenses/%s" % (wheel.info, target), contents(source))
    wheel.close(tags, False, about, commands)
    print("%s, %.1f MB" % (path, os.path.getsize(path) / 1e6))
    return path


def write_cuda(out, rows):
    """Writes the wheel runnel-cuda: the CUDA part, which goes into the folder of the package."""
    tag = "py3-none-manylinux_2_%d_%s" % (glibc_of([path for _, path in rows]), platform.machine())
    write(out, "runnel_cuda", [tag], rows, "Metadata-Version: 2.4\nName: runnel-cuda\nVersion: %s\nSummary: Runnel on NVIDIA GPUs\n"
          "License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Dist: runnel==%s\n" % (version(), version()))


def main():
    parser = argparse.ArgumentParser(description="Makes wheels with the libraries inside.")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "wheel"))
    parser.add_argument("--onednn")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "dist"))
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    for name in os.listdir(os.path.join(arguments.build, "python", "runnel")) if os.path.isdir(arguments.build) else []:
        if name.startswith("_core."):  # of a Python that may be gone
            os.remove(os.path.join(arguments.build, "python", "runnel", name))
    found = pythons()
    if not found:
        build_backend.stop("There is no CPython with its headers here.")
    first, *others = [found[key] for key in sorted(found)]
    build_backend.build(arguments.build, ["-DRN_BUNDLED=ON", "-DRN_PYTHON=" + first, "-DRN_PYTHONS=" + ";".join(others)], build_backend.TARGETS)
    libraries = find_libraries(arguments.onednn)
    rows = build_backend.source_files() + build_backend.built_files(arguments.build)
    rows += [("runnel/lib/" + name, path) for name, (path, _) in libraries.items()]
    licences = [(name.split(".so")[0] + ".txt", notice) for name, (_, notice) in libraries.items()]
    system = "manylinux_2_%d_%s" % (glibc_of([path for _, path in rows if is_elf(path)]), platform.machine())
    write(arguments.out, "runnel", ["cp%d%d-none-%s" % (key + (system,)) for key in sorted(found)], rows,
          metadata([name for name, _ in licences]), build_backend.COMMANDS, licences)
    cuda = build_backend.cuda_files(arguments.build)
    if cuda:
        write_cuda(arguments.out, cuda)
    stub = os.path.join(ROOT, "python", "packages", "runnel-tensorflow")
    sys.path.insert(0, stub)
    import backend
    print(os.path.join(arguments.out, backend.build_wheel(arguments.out)))


if __name__ == "__main__":
    main()
