// See toy_stream.h.
#include "toy_stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY ((uint64_t)1 << 30)
#define MAX_BLOCKS 4096
#define ALIGN 256

// --- Memory: one file, mapped twice

static struct {
  pthread_mutex_t mutex;
  char *closed, *open;  // what the host gets, what the device uses
  struct {
    uint64_t at, size;
  } blocks[MAX_BLOCKS];  // in the order of their addresses
  int count;
  uint64_t in_use;
} memory = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void map_locked(void) {
  if (memory.open) return;
  int file = memfd_create("toy", 0);
  if (file < 0 || ftruncate(file, MEMORY) != 0) abort();
  memory.closed = mmap(NULL, MEMORY, PROT_NONE, MAP_SHARED, file, 0);
  memory.open = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory.closed == MAP_FAILED || memory.open == MAP_FAILED) abort();
}

uint64_t toy_memory_size(void) { return MEMORY; }
uint64_t toy_memory_in_use(void) { return memory.in_use; }
void* toy_view(uintptr_t address) { return memory.open + (address - (uintptr_t)memory.closed); }

// First fit.
uintptr_t toy_memory_alloc(uint64_t size) {
  if (size > MEMORY) return 0;
  size = (size + ALIGN) / ALIGN * ALIGN;
  pthread_mutex_lock(&memory.mutex);
  map_locked();
  uint64_t at = 0;
  int i = 0;
  while (i < memory.count && memory.blocks[i].at - at < size) {
    at = memory.blocks[i].at + memory.blocks[i].size;
    i++;
  }
  bool fits = memory.count < MAX_BLOCKS && at + size <= MEMORY;
  if (fits) {
    memmove(&memory.blocks[i + 1], &memory.blocks[i],
            (size_t)(memory.count - i) * sizeof *memory.blocks);
    memory.blocks[i].at = at;
    memory.blocks[i].size = size;
    memory.count++;
    memory.in_use += size;
  }
  pthread_mutex_unlock(&memory.mutex);
  return fits ? (uintptr_t)memory.closed + at : 0;
}

void toy_memory_free(uintptr_t address) {
  pthread_mutex_lock(&memory.mutex);
  uint64_t at = address - (uintptr_t)memory.closed;
  int i = 0;
  while (i < memory.count && memory.blocks[i].at != at) i++;
  if (i == memory.count) {
    fprintf(stderr, "toy: freed what was not allocated\n");
    abort();
  }
  memory.in_use -= memory.blocks[i].size;
  memory.count--;
  memmove(&memory.blocks[i], &memory.blocks[i + 1],
          (size_t)(memory.count - i) * sizeof *memory.blocks);
  pthread_mutex_unlock(&memory.mutex);
}

// --- Streams

typedef struct job_t {
  struct job_t* next;
  toy_work_t work;
  toy_args_t args;
} job_t;

struct toy_stream_t {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t thread;
  job_t *first, *last;
  bool is_busy, is_stopping;
};

static void* stream_main(void* arg) {
  toy_stream_t* stream = arg;
  pthread_mutex_lock(&stream->mutex);
  for (;;) {
    while (!stream->first && !stream->is_stopping)
      pthread_cond_wait(&stream->changed, &stream->mutex);
    job_t* job = stream->first;
    if (!job) break;
    stream->first = job->next;
    if (!stream->first) stream->last = NULL;
    stream->is_busy = true;
    pthread_mutex_unlock(&stream->mutex);
    usleep(200);  // work that nobody waits for is late
    job->work(&job->args);
    free(job);
    pthread_mutex_lock(&stream->mutex);
    stream->is_busy = false;
    pthread_cond_broadcast(&stream->changed);
  }
  pthread_mutex_unlock(&stream->mutex);
  return NULL;
}

toy_stream_t* toy_stream_create(void) {
  toy_stream_t* stream = calloc(1, sizeof *stream);
  pthread_mutex_init(&stream->mutex, NULL);
  pthread_cond_init(&stream->changed, NULL);
  pthread_create(&stream->thread, NULL, stream_main, stream);
  return stream;
}

void toy_stream_destroy(toy_stream_t* stream) {
  pthread_mutex_lock(&stream->mutex);
  stream->is_stopping = true;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
  pthread_join(stream->thread, NULL);
  pthread_cond_destroy(&stream->changed);
  pthread_mutex_destroy(&stream->mutex);
  free(stream);
}

void toy_stream_issue(toy_stream_t* stream, toy_work_t work, const toy_args_t* args) {
  job_t* job = calloc(1, sizeof *job);
  job->work = work;
  job->args = *args;
  pthread_mutex_lock(&stream->mutex);
  if (stream->last)
    stream->last->next = job;
  else
    stream->first = job;
  stream->last = job;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
}

void toy_stream_wait(toy_stream_t* stream) {
  pthread_mutex_lock(&stream->mutex);
  while (stream->first || stream->is_busy) pthread_cond_wait(&stream->changed, &stream->mutex);
  pthread_mutex_unlock(&stream->mutex);
}

// --- Events. Work that still refers to one keeps it alive.

struct toy_event_t {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int owners;
  int recorded, done;  // numbers of the last record and of the last that was reached
};

toy_event_t* toy_event_create(void) {
  toy_event_t* event = calloc(1, sizeof *event);
  pthread_mutex_init(&event->mutex, NULL);
  pthread_cond_init(&event->changed, NULL);
  event->owners = 1;
  return event;
}

void toy_event_destroy(toy_event_t* event) {
  pthread_mutex_lock(&event->mutex);
  bool is_last = --event->owners == 0;
  pthread_mutex_unlock(&event->mutex);
  if (!is_last) return;
  pthread_cond_destroy(&event->changed);
  pthread_mutex_destroy(&event->mutex);
  free(event);
}

static toy_args_t event_args(toy_event_t* event, bool records) {
  pthread_mutex_lock(&event->mutex);
  event->owners++;
  if (records) event->recorded++;
  toy_args_t args = {{(uintptr_t)event, (uintptr_t)event->recorded}};
  pthread_mutex_unlock(&event->mutex);
  return args;
}

static void reach(const toy_args_t* args) {
  toy_event_t* event = (toy_event_t*)args->at[0];
  pthread_mutex_lock(&event->mutex);
  if (event->done < (int)args->at[1]) event->done = (int)args->at[1];
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->mutex);
  toy_event_destroy(event);
}

static void await_number(toy_event_t* event, int number) {
  pthread_mutex_lock(&event->mutex);
  while (event->done < number) pthread_cond_wait(&event->changed, &event->mutex);
  pthread_mutex_unlock(&event->mutex);
}

static void await(const toy_args_t* args) {
  toy_event_t* event = (toy_event_t*)args->at[0];
  await_number(event, (int)args->at[1]);
  toy_event_destroy(event);
}

void toy_event_record(toy_event_t* event, toy_stream_t* stream) {
  toy_args_t args = event_args(event, true);
  toy_stream_issue(stream, reach, &args);
}

void toy_event_wait_on(toy_event_t* event, toy_stream_t* stream) {
  toy_args_t args = event_args(event, false);
  toy_stream_issue(stream, await, &args);
}

bool toy_event_is_done(toy_event_t* event) {
  pthread_mutex_lock(&event->mutex);
  bool is_done = event->done >= event->recorded;
  pthread_mutex_unlock(&event->mutex);
  return is_done;
}

void toy_event_wait(toy_event_t* event) {
  pthread_mutex_lock(&event->mutex);
  int number = event->recorded;
  pthread_mutex_unlock(&event->mutex);
  await_number(event, number);
}
