"""What cannot be converted."""

import ast

from runnel.autograph.pyct import errors


class UnsupportedFeaturesChecker(ast.NodeVisitor):
    """Raises UnsupportedLanguageElementError for what a tree may not have."""

    def visit_Attribute(self, node):
        if node.attr.startswith("__") and not node.attr.endswith("__"):  # its name depends on the class, which generated code is outside of
            raise errors.UnsupportedLanguageElementError("mangled names are not yet supported: %s" % node.attr)
        self.generic_visit(node)

    def _loop(self, node):
        if node.orelse:
            raise errors.UnsupportedLanguageElementError("%s/else statement not yet supported" % type(node).__name__.lower())
        self.generic_visit(node)

    visit_For = visit_While = _loop

    def _generator(self, node):
        raise errors.UnsupportedLanguageElementError("generators are not supported")

    visit_Yield = visit_YieldFrom = _generator


def verify(node):
    """Raises an error if a tree cannot be converted."""
    UnsupportedFeaturesChecker().visit(node)
