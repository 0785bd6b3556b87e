"""CentralStorageStrategy: replicas on several devices, with variables that exist once."""

from runnel.core import framework
from runnel.distribute import contexts, variable
from runnel.distribute.strategies import MirroredStrategy, _device, _MirroredExtended
from runnel.ops.variables import VariableAggregation, VariableSynchronization


class AggregatingVariable(variable.DistributedVariable):
    """A variable that all replicas share. What they assign is aggregated first."""

    _component_of_replica = True  # it stays whole in a replica

    def _get(self):
        return self._values[0]

    def __repr__(self):
        return repr(self._values[0])

    __str__ = __repr__


class _CentralExtended(_MirroredExtended):
    def __init__(self, strategy, devices, parameter_device):
        super().__init__(strategy, devices)
        self.parameter_devices = (parameter_device,)

    def create_variable(self, make, kwargs):
        replica = contexts.get_replica_context()
        if replica is None:
            return self._created(make, kwargs)
        return replica.shared_variable(kwargs.get("name"), lambda: self._created(make, kwargs))

    def _created(self, make, kwargs):
        aggregation = kwargs.get("aggregation") or VariableAggregation.NONE
        with framework.init_scope(), framework.device(self.parameter_devices[0]):
            made = make(**kwargs)
        if len(self._devices) == 1:
            return made
        return AggregatingVariable(self._strategy, [made], kwargs.get("synchronization") or VariableSynchronization.AUTO, aggregation)


class CentralStorageStrategy(MirroredStrategy):
    """A replica per device of this machine; variables are on one of its devices.

    Args:
      compute_devices: of the replicas; by default all GPUs, or the CPU.
      parameter_device: of the variables; by default the CPU, or the only GPU if there is one.
    """

    def __init__(self, compute_devices=None, parameter_device=None):
        super().__init__(compute_devices)
        gpus = [device for device in self._devices if "GPU" in device]
        place = _device(parameter_device) if parameter_device else gpus[0] if len(gpus) == 1 == len(self._devices) else "/device:CPU:0"
        self._extended = _CentralExtended(self, self._devices, place)
