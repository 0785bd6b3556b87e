"""Messages from their text form: str(message) and .pbtxt files."""

import ast
import re

from runnel.core.protobuf import DecodeError, _enum_values, message_class

_TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[A-Za-z_][\w.]*)"""
                    r"""|(?P<number>-?\s*(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fF]?|inf\w*|nan))|(?P<mark>[{}<>:;,\[\]])""")


class ParseError(DecodeError):
    """The text is not a valid message; the error names the line."""


class _Reader:
    def __init__(self, text):
        self._text = text
        self._at = 0
        self._next()

    def _next(self):
        """Advances to the next token: .kind and .value. A kind of None is the end."""
        self.kind = self.value = None
        while self._at < len(self._text):
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                self.fail("Unexpected character %r" % self._text[self._at])
            self._at = match.end()
            if match.lastgroup:
                self.kind, self.value = match.lastgroup, match.group()
                return

    def fail(self, message):
        raise ParseError("%d: %s" % (self._text.count("\n", 0, self._at) + 1, message))

    def take(self, *values):
        """Consumes the next token if it is one of `values`. Returns whether it was."""
        if self.kind == "mark" and self.value in values:
            self._next()
            return True
        return False

    def message(self, out, end=None):
        while not (self.take(end) if end else self.kind is None):
            if self.kind != "word":
                self.fail("The name of a field is expected, not %r" % (self.value,))
            field = out._fields.get(self.value)
            if field is None:
                self.fail('Message type "%s" has no field named "%s".' % (type(out)._name, self.value))
            self._next()
            self._field(out, field)
            self.take(";", ",")

    def _field(self, out, field):
        has_colon = self.take(":")
        if field.type == "message" or field.label == "m":
            is_list = self.take("[")
            while not (is_list and self.take("]")):
                end = "}" if self.take("{") else ">" if self.take("<") else self.fail("A message is expected")
                self._child(out, field, end)
                if not is_list:
                    return
                self.take(",")
            return
        if not has_colon:
            self.fail("':' is expected after %s" % field.name)
        if self.take("["):
            while not self.take("]"):
                self._put(out, field, self._scalar(field))
                self.take(",")
            return
        self._put(out, field, self._scalar(field))

    def _child(self, out, field, end):
        if field.label == "m":
            entry = message_class(field.type_name)()
            self.message(entry, end)
            target = getattr(out, field.name)
            if field.value.type == "message":
                target[entry.key].CopyFrom(entry.value)
            else:
                target[entry.key] = entry.value
        elif field.label == "*":
            self.message(getattr(out, field.name).add(), end)
        else:
            child = getattr(out, field.name)
            child.SetInParent()
            self.message(child, end)

    @staticmethod
    def _put(out, field, value):
        if field.label == "*":
            getattr(out, field.name).append(value)
        else:
            setattr(out, field.name, value)

    def _scalar(self, field):
        kind, value = self.kind, self.value
        if kind is None or kind == "mark":
            self.fail("A value is expected for %s" % field.name)
        if field.type in ("string", "bytes"):
            return self._texts(field)
        self._next()
        try:
            if field.type == "bool":
                return {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False, "True": True, "False": False}[value]
            if field.type == "enum":
                return int(value) if kind == "number" else _enum_values(field.type_name)[value]
            if field.type in ("float", "double"):
                return float(value.replace(" ", "").rstrip("fF") if value[-1:] in "fF" and "inf" not in value else value)
            return int(value.replace(" ", ""), 0)
        except (KeyError, ValueError):
            self.fail("%r is no value of %s" % (value, field.name))

    def _texts(self, field):
        """Joins adjacent strings."""
        if self.kind != "text":
            self.fail("A text is expected for %s" % field.name)
        data = b""
        while self.kind == "text":
            body = self.value[1:-1].replace('"', '\\"') if self.value[0] == "'" else self.value[1:-1]
            data += ast.literal_eval('b"%s"' % re.sub(r"[^\x01-\x7f]", lambda m: "".join(
                "\\x%02x" % byte for byte in m.group().encode()), body))
            self._next()
        return data.decode("utf-8") if field.type == "string" else data


def Merge(text, message):
    """Merges a text into a message and returns the message."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    _Reader(text).message(message)
    return message


Parse = Merge


def MessageToString(message):
    """Returns the text form of a message."""
    return str(message)
