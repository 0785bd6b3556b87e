"""tf.flags: flags of the command line.

    tf.flags.DEFINE_integer("steps", 100, "How many steps.")
    FLAGS = tf.flags.FLAGS       # FLAGS.steps, parsed by tf.app.run or at first use
"""

import sys

from runnel.core.naming import named


class Error(Exception):
    """The base of errors of flags."""


class DuplicateFlagError(Error):
    """A flag was defined twice."""


class IllegalFlagValueError(Error):
    """A flag has a value that it does not accept."""


class UnrecognizedFlagError(Error):
    """The command line has a flag that was not defined."""


class UnparsedFlagAccessError(Error):
    """A flag was read before the command line was parsed."""


class ValidationError(Error):
    """A flag's value did not pass its validator."""


class Flag:
    """One flag."""

    def __init__(self, name, default, help_text, parse, kind):
        self.name, self.default, self.help, self.parse, self.kind = name, default, help_text, parse, kind
        self.value = default
        self.present = False
        self.validators = []

    def set(self, text):
        """Sets the value from text."""
        try:
            value = self.parse(text)
        except (ValueError, TypeError) as error:
            raise IllegalFlagValueError("flag --%s=%s: %s" % (self.name, text, error)) from None
        self.value = value
        self.present = True


def _boolean(text):
    if isinstance(text, (bool, int)):
        return bool(text)
    lowered = text.lower()
    if lowered in ("true", "t", "1"):
        return True
    if lowered in ("false", "f", "0"):
        return False
    raise ValueError("Non-boolean argument to boolean flag: %s" % text)


class FlagValues:
    """All flags; values are read as attributes or by index."""

    def __init__(self):
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False
        self.__dict__["_rest"] = []

    def _define(self, flag):
        if flag.name in self._flags:
            raise DuplicateFlagError("The flag '%s' is defined twice." % flag.name)
        self._flags[flag.name] = flag
        return flag

    def __call__(self, argv=None, known_only=False):
        """Parses a command line. Returns the program's name and the arguments that are not flags."""
        argv = list(sys.argv if argv is None else argv)
        rest, at = argv[:1], 1
        while at < len(argv):
            text = argv[at]
            at += 1
            if text == "--":
                rest += argv[at:]
                break
            if not text.startswith("-") or text == "-":
                rest.append(text)
                continue
            name, equals, value = text.lstrip("-").partition("=")
            if name in ("help", "helpfull", "h") and name not in self._flags:
                sys.stdout.write(self.main_module_help())
                sys.exit(1)
            flag = self._flags.get(name) or self._flags.get(name.replace("-", "_"))
            if flag is None and name.startswith("no") and name[2:] in self._flags and not equals:
                flag, value, equals = self._flags[name[2:]], "false", "="
            if flag is None:
                if known_only:
                    rest.append(text)
                    continue
                raise UnrecognizedFlagError("Unknown command line flag '%s'" % name)
            if not equals:
                if flag.kind == "boolean":
                    value = "true"
                elif at < len(argv):
                    value = argv[at]
                    at += 1
                else:
                    raise Error("Missing value for flag --%s" % name)
            flag.set(value)
        self.__dict__["_parsed"] = True
        for flag in self._flags.values():
            for check, message in flag.validators:
                if not check(flag.value):
                    raise IllegalFlagValueError("flag --%s=%s: %s" % (flag.name, flag.value, message))
        return rest

    def is_parsed(self):
        """Tells whether the command line was parsed."""
        return self._parsed

    def mark_as_parsed(self):
        """Marks the command line as parsed."""
        self.__dict__["_parsed"] = True

    def unparse_flags(self):
        """Marks the command line as not parsed."""
        self.__dict__["_parsed"] = False

    def __getattr__(self, name):
        flags = self.__dict__["_flags"]
        if name not in flags:
            raise AttributeError(name)
        if not self._parsed:
            self(known_only=True)  # the first read parses, as in 1.x
        return flags[name].value

    def __setattr__(self, name, value):
        if name not in self._flags:
            raise AttributeError(name)
        self._flags[name].value = value

    def __delattr__(self, name):
        del self._flags[name]

    def __getitem__(self, name):
        return self._flags[name]

    def __contains__(self, name):
        return name in self._flags

    def __iter__(self):
        return iter(sorted(self._flags))

    def __len__(self):
        return len(self._flags)

    def __dir__(self):
        return sorted(self._flags)

    def flag_values_dict(self):
        """Returns {name: value}."""
        return {name: flag.value for name, flag in self._flags.items()}

    def set_default(self, name, value):
        """Changes a flag's default."""
        flag = self._flags[name]
        flag.default = value
        if not flag.present:
            flag.value = value

    def main_module_help(self):
        """Returns the help text of the flags."""
        lines = ["flags:\n"]
        for name in sorted(self._flags):
            flag = self._flags[name]
            lines.append("  --%s: %s\n    (default: %r)\n" % (name, flag.help, flag.default))
        return "".join(lines)


FLAGS = FlagValues()


def _definer(kind, parse, doc):
    def define(name, default, help, flag_values=FLAGS, required=False, **kwargs):  # noqa: A002
        value = None if default is None else parse(default)
        flag = flag_values._define(Flag(name, value, help, parse, kind))
        if required:
            mark_flag_as_required(name, flag_values)
        return flag
    return named(define, "DEFINE_" + kind, doc)


def _list(text):
    return list(text) if isinstance(text, (list, tuple)) else [part.strip() for part in text.split(",")] if text else []


DEFINE_string = _definer("string", str, "Defines a flag whose value is a string.")
DEFINE_integer = _definer("integer", lambda text: text if isinstance(text, int) else int(text, 0), "Defines a flag whose value is an integer.")
DEFINE_float = _definer("float", float, "Defines a flag whose value is a float.")
DEFINE_boolean = DEFINE_bool = _definer("boolean", _boolean, "Defines a boolean flag: --name, --noname or --name=true.")
DEFINE_list = _definer("list", _list, "Defines a flag whose value is a comma-separated list of strings.")
DEFINE_spaceseplist = _definer("spaceseplist", lambda text: text if isinstance(text, list) else text.split(),
                               "Defines a flag whose value is a space-separated list of strings.")


def DEFINE_enum(name, default, enum_values, help, flag_values=FLAGS, **kwargs):  # noqa: A002
    """Defines a flag whose value is one of `enum_values`."""
    def parse(text):
        if text not in enum_values:
            raise ValueError("value should be one of <%s>" % "|".join(enum_values))
        return text
    return flag_values._define(Flag(name, default, help, parse, "enum"))


def _multi(parse, kind):
    def define(name, default, help, flag_values=FLAGS, **kwargs):  # noqa: A002
        default = None if default is None else [parse(v) for v in (default if isinstance(default, (list, tuple)) else [default])]
        flag = Flag(name, default, help, parse, kind)

        def add(text):
            flag.value = (flag.value if flag.present else []) + [parse(text)]
            flag.present = True
        flag.set = add
        return flag_values._define(flag)
    return named(define, "DEFINE_" + kind, "Defines a flag that may be given several times: a list of %s." % parse.__name__)


DEFINE_multi_string = _multi(str, "multi_string")
DEFINE_multi_integer = _multi(int, "multi_integer")
DEFINE_multi_float = _multi(float, "multi_float")


def register_validator(flag_name, checker, message="Flag validation failed", flag_values=FLAGS):
    """Adds a check that a flag's value must pass."""
    flag_values[flag_name].validators.append((checker, message))


def validator(flag_name, message="Flag validation failed", flag_values=FLAGS):
    """A decorator that adds a check that a flag's value must pass."""
    def decorate(function):
        register_validator(flag_name, function, message, flag_values)
        return function
    return decorate


def mark_flag_as_required(flag_name, flag_values=FLAGS):
    """Makes a flag required: parsing fails if it is not given."""
    register_validator(flag_name, lambda value: value is not None,
                       "Flag --%s must have a value other than None." % flag_name, flag_values)


def mark_flags_as_required(flag_names, flag_values=FLAGS):
    """Makes several flags required."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)


def set_default(flag_holder, value):
    """Changes a flag's default."""
    FLAGS.set_default(flag_holder.name, value)
