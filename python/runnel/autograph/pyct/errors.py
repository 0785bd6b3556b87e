"""Errors of source transformations."""


class PyCTError(Exception):
    """The base of these errors."""


class UnsupportedLanguageElementError(PyCTError, NotImplementedError):
    """The code has something that cannot be transformed."""


class InaccessibleSourceCodeError(PyCTError, ValueError):
    """The source of a function is not there."""
