"""Small helpers behind tensorflow.python.framework and tensorflow.python.util: registries, stacks that know their lines, group locks."""

import inspect
import threading
import traceback
from typing import Protocol, runtime_checkable


@runtime_checkable
class CustomNestProtocol(Protocol):
    """Objects that tf.nest takes apart by their own methods."""

    def __tf_flatten__(self):
        """Returns (metadata, components)."""

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        """Returns an object of these components."""


# registry

class Registry:
    """Objects by name."""

    def __init__(self, name):
        self._name, self._registry = name, {}

    def register(self, candidate, name=None):
        """Adds an object; its name is by default its `__name__`. Raises KeyError if the name is taken."""
        name = name or candidate.__name__
        if name in self._registry:
            frame = self._registry[name][1]
            raise KeyError("Registering two %s with name '%s'! (Previous registration was in %s %s:%d)" % (
                self._name, name, frame.name, frame.filename, frame.lineno))
        self._registry[name] = candidate, traceback.extract_stack(limit=3)[-2]

    def list(self):
        """Returns the names."""
        return self._registry.keys()

    def lookup(self, name):
        """Returns the object of a name. Raises LookupError if there is none."""
        name = name.decode() if isinstance(name, bytes) else name
        if name not in self._registry:
            raise LookupError("%s registry has no entry for: %s" % (self._name, name))
        return self._registry[name][0]


# traceable_stack

class TraceableObject:
    """An object with the line of the program that pushed it."""

    SUCCESS, HEURISTIC_USED, FAILURE = range(3)

    def __init__(self, obj, filename=None, lineno=None):
        self.obj, self.filename, self.lineno = obj, filename, lineno

    def set_filename_and_line_from_caller(self, offset=0):
        """Takes the line of the caller, or of its `offset`-th caller."""
        frames = inspect.stack(context=0)[1:]
        place = min(offset, len(frames) - 1)
        self.filename, self.lineno = frames[place].filename, frames[place].lineno
        return self.SUCCESS if place == offset else self.HEURISTIC_USED

    def copy_metadata(self):
        """Returns a copy without the object."""
        return type(self)(None, filename=self.filename, lineno=self.lineno)


class TraceableStack:
    """A stack of TraceableObjects."""

    def __init__(self, existing_stack=None):
        self._stack = list(existing_stack or ())

    def push_obj(self, obj, offset=0):
        """Adds an object with the line of the caller."""
        one = TraceableObject(obj)
        self._stack.append(one)
        return one.set_filename_and_line_from_caller(offset + 1)

    def pop_obj(self):
        """Removes the last object and returns it."""
        return self._stack.pop().obj

    def peek_top_obj(self):
        """Returns the last object."""
        return self._stack[-1].obj

    def peek_objs(self):
        """Returns the objects, the last first."""
        return (one.obj for one in reversed(self._stack))

    def peek_traceable_objs(self):
        """Returns the objects with their lines, the last first."""
        return reversed(self._stack)

    def __len__(self):
        return len(self._stack)

    def copy(self):
        """Returns a copy."""
        return TraceableStack(self._stack)


# lock_util

class GroupLock:
    """A lock that several threads of one group can hold, but not threads of two groups."""

    def __init__(self, num_groups=2):
        if num_groups < 1:
            raise ValueError("num_groups must be a positive integer, got: %s" % num_groups)
        self._changed = threading.Condition(threading.Lock())
        self._group_member_counts = [0] * num_groups

    def group(self, group_id):
        """Returns a context manager that holds the lock for a group."""
        self._check(group_id)
        return _Held(self, group_id)

    def acquire(self, group_id):
        """Waits until no other group holds the lock."""
        self._check(group_id)
        with self._changed:
            self._changed.wait_for(lambda: not any(n for i, n in enumerate(self._group_member_counts) if i != group_id))
            self._group_member_counts[group_id] += 1

    def release(self, group_id):
        """Gives the lock back."""
        self._check(group_id)
        with self._changed:
            self._group_member_counts[group_id] -= 1
            if not self._group_member_counts[group_id]:
                self._changed.notify_all()

    def _check(self, group_id):
        if not 0 <= group_id < len(self._group_member_counts):
            raise ValueError("group_id=%s should be between 0 and num_groups=%s" % (group_id, len(self._group_member_counts)))


class _Held:
    def __init__(self, lock, group_id):
        self._lock, self._group_id = lock, group_id

    def __enter__(self):
        self._lock.acquire(self._group_id)

    def __exit__(self, *error):
        self._lock.release(self._group_id)


# variable_utils

def convert_variables_to_tensors(values):
    """Returns a structure with the values of variables in place of them."""
    from runnel import nest
    from runnel.core.convert import convert_to_tensor
    from runnel.core.type_spec import CompositeTensor

    def one(x):
        if _is_variable(x):
            return convert_to_tensor(x)
        return x._convert_variables_to_tensors() if isinstance(x, CompositeTensor) else x
    return nest.map_structure(one, values)


def replace_variables_with_atoms(values):
    """Returns a structure with 0 in place of variables."""
    from runnel import nest
    return nest.map_structure(lambda x: 0 if _is_variable(x) else x, values)


def _is_variable(x):
    from runnel.ops.resource_variable import ResourceVariable
    return isinstance(x, ResourceVariable)


# ops: statistics of nodes

class OpStats:
    """A number that a function computes for a node, such as its floating-point operations."""

    def __init__(self, statistic_type, value=None):
        self.statistic_type, self.value = statistic_type, value

    def __iadd__(self, other):
        if other.statistic_type != self.statistic_type:
            raise ValueError("Can't add an OpStat of type %s to one of %s." % (self.statistic_type, other.statistic_type))
        if self.value is None or other.value is None:
            self.value = other.value if self.value is None else self.value
        else:
            self.value += other.value
        return self


_statistics = Registry("statistical functions")


class RegisterStatistics:
    """A decorator of a function (graph, NodeDef) that computes a statistic for nodes of a type."""

    def __init__(self, op_type, statistic_type):
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string.")
        if "," in op_type:
            raise TypeError("op_type must not contain a comma.")
        if not isinstance(statistic_type, str):
            raise TypeError("statistic_type must be a string.")
        if "," in statistic_type:
            raise TypeError("statistic_type must not contain a comma.")
        self._key = "%s,%s" % (op_type, statistic_type)

    def __call__(self, f):
        _statistics.register(f, self._key)
        return f


def get_stats_for_node_def(graph, node, statistic_type):
    """Returns a statistic of a node; its value is None if no function computes it."""
    try:
        function = _statistics.lookup("%s,%s" % (node.op, statistic_type))
    except LookupError:
        return OpStats(statistic_type)
    return function(graph, node)


# func_graph

def add_exit_callback_to_default_func_graph(fn):
    """Calls `fn` when the trace of the function under construction has ended."""
    from runnel.core.framework import get_default_graph
    from runnel.eager.func_graph import FuncGraph
    graph = get_default_graph()
    if not isinstance(graph, FuncGraph):
        raise RuntimeError("Cannot add scope exit callbacks when not building a function.  Default graph: %s" % graph)
    graph.add_exit_callback(fn)
