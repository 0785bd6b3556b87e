"""tensorflow.python.framework.error_interpolation: texts that say where a program made the nodes that an error names."""

import os
import re

from runnel import errors

_FRAMEWORK_PATH_PREFIXES = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep]
_TAG = re.compile(r"\{\{(node|function_node) ([^}]*)\}\}")


def _is_framework_filename(filename):
    """Tells whether a file is the library's own, and no test of it."""
    return not filename.endswith("_test.py") and (filename.startswith("<embedded") or filename.startswith(_FRAMEWORK_PATH_PREFIXES[0]))


def _find_index_of_defining_frame(trace):
    """Returns the index of the innermost frame outside the library, or 0 if every frame is inside it."""
    own = [place for place, frame in enumerate(trace) if not _is_framework_filename(frame.filename)]
    return own[-1] if own else 0


def _summary(title, none, rows):
    return "\n".join([title, *rows]) if rows else none


def _compute_device_summary_from_list(name, device_assignment_list, prefix=""):
    """Lists the tf.device scopes in which a node was made, with their lines."""
    rows = ["%s  with tf.device(%s): <%s:%s>" % (prefix, one.obj, one.filename, one.lineno) for one in device_assignment_list]
    return _summary("%sDevice assignments active during op '%s' creation:" % (prefix, name),
                    "%sNo device assignments were active during op '%s' creation." % (prefix, name), rows)


def _compute_colocation_summary_from_dict(name, colocation_dict, prefix=""):
    """Lists the nodes beside which a node was put, with the lines that did."""
    rows = ["%s  with tf.colocate_with(%s): <%s:%s>" % (prefix, other, one.filename, one.lineno) for other, one in colocation_dict.items()]
    return _summary("%sNode-device colocations active during op '%s' creation:" % (prefix, name),
                    "%sNo node-device colocations were active during op '%s' creation." % (prefix, name), rows)


def interpolate_graph(message, graph):
    """Returns a message with the places where the nodes that it names as {{node NAME}} were made."""
    ops = [graph._find(name.strip()) for kind, name in _TAG.findall(message) if kind == "node"]
    places = [errors.describe(op) for op in ops if op is not None]
    text = _TAG.sub(lambda tag: tag.group() if tag.group(1) == "node" else "", message)
    return "\n\n".join([text, *places])
