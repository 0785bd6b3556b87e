// Makes the replicas of a version that containers serve: see container.h.
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "proto/meta_graph.pb.h"
#include "proto/serving_metadata.pb.h"
#include "proto/tensor_shape.pb.h"
#include "serve/model/container_internal.h"
#include "wire/writer.h"

rn_status_t rn_containers_create(const rn_env_t* env, rn_allocator_t allocator,
                                 rn_containers_t** out) {
  *out = NULL;
  rn_containers_t* containers = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &containers));
  containers->allocator = allocator;
  containers->env = env;
  rn_status_t status = rn_loop_create(env, allocator, &containers->loop);
  if (!rn_ok(status)) {
    rn_containers_destroy(containers);
    return status;
  }
  *out = containers;
  return RN_OK;
}

void rn_containers_destroy(rn_containers_t* containers) {
  if (!containers) return;
  rn_loop_destroy(containers->loop);
  RN_FREE(containers->allocator, containers);
}

void rn_container_shared_release(rn_container_shared_t* shared) {
  if (--shared->refs) return;
  rn_tls_release(shared->tls);
  rn_container_config_clear(&shared->config);
  RN_FREE(shared->allocator, shared);
}

static void put_port(rn_strbuf_t* out, uint32_t field, const rn_serve_port_t* port) {
  size_t entry = rn_pb_begin(out, field);
  rn_pb_put_str(out, 1, port->name);
  size_t info = rn_pb_begin(out, 2);
  rn_pb_put_str(out, rn_pb_TensorInfo_name_field, port->name);
  rn_pb_put_uint(out, rn_pb_TensorInfo_dtype_field, (uint64_t)port->dtype);
  size_t shape = rn_pb_begin(out, rn_pb_TensorInfo_tensor_shape_field);
  if (!rn_shape_has_rank(port->shape))
    rn_pb_put_uint(out, rn_pb_TensorShapeProto_unknown_rank_field, 1);
  for (int i = 0; i < port->shape.rank; ++i) {
    size_t dim = rn_pb_begin(out, rn_pb_TensorShapeProto_dim_field);
    if (port->shape.dims[i])
      rn_pb_put_uint(out, rn_pb_TensorShapeProto_Dim_size_field, (uint64_t)port->shape.dims[i]);
    rn_pb_end(out, dim);
  }
  rn_pb_end(out, shape);
  rn_pb_end(out, info);
  rn_pb_end(out, entry);
}

// The SignatureDefMap that clients ask for.
static rn_status_t describe_signatures(rn_container_t* container) {
  rn_strbuf_t* out = &container->meta;
  for (int i = 0; i < container->hello.signature_count; ++i) {
    const rn_serve_signature_t* signature = &container->hello.signatures[i];
    size_t entry = rn_pb_begin(out, rn_pb_serving_SignatureDefMap_signature_def_field);
    rn_pb_put_str(out, 1, signature->name);
    size_t def = rn_pb_begin(out, 2);
    for (int k = 0; k < signature->input_count; ++k)
      put_port(out, rn_pb_SignatureDef_inputs_field, &signature->inputs[k]);
    for (int k = 0; k < signature->output_count; ++k)
      put_port(out, rn_pb_SignatureDef_outputs_field, &signature->outputs[k]);
    rn_pb_put_str(out, rn_pb_SignatureDef_method_name_field, signature->method);
    rn_pb_end(out, def);
    rn_pb_end(out, entry);
  }
  return rn_strbuf_status(out);
}

// The memory of the container's process, in bytes; 0 if that is unknown.
static size_t resident_memory(rn_container_t* container) {
  char path[64];
  rn_strbuf_t text;
  int pid = rn_container_stats(&container->backend).pid;
  int64_t pages = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", pid);
  rn_strbuf_init(&text, container->allocator);
  if (pid) rn_status_free(rn_fs_read(container->containers->env, path, 4096, &text));
  rn_str_t rest = rn_strbuf_view(&text);
  rn_str_split(&rest, ' ');
  bool is_known = rn_str_to_i64(rn_str_split(&rest, ' '), &pages) && pages > 0;
  rn_strbuf_clear(&text);
  return is_known ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

// Waits for |container| and fills in its backend.
static rn_status_t finish_backend(rn_container_t* container, const rn_container_t* first) {
  RN_RETURN_IF_ERROR(rn_container_wait(container));
  if (!rn_container_hello_same(&container->hello, &first->hello))
    return rn_failed_precondition("Model '%.*s': its containers have different signatures",
                                  RN_STR_ARGS(container->config->model));
  RN_RETURN_IF_ERROR(describe_signatures(container));
  rn_backend_t* backend = &container->backend;
  backend->signatures = container->hello.signatures;
  backend->signature_count = container->hello.signature_count;
  backend->lanes = container->hello.lanes;
  backend->max_rows = container->hello.max_rows;
  backend->takes_any_shape = container->config->isolates;  // as in the server's own process
  backend->meta = rn_strbuf_view(&container->meta);
  backend->memory = resident_memory(container);
  return RN_OK;
}

static rn_status_t make_shared(const rn_container_options_t* options, rn_container_shared_t** out) {
  const rn_containers_t* containers = options->containers;
  RN_RETURN_IF_ERROR(RN_NEW(containers->allocator, out));
  rn_container_shared_t* shared = *out;
  shared->allocator = containers->allocator;
  shared->refs = 1;
  rn_container_config_t* config = &shared->config;
  RN_RETURN_IF_ERROR(rn_container_config_read(containers->env, options->model, options->number,
                                              options->folder, options->program,
                                              containers->allocator, config));
  if (options->replicas) config->replicas = options->replicas;
  if (options->memory_bytes) config->memory_bytes = options->memory_bytes;
  if (!config->cert) return RN_OK;
  const rn_tls_options_t tls = {.allocator = containers->allocator,
                                .cert = config->cert,
                                .key = config->key,
                                .ca = config->ca};
  return rn_tls_create(&tls, &shared->tls);
}

rn_status_t rn_container_load(const rn_container_options_t* options, rn_backend_t*** out,
                              int* out_count) {
  *out = NULL;
  *out_count = 0;
  rn_containers_t* containers = options->containers;
  rn_container_shared_t* shared = NULL;
  rn_backend_t** backends = NULL;
  int count = 0, made = 0;
  rn_status_t status = make_shared(options, &shared);
  if (rn_ok(status)) {
    count = shared->config.replicas;
    status = RN_NEW_ARRAY(containers->allocator, (size_t)count, &backends);
  }
  for (; rn_ok(status) && made < count; ++made) {
    rn_container_t* container;
    status = rn_container_create(containers, shared, made, &container);
    if (!rn_ok(status)) break;
    backends[made] = &container->backend;
    rn_container_start(container);
  }
  for (int i = 0; rn_ok(status) && i < made; ++i)
    status = finish_backend((rn_container_t*)backends[i], (rn_container_t*)backends[0]);
  if (shared) rn_container_shared_release(shared);
  if (rn_ok(status)) {
    *out = backends;
    *out_count = count;
    return RN_OK;
  }
  for (int i = 0; i < made; ++i) rn_container_destroy(backends[i]);
  RN_FREE_ARRAY(containers->allocator, backends, count);
  return status;
}
