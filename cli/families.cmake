# Writes which family each op belongs to: the rows of cli/ops.c's table, from the .ops files.
# usage: cmake -DOPS_DIR=… -DOUTPUT=… -P families.cmake
file(STRINGS "${OPS_DIR}/families.def" families REGEX "^[a-z]")
set(rows "// Made by cli/families.cmake from src/ops/*.ops.\n")
foreach(family IN LISTS families)
  file(STRINGS "${OPS_DIR}/${family}.ops" lines REGEX "^op ")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^op +([A-Za-z0-9_]+).*" "\\1" name "${line}")
    string(APPEND rows "{\"${name}\", \"${family}\"},\n")
  endforeach()
endforeach()
file(WRITE "${OUTPUT}" "${rows}")
