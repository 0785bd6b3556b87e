"""tf.sysconfig: how to compile plug-ins."""

import os

CXX11_ABI_FLAG = 1
CXX_VERSION = 201703
MONOLITHIC_BUILD = 0


def get_include():
    """Returns the folder of the C headers, in the source tree or under an installed prefix."""
    import runnel
    home = os.path.dirname(runnel.__file__)
    for folder in (os.path.join(home, "include"), os.path.join(os.path.dirname(os.path.dirname(home)), "include")):
        if os.path.isdir(os.path.join(folder, "tensorflow")):
            return folder
    return "/usr/local/include"


def get_lib():
    """Returns the folder of libtensorflow.so.2."""
    import runnel
    for folder in [os.path.dirname(runnel.__file__)] + [os.path.dirname(os.path.dirname(p)) for p in runnel.__path__]:
        if os.path.exists(os.path.join(folder, "libtensorflow.so.2")):
            return folder
    return "/usr/local/lib"


def get_compile_flags():
    """Returns the compiler's flags, with Eigen's folder for C++ (doc/cpp.md)."""
    return ["-I" + get_include(), "-I/usr/include/eigen3", "-D_GLIBCXX_USE_CXX11_ABI=1", "--std=c++17",
            "-DEIGEN_MAX_ALIGN_BYTES=64"]


def get_link_flags():
    """Returns the linker's flags."""
    flags = ["-L" + get_lib(), "-l:libtensorflow.so.2"]
    if os.path.exists(os.path.join(get_lib(), "libtensorflow_protos.so.2")):
        flags += ["-l:libtensorflow_protos.so.2", "-lprotobuf", "-labsl_status", "-labsl_statusor", "-labsl_strings",
                  "-labsl_cord", "-labsl_raw_logging_internal", "-labsl_throw_delegate"]
    return flags


def get_build_info():
    """Returns a dict that describes the build."""
    return {"is_cuda_build": False, "is_rocm_build": False}
