#!/usr/bin/env python3
"""Builds the documentation as a static site with search: `make docs`.

usage: site.py [--check] BUILD OUT

BUILD is a build folder; OUT gets source/ (the pages that Sphinx reads) and html/. With --check, Sphinx reads the pages
and resolves their links, but writes no HTML. Sphinx's warnings are errors. The guides are the Markdown files of the
tree at their own paths, so that links work as on GitHub. The reference comes from the public headers, the docstrings of
the Python package and the pages of ops in BUILD. Needs Sphinx, myst-parser and the Read the Docs theme (packages.txt),
and a Python with NumPy to import the package; exits with 77 if one of them is missing.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

import headers
import rst

ROOT = headers.ROOT
GUIDES = [
    ("Start", ["doc/status", "doc/concepts", "doc/tutorial", "examples/README", "examples/python/README", "doc/python",
               "doc/python_names", "doc/packages", "doc/gpu", "doc/debugging", "doc/glossary", "CHANGELOG"]),
    ("Clusters", ["doc/cluster", "doc/replication", "doc/failures", "doc/protocol", "SECURITY"]),
    ("Change Runnel", ["CONTRIBUTING", "doc/architecture", "doc/invariants", "doc/adding_an_op", "doc/ops_format",
                       "doc/adding_a_device", "doc/plugins", "doc/adding_a_layer", "doc/adding_an_optimizer", "doc/adding_a_training_loop",
                       "tests/README", "doc/formats", "doc/bindings", "doc/benchmarks", "doc/worklog"]),
]


def stop(why):
    print("make docs: " + why, file=sys.stderr)
    sys.exit(77)


def listed(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--"] + list(patterns), cwd=ROOT, check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return [path for path in out.split("\n") if path and not path.startswith((".github/", "build/")) and os.path.exists(os.path.join(ROOT, path))]


def copy(source, path):
    target = os.path.join(source, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(os.path.join(ROOT, path), target)


def write(source, path, text):
    target = os.path.join(source, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as stream:
        stream.write(text)


def relink(source, path, text):
    """Rewrites links for the site: a folder becomes its README, a header its page in the reference."""
    folder = os.path.dirname(path)

    def change(found):
        target, _, anchor = found.group(2).partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return found.group(0)
        real = os.path.normpath(os.path.join(folder, target))
        if os.path.isdir(os.path.join(ROOT, real)):
            target = os.path.join(target, "README.md")
        elif real.startswith("include/") and real.endswith(".h"):
            target = os.path.relpath("reference/c/" + real[len("include/"):-2] + ".rst", folder or ".")
        elif not real.endswith(".md") and os.path.exists(os.path.join(ROOT, real)):
            copy(source, real)
        return "%s(%s%s)" % (found.group(1), target, "#" + anchor if anchor else "")
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else re.sub(r"(\])\(([^)\s]+)\)", change, part) for part in parts)


def stage_guides(source):
    for path in listed("*.svg", "*.png"):
        copy(source, path)
    pages = listed("*.md")
    for path in pages:
        text = open(os.path.join(ROOT, path), encoding="utf-8").read()
        write(source, path, relink(source, path, text))
    return {path[:-len(".md")] for path in pages}


def toctree(caption, pages, depth=1, hidden=True):
    options = [":maxdepth: %d" % depth, ":caption: " + caption] + [":hidden:"] * hidden
    return "```{toctree}\n%s\n\n%s\n```\n" % ("\n".join(options), "\n".join(pages))


def stage_index(source, pages):
    text = relink(source, "index.md", open(os.path.join(ROOT, "README.md"), encoding="utf-8").read())
    listed_pages = {page for _, group in GUIDES for page in group}
    trees = [toctree(caption, [page for page in group if page in pages]) for caption, group in GUIDES]
    trees.append(toctree("Reference", ["reference/c/index", "reference/python/index", "reference/ops/index"]))
    rest = sorted(pages - listed_pages - {"README"})
    write(source, "folders.md", "# Folders\n\nThe README of each folder of the source tree.\n\n" + toctree("Folders", rest, hidden=False))
    trees.append(toctree("Source", ["folders"]))
    write(source, "index.md", text + "\n" + "\n".join(trees))
    os.remove(os.path.join(source, "README.md"))


def c_group(group, names, seen):
    """Returns the text for declarations that share a comment."""
    out = []
    comment = rst.body("\n".join(group.comment), "   ")
    signatures = []
    for item in group.items:
        if item.kind == "function" or (item.kind == "call" and item.name + "_" not in names):
            signature = headers.signature(item)
            name = item.name[:-1] if item.name.endswith("_") else item.name
            if name not in seen:
                seen.add(name)
                signatures.append((".. c:macro:: " if item.kind == "call" else ".. c:function:: ") + signature)
    kinds = collections.OrderedDict()
    for line in signatures:
        kind, signature = line.split(":: ", 1)
        kinds.setdefault(kind, []).append(signature)
    code = [line for item in group.items if item.kind in ("type", "macro") for line in item.code]
    if code:
        for item in group.items:
            if item.kind == "type" and item.name and item.name not in seen:
                seen.add(item.name)
                out.append(".. c:type:: %s\n" % item.name)
        if group.comment:
            out.append(rst.body("\n".join(group.comment)))
        out.append(".. code-block:: c\n\n" + "\n".join("   " + line for line in code))
        comment = "" if signatures else comment
    for kind, lines in kinds.items():
        out.append(kind + ":: " + ("\n" + " " * len(kind + ":: ")).join(lines) + "\n\n" + comment)
    return "\n\n".join(out)


def stage_c(source):
    names = {item.name for header in headers.headers() for group in header.groups for item in group.items if item.kind == "function"}
    seen, pages = set(), []
    for header in headers.headers():
        path = os.path.relpath(header.path, os.path.join(ROOT, "include"))
        if not header.groups:
            continue
        parts = [rst.title(path), rst.body("\n".join(header.comment))]
        parts += [c_group(group, names, seen) for group in header.groups if group.items]
        write(source, "reference/c/%s.rst" % path[:-2], "\n\n".join(part for part in parts if part) + "\n")
        pages.append(path[:-2])
    pages.sort(key=lambda page: (not page.startswith("runnel/"), page))
    write(source, "reference/c/index.rst", rst.title("C headers") + "\n``runnel/`` is Runnel's own API, ``tensorflow/c/`` is TensorFlow's. "
          "The builders of ``runnel/ops.h`` are described with the :doc:`ops </reference/ops/index>`.\n\n.. toctree::\n   :maxdepth: 1\n\n"
          + "".join("   %s\n" % page for page in pages))


def python_rows(build):
    """Returns the public names, read by a Python that can import the package."""
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), RUNNEL_BUILD=os.path.abspath(build))
    said = ""
    for python in (os.environ.get("PYTHON"), "python3", os.path.join(ROOT, "build", "venv", "bin", "python")):
        if not python or not shutil.which(python):
            continue
        got = subprocess.run([python, os.path.join(ROOT, "tools", "docs", "python_names.py")], env=environment, capture_output=True, text=True)
        if got.returncode == 0:
            return json.loads(got.stdout)
        said = got.stderr.strip().split("\n")[-1]
    stop("no Python can import the package runnel: " + said)


def python_row(row):
    name = "tf." + row["name"]
    if row["kind"] == "alias":
        return ".. py:data:: %s\n\n   The same as :py:obj:`tf.%s`." % (name, row["of"])
    if row["kind"] == "data":
        return ".. py:data:: %s" % name
    # Sphinx cannot parse the text form of objects such as default values.
    arguments = re.sub(r"<[^<>]*>", "...", row["signature"])
    parts = [".. py:%s:: %s%s\n\n%s" % (row["kind"], name, arguments, rst.docstring(row["doc"], "   "))]
    for member in row.get("members", []):
        head = member["name"] + re.sub(r"<[^<>]*>", "...", member.get("signature", ""))
        parts.append("   .. py:%s:: %s\n\n%s" % (member["kind"], head, rst.docstring(member["doc"], "      ")))
    return "\n\n".join(parts)


def stage_python(source, build):
    spaces = collections.defaultdict(list)
    for row in python_rows(build):
        spaces[row["name"].rpartition(".")[0]].append(row)
    for space, rows in spaces.items():
        title = "tf." + space if space else "tf"
        text = rst.title(title) + "\n" + "\n\n".join(python_row(row) for row in sorted(rows, key=lambda row: row["name"])) + "\n"
        write(source, "reference/python/%s.rst" % title, text)
    write(source, "reference/python/index.rst", rst.title("Python names") + "\n``import runnel as tf`` gives these names; :doc:`/doc/python` is the "
          "guide.\n\n.. toctree::\n   :maxdepth: 1\n\n" + "".join("   %s\n" % ("tf." + space if space else "tf") for space in sorted(spaces)))


def stage_ops(source, build):
    folder = os.path.join(build, "generated", "doc", "ops")
    families = sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".md"))
    for family in families:
        write(source, "reference/ops/%s.md" % family, open(os.path.join(folder, family + ".md"), encoding="utf-8").read())
    write(source, "reference/ops/index.rst", rst.title("Ops") + "\nEvery op, by family. ``runnel ops NAME`` prints the same.\n\n"
          ".. toctree::\n   :maxdepth: 1\n\n" + "".join("   %s\n" % family for family in families))


def main():
    checks = sys.argv[1:2] == ["--check"]
    build, out = sys.argv[1 + checks:3 + checks]
    source, html = os.path.join(out, "source"), os.path.join(out, "html")
    if not shutil.which("sphinx-build"):
        stop("sphinx-build is missing; `tools/deps.sh docs` installs it")
    # Delete the old pages: Sphinx would report declarations that have moved since the last run as duplicates.
    doctrees = os.path.join(out, "doctrees")
    for folder in (source, doctrees):
        shutil.rmtree(folder, ignore_errors=True)
    pages = stage_guides(source)
    stage_index(source, pages)
    stage_c(source)
    stage_python(source, build)
    stage_ops(source, build)
    shutil.copyfile(os.path.join(ROOT, "tools", "docs", "conf.py"), os.path.join(source, "conf.py"))
    text = open(os.path.join(ROOT, "include", "runnel", "version.h"), encoding="utf-8").read()
    version = ".".join(re.findall(r"^#define RN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.M))
    command = ["sphinx-build", "-q", "-W", "--keep-going", "-b", "dummy" if checks else "html", "-d", doctrees, source, html]
    status = subprocess.run(command, env=dict(os.environ, RUNNEL_DOCS_VERSION=version)).returncode
    if status == 0 and not checks:
        print("The documentation is in %s/index.html" % html)
    sys.exit(status)


if __name__ == "__main__":
    main()
