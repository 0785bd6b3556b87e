// The registered kernels as a KernelList.
#include "framework/kernel_list.h"

#include "framework/kernel.h"
#include "framework/op_face.h"
#include "proto/attr_value.pb.h"
#include "proto/kernel_def.pb.h"
#include "wire/writer.h"

typedef struct lister_t {
  rn_strbuf_t* buf;
  const char* op;  // NULL for all ops
} lister_t;

static void write_constraint(rn_strbuf_t* buf, const rn_kernel_type_t* type) {
  size_t constraint = rn_pb_begin(buf, rn_pb_KernelDef_constraint_field);
  rn_pb_put_str(buf, rn_pb_KernelDef_AttrConstraint_name_field, rn_str(type->attr));
  size_t allowed = rn_pb_begin(buf, rn_pb_KernelDef_AttrConstraint_allowed_values_field);
  size_t list = rn_pb_begin(buf, rn_pb_AttrValue_list_field);
  size_t types = rn_pb_begin(buf, rn_pb_AttrValue_ListValue_type_field);  // packed
  for (rn_dtype_t dtype = 1; dtype < RN_DTYPE_COUNT; ++dtype) {
    if (rn_dtypes_has(type->types, dtype)) rn_pb_put_varint(buf, (uint64_t)dtype);
  }
  rn_pb_end(buf, types);
  rn_pb_end(buf, list);
  rn_pb_end(buf, allowed);
  rn_pb_end(buf, constraint);
}

static void write_kernel(const lister_t* lister, const rn_kernel_def_t* def, const char* op) {
  rn_strbuf_t* buf = lister->buf;
  if (lister->op && strcmp(lister->op, op) != 0) return;
  size_t mark = rn_pb_begin(buf, rn_pb_KernelList_kernel_field);
  rn_pb_put_str(buf, rn_pb_KernelDef_op_field, rn_str(op));
  rn_pb_put_str(buf, rn_pb_KernelDef_device_type_field, rn_str(def->device));
  for (size_t i = 0; i < sizeof def->types / sizeof *def->types && def->types[i].attr; ++i) {
    write_constraint(buf, &def->types[i]);
  }
  for (const char* const* name = def->host_args; name && *name; ++name) {
    rn_pb_put_str(buf, rn_pb_KernelDef_host_memory_arg_field, rn_str(*name));
  }
  if (def->label && *def->label) {
    rn_pb_put_str(buf, rn_pb_KernelDef_label_field, rn_str(def->label));
  }
  if (def->priority) {
    rn_pb_put_uint(buf, rn_pb_KernelDef_priority_field, (uint64_t)(int64_t)def->priority);
  }
  rn_pb_end(buf, mark);
}

// Lists a kernel under the name of its op and of that op's faces.
static rn_status_t list_kernel(const rn_kernel_def_t* def, void* arg) {
  write_kernel(arg, def, def->op);
  for (const rn_op_face_t* face = rn_op_faces; face->name; ++face)
    if (strcmp(face->base, def->op) == 0) write_kernel(arg, def, face->name);
  return RN_OK;
}

rn_status_t rn_kernel_list_write(rn_strbuf_t* buf, const char* op) {
  lister_t lister = {.buf = buf, .op = op};
  return rn_kernel_each(list_kernel, &lister);
}
