"""TensorArray: tensors by index, each written once, for use in loops."""

import functools

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.framework import colocate_with, executing_eagerly, get_default_graph, name_scope
from runnel.core.v2_switches import v2_behavior_enabled
from runnel.ops.math_ops import range as number_range


def _of_own_kind(method):
    """Makes `TensorArray.stack(array)` call the method of the array's own class: programs know one class of arrays."""
    @functools.wraps(method)
    def run(self, *args, **kwargs):
        own = getattr(type(self), method.__name__)
        return (method if own is run else own)(self, *args, **kwargs)
    return run


class TensorArray:
    """A list of tensors of one type, each written once.

    `flow` orders reads after writes: methods that write return the array to use from then on.
    """

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None,
                 tensor_array_name=None, handle=None, flow=None, infer_shape=True,
                 element_shape=None, colocate_with_first_write_call=True, name=None):
        if handle is not None and tensor_array_name:
            raise ValueError("Cannot provide both a handle and tensor_array_name")
        if handle is None and size is None:
            raise ValueError("Size must be provided if handle is not provided")
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._size = size if isinstance(size, int) else None
        self._infer_shape = bool(infer_shape)
        self._element_shape = [tensor_shape.as_shape(element_shape)]  # a list, shared with the arrays that writes return
        self._colocates = colocate_with_first_write_call
        self._colocate_with = [] if colocate_with_first_write_call else None
        self._rows = None
        if executing_eagerly():
            self._open_eagerly(size, clear_after_read)
            return
        if handle is None and get_default_graph()._building_function and v2_behavior_enabled():
            from runnel.ops.tensor_list_array import TensorListArray
            self.__class__ = TensorListArray
            self._open(size, flow, name)
            return
        if handle is not None:
            self._handle, self._flow = handle, flow
            return
        with name_scope(name, "TensorArray", [handle, size, flow]) as scope:
            def make():
                return raw_ops.TensorArrayV3(
                    size=convert_to_tensor(size, dtypes.int32, name="size"), dtype=self._dtype,
                    element_shape=self._element_shape[0], dynamic_size=self._dynamic_size,
                    clear_after_read=clear_after_read is None or bool(clear_after_read),
                    identical_element_shapes=bool(infer_shape),
                    tensor_array_name=tensor_array_name or "", name=scope)
            is_in_loop = get_default_graph()._get_control_flow_context() is not None
            if colocate_with_first_write_call and not is_in_loop:
                with colocate_with(None, ignore_existing=True):
                    self._handle, self._flow = make()
            else:
                self._handle, self._flow = make()

    def _open_eagerly(self, size, clear_after_read):
        self._rows = [None] * int(size)
        self._clears = bool(clear_after_read)
        self._handle = None
        self._flow = self

    @property
    def dtype(self):
        """The type of the tensors."""
        return self._dtype

    @property
    def handle(self):
        """The handle of the array."""
        return self._handle

    @property
    def flow(self):
        """The scalar that orders operations on the array."""
        return self._flow

    @property
    def element_shape(self):
        """The static shape of the elements."""
        return self._element_shape[0]

    @property
    def dynamic_size(self):
        """Whether the array grows when written past its end."""
        return self._dynamic_size

    @property
    def op(self):
        """The operation that made the handle."""
        return self._handle.op

    def _with_flow(self, flow):
        """Returns the array as it is after `flow`."""
        if self._rows is not None:
            return self
        after = object.__new__(TensorArray)
        after.__dict__.update(self.__dict__)
        after._flow = flow
        return after

    def identity(self):
        """Returns the array, ordered after the current control dependencies."""
        if self._rows is not None:
            return self
        return self._with_flow(raw_ops.Identity(input=self._flow))

    def _merge_element_shape(self, shape):
        known = self._element_shape[0]
        if not known.is_compatible_with(shape):
            raise ValueError("Inconsistent shapes: saw %s but expected %s" % (shape, known))
        if self._infer_shape:
            self._element_shape[0] = known.merge_with(shape)

    def _placed(self, value):
        """A context manager that places operations on the device of the first value written."""
        if not self._colocates or self._rows is not None:
            return colocate_with(self._handle)
        if not self._colocate_with:
            self._colocate_with.append(value)
        return colocate_with(self._colocate_with[0], ignore_existing=True)

    @_of_own_kind
    def read(self, index, name=None):
        """Returns the tensor at `index`."""
        if self._rows is not None:
            return self._read_eagerly(int(index))
        value = raw_ops.TensorArrayReadV3(handle=self._handle, index=index, flow_in=self._flow,
                                          dtype=self._dtype, name=name or "TensorArrayReadV3")
        if self.element_shape.dims is not None:
            value.set_shape(self.element_shape)
        return value

    def _read_eagerly(self, index):
        from runnel import errors
        if not 0 <= index < len(self._rows):
            raise errors.OutOfRangeError(None, None, "Tried to read from index %d but array size is: "
                                         "%d" % (index, len(self._rows)))
        value = self._rows[index]
        if value is None:
            raise errors.InvalidArgumentError(None, None, "Could not read index %d twice or before it "
                                              "was written" % index)
        if self._clears:
            self._rows[index] = None
        return value

    @_of_own_kind
    def write(self, index, value, name=None):
        """Writes `value` at `index`. Returns the array after that."""
        if self._rows is not None:
            value = convert_to_tensor(value, self._dtype)
            self._merge_element_shape(value.shape)
            index = int(index)
            if self._dynamic_size:
                self._rows.extend([None] * (index + 1 - len(self._rows)))
            self._rows[index] = value
            return self
        with name_scope(name, "TensorArrayWrite", [self._handle, index, value]):
            value = convert_to_tensor(value, self._dtype, name="value")
            self._merge_element_shape(value.shape)
            with self._placed(value):
                flow = raw_ops.TensorArrayWriteV3(handle=self._handle, index=index, value=value,
                                                  flow_in=self._flow, name="TensorArrayWriteV3")
        return self._with_flow(flow)

    @_of_own_kind
    def stack(self, name=None):
        """Stacks all tensors along a new first dimension."""
        if self._rows is not None:
            if self.element_shape.is_fully_defined():  # elements that were never written are 0
                from runnel.ops.array_ops import zeros
                self._rows[:] = [zeros(self.element_shape, self._dtype) if row is None else row for row in self._rows]
                if not self._rows:
                    return zeros([0] + self.element_shape.as_list(), self._dtype)
            return raw_ops.Pack(values=[self._read_eagerly(i) for i in range(len(self._rows))])
        with colocate_with(self._handle):
            with name_scope(name, "TensorArrayStack", [self._handle]):
                value = self.gather(number_range(0, self.size()), name=name)
                if self.element_shape.dims is not None and not self._dynamic_size \
                        and self._size is not None:
                    value.set_shape([self._size] + self.element_shape.as_list())
                return value

    @_of_own_kind
    def gather(self, indices, name=None):
        """Stacks the tensors at `indices` along a new first dimension."""
        if self._rows is not None:
            import numpy
            return raw_ops.Pack(values=[self._read_eagerly(int(i)) for i in numpy.asarray(indices)])
        value = raw_ops.TensorArrayGatherV3(
            handle=self._handle, indices=indices, flow_in=self._flow, dtype=self._dtype,
            element_shape=self.element_shape, name=name or "TensorArrayGatherV3")
        if self.element_shape.dims is not None:
            value.set_shape([None] + self.element_shape.as_list())
        return value

    @_of_own_kind
    def concat(self, name=None):
        """Joins all tensors along their first dimension."""
        if self._rows is not None:
            return raw_ops.ConcatV2(values=self._rows, axis=0)
        rest = self.element_shape
        if rest.dims is not None:
            rest = tensor_shape.TensorShape(rest.dims[1:])
        value, _ = raw_ops.TensorArrayConcatV3(
            handle=self._handle, flow_in=self._flow, dtype=self._dtype,
            element_shape_except0=rest, name=name or "TensorArrayConcatV3")
        if rest.dims is not None:
            value.set_shape([None] + rest.as_list())
        return value

    @_of_own_kind
    def unstack(self, value, name=None):
        """Writes each row of `value` to its index. Returns the array after that."""
        if self._rows is not None:
            value = convert_to_tensor(value, self._dtype)
            self._rows = [value[i] for i in range(value.shape.as_list()[0])]
            return self
        with name_scope(name, "TensorArrayUnstack", [self._handle, value]):
            from runnel.ops.array_ops import shape
            return self.scatter(number_range(0, shape(value)[0]), value, name=name)

    @_of_own_kind
    def scatter(self, indices, value, name=None):
        """Writes the rows of `value` at `indices`. Returns the array after that."""
        if self._rows is not None:
            import numpy
            array = self
            for row, index in enumerate(numpy.asarray(indices)):
                array = array.write(int(index), convert_to_tensor(value)[row])
            return array
        with name_scope(name, "TensorArrayScatter", [self._handle, value, indices]):
            value = convert_to_tensor(value, self._dtype, name="value")
            if value.shape.dims is not None:
                self._merge_element_shape(tensor_shape.TensorShape(value.shape.dims[1:]))
            with self._placed(value):
                flow = raw_ops.TensorArrayScatterV3(handle=self._handle, indices=indices, value=value,
                                                    flow_in=self._flow, name="TensorArrayScatterV3")
        return self._with_flow(flow)

    @_of_own_kind
    def split(self, value, lengths, name=None):
        """Splits `value` along its first dimension into pieces of the given lengths and writes them. Returns the array after that."""
        if self._rows is not None:
            import numpy
            sizes = [int(n) for n in numpy.asarray(lengths)]
            self._rows = list(raw_ops.SplitV(value=value, size_splits=sizes, axis=0,
                                             num_split=len(sizes)))
            return self
        with name_scope(name, "TensorArraySplit", [self._handle, value, lengths]):
            value = convert_to_tensor(value, self._dtype, name="value")
            lengths = convert_to_tensor(lengths, dtypes.int64)
            known = constant_value(lengths)
            if self._infer_shape and value.shape.dims is not None and known is not None \
                    and len(known) and (known == known[0]).all():
                self._merge_element_shape(tensor_shape.TensorShape(
                    [int(known[0])] + value.shape.as_list()[1:]))
            with self._placed(value):
                flow = raw_ops.TensorArraySplitV3(handle=self._handle, value=value, lengths=lengths,
                                                  flow_in=self._flow, name="TensorArraySplitV3")
        return self._with_flow(flow)

    @_of_own_kind
    def size(self, name=None):
        """Returns the number of elements as a scalar."""
        if self._rows is not None:
            return convert_to_tensor(len(self._rows), dtypes.int32)
        if not self._dynamic_size and self._size is not None:
            return convert_to_tensor(self._size, dtypes.int32)
        return raw_ops.TensorArraySizeV3(handle=self._handle, flow_in=self._flow,
                                         name=name or "TensorArraySizeV3")

    def grad(self, source, flow=None, name=None):
        """Returns the array of gradients of this one."""
        flow = self._flow if flow is None else flow
        with name_scope(name, "TensorArrayGrad", [self._handle]):
            with colocate_with(self._handle):
                handle, flow = raw_ops.TensorArrayGradV3(handle=self._handle, flow_in=flow,
                                                         source=source, name="TensorArrayGradV3")
                return TensorArray(self._dtype, handle=handle, flow=flow, infer_shape=self._infer_shape,
                                   element_shape=self.element_shape,
                                   colocate_with_first_write_call=False)

    @_of_own_kind
    def close(self, name=None):
        """Returns an operation that frees the array."""
        if self._rows is not None:
            self._rows = []
            return None
        with colocate_with(self._handle):
            return raw_ops.TensorArrayCloseV3(handle=self._handle, name=name)
