// The records of the calls, described: see records.h.
#include "dist/records.h"

#include <stddef.h>

#define AT(member) offsetof(rn_record_t, member)
#define ONE(kind, member) \
  { RN_FIELD_##kind, AT(member), sizeof(((rn_record_t*)0)->member) }
#define MANY(kind, member, count) \
  { RN_FIELD_##kind, AT(member), AT(count) }
#define END \
  { RN_FIELD_END, 0, 0 }
#define FIELDS(name) static const rn_record_field_t name##_fields[]

FIELDS(run_graph) = {
    ONE(STR, run_graph.session),
    ONE(STR, run_graph.handle),
    MANY(STRS, run_graph.fetch_names, run_graph.fetch_count),
    MANY(NAMED, run_graph.sent, run_graph.sent_count),
    MANY(NAMED, run_graph.feeds, run_graph.feed_count),
    ONE(LOCAL, run_graph.outbox),
    MANY(VALUES, run_graph.fetches, run_graph.fetch_count),
    ONE(BUFFER, run_graph.stats),
    ONE(BUFFER, run_graph.graphs),
    ONE(BUFFER, run_graph.costs),
    END,
};
FIELDS(recv_tensor) = {
    ONE(STR, recv_tensor.key),
    ONE(VALUE, recv_tensor.value),
    ONE(PLAIN, recv_tensor.is_dead),
    END,
};
FIELDS(cleanup_graph) = {END};
FIELDS(get_status) = {
    MANY(DEVICES, get_status.devices, get_status.device_count),
    ONE(ARENA, get_status.arena),
    ONE(PLAIN, get_status.is_ours),
    END,
};
FIELDS(create_worker_session) = {
    ONE(STR, create_worker_session.session),
    ONE(STR, create_worker_session.job),
    ONE(STR, create_worker_session.cluster),
    ONE(STR, create_worker_session.master),
    END,
};
FIELDS(delete_worker_session) = {ONE(STR, delete_worker_session.session), END};
FIELDS(register_graph) = {
    ONE(STR, register_graph.session),
    ONE(STR, register_graph.graph_def),
    ONE(STR, register_graph.config),
    ONE(PLAIN, register_graph.handle),
    END,
};
FIELDS(deregister_graph) = {
    ONE(STR, deregister_graph.session),
    ONE(STR, deregister_graph.handle),
    END,
};
FIELDS(cleanup_all) = {MANY(STRS, cleanup_all.containers, cleanup_all.container_count), END};
FIELDS(complete_group) = {
    ONE(STR, complete_group.device.name),
    ONE(STR, complete_group.device.type),
    ONE(STR, complete_group.device.description),
    MANY(DEVICES, complete_group.devices, complete_group.device_count),
    ONE(ARENA, complete_group.arena),
    ONE(PLAIN, complete_group.task_count),
    ONE(PLAIN, complete_group.is_all_ours),
    END,
};
FIELDS(complete_instance) = {
    ONE(STR, complete_instance.node),          ONE(STR, complete_instance.device),
    ONE(STR, complete_instance.device_type),   ONE(STR, complete_instance.shape),
    ONE(PLAIN, complete_instance.source_rank), END,
};
FIELDS(recv_buf) = {
    ONE(STR, recv_buf.key),
    ONE(STR, recv_buf.source),
    ONE(STR, recv_buf.target),
    ONE(VALUE, recv_buf.value),
    END,
};
FIELDS(get_step_sequence) = {
    MANY(INTS, get_step_sequence.graphs, get_step_sequence.graph_count),
    ONE(BUFFER, get_step_sequence.sequences),
    END,
};
FIELDS(logging) = {
    MANY(INTS, logging.steps, logging.step_count),
    ONE(BUFFER, logging.notes),
    END,
};

FIELDS(run_step) = {
    ONE(STR, run_step.session),
    ONE(STR, run_step.partial_run),
    MANY(STRS, run_step.fetch_names, run_step.fetch_count),
    MANY(STRS, run_step.targets, run_step.target_count),
    MANY(NAMED, run_step.feeds, run_step.feed_count),
    MANY(VALUES, run_step.fetches, run_step.fetch_count),
    ONE(BUFFER, run_step.metadata),
    END,
};
FIELDS(run_callable) = {
    ONE(STR, run_callable.session),
    MANY(TENSORS, run_callable.feeds, run_callable.feed_count),
    MANY(RETURNED, run_callable.fetches, run_callable.fetch_count),
    ONE(BUFFER, run_callable.metadata),
    END,
};
FIELDS(create_session) = {
    ONE(STR, create_session.graph_def), ONE(STR, create_session.config),
    ONE(STR, create_session.target),    ONE(PLAIN, create_session.session),
    ONE(PLAIN, create_session.version), END,
};
FIELDS(extend_session) = {
    ONE(STR, extend_session.session),
    ONE(STR, extend_session.graph_def),
    ONE(PLAIN, extend_session.version),
    END,
};
FIELDS(partial_setup) = {
    ONE(STR, partial_setup.session),
    MANY(STRS, partial_setup.feeds, partial_setup.feed_count),
    MANY(STRS, partial_setup.fetches, partial_setup.fetch_count),
    MANY(STRS, partial_setup.targets, partial_setup.target_count),
    ONE(PLAIN, partial_setup.handle),
    END,
};
FIELDS(close_session) = {ONE(STR, close_session.session), END};
FIELDS(list_devices) = {
    ONE(STR, list_devices.session),
    MANY(DEVICES, list_devices.devices, list_devices.device_count),
    ONE(ARENA, list_devices.arena),
    END,
};
FIELDS(reset) = {
    MANY(STRS, reset.containers, reset.container_count),
    MANY(STRS, reset.filters, reset.filter_count),
    END,
};
FIELDS(make_callable) = {
    ONE(STR, make_callable.session),
    MANY(STRS, make_callable.feeds, make_callable.feed_count),
    MANY(STRS, make_callable.fetches, make_callable.fetch_count),
    MANY(STRS, make_callable.targets, make_callable.target_count),
    ONE(PLAIN, make_callable.handle),
    END,
};
FIELDS(release_callable) = {ONE(STR, release_callable.session), END};

#define KIND(side, NAME, ...)                                            \
  static void call_##NAME(const rn_callees_t* to, rn_record_t* record) { \
    to->side->vtable->NAME(to->side, &record->NAME);                     \
  }                                                                      \
  const rn_record_kind_t rn_record_##NAME = {                            \
      .name = #NAME, .size = sizeof(rn_##NAME##_t), .fields = NAME##_fields, .call = call_##NAME};
RN_WORKER_CALLS(KIND)
RN_MASTER_CALLS(KIND)

void rn_record_open(const rn_record_kind_t* kind, rn_record_t* record, rn_allocator_t allocator) {
  for (const rn_record_field_t* field = kind->fields; field->kind != RN_FIELD_END; ++field) {
    if (field->kind == RN_FIELD_BUFFER) rn_strbuf_init(rn_record_at(record, field->at), allocator);
    if (field->kind == RN_FIELD_ARENA) rn_arena_init(rn_record_at(record, field->at), allocator);
  }
}

static void clear_tensors(rn_tensor_t* tensors, size_t count) {
  for (size_t i = 0; tensors && i < count; ++i) rn_tensor_clear(&tensors[i]);
}

static void clear_field(const rn_record_field_t* field, rn_record_t* record,
                        rn_allocator_t allocator) {
  void* at = rn_record_at(record, field->at);
  size_t* count = rn_record_at(record, field->more);  // of an array
  switch ((rn_record_field_kind_t)field->kind) {
    case RN_FIELD_NAMED: {
      rn_named_tensor_t* named = *(rn_named_tensor_t**)at;
      for (size_t i = 0; named && i < *count; ++i) rn_tensor_clear(&named[i].value);
      return;
    }
    case RN_FIELD_VALUE:
      rn_tensor_clear(at);
      return;
    case RN_FIELD_TENSORS:
    case RN_FIELD_VALUES:
      clear_tensors(*(rn_tensor_t**)at, *count);
      return;
    case RN_FIELD_RETURNED:
      clear_tensors(*(rn_tensor_t**)at, *count);
      RN_FREE_ARRAY(allocator, *(rn_tensor_t**)at, *count);
      return;
    case RN_FIELD_BUFFER:
      rn_strbuf_clear(at);
      return;
    case RN_FIELD_ARENA:
      rn_arena_clear(at);
      return;
    default:
      return;
  }
}

void rn_record_clear(const rn_record_kind_t* kind, rn_record_t* record, rn_allocator_t allocator) {
  for (const rn_record_field_t* field = kind->fields; field->kind != RN_FIELD_END; ++field)
    clear_field(field, record, allocator);
}
