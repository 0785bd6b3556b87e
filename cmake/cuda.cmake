# Building the CUDA part.

# rn_embed_jit_headers(TARGET): the headers that the loop compiler (src/kernels/cuda/jit) hands to NVRTC.
function(rn_embed_jit_headers target)
  set(folder ${PROJECT_SOURCE_DIR}/src/kernels/cuda)
  rn_embed(${target} ${folder}/prelude.cuh rn_jit_text_prelude)
  foreach(name scalar_ops special_ops complex_ops loops)
    rn_embed(${target} ${folder}/jit/${name}.cuh rn_jit_text_${name})
  endforeach()
  foreach(name special special_gamma special_bessel)
    rn_embed(${target} ${PROJECT_SOURCE_DIR}/src/kernels/${name}.h rn_jit_text_${name})
  endforeach()
endfunction()

# The host code of the CUDA part, compiled once; rn_cuda_part links it with device code.
file(GLOB_RECURSE RN_CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/cuda/*.c ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.c)
file(GLOB_RECURSE RN_CUDA_KERNELS CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src/kernels/cuda ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu)

# rn_cuda_code(TARGET IMAGES ...): the host code of the CUDA part, with one image per .cu file, in the order of RN_CUDA_KERNELS, becomes
# part of TARGET.
function(rn_cuda_code target)
  set(table "#include \"device/cuda/card.h\"\n")
  set(rows "")
  foreach(kernel image IN ZIP_LISTS RN_CUDA_KERNELS ARGN)
    string(REGEX REPLACE "\\.cu$" "" name ${kernel})
    string(REGEX REPLACE "[^a-zA-Z0-9]" "_" symbol rn_cuda_image_${name})
    string(APPEND table "extern const char ${symbol}[];\n")
    string(APPEND rows "    {\"${name}\", ${symbol}},\n")
    rn_embed(${target} ${image} ${symbol})
  endforeach()
  list(LENGTH RN_CUDA_KERNELS count)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_images.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
       "${table}const rn_cuda_image_t rn_cuda_images[] = {\n${rows}    {0},\n};\nconst size_t rn_cuda_image_count = ${count};\n")
  target_sources(${target} PRIVATE ${source} $<TARGET_OBJECTS:runnel_cuda_objects>)
  rn_embed_jit_headers(${target})
  target_link_libraries(${target} PRIVATE runnel_core)
endfunction()

# rn_cuda_part(TARGET IMAGES ...): the CUDA part as a library.
function(rn_cuda_part target)
  add_library(${target} SHARED)
  rn_cuda_code(${target} ${ARGN})
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
  if(RN_HAS_PACKED_RELOCATIONS)  # from capi_exports.cmake, which says why
    target_link_options(${target} PRIVATE "LINKER:-z,pack-relative-relocs")
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME runnel_cuda SUFFIX .so.2)
  if(RN_BUNDLED)
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "\$ORIGIN/lib")
  endif()
endfunction()

# What nvcc makes of a .cu file: code for sm_80 and sm_90, and PTX for what comes after. No kernel asks for the architecture, so the front
# end, which takes longer than the assembler, runs once.
set(RN_NVCC_FLAGS -std=c++17 -O3 -fatbin -gencode "arch=compute_80,code=[sm_80,sm_90,compute_80]")

# Sets RN_CUDA_PROBLEM (cached) to why the CUDA part is not built, "" if it is, and RN_NVCC_COMPRESS to the options that make images
# small. The compiler is tried once: one that is too old, or finds no host compiler, must not stop the rest of the build.
function(rn_try_nvcc)
  find_program(RN_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(NOT RN_NVCC)
    set(RN_CUDA_PROBLEM "there is no nvcc" CACHE INTERNAL "")
    unset(RN_CUDA_TRIED CACHE)
    return()
  endif()
  if(RN_CUDA_TRIED STREQUAL RN_NVCC)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/cuda/try.cu)
  file(WRITE ${source} "extern \"C\" __global__ void f(int* x) { *x = 1; }\n")
  foreach(compress --compress-mode=size -Xfatbin=-compress-all)  # the first since CUDA 12.8
    execute_process(COMMAND ${RN_NVCC} ${RN_NVCC_FLAGS} ${compress} -o ${source}.fatbin ${source} RESULT_VARIABLE failed
                    ERROR_VARIABLE said OUTPUT_QUIET)
    if(NOT failed)
      set(RN_CUDA_PROBLEM "" CACHE INTERNAL "")
      set(RN_NVCC_COMPRESS ${compress} CACHE INTERNAL "")
      set(RN_CUDA_TRIED ${RN_NVCC} CACHE INTERNAL "")
      return()
    endif()
  endforeach()
  string(REGEX MATCH "[^\n]+" said "${said}")
  unset(RN_CUDA_TRIED CACHE)
  set(RN_CUDA_PROBLEM "${RN_NVCC} cannot compile for sm_80 and sm_90: ${said}" CACHE INTERNAL "")
endfunction()

# rn_cuda_product(): builds librunnel_cuda.so.2 if there is a CUDA compiler. The file cuda_part.txt, which `make` prints, says so.
function(rn_cuda_product)
  add_library(runnel_cuda_objects OBJECT EXCLUDE_FROM_ALL ${RN_CUDA_SOURCES})
  target_include_directories(runnel_cuda_objects PRIVATE $<TARGET_PROPERTY:runnel_core,INTERFACE_INCLUDE_DIRECTORIES>)
  add_dependencies(runnel_cuda_objects rn_ops)
  if(NOT RN_CUDA)
    set(RN_CUDA_PROBLEM "RN_CUDA is off")
  elseif(RN_SANITIZE OR RN_COVERAGE OR RN_FUZZ)
    set(RN_CUDA_PROBLEM "tests of this kind of build use the emulated one")
  else()
    rn_try_nvcc()
  endif()
  if(RN_CUDA_PROBLEM)
    set(line "CUDA part: not built, because ${RN_CUDA_PROBLEM}")
  else()
    set(line "CUDA part: librunnel_cuda.so.2, built with ${RN_NVCC}")
  endif()
  message(STATUS "${line}")
  file(WRITE ${CMAKE_BINARY_DIR}/cuda_part.txt "${line}\n")
  if(RN_CUDA_PROBLEM)
    return()
  endif()
  set(images)
  foreach(kernel IN LISTS RN_CUDA_KERNELS)
    string(REGEX REPLACE "[^a-zA-Z0-9]" "_" file ${kernel})
    set(image ${CMAKE_BINARY_DIR}/cuda/${file}.fatbin)
    add_custom_command(
      OUTPUT ${image}
      COMMAND ${RN_NVCC} ${RN_NVCC_FLAGS} ${RN_NVCC_COMPRESS} -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/src/kernels/cuda -MD
              -MF ${image}.d -o ${image} ${PROJECT_SOURCE_DIR}/src/kernels/cuda/${kernel}
      DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/${kernel} DEPFILE ${image}.d
      COMMENT "Building device code ${kernel}" VERBATIM)
    list(APPEND images ${image})
  endforeach()
  rn_cuda_part(runnel_cuda ${images})
endfunction()
