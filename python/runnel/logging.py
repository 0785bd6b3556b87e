"""tf.logging: the log of a program, on standard error."""

import logging as _logging
import sys as _sys

DEBUG, INFO, WARN, ERROR, FATAL = _logging.DEBUG, _logging.INFO, _logging.WARNING, _logging.ERROR, _logging.FATAL
_logger = None
_counts: dict = {}


def get_logger():
    """Returns the logger "tensorflow" of Python's logging."""
    global _logger
    if _logger is None:
        logger = _logging.getLogger("tensorflow")
        if not logger.handlers and not _logging.getLogger().handlers:
            handler = _logging.StreamHandler(_sys.stderr)
            handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT))
            logger.addHandler(handler)
            logger.propagate = False
        if logger.level == _logging.NOTSET:
            logger.setLevel(WARN)
        _logger = logger
    return _logger


def debug(msg, *args, **kwargs):
    """Logs a message at level DEBUG."""
    get_logger().debug(msg, *args, **kwargs)


def info(msg, *args, **kwargs):
    """Logs a message at level INFO."""
    get_logger().info(msg, *args, **kwargs)


def warning(msg, *args, **kwargs):
    """Logs a message at level WARN."""
    get_logger().warning(msg, *args, **kwargs)


warn = warning


def error(msg, *args, **kwargs):
    """Logs a message at level ERROR."""
    get_logger().error(msg, *args, **kwargs)


def fatal(msg, *args, **kwargs):
    """Logs a message at level FATAL."""
    get_logger().fatal(msg, *args, **kwargs)


def log(level, msg, *args, **kwargs):
    """Logs a message at the given level."""
    get_logger().log(level, msg, *args, **kwargs)


def vlog(level, msg, *args, **kwargs):
    """Logs a message at the given level."""
    get_logger().log(level, msg, *args, **kwargs)


def _count(msg):
    key = (msg, _sys._getframe(2).f_code, _sys._getframe(2).f_lineno)
    _counts[key] = _counts.get(key, -1) + 1
    return _counts[key]


def log_if(level, msg, condition, *args):
    """Logs a message if the condition is true."""
    if condition:
        log(level, msg, *args)


def log_every_n(level, msg, n, *args):
    """Logs a message every n-th time."""
    if _count(msg) % n == 0:
        log(level, msg, *args)


def log_first_n(level, msg, n, *args):
    """Logs a message the first n times."""
    if _count(msg) < n:
        log(level, msg, *args)


def get_verbosity():
    """Returns the lowest level that is shown."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v):
    """Shows messages of this level and above."""
    get_logger().setLevel(v)


def flush():
    """Flushes the log."""
    for handler in get_logger().handlers:
        handler.flush()


def TaskLevelStatusMessage(msg):  # noqa: N802
    """Logs a message at level ERROR."""
    error(msg)
