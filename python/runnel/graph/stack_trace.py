"""The calls of the program that led to an operation."""

import linecache
import sys
from typing import NamedTuple


class Frame(NamedTuple):
    """A line of the program that calls something; traceback.format_list accepts it."""

    filename: str
    lineno: int
    name: str
    line: str

    def __repr__(self):
        return "<FrameSummary file %s, line %d in %s>" % self[:3]

    def __str__(self):
        return 'File "%s", line %d, in %s' % self[:3]


class StackTrace(tuple):
    """Frames, outermost first."""

    def get_user_frames(self):
        """Returns the frames that do not belong to libraries' own code: all that are recorded."""
        return self

    def last_user_frame(self):
        """Returns the innermost frame."""
        return self[-1]

    def __getitem__(self, place):
        found = super().__getitem__(place)
        return StackTrace(found) if isinstance(place, slice) else found


def from_rows(rows):
    """Returns the StackTrace of [(file, line, function)]. A block of converted control flow counts as the function that it is of."""
    frames: list = []
    for file, line, name in rows:
        if file.startswith("<frozen"):
            continue
        if name.startswith("ag__") and frames and frames[-1].filename == file:
            name = frames.pop().name
        frames.append(Frame(file, line, name, linecache.getline(file, line).strip()))
    return StackTrace(frames)


def extract_stack(stacklevel=1):
    """Returns the StackTrace of the caller, or of its caller if `stacklevel` is 2."""
    frame, rows = sys._getframe(stacklevel), []
    while frame is not None:
        rows.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return from_rows(reversed(rows))
