"""Device names: parsing, merging, DeviceSpec."""


_FIELDS = ("job", "replica", "task", "device_type", "device_index")


def _fields(spec):
    """Returns the fields of a name such as "/job:worker/task:1/cpu:0" as a dict."""
    found = {}
    for part in (spec or "").split("/"):
        pieces = part.split(":")
        key = pieces[0].lower()
        is_device = key == "device" and len(pieces) == 3 or key in ("cpu", "gpu") and len(pieces) <= 2
        if is_device and "device_type" in found:
            raise ValueError("Multiple device types are not allowed while parsing the device spec: %s." % spec)
        if key == "job" and len(pieces) == 2:
            found["job"] = pieces[1]
        elif key in ("replica", "task") and len(pieces) == 2:
            found[key] = int(pieces[1])
        elif is_device:
            found["device_type"] = pieces[1] if key == "device" else key.upper()
            index = pieces[-1] if key == "device" or len(pieces) == 2 else "*"
            found["device_index"] = None if index == "*" else int(index)
        elif part:
            raise ValueError("Unknown attribute '%s' is encountered while parsing the device spec: '%s'." % (pieces[0], spec))
    return found


class DeviceSpecV2:
    """A device name, possibly partial: job, replica, task, device_type, device_index. It does not change."""

    __slots__ = tuple("_" + name for name in _FIELDS)

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self._job = None if job is None else str(job)
        self._replica = None if replica is None else int(replica)
        self._task = None if task is None else int(task)
        self._device_type = device_type.upper() if device_type in ("gpu", "cpu") else device_type
        self._device_index = None if device_index is None else int(device_index)

    job = property(lambda self: self._job)
    replica = property(lambda self: self._replica)
    task = property(lambda self: self._task)
    device_type = property(lambda self: self._device_type)
    device_index = property(lambda self: self._device_index)

    @classmethod
    def from_string(cls, spec):
        """Parses a name such as "/job:worker/task:1/cpu:0"."""
        return cls(**_fields(spec))

    def parse_from_string(self, spec):
        """Returns the spec of a name."""
        return type(self).from_string(spec)

    def to_string(self):
        """Returns the name."""
        out = ""
        if self._job is not None:
            out += "/job:" + self._job
        if self._replica is not None:
            out += "/replica:%d" % self._replica
        if self._task is not None:
            out += "/task:%d" % self._task
        if self._device_type is not None:
            index = "*" if self._device_index is None else str(self._device_index)
            out += "/device:%s:%s" % (self._device_type, index)
        return out

    def make_merged_spec(self, dev):
        """Returns the fields of `dev`, with those of this one where `dev` has none."""
        return type(self)(**{name: getattr(self if getattr(dev, name) is None else dev, name) for name in _FIELDS})

    def replace(self, **kwargs):
        """Returns a copy with some fields replaced."""
        return type(self)(**{**{name: getattr(self, name) for name in _FIELDS}, **kwargs})

    def __eq__(self, other):
        return isinstance(other, DeviceSpecV2) and self.to_string() == other.to_string()

    def __hash__(self):
        return hash(self.to_string())

    def __repr__(self):
        return "DeviceSpec(%r)" % self.to_string()


def _changeable(name):
    def set_field(self, value):
        setattr(self, "_" + name, getattr(DeviceSpecV2(**{name: value}), name))
    return property(lambda self: getattr(self, "_" + name), set_field)


class DeviceSpec(DeviceSpecV2):
    """A device name, possibly partial: job, replica, task, device_type, device_index."""

    __slots__ = ()
    job, replica, task, device_type, device_index = (_changeable(name) for name in _FIELDS)

    def parse_from_string(self, spec):
        """Sets the fields from a name."""
        found = _fields(spec)
        for name in _FIELDS:
            setattr(self, name, found.get(name))
        return self

    def merge_from(self, dev):
        """Sets the fields that `dev` has."""
        for name in _FIELDS:
            if getattr(dev, name) is not None:
                setattr(self, name, getattr(dev, name))


def canonical_name(device):
    """Returns the full form of a device name."""
    if device is None:
        return ""
    if isinstance(device, DeviceSpecV2):
        return device.to_string()
    return DeviceSpec.from_string(device).to_string()


def merge(outer, inner):
    """Returns `inner` with the fields that only `outer` has."""
    return DeviceSpec.from_string(outer).make_merged_spec(DeviceSpec.from_string(inner)).to_string()


def check_valid(spec):
    """Raises ValueError if a name is no device name."""
    DeviceSpecV2.from_string(spec)


def merge_device(spec):
    """Returns a device function that adds the fields of a spec (a name, a DeviceSpec or None) to the device of a node."""
    name = canonical_name(spec)
    return lambda node_def: merge(name, node_def.device or "")


DeviceSpecV1 = DeviceSpec
