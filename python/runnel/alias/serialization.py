"""tensorflow.python.util.serialization: what JSON has for objects of TensorFlow."""

import collections.abc

from runnel import dtypes
from runnel.core import tensor_shape


def get_json_type(obj):
    """Returns what stands for an object in JSON: for the `default` of json.dumps."""
    import numpy as np
    if hasattr(obj, "get_config"):
        return {"class_name": type(obj).__name__, "config": obj.get_config()}
    if type(obj).__module__ == np.__name__:
        return obj.tolist() if isinstance(obj, np.ndarray) else obj.item()
    if callable(obj):
        return obj.__name__
    if isinstance(obj, tensor_shape.Dimension):
        return obj.value
    if isinstance(obj, tensor_shape.TensorShape):
        return obj.as_list()
    if isinstance(obj, dtypes.DType):
        return obj.name
    if isinstance(obj, collections.abc.Mapping):
        return dict(obj)
    if isinstance(obj, collections.abc.Sequence):
        return list(obj)
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__"}
    raise TypeError("Object %s is not JSON-serializable. You may implement a `get_config()` method on the class (returning a JSON-serializable "
                    "dictionary) to make it serializable." % (obj,))
