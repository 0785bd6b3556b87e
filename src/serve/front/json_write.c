// Values to JSON text: see json.h.
#include "base/utf8.h"
#include "serve/front/json.h"

// Appends |c|, a character that must be escaped.
static void put_escape(rn_strbuf_t* out, unsigned char c) {
  static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
  for (const char* letter = letters; *letter; letter += 2) {
    if ((unsigned char)*letter != c) continue;
    rn_strbuf_append_n(out, (char[]){'\\', letter[1]}, 2);
    return;
  }
  rn_strbuf_printf(out, "\\u%04X", c);
}

void rn_json_put_string(rn_strbuf_t* out, rn_str_t text) {
  rn_strbuf_append(out, RN_STR("\""));
  size_t plain = 0, i = 0;  // text[plain, i) is copied as it is
  while (i < text.size) {
    unsigned char c = (unsigned char)text.data[i];
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    uint32_t code = c;
    size_t size = rn_utf8_decode(rn_str_n(text.data + i, text.size - i), &code);
    if (c < 0x80 || code == RN_UTF8_BAD) {
      rn_strbuf_append_n(out, text.data + plain, i - plain);
      plain = i + size;
      if (c < 0x80) {
        put_escape(out, c);
      } else {
        rn_strbuf_append(out, RN_STR("\xef\xbf\xbd"));
      }
    }
    i += size;
  }
  if (i > plain) rn_strbuf_append_n(out, text.data + plain, i - plain);
  rn_strbuf_append(out, RN_STR("\""));
}
