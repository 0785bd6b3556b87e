"""Options of tf.saved_model.save and load."""

import enum


class VariablePolicy(enum.Enum):
    """What a model says of its variables: nothing more (NONE), their devices too, or the copies of distributed variables."""

    NONE = None
    SAVE_VARIABLE_DEVICES = "save_variable_devices"
    EXPAND_DISTRIBUTED_VARIABLES = "expand_distributed_variables"

    def _save_variable_devices(self):
        return self != VariablePolicy.NONE

    def _expand_distributed_variables(self):
        return self == VariablePolicy.EXPAND_DISTRIBUTED_VARIABLES

    @staticmethod
    def from_obj(obj):
        """Returns the policy of a name; None is NONE."""
        if obj is None or isinstance(obj, VariablePolicy):
            return obj or VariablePolicy.NONE
        key = str(obj).lower()
        for policy in VariablePolicy:
            if key in (policy.value, str(policy.name).lower()):
                return policy
        raise ValueError("Received invalid VariablePolicy value: %s." % (obj,))


class SaveOptions:
    """Options for saving.

    Args:
      namespace_whitelist: the namespaces of ops ("Namespace>Op") that a model may have; None for all.
      save_debug_info: whether the places where nodes were made are written.
      function_aliases: {name: function} of functions that loaders are to find by these names.
      experimental_io_device: the device that writes files.
      experimental_variable_policy: a VariablePolicy.
      experimental_custom_gradients: whether gradient functions are written. They are not: loaded functions have the gradients of their ops.
      experimental_image_format: whether large models are written in parts.
      experimental_skip_saver: whether the graph has no nodes that save and restore.
      experimental_sharding_callback: how the tensors are divided among files.
      extra_tags: tags beside "serve".
    """

    def __init__(self, namespace_whitelist=None, save_debug_info=False, function_aliases=None, experimental_debug_stripper=False,
                 experimental_io_device=None, experimental_variable_policy=None, experimental_custom_gradients=True,
                 experimental_image_format=False, experimental_skip_saver=False, experimental_sharding_callback=None, extra_tags=None):
        self.namespace_whitelist = _checked_namespaces(namespace_whitelist)
        self.save_debug_info = save_debug_info
        self.function_aliases = dict(function_aliases or {})
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = VariablePolicy.from_obj(experimental_variable_policy)
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = experimental_skip_saver
        self.experimental_sharding_callback = experimental_sharding_callback
        self.extra_tags = extra_tags


def _checked_namespaces(namespaces):
    if namespaces is None:
        return None
    out = []
    for namespace in namespaces:
        if not isinstance(namespace, str):
            raise ValueError("Whitelisted namespace must be a string. Got: %s of type %s." % (namespace, type(namespace)))
        out.append(namespace)
    return out


class LoadOptions:
    """Options for loading.

    Args:
      allow_partial_checkpoint: whether variables may have no value in the checkpoint.
      experimental_io_device: the device that reads files.
      experimental_skip_checkpoint: whether variables are left without values.
      experimental_variable_policy: a VariablePolicy.
      experimental_load_function_aliases: whether the root gets an attribute `function_aliases`.
    """

    def __init__(self, allow_partial_checkpoint=False, experimental_io_device=None, experimental_skip_checkpoint=False,
                 experimental_variable_policy=None, experimental_load_function_aliases=False):
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.experimental_variable_policy = VariablePolicy.from_obj(experimental_variable_policy)
        self.experimental_load_function_aliases = experimental_load_function_aliases
