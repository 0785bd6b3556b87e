"""tf.contrib.framework: argument scopes, model variables, nests, checkpoints."""

from runnel import nest
from runnel._namespace import namespace
from runnel.contrib.arg_scope import (
    add_arg_scope, arg_scope, arg_scope_func_key, arg_scoped_arguments, current_arg_scope, has_arg_scope)
from runnel.contrib.model_variables import *

__getattr__, __dir__, __all__ = namespace(
    __name__, "argsort sort py_func TensorSpec is_tensor is_strictly_increasing is_non_decreasing",
    "is_numeric_tensor convert_to_tensor_or_sparse_tensor assert_scalar",
    "load_checkpoint=train.load_checkpoint load_variable=train.load_variable",
    "list_variables=train.list_variables init_from_checkpoint=train.init_from_checkpoint",
    "estimator.estimator_names: get_name_scope",
    "alias.util.deprecation_names: deprecated deprecated_args deprecated_arg_values deprecated_arg_value=deprecated_arg_values",
    "ops.control_flow: smart_cond")
