// Boards: what one process shows and another takes, and the memory that they share.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memfd_create
#endif
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/status.h"
#include "dist/collective/mailbox.h"
#include "dist/rpc/board.h"
#include "dist/rpc/shared.h"

// Both ends, in one process.
typedef struct ends_t {
  rn_board_t* board;
  rn_board_view_t* view;
} ends_t;

static ends_t open_ends(void) {
  ends_t ends;
  int notes = -1, board = -1;
  ends.view = rn_board_view_create(rn_allocator_system(), &notes);
  cr_assert_not_null(ends.view);
  ends.board = rn_board_create(rn_allocator_system(), notes, &board);
  cr_assert_not_null(ends.board);
  cr_assert(rn_board_view_open(ends.view, board));
  close(notes);
  close(board);
  return ends;
}

static void close_ends(ends_t* ends) {
  rn_board_destroy(ends->board);
  rn_board_view_destroy(ends->view);
}

static rn_shown_key_t key_of(uint64_t n) { return (rn_shown_key_t){{n, ~n}}; }

static uint64_t show(ends_t* ends, uint64_t key, int value) {
  return rn_board_show(ends->board, key_of(key), &value, sizeof value);
}

static int take(ends_t* ends, uint64_t key) {
  int value = 0;
  return rn_board_view_take(ends->view, key_of(key), &value, sizeof value) ? value : -1;
}

static int count_descriptors(void) {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

// A peer sends two descriptors in the place of one: both are closed.
Test(board, takes_one_descriptor_of_several) {
  int ends[2], got = -1;
  char packet = 0;
  cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
  } control = {.head = {.cmsg_len = CMSG_LEN(2 * sizeof(int)),
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.head), ends, sizeof ends);
  struct iovec part = {&packet, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = CMSG_SPACE(2 * sizeof(int))};
  int before = count_descriptors();
  cr_assert_eq(sendmsg(ends[0], &message, 0), 1);
  cr_assert_eq(rn_shared_receive(ends[1], &packet, 1, &got), 1);
  cr_assert_geq(got, 0);
  close(got);
  cr_assert_eq(count_descriptors(), before);
  close(ends[0]);
  close(ends[1]);
}

Test(board, gives_each_value_once_and_the_oldest_first) {
  ends_t ends = open_ends();
  cr_assert_eq(take(&ends, 1), -1);
  uint64_t first = show(&ends, 1, 10), second = show(&ends, 1, 11), other = show(&ends, 2, 12);
  cr_assert(first && second && other && first != second);
  cr_assert_not(rn_board_is_taken(ends.board, first));
  cr_assert_eq(take(&ends, 2), 12);
  cr_assert_eq(take(&ends, 1), 10);
  cr_assert(rn_board_is_taken(ends.board, first));
  cr_assert_not(rn_board_is_taken(ends.board, second));
  rn_board_hide(ends.board, second);
  cr_assert_eq(take(&ends, 1), -1, "it was hidden");
  cr_assert_eq(take(&ends, 2), -1, "it was taken");
  char wide[8];
  show(&ends, 3, 13);
  cr_assert_not(rn_board_view_take(ends.view, key_of(3), wide, sizeof wide), "of another size");
  cr_assert_eq(take(&ends, 3), 13);
  close_ends(&ends);
}

Test(board, keeps_what_was_not_taken) {
  ends_t ends = open_ends();
  int shown = 0;
  while (shown < 1000 && show(&ends, (uint64_t)shown + 1, shown)) shown++;
  cr_assert(shown > 1 && shown < 1000, "it is full after %d", shown);
  cr_assert_eq(take(&ends, 6), 5);
  cr_assert(show(&ends, 7000, 7), "a place is free");
  cr_assert_eq(show(&ends, 7001, 8), 0);
  for (int i = 0; i < shown; ++i) cr_assert_eq(take(&ends, (uint64_t)i + 1), i == 5 ? -1 : i);
  cr_assert_eq(take(&ends, 7000), 7);
  for (int i = 0; i < 10000; ++i) {
    cr_assert(show(&ends, 9, i));
    cr_assert_eq(take(&ends, 9), i);
  }
  static char large[RN_SHOWN_MAX + 1];
  cr_assert_eq(rn_board_show(ends.board, key_of(1), large, sizeof large), 0);
  cr_assert(rn_board_show(ends.board, key_of(1), large, RN_SHOWN_MAX));
  cr_assert(rn_board_view_take(ends.view, key_of(1), large, RN_SHOWN_MAX));
  close_ends(&ends);
}

// Only memory that cannot be taken away from under the reader is read, and only its owner writes
// it.
Test(board, needs_sealed_memory_of_the_right_size) {
  int fd = -1;
  char* block = rn_shared_create(100, &fd);
  cr_assert_not_null(block);
  block[99] = 5;
  const char* seen = rn_shared_open(fd, 100);
  cr_assert_not_null(seen);
  cr_assert_eq(seen[99], 5);
  cr_assert_null(rn_shared_open(fd, 101));
  cr_assert_eq(mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  cr_assert_neq(ftruncate(fd, 0), 0);
  rn_shared_close(seen, 100);
  rn_shared_close(block, 100);
  close(fd);
  fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  cr_assert_eq(ftruncate(fd, 100), 0);
  cr_assert_null(rn_shared_open(fd, 100), "its owner could cut it off");
  close(fd);
  cr_assert_null(rn_shared_open(-1, 100));
}

// A worker that is shown values, and what it took.
typedef struct near_t {
  rn_worker_t worker;
  uint64_t shown, hidden, taken;  // numbers; all up to |taken| are
} near_t;

static bool is_near(rn_worker_t* worker) { return worker; }
static uint64_t near_show(rn_worker_t* worker, rn_shown_key_t key, const void* data, size_t size) {
  (void)key, (void)data, (void)size;
  return ++((near_t*)worker)->shown;
}
static void near_hide(rn_worker_t* worker, uint64_t number) { ((near_t*)worker)->hidden = number; }
static bool near_is_taken(rn_worker_t* worker, uint64_t number) {
  return number <= ((near_t*)worker)->taken;
}
static const rn_showing_t near_showing = {
    .is_near = is_near, .show = near_show, .hide = near_hide, .is_taken = near_is_taken};
static const rn_worker_vtable_t near_table = {.showing = &near_showing};

typedef struct taker_t {
  rn_mail_wait_t wait;  // first
  bool is_called;
  float value;
} taker_t;

static void on_mail(rn_mail_wait_t* wait, rn_status_t status, rn_tensor_t* value, bool is_none) {
  taker_t* taker = (taker_t*)wait;
  OK(status);
  taker->is_called = true;
  taker->value = is_none ? -1 : *RN_DATA(value, float);
}

static void post(rn_mailbox_t* mailbox, near_t* reader, float value) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){0, NULL}, &tensor));
  *RN_DATA(&tensor, float) = value;
  OK(rn_mailbox_post(mailbox, &reader->worker, 7, RN_STR("key"), &tensor, false));
}

// What was taken where it was shown is not given to a call; the next value under the key is.
Test(board, and_mailbox_give_a_value_once) {
  rn_mailbox_t* mailbox = NULL;
  near_t reader = {.worker.vtable = &near_table};
  taker_t first = {.wait.fn = on_mail}, second = {.wait.fn = on_mail};
  OK(rn_mailbox_create(rn_env_system(), rn_allocator_system(), &mailbox));
  post(mailbox, &reader, 1);
  post(mailbox, &reader, 2);
  cr_assert_eq(reader.shown, 2);
  reader.taken = 1;
  rn_mailbox_take(mailbox, 7, RN_STR("key"), &first.wait);
  cr_assert(first.is_called);
  cr_assert_eq(first.value, 2);
  cr_assert_eq(reader.hidden, 2, "what a call takes is not shown any more");
  cr_assert_not(rn_mailbox_has_mail(mailbox));
  rn_mailbox_take(mailbox, 7, RN_STR("key"), &second.wait);
  cr_assert_not(second.is_called);
  post(mailbox, &reader, 3);
  cr_assert(second.is_called);
  cr_assert_eq(reader.shown, 2, "somebody waited: there was nothing to show");
  for (int i = 0; i < 1000; ++i) {
    post(mailbox, &reader, (float)i);
    reader.taken = reader.shown;
  }
  cr_assert_not(rn_mailbox_has_mail(mailbox));
  post(mailbox, &reader, 4);
  cr_assert(rn_mailbox_has_mail(mailbox));
  rn_mailbox_fail(mailbox, 7, RN_STR("k"), rn_aborted("it failed"));
  cr_assert_eq(reader.hidden, reader.shown);
  rn_mailbox_destroy(mailbox);
}
