"""Names for generated code."""

import itertools
import re

from runnel.autograph.pyct import qual_names


class Namer:
    """Makes names that nothing else has."""

    def __init__(self, global_namespace):
        self.global_namespace = global_namespace
        self.generated_names = set()

    def new_symbol(self, name_root, reserved_locals):
        """Returns a name like `name_root`, with a number at the end if needed. `reserved_locals` are names or QNs that are taken, too."""
        taken = set()
        for name in reserved_locals:
            taken.update(str(part) for part in name.owner_set | {name}) if isinstance(name, qual_names.QN) else taken.add(name)
        stem, first = name_root, 1
        numbered = re.fullmatch(r"(.+)_(\d+)", name_root)
        if numbered:
            stem, first = numbered.group(1), int(numbered.group(2)) + 1
        for candidate in itertools.chain([name_root], ("%s_%d" % (stem, n) for n in itertools.count(first))):
            if candidate not in taken and candidate not in self.global_namespace and candidate not in self.generated_names:
                self.generated_names.add(candidate)
                return candidate
        raise AssertionError("numbers do not end")
