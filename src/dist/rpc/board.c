// See board.h.
#include "dist/rpc/board.h"

#include <stdatomic.h>
#include <string.h>

#include "dist/rpc/shared.h"

#define SLOTS 16

// A slot's head. The writer sets |number| last when it shows a value, and clears it first when it
// takes one off, so a reader that finds the same number before and after it read the data has it
// whole. Numbers are not used twice, and number n is in slot n % SLOTS.
typedef struct board_head_t {
  _Atomic uint64_t number;  // 0: empty
  _Atomic uint64_t key[2];
  _Atomic uint64_t size;
} board_head_t;

// What is shared: the writer's memory, and the reader's.
typedef struct board_page_t {
  board_head_t heads[SLOTS];
  char data[SLOTS][RN_SHOWN_MAX];
} board_page_t;
typedef struct board_notes_t {
  _Atomic uint64_t taken[SLOTS];  // by slot, the number of the value that was taken last
} board_notes_t;

struct rn_board_t {
  rn_allocator_t allocator;
  board_page_t* page;
  const board_notes_t* notes;
  uint64_t last;  // the newest number
};

struct rn_board_view_t {
  rn_allocator_t allocator;
  const board_page_t* page;  // NULL: not open
  board_notes_t* notes;
};

// The writer.

rn_board_t* rn_board_create(rn_allocator_t allocator, int notes, int* out_fd) {
  rn_board_t* board = NULL;
  *out_fd = -1;
  rn_status_free(RN_NEW(allocator, &board));
  if (!board) return NULL;
  board->allocator = allocator;
  board->notes = rn_shared_open(notes, sizeof *board->notes);
  if (board->notes) board->page = rn_shared_create(sizeof *board->page, out_fd);
  if (board->page) return board;
  rn_board_destroy(board);
  return NULL;
}

void rn_board_destroy(rn_board_t* board) {
  if (!board) return;
  rn_shared_close(board->page, sizeof *board->page);
  rn_shared_close(board->notes, sizeof *board->notes);
  RN_FREE(board->allocator, board);
}

static bool is_free(const rn_board_t* board, uint64_t slot) {
  uint64_t number = board->page->heads[slot].number;
  return !number || board->notes->taken[slot] == number;
}

uint64_t rn_board_show(rn_board_t* board, rn_shown_key_t key, const void* data, size_t size) {
  uint64_t number = board->last + 1;
  if (size > RN_SHOWN_MAX) return 0;
  while (number <= board->last + SLOTS && !is_free(board, number % SLOTS)) number++;
  if (number > board->last + SLOTS) return 0;
  board_head_t* head = &board->page->heads[number % SLOTS];
  head->number = 0;
  for (int i = 0; i < 2; ++i) head->key[i] = key.bits[i];
  head->size = size;
  if (size) memcpy(board->page->data[number % SLOTS], data, size);
  head->number = number;
  board->last = number;
  return number;
}

void rn_board_hide(rn_board_t* board, uint64_t number) {
  board_head_t* head = &board->page->heads[number % SLOTS];
  if (head->number == number) head->number = 0;
}

bool rn_board_is_taken(const rn_board_t* board, uint64_t number) {
  uint64_t slot = number % SLOTS;
  return board->page->heads[slot].number != number || is_free(board, slot);
}

// The reader.

rn_board_view_t* rn_board_view_create(rn_allocator_t allocator, int* out_fd) {
  rn_board_view_t* view = NULL;
  *out_fd = -1;
  rn_status_free(RN_NEW(allocator, &view));
  if (!view) return NULL;
  view->allocator = allocator;
  view->notes = rn_shared_create(sizeof *view->notes, out_fd);
  if (view->notes) return view;
  rn_board_view_destroy(view);
  return NULL;
}

void rn_board_view_destroy(rn_board_view_t* view) {
  if (!view) return;
  rn_shared_close(view->page, sizeof *view->page);
  rn_shared_close(view->notes, sizeof *view->notes);
  RN_FREE(view->allocator, view);
}

bool rn_board_view_open(rn_board_view_t* view, int fd) {
  if (!view->page) view->page = rn_shared_open(fd, sizeof *view->page);
  return view->page;
}

bool rn_board_view_take(rn_board_view_t* view, rn_shown_key_t key, void* to, size_t size) {
  const board_page_t* page = view->page;
  uint64_t found = 0;  // the number of the oldest
  for (uint64_t slot = 0; page && slot < SLOTS; ++slot) {
    const board_head_t* head = &page->heads[slot];
    uint64_t number = head->number;
    if (number && number % SLOTS == slot && number != view->notes->taken[slot] &&
        head->key[0] == key.bits[0] && head->key[1] == key.bits[1] && (!found || number < found))
      found = number;
  }
  const board_head_t* head = found ? &page->heads[found % SLOTS] : NULL;
  if (!head || head->size != size || size > RN_SHOWN_MAX) return false;
  if (size) memcpy(to, page->data[found % SLOTS], size);
  atomic_thread_fence(memory_order_acquire);
  if (head->number != found) return false;
  view->notes->taken[found % SLOTS] = found;
  return true;
}
