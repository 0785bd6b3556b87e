// See text.h.
#include "kernels/cpu/dataset/text.h"

#include <stdatomic.h>

#include "base/vec.h"

#define FORM_VIEW 3     // of a TString: see tensor/tstring.h
#define SMALL_BYTES 22  // fit inside a TString

#define CHUNK_BYTES ((size_t)256 << 10)
#define CHUNK_TEXT ((size_t)32 << 10)  // larger strings get their own memory

// A chunk of memory for strings. Each of them retains it.
struct rn_data_chunk_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  size_t size, used;
  _Alignas(16) char bytes[];
};

// One string, followed by its bytes.
typedef struct dataset_text_t {
  rn_buffer_t buffer;
  rn_data_chunk_t* chunk;    // Retained: the chunk it lies in; NULL if in its own block
  rn_allocator_t allocator;  // of that block
  size_t block_size;
  rn_tstring_t string;
  char bytes[];
} dataset_text_t;

void rn_data_chunk_release(rn_data_chunk_t* chunk) {
  if (chunk && atomic_fetch_sub(&chunk->refs, 1) == 1)
    rn_free(chunk->allocator, chunk, chunk->size);
}

static void text_destroy(rn_buffer_t* buffer) {
  dataset_text_t* text = (dataset_text_t*)buffer;
  // A sole owner of the buffer may have replaced the string.
  rn_tstring_clear(&text->string);
  if (text->chunk)
    rn_data_chunk_release(text->chunk);
  else
    rn_free(text->allocator, text, text->block_size);
}

static void buffer_init(rn_buffer_t* buffer, void* data, size_t size,
                        void (*destroy)(rn_buffer_t*)) {
  atomic_init(&buffer->refs, 1);
  buffer->dtype = RN_STRING;
  buffer->is_lent = false;
  buffer->size = size;
  buffer->data = data;
  buffer->destroy = destroy;
}

static void set_string(rn_tstring_t* string, const char* bytes, size_t size) {
  rn_tstring_init(string);
  if (size > SMALL_BYTES) {
    string->view.size = (uint64_t)size << 2 | FORM_VIEW;
    string->view.data = bytes;
  } else {
    string->small[0] = (uint8_t)(size << 2);
    memcpy(string->small + 1, bytes, size);
  }
}

// Initializes |text|, whose allocator or chunk is set, and the scalar |out|.
static void text_fill(dataset_text_t* text, rn_str_t from, rn_tensor_t* out) {
  buffer_init(&text->buffer, &text->string, sizeof text->string, text_destroy);
  memcpy(text->bytes, from.size ? from.data : "", from.size);
  text->bytes[from.size] = '\0';
  set_string(&text->string, text->bytes, from.size);
  out->buffer = &text->buffer;
  out->data = &text->string;
}

rn_status_t rn_data_text_create(rn_allocator_t memory, rn_str_t from, rn_tensor_t* out) {
  dataset_text_t* text = NULL;
  size_t size = 0;
  if (!rn_add_ok(sizeof *text + 1, from.size, &size)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_alloc(memory, size, (void**)&text));
  text->chunk = NULL;
  text->allocator = memory;
  text->block_size = size;
  rn_status_t status = rn_tensor_init(out, RN_STRING, RN_SHAPE_SCALAR);
  if (rn_ok(status))
    text_fill(text, from, out);
  else
    rn_free(memory, text, size);
  return status;
}

static rn_status_t new_chunk(rn_data_chunk_t** inout_chunk, rn_allocator_t memory) {
  rn_data_chunk_t* chunk = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(memory, CHUNK_BYTES, (void**)&chunk));
  rn_data_chunk_release(*inout_chunk);
  atomic_init(&chunk->refs, 1);
  chunk->allocator = memory;
  chunk->size = CHUNK_BYTES;
  chunk->used = sizeof *chunk;
  *inout_chunk = chunk;
  return RN_OK;
}

rn_status_t rn_data_text_create_in(rn_data_chunk_t** inout_chunk, rn_allocator_t memory,
                                   rn_str_t from, rn_tensor_t* out) {
  if (from.size > CHUNK_TEXT) return rn_data_text_create(memory, from, out);
  size_t size = (sizeof(dataset_text_t) + from.size + 16) & ~(size_t)15;
  if (!*inout_chunk || (*inout_chunk)->size - (*inout_chunk)->used < size)
    RN_RETURN_IF_ERROR(new_chunk(inout_chunk, memory));
  RN_RETURN_IF_ERROR(rn_tensor_init(out, RN_STRING, RN_SHAPE_SCALAR));
  rn_data_chunk_t* chunk = *inout_chunk;
  dataset_text_t* text = (dataset_text_t*)(void*)((char*)chunk + chunk->used);
  chunk->used += size;
  atomic_fetch_add_explicit(&chunk->refs, 1, memory_order_relaxed);
  text->chunk = chunk;
  text->allocator = memory;
  text->block_size = 0;
  text_fill(text, from, out);
  return RN_OK;
}

void rn_data_text_view(rn_buffer_t* block, rn_str_t text, rn_tstring_t* string, rn_tensor_t* out) {
  set_string(string, text.data, text.size);
  rn_buffer_retain(block);
  *out = (rn_tensor_t){.buffer = block, .data = string, .count = 1, .dtype = RN_STRING};
}

// Several strings, and the buffers they need.
typedef struct dataset_texts_t {
  rn_buffer_t buffer;
  rn_allocator_t allocator;
  size_t block_size;
  RN_VEC(rn_buffer_t*) kept;  // Retained
  rn_tstring_t strings[];
} dataset_texts_t;

static void texts_destroy(rn_buffer_t* buffer) {
  dataset_texts_t* texts = (dataset_texts_t*)buffer;
  size_t count = buffer->size / sizeof *texts->strings;
  for (size_t i = 0; i < count; ++i) rn_tstring_clear(&texts->strings[i]);
  for (size_t i = 0; i < texts->kept.count; ++i) rn_buffer_release(texts->kept.items[i]);
  rn_vec_free(&texts->kept, texts->allocator);
  rn_free(texts->allocator, texts, texts->block_size);
}

rn_status_t rn_data_texts_create(rn_allocator_t memory, rn_shape_t shape, rn_tensor_t* out) {
  dataset_texts_t* texts = NULL;
  size_t bytes = 0, size = 0;
  RN_RETURN_IF_ERROR(rn_tensor_init(out, RN_STRING, shape));
  if (!rn_mul_ok((size_t)out->count, sizeof *texts->strings, &bytes) ||
      !rn_add_ok(sizeof *texts, bytes, &size)) {
    rn_tensor_clear(out);
    return rn_out_of_memory();
  }
  rn_status_t status = rn_alloc_zeroed(memory, size, (void**)&texts);
  if (!rn_ok(status)) {
    rn_tensor_clear(out);
    return status;
  }
  buffer_init(&texts->buffer, texts->strings, bytes, texts_destroy);
  texts->allocator = memory;
  texts->block_size = size;
  out->buffer = &texts->buffer;
  out->data = texts->strings;
  return RN_OK;
}

static bool owns_its_bytes(const rn_tstring_t* string) { return (string->small[0] & 3) < 2; }

rn_status_t rn_data_texts_put(rn_tensor_t* tensor, int64_t place, rn_tensor_t* element) {
  dataset_texts_t* texts = (dataset_texts_t*)tensor->buffer;
  rn_tstring_t* to = texts->strings + place;
  rn_tstring_t* from = RN_DATA(element, rn_tstring_t);
  rn_buffer_t* buffer = element->buffer;
  bool is_view = buffer && buffer->dtype != RN_STRING;  // a view of bytes in a block
  bool is_text = buffer && (is_view || buffer->destroy == text_destroy);
  if (is_text && !owns_its_bytes(from)) {
    // Neighbours usually lie in the same block, which is retained once.
    bool is_kept = texts->kept.count && texts->kept.items[texts->kept.count - 1] == buffer;
    if (!is_kept) {
      RN_RETURN_IF_ERROR(rn_vec_push(&texts->kept, texts->allocator, buffer));
      element->buffer = NULL;  // the texts hold the reference now
    }
    *to = *from;
    return RN_OK;
  }
  bool is_ours = rn_tensor_is_exclusive(element);
  for (int64_t i = 0; i < element->count; ++i) {
    if (is_ours && owns_its_bytes(&from[i])) {
      to[i] = from[i];
      rn_tstring_init(&from[i]);
      continue;
    }
    rn_str_t view = rn_tstring_view(&from[i]);
    if (!rn_tstring_assign(&to[i], view.data, view.size)) return rn_out_of_memory();
  }
  return RN_OK;
}

void rn_data_texts_move(rn_tensor_t* from_tensor, rn_tensor_t* to_tensor, int64_t count) {
  dataset_texts_t* from = (dataset_texts_t*)from_tensor->buffer;
  dataset_texts_t* to = (dataset_texts_t*)to_tensor->buffer;
  for (int64_t i = 0; i < count; ++i) {
    to->strings[i] = from->strings[i];
    rn_tstring_init(&from->strings[i]);
  }
  to->kept.items = from->kept.items;
  to->kept.count = from->kept.count;
  to->kept.capacity = from->kept.capacity;
  from->kept.items = NULL;
  from->kept.count = from->kept.capacity = 0;
}
