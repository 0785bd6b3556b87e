// Writes the OpList of all registered ops to standard output; with names, one OpDef's bytes each.
#include <stdio.h>

#include "framework/op_proto.h"

int main(int argc, char** argv) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_status_t status = RN_OK;
  if (argc == 1) status = rn_op_write_list(&buf);
  for (int i = 1; i < argc && rn_ok(status); i++) {
    const rn_op_def_t* def = rn_op_find(rn_str(argv[i]));
    if (!def) status = rn_not_found("no op %s", argv[i]);
    if (def) rn_op_write_proto(&buf, def);
  }
  if (!rn_ok(status)) fprintf(stderr, "opdef_dump: %s\n", rn_status_message(status));
  int code = rn_ok(status) && fwrite(buf.data, 1, buf.size, stdout) == buf.size ? 0 : 1;
  rn_status_free(status);
  rn_strbuf_clear(&buf);
  return code;
}
