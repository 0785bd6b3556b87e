// Input pipelines as training programs use them: files, readers, batches, threads.
#include "runnel/input.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

// Two files of numbers, one a line: 0 … 9 and 10 … 14.
static char folder[] = "/tmp/rn_input_test_XXXXXX";
static char paths[2][80];
static const char* files[2] = {paths[0], paths[1]};

static void make_files(void) {
  cr_assert_not_null(mkdtemp(folder));
  for (int f = 0; f < 2; ++f) {
    snprintf(paths[f], sizeof paths[f], "%s/%d.txt", folder, f);
    FILE* file = fopen(paths[f], "w");
    for (int i = 10 * f; i < 10 + 5 * f; ++i) fprintf(file, "%d\n", i);
    fclose(file);
  }
}

static void remove_files(void) {
  for (int f = 0; f < 2; ++f) unlink(paths[f]);
  rmdir(folder);
}

TestSuite(input, .init = make_files, .fini = remove_files);

// The number on the next line of the files.
static rn_edge_t next_number(rn_scope_t* s, rn_edge_t names) {
  rn_ReaderReadV2_out_t line = rn_ReaderReadV2(s, rn_TextLineReaderV2(s), names);
  return rn_StringToNumber(s, line.value, .out_type = TF_INT32);
}

// Runs |batch| until the input ends: how often each number came, and the last batch's size.
static int drain(trial_t* t, rn_edge_t batch, int* seen, int* out_last) {
  TF_Output fetch = rn_output_of(batch);
  int steps = 0;
  for (; steps < 1000; ++steps) {
    TF_Tensor* value = NULL;
    TF_SessionRun(t->session, NULL, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, NULL, t->status);
    if (TF_GetCode(t->status) != TF_OK) break;
    *out_last = (int)TF_Dim(value, 0);
    for (int i = 0; i < *out_last; ++i) {
      int number = ((const int32_t*)TF_TensorData(value))[i];
      cr_assert(number >= 0 && number < 15);
      seen[number]++;
    }
    TF_DeleteTensor(value);
  }
  cr_expect(TF_GetCode(t->status) == TF_OUT_OF_RANGE, "%s", TF_Message(t->status));
  TF_SetStatus(t->status, TF_OK, "");
  return steps;
}

typedef struct outcome_t {
  int seen[15];
  int steps, last;
} outcome_t;

static outcome_t run(trial_t* t, rn_edge_t batch, int runners) {
  outcome_t outcome = {0};
  rn_node_t* init = rn_initialize_variables(t->s, RN_LOCAL_VARIABLES);
  trial_built(t);
  trial_run(t, init, NULL, NULL, 0);
  rn_coordinator_t* c = rn_coordinator_create();
  cr_assert_eq(rn_start_queue_runners(t->session, t->graph, c), runners, "%s",
               rn_coordinator_message(c));
  outcome.steps = drain(t, batch, outcome.seen, &outcome.last);
  rn_coordinator_request_stop(c);
  cr_expect(rn_coordinator_join(c, 10) == TF_OK, "%s", rn_coordinator_message(c));
  rn_coordinator_destroy(c);
  return outcome;
}

static void expect_each(const outcome_t* outcome, int times) {
  for (int i = 0; i < 15; ++i) cr_expect_eq(outcome->seen[i], times, "%d: %d", i, outcome->seen[i]);
}

Test(input, batch) {
  trial_t t = trial_open();
  rn_edge_t names = rn_string_input_producer(t.s, files, 2, .num_epochs = 2, .in_order = true);
  rn_edge_t number = next_number(t.s, names);
  rn_edges_t batch = rn_batch(t.s, &number, 1, 4, .allow_smaller_final_batch = true);
  outcome_t outcome = run(&t, rn_edge_at(batch, 0), 2);
  cr_expect_eq(outcome.steps, 8);
  cr_expect_eq(outcome.last, 2);
  expect_each(&outcome, 2);
  trial_close(&t);
}

Test(input, whole_batches_only) {
  trial_t t = trial_open();
  rn_edge_t names = rn_string_input_producer(t.s, files, 2, .num_epochs = 2);
  rn_edge_t number = next_number(t.s, names);
  rn_edges_t batch = rn_batch(t.s, &number, 1, 4, .threads = 3);
  outcome_t outcome = run(&t, rn_edge_at(batch, 0), 4);
  cr_expect_eq(outcome.steps, 7);
  trial_close(&t);
}

Test(input, shuffle_batch) {
  trial_t t = trial_open();
  rn_edge_t names = rn_string_input_producer(t.s, files, 2, .num_epochs = 3, .seed = 5);
  rn_edge_t number = next_number(t.s, names);
  rn_edges_t batch = rn_shuffle_batch(t.s, &number, 1, 5, .min_after_dequeue = 10, .seed = 3,
                                      .threads = 2, .allow_smaller_final_batch = true);
  outcome_t outcome = run(&t, rn_edge_at(batch, 0), 3);
  cr_expect_eq(outcome.steps, 9);
  expect_each(&outcome, 3);
  trial_close(&t);
}

Test(input, batch_join) {
  trial_t t = trial_open();
  rn_edge_t names = rn_string_input_producer(t.s, files, 2, .num_epochs = 1);
  rn_edge_t numbers[2] = {next_number(t.s, names), next_number(t.s, names)};
  rn_edges_t batch = rn_batch_join(t.s, numbers, 2, 1, 6, .allow_smaller_final_batch = true);
  outcome_t outcome = run(&t, rn_edge_at(batch, 0), 3);
  cr_expect_eq(outcome.steps, 3);
  expect_each(&outcome, 1);
  trial_close(&t);
}

Test(input, shuffle_batch_join) {
  trial_t t = trial_open();
  rn_edge_t names = rn_string_input_producer(t.s, files, 2, .num_epochs = 2);
  rn_edge_t numbers[2] = {next_number(t.s, names), next_number(t.s, names)};
  rn_edges_t batch = rn_shuffle_batch_join(t.s, numbers, 2, 1, 6, .min_after_dequeue = 4,
                                           .allow_smaller_final_batch = true);
  outcome_t outcome = run(&t, rn_edge_at(batch, 0), 3);
  expect_each(&outcome, 2);
  trial_close(&t);
}

Test(input, range_and_padding) {
  trial_t t = trial_open();
  rn_edge_t queue = rn_range_input_producer(t.s, 15, .num_epochs = 1, .in_order = true);
  const int type = TF_INT32;
  rn_edge_t number =
      rn_EnsureShape(t.s, rn_edge_at(rn_QueueDequeueV2(t.s, queue, &type, 1), 0), NULL, 0);
  // As many ones as the number says: [[0,…], [1,0,…], [1,1,…]].
  rn_edge_t ones =
      rn_Fill(t.s, rn_ExpandDims(t.s, number, rn_const_int32(t.s, 0)), rn_const_int32(t.s, 1));
  rn_edge_t both[2] = {number, ones};
  rn_edges_t batch = rn_batch(t.s, both, 2, 5, .dynamic_pad = true);
  rn_edge_t sums = rn_Sum(t.s, rn_edge_at(batch, 1), rn_const_int32(t.s, 1));
  outcome_t outcome = run(&t, sums, 2);
  cr_expect_eq(outcome.steps, 3);
  expect_each(&outcome, 1);
  trial_close(&t);
}

// A file that is not there ends the pipeline, and the coordinator says why.
Test(input, missing_file) {
  trial_t t = trial_open();
  const char* missing[] = {"/nowhere/at/all"};
  rn_edge_t number = next_number(t.s, rn_string_input_producer(t.s, missing, 1, .num_epochs = 1));
  rn_edge_t batch = rn_edge_at(rn_batch(t.s, &number, 1, 2), 0);
  rn_node_t* init = rn_initialize_variables(t.s, RN_LOCAL_VARIABLES);
  trial_built(&t);
  trial_run(&t, init, NULL, NULL, 0);
  rn_coordinator_t* c = rn_coordinator_create();
  cr_assert_eq(rn_start_queue_runners(t.session, t.graph, c), 2);
  int seen[15], last = 0;
  drain(&t, batch, seen, &last);
  cr_expect(rn_coordinator_join(c, 10) == TF_NOT_FOUND);
  cr_expect(strstr(rn_coordinator_message(c), "/nowhere/at/all"), "%s", rn_coordinator_message(c));
  rn_coordinator_destroy(c);
  trial_close(&t);
}

// Two records, "10" and "7".
static const char records[] =
    "\x02\x00\x00\x00\x00\x00\x00\x00\x78\x27\x0b\x34\x31\x30\xb5\x0f\xb2\x0b\x01\x00\x00\x00\x00"
    "\x00\x00\x00\x01\x75\xde\x41\x37\x80\x57\x9a\x9e";

// The numbers that |reader| finds in a file of |content|, summed, and how many there are.
static void expect_sum(rn_edge_t (*make)(rn_scope_t*), const char* content, size_t size, int sum,
                       int count) {
  trial_t t = trial_open();
  FILE* file = fopen(paths[0], "wb");
  cr_assert_eq(fwrite(content, 1, size, file), size);
  fclose(file);
  rn_edge_t names = rn_string_input_producer(t.s, files, 1, .num_epochs = 2, .in_order = true);
  rn_edge_t reader = make(t.s);
  rn_edge_t value = rn_ReaderReadV2(t.s, reader, names).value;
  rn_edge_t number = rn_StringToNumber(t.s, value, .out_type = TF_INT32);
  rn_edge_t batch = rn_edge_at(rn_batch(t.s, &number, 1, 3, .allow_smaller_final_batch = true), 0);
  rn_edge_t items = rn_ReaderNumWorkUnitsCompletedV2(t.s, reader);
  outcome_t outcome = run(&t, batch, 2);
  int found = 0, total = 0;
  for (int i = 0; i < 15; ++i) found += outcome.seen[i], total += i * outcome.seen[i];
  cr_expect_eq(found, 2 * count, "%d", found);
  cr_expect_eq(total, 2 * sum, "%d", total);
  cr_expect_eq(trial_scalar(&t, items), 2);
  trial_close(&t);
}

static rn_edge_t fixed_length(rn_scope_t* s) {
  return rn_FixedLengthRecordReaderV2(s, 2, .header_bytes = 1, .footer_bytes = 3);
}
static rn_edge_t whole_file(rn_scope_t* s) { return rn_WholeFileReaderV2(s); }
static rn_edge_t tf_record(rn_scope_t* s) { return rn_TFRecordReaderV2(s); }
static rn_edge_t after_header(rn_scope_t* s) {
  return rn_TextLineReaderV2(s, .skip_header_lines = 2);
}

Test(input, readers) {
  expect_sum(fixed_length, "H101112END", 10, 33, 3);
  expect_sum(whole_file, "14", 2, 14, 1);
  expect_sum(tf_record, records, sizeof records - 1, 17, 2);
  expect_sum(after_header, "a\nb\r\n3\r\n4", 9, 7, 2);
}

// Writes |size| bytes of the two records to both files.
static void write_both(size_t size) {
  for (int f = 0; f < 2; ++f) {
    FILE* file = fopen(paths[f], "wb");
    cr_assert_eq(fwrite(records, 1, size, file), size);
    fclose(file);
  }
}

// Every round has each record of each file once, however small the buffer is.
Test(input, record_input) {
  char pattern[96];
  snprintf(pattern, sizeof pattern, "%s/*.txt", folder);
  write_both(sizeof records - 1);
  for (int buffer = 1; buffer < 8; ++buffer) {
    trial_t t = trial_open();
    rn_edge_t drawn = rn_RecordInput(
        t.s, pattern, .batch_size = RN_SET(4), .file_buffer_size = RN_SET(buffer),
        .file_parallelism = RN_SET(1 + buffer % 3), .file_shuffle_shift_ratio = 0.5f);
    rn_edge_t number = rn_StringToNumber(t.s, drawn, .out_type = TF_INT32);
    for (int round = 0; round < 5; ++round) {
      double got[4];
      int tens = 0, sevens = 0;
      cr_assert_eq(trial_fetch(&t, number, NULL, NULL, 0, got, 4), 4);
      for (int i = 0; i < 4; ++i) tens += got[i] == 10, sevens += got[i] == 7;
      cr_expect(tens == 2 && sevens == 2, "%d tens, %d sevens", tens, sevens);
    }
    trial_close(&t);
  }
}

static void expect_drawing_fails(const char* pattern, TF_Code code, const char* words) {
  trial_t t = trial_open();
  TF_Output drawn = rn_output_of(rn_RecordInput(t.s, pattern, .batch_size = RN_SET(4)));
  trial_built(&t);
  cr_assert_eq(trial_scalar(&t, rn_const_int32(t.s, 1)), 1);  // makes the session
  TF_Tensor* value = NULL;
  TF_SessionRun(t.session, NULL, NULL, NULL, 0, &drawn, &value, 1, NULL, 0, NULL, t.status);
  cr_expect(TF_GetCode(t.status) == code, "%s", TF_Message(t.status));
  cr_expect(strstr(TF_Message(t.status), words), "%s", TF_Message(t.status));
  TF_SetStatus(t.status, TF_OK, "");
  trial_close(&t);
}

Test(input, record_input_fails) {
  char pattern[96];
  snprintf(pattern, sizeof pattern, "%s/*.txt", folder);
  expect_drawing_fails("/nowhere/at/*", TF_NOT_FOUND, "Found no files at /nowhere/at/*");
  write_both(sizeof records - 4);
  expect_drawing_fails(pattern, TF_DATA_LOSS, "truncated record at 18");
  write_both(0);
  expect_drawing_fails(pattern, TF_OUT_OF_RANGE, "contain no records");
}

static void expect_refused(trial_t* t, const char* words) {
  cr_expect(!rn_scope_ok(t->s));
  cr_expect(strstr(rn_scope_message(t->s), words), "%s", rn_scope_message(t->s));
  trial_close(t);
}

Test(input, refused) {
  trial_t t = trial_open();
  rn_string_input_producer(t.s, files, 0);
  expect_refused(&t, "non-null input tensor");
  t = trial_open();
  rn_limit_epochs(t.s, rn_const_int32(t.s, 1), 0);
  expect_refused(&t, "num_epochs must be > 0 not 0.");
  t = trial_open();
  rn_edge_t open = rn_Placeholder(t.s, TF_FLOAT);
  rn_batch(t.s, &open, 1, 2);
  expect_refused(&t, "rank");
  t = trial_open();
  rn_edge_t two[2] = {rn_const_int32(t.s, 1), rn_const_float(t.s, 1)};
  rn_batch_join(t.s, two, 2, 1, 2);
  expect_refused(&t, "types to be consistent");
  t = trial_open();
  rn_batch(t.s, two, 0, 2);
  expect_refused(&t, "there must be tensors");
}
