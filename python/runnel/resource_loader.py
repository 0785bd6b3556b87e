"""tf.resource_loader: files beside the program."""

import os
import sys


def get_data_files_path():
    """Returns the folder of the caller's file."""
    return os.path.dirname(sys._getframe(1).f_code.co_filename)


def get_path_to_datafile(path):
    """Returns a path relative to the folder of the caller's file."""
    return os.path.join(os.path.dirname(sys._getframe(1).f_code.co_filename), path)


def get_root_dir_with_all_resources():
    """Returns the folder of the program."""
    return os.path.dirname(os.path.abspath(sys.argv[0] or "."))


def load_resource(path):
    """Returns the contents of a file."""
    with open(path, "rb") as stream:
        return stream.read()


def readahead_file_path(path, readahead="128M"):
    """Returns the path unchanged."""
    return path
