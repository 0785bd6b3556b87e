// The planner: see planner.h.
#include "session/planner.h"

#include "exec/executor.h"
#include "exec/verify_plan.h"
#include "session/passes.h"

// Whether |device| runs nodes of the step or has a fetch. A feed alone needs no plan.
static bool takes_part(const rn_ir_t* ir, const rn_device_t* device) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (!node->is_removed && node->device == device && node->feed < 0) return true;
  }
  for (int32_t f = 0; f < ir->fetch_count; ++f)
    if (ir->fetches[f].node >= 0 && rn_ir_node(ir, ir->fetches[f].node)->device == device)
      return true;
  return false;
}

static rn_status_t compile_part(rn_program_t* program, const rn_planner_t* planner, rn_ir_t* ir,
                                rn_device_t* device) {
  rn_plan_options_t options = {.device = device,
                               .host = planner->place.devices[0],
                               .env = planner->env,
                               .kernels = planner->kernels,
                               .functions = planner->functions,
                               .threads = device->is_host ? planner->threads : 1};
  rn_plan_t** plan = &program->plans[program->plan_count];
  RN_RETURN_IF_ERROR(rn_plan_create(ir, &options, planner->allocator, plan));
  program->plan_count++;
  return planner->debug.verifies ? rn_plan_verify(*plan) : RN_OK;
}

static rn_status_t compile_parts(rn_program_t* program, const rn_planner_t* planner, rn_ir_t* ir) {
  const rn_place_options_t* place = &planner->place;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&program->arena, (size_t)place->device_count, &program->plans));
  for (int d = 0; d < place->device_count; ++d)
    if (takes_part(ir, place->devices[d]))
      RN_RETURN_IF_ERROR(compile_part(program, planner, ir, place->devices[d]));
  if (program->plan_count == 0)
    RN_RETURN_IF_ERROR(compile_part(program, planner, ir, place->devices[0]));
  program->is_plain = rn_execute_is_plain(program->plans, program->plan_count) &&
                      program->plans[0]->device->is_host;
  program->exchanges = program->plan_count > 1 || rn_ir_has_role(ir, RN_ROLE_SEND) ||
                       rn_ir_has_role(ir, RN_ROLE_RECV);
  return RN_OK;
}

static rn_status_t fill(rn_program_t* program, const rn_planner_t* planner, rn_ir_t* ir,
                        const rn_shape_t* feed_shapes) {
  RN_RETURN_IF_ERROR(rn_ir_set_feed_shapes(ir, feed_shapes));
  RN_RETURN_IF_ERROR(rn_passes_run(planner, rn_passes, rn_pass_count, ir));
  return compile_parts(program, planner, ir);
}

rn_status_t rn_program_create(const rn_planner_t* planner, rn_graph_t* graph,
                              const rn_signature_t* signature, const rn_shape_t* feed_shapes,
                              rn_program_t** out_program) {
  *out_program = NULL;
  rn_ir_t* ir = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(graph, signature, &ir));
  rn_program_t* program = NULL;
  rn_status_t status = RN_NEW(planner->allocator, &program);
  if (rn_ok(status)) {
    program->allocator = planner->allocator;
    rn_arena_init(&program->arena, planner->allocator);
    status = fill(program, planner, ir, feed_shapes);
  }
  rn_ir_destroy(ir);
  if (!rn_ok(status)) {
    rn_program_destroy(program);
    return status;
  }
  *out_program = program;
  return RN_OK;
}

rn_status_t rn_planner_place(const rn_planner_t* planner, rn_graph_t* graph,
                             const rn_signature_t* signature, rn_ir_t** out) {
  rn_ir_t* ir = NULL;
  rn_place_options_t place = planner->place;
  place.log_placement = false;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(graph, signature, &ir));
  rn_status_t status = rn_pass_inline_calls(ir, &planner->calls);
  if (rn_ok(status)) status = rn_place(ir, &place);
  if (rn_ok(status))
    *out = ir;
  else
    rn_ir_destroy(ir);
  return status;
}

void rn_program_destroy(rn_program_t* program) {
  if (!program) return;
  for (int32_t p = 0; p < program->plan_count; ++p) rn_plan_destroy(program->plans[p]);
  rn_arena_clear(&program->arena);
  RN_FREE(program->allocator, program);
}
