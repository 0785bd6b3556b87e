"""Writes type stubs: raw_ops.pyi with one function per op, and __init__.pyi with the names of `tf`.

    make_stubs.py FOLDER

Imports the built package; writes the files into FOLDER.
"""

import inspect
import keyword
import os
import re
import sys


def annotation(kind):
    """Returns the Python type of an attribute's kind."""
    plain = {"int": "int", "float": "float", "bool": "bool", "string": "str"}
    if kind.startswith("list("):
        return "_t.Sequence[%s]" % plain.get(kind[5:-1], "_t.Any")
    return plain.get(kind, "_t.Any")


def default_text(value):
    return repr(value) if isinstance(value, (int, float, bool, str, list, type(None))) and not (
        isinstance(value, list) and value) else "..."


def stub_of(raw_ops, name):
    function = raw_ops.function(name)
    definition = raw_ops._op_def(function)
    kinds = {attr.name: attr.type for attr in definition.attr}
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        kind = annotation(kinds[parameter.name]) if parameter.name in kinds else "_t.Any"
        if parameter.name == "name":
            kind = "_t.Optional[str]"
        text = "%s: %s" % (parameter.name, kind)
        if parameter.default is not inspect.Parameter.empty:
            text += " = " + default_text(parameter.default)
        parts.append(text)
    if any(keyword.iskeyword(part.split(":")[0]) for part in parts):
        parts = ["**kwargs: _t.Any"]
    result = "_t.Any" if len(definition.output_arg) != 1 or definition.output_arg[0].number_attr or (
        definition.output_arg[0].type_list_attr) else "Tensor"
    if not definition.output_arg:
        result = "Operation"
    return "def %s(%s) -> %s: ...\n" % (name, ", ".join(parts), result)


def write_ops(folder):
    from runnel import raw_ops
    with open(os.path.join(folder, "raw_ops.pyi"), "w", encoding="utf-8") as stream:
        stream.write("import typing as _t\n\n"
                     "from runnel.core.framework import Operation, Tensor\n\n"
                     "def op_names() -> list[str]: ...\ndef snake_case(name: str) -> str: ...\n"
                     "def function(name: str) -> _t.Any: ...\n")
        for name in sorted(raw_ops.op_names()):
            if not name.startswith("_"):
                stream.write(stub_of(raw_ops, name))
        stream.write("def __getattr__(name: str) -> _t.Any: ...\n")


def exported(statement):
    """Returns an import that re-exports its names: `from a import b as b`."""
    source, _, names = statement.partition(" import ")
    names = re.sub(r"[()\s]+", " ", names).strip()
    if names == "*":
        return statement
    return "%s import (%s)" % (source, ", ".join(
        name if " as " in name else "%s as %s" % (name, name) for name in re.split(r",\s*", names)))


def write_names(folder):
    from runnel import _names
    from runnel.core import direct
    rows = {}
    for name, module in _names.LAZY.items():
        rows.setdefault(module, []).append(name)
    home = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "runnel", "__init__.py")
    with open(os.path.join(folder, "__init__.pyi"), "w", encoding="utf-8") as stream:
        stream.write("from typing import Any\n\n")
        with open(home, encoding="utf-8") as source:
            text = source.read()
        for statement in re.findall(r"^from runnel[^\n(]*(?:\([^)]*\))?$", text, re.M):
            stream.write(exported(statement) + "\n")
        stream.write("from runnel import _core as _core\n")
        for module in sorted(_names.SUBMODULES):
            stream.write("from runnel import %s as %s\n" % (module, module))
        for module in sorted(rows):
            for name in sorted(rows[module]):
                stream.write("from runnel.%s import %s as %s\n" % (module, name, name))
        for name, op in sorted(direct.NAMES.items()):
            stream.write("%s = raw_ops.%s\n" % (name, op))
        stream.write("__version__: str\nVERSION: str\nnewaxis: None\ndef __getattr__(name: str) -> Any: ...\n")


def main():
    folder = sys.argv[1]
    write_ops(folder)
    write_names(folder)
    open(os.path.join(folder, "py.typed"), "w").close()


if __name__ == "__main__":
    main()
