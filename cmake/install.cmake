# What `make install` leaves under the prefix, so that a client written for TensorFlow's C library finds everything where it looks.
#
#   lib/             libtensorflow.so{,.2,.2.21.0}; libtensorflow_cc.so.2, libtensorflow_framework.so.2 and the names that
#                    linkers read; librunnel_cuda.so.2 if it was built, which the library and the command find there
#   lib/pkgconfig/   tensorflow.pc, runnel.pc, tensorflow_cc.pc with libtensorflow_protos.so.2 where the C++ front end was built
#   include/         tensorflow/, tsl/, xla/, runnel/ (with the generated ops.h)
#   bin/runnel       the command
#   share/man, share/doc/runnel
#   share/bash-completion, share/zsh, share/fish   completions of the command
#
# The components are what tools/deb.sh makes one package of each: library, messages, development, command, cuda, documentation and
# python. The last is for packages only: others install the Python client with pip.
include(GNUInstallDirs)

# Debian's lib/<triplet> is for packages; under a prefix of one's own, lib is where people look.
set(lib lib)

install(TARGETS tensorflow LIBRARY DESTINATION ${lib} COMPONENT library NAMELINK_COMPONENT development)
rn_capi_install_facades(tensorflow ${lib})
if(TARGET runnel_cuda)
  install(TARGETS runnel_cuda LIBRARY DESTINATION ${lib} COMPONENT cuda)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/generated/include/runnel/ops.h DESTINATION include/runnel COMPONENT development)
if(TARGET runnel)
  install(TARGETS runnel RUNTIME DESTINATION bin COMPONENT command)
  install(FILES ${CMAKE_BINARY_DIR}/cli/completion/runnel DESTINATION share/bash-completion/completions COMPONENT command)
  install(FILES ${CMAKE_BINARY_DIR}/cli/completion/_runnel DESTINATION share/zsh/site-functions COMPONENT command)
  install(FILES ${CMAKE_BINARY_DIR}/cli/completion/runnel.fish DESTINATION share/fish/vendor_completions.d COMPONENT command)
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
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${lib}/pkgconfig COMPONENT development)
endfunction()
rn_write_pc(tensorflow "TensorFlow's C API, by Runnel" 2.21.0
            "-L\${libdir} -ltensorflow -ltensorflow_framework" "")
if(RN_CC)
  install(TARGETS tensorflow_protos LIBRARY DESTINATION ${lib} COMPONENT messages NAMELINK_COMPONENT development)
  install(DIRECTORY ${RN_CC_INCLUDE}/ DESTINATION include COMPONENT development PATTERN "*.cc" EXCLUDE)
  # Debian's protobuf and Abseil are named one by one: a program that uses a symbol must name its library.
  list(TRANSFORM RN_CC_LINK PREPEND "-l" OUTPUT_VARIABLE cc_libs)
  list(JOIN cc_libs " " cc_libs)
  # Build files made for TensorFlow say -ltensorflow_cc -ltensorflow_framework: a linker reads the first of these names only.
  # The other one stays a library, because some build files ask for its dependencies.
  file(WRITE ${CMAKE_BINARY_DIR}/cc/libtensorflow_cc.so
       "INPUT(libtensorflow.so.2 AS_NEEDED(libtensorflow_protos.so.2 ${cc_libs}))\n")
  install(FILES ${CMAKE_BINARY_DIR}/cc/libtensorflow_cc.so DESTINATION ${lib} COMPONENT development)
  rn_write_pc(tensorflow_cc "TensorFlow's C++ API, by Runnel" 2.21.0 "-ltensorflow_protos ${cc_libs} -lpthread" "tensorflow eigen3")
endif()
rn_write_pc(runnel "Graph builders and gradients on top of TensorFlow's C API" ${PROJECT_VERSION} "" tensorflow)

file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/doc/man/*.1)
install(FILES ${pages} DESTINATION share/man/man1 COMPONENT command)
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/doc/man/*.3)
install(FILES ${pages} DESTINATION share/man/man3 COMPONENT development)
file(GLOB documents CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/doc/*.md ${PROJECT_SOURCE_DIR}/doc/*.svg)
list(FILTER documents EXCLUDE REGEX "worklog")
set(folder share/doc/runnel)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${folder} COMPONENT licence)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${folder} COMPONENT documentation)
install(FILES ${documents} DESTINATION ${folder}/doc COMPONENT documentation)
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/doc/ops DESTINATION ${folder} COMPONENT documentation)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/models DESTINATION ${folder}/examples COMPONENT documentation)
if(TARGET runnel_python)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/runnel ${CMAKE_BINARY_DIR}/python/runnel DESTINATION lib/python3/dist-packages
          COMPONENT python EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE PATTERN "*.md" EXCLUDE)
endif()
