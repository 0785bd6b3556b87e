"""tf.contrib.slim: layers, argument scopes, losses, metrics, and a training loop."""

from runnel.contrib import losses, metrics
from runnel.contrib.arg_scope import *
from runnel.contrib.arg_scope import (
    add_arg_scope, arg_scope, arg_scope_func_key, arg_scoped_arguments, current_arg_scope, has_arg_scope)
from runnel.contrib.layers import *
from runnel.contrib import layer_util as utils, learning, model_analyzer
from runnel.contrib.model_variables import *
