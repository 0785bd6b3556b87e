"""Errors in generated code, in terms of the code that the user wrote."""

import collections

from runnel.autograph.pyct import origin_info


class FrameInfo(collections.namedtuple("FrameInfo", ("filename", "lineno", "function_name", "code", "is_converted", "is_allowlisted"))):
    """A row of a traceback: whether the function was generated, and whether generated code called it as it is."""

    __slots__ = ()


def _user_frames(tb, source_map, converter_filename):
    """Returns the rows from the innermost one to the first generated function, with the user's lines in its place."""
    frames = []
    for filename, lineno, function_name, code in reversed(tb):
        origin = source_map.get(origin_info.LineLocation(filename=filename, lineno=lineno))
        if origin is not None:
            frames.append(FrameInfo(*origin.as_frame(), True, False))
            break
        if filename == converter_filename:
            if frames:
                frames[-1] = frames[-1]._replace(is_allowlisted=not frames[-1].is_converted)
            continue
        frames.append(FrameInfo(filename, lineno, function_name, code, False, False))
    return tuple(frames)


KNOWN_STRING_CONSTRUCTOR_ERRORS = (AssertionError, AttributeError, NameError, NotImplementedError, RuntimeError, StopIteration, TypeError,
                                   UnboundLocalError, ValueError)


class MultilineMessageKeyError(KeyError):
    """A KeyError whose text is its message, not the repr of it."""

    def __init__(self, message, original_key):
        super().__init__(original_key)
        self._message = message

    def __str__(self):
        return self._message


MultilineMessageKeyError.__name__ = KeyError.__name__


class ErrorMetadataBase:
    """What is known of an error: the user's frames, and the message at its origin."""

    __slots__ = ("translated_stack", "cause_message")

    def __init__(self, callsite_tb, cause_metadata, cause_message, source_map, converter_filename):
        frames = _user_frames(callsite_tb, source_map, converter_filename)
        if cause_metadata is None:
            self.translated_stack, self.cause_message = frames, cause_message
        else:  # the error passed through another generated function, which has described the frames below
            inner = cause_metadata.translated_stack
            self.translated_stack = inner + tuple(f for f in frames[-1:] if f not in inner)
            self.cause_message = cause_metadata.cause_message

    def get_message(self):
        """Returns the text of the error, with the user's lines."""
        rows = ["in user code:", ""]
        for frame in reversed(self.translated_stack):
            mark = "  *" if frame.is_converted else "  **" if frame.is_allowlisted else ""
            rows.append('    File "%s", line %s, in %s%s' % (frame.filename, frame.lineno, frame.function_name, mark))
            if frame.code is not None:
                rows.append("        " + frame.code.strip())
        rows += ["", *("    " + row for row in self.cause_message.split("\n")), ""]
        return "\n".join(rows)

    def create_exception(self, source_error):
        """Returns an error of the same kind with that text; None if its class is made in another way."""
        kind = type(source_error)
        if kind is KeyError:
            return MultilineMessageKeyError(self.get_message(), source_error.args[0] if source_error.args else None)
        if kind in KNOWN_STRING_CONSTRUCTOR_ERRORS or kind.__init__ is Exception.__init__:
            return kind(self.get_message())
        return None

    def to_exception(self, source_error):
        """Returns the error to raise in place of another one."""
        made = self.create_exception(source_error) or source_error
        made.__suppress_context__ = True
        made.ag_error_metadata = self
        return made


