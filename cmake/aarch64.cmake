# 64-bit ARM on another machine: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DRN_ROOT=FOLDER.
#
# FOLDER has Debian's libraries for arm64 (tools/aarch64.sh fills it). Programs of the build, and the tests, run under
# qemu-user. doc/aarch64.md says what works.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT ${RN_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${RN_ROOT})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RN_ROOT)
