"""Variables that the first replica creates and the others find."""

import re

_NUMBER = re.compile(r"_\d+(?=/|$)")


def _canonicalize_variable_name(name):
    """Returns a name without the numbers that made its parts unique."""
    return "Variable" if name is None else _NUMBER.sub("", name)


def make_fn(shared_variable_store, device_id):
    """Returns a creator of variables for a replica: number 0 keeps what it creates in the dict `shared_variable_store`, others take it from there."""
    taken = {}

    def create(next_creator, **kwargs):
        made = next_creator(**kwargs)
        shared_variable_store.setdefault(_canonicalize_variable_name(kwargs.get("name")), []).append(made)
        return made

    def find(next_creator, **kwargs):
        name = _canonicalize_variable_name(kwargs.get("name"))
        number = taken.get(name, 0)
        known = shared_variable_store.get(name, ())
        if number >= len(known):
            raise RuntimeError("Tried to create variable %s with mismatching name on device %d" % (kwargs.get("name"), device_id))
        taken[name] = number + 1
        return known[number]
    return find if device_id else create
