"""KubernetesClusterResolver: the running pods that labels select are the tasks."""

import enum
import json
import os

from runnel.distribute.cluster_resolver.base import ClusterResolver
from runnel.train.server_lib import ClusterSpec

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class KubernetesExecutableLocation(enum.Enum):
    """Whether the program runs in a pod of the cluster."""

    WITHIN_CLUSTER, OFF_CLUSTER = 0, 1


class _Client:
    """Asks the API server of the cluster that this process is a pod of, whose address the environment has."""

    def __init__(self):
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise RuntimeError("KUBERNETES_SERVICE_HOST is not set: this process is not in a pod. Pass `override_client`.")
        self._url = "https://%s:%s/api/v1/pods" % ("[%s]" % host if ":" in host else host, port)

    def pods(self, selector):
        """Returns [(name, phase, address of its host)] of the pods that a label selector selects."""
        import ssl
        import urllib.parse
        import urllib.request
        with open(_ACCOUNT + "/token") as file:
            token = file.read().strip()
        request = urllib.request.Request(self._url + "?labelSelector=" + urllib.parse.quote(selector), headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=_ACCOUNT + "/ca.crt"), timeout=30) as answer:
            items = json.load(answer)["items"]
        return [(pod["metadata"]["name"], pod["status"].get("phase"), pod["status"].get("hostIP")) for pod in items]


class _Given:
    """A client of the package kubernetes."""

    def __init__(self, client):
        self._client = client

    def pods(self, selector):
        """Returns [(name, phase, address of its host)] of the pods that a label selector selects."""
        found = self._client.list_pod_for_all_namespaces(label_selector=selector)
        return [(pod.metadata.name, pod.status.phase, pod.status.host_ip) for pod in found.items]


class KubernetesClusterResolver(ClusterResolver):
    """The tasks of a job are the running pods with one of its labels.

    Args:
      job_to_label_mapping: {job: [label selector]}; by default workers with "job-name=tensorflow".
      tf_server_port: the port of all tasks.
      rpc_layer: of targets.
      override_client: a CoreV1Api of the package kubernetes. Without one, the resolver asks the API server of its own cluster.
      executable_location: OFF_CLUSTER needs the package kubernetes.
    """

    def __init__(self, job_to_label_mapping=None, tf_server_port=8470, rpc_layer="grpc", override_client=None,
                 executable_location=KubernetesExecutableLocation.WITHIN_CLUSTER):
        if not isinstance(executable_location, KubernetesExecutableLocation):
            raise ValueError("The executable location provided is invalid.")
        self._labels = job_to_label_mapping or {"worker": ["job-name=tensorflow"]}
        self._port, self.rpc_layer = tf_server_port, rpc_layer
        if override_client is None and executable_location is KubernetesExecutableLocation.OFF_CLUSTER:
            try:
                from kubernetes import client, config
            except ImportError:
                raise ImportError("The Kubernetes Python client must be installed before using the Kubernetes Cluster Resolver. To install the "
                                  "Kubernetes Python client, run `pip install kubernetes` on your command line.") from None
            config.load_kube_config()
            override_client = client.CoreV1Api()
        self._client = _Client() if override_client is None else _Given(override_client)

    def cluster_spec(self):
        """Returns the cluster as it is now. Raises RuntimeError if a pod does not run."""
        return ClusterSpec({job: [address for selector in selectors for address in self._addresses(selector)]
                            for job, selectors in self._labels.items()})

    def _addresses(self, selector):
        pods = sorted(self._client.pods(selector))
        for name, phase, _ in pods:
            if phase != "Running":
                raise RuntimeError("Pod \"%s\" is not running; phase: \"%s\"" % (name, phase))
        return ["%s:%s" % (host, self._port) for _, _, host in pods]
