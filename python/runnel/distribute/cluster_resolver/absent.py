"""Resolvers of one vendor's cloud, which exist because programs name them."""

from runnel.distribute.cluster_resolver.base import ClusterResolver


def _absent(name, why):
    def __init__(self, *args, **kwargs):
        from runnel.errors import UnimplementedError
        raise UnimplementedError(None, None, "tf.distribute.cluster_resolver.%s is not supported: %s" % (name, why))
    return type(name, (ClusterResolver,), {"__init__": __init__, "__doc__": "Not supported: %s." % why, "__module__": __name__})


GCEClusterResolver = _absent("GCEClusterResolver", "it needs the API of Google's Compute Engine; use SimpleClusterResolver or TFConfigClusterResolver")
TPUClusterResolver = _absent("TPUClusterResolver", "there are no TPUs")
