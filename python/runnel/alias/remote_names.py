"""tensorflow.python.eager.remote: connections to other tasks, under their inner names."""

from runnel.config import experimental_connect_to_cluster as connect_to_cluster  # noqa: F401
from runnel.config import experimental_connect_to_host as connect_to_remote_host  # noqa: F401
