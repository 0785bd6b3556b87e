"""CentralStorageStrategy: replicas on several devices, with variables that exist once."""

from runnel.core import framework
from runnel.distribute import device_util, variable
from runnel.distribute.strategies import MirroredExtended, MirroredStrategy
from runnel.distribute.strategy import Strategy, StrategyV1
from runnel.ops.variables import VariableAggregation, VariableSynchronization


class AggregatingVariable(variable.DistributedVariable):
    """A variable that all replicas share. What they assign is aggregated first."""

    def _get(self):
        return self._values[0]

    def __repr__(self):
        return repr(self._values[0])

    __str__ = __repr__


class CentralStorageExtended(MirroredExtended):
    """The part of a CentralStorageStrategy that libraries use."""

    def __init__(self, container_strategy, compute_devices=None, parameter_device=None):
        super().__init__(container_strategy, compute_devices)
        gpus = [device for device in self._devices if "GPU" in device]
        place = parameter_device or (gpus[0] if len(gpus) == 1 == len(self._devices) else "/device:CPU:0")
        self.parameter_devices = (device_util.resolve(place),)

    def _created(self, make, kwargs):
        aggregation = kwargs.get("aggregation") or VariableAggregation.NONE
        if aggregation not in variable.AGGREGATIONS:
            raise ValueError("Invalid variable aggregation mode: %s for variable: %s" % (aggregation, kwargs.get("name")))
        with framework.init_scope(), framework.device(self.parameter_devices[0]):
            made = make(**kwargs)
        if len(self._devices) == 1:
            return made
        return AggregatingVariable(self._strategy, [made], aggregation, kwargs.get("synchronization") or VariableSynchronization.AUTO)


class CentralStorageStrategy(MirroredStrategy):
    """A replica per device of this machine; variables are on one of its devices.

    Args:
      compute_devices: of the replicas; by default all GPUs, or the CPU.
      parameter_device: of the variables; by default the CPU, or the only GPU if there is one.
    """

    def __init__(self, compute_devices=None, parameter_device=None):
        Strategy.__init__(self, CentralStorageExtended(self, compute_devices, parameter_device))


class CentralStorageStrategyV1(StrategyV1):
    """CentralStorageStrategy of 1.x."""

    def __init__(self, compute_devices=None, parameter_device=None):
        super().__init__(CentralStorageExtended(self, compute_devices, parameter_device))
