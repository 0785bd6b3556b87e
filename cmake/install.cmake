# What `make install` leaves under the prefix, so that a client written for TensorFlow's C library finds everything where it looks.
#
#   lib/             libtensorflow.so{,.2,.2.21.0}; libtensorflow_cc.so.2, libtensorflow_framework.so.2 and the names that
#                    linkers read; librunnel_cuda.so.2 if it was built, which the library and the command find there
#   lib/pkgconfig/   tensorflow.pc, runnel.pc, tensorflow_cc.pc with libtensorflow_protos.so.2 where the C++ front end was built
#   include/         tensorflow/, tsl/, xla/, runnel/ (with the generated ops.h)
#   bin/runnel       the command
#   share/man, share/doc/runnel
#   share/bash-completion, share/zsh, share/fish   completions of the command
include(GNUInstallDirs)

# Debian's lib/<triplet> is for packages; under a prefix of one's own, lib is where people look.
set(lib lib)

install(TARGETS tensorflow LIBRARY DESTINATION ${lib} NAMELINK_COMPONENT Unspecified)
rn_capi_install_facades(tensorflow ${lib})
if(TARGET runnel_cuda)
  install(TARGETS runnel_cuda LIBRARY DESTINATION ${lib})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/generated/include/runnel/ops.h DESTINATION include/runnel)
if(TARGET runnel)
  install(TARGETS runnel RUNTIME DESTINATION bin)
  install(FILES ${CMAKE_BINARY_DIR}/cli/completion/runnel DESTINATION share/bash-completion/completions)
  install(FILES ${CMAKE_BINARY_DIR}/cli/completion/_runnel DESTINATION share/zsh/site-functions)
  install(FILES ${CMAKE_BINARY_DIR}/cli/completion/runnel.fish DESTINATION share/fish/vendor_completions.d)
endif()

# The prefix of a .pc file follows from where the file lies, so that `cmake --install --prefix` may be any folder, and the tree
# may be moved afterwards.
function(rn_write_pc name description version libs requires)
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.pc
"prefix=\${pcfiledir}/../..
exec_prefix=\${prefix}
libdir=\${prefix}/${lib}
includedir=\${prefix}/include

Name: ${name}
Description: ${description}
Version: ${version}
Requires: ${requires}
Libs: ${libs}
Cflags: -I\${includedir}
")
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${lib}/pkgconfig)
endfunction()
rn_write_pc(tensorflow "TensorFlow's C API, by Runnel" 2.21.0
            "-L\${libdir} -ltensorflow -ltensorflow_framework" "")
if(RN_CC)
  install(TARGETS tensorflow_protos LIBRARY DESTINATION ${lib} NAMELINK_COMPONENT Unspecified)
  install(DIRECTORY ${RN_CC_INCLUDE}/ DESTINATION include FILES_MATCHING PATTERN "*.h")
  # Debian's protobuf and Abseil are named one by one: a program that uses a symbol must name its library.
  list(TRANSFORM RN_CC_LINK PREPEND "-l" OUTPUT_VARIABLE cc_libs)
  list(JOIN cc_libs " " cc_libs)
  # Build files made for TensorFlow say -ltensorflow_cc -ltensorflow_framework: a linker reads these names only.
  foreach(name tensorflow_cc tensorflow_framework)
    file(WRITE ${CMAKE_BINARY_DIR}/cc/lib${name}.so
         "INPUT(libtensorflow.so.2 AS_NEEDED(libtensorflow_protos.so.2 ${cc_libs}))\n")
    install(FILES ${CMAKE_BINARY_DIR}/cc/lib${name}.so DESTINATION ${lib})
  endforeach()
  rn_write_pc(tensorflow_cc "TensorFlow's C++ API, by Runnel" 2.21.0 "-ltensorflow_protos ${cc_libs} -lpthread" "tensorflow eigen3")
endif()
rn_write_pc(runnel "Graph builders and gradients on top of TensorFlow's C API" ${PROJECT_VERSION} "" tensorflow)

foreach(section 1 3)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/doc/man/*.${section})
  install(FILES ${pages} DESTINATION share/man/man${section})
endforeach()
file(GLOB documents CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/doc/*.md ${PROJECT_SOURCE_DIR}/doc/*.svg)
list(FILTER documents EXCLUDE REGEX "worklog")
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/runnel)
install(FILES ${documents} DESTINATION share/doc/runnel/doc)
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/doc/ops DESTINATION share/doc/runnel)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/models DESTINATION share/doc/runnel/examples)
