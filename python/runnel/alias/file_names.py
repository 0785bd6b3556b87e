"""tensorflow.python.lib.io.file_io: names that differ from the public ones."""

from runnel.io.file_io import walk as walk_v2  # noqa: F401
from runnel.io.file_io import walk_in_order as walk  # noqa: F401
from runnel.gfile import ListDirectory as list_directory_v2  # noqa: F401
