"""SaveSpecs and SaveableObjects: tensors that are saved, and how objects are restored from them."""

from runnel import raw_ops
from runnel.core import framework


class SaveSpec:
    """One tensor of a checkpoint: what is written, its name, and which part of the whole it is."""

    def __init__(self, tensor, slice_spec, name, dtype=None, device=None):
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        if callable(tensor):
            if dtype is None or device is None:
                raise AssertionError("When passing a callable `tensor` to a SaveSpec, an explicit dtype and device must be provided.")
            self.dtype, self.device = dtype, device
        else:
            self.dtype = tensor.dtype if dtype is None else dtype
            self.device = tensor.device if device is None else device

    @property
    def tensor(self):
        """The tensor; a function is called for it."""
        return self._tensor() if callable(self._tensor) else self._tensor


class Callable(SaveSpec):
    """A tensor that a function returns when the checkpoint is written: for _serialize_to_tensors."""

    def __init__(self, tensor_callable, dtype, device):
        super().__init__(tensor_callable, None, None, dtype, device)


class SaveableObject:
    """An object that a saver stores: the specs of its tensors, and `restore(tensors, shapes)`, which returns an operation."""

    def __init__(self, op, specs, name):
        self.op = op
        self.specs = specs
        self.name = name

    @property
    def device(self):
        return self.specs[0].device

    @property
    def optional_restore(self):
        return False

    def restore(self, restored_tensors, restored_shapes):
        raise ValueError("Calling an abstract method.")


class NoRestoreSaveable(SaveableObject):
    """A tensor that is saved and never restored."""

    def __init__(self, tensor, name, dtype=None, device=None):
        super().__init__(tensor, [SaveSpec(tensor, "", name, dtype=dtype, device=device)], name)

    def restore(self, restored_tensors, restored_shapes):
        return raw_ops.NoOp()


class ReferenceVariableSaveable(SaveableObject):
    """A reference variable, or a part of one."""

    def __init__(self, tensor, slice_spec, name, read=None):
        spec = SaveSpec(tensor if read is None else read, slice_spec, name, dtype=tensor.dtype.base_dtype, device=tensor.device)
        super().__init__(tensor, [spec], name)

    def restore(self, restored_tensors, restored_shapes):
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = raw_ops.Reshape(tensor=value, shape=restored_shapes[0])
        validate = restored_shapes is None and self.op.get_shape().is_fully_defined()
        return raw_ops.Assign(ref=self.op, value=value, validate_shape=validate)


class ResourceVariableSaveable(SaveableObject):
    """A resource variable, or a tensor that was read from one."""

    def __init__(self, var, slice_spec, name):
        self._var_shape = var.shape
        if isinstance(var, framework.Tensor):
            self.handle_op, tensor = var.op.inputs[0], var
            self._var_device = self.handle_op.device
        elif hasattr(var, "handle"):
            self.handle_op, self._var_device = var.handle, var.device

            def tensor():
                if framework.executing_eagerly() and not var.is_initialized():
                    return None
                return var.read_value_no_copy()
            if not framework.executing_eagerly() and getattr(var, "_in_graph_mode", False):
                tensor = var._graph_element
        else:
            raise ValueError("Saveable is neither a resource variable nor a read operation. Got: %r" % (var,))
        super().__init__(self.handle_op, [SaveSpec(tensor, slice_spec, name, dtype=var.dtype, device=self._var_device)], name)

    def restore(self, restored_tensors, restored_shapes):
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = raw_ops.Reshape(tensor=value, shape=restored_shapes[0])
        with framework.device(self._var_device if self.handle_op.op is not None else None):
            value = raw_ops.Identity(input=value)
            if not self._var_shape.is_compatible_with(value.shape):
                raise ValueError("Received incompatible tensor with shape %s when attempting to restore variable with shape %s and name %s." % (
                    value.shape, self._var_shape, self.name))
            return raw_ops.AssignVariableOp(resource=self.handle_op, value=value)
