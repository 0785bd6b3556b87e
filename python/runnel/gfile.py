"""tf.gfile."""

from runnel.file_io import (
    GFile,
    copy,
    exists,
    glob,
    isdir,
    join,
    listdir,
    makedirs,
    mkdir,
    remove,
    rename,
    rmtree,
    stat,
    walk,
)

FastGFile = Open = GFile
Copy, Exists, Glob, IsDirectory, ListDirectory = copy, exists, glob, isdir, listdir
MakeDirs, MkDir, Remove, Rename, DeleteRecursively, Stat, Walk = makedirs, mkdir, remove, rename, rmtree, stat, walk
__all__ = ["Copy", "DeleteRecursively", "Exists", "FastGFile", "GFile", "Glob", "IsDirectory", "ListDirectory", "MakeDirs", "MkDir", "Open", "Remove",
           "Rename", "Stat", "Walk", "join"]
