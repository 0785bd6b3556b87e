// RegisterDataset: tells the dispatcher of the tf.data service of a dataset, and returns its id
// there.
#include "framework/data_service.h"
#include "kernels/cpu/dataset/to_graph.h"
#include "tensor/tstring.h"
#include "wire/writer.h"

static rn_status_t text_of(const rn_tensor_t* tensor, const char* name, rn_str_t* out) {
  if (tensor->dtype != RN_STRING || tensor->rank != 0)
    return rn_invalid_argument("%s must be a scalar", name);
  *out = rn_tstring_view(RN_DATA(tensor, const rn_tstring_t));
  return RN_OK;
}

static rn_status_t give_id(rn_kernel_ctx_t* ctx, rn_str_t id) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  if (out->dtype == RN_STRING)
    return rn_tstring_assign(RN_DATA(out, rn_tstring_t), id.data, id.size) ? RN_OK
                                                                           : rn_out_of_memory();
  if (rn_str_to_i64(id, RN_DATA(out, int64_t))) return RN_OK;
  return rn_internal("The dataset's id is '%.*s', which is no number", RN_STR_ARGS(id));
}

// What the attributes say.
typedef struct registration_t {
  rn_arena_t arena;
  rn_data_state_policy_t policy;
  rn_str_t metadata, wanted_id;
} registration_t;

static rn_status_t keep_text(const rn_kernel_init_t* init, const char* name, rn_arena_t* arena,
                             rn_str_t* out) {
  int i = rn_op_attr_index(init->op, rn_str(name));
  *out = RN_STR("");
  return i < 0 ? RN_OK : rn_arena_str(arena, init->attrs[i].s, out);
}

static rn_status_t register_init(const rn_kernel_init_t* init, void* state) {
  registration_t* own = state;
  rn_arena_init(&own->arena, init->allocator);
  int policy = rn_op_attr_index(init->op, RN_STR("external_state_policy"));
  own->policy = (rn_data_state_policy_t)init->attrs[policy].i;
  RN_RETURN_IF_ERROR(keep_text(init, "metadata", &own->arena, &own->metadata));
  return keep_text(init, "requested_dataset_id", &own->arena, &own->wanted_id);
}

static void register_destroy(void* state) { rn_arena_clear(&((registration_t*)state)->arena); }

static rn_status_t register_compute(rn_kernel_ctx_t* ctx) {
  const registration_t* own = ctx->state;
  rn_dataset_t* dataset = NULL;
  rn_str_t address, protocol;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  RN_RETURN_IF_ERROR(text_of(rn_in(ctx, 1), "address", &address));
  RN_RETURN_IF_ERROR(text_of(rn_in(ctx, 2), "protocol", &protocol));
  if (!address.size) return rn_invalid_argument("address must be non-empty.");
  if (!rn_str_is(protocol, "grpc"))
    return rn_unimplemented("Runnel calls the tf.data service by grpc, not by '%.*s'",
                            RN_STR_ARGS(protocol));
  rn_strbuf_t graph, id;
  rn_strbuf_init(&graph, ctx->kernel->allocator);
  rn_strbuf_init(&id, ctx->kernel->allocator);
  rn_status_t status = rn_data_to_graph(dataset, own->policy, &graph);
  if (rn_ok(status))
    status = rn_data_service_register(ctx->step->env, ctx->kernel->allocator, address,
                                      rn_strbuf_view(&graph), own->metadata, own->wanted_id, &id);
  if (rn_ok(status)) status = give_id(ctx, rn_strbuf_view(&id));
  rn_strbuf_clear(&graph);
  rn_strbuf_clear(&id);
  return status;
}

#define REGISTER(op_)                                                                         \
  {                                                                                           \
    .op = op_, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,                                 \
    .state_size = sizeof(registration_t), .init = register_init, .destroy = register_destroy, \
    .compute = register_compute                                                               \
  }
static const rn_kernel_def_t rows[] = {REGISTER("RegisterDataset"), REGISTER("RegisterDatasetV2")};
RN_KERNEL_FAMILY(cpu_data_register, rows);
