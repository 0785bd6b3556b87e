"""Plug-ins: shared libraries that add ops and kernels."""

from runnel import _core


def load_op_library(library_filename):
    """Loads a plug-in. Returns a module with the functions of the ops it adds."""
    import types
    from runnel import raw_ops
    from runnel.core.protobuf import message_class
    module = types.ModuleType("runnel_plugin")
    data = _core.load_library(library_filename)
    names = [op.name for op in message_class("OpList").FromString(data).op]
    for name in names:
        function = raw_ops.function(name)
        setattr(module, raw_ops.snake_case(name), function)
        setattr(module, name, function)
    module.OP_LIST = message_class("OpList").FromString(data)
    return module


def load_library(library_location):
    """Loads a plug-in, or all plug-ins of a folder."""
    import os
    if os.path.isdir(library_location):
        for name in sorted(os.listdir(library_location)):
            if name.endswith(".so"):
                _core.load_library(os.path.join(library_location, name))
    elif os.path.exists(library_location):
        _core.load_library(library_location)
    else:
        raise OSError(2, "The file or folder to load kernel libraries from does not exist.", library_location)


load_file_system_library = load_library
