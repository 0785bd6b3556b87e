"""Writes wheels: the metadata, which pyproject.toml and include/runnel/version.h state, and the archive."""

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as stream:
        return stream.read()


def version():
    """Returns the version of Runnel, from include/runnel/version.h."""
    return ".".join(re.findall(r"^#define RN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", read("include", "runnel", "version.h"), re.M))


def value(key):
    """Returns the text behind `key =` in pyproject.toml, which older Pythons have no parser for."""
    return re.search(r'^%s = (.*)$' % key, read("pyproject.toml"), re.M).group(1)


def home():
    """Returns the project's page: $RUNNEL_URL, or the repository that this tree was cloned from if that is public. None if neither is known."""
    url = os.environ.get("RUNNEL_URL")
    if not url and shutil.which("git"):
        url = subprocess.run(["git", "-C", ROOT, "config", "remote.origin.url"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
        url = re.sub(r"^git@([^:]+):", r"https://\1/", re.sub(r"\.git$", "", url))
        if not re.match(r"https://(github|gitlab)\.com/[\w./-]+$", url):
            url = None
    return url


def description(url):
    """Returns README.md; its links lead to the project's page, or nowhere if that is not known."""
    text = re.sub(r"!\[[^\]]*\]\(.*?\)\n*", "", read("README.md"))
    link = r"[\1](%s/blob/main/\2)" % url if url else r"\1"
    return re.sub(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)", link, text)


def metadata(licences=()):
    """Returns METADATA of the wheel runnel; `licences` are names of further files in its folder of licences."""
    lines = ["Metadata-Version: 2.4", "Name: runnel", "Version: " + version(), "Summary: " + value("description").strip('"'),
             "Requires-Python: " + value("requires-python").strip('"'), "License-Expression: Apache-2.0", "License-File: LICENSE"]
    lines += ["License-File: " + name for name in licences]
    lines += ["Requires-Dist: " + name for name in re.findall(r'"([^"]+)"', value("dependencies"))]
    lines += ["Classifier: " + name for name in (
        "Operating System :: POSIX :: Linux", "Programming Language :: C", "Programming Language :: Python :: Implementation :: CPython",
        "Topic :: Scientific/Engineering :: Artificial Intelligence")]
    url = home()
    if url:
        lines += ["Project-URL: %s, %s%s" % row for row in (
            ("Homepage", url, ""), ("Documentation", url, "/blob/main/doc/python.md"), ("Changelog", url, "/blob/main/CHANGELOG.md"))]
    lines += ["Description-Content-Type: text/markdown", "", description(url)]
    return "\n".join(lines)


def is_elf(path):
    with open(path, "rb") as stream:
        return stream.read(4) == b"\x7fELF"


def contents(path):
    """Returns a file's bytes; libraries and programs without debug information."""
    path = os.path.realpath(path)
    strip = shutil.which("strip")
    if is_elf(path) and strip:
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "library")
            subprocess.run([strip, "--strip-unneeded", "-o", stripped, path], check=True)
            with open(stripped, "rb") as stream:
                return stream.read()
    with open(path, "rb") as stream:
        return stream.read()


class Wheel:
    """Writes a wheel: the files, then RECORD."""

    def __init__(self, path, name):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
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

    def close(self, tags, pure, about, scripts=""):
        """Adds what describes the wheel: its tags, METADATA (`about`) and console scripts."""
        self.add(self.info + "/METADATA", about)
        self.add(self.info + "/licenses/LICENSE", read("LICENSE"))
        self.add(self.info + "/WHEEL", "Wheel-Version: 1.0\nGenerator: runnel\nRoot-Is-Purelib: %s\n%s" % (
            "true" if pure else "false", "".join("Tag: %s\n" % tag for tag in tags)))
        if scripts:
            self.add(self.info + "/entry_points.txt", "[console_scripts]\n%s\n" % scripts)
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(self.rows + [(self.info + "/RECORD", "", "")])
        self.zip.writestr(self.info + "/RECORD", out.getvalue())
        self.zip.close()
