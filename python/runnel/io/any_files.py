"""Files of the operating system and of plug-ins: paths with a scheme ("toyfs://disk/a") go to the library."""

import builtins
import glob as glob_lib
import io
import os
import re

from runnel import _core, errors


def has_scheme(path):
    """Tells whether a path belongs to a file system of the library."""
    return re.match(r"[a-zA-Z][a-zA-Z0-9.]*://", path) is not None


def _run(op, **inputs):
    """Runs an op that reads files, outside of the program's graph."""
    from runnel import raw_ops
    from runnel.core import framework, session
    graph = framework.Graph()
    with graph.as_default(), framework.device("/cpu:0"):
        value = getattr(raw_ops, op)(**inputs)
    with session.Session(graph=graph) as sess:
        return sess.run(value)


def stat(path):
    """Returns (bytes, nanoseconds since 1970, is_directory)."""
    if has_scheme(path):
        return _core.file_stat(path)
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, os.path.isdir(path)


def exists(path):
    """Tells whether a file or folder exists."""
    if not has_scheme(path):
        return os.path.exists(path)
    try:
        _core.file_stat(path)
    except (errors.NotFoundError, errors.FailedPreconditionError):
        return False
    return True


def isdir(path):
    """Tells whether a path is a folder."""
    return exists(path) and stat(path)[2] if has_scheme(path) else os.path.isdir(path)


def isfile(path):
    """Tells whether a path is a file."""
    return exists(path) and not stat(path)[2] if has_scheme(path) else os.path.isfile(path)


def getmtime(path):
    """Returns when a file was last changed, in seconds since 1970."""
    return stat(path)[1] / 1e9


def listdir(path):
    """Returns the names in a folder."""
    return _core.file_names(path) if has_scheme(path) else os.listdir(path)


def mkdir(path):
    """Creates a folder."""
    if has_scheme(path):
        _core.file_make_directory(path)
    else:
        os.mkdir(path)


def makedirs(path):
    """Creates a folder and its parents, unless it exists."""
    if not has_scheme(path):
        os.makedirs(path, exist_ok=True)
        return
    root = re.match(r"[^:]*://[^/]*/?", path).group()
    at = root
    for name in path[len(root):].split("/"):
        at = at + name if at.endswith("/") else at + "/" + name
        if name and not isdir(at):
            _core.file_make_directory(at)


def remove(path):
    """Removes a file."""
    if has_scheme(path):
        _core.file_remove(path)
    else:
        os.remove(path)


def rmtree(path):
    """Removes a folder and its contents."""
    if has_scheme(path):
        _core.file_remove_tree(path)
    else:
        import shutil
        shutil.rmtree(path)


def copyfile(source, target):
    """Copies a file."""
    if has_scheme(source) or has_scheme(target):
        with open(source, "rb") as stream, open(target, "wb") as out:
            out.write(stream.read())
    else:
        import shutil
        shutil.copyfile(source, target)


def replace(source, target):
    """Moves a file. Between file systems, and on those of plug-ins, it is copied."""
    if has_scheme(source) or has_scheme(target):
        copyfile(source, target)
        remove(source)
    else:
        os.replace(source, target)


def glob(pattern):
    """Returns the paths that match a pattern."""
    if not has_scheme(pattern):
        return glob_lib.glob(pattern)
    return [path.decode() for path in _run("MatchingFiles", pattern=pattern)]


class _Stream(io.BytesIO):
    """A file of the library: read as a whole, and written as a whole when it is flushed or closed."""

    def __init__(self, path, mode):
        reads = "r" in mode or ("a" in mode and exists(path))
        super().__init__(_run("ReadFile", filename=path) if reads else b"")
        self.name = path
        self._may_write = mode.strip("b") != "r"
        self._is_changed = "r" not in mode
        if "a" in mode:
            self.seek(0, io.SEEK_END)
        self.flush()

    def write(self, data):
        self._is_changed = True
        return super().write(data)

    def flush(self):
        super().flush()
        if self._may_write and self._is_changed:
            _core.file_write(self.name, self.getvalue())
            self._is_changed = False

    def close(self):
        if not self.closed:
            try:
                self.flush()
            finally:
                super().close()


def open(path, mode="r", encoding=None):
    """Like the built-in function."""
    if not has_scheme(path):
        return builtins.open(path, mode, encoding=encoding)
    stream = _Stream(path, mode)
    return stream if "b" in mode else io.TextIOWrapper(stream, encoding=encoding or "utf-8")
