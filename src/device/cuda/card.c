// Cards: see card.h.
#include "device/cuda/card.h"

#include <dlfcn.h>

#include "device/cuda/copies.h"

// How often an event is looked at before the thread sleeps: about 50 us.
#define SPINS 400
#define OLDEST_DRIVER 12000
#define SCRATCH_BLOCK ((size_t)4 << 20)
// Page-locked memory that is kept idle, and that there may be at a time.
#define MOST_PINNED_IDLE ((size_t)512 << 20)
#define MOST_PINNED ((size_t)4 << 30)

// The cards in use. A card is one per process, whatever sessions there are.
static struct {
  rn_mutex_t mutex;
  rn_cuda_card_t* cards[RN_CUDA_MAX_CARDS];
} table = {.mutex = RN_MUTEX_INIT};

// Errors after which the context is broken and every later call fails. Others, like too little
// memory or too large a block, concern one call.
static bool is_fatal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
      return true;
    default:
      return result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED;
  }
}

rn_status_t rn_cuda_check(rn_cuda_card_t* card, CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return RN_OK;
  if (is_fatal(result)) __atomic_store_n(&card->lost, result, __ATOMIC_RELAXED);
  rn_status_t status = rn_cuda_status(&card->driver, result, call);
  return rn_status_annotate(status, " on GPU %d (%s)", card->ordinal, card->name);
}

rn_status_t rn_cuda_enter(rn_cuda_card_t* card) {
  CUresult lost = __atomic_load_n(&card->lost, __ATOMIC_RELAXED);
  if (lost) return rn_cuda_check(card, lost, "The card was lost by an earlier error");
  return RN_CARD(card, cuCtxSetCurrent, card->context);
}

// Device code is loaded by drivers that know its format, and recordings need newer calls.
static rn_status_t check_version(const rn_cuda_driver_t* driver) {
  int version = 0;
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDriverGetVersion, &version));
  if (version >= OLDEST_DRIVER) return RN_OK;
  return rn_failed_precondition("The driver libcuda.so.1 is for CUDA %d.%d; CUDA %d.%d is needed",
                                version / 1000, version % 1000 / 10, OLDEST_DRIVER / 1000,
                                OLDEST_DRIVER % 1000 / 10);
}

static rn_status_t open_driver(rn_cuda_driver_t* driver) {
  RN_RETURN_IF_ERROR(rn_cuda_driver_open(driver));
  CUresult result = driver->cuInit(0);
  rn_status_t status = result == CUDA_ERROR_NO_DEVICE ? rn_not_found("The driver has no GPU")
                                                      : rn_cuda_status(driver, result, "cuInit");
  if (rn_ok(status)) status = check_version(driver);
  if (!rn_ok(status)) rn_cuda_library_close(driver->library);
  return status;
}

rn_status_t rn_cuda_count(int* out) {
  *out = 0;
  rn_cuda_driver_t driver;
  RN_RETURN_IF_ERROR(open_driver(&driver));
  rn_status_t status = RN_CUDA(&driver, cuDeviceGetCount, out);
  rn_cuda_library_close(driver.library);
  return status;
}

static uint64_t take_block(void* self, size_t size) {
  rn_cuda_card_t* card = self;
  CUdeviceptr address = 0;
  rn_status_t status = rn_cuda_enter(card);
  if (rn_ok(status)) status = RN_CARD(card, cuMemAlloc_v2, &address, size);
  bool ok = rn_ok(status);
  rn_status_free(status);
  return ok ? address : 0;
}

static void give_block(void* self, uint64_t address, size_t size) {
  (void)size;
  rn_cuda_card_t* card = self;
  rn_status_t status = rn_cuda_enter(card);
  if (rn_ok(status)) card->driver.cuMemFree_v2(address);
  rn_status_free(status);
}

static uint64_t take_scratch(void* self, size_t size) {
  return rn_cuda_memory_alloc(((rn_cuda_card_t*)self)->memory, size, "recorded steps");
}

static void give_scratch(void* self, uint64_t address, size_t size) {
  (void)size;
  rn_cuda_memory_free(((rn_cuda_card_t*)self)->memory, address);
}

static void* pin(void* self, size_t size) {
  rn_cuda_card_t* card = self;
  void* start = NULL;
  rn_status_t status = rn_cuda_enter(card);
  if (rn_ok(status)) status = RN_CARD(card, cuMemHostAlloc, &start, size, CU_MEMHOSTALLOC_PORTABLE);
  bool ok = rn_ok(status);
  rn_status_free(status);
  return ok ? start : NULL;
}

static void unpin(void* self, void* start, size_t size) {
  (void)size;
  rn_cuda_card_t* card = self;
  rn_status_free(rn_cuda_enter(card));  // memory is freed on a lost card, too
  card->driver.cuMemFreeHost(start);
}

static rn_status_t read_properties(rn_cuda_card_t* card) {
  const rn_cuda_driver_t* driver = &card->driver;
  struct {
    int attribute;
    int* value;
  } const wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &card->major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &card->minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &card->multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &card->threads_per_multiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &card->max_shared},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
    RN_RETURN_IF_ERROR(
        RN_CUDA(driver, cuDeviceGetAttribute, wanted[i].value, wanted[i].attribute, card->device));
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDeviceGetName, card->name, sizeof card->name, card->device));
  RN_RETURN_IF_ERROR(
      RN_CUDA(driver, cuDeviceGetPCIBusId, card->bus_id, sizeof card->bus_id, card->device));
  return RN_CUDA(driver, cuDeviceTotalMem_v2, &card->total_memory, card->device);
}

static size_t limit_of(const rn_cuda_card_t* card, const rn_cuda_choice_t* choice) {
  if (choice->memory || choice->fraction <= 0) return choice->memory;
  double limit = (double)card->total_memory * choice->fraction;
  return limit < (double)card->total_memory ? (size_t)limit : card->total_memory;
}

static rn_status_t open_card(rn_cuda_card_t* card, const rn_cuda_choice_t* choice) {
  RN_RETURN_IF_ERROR(open_driver(&card->driver));
  const rn_cuda_driver_t* driver = &card->driver;
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDeviceGet, &card->device, card->ordinal));
  RN_RETURN_IF_ERROR(read_properties(card));
  RN_RETURN_IF_ERROR(RN_CUDA(driver, cuDevicePrimaryCtxRetain, &card->context, card->device));
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuStreamCreate, &card->stream, CU_STREAM_NON_BLOCKING));
  RN_RETURN_IF_ERROR(
      RN_CARD(card, cuStreamCreate, &card->recording_stream, CU_STREAM_NON_BLOCKING));
  rn_cuda_memory_options_t options = {.source = {card, take_block, give_block},
                                      .limit = limit_of(card, choice),
                                      .is_exact = getenv("RUNNEL_CUDA_EXACT") != NULL};
  RN_RETURN_IF_ERROR(rn_cuda_memory_create(&options, rn_allocator_system(), &card->memory));
  rn_cuda_memory_options_t scratch = {.source = {card, take_scratch, give_scratch},
                                      .block_size = SCRATCH_BLOCK,
                                      .keeps_blocks = true};
  RN_RETURN_IF_ERROR(rn_cuda_memory_create(&scratch, rn_allocator_system(), &card->scratch));
  rn_cuda_pinned_source_t pinned = {card, pin, unpin, MOST_PINNED};
  RN_RETURN_IF_ERROR(
      rn_cuda_pinned_create(pinned, MOST_PINNED_IDLE, rn_allocator_system(), &card->pinned));
  return rn_cuda_copies_create(card, &card->copies);
}

static void close_card(rn_cuda_card_t* card) {
  const rn_cuda_driver_t* driver = &card->driver;
  if (card->context) {
    driver->cuCtxSetCurrent(card->context);
    if (card->stream) driver->cuStreamSynchronize(card->stream);
    for (size_t i = card->kept.count; i > 0; --i)
      card->kept.items[i - 1].destroy(card, card->kept.items[i - 1].state);
    rn_cuda_copies_destroy(card->copies);
    for (size_t i = 0; i < card->events.count; ++i)
      driver->cuEventDestroy_v2(card->events.items[i]);
    rn_cuda_pinned_release(card->pinned);
    rn_cuda_memory_destroy(card->scratch);
    for (size_t i = 0; i < card->modules.count; ++i) driver->cuModuleUnload(card->modules.items[i]);
    rn_cuda_memory_destroy(card->memory);
    if (card->stream) driver->cuStreamDestroy_v2(card->stream);
    if (card->recording_stream) driver->cuStreamDestroy_v2(card->recording_stream);
    driver->cuCtxSetCurrent(NULL);
    driver->cuDevicePrimaryCtxRelease_v2(card->device);
  }
  rn_cuda_library_close(card->nvrtc.library);
  rn_cuda_library_close(card->driver.library);
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&card->functions, &position)))
    rn_free(rn_allocator_system(), (char*)entry->key.data, entry->key.size + 1);
  rn_map_clear(&card->functions);
  rn_vec_free(&card->events, rn_allocator_system());
  rn_vec_free(&card->modules, rn_allocator_system());
  rn_vec_free(&card->workspaces, rn_allocator_system());
  rn_mutex_destroy(&card->recording_mutex);
  rn_mutex_destroy(&card->replay_mutex);
  rn_vec_free(&card->kept, rn_allocator_system());
  rn_cond_destroy(&card->kept_changed);
  rn_mutex_destroy(&card->kept_mutex);
  rn_mutex_destroy(&card->mutex);
  RN_FREE(rn_allocator_system(), card);
}

static bool is_chosen(const rn_cuda_card_t* card, const rn_cuda_choice_t* choice) {
  return card->ordinal == choice->ordinal && card->part == choice->part;
}

static rn_status_t get_locked(const rn_cuda_choice_t* choice, rn_cuda_card_t** out) {
  int place = 0;
  while (place < RN_CUDA_MAX_CARDS && table.cards[place] && !is_chosen(table.cards[place], choice))
    ++place;
  if (place == RN_CUDA_MAX_CARDS)
    return rn_resource_exhausted("The process uses %d GPUs already", place);
  *out = table.cards[place];
  if (*out) {
    rn_status_t status = rn_cuda_enter(*out);  // not if it was lost
    if (rn_ok(status) && (*out)->refs++ == 0)
      rn_cuda_memory_set_limit((*out)->memory, limit_of(*out, choice));
    if (!rn_ok(status)) *out = NULL;
    return status;
  }
  rn_cuda_card_t* card = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &card));
  card->refs = 1;
  card->ordinal = choice->ordinal;
  card->part = choice->part;
  rn_mutex_init(&card->mutex);
  rn_mutex_init(&card->recording_mutex);
  rn_mutex_init(&card->replay_mutex);
  rn_mutex_init(&card->kept_mutex);
  rn_cond_init(&card->kept_changed);
  rn_map_init(&card->functions, rn_allocator_system());
  rn_status_t status = open_card(card, choice);
  if (!rn_ok(status)) {
    close_card(card);
    return status;
  }
  *out = table.cards[place] = card;
  return RN_OK;
}

rn_status_t rn_cuda_card_get(const rn_cuda_choice_t* choice, rn_cuda_card_t** out) {
  *out = NULL;
  rn_mutex_lock(&table.mutex);
  rn_status_t status = get_locked(choice, out);
  rn_mutex_unlock(&table.mutex);
  return status;
}

// Work that was issued or recorded may use the old one, so that stays until the last session ends.
bool rn_cuda_workspace(rn_cuda_card_t* card, size_t size, uint64_t* out) {
  rn_mutex_lock(&card->mutex);
  if (card->workspace_size < size) {
    uint64_t address = rn_cuda_memory_alloc(card->memory, size, "workspace");
    rn_status_t status =
        rn_vec_reserve(&card->workspaces, rn_allocator_system(), card->workspaces.count + 1);
    if (address && rn_ok(status)) {
      card->workspaces.items[card->workspaces.count++] = address;
      card->workspace_size = size;
    } else {
      rn_cuda_memory_free(card->memory, address);
    }
    rn_status_free(status);
  }
  bool ok = card->workspace_size >= size;
  *out = ok ? card->workspaces.items[card->workspaces.count - 1] : 0;
  rn_mutex_unlock(&card->mutex);
  return ok;
}

uint64_t rn_cuda_known_workspace(rn_cuda_card_t* card, size_t size) {
  rn_mutex_lock(&card->mutex);
  bool is_known = card->workspaces.count && card->workspace_size >= size;
  uint64_t workspace = is_known ? card->workspaces.items[card->workspaces.count - 1] : 0;
  rn_mutex_unlock(&card->mutex);
  return workspace;
}

static void free_workspaces(rn_cuda_card_t* card) {
  rn_mutex_lock(&card->mutex);
  for (size_t i = 0; i < card->workspaces.count; ++i)
    rn_cuda_memory_free(card->memory, card->workspaces.items[i]);
  card->workspaces.count = card->workspace_size = 0;
  rn_mutex_unlock(&card->mutex);
}

void rn_cuda_card_trim(rn_cuda_card_t* card) {
  rn_cuda_copies_trim(card->copies);
  rn_cuda_pinned_trim(card->pinned);
  rn_mutex_lock(&card->replay_mutex);
  if (card->recordings == 0) rn_cuda_memory_trim(card->scratch);
  rn_mutex_unlock(&card->replay_mutex);
  rn_cuda_memory_trim(card->memory);
}

rn_allocator_t rn_cuda_transfer_memory(void) {
  rn_allocator_t memory = {0};
  rn_mutex_lock(&table.mutex);
  for (int i = 0; !memory.fn && i < RN_CUDA_MAX_CARDS && table.cards[i]; ++i)
    if (table.cards[i]->refs > 0) memory = rn_cuda_pinned_allocator(table.cards[i]->pinned);
  rn_mutex_unlock(&table.mutex);
  return memory;
}

void rn_cuda_card_release(rn_cuda_card_t* card) {
  if (!card) return;
  rn_mutex_lock(&table.mutex);
  if (--card->refs == 0) {
    free_workspaces(card);
    rn_cuda_card_trim(card);
  }
  rn_mutex_unlock(&table.mutex);
}

rn_status_t rn_cuda_mark(rn_cuda_card_t* card, CUevent* out) {
  return rn_cuda_mark_stream(card, card->stream, out);
}

rn_status_t rn_cuda_mark_stream(rn_cuda_card_t* card, CUstream stream, CUevent* out) {
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  rn_mutex_lock(&card->mutex);
  if (card->events.count) *out = card->events.items[--card->events.count];
  rn_mutex_unlock(&card->mutex);
  if (!*out)
    RN_RETURN_IF_ERROR(
        RN_CARD(card, cuEventCreate, out, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
  rn_status_t status = RN_CARD(card, cuEventRecord, *out, stream);
  if (rn_ok(status)) return status;
  rn_cuda_unmark(card, *out);
  *out = NULL;
  return status;
}

void rn_cuda_unmark(rn_cuda_card_t* card, CUevent event) {
  if (!event) return;
  rn_mutex_lock(&card->mutex);
  rn_status_t status = rn_vec_push(&card->events, rn_allocator_system(), event);
  rn_mutex_unlock(&card->mutex);
  if (rn_ok(status)) return;
  rn_status_free(status);
  card->driver.cuEventDestroy_v2(event);
}

rn_status_t rn_cuda_await(rn_cuda_card_t* card, CUevent event) {
  for (int i = 0; i < SPINS; ++i) {
    CUresult result = card->driver.cuEventQuery(event);
    if (result != CUDA_ERROR_NOT_READY) return rn_cuda_check(card, result, "cuEventQuery");
  }
  return RN_CARD(card, cuEventSynchronize, event);
}

static rn_cuda_kept_t* find_kept_locked(rn_cuda_card_t* card,
                                        void (*destroy)(rn_cuda_card_t* card, void* state)) {
  for (size_t i = 0; i < card->kept.count; ++i)
    if (card->kept.items[i].destroy == destroy) return &card->kept.items[i];
  return NULL;
}

// The state that another thread has made or is making (then this waits); NULL: make it.
static rn_status_t await_kept_locked(rn_cuda_card_t* card,
                                     void (*destroy)(rn_cuda_card_t* card, void* state),
                                     void** out) {
  rn_cuda_kept_t* kept;
  while ((kept = find_kept_locked(card, destroy))) {
    *out = kept->state;
    if (*out) return RN_OK;
    rn_cond_wait(&card->kept_changed, &card->kept_mutex);
  }
  rn_cuda_kept_t made = {NULL, destroy};
  return rn_vec_push(&card->kept, rn_allocator_system(), made);
}

rn_status_t rn_cuda_keep(rn_cuda_card_t* card,
                         rn_status_t (*create)(rn_cuda_card_t* card, void** out),
                         void (*destroy)(rn_cuda_card_t* card, void* state), void** out) {
  *out = NULL;
  rn_mutex_lock(&card->kept_mutex);
  rn_status_t status = await_kept_locked(card, destroy, out);
  rn_mutex_unlock(&card->kept_mutex);
  if (!rn_ok(status) || *out) return status;
  status = rn_cuda_enter(card);
  if (rn_ok(status)) status = create(card, out);
  rn_mutex_lock(&card->kept_mutex);
  rn_cuda_kept_t* kept = find_kept_locked(card, destroy);
  kept->state = *out;
  if (!rn_ok(status)) *kept = card->kept.items[--card->kept.count];
  rn_cond_broadcast(&card->kept_changed);
  rn_mutex_unlock(&card->kept_mutex);
  return status;
}

// NVIDIA's libraries ask the driver for its functions by cuGetProcAddress.
rn_status_t rn_cuda_card_library(const rn_cuda_card_t* card, const char* const* files,
                                 const char* const* names, size_t count, void* table) {
  *(void**)table = NULL;
  if (!dlsym(card->driver.library, "cuGetProcAddress"))
    return rn_not_found("%s cannot be used with the driver of GPU %d (%s)", files[0], card->ordinal,
                        card->name);
  return rn_cuda_library_open(files, names, count, table);
}

// Remembers |function| under a copy of |key|.
static rn_status_t remember_locked(rn_cuda_card_t* card, rn_str_t key, CUfunction function) {
  char* copy = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(rn_allocator_system(), key, &copy));
  rn_status_t status = rn_map_put(&card->functions, rn_str_n(copy, key.size), function);
  if (!rn_ok(status)) rn_free(rn_allocator_system(), copy, key.size + 1);
  return status;
}

static rn_status_t load_locked(rn_cuda_card_t* card, const void* image, CUmodule* out) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  RN_RETURN_IF_ERROR(
      rn_vec_reserve(&card->modules, rn_allocator_system(), card->modules.count + 1));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuModuleLoadData, out, image));
  card->modules.items[card->modules.count++] = *out;
  return RN_OK;
}

static rn_status_t add_locked(rn_cuda_card_t* card, rn_str_t key, const char* entry,
                              CUmodule module, CUfunction* out) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));  // another thread may have loaded the module
  RN_RETURN_IF_ERROR(RN_CARD(card, cuModuleGetFunction, out, module, entry));
  return remember_locked(card, key, *out);
}

rn_status_t rn_cuda_program(rn_cuda_card_t* card, rn_str_t key, const char* entry,
                            const void* image, CUfunction* out) {
  rn_mutex_lock(&card->mutex);
  *out = rn_map_get(&card->functions, key);
  rn_status_t status = RN_OK;
  CUmodule module = NULL;
  if (!*out && !image)
    status = rn_not_found("%.*s was not compiled yet", RN_STR_ARGS(key));
  else if (!*out)
    status = load_locked(card, image, &module);
  if (rn_ok(status) && module) status = add_locked(card, key, entry, module, out);
  rn_mutex_unlock(&card->mutex);
  return status;
}

// The module of |file|, the first |length| bytes of a kernel's name; remembered under "file/".
static rn_status_t image_locked(rn_cuda_card_t* card, const char* name, size_t length,
                                CUmodule* out) {
  rn_str_t key = rn_str_n(name, length + 1);
  *out = rn_map_get(&card->functions, key);
  if (*out) return RN_OK;
  for (size_t i = 0; i < rn_cuda_image_count; ++i) {
    const rn_cuda_image_t* image = &rn_cuda_images[i];
    if (strlen(image->file) != length || memcmp(image->file, name, length) != 0) continue;
    RN_RETURN_IF_ERROR(load_locked(card, image->bytes, out));
    return remember_locked(card, key, (CUfunction)*out);
  }
  return rn_internal("The CUDA part has no device code for %s", name);
}

rn_status_t rn_cuda_kernel(rn_cuda_card_t* card, const char* name, CUfunction* out) {
  rn_str_t key = rn_str(name);
  const char* slash = strrchr(name, '/');
  if (!slash) return rn_internal("%s is not the name of a kernel", name);
  rn_mutex_lock(&card->mutex);
  rn_status_t status = RN_OK;
  *out = rn_map_get(&card->functions, key);
  if (!*out) {
    CUmodule module = NULL;
    status = image_locked(card, name, (size_t)(slash - name), &module);
    if (rn_ok(status)) status = add_locked(card, key, slash + 1, module, out);
  }
  rn_mutex_unlock(&card->mutex);
  return status;
}
