# A library with the ops and kernels of one graph only: doc/lite.md.
#
#   rn_lite_library(TARGET FOLDER)
#
# makes a shared library of the objects of the whole one. FOLDER has what tools/lite_tables.c wrote: ops.txt, the ops, and
# registrar.c, the tables of kernels. It exports src/capi/symbols_lite.txt; the linker leaves out what none of these needs.
function(rn_lite_library target folder)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${target}_ops_table.c)
  add_custom_command(
    OUTPUT ${table}
    COMMAND opgen --families ${PROJECT_SOURCE_DIR}/src/ops/families.def --table ${table} --only ${folder}/ops.txt
    DEPENDS opgen rn_ops ${folder}/ops.txt
    COMMENT "Generating the op table of ${target}"
    VERBATIM)
  # From an archive the linker takes the files that it needs, so that the library needs no other library for the rest.
  add_library(${target}_parts STATIC $<TARGET_OBJECTS:runnel_capi> "$<FILTER:$<TARGET_OBJECTS:runnel_objects>,EXCLUDE,/src/(dist|data_service)/>"
              ${runnel_isa_objects})
  add_library(${target} SHARED ${folder}/registrar.c ${table} ${PROJECT_SOURCE_DIR}/src/dist/no_client.c
              ${PROJECT_SOURCE_DIR}/src/data_service/no_client.c)
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:runnel_objects,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${target} PRIVATE ${target}_parts ${RN_LIBRARIES})
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--as-needed)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME tensorflow VERSION 2.21.0 SOVERSION 2)
  rn_capi_exports(${target} SYMBOLS symbols_lite.txt)
endfunction()
