#!/usr/bin/env python3
"""The manifests of deploy/kubernetes: kubernetes_test.py RUNNEL"""

import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("PyYAML is missing (Debian: python3-yaml)")
    sys.exit(77)

RUNNEL = sys.argv[1]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/kubernetes")

# The fields that we use: a type, a list of one kind of element, or an object; "!" is required.
NAMES = {"name!": str}
LABELS = {str: str}
META = {"name!": str, "labels": LABELS}
ENV_FROM = {"configMapRef!": NAMES}
PROBE = {"exec!": {"command!": [str]}, "periodSeconds": int, "timeoutSeconds": int}
CONTAINER = {
    "name!": str, "image!": str, "command": [str], "envFrom": [ENV_FROM],
    "ports": [{"name": str, "containerPort!": int}], "readinessProbe": PROBE,
    "resources": {"requests": LABELS, "limits": LABELS},
    "securityContext": {"allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool,
                        "capabilities": {"drop": [str]}},
    "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool}],
}
POD = {
    "terminationGracePeriodSeconds": int, "automountServiceAccountToken": bool,
    "securityContext": {"runAsNonRoot": bool, "runAsUser": int, "fsGroup": int,
                        "seccompProfile": {"type!": str}},
    "containers!": [CONTAINER],
    "volumes": [{"name!": str, "secret": {"secretName!": str, "defaultMode": int},
                 "persistentVolumeClaim": {"claimName!": str}}],
}
REPLICAS = {"replicas!": int, "restartPolicy!": str,
            "template!": {"metadata!": {"labels!": LABELS}, "spec!": POD}}
KINDS = {
    ("v1", "ConfigMap"): {"data!": LABELS},
    ("v1", "Service"): {"spec!": {
        "clusterIP": str, "publishNotReadyAddresses": bool, "selector!": LABELS,
        "ports!": [{"name": str, "port!": int}]}},
    ("apps/v1", "StatefulSet"): {"spec!": {
        "serviceName!": str, "replicas": int, "podManagementPolicy": str,
        "selector!": {"matchLabels!": LABELS},
        "template!": {"metadata!": {"labels!": LABELS}, "spec!": POD}}},
    # From the operator's CustomResourceDefinition.
    ("kubeflow.org/v1", "TFJob"): {"spec!": {
        "runPolicy": {"cleanPodPolicy": str, "backoffLimit": int, "ttlSecondsAfterFinished": int},
        "tfReplicaSpecs!": {"PS!": REPLICAS, "Worker!": REPLICAS}}},
}


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def check_fields(value, schema, where):
    if isinstance(schema, type):
        check(isinstance(value, schema) and (schema is bool or not isinstance(value, bool)), where,
              "is", repr(value))
    elif isinstance(schema, list):
        check(isinstance(value, list) and value, where, "is no list")
        for i, each in enumerate(value):
            check_fields(each, schema[0], f"{where}[{i}]")
    elif str in schema:
        check(isinstance(value, dict), where, "is no object")
        for key, each in value.items():
            check_fields(each, schema[str], f"{where}.{key}")
    else:
        check(isinstance(value, dict), where, "is no object")
        known = {key.rstrip("!"): each for key, each in schema.items()}
        for key, each in value.items():
            check(key in known, where, "has no field", key)
            check_fields(each, known[key], f"{where}.{key}")
        for key in schema:
            check(not key.endswith("!") or key[:-1] in value, where, "lacks", key)


def check_command(container, known_flags, where):
    text = " ".join(container["command"])
    check("runnel server" in text, where, "runs no task")
    for flag in re.findall(r"--[a-z-]+", text):
        check(flag in known_flags, where, "runnel server has no", flag)


def check_set(each, services, config, flags):
    """A StatefulSet against what it names, and against the cluster."""
    name, spec = each["metadata"]["name"], each["spec"]
    pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"]
    check(spec["selector"]["matchLabels"] == labels, name, "does not select its pods")
    service = services.get(spec["serviceName"])
    check(service and service["spec"]["selector"] == labels, name, "has no service")
    check(service["spec"]["clusterIP"] == "None", name, "has a service with an address of its own")
    port = service["spec"]["ports"][0]["port"]
    container = pod["containers"][0]
    check(container["ports"][0]["containerPort"] == port, name, "has another port than its service")
    check(container["envFrom"][0]["configMapRef"]["name"] == "runnel-cluster", name)
    mounts, volumes = container["volumeMounts"], pod["volumes"]
    check({each["name"] for each in mounts} == {each["name"] for each in volumes}, name)
    check_command(container, flags, name)
    drain = int(re.search(r"--drain (\d+)", " ".join(container["command"])).group(1))
    check(drain < pod["terminationGracePeriodSeconds"], name, "is killed before it has drained")
    job = re.search(r"--job (\w+)", " ".join(container["command"])).group(1)
    expected = [f"{name}-{i}.{spec['serviceName']}:{port}" for i in range(spec["replicas"])]
    check(config["cluster"][job] == expected, job, "should be", expected)
    return job


def read(name):
    """The documents of a file, each with only the fields that its kind has."""
    with open(os.path.join(FOLDER, name)) as file:
        documents = list(yaml.safe_load_all(file))
    for each in documents:
        kind = (each.get("apiVersion"), each.get("kind"))
        check(kind in KINDS, "there is no", kind)
        schema = {"apiVersion!": str, "kind!": str, "metadata!": META, **KINDS[kind]}
        check_fields(each, schema, kind[1])
    return documents


def check_tfjob(flags):
    job, = read("tfjob/tfjob.yaml")
    check(job["spec"]["runPolicy"]["cleanPodPolicy"] in ("None", "Running", "All"), "cleanPodPolicy")
    try:
        import kubernetes_validate
    except ImportError:
        kubernetes_validate = None
    for name, replicas in job["spec"]["tfReplicaSpecs"].items():
        check(replicas["restartPolicy"] in ("Always", "OnFailure", "Never", "ExitCode"), name, "restartPolicy")
        pod = replicas["template"]["spec"]
        container, = pod["containers"]
        check(container["name"] == "tensorflow", name, "has a container that the operator does not know")
        check(container["ports"] == [{"name": "tfjob-port", "containerPort": 2222}], name, container["ports"])
        check({each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}, name)
        if name == "PS":
            check_command(container, flags, name)
            drain = int(container["command"][container["command"].index("--drain") + 1])
            check(drain < pod["terminationGracePeriodSeconds"], name, "is killed before it has drained")
        if kubernetes_validate:
            kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name.lower()}, "spec": pod}, "1.28", strict=True)
    # What the operator writes into TF_CONFIG is what the task reads.
    config = {"cluster": {"ps": ["digits-ps-0.default.svc:2222", "digits-ps-1.default.svc:2222"], "worker": ["digits-worker-0.default.svc:2222"]},
              "task": {"type": "ps", "index": 1}, "environment": "cloud"}
    shown = subprocess.run([RUNNEL, "server", "--show"], env=dict(os.environ, TF_CONFIG=json.dumps(config)), capture_output=True, text=True)
    check("* ps:1 digits-ps-1.default.svc:2222" in shown.stdout, shown.stdout, shown.stderr)


def main():
    documents = read("cluster.yaml")
    try:
        import kubernetes_validate
        for each in documents:
            kubernetes_validate.validate(each, "1.28", strict=True)
        print("checked by Kubernetes' own schemas, too")
    except ImportError:
        print("kubernetes-validate is missing: checked by the list of fields that we use")
    of_kind = {}
    for each in documents:
        of_kind.setdefault(each["kind"], {})[each["metadata"]["name"]] = each
    config = json.loads(of_kind["ConfigMap"]["runnel-cluster"]["data"]["TF_CONFIG"])
    with open(os.path.join(FOLDER, "cluster.json")) as file:
        check(json.load(file) == config["cluster"], "cluster.json and TF_CONFIG differ")
    text = subprocess.run([RUNNEL, "help", "server"], capture_output=True, text=True).stdout
    flags = set(re.findall(r"--[a-z-]+", text))
    jobs = {check_set(each, of_kind["Service"], config, flags)
            for each in of_kind["StatefulSet"].values()}
    check(jobs == set(config["cluster"]), "TF_CONFIG has other jobs than", jobs)
    check_tfjob(flags)
    # The certificates that the tasks want are those that the command makes.
    with tempfile.TemporaryDirectory() as certs:
        subprocess.run([RUNNEL, "cert", "--dir", certs, "--cluster",
                        os.path.join(FOLDER, "cluster.json")], check=True, capture_output=True)
        for job, addresses in config["cluster"].items():
            for i in range(len(addresses)):
                check(os.path.exists(os.path.join(certs, f"{job}-{i}-key.pem")), job, i)


main()
