"""tf.distribute.cluster_resolver: which tasks a cluster has, and which one this process is.

`base` has the interface and those that are told, `environment` those that read the environment, `kubernetes` asks an API server.
"""

from runnel._namespace import namespace as _namespace

__getattr__, __dir__, __all__ = _namespace(
    __name__,
    "distribute.cluster_resolver.base: ClusterResolver SimpleClusterResolver UnionResolver",
    "distribute.cluster_resolver.environment: SageMakerClusterResolver SlurmClusterResolver TFConfigClusterResolver",
    "distribute.cluster_resolver.kubernetes: KubernetesClusterResolver KubernetesExecutableLocation",
    "distribute.cluster_resolver.absent: GCEClusterResolver TPUClusterResolver")
