# What the shared library shows to its clients: names, symbol versions and file names.
#
# Clients linked against TensorFlow's C tarballs ask for TF_x@VERS_1.0 in libtensorflow.so.2; those
# linked against its Python wheel ask for TF_x@tensorflow in libtensorflow_cc.so.2, and for some
# names, with no version, in libtensorflow_framework.so.2. One library answers all of them.
#
#   enable_language(C ASM)
#   rn_capi_exports(tensorflow)   # exports src/capi/symbols*.txt, hides everything else
#   rn_capi_facades(tensorflow)   # libtensorflow_cc.so.2, libtensorflow_framework.so.2 beside it

include(CheckLinkerFlag)

# The tables of ops are pointers by the ten thousand: relative relocations in a bitmap are a fiftieth
# of the usual list. Loaders before glibc 2.36 do not read them.
if(NOT RN_BUNDLED)
  check_linker_flag(C "LINKER:-z,pack-relative-relocs" RN_HAS_PACKED_RELOCATIONS)
endif()

set(RN_CAPI_EXPORTS_GENERATE "${CMAKE_CURRENT_LIST_DIR}/capi_exports_generate.cmake")
get_filename_component(RN_CAPI_SYMBOLS_DIR "${CMAKE_CURRENT_LIST_DIR}/../src/capi" ABSOLUTE)

# Exports every name of symbols.txt as name@@VERS_1.0 and name@tensorflow, and those of
# symbols_runnel.txt as name@@RUNNEL_1.0; with SYMBOLS, those of that file instead of both. A listed name without a definition is a link error, unless
# ALLOW_UNDEFINED is given (for sanitizer runtimes that are linked into the program only).
function(rn_capi_exports target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALLOW_UNDEFINED" "SYMBOLS" "")
  set(symbols "${RN_CAPI_SYMBOLS_DIR}/symbols.txt")
  set(runnel_symbols "${RN_CAPI_SYMBOLS_DIR}/symbols_runnel.txt")
  if(arg_SYMBOLS)
    set(symbols "${RN_CAPI_SYMBOLS_DIR}/${arg_SYMBOLS}")
    set(runnel_symbols)
  endif()
  set(map "${CMAKE_CURRENT_BINARY_DIR}/${target}_exports.map")
  set(assembly "${CMAKE_CURRENT_BINARY_DIR}/${target}_symver.S")
  add_custom_command(
    OUTPUT "${map}" "${assembly}"
    COMMAND "${CMAKE_COMMAND}" "-DSYMBOLS=${symbols}" "-DRUNNEL_SYMBOLS=${runnel_symbols}"
            "-DMAP=${map}" "-DASSEMBLY=${assembly}" -P "${RN_CAPI_EXPORTS_GENERATE}"
    DEPENDS "${symbols}" "${runnel_symbols}" "${RN_CAPI_EXPORTS_GENERATE}"
    COMMENT "Writing the export list of ${target}"
    VERBATIM)
  target_sources(${target} PRIVATE "${assembly}")
  # Calls inside the library stay inside it, whatever else the process has loaded.
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}"
                      "LINKER:-Bsymbolic-functions")
  if(RN_HAS_PACKED_RELOCATIONS)
    target_link_options(${target} PRIVATE "LINKER:-z,pack-relative-relocs")
  endif()
  if(NOT arg_ALLOW_UNDEFINED)
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")
endfunction()

# Makes the other two libraries that clients name. They have no code: they define the version nodes,
# which the loader looks for in the very file that a client names, and need the real library, which
# has the symbols. Real files and not links, for ldconfig lists a library under its soname only.
# The names without a number, which only linkers read, are links to the real library.
function(rn_capi_facades target)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_facade.c")
  set(map "${CMAKE_CURRENT_BINARY_DIR}/${target}_facade.map")
  file(WRITE "${source}.new" "typedef int rn_facade_t;\n")
  file(WRITE "${map}.new" "VERS_1.0 {\n  local:\n    *;\n};\n\ntensorflow {\n};\n")
  configure_file("${source}.new" "${source}" COPYONLY)
  configure_file("${map}.new" "${map}" COPYONLY)
  foreach(name tensorflow_cc tensorflow_framework)
    add_library(${name}_facade SHARED "${source}")
    set_target_properties(${name}_facade PROPERTIES
      OUTPUT_NAME ${name}
      PREFIX lib
      SUFFIX .so.2
      NO_SONAME ON
      LIBRARY_OUTPUT_DIRECTORY "$<TARGET_FILE_DIR:${target}>"
      BUILD_WITH_INSTALL_RPATH ON
      INSTALL_RPATH "\$ORIGIN"
      LINK_DEPENDS "${map}")
    target_link_options(${name}_facade PRIVATE "LINKER:-soname,lib${name}.so.2"
                        "LINKER:--version-script=${map}" "LINKER:--no-as-needed")
    target_link_libraries(${name}_facade PRIVATE ${target})
    add_custom_command(TARGET ${name}_facade POST_BUILD
      COMMAND "${CMAKE_COMMAND}" -E create_symlink "$<TARGET_LINKER_FILE_NAME:${target}>"
              "$<TARGET_FILE_DIR:${target}>/lib${name}.so"
      VERBATIM)
  endforeach()
endfunction()

# Installs the facades and their links into |destination| (a folder relative to the prefix).
function(rn_capi_install_facades target destination)
  foreach(name tensorflow_cc tensorflow_framework)
    install(TARGETS ${name}_facade LIBRARY DESTINATION "${destination}" COMPONENT library)
    install(FILES "$<TARGET_FILE_DIR:${target}>/lib${name}.so" DESTINATION "${destination}" COMPONENT development)
  endforeach()
endfunction()
