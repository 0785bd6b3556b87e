"""Tensors that objects of a model hold or functions capture: constants in the file."""

import weakref

from runnel.core.trackable import Trackable


class TrackableConstant(Trackable):
    """A tensor as an object of a model. `parent` is the function or object that holds it."""

    def __init__(self, capture, parent=None):
        self.capture = capture
        self._parent = None if parent is None else weakref.ref(parent)
