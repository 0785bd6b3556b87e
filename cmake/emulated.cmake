# CUDA without a GPU: kernels compiled by the host's C++ compiler, for the emulated driver of tests/gpu/emulator.

# rn_emulated_compiler(OUT): enables C++, of the C compiler's make (sanitizers do not mix), and says whether there is one. At file
# scope only.
macro(rn_emulated_compiler out)
  if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX} AND CMAKE_C_COMPILER_ID MATCHES Clang)
    get_filename_component(rn_compiler_folder ${CMAKE_C_COMPILER} DIRECTORY)
    get_filename_component(rn_compiler_name ${CMAKE_C_COMPILER} NAME)
    string(REPLACE clang clang++ rn_compiler_name ${rn_compiler_name})
    find_program(CMAKE_CXX_COMPILER NAMES ${rn_compiler_name} clang++ HINTS ${rn_compiler_folder})
  endif()
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    set(${out} TRUE)
  else()
    set(${out} FALSE)
  endif()
endmacro()

# What else kernels are compiled with, here and by the emulated NVRTC.
set(RN_EMULATED_FLAGS -fno-math-errno -ffp-contract=off)
set(RN_EMULATED_FOLDER ${PROJECT_SOURCE_DIR}/tests/gpu/emulator)
# A kernel that calls what there is not fails to link, as with nvcc; the sanitizers' calls are found at run time.
set(RN_EMULATED_LINK_FLAGS -Wl,-z,defs)
if(RN_SANITIZE)
  set(RN_EMULATED_LINK_FLAGS)
  list(APPEND RN_EMULATED_FLAGS -g -fsanitize=${RN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Their handlers are in the C++ runtime, and the programs are C.
  if(CMAKE_C_COMPILER_ID MATCHES Clang AND RN_SANITIZE MATCHES undefined)
    list(APPEND RN_EMULATED_FLAGS -fno-sanitize=function,vptr)
  endif()
endif()

# rn_emulated_image(TARGET FILE.cu ...): the image that cuModuleLoadData of the emulated driver takes; $<TARGET_FILE:TARGET> is its
# path.
function(rn_emulated_image target)
  add_library(${target} MODULE ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX .so CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  target_compile_definitions(${target} PRIVATE RN_EMULATED)
  target_compile_options(${target} PRIVATE -x c++ -O1 -Wno-unknown-pragmas -Wno-unused-function ${RN_EMULATED_FLAGS})
  target_link_options(${target} PRIVATE ${RN_EMULATED_LINK_FLAGS})
  target_include_directories(${target} PRIVATE ${RN_EMULATED_FOLDER} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/kernels/cuda)
endfunction()
