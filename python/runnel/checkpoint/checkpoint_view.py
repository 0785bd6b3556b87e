"""tf.train.CheckpointView: the objects of a checkpoint, without the program that made it; and restoring by their numbers."""

from runnel.checkpoint import keys, saveables
from runnel.checkpoint.multi_device_saver import MultiDeviceSaver
from runnel.checkpoint.object_graph import TrackableView, generate_saveable_objects, get_checkpoint_factories_and_keys
from runnel.checkpoint.trackable_saver import object_metadata
from runnel.core.identity import ObjectIdentityDictionary, ObjectIdentitySet
from runnel.core.trackable import Trackable


class CheckpointView:
    """The objects of a checkpoint by number; 0 is the root."""

    def __init__(self, save_path):
        self._object_graph_proto = object_metadata(save_path)

    def children(self, node_id):
        """Returns {name: number} of what an object holds."""
        return {child.local_name: child.node_id for child in self._object_graph_proto.nodes[node_id].children}

    def descendants(self):
        """Returns the numbers of all objects."""
        return list(self._descendants_with_paths())

    def _descendants_with_paths(self):
        paths, order = {0: "root"}, [0]
        for number in order:
            for name, child in self.children(number).items():
                if child not in paths:
                    paths[child] = paths[number] + "." + name
                    order.append(child)
        return paths

    def match(self, obj):
        """Returns {number: object} of the objects below `obj` that the checkpoint has, too."""
        if not isinstance(obj, Trackable):
            raise ValueError("Expected a Trackable, got %s of type %s." % (obj, type(obj)))
        found, order = {0: obj}, [0]
        for number in order:
            held = TrackableView.children(found[number])
            for name, child in self.children(number).items():
                if name not in held:
                    continue
                if child not in found:
                    found[child] = held[name]
                    order.append(child)
                elif found[child] is not held[name]:
                    from runnel import logging
                    logging.warning("Inconsistent references when matching the checkpoint into this object graph. The referenced objects are: "
                                    "(%s and %s)." % (found[child], held[name]))
        return found

    def diff(self, obj):
        """Returns (what both have, as `match` does; numbers of the other objects of the checkpoint; the other objects below `obj`)."""
        both = self.match(obj)
        matched = ObjectIdentitySet(both.values())
        return (both, [number for number in self.descendants() if number not in both],
                [x for x in TrackableView(obj).descendants() if x not in matched])


def restore_nodes(save_path, nodes_to_restore):
    """Restores {number of an object in the checkpoint: object}, each by itself."""
    if save_path is None:
        raise ValueError("save_path cannot be empty.")
    if not isinstance(nodes_to_restore, dict):
        raise ValueError("Expecting a dictionary of node_id to Trackable for nodes_to_restore.")
    view = CheckpointView(save_path)
    known = set(view.descendants())
    for number, obj in nodes_to_restore.items():
        if number not in known:
            raise ValueError("The expected node_id: %s to Trackable %s to restore does not exist in the checkpoint." % (number, obj))
        if not isinstance(obj, Trackable):
            raise ValueError("Expecting a valid Trackable to node_id: %s but got trackable: %s." % (number, obj))
    for number, obj in nodes_to_restore.items():
        _restore_node(save_path, view._object_graph_proto.nodes[number], number, obj)


def _restore_node(save_path, node, number, obj):
    has_tensors = saveables.trackable_has_serialize_to_tensor(obj)
    without = "Trackable %s expects checkpointed values but checkpoint does not contain serialized tensors for node_id: %s." % (obj, number)
    if not has_tensors:
        if not node.attributes:
            if saveables.saveable_objects_from_trackable(obj):
                raise ValueError(without)
            return
        names = ObjectIdentityDictionary()
        names[obj] = keys.extract_object_name(node.attributes[0].checkpoint_key)
        found = generate_saveable_objects(get_checkpoint_factories_and_keys(names)[0])[0]
        if len(node.attributes) != len(found):
            raise ValueError("Size for saveable_objects for Trackable: %d did not match the size for serialized_tensors for checkpoint: %d." % (
                len(found), len(node.attributes)))
        obj = saveables.SaveableCompatibilityConverter(obj, found)
    tensors = obj._serialize_to_tensors()
    if tensors and not node.attributes:
        raise ValueError(without)
    if node.attributes and not tensors:
        raise ValueError("Trackable %s does not expect checkpointed values but checkpoint contains serialized tensors: %s for node_id: %s." % (
            obj, node.attributes, number))
    if len(node.attributes) != len(tensors):
        raise ValueError("Size for serialized_tensors for Trackable: %d did not match size for serialized_tensors for checkpoint: %d." % (
            len(tensors), len(node.attributes)))
    if has_tensors:
        tensors = {row.checkpoint_key: tensors[row.name] for row in node.attributes}
    rows = ObjectIdentityDictionary()
    rows[obj] = tensors
    MultiDeviceSaver(rows).restore(save_path)
