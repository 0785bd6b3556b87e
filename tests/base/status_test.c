// Statuses: codes, messages, payloads, and what remains of them when memory runs out.
#include "base/status.h"

#include <criterion/criterion.h>

#include "../support/status.h"
#include "base/alloc.h"

static rn_counting_allocator_t counting;

static void count_from(int64_t fail_at) {
  counting = (rn_counting_allocator_t){
      .base = rn_allocator_system(), .fail_at = fail_at, .fail_all_after = true};
  rn_allocator_set_default_for_testing(rn_allocator_counting(&counting));
}

Test(status, ok_is_free) {
  OK(RN_OK);
  cr_assert_eq(rn_status_code(RN_OK), RN_CODE_OK);
  cr_assert_str_eq(rn_status_message(RN_OK), "");
  rn_status_free(RN_OK);
  OK(rn_status_copy(RN_OK));
  OK(rn_status_annotate(RN_OK, "never"));
}

Test(status, carries_code_and_message) {
  count_from(0);
  rn_status_t status = rn_invalid_argument("%s has %d", "x", 7);
  cr_assert(!rn_ok(status));
  cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  cr_assert_str_eq(rn_status_message(status), "x has 7");
  rn_status_free(status);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(status, ok_is_no_error_code) {
  rn_status_t status = rn_status_make(RN_CODE_OK, "odd");
  cr_assert(!rn_ok(status));
  cr_assert_eq(rn_status_code(status), RN_CODE_UNKNOWN);
  rn_status_free(status);
}

Test(status, long_messages_are_whole) {
  count_from(0);
  char text[5000];
  memset(text, 'y', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  rn_status_t status = rn_internal("<%s>", text);
  cr_assert_eq(strlen(rn_status_message(status)), sizeof text + 1);
  cr_assert_eq(rn_status_message(status)[sizeof text], '>');
  status = rn_status_annotate(status, " and %s", text);
  cr_assert_eq(strlen(rn_status_message(status)), 2 * sizeof text + 5);
  rn_status_free(status);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(status, any_bytes) {
  rn_status_t status = rn_status_make_n(RN_CODE_DATA_LOSS, "a\0b%s", 5);
  cr_assert_eq(memcmp(rn_status_message(status), "a\0b%s", 6), 0);
  rn_status_t copy = rn_status_copy(status);
  rn_status_free(status);
  cr_assert_eq(memcmp(rn_status_message(copy), "a\0b%s", 6), 0);
  rn_status_free(copy);
  status = rn_status_make_n(RN_CODE_DATA_LOSS, NULL, 0);
  cr_assert_str_eq(rn_status_message(status), "");
  rn_status_free(status);
}

Test(status, join_keeps_the_first) {
  count_from(0);
  rn_status_t status = rn_status_join(RN_OK, rn_not_found("b"));
  cr_assert_str_eq(rn_status_message(status), "b");
  status = rn_status_join(status, rn_not_found("c"));
  cr_assert_str_eq(rn_status_message(status), "b");
  status = rn_status_join(status, RN_OK);
  cr_assert_str_eq(rn_status_message(status), "b");
  rn_status_free(status);
  cr_assert_eq(counting.live_blocks, 0);
}

static void collect(const char* key, const char* value, void* arg) {
  strcat(arg, key);
  strcat(arg, "=");
  strcat(arg, value);
  strcat(arg, ";");
}

Test(status, payloads_are_kept_in_order_and_replaced) {
  count_from(0);
  rn_status_t status = rn_aborted("x");
  rn_status_set_payload(status, "k1", "one");
  rn_status_set_payload(status, "k2", "two");
  rn_status_set_payload(status, "k1", "three");
  rn_status_t copy = rn_status_copy(status);
  status = rn_status_annotate(status, "%s", "!");
  char text[100] = "";
  rn_status_each_payload(status, collect, text);
  cr_assert_str_eq(text, "k1=three;k2=two;");
  rn_status_free(status);
  text[0] = '\0';
  rn_status_each_payload(copy, collect, text);
  cr_assert_str_eq(text, "k1=three;k2=two;");
  rn_status_free(copy);
  rn_status_set_payload(RN_OK, "k", "v");
  rn_status_each_payload(RN_OK, collect, text);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(status, payloads_follow_an_annotation_to_another_allocator) {
  count_from(0);
  rn_status_t status = rn_aborted("x");
  rn_status_set_payload(status, "k", "v");
  rn_allocator_set_default_for_testing(rn_allocator_system());
  status = rn_status_annotate(status, "y");
  cr_assert_eq(counting.live_blocks, 0);
  char text[100] = "";
  rn_status_each_payload(status, collect, text);
  cr_assert_str_eq(text, "k=v;");
  rn_status_free(status);
}

Test(status, out_of_memory_is_static) {
  count_from(1);
  rn_status_t status = rn_not_found("gone");
  cr_assert_eq(status, rn_out_of_memory());
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_str_eq(rn_status_message(status), "Out of memory");
  rn_status_t copy = rn_status_copy(status);
  cr_assert_eq(copy, status);
  rn_status_set_payload(status, "k", "v");
  rn_status_free(status);
  rn_status_free(copy);
  status = rn_status_annotate(rn_out_of_memory(), " at %s", "x");
  cr_assert_eq(status, rn_out_of_memory());
  count_from(0);
  status = rn_status_annotate(rn_out_of_memory(), " at %s", "x");
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_str_eq(rn_status_message(status), "Out of memory at x");
  rn_status_free(status);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(status, annotation_without_memory_keeps_the_error) {
  count_from(2);
  rn_status_t status = rn_not_found("gone");
  status = rn_status_annotate(status, " at home");
  cr_assert_eq(rn_status_code(status), RN_CODE_NOT_FOUND);
  cr_assert_str_eq(rn_status_message(status), "gone");
  rn_status_set_payload(status, "k", "v");
  char text[100] = "";
  rn_status_each_payload(status, collect, text);
  cr_assert_str_eq(text, "");
  rn_status_free(status);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(status, every_failed_allocation_is_survived) {
  for (int64_t n = 1; n < 20; n++) {
    count_from(n);
    rn_status_t status = rn_internal("%600d", 1);
    rn_status_set_payload(status, "k", "v");
    rn_status_t copy = rn_status_copy(status);
    copy = rn_status_annotate(copy, "%600d", 2);
    cr_assert(!rn_ok(status));
    cr_assert(!rn_ok(copy));
    rn_status_free(status);
    rn_status_free(copy);
    cr_assert_eq(counting.live_blocks, 0, "allocation %d", (int)n);
    cr_assert_eq(counting.live_bytes, 0, "allocation %d", (int)n);
  }
}

Test(status, code_names) {
  cr_assert_str_eq(rn_code_name(RN_CODE_OK), "OK");
  cr_assert_str_eq(rn_code_name(RN_CODE_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  cr_assert_str_eq(rn_code_name(RN_CODE_UNAUTHENTICATED), "UNAUTHENTICATED");
  cr_assert_str_eq(rn_code_name((rn_code_t)17), "UNKNOWN");
  cr_assert_str_eq(rn_code_name((rn_code_t)-1), "UNKNOWN");
}
