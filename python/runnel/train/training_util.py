"""The global step, which counts updates; writing graphs and reading event files."""

from runnel import _core, dtypes
from runnel.core import framework
from runnel.core.framework import GraphKeys


def global_step(sess, global_step_tensor):
    """Returns the value of a global step in a session, a number."""
    if _core.current() is None:
        return int(global_step_tensor.numpy())
    return int(sess.run(global_step_tensor))


def _integer(value):
    return value.dtype.base_dtype.is_integer


def assert_global_step(global_step_tensor):
    """Raises TypeError unless the global step is an integer scalar."""
    if not isinstance(global_step_tensor, framework.Tensor) and not hasattr(
            global_step_tensor, "_as_graph_element"):
        raise TypeError("Existing \"global_step\" must be a Variable or Tensor: %s." % (
            global_step_tensor,))
    if not _integer(global_step_tensor):
        raise TypeError("Existing \"global_step\" does not have integer type: %s" % (
            global_step_tensor.dtype,))
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and shape.ndims is not None and shape.is_fully_defined():
        raise TypeError("Existing \"global_step\" is not scalar: %s" % shape)


def get_global_step(graph=None):
    """Returns the global step of a graph, or None."""
    graph = graph or framework.get_default_graph()
    steps = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(steps) == 1:
        found = steps[0]
    elif not steps:
        try:
            found = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    else:
        import logging
        logging.getLogger("tensorflow").error("Multiple tensors in global_step collection.")
        return None
    assert_global_step(found)
    return found


def create_global_step(graph=None):
    """Creates the global step. Raises ValueError if there is one."""
    from runnel.ops import init_ops, variable_scopes
    graph = graph or framework.get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError("\"global_step\" already exists.")
    with graph.as_default() if _core.current() is not None else framework.name_scope(None):
        with graph.name_scope(None):
            return variable_scopes.get_variable(
                GraphKeys.GLOBAL_STEP, shape=[], dtype=dtypes.int64,
                initializer=init_ops.zeros_initializer(), trainable=False,
                collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP])


def get_or_create_global_step(graph=None):
    """Returns the global step, creating it if needed."""
    graph = graph or framework.get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


_READ_KEY = "global_step_read_op_cache"


def _get_or_create_global_step_read(graph=None):
    """Returns a read of the global step, created once; None if there is no global step."""
    graph = graph or framework.get_default_graph()
    reads = graph.get_collection(_READ_KEY)
    if reads:
        return reads[0]
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default(), graph.name_scope(None):
        with graph.name_scope(step.op.name + "/"):
            if hasattr(step, "initialized_value"):
                value = step.initialized_value()
            else:
                value = step
            read = value + 0
    graph.add_to_collection(_READ_KEY, read)
    return read


def _increment_global_step(increment, graph=None):
    graph = graph or framework.get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError("Global step tensor should be created by tf.train.get_or_create_global_step "
                         "before calling increment.")
    with graph.as_default(), graph.name_scope(None):
        with graph.name_scope(step.op.name + "/"), graph.control_dependencies(
                [_get_or_create_global_step_read(graph)]):
            return step.assign_add(increment)


def write_graph(graph_or_graph_def, logdir, name, as_text=True):
    """Writes a graph to a file, as text or bytes. Returns its path."""
    import os
    graph_def = graph_or_graph_def
    if isinstance(graph_def, framework.Graph):
        graph_def = graph_def.as_graph_def()
    os.makedirs(logdir, exist_ok=True)
    path = os.path.join(logdir, name)
    temporary = "%s.%d.tmp" % (path, os.getpid())
    with open(temporary, "wb") as stream:
        stream.write(str(graph_def).encode() if as_text else graph_def.SerializeToString())
    os.replace(temporary, path)
    return path


def summary_iterator(path):
    """Returns an iterator of the Events of a file, which finds what is appended later."""
    from runnel.core.protobuf import message_class
    from runnel.python_io import tf_record_iterator
    return map(message_class("Event").FromString, tf_record_iterator(path))
