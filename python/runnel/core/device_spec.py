"""Device names: parsing, merging, DeviceSpec."""


class DeviceSpec:
    """A device name, possibly partial: job, replica, task, device_type, device_index."""

    __slots__ = ("job", "replica", "task", "device_type", "device_index")

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self.job = job
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        if device_type is not None:
            device_type = "GPU" if device_type == "gpu" else "CPU" if device_type == "cpu" else device_type
        self.device_type = device_type
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec):
        """Parses a name such as "/job:worker/task:1/cpu:0"."""
        out = cls()
        for part in (spec or "").split("/"):
            if not part:
                continue
            pieces = part.split(":")
            key = pieces[0].lower()
            try:
                if key == "job" and len(pieces) == 2:
                    out.job = pieces[1]
                elif key in ("replica", "task") and len(pieces) == 2:
                    setattr(out, key, int(pieces[1]))
                elif key == "device" and len(pieces) == 3:
                    out.device_type = pieces[1]
                    out.device_index = None if pieces[2] == "*" else int(pieces[2])
                elif key in ("cpu", "gpu") and len(pieces) <= 2:
                    out.device_type = key.upper()
                    if len(pieces) == 2 and pieces[1] != "*":
                        out.device_index = int(pieces[1])
                else:
                    raise ValueError
            except ValueError:
                raise ValueError("Unknown attribute '%s' is encountered while parsing the device "
                                 "spec: '%s'." % (part, spec)) from None
        return out

    def parse_from_string(self, spec):
        """Sets the fields from a name."""
        other = DeviceSpec.from_string(spec)
        for name in DeviceSpec.__slots__:
            setattr(self, name, getattr(other, name))
        return self

    def to_string(self):
        """Returns the name."""
        out = ""
        if self.job is not None:
            out += "/job:" + self.job
        if self.replica is not None:
            out += "/replica:%d" % self.replica
        if self.task is not None:
            out += "/task:%d" % self.task
        if self.device_type is not None:
            index = "*" if self.device_index is None else str(self.device_index)
            out += "/device:%s:%s" % (self.device_type, index)
        return out

    def make_merged_spec(self, other):
        """Returns the fields of `other`, with those of this one where `other` has none."""
        out = DeviceSpec()
        for name in DeviceSpec.__slots__:
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(out, name, mine if theirs is None else theirs)
        return out

    def merge_from(self, other):
        """Sets the fields that `other` has."""
        merged = self.make_merged_spec(other)
        for name in DeviceSpec.__slots__:
            setattr(self, name, getattr(merged, name))

    def replace(self, **kwargs):
        """Returns a copy with some fields replaced."""
        values = {name: getattr(self, name) for name in DeviceSpec.__slots__}
        values.update(kwargs)
        return DeviceSpec(**values)

    def __eq__(self, other):
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self):
        return hash(self.to_string())

    def __repr__(self):
        return "DeviceSpec(%r)" % self.to_string()


def canonical_name(device):
    """Returns the full form of a device name."""
    if device is None:
        return ""
    if isinstance(device, DeviceSpec):
        return device.to_string()
    return DeviceSpec.from_string(device).to_string()


def merge(outer, inner):
    """Returns `inner` with the fields that only `outer` has."""
    return DeviceSpec.from_string(outer).make_merged_spec(DeviceSpec.from_string(inner)).to_string()


DeviceSpecV1 = DeviceSpecV2 = DeviceSpec
