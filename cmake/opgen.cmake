# Op definitions: builds tools/opgen and runs it over src/ops/*.ops.
#
#   rn_generate_ops(OUT_TABLE)
#
# makes, in ${CMAKE_BINARY_DIR}/generated: ops_table.c (its path is put into OUT_TABLE, to be
# compiled into the library), include/runnel/ops.h (installed beside include/runnel/graph.h) and
# doc/ops/<family>.md. Targets that include runnel/ops.h need add_dependencies(... rn_ops) and
# ${CMAKE_BINARY_DIR}/generated/include in their include path.
function(rn_generate_ops out_table)
  set(tools ${PROJECT_SOURCE_DIR}/tools)
  set(families ${PROJECT_SOURCE_DIR}/src/ops/families.def)
  set(generated ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${generated}/include/runnel ${generated}/doc/ops)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${families})

  file(STRINGS ${families} names REGEX "^[a-z]")
  set(sources)
  foreach(name IN LISTS names)
    list(APPEND sources ${PROJECT_SOURCE_DIR}/src/ops/${name}.ops)
  endforeach()

  add_executable(opgen ${tools}/opgen.c ${tools}/opgen_table.c ${tools}/opgen_builders.c ${tools}/opgen_cc.c)
  target_compile_features(opgen PRIVATE c_std_11)
  # The sanitizers of the library have no business in a program of the build.
  target_compile_options(opgen PRIVATE -fno-sanitize=all)
  target_link_options(opgen PRIVATE -fno-sanitize=all)

  set(outputs ${generated}/ops_table.c ${generated}/include/runnel/ops.h)
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND opgen --families ${families} --table ${generated}/ops_table.c
            --builders ${generated}/include/runnel/ops.h --pages ${generated}/doc/ops
    DEPENDS opgen ${families} ${sources}
    COMMENT "Generating op tables and builders"
    VERBATIM)
  add_custom_target(rn_ops DEPENDS ${outputs})
  set(${out_table} ${generated}/ops_table.c PARENT_SCOPE)
endfunction()
