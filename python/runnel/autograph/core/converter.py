"""tensorflow.python.autograph.core.converter: options of a conversion, and the base of its steps."""

from runnel.autograph.experimental import Feature
from runnel.autograph.pyct import anno, ast_util, parser, templates, transformer


class ConversionOptions:
    """How functions are converted.

    |recursive|: what they call is converted, too. |user_requested|: someone asked for this function by name. |internal_convert_user_code|: functions
    of the user are converted at all. |optional_features|: a Feature, several, or None.
    """

    def __init__(self, recursive=False, user_requested=False, internal_convert_user_code=True, optional_features=Feature.ALL):
        self.recursive, self.user_requested, self.internal_convert_user_code = recursive, user_requested, internal_convert_user_code
        if optional_features is None or isinstance(optional_features, Feature):
            optional_features = () if optional_features is None else (optional_features,)
        self.optional_features = frozenset(optional_features)

    def as_tuple(self):
        """Returns what makes options equal."""
        return self.recursive, self.user_requested, self.internal_convert_user_code, self.optional_features

    def __hash__(self):
        return hash(self.as_tuple())

    def __eq__(self, other):
        return isinstance(other, ConversionOptions) and self.as_tuple() == other.as_tuple()

    def __str__(self):
        return "ConversionOptions{%s}" % (self.as_tuple(),)

    def uses(self, feature):
        """Tells whether a Feature is on."""
        return Feature.ALL in self.optional_features or feature in self.optional_features

    def call_options(self):
        """Returns the options for what is called."""
        return ConversionOptions(recursive=self.recursive, user_requested=False, internal_convert_user_code=self.recursive,
                                 optional_features=self.optional_features)

    def to_ast(self):
        """Returns an expression for generated code."""
        if self == STANDARD_OPTIONS:
            return parser.parse_expression("ag__.STD")
        features = "".join("ag__.%s, " % feature for feature in sorted(self.optional_features, key=str))
        return parser.parse_expression("ag__.ConversionOptions(recursive=%r, user_requested=%r, optional_features=(%s), internal_convert_user_code=%r)" % (
            self.recursive, self.user_requested, features, self.internal_convert_user_code))


STANDARD_OPTIONS = ConversionOptions(recursive=True, user_requested=False, internal_convert_user_code=True, optional_features=None)


class ProgramContext:
    """What all functions of a program share."""

    def __init__(self, options, autograph_module=None):
        self.options, self.autograph_module = options, autograph_module


class Base(transformer.Base):
    """The base of conversions of trees. The context's |user| is a ProgramContext."""

    def get_definition_directive(self, node, directive, arg, default):
        """Returns what the user said about a name: the argument of a directive. Raises ValueError if its definitions disagree."""
        found = [definition.directives[directive][arg] for definition in anno.getanno(node, anno.Static.ORIG_DEFINITIONS, ())
                 if arg in definition.directives.get(directive, ())]
        if not found:
            return default
        for other in found[1:]:
            if not ast_util.matches(other, found[0]):
                raise ValueError("%s has several definitions, and %s of %s differs: %s" % (
                    parser.unparse(node, include_encoding_marker=False), arg, directive,
                    ", ".join(parser.unparse(one, include_encoding_marker=False) for one in found)))
        return found[0]

    def guarded(self, flag, statements, like):
        """Returns `if not flag: statements`."""
        made = templates.replace("if not flag:\n    body", flag=flag, body=statements)[0]
        anno.copyanno(like, made, anno.Basic.ORIGIN)
        return made

    def new_name(self, root, *scopes):
        """Returns a name that is not used in these scopes."""
        taken = set().union(*(scope.referenced for scope in scopes if scope is not None))
        return self.ctx.namer.new_symbol(root, taken)
