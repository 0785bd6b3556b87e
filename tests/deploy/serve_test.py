#!/usr/bin/env python3
"""The model server's manifests: serve_test.py RUNNEL"""

import os
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("PyYAML is missing (Debian: python3-yaml)")
    sys.exit(77)

RUNNEL = sys.argv[1]
DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy")


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def check_flags(words, where):
    text = subprocess.run([RUNNEL, "help", "serve"], capture_output=True, text=True).stdout
    known = set(re.findall(r"--[a-z_]+", text))
    for word in words:
        flag = re.match(r"--[a-z_]+", word)
        if flag:
            check(flag.group() in known, where, "runnel serve has no", flag.group())


def seconds_of_drain(words):
    return int(next(word for word in words if word.startswith("--drain=")).split("=")[1])


def check_manifest():
    with open(os.path.join(DEPLOY, "kubernetes/serve/serve.yaml")) as file:
        documents = list(yaml.safe_load_all(file))
    try:
        import kubernetes_validate
        for each in documents:
            kubernetes_validate.validate(each, "1.28", strict=True)
        print("checked by Kubernetes' own schemas, too")
    except ImportError:
        print("kubernetes-validate is missing: the schemas are not checked")
    kinds = {each["kind"]: each for each in documents}
    check(set(kinds) == {"ConfigMap", "Deployment", "Service", "HorizontalPodAutoscaler",
                         "PodDisruptionBudget"}, "the kinds are", set(kinds))
    spec = kinds["Deployment"]["spec"]
    pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"]
    container = pod["containers"][0]
    for where, selector in (("Deployment", spec["selector"]["matchLabels"]),
                            ("Service", kinds["Service"]["spec"]["selector"]),
                            ("budget", kinds["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"])):
        check(selector == labels, where, "selects other pods")
    check_flags(container["command"], "Deployment")
    check(seconds_of_drain(container["command"]) < pod["terminationGracePeriodSeconds"],
          "pods are killed before they have drained")
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    check(ports == {each["name"]: each["port"] for each in kinds["Service"]["spec"]["ports"]}, "ports differ")
    check(f"--port={ports['grpc']}" in container["command"] and
          f"--rest_api_port={ports['rest']}" in container["command"], "the command has other ports")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        check(container[probe]["httpGet"]["port"] == ports["rest"], probe, "has another port")
    mounts = {each["name"] for each in container["volumeMounts"]}
    check(mounts == {each["name"] for each in pod["volumes"]}, "volumes and mounts differ")
    scaled = kinds["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    check(scaled["name"] == kinds["Deployment"]["metadata"]["name"], "the autoscaler scales", scaled)
    return kinds["ConfigMap"]["data"]["models.pbtxt"]


def check_unit():
    with open(os.path.join(DEPLOY, "systemd/runnel-serve.service")) as file:
        text = file.read()
    words = re.search(r"^ExecStart=(.*)$", text, re.M).group(1).split()
    check(words[1] == "serve", "the unit does not serve")
    check_flags(words, "unit")
    stop = int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M).group(1))
    check(seconds_of_drain(words) < stop, "the service is killed before it has drained")


config = check_manifest()
check('name: "half_plus_two"' in config, "the list of models is", config)
check_unit()
