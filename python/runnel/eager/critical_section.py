"""tf.CriticalSection: functions that never run at the same time."""

from runnel import raw_ops
from runnel.core import framework


class CriticalSection:
    """A lock. The functions of `execute` run one after the other, in all threads and steps.

    Args:
      name: of the lock.
      shared_name: locks of one name are one lock.
      critical_section_def, import_scope: not supported.
    """

    def __init__(self, name=None, shared_name=None, critical_section_def=None, import_scope=None):
        if critical_section_def is not None:
            raise ValueError("Argument `critical_section_def` is not supported.")
        from runnel.eager.context import executing_eagerly_outside_functions
        with framework.init_scope(), framework.name_scope(name, "CriticalSection") as scope:
            own = shared_name or ("" if not executing_eagerly_outside_functions() else "critical_section_%d" % id(self))
            self._handle = raw_ops.MutexV2(shared_name=own or scope.rstrip("/"), container="", name=None)
        self._name = (name or "CriticalSection")

    name = property(lambda self: self._name)

    def execute(self, fn, exclusive_resource_access=True, name=None):
        """Returns what a function without arguments returns, which runs while no other function of this section does."""
        from runnel import nest
        from runnel.ops import array_ops
        with framework.name_scope(name, "critical_section_execute"):
            lock = raw_ops.MutexLock(mutex=self._handle)
            if framework.executing_eagerly():
                try:
                    return fn()
                finally:
                    raw_ops.ConsumeMutexLock(mutex_lock=lock)
            with framework.control_dependencies([lock]):
                result = fn()
            ends = [x for x in nest.flatten(result) if isinstance(x, (framework.Tensor, framework.Operation))]
            with framework.control_dependencies(ends):
                unlocked = raw_ops.ConsumeMutexLock(mutex_lock=lock)
            with framework.control_dependencies([unlocked]):
                return nest.map_structure(lambda x: array_ops.identity(x) if isinstance(x, framework.Tensor) else unlocked if isinstance(
                    x, framework.Operation) else x, result)
