"""tensorflow.python.training.experimental.mixed_precision_global_state: whether graphs are rewritten to compute in float16."""

from runnel.core.session import mixed_precision


def is_mixed_precision_graph_rewrite_enabled():
    """Tells whether sessions rewrite graphs."""
    return mixed_precision.is_enabled


def set_mixed_precision_graph_rewrite_enabled(enabled):
    """Makes sessions rewrite graphs, or not."""
    mixed_precision.is_enabled = enabled


def non_mixed_precision_session_created():
    """Tells whether there has been a session that does not rewrite graphs."""
    return mixed_precision.has_other_sessions


def set_non_mixed_precision_session_created(created):
    """Sets what non_mixed_precision_session_created returns."""
    mixed_precision.has_other_sessions = created


def is_using_mixed_precision_policy():
    """Tells whether Keras computes in several types."""
    return mixed_precision.has_policy


def set_using_mixed_precision_policy(is_using):
    """Sets what is_using_mixed_precision_policy returns."""
    mixed_precision.has_policy = is_using
