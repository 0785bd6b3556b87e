// runnel container: a SavedModel in a process of its own, for a server that isolates its models.
#include "runnel/container.h"

#include "base/machine.h"
#include "cli/cli.h"
#include "serve/model/container_wire.h"
#include "serve/model/tf_backend.h"

// A batch for the backend, which calls |done| before its run returns.
typedef struct container_work_t {
  rn_backend_run_t run;  // first
  rn_tensor_t inputs[RN_GUEST_MAX_PORTS], outputs[RN_GUEST_MAX_PORTS];
  bool wanted[RN_GUEST_MAX_PORTS];
  rn_status_t status;
} container_work_t;

typedef struct container_worker_t {
  rn_cli_t* cli;
  rn_backend_t* backend;
  container_work_t* work;
} container_worker_t;

static void work_done(rn_backend_run_t* run, rn_status_t status) {
  ((container_work_t*)run)->status = status;
}

// Borrows the bytes where kernels can use them as they are, else copies them.
static rn_status_t take_input(const container_worker_t* worker, const rn_guest_tensor_t* from,
                              const rn_serve_port_t* port, rn_tensor_t* out) {
  rn_allocator_t allocator = worker->cli->allocator;
  rn_shape_t shape = {from->rank, from->dims};
  if (from->dtype != port->dtype)
    return rn_invalid_argument("'%.*s' has the wrong type", RN_STR_ARGS(port->name));
  if (from->dtype == RN_STRING) {
    RN_RETURN_IF_ERROR(rn_tensor_create(allocator, RN_STRING, shape, out));
    return rn_container_strings_read(from->data, from->size, out);
  }
  RN_RETURN_IF_ERROR(rn_tensor_init(out, from->dtype, shape));
  if (rn_tensor_bytes(out) != from->size)
    return rn_invalid_argument("'%.*s' has the wrong size", RN_STR_ARGS(port->name));
  if ((uintptr_t)from->data % RN_ALIGN == 0) {
    out->data = (void*)from->data;
    return RN_OK;
  }
  rn_tensor_clear(out);
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, from->dtype, shape, out));
  if (from->size) memcpy(out->data, from->data, from->size);
  return RN_OK;
}

static rn_status_t give_output(rn_guest_call_t* call, int index, const rn_tensor_t* output) {
  size_t size;
  RN_RETURN_IF_ERROR(rn_container_tensor_size(output, &size));
  void* to = rn_guest_output(call, index, output->rank, rn_tensor_dims(output), size);
  if (!to) return rn_out_of_memory();
  rn_container_tensor_write(output, to);
  return RN_OK;
}

static rn_status_t run_batch(container_worker_t* worker, rn_guest_call_t* call) {
  const rn_serve_signature_t* signature = &worker->backend->signatures[call->signature];
  container_work_t* work = worker->work;
  const rn_env_t* env = worker->cli->env;
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < call->input_count; ++i)
    status = take_input(worker, &call->inputs[i], &signature->inputs[i], &work->inputs[i]);
  for (int i = 0; i < call->output_count; ++i) work->wanted[i] = call->wanted[i];
  bool has_deadline = call->deadline_us >= 0;
  work->run = (rn_backend_run_t){
      .signature = call->signature,
      .inputs = work->inputs,
      .wanted = work->wanted,
      .outputs = work->outputs,
      .deadline_ns = has_deadline ? env->now_ns(env->self) + call->deadline_us * 1000 : INT64_MAX,
      .done = work_done};
  if (rn_ok(status)) {
    worker->backend->vtable->run(worker->backend, &work->run);
    status = work->status;
  }
  for (int i = 0; rn_ok(status) && i < call->output_count; ++i)
    if (rn_tensor_is_set(&work->outputs[i])) status = give_output(call, i, &work->outputs[i]);
  return status;
}

static int run(void* self, rn_guest_call_t* call) {
  container_worker_t* worker = self;
  rn_status_t status = run_batch(worker, call);
  for (int i = 0; i < call->input_count; ++i) rn_tensor_clear(&worker->work->inputs[i]);
  for (int i = 0; i < call->output_count; ++i) rn_tensor_clear(&worker->work->outputs[i]);
  if (rn_ok(status)) return 0;
  int code = rn_guest_fail(call, (int)rn_status_code(status), "%s", rn_status_message(status));
  rn_status_free(status);
  return code;
}

// The backend's signatures in the form of the public header.
static rn_status_t describe_ports(rn_arena_t* arena, const rn_serve_port_t* ports, int count,
                                  const rn_guest_port_t** out) {
  rn_guest_port_t* made = NULL;
  if (count > RN_GUEST_MAX_PORTS)
    return rn_unimplemented("a signature has more than %d inputs or outputs", RN_GUEST_MAX_PORTS);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &made));
  for (int i = 0; i < count; ++i) {
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_arena_str(arena, ports[i].name, &name));
    made[i] =
        (rn_guest_port_t){name.data, ports[i].dtype, ports[i].shape.rank, ports[i].shape.dims};
  }
  *out = made;
  return RN_OK;
}

static rn_status_t describe(rn_arena_t* arena, const rn_backend_t* backend,
                            const rn_guest_signature_t** out) {
  rn_guest_signature_t* made = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)backend->signature_count, &made));
  for (int i = 0; i < backend->signature_count; ++i) {
    const rn_serve_signature_t* from = &backend->signatures[i];
    rn_str_t name, method;
    RN_RETURN_IF_ERROR(rn_arena_str(arena, from->name, &name));
    RN_RETURN_IF_ERROR(rn_arena_str(arena, from->method, &method));
    made[i] = (rn_guest_signature_t){
        .name = name.data,
        .input_count = from->input_count,
        .output_count = from->output_count,
        .flags = (from->is_batched ? RN_GUEST_BATCHED : 0) | (from->is_pure ? RN_GUEST_PURE : 0),
        .method = method.data};
    RN_RETURN_IF_ERROR(describe_ports(arena, from->inputs, from->input_count, &made[i].inputs));
    RN_RETURN_IF_ERROR(describe_ports(arena, from->outputs, from->output_count, &made[i].outputs));
  }
  *out = made;
  return RN_OK;
}

static rn_status_t serve(container_worker_t* worker, rn_arena_t* arena) {
  rn_tf_backend_options_t options = {.folder = rn_cli_word(worker->cli, "FOLDER"),
                                     .env = worker->cli->env,
                                     .allocator = worker->cli->allocator};
  rn_session_options_init(&options.session);
  options.session.allow_soft_placement = true;
  options.session.intra_threads = (int)rn_cli_number(worker->cli, "--threads", 0);
  options.session.inter_threads = options.session.intra_threads;
  RN_RETURN_IF_ERROR(rn_cli_at(rn_tf_backend_create(&options, &worker->backend), options.folder));
  rn_guest_options_t guest = {
      .signature_count = worker->backend->signature_count, .run = run, .self = worker};
  RN_RETURN_IF_ERROR(describe(arena, worker->backend, &guest.signatures));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &worker->work));
  return rn_guest_serve(&guest) == 0 ? RN_OK : rn_unavailable("the server cannot be reached");
}

static rn_status_t container_run(rn_cli_t* cli) {
  rn_machine_map_large_blocks();
  container_worker_t worker = {.cli = cli};
  rn_arena_t arena;
  rn_arena_init(&arena, cli->allocator);
  rn_status_t status = serve(&worker, &arena);
  if (worker.backend) worker.backend->vtable->destroy(worker.backend);
  rn_arena_clear(&arena);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(NUMBER, "--threads", "N", "use N threads (default: one per CPU)", .least = 1),
    {0},
};

const rn_cli_command_t rn_cli_container_command = {
    .name = "container",
    .summary = "run a SavedModel as a container of runnel serve",
    .about =
        "Runs the SavedModel in FOLDER for the server that started this process. runnel serve "
        "starts it by itself for a model whose folder has a container.pbtxt with isolate: true, "
        "so that a crash in one model does not end the others.",
    .words = "FOLDER",
    .word_kind = RN_CLI_FOLDER,
    .run = container_run,
    .options = options,
    .examples = "runnel container models/mnist/1",
};
