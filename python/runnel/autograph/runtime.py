"""What converted code calls: `ag__`."""

from runnel.autograph.conversion import is_converted
from runnel.autograph.loops import for_statement, while_statement
from runnel.autograph.branches import (
    and_, assert_statement, callee, if_expression, if_statement, not_, or_)
from runnel.autograph.state import Undefined, is_defined, known, load

__all__ = ["Undefined", "and_", "assert_statement", "callee", "for_statement", "if_expression", "if_statement", "is_converted", "is_defined",
           "known", "load", "not_", "or_", "while_statement"]
