// Long lists of numbers, read in pieces by several threads: see json_internal.h.
//
// No number contains a comma or a bracket, so the list is cut at commas without reading it. The
// commas of each piece are counted first, so that all threads know where their elements go. Should
// anything be wrong with the list, it is read again from its beginning, for the error.
#include <stdatomic.h>

#include "serve/front/json_internal.h"

#define PIECE ((size_t)32 << 10)  // bytes of text: some thousand numbers

typedef struct pieces_t {
  const rn_json_reader_t* json;
  rn_json_sink_t* sink;
  const char* end;  // of the list
  int64_t* firsts;  // one per piece: its elements, and then where they go
  rn_json_elements_fn_t read;
  _Atomic bool has_failed;
} pieces_t;

// Where piece |i| begins: behind the first comma from there on.
static const char* piece_begin(const pieces_t* pieces, size_t i) {
  const char* begin = pieces->json->next;
  size_t size = (size_t)(pieces->end - begin), at = i * PIECE;
  if (!i || at >= size) return i ? pieces->end : begin;
  const char* comma = memchr(begin + at, ',', size - at);
  return comma ? comma + 1 : pieces->end;
}

// The text of piece |i|, without the comma behind it. NULL if the piece before goes over all of it.
static rn_str_t piece_text(const pieces_t* pieces, size_t i) {
  const char *begin = piece_begin(pieces, i), *end = piece_begin(pieces, i + 1);
  if (begin == end) return (rn_str_t){0};
  return rn_str_n(begin, (size_t)(end - begin) - (end != pieces->end));
}

static void count_elements(void* arg, int64_t begin, int64_t end) {
  pieces_t* pieces = arg;
  for (int64_t i = begin; i < end; ++i) {
    rn_str_t text = piece_text(pieces, (size_t)i);
    int64_t count = text.data != NULL;
    for (size_t k = 0; k < text.size; ++k) count += text.data[k] == ',';
    pieces->firsts[i] = count;
  }
}

static void read_elements(void* arg, int64_t begin, int64_t end) {
  pieces_t* pieces = arg;
  const rn_json_sink_t* sink = pieces->sink;
  for (int64_t i = begin; i < end && !pieces->has_failed; ++i) {
    rn_str_t text = piece_text(pieces, (size_t)i);
    rn_json_reader_t json = *pieces->json;
    json.next = text.data;
    json.end = text.data + text.size;
    void* to = (char*)sink->buffer->data + (size_t)pieces->firsts[i] * sink->size;
    int64_t count = pieces->firsts[i + 1] - pieces->firsts[i];
    if (count && !pieces->read(&json, to, count)) pieces->has_failed = true;
  }
}

bool rn_json_read_pieces(rn_json_reader_t* json, rn_json_sink_t* sink, rn_json_elements_fn_t read,
                         int64_t* out_count) {
  if (sink->counts_only || rn_pool_threads(json->pool) < 2) return false;
  size_t left = (size_t)(json->end - json->next);
  const char* end = left > 2 * PIECE ? memchr(json->next, ']', left) : NULL;
  if (!end || (size_t)(end - json->next) < 2 * PIECE) return false;
  size_t count = ((size_t)(end - json->next) + PIECE - 1) / PIECE;
  pieces_t pieces = {.json = json, .sink = sink, .end = end, .read = read};
  rn_status_t status = RN_ARENA_ARRAY(json->arena, count + 1, &pieces.firsts);
  if (rn_ok(status)) {
    rn_pool_for(json->pool, (int64_t)count, 1, count_elements, &pieces);
    int64_t next = sink->count;
    for (size_t i = 0; i <= count; ++i) {
      int64_t elements = i < count ? pieces.firsts[i] : 0;
      pieces.firsts[i] = next;
      next += elements;
    }
    status = rn_json_sink_reserve(sink, next);
  }
  if (rn_ok(status)) rn_pool_for(json->pool, (int64_t)count, 1, read_elements, &pieces);
  bool is_read = rn_ok(status) && !pieces.has_failed;
  rn_status_free(status);
  if (!is_read) return false;
  *out_count = pieces.firsts[count] - sink->count;
  sink->count = pieces.firsts[count];
  json->next = end + 1;
  json->is_first = false;
  return true;
}
