// Runs the corpora as a test: a target, built without libFuzzer, over the given files and folders.
// "--random=COUNT" runs it over COUNT inputs of pseudo-random bytes, the same every time;
// "--write=NUMBER" writes input NUMBER of these to stdout instead, for a corpus.
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static int count;

static int fail(const char* path) {
  fprintf(stderr, "%s: %s\n", path, strerror(errno));
  return 1;
}

static int run_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return fail(path);
  size_t size = 0, room = 0;
  uint8_t* data = NULL;
  while (!feof(file) && !ferror(file)) {
    if (size == room) {
      room = room ? 2 * room : 4096;
      uint8_t* more = realloc(data, room);
      if (!more) abort();
      data = more;
    }
    size += fread(data + size, 1, room - size, file);
  }
  fclose(file);
  // A block of exactly the input's size, so that sanitizers see an overrun.
  uint8_t* exact = malloc(size ? size : 1);
  if (!exact) abort();
  if (size) memcpy(exact, data, size);
  free(data);
  printf("%s\n", path);
  fflush(stdout);  // the last line names the input that crashed
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  count++;
  return 0;
}

// Sorted by name, so that the order is the same on every file system.
static int run_folder(const char* path, struct dirent** entries, int entry_count) {
  char name[4096];
  int failed = 0;
  for (int i = 0; i < entry_count; ++i) {
    snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
    if (entries[i]->d_name[0] != '.') failed |= run_file(name);
    free(entries[i]);
  }
  free(entries);
  return failed;
}

static uint64_t next_random(uint64_t* state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

#define MAX_RANDOM 192

static size_t make_random(uint64_t number, uint8_t* data) {
  uint64_t state = number << 20;
  size_t size = 8 + next_random(&state) % (MAX_RANDOM - 8);
  for (size_t i = 0; i < size; ++i) data[i] = (uint8_t)next_random(&state);
  return size;
}

static void run_random(uint64_t inputs) {
  uint8_t data[MAX_RANDOM];
  for (uint64_t number = 0; number < inputs; ++number) {
    size_t size = make_random(number, data);
    printf("--write=%llu\n", (unsigned long long)number);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    count++;
  }
}

static int write_random(uint64_t number) {
  uint8_t data[MAX_RANDOM];
  size_t size = make_random(number, data);
  return fwrite(data, 1, size, stdout) != size;
}

int main(int argc, char** argv) {
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--write=", 8) == 0) return write_random(strtoull(argv[i] + 8, NULL, 10));
    if (strncmp(argv[i], "--random=", 9) == 0) {
      run_random(strtoull(argv[i] + 9, NULL, 10));
      continue;
    }
    struct dirent** entries = NULL;
    int entry_count = scandir(argv[i], &entries, NULL, alphasort);
    failed |= entry_count >= 0 ? run_folder(argv[i], entries, entry_count) : run_file(argv[i]);
  }
  printf("%d inputs\n", count);
  return failed || count == 0;  // an empty corpus is an error
}
