# Removes the folders in which files look for libraries: cmake -P remove_rpath.cmake FILE ...
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 3 ${last})
  file(RPATH_REMOVE FILE ${CMAKE_ARGV${i}})
endforeach()
