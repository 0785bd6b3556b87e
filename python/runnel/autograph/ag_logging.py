"""tf.autograph.set_verbosity and trace: what the conversion of functions reports."""

import os
import sys
import traceback

from runnel import logging

verbosity_level = None  # what set_verbosity set; None: the variable AUTOGRAPH_VERBOSITY of the environment says it
echo_log_to_stdout = hasattr(sys, "ps1") or hasattr(sys, "ps2")  # as in a shell of Python


def set_verbosity(level, alsologtostdout=False):
    """Sets how much the conversion of functions reports in the log; 0 is the least.

    Args:
      level: from 1 on, every function that is converted or left as it is; from 10 on, the code that it becomes.
      alsologtostdout: whether the same is printed.
    """
    global verbosity_level, echo_log_to_stdout
    verbosity_level, echo_log_to_stdout = int(level), alsologtostdout


def get_verbosity():
    """Returns the level of reports."""
    return int(os.environ.get("AUTOGRAPH_VERBOSITY", 0)) if verbosity_level is None else verbosity_level


def has_verbosity(level):
    """Tells whether reports of a level are wanted."""
    return get_verbosity() >= level


def trace(*args):
    """Prints its arguments while a graph is being built."""
    print(*args)


def _echo(prefix, msg, args, kwargs):
    if echo_log_to_stdout:
        print(prefix + (msg % args if args else msg), flush=True)
        if kwargs.get("exc_info", False):
            traceback.print_exc()


def log(level, msg, *args, **kwargs):
    """Reports what is worth a level."""
    if has_verbosity(level):
        logging.info(msg, *args, **kwargs)
        _echo("", msg, args, kwargs)


def error(level, msg, *args, **kwargs):
    """Reports a failure that is worth a level."""
    if has_verbosity(level):
        logging.error(msg, *args, **kwargs)
        _echo("ERROR: ", msg, args, kwargs)


def warning(msg, *args, **kwargs):
    """Reports what is always worth it."""
    logging.warning(msg, *args, **kwargs)
    _echo("WARNING: ", msg, args, kwargs)
