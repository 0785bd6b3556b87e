# Writes the version script and the assembly of rn_capi_exports from the lists of names.
# usage: cmake -DSYMBOLS=… -DRUNNEL_SYMBOLS=… -DMAP=… -DASSEMBLY=… -P capi_exports_generate.cmake

cmake_minimum_required(VERSION 3.18)

foreach(variable SYMBOLS MAP ASSEMBLY)
  if(NOT DEFINED ${variable})
    message(FATAL_ERROR "${variable} is not set")
  endif()
endforeach()

file(STRINGS "${SYMBOLS}" names REGEX "^[A-Za-z_]")
set(runnel_names)
if(RUNNEL_SYMBOLS)
  file(STRINGS "${RUNNEL_SYMBOLS}" runnel_names REGEX "^[A-Za-z_]")
endif()

# References without a version take the first node, so VERS_1.0 comes first.
set(map "VERS_1.0 {\n  global:\n")
foreach(name IN LISTS names)
  string(APPEND map "    ${name};\n")
endforeach()
string(APPEND map "  local:\n    *;\n};\n\ntensorflow {\n};\n")
if(runnel_names)
  string(APPEND map "\nRUNNEL_1.0 {\n  global:\n")
  foreach(name IN LISTS runnel_names)
    string(APPEND map "    ${name};\n")
  endforeach()
  string(APPEND map "};\n")
endif()
file(WRITE "${MAP}" "${map}")

set(assembly [==[
// A second symbol for each public function, name@tensorflow: a jump to name@@VERS_1.0.

#if defined(__x86_64__)
#if defined(__CET__)
#include <cet.h>
#define RN_ENTRY _CET_ENDBR
#else
#define RN_ENTRY
#endif
#define RN_JUMP(name) jmp name
#elif defined(__aarch64__)
#define RN_ENTRY hint 34 /* bti c; no operation on older processors */
#define RN_JUMP(name) b name
#if defined(__ARM_FEATURE_BTI_DEFAULT)
  .pushsection .note.gnu.property, "a", %note
  .balign 8
  .long 4, 16, 5
  .asciz "GNU"
  .long 0xc0000000, 4, 1, 0
  .popsection
#endif
#else
#error "Write the jump of this processor here."
#endif

#define RN_ALIAS(name)                          \
  .globl name##__tf;                            \
  .type name##__tf, %function;                  \
  .p2align 4;                                   \
  name##__tf: RN_ENTRY;                         \
  RN_JUMP(name);                                \
  .size name##__tf, . - name##__tf;             \
  .symver name##__tf, name@tensorflow

  .text
]==])
foreach(name IN LISTS names)
  string(APPEND assembly "RN_ALIAS(${name})\n")
endforeach()
string(APPEND assembly "\n  .section .note.GNU-stack, \"\", %progbits\n")
file(WRITE "${ASSEMBLY}" "${assembly}")
