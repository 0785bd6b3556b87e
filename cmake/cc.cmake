# The C++ front end: headers that are generated, and the library of protocol messages that they use.
#
#   rn_cc()
#
# makes, in ${CMAKE_BINARY_DIR}/generated/cc/include: tensorflow/cc/ops/*_ops.h by opgen; *.pb.h by Debian's protoc from
# proto/, at the paths where TensorFlow has them; and the headers of cmake/cc_forward.txt, which only include another one.
# libtensorflow_protos.so.2 has the messages. Without a C++ compiler, protoc, Eigen or Abseil there is no C++ front end;
# RN_CC says whether there is.

set(RN_CC_INCLUDE ${CMAKE_BINARY_DIR}/generated/cc/include)

# Finds what the front end needs. Sets RN_CC, or RN_CC_MISSING to what is not there.
function(rn_cc_find)
  set(RN_CC OFF PARENT_SCOPE)
  # Debian's libraries are those of this machine, and were not compiled with a sanitizer.
  if(CMAKE_CROSSCOMPILING OR RN_SANITIZE OR RN_COVERAGE)
    set(RN_CC_MISSING "a plain build" PARENT_SCOPE)
    return()
  endif()
  include(CheckLanguage)
  check_language(CXX)
  find_program(RN_PROTOC protoc)
  find_path(RN_EIGEN unsupported/Eigen/CXX11/Tensor PATHS /usr/include/eigen3)
  find_path(RN_ABSL absl/status/status.h)
  find_library(RN_PROTOBUF protobuf)
  foreach(part CMAKE_CXX_COMPILER RN_PROTOC RN_EIGEN RN_ABSL RN_PROTOBUF)
    if(NOT ${part})
      set(RN_CC_MISSING ${part} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(RN_CC ON PARENT_SCOPE)
endfunction()

# Writes the messages of proto/ and python/proto/ as TensorFlow places them (tensorflow/core/framework/graph.proto), and runs protoc over them.
function(rn_cc_protos out_sources)
  set(staged ${CMAKE_BINARY_DIR}/generated/cc/proto)
  file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/cc_places.txt places REGEX "^[a-z]")
  set(renames)
  foreach(place IN LISTS places)
    string(REGEX MATCH "[a-z_]+\\.proto$" name "${place}")
    list(APPEND renames "${name}=${place}")
  endforeach()
  set(inputs)
  set(sources)
  foreach(place IN LISTS places)
    if(place MATCHES "^google/")
      continue()
    endif()
    string(REGEX MATCH "[a-z_]+\\.proto$" name "${place}")
    set(source ${PROJECT_SOURCE_DIR}/proto/${name})
    if(NOT EXISTS ${source})
      set(source ${PROJECT_SOURCE_DIR}/python/proto/${name})
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(READ ${source} text)
    foreach(rename IN LISTS renames)
      string(REPLACE "=" ";" pair "${rename}")
      list(GET pair 0 from)
      list(GET pair 1 to)
      string(REPLACE "import \"${from}\"" "import \"${to}\"" text "${text}")
    endforeach()
    file(CONFIGURE OUTPUT ${staged}/${place} CONTENT "${text}" @ONLY)
    list(APPEND inputs ${staged}/${place})
    string(REGEX REPLACE "\\.proto$" ".pb.cc" made ${place})
    list(APPEND sources ${RN_CC_INCLUDE}/${made})
  endforeach()
  set(headers ${sources})
  list(TRANSFORM headers REPLACE "\\.pb\\.cc$" ".pb.h")
  add_custom_command(OUTPUT ${sources} ${headers}
    COMMAND ${RN_PROTOC} --cpp_out=${RN_CC_INCLUDE} -I${staged} ${inputs}
    DEPENDS ${inputs} COMMENT "Generating messages for C++" VERBATIM)
  set(${out_sources} ${sources} PARENT_SCOPE)
endfunction()

# Headers that only include another one: "path target" per line.
function(rn_cc_forward)
  set(table ${PROJECT_SOURCE_DIR}/cmake/cc_forward.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(STRINGS ${table} lines REGEX "^[a-z]")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE " +" ";" words "${line}")
    list(POP_FRONT words path)
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" guard "${path}_")
    string(TOUPPER ${guard} guard)
    set(text "// Another path of ${words}.\n#ifndef ${guard}\n#define ${guard}\n")
    foreach(word IN LISTS words)
      string(APPEND text "#include \"${word}\"\n")
    endforeach()
    string(REPLACE ";" " and " text "${text}#endif\n")
    file(CONFIGURE OUTPUT ${RN_CC_INCLUDE}/${path} CONTENT "${text}" @ONLY)
  endforeach()
endfunction()

# A macro: languages are enabled for the caller.
macro(rn_cc)
  rn_cc_find()
  if(RN_CC)
    enable_language(CXX)
    set(CMAKE_CXX_STANDARD 17)
    set(CMAKE_CXX_STANDARD_REQUIRED ON)
    if(CCACHE)
      set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
    endif()
    rn_cc_library()
  else()
    message(STATUS "No C++ front end: ${RN_CC_MISSING} was not found")
  endif()
endmacro()

# What C++ programs link besides the library.
set(RN_CC_LINK protobuf absl_status absl_statusor absl_strings absl_cord absl_synchronization absl_time absl_hash
    absl_raw_hash_set absl_raw_logging_internal
    absl_throw_delegate absl_bad_optional_access absl_bad_variant_access absl_bad_any_cast_impl absl_str_format_internal)

function(rn_cc_library)
  set(ops ${RN_CC_INCLUDE}/tensorflow/cc/ops)
  set(classes ${PROJECT_SOURCE_DIR}/src/ops/cc_classes.def)
  file(MAKE_DIRECTORY ${ops})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${classes})
  file(STRINGS ${classes} headers REGEX "^header ")
  list(TRANSFORM headers REPLACE "^header (.*)$" "${ops}/\\1.h")
  file(GLOB families ${PROJECT_SOURCE_DIR}/src/ops/*.ops)
  add_custom_command(OUTPUT ${headers}
    COMMAND opgen --families ${PROJECT_SOURCE_DIR}/src/ops/families.def --cc ${classes} --cc-headers ${ops}
    DEPENDS opgen ${classes} ${families} COMMENT "Generating C++ classes of ops" VERBATIM)
  rn_cc_protos(sources)
  rn_cc_forward()
  add_library(tensorflow_protos SHARED ${sources})
  target_include_directories(tensorflow_protos PUBLIC ${RN_CC_INCLUDE})
  # What protoc writes is not ours to correct.
  target_compile_options(tensorflow_protos PRIVATE -w -Os)
  target_link_libraries(tensorflow_protos PUBLIC protobuf Threads::Threads)
  # It also stands for Abseil where an op's library names neither (src/capi/plugin/open.c).
  target_link_options(tensorflow_protos PRIVATE "LINKER:--no-as-needed")
  target_link_libraries(tensorflow_protos PRIVATE ${RN_CC_LINK})
  set_target_properties(tensorflow_protos PROPERTIES VERSION 2.21.0 SOVERSION 2)
  # Most of the time of such a file goes into protobuf's headers, so several are compiled as one. Two static names are in every file; the
  # header that has members of these names comes first.
  set(renamed "#include <google/protobuf/generated_message_reflection.h>\n#define RN_PASTE_(a, b) a##b\n#define RN_PASTE(a, b) RN_PASTE_(a, b)\n")
  foreach(name schemas file_default_instances)
    string(APPEND renamed "#undef ${name}\n#define ${name} RN_PASTE(${name}_, RN_UNITY_FILE)\n")
  endforeach()
  set_target_properties(tensorflow_protos PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12 UNITY_BUILD_UNIQUE_ID RN_UNITY_FILE
                        UNITY_BUILD_CODE_BEFORE_INCLUDE "${renamed}")
  add_custom_target(rn_cc_headers DEPENDS ${headers})
  # The target that C++ programs of this tree link.
  add_library(tensorflow_cc INTERFACE)
  target_include_directories(tensorflow_cc INTERFACE ${PROJECT_SOURCE_DIR}/include ${RN_CC_INCLUDE})
  target_include_directories(tensorflow_cc SYSTEM INTERFACE ${RN_EIGEN})
  target_link_libraries(tensorflow_cc INTERFACE tensorflow tensorflow_protos ${RN_CC_LINK})
  add_dependencies(tensorflow_cc rn_cc_headers)
endfunction()
