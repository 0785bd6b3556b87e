"""Files and folders: tf.gfile and tf.io.gfile."""

import collections
import contextlib
import os

from runnel import errors
from runnel.io import any_files


@contextlib.contextmanager
def _errors(path):
    """A context manager that turns errors of the system into errors of tf."""
    try:
        yield
    except FileNotFoundError as error:
        raise errors.NotFoundError(None, None, "%s; %s" % (path, error.strerror)) from None
    except FileExistsError:
        raise errors.AlreadyExistsError(None, None, "file already exists: %s" % path) from None
    except (PermissionError, IsADirectoryError, NotADirectoryError, OSError) as error:
        cls = errors.PermissionDeniedError if isinstance(error, PermissionError) else errors.FailedPreconditionError
        raise cls(None, None, "%s; %s" % (path, error.strerror)) from None


def _path(path):
    path = os.fspath(path)
    path = path.decode() if isinstance(path, bytes) else path
    return path[7:] if path.startswith("file://") else path


class GFile:
    """A file, opened at its first use."""

    def __init__(self, name, mode="r", encoding="utf-8"):
        self._encoding = encoding
        if mode not in ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "rb+", "wb+", "ab+", "r+b", "w+b", "a+b"):
            raise errors.InvalidArgumentError(None, None, "mode is not 'r' or 'w' or 'a'")
        self._name = _path(name)
        self._mode = mode
        self._file = None

    @property
    def name(self):
        return self._name

    @property
    def mode(self):
        return self._mode

    def _open(self):
        if self._file is None:
            with _errors(self._name):
                self._file = any_files.open(self._name, self._mode, **({} if "b" in self._mode else {"encoding": self._encoding}))
        return self._file

    def _check(self, letters):
        if not any(letter in self._mode for letter in letters):
            raise errors.PermissionDeniedError(None, None, "File isn't open for %s" % (
                "reading" if "r" in letters else "writing"))

    def read(self, n=-1):
        self._check("r+")
        if n < -1:
            raise errors.InvalidArgumentError(None, None, "Negative number of bytes to read: %d" % n)
        return self._open().read(n)

    def write(self, file_content):
        self._check("wa+")
        if isinstance(file_content, bytes) and "b" not in self._mode:
            self._open().flush()  # flush text written before
            self._open().buffer.write(file_content)
            return
        if isinstance(file_content, str) and "b" in self._mode:
            file_content = file_content.encode("utf-8")
        self._open().write(file_content)

    def readline(self):
        self._check("r+")
        return self._open().readline()

    def readlines(self):
        self._check("r+")
        return self._open().readlines()

    def seek(self, offset=None, whence=0, position=None):
        if (offset is None) == (position is None):
            raise TypeError("seek(): offset argument required" if offset is None else
                            "seek(): offset and position may not be set simultaneously.")
        stream, offset = self._open(), position if offset is None else offset
        if whence == 1:  # text files of Python seek from their beginning only
            offset, whence = stream.tell() + offset, 0
        elif whence == 2 and "b" not in self._mode:
            offset, whence = self.size() + offset, 0
        if whence not in (0, 2):
            raise errors.InvalidArgumentError(None, None, "Invalid whence argument: %d. Valid values are 0, 1, or 2." % whence)
        if offset < 0 and whence == 0:
            raise errors.InvalidArgumentError(None, None, "Negative offset to seek to: %d" % offset)
        stream.seek(offset, whence)

    def tell(self):
        return self._open().tell()

    def size(self):
        return stat(self._name).length

    def seekable(self):
        return True

    def flush(self):
        if self._file is not None:
            self._file.flush()

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def __enter__(self):
        if "r" not in self._mode:
            self._open()
        return self

    def __exit__(self, *exc):
        self.close()


class FileIO(GFile):
    """A file, as TensorFlow's inner path tensorflow.python.lib.io.file_io has it: writing goes to the file at once."""

    def _open(self):
        if self._file is None and self._mode.startswith("r+") and not exists(self._name):
            write_string_to_file(self._name, "")
        return super()._open()

    def write(self, file_content):
        place = self._open().tell() if "+" in self._mode else None  # reading goes on where it was
        super().write(file_content)
        self.flush()
        if place is not None and not self._mode.startswith("a"):
            self._open().seek(place)


FileStatistics = collections.namedtuple("FileStatistics", ["length", "mtime_nsec", "is_directory"])


def exists(path):
    """Tells whether a file or folder exists."""
    return any_files.exists(_path(path))


def isdir(path):
    """Tells whether a path is a folder."""
    return any_files.isdir(_path(path))


def copy(src, dst, overwrite=False):
    """Copies a file."""
    src, dst = _path(src), _path(dst)
    if any_files.exists(dst) and not overwrite:
        raise errors.AlreadyExistsError(None, None, "file already exists")
    with _errors(src):
        any_files.copyfile(src, dst)


def rename(src, dst, overwrite=False):
    """Moves a file."""
    src, dst = _path(src), _path(dst)
    if any_files.exists(dst) and not overwrite:
        raise errors.AlreadyExistsError(None, None, "file already exists")
    with _errors(src):
        any_files.replace(src, dst)


def remove(path):
    """Deletes a file."""
    with _errors(path):
        any_files.remove(_path(path))


def rmtree(path):
    """Deletes a folder and its contents."""
    with _errors(path):
        any_files.rmtree(_path(path))


def mkdir(path):
    """Creates a folder."""
    with _errors(path):
        any_files.mkdir(_path(path))


def makedirs(path):
    """Creates a folder and its parents, unless it exists."""
    with _errors(path):
        any_files.makedirs(_path(path))


def listdir(path):
    """Returns the names in a folder."""
    if not isdir(path):
        raise errors.NotFoundError(None, None, "Could not find directory %s" % path)
    with _errors(path):
        return any_files.listdir(_path(path))


def glob(pattern):
    """Returns the files that match a pattern, or one of several."""
    patterns = [pattern] if isinstance(pattern, (str, bytes)) or hasattr(pattern, "__fspath__") else pattern
    return [path for one in patterns for path in sorted(any_files.glob(_path(one)))]


def walk_in_order(top, in_order=True):
    """Does what `walk` does; the name of 1.x."""
    return walk(top, in_order)


def walk(top, topdown=True, onerror=None):
    """Yields (folder, subfolders, files) of a tree."""
    top = _path(top)
    if not any_files.has_scheme(top):
        for folder, folders, files in os.walk(top, topdown=topdown, onerror=onerror):
            yield folder, sorted(folders), sorted(files)
        return
    names = sorted(any_files.listdir(top))
    folders = [name for name in names if any_files.isdir(join(top, name))]
    row = top, folders, [name for name in names if name not in folders]
    if topdown:
        yield row
    for name in folders:
        yield from walk(join(top, name), topdown, onerror)
    if not topdown:
        yield row


def stat(path):
    """Returns the size, time and kind of a file."""
    with _errors(path):
        return FileStatistics(*any_files.stat(_path(path)))


def join(path, *paths):
    """Joins parts of a path. After a scheme alone ("ram://") no "/" is added."""
    first, *rest = (os.fsdecode(part) for part in (path, *paths))
    return first + os.path.join(*rest) if first.endswith("://") and rest else os.path.join(first, *rest)


def read_file_to_string(filename, binary_mode=False):
    """Returns the contents of a file."""
    with GFile(filename, "rb" if binary_mode else "r") as stream:
        return stream.read()


def write_string_to_file(filename, file_content):
    """Writes a string to a file."""
    with GFile(filename, "w") as stream:
        stream.write(file_content)


def atomic_write_string_to_file(filename, contents, overwrite=True):
    """Writes a string to a file: readers see the whole of it, or what was there before."""
    path = _path(filename)
    temporary = path if any_files.has_scheme(path) else "%s.tmp%d" % (path, os.getpid())
    write_string_to_file(temporary, contents)
    if temporary != path:
        try:
            rename(temporary, path, overwrite)
        except errors.OpError:
            remove(temporary)
            raise


def _blocks(path, size):
    with GFile(path, "rb") as stream:
        while True:
            block = stream.read(size)
            if not block:
                return
            yield block


def filecmp(filename_a, filename_b):
    """Tells whether two files have the same contents."""
    import itertools
    if stat(filename_a).length != stat(filename_b).length:
        return False
    return all(a == b for a, b in itertools.zip_longest(_blocks(filename_a, 1 << 24), _blocks(filename_b, 1 << 24)))


def file_crc32(filename, block_size=1 << 24):
    """Returns the checksum of a file, in hexadecimal."""
    import zlib
    crc = 0
    for block in _blocks(filename, block_size):
        crc = zlib.crc32(block, crc)
    return hex(crc & 0xFFFFFFFF)


def has_atomic_move(path):
    """Tells whether files of this file system are moved at once."""
    return not any_files.has_scheme(_path(path)) or str(path).startswith("ram://")


def get_registered_schemes():
    """Returns the schemes of paths that can be opened."""
    return ["", "file", "ram"]


file_exists, is_directory, delete_file, delete_recursively = exists, isdir, remove, rmtree
create_dir, recursive_create_dir, list_directory, get_matching_files = mkdir, makedirs, listdir, glob
