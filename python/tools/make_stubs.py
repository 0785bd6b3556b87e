"""Writes type stubs, so that type checkers know the names of `tf` and their parameters.

    make_stubs.py FOLDER

Imports the built package; writes the files into FOLDER: raw_ops.pyi with one function per op, __init__.pyi with the names of `tf`, a file per
face (nn/__init__.pyi, math/__init__.pyi), and v2/ with the names of TensorFlow 2. A face's functions have the signatures of the live ones.
"""

import enum
import inspect
import keyword
import os
import sys


def annotation(kind):
    """Returns the Python type of an attribute's kind."""
    plain = {"int": "int", "float": "float", "bool": "bool", "string": "str"}
    if kind.startswith("list("):
        return "_t.Sequence[%s]" % plain.get(kind[5:-1], "_t.Any")
    return plain.get(kind, "_t.Any")


def default_text(value):
    """Returns a default as text; "..." if it is not a plain value."""
    if isinstance(value, float) and not abs(value) < float("inf"):
        return "..."
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


def write_names(folder):
    import runnel
    from runnel import _names
    from runnel.core import direct
    present = {name for name, value in vars(runnel).items() if not name.startswith("_") and not inspect.ismodule(value)}
    with open(os.path.join(folder, "__init__.pyi"), "w", encoding="utf-8") as stream:
        stream.write("import typing as _t\n\nfrom runnel import _core as _core\n")
        for module in sorted(_names.SUBMODULES):
            stream.write("from runnel import %s as %s\n" % (module, module))
        for name in sorted((present | set(_names.LAZY)) - set(direct.NAMES) - _names.SUBMODULES - {"newaxis", "VERSION"}):
            stream.write(stub_of_name(name, getattr(runnel, name)))
        for name, op in sorted(direct.NAMES.items()):
            stream.write("%s = raw_ops.%s\n" % (name, op))
        stream.write("__version__: str\nVERSION: str\nnewaxis: None\n")


# --- Faces: modules whose names are lazy

OPERATORS = ["__%s__" % name for name in "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul neg abs "
             "lt le gt ge and rand or ror xor rxor invert getitem".split()]


def is_identifier(name):
    return name.isidentifier() and not keyword.iskeyword(name)


def parameters_of(function):
    """Returns the parameters of a function as text; any if they are not known."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = None
    if parameters is None or not all(is_identifier(parameter.name) for parameter in parameters):
        return "*args: _t.Any, **kwargs: _t.Any"
    parts, kind = [], inspect.Parameter
    for i, parameter in enumerate(parameters):
        star = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is kind.KEYWORD_ONLY and not any(p.kind in (kind.VAR_POSITIONAL, kind.KEYWORD_ONLY) for p in parameters[:i]):
            parts.append("*")
        parts.append("%s%s: _t.Any%s" % (star, parameter.name, "" if parameter.default is kind.empty else " = ..."))
        if parameter.kind is kind.POSITIONAL_ONLY and (i + 1 == len(parameters) or parameters[i + 1].kind is not kind.POSITIONAL_ONLY):
            parts.append("/")
    return ", ".join(parts)


def class_home(value):
    """Returns (module, name) to import a class from, or None."""
    module, name = value.__module__, value.__qualname__
    known = sys.modules.get(module)
    if module.startswith("runnel.") and getattr(known, name, None) is value and os.path.exists(getattr(known, "__file__", None) or ""):
        return module, name
    return None


def stub_of_class(name, value):
    """Returns the lines for a class: it is imported, with what only the live class has added."""
    from runnel.ops import variables
    home = class_home(value)
    if not home:
        return "%s: _t.Any\n" % name
    takes_arguments = type(value).__call__ is not type.__call__ and not issubclass(value, enum.Enum)  # the metaclass does
    # Operators that are added to live classes: those of variables, which are of several kinds.
    operators = OPERATORS if takes_arguments and issubclass(value, variables.Variable) or hasattr(value, "_as_operand") else []
    if not takes_arguments and not operators:
        if home[1] == name:
            return "from %s import %s as %s\n" % (*home, name)
        return "from %s import %s as _%s\n%s = _%s\n" % (*home, name, name, name)
    lines = ["from %s import %s as _%s" % (*home, name), "class %s(_%s):" % (name, name)]
    if takes_arguments:
        lines.append("    def __init__(self, %s) -> None: ..." % parameters_of(value))
    lines += ["    def %s(self, *args: _t.Any) -> _t.Any: ...  # type: ignore[override]" % row for row in operators]
    return "\n".join(lines) + "\n"


def stub_of_name(name, value):
    """Returns the lines for a name of a face."""
    if inspect.isclass(value):
        return stub_of_class(name, value)
    if callable(value) and not isinstance(value, type) and hasattr(value, "__name__"):
        return "def %s(%s) -> _t.Any: ...\n" % (name, parameters_of(value))
    return "%s: _t.Any\n" % name


def write_face(path, names, find, inner):
    """Writes the stub of a face; `inner` are the faces below it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("import typing as _t\n\n")
        for name in inner:
            stream.write("from . import %s as %s\n" % (name, name))
        for name in sorted(set(names) - set(inner)):
            if not is_identifier(name):
                continue
            try:
                stream.write(stub_of_name(name, find(name)))
            except (AttributeError, ImportError):  # absent here, so that type checkers say so too
                continue


def write_faces(folder):
    """Writes a stub for each package of `tf` whose names are lazy."""
    import importlib
    import pkgutil

    import runnel
    from runnel import _names
    for space in sorted(_names.SUBMODULES):
        module = getattr(runnel, space, None)
        path = getattr(module, "__file__", None) or ""
        if "__all__" not in vars(module) or not path.endswith("__init__.py") or "_namespace" not in open(path, encoding="utf-8").read():
            continue
        # Files of the package, which other modules import from, stay what they are.
        files = [row.name for row in pkgutil.iter_modules(module.__path__) if is_identifier(row.name)]
        for row in files:
            importlib.import_module("%s.%s" % (module.__name__, row)) if row in dir(module) else None
        write_face(os.path.join(folder, space, "__init__.pyi"), dir(module), lambda name, module=module: getattr(module, name),
                   [row for row in files if row not in dir(module) or inspect.ismodule(getattr(module, row, None))])


def write_errors(folder):
    """Writes errors.pyi: its classes are made from a table."""
    from runnel import errors
    with open(os.path.join(folder, "errors.pyi"), "w", encoding="utf-8") as stream:
        stream.write("import typing as _t\n\n")
        found = {name: value for name, value in vars(errors).items() if not name.startswith("_")}
        classes = {name: value for name, value in found.items() if inspect.isclass(value) and issubclass(value, Exception)}
        for name, value in sorted(classes.items(), key=lambda row: (len(row[1].__mro__), row[0])):
            base = value.__mro__[1].__name__
            stream.write("class %s(%s):\n    code: int\n    error_code: int\n    message: str\n    node_def: _t.Any\n    op: _t.Any\n"
                         "    def __init__(self, %s) -> None: ...\n" % (name, base if base in classes else "Exception", parameters_of(value)))
        for name, value in sorted(found.items()):
            if name not in classes and not inspect.ismodule(value):
                stream.write(stub_of_name(name, value) if callable(value) else "%s: _t.Any\n" % name)


def write_v2(folder):
    """Writes v2/: a package in the eyes of type checkers, with a file per namespace."""
    from runnel.compat import v2
    from runnel.compat.v2.names import NAMES
    spaces = {"." .join(space.split(".")[:i + 1]) for space in NAMES for i in range(len(space.split(".")))} - {""}
    spaces = {space for space in spaces if not space.startswith("__")}
    for space in ["", *sorted(spaces)]:
        prefix = space and space + "."
        inner = sorted(s[len(prefix):] for s in spaces if s.startswith(prefix) and "." not in s[len(prefix):] and s != space)

        def find(name, prefix=prefix):
            value = v2
            for part in (prefix + name).split("."):
                value = getattr(value, part)
            return value
        write_face(os.path.join(folder, "v2", *space.split("."), "__init__.pyi"), NAMES.get(space, ()), find, inner)
    with open(os.path.join(folder, "v2", "__init__.pyi"), "a", encoding="utf-8") as stream:
        stream.write("from runnel import compat as compat, raw_ops as raw_ops\nkeras: _t.Any\nlosses: _t.Any\nmetrics: _t.Any\noptimizers: _t.Any\n"
                     "initializers: _t.Any\n__version__: str\n")


def main():
    folder = sys.argv[1]
    write_ops(folder)
    write_names(folder)
    write_faces(folder)
    write_errors(folder)
    write_v2(folder)
    open(os.path.join(folder, "py.typed"), "w").close()


if __name__ == "__main__":
    main()
