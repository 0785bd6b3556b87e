"""Notes on the nodes of a tree, under keys."""

import ast
import enum

_FIELD = "___pyct_anno"


class NoValue(enum.Enum):
    """A key; its value only documents it."""

    def of(self, node, default=None):
        """Returns the note of a node under this key."""
        return getanno(node, self, default=default)

    def add_to(self, node, value):
        """Sets the note of a node under this key."""
        setanno(node, self, value)

    def exists(self, node):
        """Tells whether a node has a note under this key."""
        return hasanno(node, self)

    def __repr__(self):
        return str(self.name)


class Basic(NoValue):
    """Notes on any node."""

    QN = "the qualified name that a node is (qual_names)"
    SKIP_PROCESSING = "the node stays as it is"
    INDENT_BLOCK_REMAINDER = "(statements, names): the rest of the block goes into these statements"
    ORIGIN = "where the node comes from (origin_info)"
    DIRECTIVES = "what the user asked for about a statement"
    EXTRA_LOOP_TEST = "a further condition of a for loop"


class Static(NoValue):
    """Results of static_analysis."""

    IS_PARAM = "the name is a parameter"
    SCOPE = "names that a node reads and assigns (activity)"
    ARGS_SCOPE = "the same of the arguments of a call"
    COND_SCOPE = "the same of the condition of an if or while"
    BODY_SCOPE = "the same of the body of a statement"
    ORELSE_SCOPE = "the same of the else block of a statement"
    DEFINITIONS = "the assignments that may have given a name its value (reaching_definitions)"
    ORIG_DEFINITIONS = "the same before anything was transformed"
    DEFINED_FNS_IN = "the local functions that may exist before a node (reaching_fndefs)"
    DEFINED_VARS_IN = "the names that may have a value before a statement (reaching_definitions)"
    LIVE_VARS_OUT = "the names that may be read after a statement (liveness)"
    LIVE_VARS_IN = "the names that may be read from a statement on (liveness)"
    TYPES = "the types that an expression may have (type_inference)"
    CLOSURE_TYPES = "the types that the free variables of a function may have (type_inference)"
    VALUE = "the value of an expression, if it is known (type_inference)"


FAIL = object()


def keys(node, field_name=_FIELD):
    """Returns the keys of a node's notes."""
    return frozenset(getattr(node, field_name, ()))


def getanno(node, key, default=FAIL, field_name=_FIELD):
    """Returns a note, or the default. Without a default, a missing note is an AttributeError."""
    notes = getattr(node, field_name, {})
    if default is FAIL and key not in notes:
        raise AttributeError("%s has no note %r" % (type(node).__name__, key))
    return notes.get(key, default)


def hasanno(node, key, field_name=_FIELD):
    """Tells whether a node has a note."""
    return key in getattr(node, field_name, ())


def setanno(node, key, value, field_name=_FIELD):
    """Sets a note."""
    if not hasattr(node, field_name):
        setattr(node, field_name, {})
    getattr(node, field_name)[key] = value


def delanno(node, key, field_name=_FIELD):
    """Removes a note."""
    del getattr(node, field_name)[key]


def copyanno(from_node, to_node, key, field_name=_FIELD):
    """Copies a note from one node to another, if there is one."""
    if hasanno(from_node, key, field_name):
        setanno(to_node, key, getanno(from_node, key, field_name=field_name), field_name)


def dup(node, copy_map, field_name=_FIELD):
    """Repeats notes of a whole tree under other keys: {key: new key}."""
    for one in ast.walk(node):
        for key, new_key in copy_map.items():
            if hasanno(one, key, field_name):
                setanno(one, new_key, getanno(one, key, field_name=field_name), field_name)
