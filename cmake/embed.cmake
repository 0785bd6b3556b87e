# Files as part of a library or program.

# rn_embed(TARGET FILE SYMBOL): the bytes of FILE become part of TARGET, from |SYMBOL| to |SYMBOL|_end, 16-byte aligned and with a NUL
# behind them, so that a text is a C string: extern const char SYMBOL[], SYMBOL_end[];
function(rn_embed target file symbol)
  get_filename_component(path ${file} ABSOLUTE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.c)
  file(CONFIGURE OUTPUT ${source} CONTENT [[
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    ".globl @symbol@\n.hidden @symbol@\n"
    ".globl @symbol@_end\n.hidden @symbol@_end\n"
    "@symbol@:\n.incbin \"@path@\"\n"
    "@symbol@_end:\n.byte 0\n"
    ".previous\n");
]] @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${path})
  target_sources(${target} PRIVATE ${source})
endfunction()
