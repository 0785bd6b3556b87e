"""tf.tpu.experimental: descriptions of TPU systems, of which this machine has none."""

import collections
import enum

from runnel import errors

_NONE = "There is no TPU: Runnel runs on CPUs and GPUs."


class DeviceOrderMode(enum.IntEnum):
    """How the devices of a TPU are ordered."""

    AUTO = 0
    RING = 1
    MESH = 2


class HardwareFeature:
    """What a TPU can do."""

    class EmbeddingFeature(enum.Enum):
        """The support of embeddings."""

        UNSUPPORTED = "UNSUPPORTED"
        V1 = "V1"
        V2 = "V2"

    def __init__(self, tpu_hardware_feature_proto=None):
        self.tpu_hardware_feature_proto = tpu_hardware_feature_proto

    embedding_feature = property(lambda self: HardwareFeature.EmbeddingFeature.UNSUPPORTED)
    num_embedding_devices_per_chip = property(lambda self: 0)


class TPUSystemMetadata(collections.namedtuple("TPUSystemMetadata", "num_cores num_hosts num_of_cores_per_host topology devices")):
    """The size of a TPU system."""


class XLAOptions(collections.namedtuple("XLAOptions", "use_spmd_for_xla_partitioning enable_xla_dynamic_padder")):
    """Options of the compiler for TPUs."""

    def __new__(cls, use_spmd_for_xla_partitioning=True, enable_xla_dynamic_padder=True):
        return super().__new__(cls, use_spmd_for_xla_partitioning, enable_xla_dynamic_padder)


class Topology:
    """How a TPU's devices are arranged. Runnel has no TPUs, so this cannot be created."""

    def __init__(self, serialized=None, mesh_shape=None, device_coordinates=None):
        raise errors.NotFoundError(None, None, _NONE)


class DeviceAssignment:
    """Which TPU devices a computation uses. Runnel has no TPUs, so this cannot be created."""

    def __init__(self, topology, core_assignment):
        raise errors.NotFoundError(None, None, _NONE)

    @staticmethod
    def build(topology, computation_shape=None, computation_stride=None, num_replicas=1, device_order_mode=DeviceOrderMode.AUTO):
        """Assigns devices to a computation."""
        raise errors.NotFoundError(None, None, _NONE)


def initialize_tpu_system(cluster_resolver=None):
    """Initializes a TPU. Raises NotFoundError."""
    raise errors.NotFoundError(None, None, _NONE)


def shutdown_tpu_system(cluster_resolver=None):
    """Shuts a TPU down. Raises NotFoundError."""
    raise errors.NotFoundError(None, None, _NONE)
