# How the folders of tests/ declare their tests.
#
# Labels: every test may have several. "structure": reads the source tree only, and runs before anything is built. "slow": takes more
# than about ten seconds, and runs last. The others name what is tested (ops, python, ...). tools/test.sh runs the phases.

# Memory that cannot be had is NULL under the sanitizers, too: tests ask for more than there is.
set(RN_TEST_ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=allocator_may_return_null=1")
# Python with stock TensorFlow, which tools/stock.sh installs.
set(RN_STOCK_PYTHON ${PROJECT_SOURCE_DIR}/build/venv/bin/python)

# rn_test_programs(ROOM [EXCLUDE regex] [SOURCES file ...] [LIBRARIES library ...] [DEFINITIONS definition ...] [INCLUDES folder ...]
#                  [TIMEOUT seconds] [LABELS label ...])
# One program, ROOM_NAME, and one test, ROOM/NAME, per file NAME_test.c of this folder.
function(rn_test_programs room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCLUDE;TIMEOUT" "SOURCES;LIBRARIES;DEFINITIONS;INCLUDES;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_LIBRARIES)
    set(arg_LIBRARIES runnel_core)
  endif()
  file(GLOB files CONFIGURE_DEPENDS *_test.c)
  if(arg_EXCLUDE)
    list(FILTER files EXCLUDE REGEX ${arg_EXCLUDE})
  endif()
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    add_executable(${room}_${name} ${file} ${arg_SOURCES})
    target_link_libraries(${room}_${name} PRIVATE ${arg_LIBRARIES} criterion)
    target_compile_definitions(${room}_${name} PRIVATE ${arg_DEFINITIONS})
    target_include_directories(${room}_${name} PRIVATE ${arg_INCLUDES})
    add_test(NAME ${room}/${name} COMMAND ${room}_${name})
    set_tests_properties(${room}/${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${RN_TEST_ENVIRONMENT}"
                         LABELS "${arg_LABELS}")
  endforeach()
endfunction()

# rn_slow(SECONDS TEST ...): these tests take about that long on two cores. They run last, the longest of them first. Tests that do
# not exist in this build are passed over.
function(rn_slow seconds)
  get_property(all DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS ARGN)
    if(test IN_LIST all)
      set_property(TEST ${test} APPEND PROPERTY LABELS slow)
      set_property(TEST ${test} PROPERTY COST ${seconds})
    endif()
  endforeach()
endfunction()
