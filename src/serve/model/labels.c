// See labels.h.
#include "serve/model/labels.h"

#include "base/fs.h"

#define MOST_BYTES ((size_t)64 << 20)

static rn_status_t split(rn_str_t text, rn_arena_t* arena, rn_serve_port_t* port) {
  size_t lines = 1;
  rn_str_t* labels = NULL;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, text, &text));
  for (size_t i = 0; i < text.size; ++i) lines += text.data[i] == '\n';
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, lines, &labels));
  port->labels = labels;
  for (rn_str_t rest = text; rest.size;)
    labels[port->label_count++] = rn_str_trim(rn_str_split(&rest, '\n'));
  return RN_OK;
}

rn_status_t rn_labels_read(const rn_env_t* env, const char* folder, rn_arena_t* arena,
                           rn_serve_port_t* port) {
  rn_str_t path;
  rn_strbuf_t text;
  bool exists = false;
  if (memchr(port->name.data, '/', port->name.size)) return RN_OK;  // no name of a file
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &path, "%s/" RN_LABELS_FOLDER "/%.*s.txt", folder,
                                     RN_STR_ARGS(port->name)));
  RN_RETURN_IF_ERROR(rn_fs_find(env, path.data, &exists));
  if (!exists) return RN_OK;
  rn_strbuf_init(&text, arena->allocator);
  rn_status_t status = rn_fs_read(env, path.data, MOST_BYTES, &text);
  if (rn_ok(status)) status = split(rn_strbuf_view(&text), arena, port);
  rn_strbuf_clear(&text);
  return status;
}
