"""Names and docstrings of functions that are made from a table."""


def named(function, name, doc):
    """Gives a function its public name and docstring, which help() shows. Returns the function."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
