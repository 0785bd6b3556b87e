"""tf.errors: the errors of a step.

Every error of the runtime is an OpError of the class of its code. If the message names the operation that failed,
`op` is that operation, and the message ends with the line of the program that built it.
"""

import re

from runnel import _core

__all__ = []
OK = 0
_MOST_FRAMES = 8  # of an operation's calls in a message


class OpError(Exception):
    """An error of the runtime."""

    _code = 2

    def __init__(self, node_def, op, message, error_code=None, *args):
        super().__init__(node_def, op, message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = self._code if error_code is None else error_code

    @property
    def message(self):
        """The error message."""
        return self._message

    @property
    def op(self):
        """The Operation that failed, or None."""
        return self._op

    @property
    def node_def(self):
        """The NodeDef of the operation that failed, or None."""
        if self._node_def is None and self._op is not None:
            self._node_def = self._op.node_def
        return self._node_def

    @property
    def error_code(self):
        """The number of the code in error_codes.proto."""
        return self._error_code

    @property
    def experimental_payloads(self):
        return {}

    def __reduce__(self):
        return (type(self), (None, None, self._message))

    def __str__(self):
        place = describe(self._op)
        return "%s\n\n%s" % (self._message, place) if place else self._message


class InaccessibleTensorError(ValueError):
    """A tensor of a function under construction is used where its value cannot come."""


class OperatorNotAllowedInGraphError(TypeError):
    """A Python operator needed the value of a tensor in a graph."""


def describe(op):
    """Returns a text that says where the program built `op`; "" if that is not known."""
    calls = op.traceback if op is not None else ()
    if not calls:
        return ""
    text = "Detected at node '%s' (%s) defined at (most recent call last):" % (op.name, op.type)
    for frame in calls[-_MOST_FRAMES:]:
        text += "\n  %s" % (frame,)
        if frame.line:
            text += "\n    " + frame.line
    inputs = ["%s %s %s" % (t.name, t.dtype.name, t.shape) for t in op.inputs]
    if inputs:
        text += "\n  with inputs " + ", ".join(inputs)
    return text


_CODES = (
    (1, "CANCELLED", "CancelledError"), (2, "UNKNOWN", "UnknownError"),
    (3, "INVALID_ARGUMENT", "InvalidArgumentError"),
    (4, "DEADLINE_EXCEEDED", "DeadlineExceededError"), (5, "NOT_FOUND", "NotFoundError"),
    (6, "ALREADY_EXISTS", "AlreadyExistsError"), (7, "PERMISSION_DENIED", "PermissionDeniedError"),
    (8, "RESOURCE_EXHAUSTED", "ResourceExhaustedError"),
    (9, "FAILED_PRECONDITION", "FailedPreconditionError"), (10, "ABORTED", "AbortedError"),
    (11, "OUT_OF_RANGE", "OutOfRangeError"), (12, "UNIMPLEMENTED", "UnimplementedError"),
    (13, "INTERNAL", "InternalError"), (14, "UNAVAILABLE", "UnavailableError"),
    (15, "DATA_LOSS", "DataLossError"), (16, "UNAUTHENTICATED", "UnauthenticatedError"),
)
_by_code = {}
for _number, _constant, _class in _CODES:
    _by_code[_number] = globals()[_class] = type(
        _class, (OpError,), {"_code": _number, "__module__": __name__,
                             "__doc__": "An error of the code %s." % _constant})
    globals()[_constant] = _number

# Listed for type checkers, which do not run the loop.
CancelledError, UnknownError, InvalidArgumentError = _by_code[1], _by_code[2], _by_code[3]
DeadlineExceededError, NotFoundError, AlreadyExistsError = _by_code[4], _by_code[5], _by_code[6]
PermissionDeniedError, ResourceExhaustedError = _by_code[7], _by_code[8]
FailedPreconditionError, AbortedError, OutOfRangeError = _by_code[9], _by_code[10], _by_code[11]
UnimplementedError, InternalError, UnavailableError = _by_code[12], _by_code[13], _by_code[14]
DataLossError, UnauthenticatedError = _by_code[15], _by_code[16]
INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, CANCELLED, ABORTED = 3, 5, 11, 1, 10


def exception_type_from_error_code(code):
    """Returns the exception class of a code."""
    return _by_code[code]


def error_code_from_exception_type(cls):
    """Returns the code of an exception class."""
    return cls._code


_NODE = re.compile(r"\{\{(?:function_)?node ([^}]+)\}\}")
_PORT = re.compile(r"_(?:retval|arg)_(.+)_\d+_\d+$")  # node of a fetched or fed tensor


def make_error(code, message, graph=None):
    """Returns the exception of a failed call. Operations that the message names are looked up in `graph`."""
    op = None
    if graph is not None:
        for name in _NODE.findall(message):
            op = graph._find(name.strip()) or graph._find(_PORT.sub(r"\1", name.strip()))
            if op is not None:
                break
    return _by_code.get(code, UnknownError)(None, op, message)


_core.register(make_error=make_error)
__all__ = ["OpError"] + [row[2] for row in _CODES] + [row[1] for row in _CODES]
