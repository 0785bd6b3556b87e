"""Collectives between processes: sums, rows and broadcasts of tensors that each process has one of."""

import atexit
import itertools

from runnel.core import framework

_instances = itertools.count(1)  # all processes make the same calls in the same order, so these numbers agree
_joined: list = []
_GROUP = 1
_EXIT_MS = 5000  # how long a process that ends waits until the others have what it left for them


def join(cluster, task_type, task_id, leader=None, protocol=None):
    """Makes this process a task of a cluster. Call it before any operation runs; later calls must name the same task.

    The protocol is that of a ServerDef, by default "grpc".
    """
    from runnel import _core
    from runnel.core.protobuf import message_class
    from runnel.eager import context
    wanted = (cluster.as_dict(), task_type, task_id)
    if _joined:
        if _joined[0] != wanted:
            raise RuntimeError("This process is %r of a cluster already" % (_joined[0][1:],))
        return
    if context.is_started():
        raise RuntimeError("Collective ops must be configured at program startup")
    context.start()
    server = message_class("ServerDef")(cluster=cluster.as_cluster_def(), job_name=task_type, task_index=task_id,
                                        protocol=protocol or "grpc")
    if leader:
        server.default_session_config.experimental.collective_group_leader = leader
    _core.eager_join_collectives(server.SerializeToString())
    _joined.append(wanted)
    atexit.register(_core.eager_finish_collectives, _EXIT_MS)


class Group:
    """The processes that take part. `device` is where this one runs its collectives."""

    def __init__(self, device, size, rank, timeout_seconds=0, hint="auto"):
        self.device, self.size, self.rank, self._timeout, self._hint = device, size, rank, timeout_seconds, hint

    def _keys(self):
        return {"group_size": self.size, "group_key": _GROUP, "instance_key": next(_instances), "timeout": self._timeout,
                "communication_hint": self._hint}

    def sum(self, tensor):
        """Returns the sum of the tensors of all processes."""
        from runnel import dtypes
        from runnel.ops import collective_ops, math_ops
        if tensor.dtype.base_dtype not in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64):
            wide = dtypes.int64 if tensor.dtype.is_integer or tensor.dtype.is_bool else dtypes.float64
            return math_ops.cast(self.sum(math_ops.cast(tensor, wide)), tensor.dtype)
        with framework.device(self.device):
            return collective_ops.all_reduce_v2(tensor, **self._keys())

    def rows(self, tensor, axis=0):
        """Returns the tensors of all processes, which may differ in size along the axis, joined along it."""
        from runnel.ops import array_ops
        if axis:
            order = [axis] + [i for i in range(tensor.shape.rank) if i != axis]
            back = [order.index(i) for i in range(tensor.shape.rank)]
            return array_ops.transpose(self.rows(array_ops.transpose(tensor, order)), back)
        with framework.device(self.device):
            return self._first_rows(tensor)

    def _first_rows(self, tensor):
        """Sends as many rows as the longest has, then drops those beyond the others' own."""
        from runnel.ops import array_ops, collective_ops, math_ops
        shape = tensor.shape
        counts = collective_ops.all_gather_v2(array_ops.shape(tensor)[:1], **self._keys())
        most = math_ops.reduce_max(counts)
        rank = shape.rank if shape.rank is not None else array_ops.rank(tensor)
        pads = array_ops.concat([[most - array_ops.shape(tensor)[0]], array_ops.zeros([rank - 1], "int32")], 0)
        padded = array_ops.pad(tensor, array_ops.stack([array_ops.zeros([rank], "int32"), pads], 1))
        together = collective_ops.all_gather_v2(padded, **self._keys())
        parts = [together[most * i:most * i + counts[i]] for i in range(self.size)]
        joined = array_ops.concat(parts, 0)
        if shape.rank is not None:
            joined.set_shape([None, *shape.as_list()[1:]]) if not framework.executing_eagerly() else None
        return joined

    def broadcast(self, tensor):
        """Returns the tensor of the first process. Those of the others say which shape and type it has."""
        from runnel.ops import array_ops, collective_ops
        with framework.device(self.device):
            if self.rank == 0:
                return collective_ops.broadcast_send_v2(tensor, **self._keys())
            return collective_ops.broadcast_recv_v2(array_ops.shape(tensor), tensor.dtype.base_dtype, **self._keys())
