"""Writes the table from which runnel/core/protobuf.py makes message classes, from .proto files.

    make_messages.py OUT FILE.proto ...

The table is two dictionaries. MESSAGES: full name without package -> fields, each
(name, number, type, label, type name), where label is "" (plain), "*" (repeated), "m" (a map: the
type is that of its entry message) or "?N" (member of the oneof number N). ENUMS: name -> ((value
name, number), ...). PACKAGES: name -> package, of what is not in the package tensorflow.
"""

import os
import re
import sys

SCALARS = {
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
    "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
}
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*|-?\d[\w.]*|\.[A-Za-z_][\w.]*|[{}()<>=;,\[\]]', re.S)


class Parser:
    def __init__(self, text):
        self.tokens = [t for t in TOKEN.findall(text) if not t.startswith(("//", "/*"))]
        self.at = 0
        self.messages = {}
        self.enums = {}
        self.oneofs = {}
        self.package = ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def skip_statement(self):
        depth = 0
        while True:
            token = self.next()
            depth += token == "{"
            depth -= token == "}"
            if depth == 0 and token in (";", "}"):
                return

    def file(self):
        while self.peek():
            word = self.peek()
            if word == "message":
                self.next()
                self.message("")
            elif word == "enum":
                self.next()
                self.enum("")
            elif word == "package":
                self.next()
                self.package = self.next()
            else:
                self.skip_statement()

    def enum(self, prefix):
        name = prefix + self.next()
        values = []
        self.next()
        while self.peek() != "}":
            if self.peek() in ("option", "reserved"):
                self.skip_statement()
                continue
            value = self.next()
            self.next()
            values.append((value, int(self.next(), 0)))
            while self.next() != ";":
                pass
        self.next()
        self.enums[name] = tuple(values)

    def message(self, prefix):
        name = prefix + self.next()
        fields = []
        self.messages[name] = fields
        oneof = None
        oneofs = []
        self.next()
        while True:
            word = self.next()
            if word == "}":
                if oneof is None:
                    break
                oneof = None
            elif word == "message":
                self.message(name + ".")
            elif word == "enum":
                self.enum(name + ".")
            elif word == "oneof":
                oneof = len(oneofs)
                oneofs.append(self.next())
                self.next()
            elif word in ("reserved", "extensions", "option"):
                self.at -= 1
                self.skip_statement()
            elif word != ";":
                self.field(name, fields, word, oneof)
        self.messages[name] = tuple(fields)
        if oneofs:
            self.oneofs[name] = tuple(oneofs)

    def field(self, message, fields, word, oneof):
        label = "" if oneof is None else "?%d" % oneof
        if word in ("repeated", "optional", "required"):
            label = "*" if word == "repeated" else label
            word = self.next()
        if word == "map":
            self.next()
            key = self.next()
            self.next()
            value = self.next()
            self.next()
            field = self.next()
            entry = message + "." + field + "$entry"
            self.messages[entry] = (("key", 1, key, "", ""), ("value", 2) + split(value))
            word, label, name = entry, "m", field
        else:
            name = self.next()
        self.next()
        number = int(self.next(), 0)
        while self.next() != ";":
            pass
        fields.append((name, number) + (("message", label, word) if label == "m" else split(word, label)))


def split(word, label=""):
    if word in SCALARS:
        return (word, label, "")
    return ("?", label, word.split("tensorflow.")[-1].lstrip("."))


def resolve(parser):
    """Resolves each type name in its scope to a message or an enum."""
    def find(scope, name):
        parts = scope.split(".")
        for i in range(len(parts), -1, -1):
            full = ".".join(parts[:i] + [name])
            if full in parser.messages:
                return "message", full
            if full in parser.enums:
                return "enum", full
        tail = name.split(".")[-1]
        for table, what in ((parser.messages, "message"), (parser.enums, "enum")):
            if tail in table:
                return what, tail
        return "bytes", ""  # a message that is not in the given files stays serialized

    for message, fields in parser.messages.items():
        scope = message.split("$")[0].rsplit(".", 1)[0] if "$" in message else message
        out = []
        for name, number, type_, label, type_name in fields:
            if type_ == "?":
                type_, type_name = find(scope, type_name)
            out.append((name, number, type_, label, type_name))
        parser.messages[message] = tuple(out)


def main():
    out, files = sys.argv[1], sys.argv[2:]
    parser, packages, members = Parser(""), {}, {}
    for file in sorted(files):
        one = Parser(open(file, encoding="utf-8").read())
        one.file()
        members[os.path.basename(file).removesuffix(".proto")] = tuple(name for name in [*one.enums, *one.messages] if "." not in name)
        parser.messages.update(one.messages)
        parser.enums.update(one.enums)
        parser.oneofs.update(one.oneofs)
        if one.package != "tensorflow":
            packages.update((name, one.package) for name in [*one.messages, *one.enums] if "." not in name)
    resolve(parser)
    with open(out, "w", encoding="utf-8") as stream:
        stream.write('"""Written by make_messages.py."""\nMESSAGES = {\n')
        for name in sorted(parser.messages):
            stream.write("    %r: %r,\n" % (name, parser.messages[name]))
        stream.write("}\nENUMS = {\n")
        for name in sorted(parser.enums):
            stream.write("    %r: %r,\n" % (name, parser.enums[name]))
        stream.write("}\nONEOFS = {\n")
        for name in sorted(parser.oneofs):
            stream.write("    %r: %r,\n" % (name, parser.oneofs[name]))
        stream.write("}\nPACKAGES = {\n")
        for name in sorted(packages):
            stream.write("    %r: %r,\n" % (name, packages[name]))
        stream.write("}\nFILES = {\n")
        for name in sorted(members):
            stream.write("    %r: %r,\n" % (name, members[name]))
        stream.write("}\n")


if __name__ == "__main__":
    main()
