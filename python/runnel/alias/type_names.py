"""tensorflow.python.framework.type_utils: full types of what stands for values in datasets."""

from runnel import nest
from runnel.core import protobuf
from runnel.core.composite_specs import RaggedTensorSpec

# Types whose full type has another name, or none.
_NAMES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "variant": None, "resource": None}


def _full_type(spec):
    ids = protobuf._enum_values("FullTypeId")
    name = _NAMES.get(spec.dtype.name, spec.dtype.name.upper()) if isinstance(spec, RaggedTensorSpec) else None
    element = ids.get("TFT_" + name) if name else None
    if element is None:
        return protobuf.FullTypeDef(type_id=ids["TFT_UNSET"])
    return protobuf.FullTypeDef(type_id=ids["TFT_RAGGED"], args=[protobuf.FullTypeDef(type_id=element)])


def fulltypes_for_flat_tensors(element_spec):
    """Returns the full type of each tensor that stands for a value in a dataset: that of ragged ones, others are not set."""
    found = []
    for spec in nest.flatten(element_spec):
        if isinstance(spec, RaggedTensorSpec):
            found.append(_full_type(spec))
        else:
            found.extend(_full_type(flat) for flat in spec._flat_tensor_specs)
    return found
