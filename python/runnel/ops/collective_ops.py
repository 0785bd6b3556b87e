"""Collectives: operations that all members of a group run together (doc/cluster.md)."""

from runnel import dtypes, raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.core.tensor_shape import TensorShape


def _check_size(group_size, least, name):
    if group_size < least:
        raise ValueError("Parameter `group_size` to %s must be at least %d. Received: %s." % (name, least, group_size))


def _token(ordering_token):
    return [ordering_token] if ordering_token is not None else []


def all_reduce(t, group_size, group_key, instance_key, merge_op="Add", final_op="Id", subdiv_offsets=(0,),
               communication_hint="auto", timeout=0):
    """Reduces the tensors of all members of a group element by element; every member gets the result."""
    _check_size(group_size, 1, "all_reduce")
    return _ops.CollectiveReduce(
        input=t, group_size=group_size, group_key=group_key, instance_key=instance_key, merge_op=merge_op,
        final_op=final_op, subdiv_offsets=list(subdiv_offsets), communication_hint=communication_hint.lower(),
        timeout_seconds=timeout)


def all_reduce_v2(t, group_size, group_key, instance_key, merge_op="Add", final_op="Id", communication_hint="auto",
                  timeout=0, ordering_token=None, max_subdivs_per_device=-1, name=None):
    """As all_reduce, with sizes and keys that may be tensors."""
    return _ops.CollectiveReduceV2(
        input=t, group_size=group_size, group_key=group_key, instance_key=instance_key, merge_op=merge_op,
        final_op=final_op, communication_hint=communication_hint.lower(), timeout_seconds=timeout,
        is_stateless=False, ordering_token=_token(ordering_token), max_subdivs_per_device=max_subdivs_per_device,
        name=name)


def all_gather(t, group_size, group_key, instance_key, communication_hint="auto", timeout=0):
    """Concatenates the tensors of all members of a group along the first axis."""
    _check_size(group_size, 1, "all_gather")
    return _ops.CollectiveGather(
        input=t, shape=[0], group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout)


def all_gather_v2(t, group_size, group_key, instance_key, communication_hint="auto", timeout=0, ordering_token=None,
                  name=None):
    """As all_gather, with sizes and keys that may be tensors."""
    return _ops.CollectiveGatherV2(
        input=t, group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout, is_stateless=False,
        ordering_token=_token(ordering_token), name=name)


def broadcast_send(t, shape, dtype, group_size, group_key, instance_key, communication_hint="auto", timeout=0):
    """Sends a tensor of a known shape to the other members of a group."""
    _check_size(group_size, 2, "broadcast_send")
    t, dtype = convert_to_tensor(t), dtypes.as_dtype(dtype)
    if t.shape != TensorShape(shape):
        raise ValueError("Shape of broadcast_send tensor `t` not equal to declared shape. Received %s, expected %s." %
                         (t.shape, shape))
    if t.dtype != dtype:
        raise ValueError("Type of broadcast_send tensor `t` not equal to declared type. Received %s, expected %s." %
                         (t.dtype, dtype))
    return _ops.CollectiveBcastSend(
        input=t, shape=shape, group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout)


def broadcast_send_v2(t, group_size, group_key, instance_key, communication_hint="auto", timeout=0):
    """As broadcast_send, with sizes and keys that may be tensors."""
    return _ops.CollectiveBcastSendV2(
        input=t, group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout)


def broadcast_recv(shape, dtype, group_size, group_key, instance_key, communication_hint="auto", timeout=0):
    """Receives the tensor that one member of a group sends."""
    _check_size(group_size, 2, "broadcast_send")  # as stock says
    return _ops.CollectiveBcastRecv(
        T=dtype, shape=shape, group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout)


def broadcast_recv_v2(shape, dtype, group_size, group_key, instance_key, communication_hint="auto", timeout=0):
    """As broadcast_recv, with shapes, sizes and keys that may be tensors."""
    return _ops.CollectiveBcastRecvV2(
        T=dtype, shape=shape, group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout)


def all_to_all_v2(t, group_size, group_key, instance_key, communication_hint="auto", timeout=0, ordering_token=None,
                  name=None):
    """Sends slice i of t to member i of a group; slice i of the result comes from member i."""
    return _ops.CollectiveAllToAllV2(
        input=t, group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint.lower(), timeout_seconds=timeout, is_stateless=False,
        ordering_token=_token(ordering_token), name=name)


def initialize_communicator(group_key, rank, group_size, communication_hint="auto", timeout_seconds=0):
    """Joins a group with a given rank; waits until all its members have."""
    return _ops.CollectiveInitializeCommunicator(
        group_key=group_key, rank=rank, group_size=group_size, communication_hint=communication_hint,
        timeout_seconds=timeout_seconds)


def all_reduce_v3(communicator, t, reduction="Add", group_assignment=None, timeout_seconds=None):
    """As all_reduce, for the members of a communicator."""
    return _ops.CollectiveReduceV3(
        communicator=communicator, input=t, group_assignment=[] if group_assignment is None else group_assignment,
        reduction=reduction, timeout_seconds=timeout_seconds or 0)


def all_to_all_v3(communicator, t, group_assignment=None, timeout_seconds=None):
    """As all_to_all_v2, for the members of a communicator."""
    return _ops.CollectiveAllToAllV3(
        communicator=communicator, input=t, group_assignment=[] if group_assignment is None else group_assignment,
        timeout_seconds=timeout_seconds or 0)


def assign_group_v2(group_assignment, device_index, base_key):
    """The size and the key of the row of group_assignment that lists device_index."""
    group_size, group_key = _ops.CollectiveAssignGroupV2(
        group_assignment=group_assignment, device_index=device_index, base_key=base_key)
    return group_size, group_key
