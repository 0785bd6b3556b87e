"""The scopes of a graph, in which new operations get names, devices, control inputs and attributes."""

import contextlib
import re

from runnel.core import attr_values, device_spec as device_lib
from runnel.graph.graph_tensor import Tensor
from runnel.graph.operation import Operation

_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")
_ROOT_SCOPE_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


def check_scope_name(name, outside):
    """Raises ValueError if a scope inside of the scope `outside` cannot have this name."""
    if not name:
        return
    if not (_SCOPE_NAME if outside else _ROOT_SCOPE_NAME).match(name):
        raise ValueError("'%s' is not a valid %sscope name. A %sscope name has to match the following pattern: %s" % (
            name, *(("", "", _SCOPE_NAME.pattern) if outside else ("root ", "root ", _ROOT_SCOPE_NAME.pattern))))


class GraphScopes:
    """The part of a graph that keeps its scopes."""

    @contextlib.contextmanager
    def name_scope(self, name):
        """A context manager that gives names the prefix "name/", made unique."""
        if name:
            if isinstance(name, bytes):
                name = name.decode()
            check_scope_name(name, self._name_stack)
        before = self._name_stack
        if not name:
            scope = ""
        elif name[-1] == "/":
            scope = name[:-1]
        else:
            scope = self.unique_name(name)
        self._name_stack = scope
        try:
            yield scope + "/" if name else ""
        finally:
            self._name_stack = before

    def get_name_scope(self):
        """Returns the current name scope without its last "/"."""
        return self._name_stack

    @contextlib.contextmanager
    def device(self, device_name_or_function):
        """A context manager that sets the device of new operations.

        The device is a string, a function of an operation that returns one, or None to ignore the surrounding contexts.
        """
        spec = device_name_or_function
        if spec is not None and not callable(spec):
            spec = device_lib.canonical_name(spec)
        before = self._device_stack
        inside = self._device_stack = (*before, spec)
        self._scopes_changed()
        try:
            yield
        finally:
            if self._device_stack is not inside:
                raise RuntimeError("Exiting device scope without proper scope nesting.")
            self._device_stack = before
            self._scopes_changed()

    @contextlib.contextmanager
    def _devices(self, stack):
        """A context manager that replaces the devices of this graph by those of another one."""
        before, self._device_stack = self._device_stack, stack
        self._scopes_changed()
        try:
            yield
        finally:
            self._device_stack = before
            self._scopes_changed()

    @contextlib.contextmanager
    def colocate_with(self, op, ignore_existing=False):
        """A context manager that places new operations on the device of `op`."""
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        if op is not None and not isinstance(op, Operation):
            op = _to_operation(op)
        devices, colocation = self._device_stack, self._colocation_stack
        self._device_stack = ()
        self._colocation_stack = (() if ignore_existing else colocation) + (() if op is None else (op,))
        self._scopes_changed()
        try:
            yield
        finally:
            self._device_stack, self._colocation_stack = devices, colocation
            self._scopes_changed()

    def _enter_references(self, ops):
        """For C: like colocate_with, for one node that takes references to `ops`."""
        before = self._device_stack, self._colocation_stack
        self._device_stack, self._colocation_stack = (), (*self._colocation_stack, *ops)
        self._scopes_changed()
        return before

    def _exit_references(self, before):
        self._device_stack, self._colocation_stack = before
        self._scopes_changed()

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs):
        """A context manager that makes new operations run after `control_inputs`; None ignores the surrounding contexts."""
        stack, context = self._control_stack, self._control_flow_context
        if control_inputs is None:
            self._control_stack = []
            self._set_control_flow_context(None)
        else:
            known = {op for group in stack for op in group[0]}
            ops = []
            for item in control_inputs:
                op = self._as_control_input(_to_operation(item), item)
                if op is not None and op not in known and (context is None or context.keeps_control_input(op)):
                    known.add(op)
                    ops.append(op)
            self._control_stack = stack + [(tuple(ops), set())]
        try:
            yield
        finally:
            self._control_stack = stack
            if control_inputs is None:
                self._set_control_flow_context(context)

    def _as_control_input(self, op, item):
        """Returns the operation to wait for instead of `op`, that of `item`; or None. Raises ValueError if it is of another graph."""
        if op.graph is not self:
            self.as_graph_element(item if isinstance(item, Tensor) else op)
        return op

    def _current_control_dependencies(self):
        return [op for group in self._control_stack for op in group[0]]

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map):
        """A context manager that gives operations of a type another gradient, by its registered name."""
        before = self._op_type_attributes
        after = {key: dict(value) for key, value in before.items()}
        for op_type, gradient in op_type_map.items():
            after.setdefault(op_type, {})["_gradient_op_type"] = attr_values.to_bytes("string", gradient)
        self._op_type_attributes = after
        try:
            yield
        finally:
            self._op_type_attributes = before

    @contextlib.contextmanager
    def _attr_scope(self, attrs):
        before = self._attributes
        after = dict(before)
        for key, value in attrs.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value.SerializeToString()
        self._attributes = after
        try:
            yield
        finally:
            self._attributes = before

    @contextlib.contextmanager
    def container(self, container_name):
        """A context manager that puts the state of new operations into a resource container."""
        before = self._container
        self._container = container_name
        self._scopes_changed()
        try:
            yield container_name
        finally:
            self._container = before
            self._scopes_changed()

    # Effects of the scopes on the next operation

    def _get_control_flow_context(self):
        return self._control_flow_context

    def _set_control_flow_context(self, context):
        self._control_flow_context = context
        self._scopes_changed()

    def _observe(self, observer):
        """Calls `observer` for every new operation from now on."""
        self._observers.append(observer)
        self._scopes_changed()

    def _observe_no_more(self, observer):
        self._observers.remove(observer)
        self._scopes_changed()

    def _scopes_changed(self):
        """Tells C what new operations get, and whether Python must see them (`_after_op`)."""
        stack = self._device_stack
        simple = not any(callable(spec) for spec in stack)
        device = ""
        if simple:
            for spec in stack:
                device = "" if spec is None else device_lib.merge(device, spec) if device else spec
        groups = set()
        for op in self._colocation_stack:
            groups.update(op.colocation_groups())
            if op.device and not device:
                device = op.device
        self._device_string = device or None
        self._colocation = tuple(sorted(groups))
        self._device_hook = None if simple else self._apply_device_functions
        is_seen = self._control_flow_context is not None or self._observers or self._container
        self._hook = self._after_op if is_seen else None

    def _after_op(self, op):
        if self._container:
            self._apply_container(op)
        context = self._control_flow_context
        if context is not None:
            op._control_flow_context = context
            context.AddOp(op)
        for observer in self._observers:
            observer(op)

    def _apply_container(self, op):
        """Puts a stateful operation without a container into the current one."""
        definition = op.op_def
        has_container = definition.is_stateful and any(attr.name == "container" for attr in definition.attr)
        if has_container and not op.get_attr("container"):
            from runnel.core.protobuf import message_class
            op._set_attr("container", message_class("AttrValue")(s=self._container.encode()))

    def _apply_device_functions(self, op):
        for spec in reversed(self._device_stack):
            if spec is None:
                break
            if callable(spec):
                op._set_device(spec(op))
            else:
                op._set_device(device_lib.merge(spec, op.device))


def _to_operation(value):
    if isinstance(value, Operation):
        return value
    if isinstance(value, Tensor):
        return value.op
    change = getattr(value, "_parent_op", None)  # of a variable after an update: the operation that updates it
    if isinstance(change, Operation):
        return change
    element = getattr(value, "_as_graph_element", None)
    if element is not None:
        return _to_operation(element())
    op = getattr(value, "op", None)  # IndexedSlices, SparseTensor, Variable
    if isinstance(op, Operation):
        return op
    raise TypeError("Control input must be Operation or Tensor, not %r" % (value,))
