"""tf.gfile: files and folders."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "io.file_io: FastGFile=GFile GFile Open=GFile",
    "io.file_io: Copy=copy DeleteRecursively=rmtree Exists=exists Glob=glob IsDirectory=isdir ListDirectory=listdir MakeDirs=makedirs "
    "MkDir=mkdir Remove=remove Rename=rename Stat=stat Walk=walk_in_order",
    "io.file_io: copy exists get_registered_schemes glob isdir join listdir makedirs mkdir remove rename rmtree stat walk",
)
