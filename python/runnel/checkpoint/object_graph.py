"""Which objects hold which: views of objects, and the TrackableObjectGraph of a checkpoint with what is saved of each object."""

import collections
import copy
import weakref

from runnel import dtypes
from runnel.checkpoint import keys, saveable_compat, saveables
from runnel.checkpoint.saveable import NoRestoreSaveable, SaveableObject, SaveSpec
from runnel.core import convert, framework
from runnel.core.data_structures import wrap_or_unwrap
from runnel.core.identity import ObjectIdentityDictionary
from runnel.core.protobuf import message_class
from runnel.core.python_state import PYTHON_STATE, PythonState
from runnel.core.trackable import OBJECT_GRAPH_PROTO_KEY, SaveType, Trackable, TrackableReference
from runnel.saved_model import registration


def convert_to_trackable(obj, parent=None):
    """Returns an object that is trackable: a list, dict or tuple is wrapped, and a tensor becomes a constant of a model."""
    obj = wrap_or_unwrap(obj)
    if isinstance(obj, framework.Tensor) and obj.dtype not in (dtypes.variant, dtypes.resource):
        from runnel.saved_model.constants_held import TrackableConstant
        return TrackableConstant(obj, parent)
    if isinstance(obj, Trackable):
        return obj
    raise ValueError("Cannot convert %s to Trackable." % (obj,))


class TrackableView:
    """The objects below a root, by the names under which they are held."""

    def __init__(self, root):
        self._root_ref = root if isinstance(root, weakref.ref) else weakref.ref(root)

    @classmethod
    def children(cls, obj, save_type=SaveType.CHECKPOINT, **kwargs):
        """Returns {name: object} of what an object holds."""
        obj._maybe_initialize_trackable()
        return {name: convert_to_trackable(child, parent=obj) for name, child in obj._trackable_children(save_type, **kwargs).items()}

    @property
    def root(self):
        """The object on top."""
        found = self._root_ref() if isinstance(self._root_ref, weakref.ref) else self._root_ref
        if found is None:
            raise AssertionError("The root object was deleted")
        return found

    def descendants(self):
        """Returns all objects, the root first, breadth first."""
        return self._descendants_with_paths()[0]

    def _descendants_with_paths(self):
        order, paths = [self.root], ObjectIdentityDictionary()
        paths[self.root] = ()
        for obj in order:  # grows meanwhile
            for name, child in self.children(obj).items():
                if child not in paths:
                    paths[child] = paths[obj] + (TrackableReference(name, child),)
                    order.append(child)
        return order, paths


class ObjectGraphView(TrackableView):
    """A TrackableView whose root may have more children: `attached_dependencies`, TrackableReferences."""

    def __init__(self, root, attached_dependencies=None):
        super().__init__(root)
        self._attached_dependencies = attached_dependencies
        self._converted = {}  # (id of an object, name) -> (its child, the Trackable that stands for it)

    def __deepcopy__(self, memo):
        # A weak reference is not copied by itself, so the root is, and the copy refers to that.
        root = self._root_ref()
        if root is not None:
            memo[id(self._root_ref)] = weakref.ref(copy.deepcopy(root, memo))
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        for name, value in vars(self).items():
            setattr(copied, name, copy.deepcopy(value, memo))
        return copied

    def list_children(self, obj, save_type=SaveType.CHECKPOINT, **kwargs):
        """Returns the TrackableReferences of what an object holds."""
        found = []
        for name, child in obj._trackable_children(save_type, **kwargs).items():
            if not isinstance(child, Trackable):
                key = id(obj), name
                if key not in self._converted or self._converted[key][0] is not child:
                    self._converted[key] = child, convert_to_trackable(child, parent=obj)
                child = self._converted[key][1]
            found.append(TrackableReference(name, child))
        if obj is self.root and self._attached_dependencies:
            found += self._attached_dependencies
        return found

    def children(self, obj, save_type=SaveType.CHECKPOINT, **kwargs):
        return {reference.name: reference.ref for reference in self.list_children(obj, save_type, **kwargs)}

    @property
    def attached_dependencies(self):
        """The children of the root that the root itself does not know."""
        return self._attached_dependencies

    def breadth_first_traversal(self):
        """Returns (the objects, {object: the references that lead to it})."""
        return self._breadth_first_traversal()

    def _breadth_first_traversal(self):
        return self._descendants_with_paths()

    def serialize_object_graph(self, saveables_cache=None):
        """Returns (SaveableObjects, TrackableObjectGraph, feeds)."""
        return serialize_gathered_objects(self, saveables_cache=saveables_cache)[:3]

    def frozen_saveable_objects(self, object_map=None, to_graph=None, call_with_mapped_captures=None):
        """Returns the SaveableObjects of all objects as they are now."""
        return frozen_saveables_and_savers(self, object_map, to_graph, call_with_mapped_captures)[0]


class Listing:
    """The objects of a view: their numbers, paths, and the slots of optimizers, which come after all other objects."""

    def __init__(self, graph_view, skip_slot_variables=False):
        self.view = graph_view
        self.objects, paths = graph_view.breadth_first_traversal()
        self.objects = list(self.objects)
        self.names, self.ids = ObjectIdentityDictionary(), ObjectIdentityDictionary()
        for number, obj in enumerate(self.objects):
            self.names[obj], self.ids[obj] = keys.object_path_to_string(paths[obj]), number
        self.slots = ObjectIdentityDictionary()  # optimizer -> SlotVariableReferences
        if not skip_slot_variables:
            self._add_slots(list(self.objects))

    def _add_slots(self, others):
        reference = message_class("TrackableObjectGraph.TrackableObject.SlotVariableReference")
        for optimizer in others:
            if "get_slot_names" not in dir(optimizer):
                continue
            for slot_name in optimizer.get_slot_names():
                for number, variable in enumerate(others):
                    try:
                        slot = optimizer.get_slot(variable, slot_name)
                    except (AttributeError, KeyError):
                        continue
                    if slot is None:
                        continue
                    if slot._trackable_children():
                        raise NotImplementedError("Currently only variables with no dependencies can be saved as slot variables. File a feature "
                                                  "request if this limitation bothers you.")
                    if slot in self.ids:
                        raise NotImplementedError("A slot variable was re-used as a dependency of a Trackable object: %s. This is not currently "
                                                  "allowed. File a feature request if this limitation bothers you." % (slot,))
                    self.names[slot] = keys.slot_variable_key(self.names[variable], self.names[optimizer], slot_name)
                    self.ids[slot] = len(self.objects)
                    self.slots.setdefault(optimizer, []).append(reference(
                        slot_name=slot_name, original_variable_node_id=number, slot_variable_node_id=len(self.objects)))
                    self.objects.append(slot)

    def proto(self):
        """Returns the TrackableObjectGraph, without attributes."""
        graph = message_class("TrackableObjectGraph")()
        for obj in self.objects:
            node = graph.nodes.add()
            for slot in self.slots.get(obj, ()):
                node.slot_variables.add().CopyFrom(slot)
            for child in self.view.list_children(obj):
                node.children.add(node_id=self.ids[child.ref], local_name=child.name)
        return graph


def list_objects(graph_view, skip_slot_variables=False):
    """Returns all objects of a view, with the slots of optimizers."""
    return Listing(graph_view, skip_slot_variables).objects


def mapped(obj, object_map):
    """Returns what stands for an object in a map, or the object."""
    return obj if object_map is None else object_map.get(obj, obj)


def full_name(obj):
    """Returns the name that tf.train.Saver gives to a variable; "" for other objects."""
    from runnel.ops.variables import Variable
    if not isinstance(obj, Variable) and not (hasattr(obj, "handle") and hasattr(obj, "_shared_name")):
        return ""
    part = getattr(obj, "_save_slice_info", None)
    return part.full_name if part is not None else obj._shared_name


def mark_values(graph):
    """Notes for each node of a TrackableObjectGraph whether it, or a node below it, has values."""
    parents = collections.defaultdict(set)
    marked = set()
    for number, node in enumerate(graph.nodes):
        if node.attributes or node.slot_variables or node.HasField("registered_saver"):
            marked.add(number)
        for child in node.children:
            parents[child.node_id].add(number)
    waiting = list(marked)
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent not in marked:
                marked.add(parent)
                waiting.append(parent)
    for number, node in enumerate(graph.nodes):
        node.has_checkpoint_values.value = number in marked


# What is saved of each object.

def get_checkpoint_factories_and_keys(object_names, object_map=None):
    """Returns ({object: [Factory]}, {saver: {path: object}} of the objects with registered savers), given {object: path}."""
    factories, registered = ObjectIdentityDictionary(), collections.defaultdict(dict)
    for obj, path in object_names.items():
        target = mapped(obj, object_map)
        saver = registration.get_registered_saver_name(target)
        if saver:
            registered[saver][path] = obj
            continue
        factories[obj] = []
        for name, factory in saveables.saveable_objects_from_trackable(target).items():
            suffix = saveable_compat.get_saveable_name(target) or name
            shown = name if saveable_compat.force_checkpoint_conversion_enabled() else suffix
            factories[obj].append(Factory(factory, shown, keys.checkpoint_key(path, suffix)))
    return factories, registered


Factory = collections.namedtuple("Factory", "factory name checkpoint_key")


def generate_saveable_objects(checkpoint_factory_map, object_graph_proto=None, node_ids=None, object_map=None,
                              call_with_mapped_captures=None, saveables_cache=None):
    """Returns (SaveableObjects, feeds) of {object: [Factory]}, and writes their attributes into the object graph."""
    found, feeds = [], None if saveables_cache is None else {}
    for obj, rows in checkpoint_factory_map.items():
        target = mapped(obj, object_map)
        cached = None if saveables_cache is None else saveables_cache.setdefault(target, {})
        for factory, name, key in rows:
            own = cached.get(name) if cached else None
            if own is None or any(key not in saveable.name for saveable in own):
                own = _make_saveables(obj, factory, name, key, call_with_mapped_captures)
                if cached is not None:
                    cached[name] = own
            if isinstance(target, PythonState):
                if feeds is None:
                    own = (own[0].freeze(),)
                else:
                    feeds.update(own[0].feed_dict_additions())
            found += own
            if object_graph_proto is not None and node_ids is not None:
                _describe(object_graph_proto.nodes[node_ids[obj]], target, own[0], name, key)
    return found, feeds


def _make_saveables(obj, factory, name, key, call_with_mapped_captures):
    made = saveables.create_saveable_object(name, key, factory, call_with_mapped_captures) if callable(factory) else factory
    own = (made,) if isinstance(made, SaveableObject) else tuple(saveables.saveable_objects_for_op(made, key))
    for saveable in own:
        if key not in saveable.name:
            raise AssertionError("The object %s produced a SaveableObject with name '%s' for attribute '%s'. Expected a name containing "
                                 "'%s'." % (obj, saveable.name, name, key))
    return own


def _describe(node, target, saveable, name, key):
    rows = [(name, key)]
    if isinstance(saveable, saveables.TrackableSaveable) and (
            saveable_compat.force_checkpoint_conversion_enabled() or saveable_compat.get_saveable_name(target) is None):
        rows = saveable.get_proto_names_and_checkpoint_keys()
    for local_name, local_key in rows:
        node.attributes.add(name=local_name, checkpoint_key=local_key, full_name=full_name(target))


def _write_registered(registered, graph, ids, object_map):
    out = collections.defaultdict(dict)
    for saver, objects in registered.items():
        for path, obj in objects.items():
            node = graph.nodes[ids[obj]]
            node.registered_saver.name, node.registered_saver.object_name = saver, path
            out[saver][path] = mapped(obj, object_map)
    return out


def serialize_gathered_objects(graph_view, object_map=None, call_with_mapped_captures=None, saveables_cache=None):
    """Returns (SaveableObjects, TrackableObjectGraph, feeds, registered savers) of all objects of a view."""
    listing = Listing(graph_view)
    graph = listing.proto()
    factories, registered = get_checkpoint_factories_and_keys(listing.names, object_map)
    savers = _write_registered(registered, graph, listing.ids, object_map)
    found, feeds = generate_saveable_objects(factories, graph, listing.ids, object_map, call_with_mapped_captures, saveables_cache)
    mark_values(graph)
    return found, graph, feeds, savers


def frozen_saveables_and_savers(graph_view, object_map=None, to_graph=None, call_with_mapped_captures=None, saveables_cache=None):
    """Returns (SaveableObjects with the object graph as a constant, registered savers), made in the graph `to_graph`."""
    import contextlib
    with to_graph.as_default() if to_graph else contextlib.nullcontext():
        found, graph, _, savers = serialize_gathered_objects(graph_view, object_map, call_with_mapped_captures, saveables_cache)
        with framework.device("/cpu:0"):
            tensor = convert.constant(graph.SerializeToString(), dtype=dtypes.string)
        found.append(NoRestoreSaveable(tensor, OBJECT_GRAPH_PROTO_KEY))
    return found, savers


def serialize_graph_view(graph_view, object_map=None, call_with_mapped_captures=None, cache=None):
    """Returns ({object: {key: tensor}}, feeds, registered savers, TrackableObjectGraph).

    `cache` has the tensors of earlier calls: a graph gets new nodes for new objects only, and Python states are fed.
    """
    listing = Listing(graph_view)
    graph = listing.proto()
    tensors, feeds, registered, states = ObjectIdentityDictionary(), None if cache is None else {}, collections.defaultdict(dict), []
    for obj in listing.objects:
        target = mapped(obj, object_map)
        saver = registration.get_registered_saver_name(target)
        if isinstance(target, PythonState):
            states.append(obj)
        elif saver:
            registered[saver][listing.names[obj]] = obj
        else:
            _add_tensors(tensors, listing, graph, obj, target, call_with_mapped_captures, cache)
    savers = _write_registered(registered, graph, listing.ids, object_map)
    for obj in states:
        target = mapped(obj, object_map)
        if cache is None:
            _add_tensors(tensors, listing, graph, obj, target, call_with_mapped_captures, cache)
        else:
            _add_state(tensors, feeds, listing, graph, obj, target, cache)
    mark_values(graph)
    return tensors, feeds, savers, graph


def _add_tensors(tensors, listing, graph, obj, target, call_with_mapped_captures, cache):
    node = graph.nodes[listing.ids[obj]]
    if cache is not None and target in cache:
        owner, own, attributes = cache[target]
        tensors[owner] = own
        node.attributes.extend(attributes)
        return
    if saveable_compat.get_saveable_name(target) or not saveables.trackable_has_serialize_to_tensor(target):
        names, object_map = ObjectIdentityDictionary(), ObjectIdentityDictionary()
        names[obj], object_map[obj] = listing.names[obj], target
        factories, _ = get_checkpoint_factories_and_keys(names, object_map)
        found, _ = generate_saveable_objects(factories, graph, listing.ids, object_map, call_with_mapped_captures)
        owner = saveables.SaveableCompatibilityConverter(target, found)
        own = owner._serialize_to_tensors()
    else:
        owner, own = target, {}
        for name, value in saveables._called(target._serialize_to_tensors, [], call_with_mapped_captures).items():
            local_name = keys.escape_local_name(name)
            key = keys.checkpoint_key(listing.names[obj], local_name)
            own[key] = value
            if isinstance(value, SaveSpec):
                value.name, value.slice_spec = key, ""
            node.attributes.add(name=local_name, checkpoint_key=key, full_name=full_name(target))
    tensors[owner] = own
    if cache is not None:
        cache[target] = owner, own, list(node.attributes)


def _add_state(tensors, feeds, listing, graph, obj, target, cache):
    key = keys.checkpoint_key(listing.names[obj], PYTHON_STATE)
    if target not in cache:
        with framework.device("/cpu:0"):
            cache[target] = {PYTHON_STATE: convert.constant("", dtype=dtypes.string)}
    tensor = cache[target][PYTHON_STATE]
    with framework.init_scope():
        feeds[tensor] = target.serialize()
    tensors[target] = {key: tensor}
    graph.nodes[listing.ids[obj]].attributes.add(name=PYTHON_STATE, checkpoint_key=key, full_name=full_name(target))
