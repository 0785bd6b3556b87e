"""Keys of notes that analyses leave (see anno)."""

import enum


class NoValue(enum.Enum):
    """A key; its value only documents it."""

    def __repr__(self):
        return self.name


class NodeAnno(NoValue):
    """Notes of the activity analysis: Scopes of parts of a node."""

    IS_LOCAL = "the name is local to the function"
    IS_PARAM = "the name is a parameter"
    IS_MODIFIED_SINCE_ENTRY = "the name has been assigned in the function"
    ARGS_SCOPE = "the arguments of a call"
    COND_SCOPE = "the condition of an if or while"
    ITERATE_SCOPE = "the assignment of the target of a for"
    ARGS_AND_BODY_SCOPE = "a function, with its arguments"
    BODY_SCOPE = "the body of a statement or function"
    ORELSE_SCOPE = "the else block of a statement"
