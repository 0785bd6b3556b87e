"""tf.distribute.experimental of 1.x: strategies under their older names."""

from runnel._namespace import namespace as _namespace

__getattr__, __dir__, __all__ = _namespace(
    __name__,
    "distribute.multi_worker: CollectiveCommunication=CommunicationImplementation CollectiveHints CommunicationImplementation CommunicationOptions",
    "distribute.multi_worker: MultiWorkerMirroredStrategy=ExperimentalMultiWorkerMirroredStrategy",
    "distribute.central_storage: CentralStorageStrategy",
    "distribute.strategy: ParameterServerStrategy=ParameterServerStrategyV1 TPUStrategy")
