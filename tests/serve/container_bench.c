// Figures of containers: round trips, bytes per second, and the time from a crash to the next
// answer. usage: serve_container_bench COMMAND ...     the command serves x -> y, floats [-1,784]
#include <signal.h>
#include <stdlib.h>

#include "guest.h"

#define COLUMNS 784

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

static rn_status_t round_trip(rn_backend_t* backend, rn_tensor_t* input) {
  batch_t batch;
  batch_init(&batch, 0, 0);
  rn_tensor_clear(&batch.input);
  OK(rn_tensor_share(input, &batch.input));
  batch.run.cancel = NULL;
  backend->vtable->run(backend, &batch.run);
  rn_status_t status = batch_wait(&batch);
  rn_tensor_clear(&batch.output);
  return status;
}

static void measure(rn_backend_t* backend, int64_t rows, int count) {
  rn_tensor_t input;
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, (int64_t[]){rows, COLUMNS}}, &input));
  memset(input.data, 0, rn_tensor_bytes(&input));
  int64_t* times = calloc((size_t)count, sizeof *times);
  for (int i = -count / 10; i < count; ++i) {
    int64_t begun = now();
    OK(round_trip(backend, &input));
    if (i >= 0) times[i] = now() - begun;
  }
  qsort(times, (size_t)count, sizeof *times, compare);
  double mega = (double)rn_tensor_bytes(&input) * 1e-6;
  printf("%7lld rows: p50 %8.1f us, p99 %8.1f us, %7.0f MB/s of inputs\n", (long long)rows,
         (double)times[count / 2] * 1e-3, (double)times[count * 99 / 100] * 1e-3,
         mega / ((double)times[count / 2] * 1e-9));
  free(times);
  rn_tensor_clear(&input);
}

static void measure_crash(rn_backend_t* backend) {
  rn_tensor_t input;
  OK(rn_tensor_create(memory(), RN_FLOAT, (rn_shape_t){2, (int64_t[]){1, COLUMNS}}, &input));
  memset(input.data, 0, rn_tensor_bytes(&input));
  for (int i = 0; i < 5; ++i) {
    int64_t begun = now();
    kill(rn_container_stats(backend).pid, SIGKILL);
    int64_t starts = rn_container_stats(backend).starts;
    wait_for_start(backend, starts);
    OK(round_trip(backend, &input));
    printf("killed; the next answer came after %.1f ms\n", (double)(now() - begun) * 1e-6);
  }
  rn_tensor_clear(&input);
}

int main(int argc, char** argv) {
  for (int copies = 0; copies < 2; ++copies) {
    guest_t guest;
    guest_init(&guest);
    rn_strbuf_t config;
    rn_strbuf_init(&config, memory());
    for (int i = 1; i < argc; ++i) rn_strbuf_printf(&config, "command: '%s' ", argv[i]);
    if (copies) rn_strbuf_printf(&config, "copies: true");
    OK(guest_load(&guest, config.data));
    rn_strbuf_clear(&config);
    printf("%s\n", copies ? "through the socket" : "through shared memory");
    measure(guest.backends[0], 1, 5000);
    measure(guest.backends[0], 1000, 500);
    measure(guest.backends[0], 20000, 20);
    if (!copies) measure_crash(guest.backends[0]);
    guest_clear(&guest);
  }
  return 0;
}
