// Damaged messages: every truncation and many random changes of a graph, decoded as every message
// type. Every result must encode, decode again and print to the same bytes.
#include "proto/messages.pb.h"
#include "util.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

#define SEED_TEXT                                                                               \
  "node { name: 'a' op: 'Const' attr { key: 'value' value { tensor { dtype: DT_FLOAT "          \
  "tensor_shape { dim { size: 2 } } float_val: [1, 2] } } } attr { key: 'dtype' value { "       \
  "type: DT_FLOAT } } } node { name: 'b' op: 'PartitionedCall' input: ['a', '^a'] attr { "      \
  "key: 'f' value { func { name: 'g' attr { key: 'T' value { list { type: [1, 2, 3] i: 5 "      \
  "s: 'x' shape { unknown_rank: true } } } } } } } } versions { producer: 1987 bad_consumers: " \
  "[1, 2, 300] } library { function { signature { name: 'g' attr { name: 'T' type: 'type' } }"  \
  " ret { key: 'y' value: 'z' } arg_attr { key: 1 value { attr { key: 'n' value { i: -1 } } }"  \
  " } } }"

static rn_arena_t arena;
static int accepted, refused;

static void check(const rn_pb_message_desc_t* desc, rn_str_t bytes) {
  void* message = NULL;
  rn_status_t status = rn_pb_decode(desc, bytes, NULL, &arena, &message);
  rn_strbuf_t out[4];
  for (int i = 0; i < 4; ++i) rn_strbuf_init(&out[i], rn_allocator_system());
  if (rn_ok(status)) {
    ++accepted;
    OK(rn_pb_encode(desc, message, NULL, &out[0]));
    OK(rn_pb_print(desc, message, &out[2]));
    OK(rn_pb_decode(desc, rn_strbuf_view(&out[0]), NULL, &arena, &message));
    OK(rn_pb_encode(desc, message, NULL, &out[1]));
    ASSERT_STR(rn_strbuf_view(&out[1]), rn_strbuf_view(&out[0]));
    OK(rn_pb_parse(desc, rn_strbuf_view(&out[2]), NULL, &arena, &message));
    OK(rn_pb_print(desc, message, &out[3]));
    ASSERT_STR(rn_strbuf_view(&out[3]), rn_strbuf_view(&out[2]));
  } else {
    ++refused;
    cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  }
  for (int i = 0; i < 4; ++i) rn_strbuf_clear(&out[i]);
  rn_status_free(status);
  rn_arena_clear(&arena);
}

// xorshift64: the same numbers in every run.
static uint64_t draw(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static const rn_pb_message_desc_t* graph_desc(void) {
  for (size_t i = 0; i < rn_pb_message_count; ++i) {
    if (strcmp(rn_pb_messages[i]->name, "tensorflow.GraphDef") == 0) return rn_pb_messages[i];
  }
  return NULL;
}

// The seed as bytes from malloc, so that a read beyond them is seen.
static rn_str_t seed(void) {
  void* message = NULL;
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_arena_init(&arena, rn_allocator_system());
  OK(rn_pb_parse(graph_desc(), RN_STR(SEED_TEXT), NULL, &arena, &message));
  OK(rn_pb_encode(graph_desc(), message, NULL, &out));
  char* copy = malloc(out.size);
  memcpy(copy, out.data, out.size);
  rn_str_t bytes = rn_str_n(copy, out.size);
  rn_strbuf_clear(&out);
  rn_arena_clear(&arena);
  return bytes;
}

Test(mutation, truncated) {
  rn_str_t bytes = seed();
  for (size_t size = 0; size <= bytes.size; ++size) {
    char* copy = malloc(size ? size : 1);
    memcpy(copy, bytes.data, size);
    check(graph_desc(), rn_str_n(copy, size));
    free(copy);
  }
  cr_assert(accepted > 3 && refused > 100, "%d accepted, %d refused", accepted, refused);
  free((char*)bytes.data);
}

Test(mutation, changed) {
  rn_str_t bytes = seed();
  uint64_t state = 42;
  for (int round = 0; round < 20000; ++round) {
    char* copy = malloc(bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    for (uint64_t n = 1 + draw(&state) % 4; n > 0; --n) {
      uint64_t value = draw(&state);
      copy[value % bytes.size] = (char)(value >> 32 & 1 ? value >> 40 : 1u << (value >> 40 & 7));
    }
    check(graph_desc(), rn_str_n(copy, bytes.size));
    free(copy);
  }
  cr_assert(accepted > 1000 && refused > 1000, "%d accepted, %d refused", accepted, refused);
  free((char*)bytes.data);
}

Test(mutation, noise_as_every_message) {
  uint64_t state = 7;
  rn_arena_init(&arena, rn_allocator_system());
  for (size_t i = 0; i < rn_pb_message_count; ++i) {
    for (int round = 0; round < 200; ++round) {
      // Mostly small bytes: plausible tags and lengths.
      size_t size = draw(&state) % 48;
      char* noise = malloc(size ? size : 1);
      for (size_t k = 0; k < size; ++k) {
        uint64_t value = draw(&state);
        noise[k] = (char)(value & 1 ? value >> 8 & 0x1f : value >> 8 & 0x7f);
      }
      check(rn_pb_messages[i], rn_str_n(noise, size));
      free(noise);
    }
  }
  cr_assert(accepted > 100 && refused > 100, "%d accepted, %d refused", accepted, refused);
}

Test(mutation, text) {
  uint64_t state = 11;
  rn_arena_init(&arena, rn_allocator_system());
  char copy[sizeof SEED_TEXT];
  for (int round = 0; round < 20000; ++round) {
    memcpy(copy, SEED_TEXT, sizeof copy);
    for (uint64_t n = 1 + draw(&state) % 3; n > 0; --n) {
      uint64_t value = draw(&state);
      static const char letters[] = "{}<>[]:'\"\\,;#0x-. \nae\x80";
      copy[value % (sizeof copy - 1)] = letters[(value >> 32) % (sizeof letters - 1)];
    }
    void* message = NULL;
    size_t size = draw(&state) % 8 ? sizeof copy - 1 : draw(&state) % sizeof copy;
    rn_status_t status = rn_pb_parse(graph_desc(), rn_str_n(copy, size), NULL, &arena, &message);
    cr_assert_eq(message != NULL, rn_ok(status));
    ++*(rn_ok(status) ? &accepted : &refused);
    rn_status_free(status);
    rn_arena_clear(&arena);
  }
  cr_assert(accepted > 300 && refused > 1000, "%d accepted, %d refused", accepted, refused);
}
