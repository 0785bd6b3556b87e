"""tensorflow.python.util.variable_utils: nested structures with other values in place of variables."""

from runnel import nest
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import CompositeTensor, convert_variables_to_tensors as _of_composite
from runnel.ops.resource_variable import ResourceVariable


def convert_variables_to_tensors(values):
    """Returns the structure with the present values of its variables, also of those in composite values."""
    def converted(value):
        if isinstance(value, ResourceVariable):
            return convert_to_tensor(value)
        return _of_composite(value) if isinstance(value, CompositeTensor) else value
    return nest.map_structure(converted, values)


def replace_variables_with_atoms(values):
    """Returns the structure with 0 in place of its variables."""
    return nest.map_structure(lambda value: 0 if isinstance(value, ResourceVariable) else value, values)
