"""TensorArray of 2.x in functions: a list of tensors as a value. An index may be written more than once."""

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops.tensor_array import TensorArray


def _dims(shape):
    """Returns the tensor of a static shape, with -1 for unknown sizes; -1 alone for an unknown rank."""
    if shape.rank is None:
        return convert_to_tensor(-1, dtypes.int32)
    return convert_to_tensor([-1 if d is None else d for d in shape.as_list()], dtypes.int32)


class TensorListArray(TensorArray):
    """A TensorArray whose flow is the list itself."""

    def _open(self, size, flow, name):
        self._handle = None
        self._flow = flow
        if flow is None:
            with name_scope(name, "TensorArrayV2", [size]) as scope:
                self._flow = raw_ops.TensorListReserve(element_shape=_dims(self.element_shape), element_dtype=self._dtype,
                                                       num_elements=convert_to_tensor(size, dtypes.int32, name="size"), name=scope)

    handle = property(lambda self: None)
    op = property(lambda self: self._flow.op)

    def _with_flow(self, flow):
        after = object.__new__(TensorListArray)
        after.__dict__.update(self.__dict__)
        after._flow = flow
        return after

    def read(self, index, name=None):
        with name_scope(name, "TensorArrayV2Read", [self._flow, index]):
            value = raw_ops.TensorListGetItem(input_handle=self._flow, index=index, element_shape=_dims(self.element_shape), element_dtype=self._dtype)
            return self._shaped(value, [])

    def _shaped(self, value, first):
        if self.element_shape.rank is not None:
            value.set_shape(first + self.element_shape.as_list())
        return value

    def write(self, index, value, name=None):
        with name_scope(name, "TensorArrayV2Write", [self._flow, index, value]):
            value = convert_to_tensor(value, self._dtype, name="value")
            self._merge_element_shape(value.shape)
            return self._with_flow(raw_ops.TensorListSetItem(input_handle=self._flow, index=index, item=value,
                                                             resize_if_index_out_of_bounds=self._dynamic_size))

    def stack(self, name=None):
        with name_scope(name, "TensorArrayV2Stack", [self._flow]):
            count = self._size if self._size is not None and not self._dynamic_size else None
            value = raw_ops.TensorListStack(input_handle=self._flow, element_shape=_dims(self.element_shape), element_dtype=self._dtype,
                                            num_elements=-1 if count is None else count)
            return self._shaped(value, [count])

    def gather(self, indices, name=None):
        with name_scope(name, "TensorArrayV2Gather", [self._flow, indices]):
            value = raw_ops.TensorListGather(input_handle=self._flow, indices=indices, element_shape=_dims(self.element_shape),
                                             element_dtype=self._dtype)
            return self._shaped(value, [None])

    def concat(self, name=None):
        shape = self.element_shape
        if shape.rank is not None:
            shape = tensor_shape.TensorShape([None] + shape.as_list()[1:])
        with name_scope(name, "TensorArrayV2Concat", [self._flow]):
            value, _ = raw_ops.TensorListConcatV2(input_handle=self._flow, element_shape=_dims(shape), element_dtype=self._dtype,
                                                  leading_dims=convert_to_tensor([], dtypes.int64))
            if shape.rank is not None:
                value.set_shape(shape)
            return value

    def unstack(self, value, name=None):
        with name_scope(name, "TensorArrayUnstack", [self._flow, value]):
            value = convert_to_tensor(value, self._dtype, name="value")
            self._merge_element_shape(value.shape[1:])
            return self._with_flow(raw_ops.TensorListFromTensor(tensor=value, element_shape=_dims(value.shape[1:])))

    def scatter(self, indices, value, name=None):
        with name_scope(name, "TensorArrayScatter", [self._flow, value, indices]):
            value = convert_to_tensor(value, self._dtype, name="value")
            self._merge_element_shape(value.shape[1:])
            return self._with_flow(raw_ops.TensorListScatterIntoExistingList(input_handle=self._flow, tensor=value, indices=indices))

    def split(self, value, lengths, name=None):
        with name_scope(name, "TensorArraySplit", [self._flow, value, lengths]):
            value = convert_to_tensor(value, self._dtype, name="value")
            shape = value.shape
            if shape.rank is not None:
                shape = tensor_shape.TensorShape([None] + shape.as_list()[1:])
            return self._with_flow(raw_ops.TensorListSplit(tensor=value, lengths=convert_to_tensor(lengths, dtypes.int64), element_shape=_dims(shape)))

    def size(self, name=None):
        if not self._dynamic_size and self._size is not None:
            return convert_to_tensor(self._size, dtypes.int32)
        return raw_ops.TensorListLength(input_handle=self._flow, name=name)

    def close(self, name=None):
        return raw_ops.NoOp(name=name)
