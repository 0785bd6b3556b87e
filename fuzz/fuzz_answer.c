// Fuzzes responses of other tasks. The first byte selects the method, the rest is the response. It
// is decoded as the caller decodes it, from a separate buffer as from a connection.
#include "dist/rpc/codec.h"
#include "fuzz/util.h"

enum { NAMES = 3 };
static const rn_str_t names[NAMES] = {{"a:0", 3}, {"b:0", 3}, {"", 0}};

// Reads every byte, for the sanitizers.
static void fuzz_use(rn_str_t text) {
  volatile char last = 0;
  for (size_t i = 0; i < text.size; ++i) last = text.data[i];
  (void)last;
}

static void read_status(const rn_in_t* in) {
  rn_get_status_t call = {.is_ours = false};
  rn_arena_init(&call.arena, in->allocator);
  rn_status_free(rn_decode_status(in, &call));
  for (size_t i = 0; i < call.device_count; ++i) fuzz_use(call.devices[i].name);
  rn_arena_clear(&call.arena);
}

static void read_run_graph(const rn_in_t* in) {
  rn_tensor_t values[NAMES] = {0};
  rn_run_graph_t call = {.fetch_names = names,
                         .fetch_count = NAMES,
                         .fetches = values,
                         .wants_stats = true,
                         .wants_graphs = true};
  rn_strbuf_init(&call.stats, in->allocator);
  rn_strbuf_init(&call.graphs, in->allocator);
  rn_status_free(rn_decode_run_graph_response(in, &call));
  for (int i = 0; i < NAMES; ++i) rn_tensor_clear(&values[i]);
  rn_strbuf_clear(&call.stats);
  rn_strbuf_clear(&call.graphs);
}

static void read_received(const rn_in_t* in) {
  rn_recv_tensor_t call = {.step = 1};
  rn_reach_t reach;
  uint64_t loan;
  rn_tensor_t lent = {0};
  bool is_there;
  if (rn_decode_reach(in->bytes, &reach)) fuzz_use(rn_str(reach.machine));
  rn_status_free(rn_decode_loan(in->bytes, &loan, &lent, &is_there));
  rn_tensor_clear(&lent);
  rn_wire_answer_t wire = {.is_sent = false};
  rn_decode_wire_answer(in->bytes, &wire);
  fuzz_use(wire.address);
  rn_status_free(rn_decode_received(in, &call));
  rn_tensor_clear(&call.value);
}

static void read_run_step(const rn_in_t* in) {
  rn_tensor_t values[NAMES] = {0};
  rn_run_step_t call = {.fetch_names = names, .fetch_count = NAMES, .fetches = values};
  rn_strbuf_init(&call.metadata, in->allocator);
  rn_status_free(rn_decode_run_step_response(in, &call));
  for (int i = 0; i < NAMES; ++i) rn_tensor_clear(&values[i]);
  rn_strbuf_clear(&call.metadata);
}

static void read_run_callable(const rn_in_t* in) {
  rn_run_callable_t call = {.handle = 1};
  int64_t room = 0;
  rn_status_t status = rn_decode_run_callable_response(in, &call);
  for (size_t i = 0; i < call.fetch_count; ++i) rn_tensor_clear(&call.fetches[i]);
  if (rn_ok(status)) room = (int64_t)call.fetch_count;
  if (call.fetches) RN_FREE_ARRAY(in->allocator, call.fetches, room);
  rn_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static void (*const readers[])(const rn_in_t*) = {read_status, read_run_graph, read_received,
                                                    read_run_step, read_run_callable};
  if (!size) return 0;
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, 256 << 20);
  rn_str_t bytes = rn_str_n((const char*)data + 1, size - 1);
  size_t head = bytes.size < 256 ? bytes.size : 256;
  size_t at = rn_align_content(rn_str_n(bytes.data, head), bytes.size);
  fuzz_check(at <= head);
  rn_buffer_t* buffer = NULL;
  size_t pad = (RN_ALIGN - at % RN_ALIGN) % RN_ALIGN;
  fuzz_must(rn_buffer_create(allocator, RN_UINT8, bytes.size + pad, &buffer));
  if (bytes.size) memcpy((char*)buffer->data + pad, bytes.data, bytes.size);
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_in_t in = {.bytes = rn_str_n((char*)buffer->data + pad, bytes.size),
                .buffer = buffer,
                .arena = &arena,
                .allocator = allocator};
  readers[data[0] % (sizeof readers / sizeof *readers)](&in);
  rn_arena_clear(&arena);
  rn_buffer_release(buffer);
  fuzz_check(memory.counting.live_bytes == 0);
  return 0;
}
