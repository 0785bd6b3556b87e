#!/usr/bin/env python3
"""The Dockerfile of deploy/image, checked without an engine: image_test.py RUNNEL"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.append(os.path.join(ROOT, "tests"))
from support.ports import free_port  # noqa: E402

RUNNEL = sys.argv[1]
FILE = os.path.join(ROOT, "deploy/image/Dockerfile")


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def instructions():
    """Returns {instruction: its text}; lines that end in a backslash go on."""
    text = re.sub(r"^#.*\n", "", read("deploy/image/Dockerfile"), flags=re.M)
    rows = [line.split(None, 1) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    check(len({row[0] for row in rows}) == len(rows), "an instruction occurs twice")
    return dict(rows)


def check_packages(text):
    """What is installed is what `make deb` makes."""
    made = set(re.findall(r"^Package: (\S+)$", read("deploy/debian/control"), re.M))
    used = re.findall(r"/packages/([a-z0-9-]+)_\*\.deb", text)
    check(used and set(used) <= made, "there is no package", used)


def check_names(user):
    """The manifests name the image that the guide builds, and its user."""
    built = re.search(r"docker build -f (\S+) -t (\S+) (\S+)", read("doc/packages.md"))
    check(os.path.samefile(os.path.join(ROOT, built.group(1)), FILE), "the guide builds", built.group(1))
    check("tools/deb.sh $(BUILD) %s\n" % built.group(3) in read("Makefile"), "make deb leaves nothing in", built.group(3))
    for name in ("cluster.yaml", "serve/serve.yaml"):
        text = read("deploy/kubernetes", name)
        check(set(re.findall(r"image: (\S+)", text)) == {built.group(2)}, name, "names another image")
        check(set(re.findall(r"runAsUser: (\d+)", text)) == {user}, name, "has another user")


def check_health(arguments, health):
    """The health check fails without a server and succeeds with one."""
    ports = {"8500": str(free_port()), "8501": str(free_port())}
    model = os.path.join(ROOT, "tests/serve/models/half_plus_two")
    words = [re.sub("8500|8501", lambda found: ports[found.group()], word).replace("/models/model", model) for word in arguments]
    asked = [word.replace("8501", ports["8501"]) for word in health]
    check(subprocess.run(asked, capture_output=True).returncode != 0, "the health check succeeds without a server")
    server = subprocess.Popen([RUNNEL] + words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.time() + 30
        while subprocess.run(asked, capture_output=True).returncode:
            check(time.time() < end and server.poll() is None, "the health check fails:", asked)
            time.sleep(0.1)
    finally:
        server.kill()
        server.wait()


def main():
    rows = instructions()
    check(rows["FROM"] == "debian:bookworm-slim", "the base is", rows["FROM"])
    check("COPY" not in rows and "ADD" not in rows, "files that are not in a package")
    check_packages(rows["RUN"])
    check("useradd --uid %s " % rows["USER"] in rows["RUN"] and rows["USER"] != "0", "the user is", rows["USER"])
    check_names(rows["USER"])
    check(json.loads(rows["ENTRYPOINT"]) == ["runnel"], "the command is", rows["ENTRYPOINT"])
    arguments = json.loads(rows["CMD"])
    for port in rows["EXPOSE"].split():
        check(any(word.endswith("port=" + port) for word in arguments), "no server listens on", port)
    check_health(arguments, json.loads(rows["HEALTHCHECK"].split(" CMD ")[1]))
    if shutil.which("hadolint"):
        check(subprocess.run(["hadolint", FILE]).returncode == 0, "hadolint complains")
    else:
        print("hadolint is missing: names and the health check are checked, style is not")


main()
