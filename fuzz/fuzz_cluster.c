// Fuzzes the text forms of clusters: the short form, JSON, TF_CONFIG. Every parsed task must be
// found by name.
#include "fuzz/util.h"
#include "train/cluster_spec.h"

static void read_as(rn_str_t text, bool is_config) {
  rn_cluster_t* cluster = NULL;
  rn_status_t status = rn_cluster_create(rn_allocator_system(), text, is_config, &cluster);
  for (size_t i = 0; rn_ok(status) && i < cluster->tasks.count; ++i) {
    const rn_cluster_task_t* task = &cluster->tasks.items[i];
    if (memchr(task->job.data, 0, task->job.size)) continue;  // cannot be looked up as a C string
    const char* address = rn_cluster_address(cluster, task->job.data, task->index);
    fuzz_check(address == task->address.data);
    fuzz_check(rn_cluster_count(cluster, task->job.data) > 0);
  }
  rn_status_free(status);
  rn_cluster_destroy(cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rn_str_t text = rn_str_n((const char*)data, size);
  read_as(text, false);
  read_as(text, true);
  return 0;
}
