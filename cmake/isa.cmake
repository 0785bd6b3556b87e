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

function(rn_isa_library name generation)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:runnel_objects,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${name} PRIVATE RN_ISA=${generation} RN_ISA_${generation}=1)
  add_dependencies(${name} rn_ops)
endfunction()

function(rn_isa_objects out folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  set(generations base)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(generations base avx2 avx512)
  endif()
  if(RN_ISA_ONLY)
    set(generations ${RN_ISA_ONLY})
  endif()
  set(flags_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
  set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)

  # Files of a loop or two get all that the compiler can do. In those with a table of many loops there are
  # vectors, but no copies of every loop for every case. Where there are later generations, the oldest is
  # there to run at all: small.
  set(few -O3)
  set(many -O3)
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    set(many -O2 -ftree-vectorize -fvect-cost-model=dynamic)
  endif()
  if(RN_COVERAGE)
    set(few -O0)
    set(many -O0)
  elseif(RN_SANITIZE)
    set(few -O1)  # what is checked is where they read and write, not how fast
    set(many -O1)
  endif()
  set(common -fno-trapping-math)  # nothing reads the flags of exceptions, which would keep branches in loops
  if(NOT RN_SANITIZE AND NOT RN_COVERAGE)
    # Lines of macros tell nothing, and nothing unwinds through them. They compute with numbers, between pointers and sizes that
    # their callers checked: a canary in every tile would guard nothing.
    list(APPEND common -g0 -fno-asynchronous-unwind-tables -fno-stack-protector)
  endif()
  if(RN_FUZZ)
    list(APPEND common -fno-sanitize=fuzzer-no-link)  # which way a loop goes teaches a fuzzer nothing
  endif()

  set(tables argmax|cast|combine|image|loops|reduce|spans)
  set(objects)
  foreach(generation IN LISTS generations)
    set(own ${sources})
    if(generation STREQUAL avx512 AND NOT RN_ISA_ONLY)
      list(FILTER own EXCLUDE REGEX "/(fft|${tables})\\.c$")  # 512 bits gain little (RN_ISA_PICK_NARROW)
    elseif(generation STREQUAL base AND "avx2" IN_LIST generations)
      set(flags_base -O1 -fno-tree-vectorize)
    endif()
    set(files_few ${own})
    set(files_many ${own})
    list(FILTER files_few EXCLUDE REGEX "/(gemm|pooling|vector|${tables})\\.c$")
    list(FILTER files_many INCLUDE REGEX "/(gemm|pooling|vector|${tables})\\.c$")
    foreach(kind few many)
      rn_isa_library(${out}_${generation}_${kind} ${generation} ${files_${kind}})
      target_compile_options(${out}_${generation}_${kind} PRIVATE ${${kind}} ${common} ${flags_${generation}})
      list(APPEND objects $<TARGET_OBJECTS:${out}_${generation}_${kind}>)
    endforeach()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
