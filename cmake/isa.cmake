# Code for several generations of a processor: every source of a folder is compiled once for each.
#
#   rn_isa_objects(OUT folder)
#
# puts the objects of folder/*.c into OUT. Each is compiled with RN_ISA set to the generation's name,
# which the sources append to their names; which one runs is decided at run time (kernels/cpu/isa.h), or,
# if RN_ISA_ONLY names one, here.

# RN_ISA_ONLY=native is the generation of this machine.
function(rn_isa_resolve)
  set(name ${RN_ISA_ONLY})
  if(name STREQUAL native)
    set(name base)
    if(EXISTS /proc/cpuinfo)
      file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
      if(flags MATCHES " avx512f .*avx512dq .*avx512bw .*avx512vl")
        set(name avx512)
      elseif(flags MATCHES " avx2 ")
        set(name avx2)
      endif()
    endif()
  endif()
  set(RN_ISA_ONLY ${name} PARENT_SCOPE)
endfunction()

function(rn_isa_objects out folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  # Tables of many small loops: vectors, but no copies of every loop for every case.
  if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT RN_SANITIZE AND NOT RN_COVERAGE)
    foreach(name argmax cast combine gemm loops reduce)
      set_source_files_properties(${PROJECT_SOURCE_DIR}/${folder}/${name}.c PROPERTIES
                                  COMPILE_OPTIONS "-O2;-ftree-vectorize;-fvect-cost-model=dynamic")
    endforeach()
  endif()
  set(objects)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(generations base avx2 avx512)
  else()
    set(generations base)
  endif()
  set(level -O3)
  if(RN_ISA_ONLY)
    set(generations ${RN_ISA_ONLY})
  endif()
  if(RN_COVERAGE)
    set(level -O0)
  elseif(RN_SANITIZE)
    set(level -O1)  # what is checked is where they read and write, not how fast
  endif()
  if(NOT RN_SANITIZE)
    list(APPEND level -fno-asynchronous-unwind-tables)
  endif()
  if(RN_FUZZ)
    list(APPEND level -fno-sanitize=fuzzer-no-link)  # which way a loop goes teaches a fuzzer nothing
  endif()
  # The oldest generation is there to run at all: small. Nothing unwinds through loops over numbers.
  set(flags_base -O2)
  set(flags_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
  set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  if(sources)
    foreach(generation IN LISTS generations)
      # Many small loops that 512-bit registers gain little for (RN_ISA_PICK_NARROW).
      set(own ${sources})
      if(generation STREQUAL avx512 AND NOT RN_ISA_ONLY)
        list(FILTER own EXCLUDE REGEX "/(argmax|cast|combine|loops|reduce)\\.c$")
      endif()
      add_library(${out}_${generation} OBJECT ${own})
      target_include_directories(${out}_${generation} PRIVATE
                                 $<TARGET_PROPERTY:runnel_objects,INTERFACE_INCLUDE_DIRECTORIES>)
      target_compile_definitions(${out}_${generation} PRIVATE RN_ISA=${generation} RN_ISA_${generation}=1)
      target_compile_options(${out}_${generation} PRIVATE ${level} ${flags_${generation}})
      add_dependencies(${out}_${generation} rn_ops)
      list(APPEND objects $<TARGET_OBJECTS:${out}_${generation}>)
    endforeach()
  endif()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
