"""Deprecated names and arguments: they work, and warn once."""

_said = set()


def warn_once(old, new):
    """Warns that `old` is deprecated, the first time it is used."""
    if old in _said:
        return
    _said.add(old)
    import warnings
    warnings.warn("tf.%s is deprecated: use tf.%s instead." % (old, new), DeprecationWarning,
                  stacklevel=3)


def warn_argument_once(old, new):
    """Warns that the argument `old` is deprecated, the first time. Called by a helper of the function that has it."""
    if old in _said:
        return
    _said.add(old)
    import warnings
    warnings.warn("The argument '%s' is deprecated: use '%s' instead." % (old, new), DeprecationWarning, stacklevel=4)
