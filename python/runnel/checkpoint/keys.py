"""The names of values in checkpoints of objects.

    <path of the object>/.ATTRIBUTES/<name of the value>
    <path of the variable>/.OPTIMIZER_SLOT/<path of the optimizer>/<slot>/.ATTRIBUTES/<name of the value>

A path has the names under which objects hold each other. "." in a name is "..", and "/" is ".S".
"""

import collections

OBJECT_ATTRIBUTES_NAME = ".ATTRIBUTES"
SERIALIZE_TO_TENSORS_NAME = ".TENSORS"
_OPTIMIZER_SLOTS_NAME = ".OPTIMIZER_SLOT"


def escape_local_name(name):
    """Returns a name as it stands in a path."""
    return name.replace(".", "..").replace("/", ".S")


def object_path_to_string(node_path_arr):
    """Returns the path of an object, given the TrackableReferences that lead to it."""
    return "/".join(escape_local_name(reference.name) for reference in node_path_arr)


def pretty_print_node_path(path):
    """Returns the path of an object for messages."""
    return "root." + ".".join(reference.name for reference in path) if path else "root object"


def checkpoint_key(object_path, local_name):
    """Returns the key of a value of an object."""
    name = "" if local_name == SERIALIZE_TO_TENSORS_NAME else escape_local_name(local_name)
    return "%s/%s/%s" % (object_path, OBJECT_ATTRIBUTES_NAME, name)


def slot_variable_key(variable_path, optimizer_path, slot_name):
    """Returns the path of a slot variable."""
    return "%s/%s/%s/%s" % (variable_path, _OPTIMIZER_SLOTS_NAME, optimizer_path, escape_local_name(slot_name))


def extract_object_name(key):
    """Returns the path of the object in a key."""
    return key[:key.index("/" + OBJECT_ATTRIBUTES_NAME)]


def extract_local_name(key, prefix=None):
    """Returns the name of the value in a key, without `prefix`; the key itself if it has no path."""
    mark = OBJECT_ATTRIBUTES_NAME + "/" + (prefix or "")
    at = key.find(mark)
    return key if at < 0 else key[at + len(mark):]


def attributes_prefix(key):
    """Returns a key up to the name of the value."""
    mark = OBJECT_ATTRIBUTES_NAME + "/"
    return key[:key.index(mark) + len(mark)]


class CyclicDependencyError(Exception):
    """Objects depend on each other; `leftover_dependency_map` has those."""

    def __init__(self, leftover_dependency_map):
        self.leftover_dependency_map = leftover_dependency_map
        super().__init__()


def order_by_dependency(dependency_map):
    """Returns the keys of {key: the keys it depends on} in an order in which each comes after those it depends on."""
    unknown = {x for needed in dependency_map.values() for x in needed} - set(dependency_map)
    if unknown:
        raise ValueError("Found values in the dependency map which are not keys: %s" % (unknown,))
    users = collections.defaultdict(set)
    for key, needed in dependency_map.items():
        for x in needed:
            users[x].add(key)
    ready = [key for key in dependency_map if key not in users]
    order = []
    while ready:
        key = ready.pop(0)
        order.append(key)
        for needed in set(dependency_map[key]):
            users[needed].discard(key)
            if not users[needed]:
                del users[needed]
                ready.append(needed)
    if users:
        left = collections.defaultdict(list)
        for needed, keys in users.items():
            for key in keys:
                left[key].append(needed)
        raise CyclicDependencyError(left)
    return reversed(order)
