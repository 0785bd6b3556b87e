"""Plug-ins: shared libraries that add ops, kernels, devices and file systems."""

from runnel import _core


def load_op_library(library_filename):
    """Loads a plug-in. Returns a module with the functions of the ops it adds."""
    import types
    from runnel import raw_ops
    from runnel.core.protobuf import message_class
    module = types.ModuleType("runnel_plugin")
    data = _core.load_library(library_filename)
    raw_ops.forget_names()
    names = [op.name for op in message_class("OpList").FromString(data).op]
    for name in names:
        function = raw_ops.function(name)
        setattr(module, raw_ops.snake_case(name), function)
        setattr(module, name, function)
    module.OP_LIST = message_class("OpList").FromString(data)
    return module


def _each(location, load, what):
    """Calls load for a file, or for the shared libraries of a folder."""
    import os
    if os.path.isdir(location):
        for name in sorted(os.listdir(location)):
            if name.endswith(".so"):
                load(os.path.join(location, name))
    elif os.path.exists(location):
        load(location)
    else:
        raise OSError(2, "The file or folder to load %s from does not exist." % what, location)


def load_library(library_location):
    """Loads a plug-in, or all plug-ins of a folder."""
    from runnel import raw_ops
    _each(library_location, _core.load_library, "kernel libraries")
    raw_ops.forget_names()


load_file_system_library = load_library


def load_pluggable_device_library(library_location):
    """Loads a plug-in with devices, or all plug-ins of a folder. Sessions made from now on have the devices."""
    _each(library_location, _core.load_device_library, "pluggable device libraries")
    from runnel import config
    config.forget_physical_devices()


def register_filesystem_plugin(plugin_location):
    """Loads a plug-in with file systems."""
    import os
    if not os.path.exists(plugin_location):
        raise OSError(2, "The file to load file system plugin from does not exist.", plugin_location)
    _core.load_file_system(plugin_location)


def load_installed():
    """Loads the plug-ins that were installed beside this package, and those that the environment names.

    As in TensorFlow: the folder tensorflow-plugins (or runnel-plugins) beside the package, and
    TF_PLUGGABLE_DEVICE_LIBRARY_PATH.
    """
    import os
    beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = [os.path.join(beside, name) for name in ("tensorflow-plugins", "runnel-plugins")]
    for folder in filter(os.path.isdir, folders):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".so"):
                _try(os.path.join(folder, name))
    named = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH")
    if named:
        load_pluggable_device_library(named)


def _try(path):
    """A plug-in that was installed for TensorFlow may need parts of it that are not here."""
    from runnel import errors
    try:
        load_pluggable_device_library(path)
    except errors.OpError as error:
        import logging
        logging.getLogger("tensorflow").warning("The plug-in %s is not used: %s", path, error)
