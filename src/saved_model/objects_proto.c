// Object graphs as messages: see objects.h.
#include "proto/saved_object_graph.pb.h"
#include "saved_model/objects.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"
#include "wire/writer.h"

// A field that is a message, written by what follows in braces.
#define IN(buf, field)                                               \
  for (size_t mark_ = rn_pb_begin((buf), (field)), once_ = 1; once_; \
       rn_pb_end((buf), mark_), once_ = 0)

static void put_none(rn_strbuf_t* buf, uint32_t field) {
  IN(buf, field) IN(buf, rn_pb_StructuredValue_none_value_field) {}
}

static void put_text(rn_strbuf_t* buf, uint32_t field, rn_str_t text) {
  IN(buf, field) rn_pb_put_str(buf, rn_pb_StructuredValue_string_value_field, text);
}

static rn_status_t put_spec(rn_strbuf_t* buf, uint32_t field, rn_str_t name, int32_t dtype,
                            const rn_pb_TensorShapeProto_t* shape) {
  rn_status_t status = RN_OK;
  IN(buf, field) IN(buf, rn_pb_StructuredValue_tensor_spec_value_field) {
    rn_pb_put_str(buf, rn_pb_TensorSpecProto_name_field, name);
    IN(buf, rn_pb_TensorSpecProto_shape_field)
    if (shape) status = RN_PB_ENCODE(TensorShapeProto, shape, NULL, buf);
    rn_pb_put_uint(buf, rn_pb_TensorSpecProto_dtype_field, (uint64_t)dtype);
  }
  return status;
}

// {name: spec, …}
static rn_status_t put_named(rn_strbuf_t* buf, uint32_t field,
                             const rn_pb_SignatureDef_InputsEntry_t* ports, uint32_t count) {
  rn_status_t status = RN_OK;
  IN(buf, field) IN(buf, rn_pb_StructuredValue_dict_value_field) {
    for (uint32_t i = 0; rn_ok(status) && i < count; ++i) IN(buf, rn_pb_DictValue_fields_field) {
        rn_pb_put_str(buf, rn_pb_DictValue_FieldsEntry_key_field, ports[i].key);
        status = put_spec(buf, rn_pb_DictValue_FieldsEntry_value_field, ports[i].key,
                          ports[i].value->dtype, ports[i].value->tensor_shape);
      }
  }
  return status;
}

// The function's argument specification for Python: all arguments are keyword arguments.
static void put_function_spec(rn_strbuf_t* buf, uint32_t field,
                              const rn_object_function_t* function) {
  static const char* const names[] = {"args",       "varargs",        "varkw",      "defaults",
                                      "kwonlyargs", "kwonlydefaults", "annotations"};
  const rn_pb_SignatureDef_t* signature = function->signature;
  IN(buf, field) {
    IN(buf, rn_pb_FunctionSpec_fullargspec_field)
    IN(buf, rn_pb_StructuredValue_named_tuple_value_field) {
      rn_pb_put_str(buf, rn_pb_NamedTupleValue_name_field, RN_STR("FullArgSpec"));
      for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        IN(buf, rn_pb_NamedTupleValue_values_field) {
          rn_pb_put_str(buf, rn_pb_PairValue_key_field, rn_str(names[i]));
          if (i == 0 || i == 4) {
            IN(buf, rn_pb_PairValue_value_field)
            IN(buf, rn_pb_StructuredValue_list_value_field)
            for (uint32_t k = 0; i == 4 && signature && k < signature->inputs.count; ++k)
              put_text(buf, rn_pb_ListValue_values_field, signature->inputs.items[k].key);
          } else if (i == 6) {
            IN(buf, rn_pb_PairValue_value_field) IN(buf, rn_pb_StructuredValue_dict_value_field) {}
          } else {
            put_none(buf, rn_pb_PairValue_value_field);
          }
        }
    }
    if (signature) {
      put_none(buf, rn_pb_FunctionSpec_input_signature_field);
    } else {
      IN(buf, rn_pb_FunctionSpec_input_signature_field)
      IN(buf, rn_pb_StructuredValue_tuple_value_field) {}
    }
  }
}

static void put_user_object(rn_strbuf_t* buf, const char* identifier) {
  IN(buf, rn_pb_SavedObject_user_object_field) {
    rn_pb_put_str(buf, rn_pb_SavedUserObject_identifier_field, rn_str(identifier));
    IN(buf, rn_pb_SavedUserObject_version_field) {
      rn_pb_put_uint(buf, rn_pb_VersionDef_producer_field, 1);
      rn_pb_put_uint(buf, rn_pb_VersionDef_min_consumer_field, 1);
    }
  }
}

static rn_status_t put_variable(const rn_objects_t* objects, const rn_model_object_t* object,
                                rn_strbuf_t* buf) {
  const rn_model_variable_t* variable = &objects->variables[object->item];
  rn_pb_TensorShapeProto_t* shape = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(objects->arena, &shape));
  RN_RETURN_IF_ERROR(rn_shape_to_proto(rn_tensor_shape(&variable->value), objects->arena, shape));
  rn_status_t status = RN_OK;
  IN(buf, rn_pb_SavedObject_variable_field) {
    rn_pb_put_uint(buf, rn_pb_SavedVariable_dtype_field, variable->value.dtype);
    IN(buf, rn_pb_SavedVariable_shape_field)
    status = RN_PB_ENCODE(TensorShapeProto, shape, NULL, buf);
    if (variable->is_trainable) rn_pb_put_uint(buf, rn_pb_SavedVariable_trainable_field, 1);
    rn_pb_put_str(buf, rn_pb_SavedVariable_name_field, variable->resource);
  }
  return status;
}

static void put_signature(const rn_object_function_t* function, rn_strbuf_t* buf) {
  const rn_pb_SignatureDef_t* signature = function->signature;
  IN(buf, rn_pb_SavedObject_bare_concrete_function_field) {
    rn_pb_put_str(buf, rn_pb_SavedBareConcreteFunction_concrete_function_name_field,
                  function->name);
    for (uint32_t i = 0; i < signature->inputs.count; ++i)
      rn_pb_put_str(buf, rn_pb_SavedBareConcreteFunction_argument_keywords_field,
                    signature->inputs.items[i].key);
    if (signature->inputs.count == 1)
      rn_pb_put_uint(buf, rn_pb_SavedBareConcreteFunction_allowed_positional_arguments_field, 1);
    put_function_spec(buf, rn_pb_SavedBareConcreteFunction_function_spec_field, function);
  }
}

static void put_function(const rn_object_function_t* function, rn_strbuf_t* buf) {
  IN(buf, rn_pb_SavedObject_function_field) {
    rn_pb_put_str(buf, rn_pb_SavedFunction_concrete_functions_field, function->name);
    put_function_spec(buf, rn_pb_SavedFunction_function_spec_field, function);
  }
}

static void put_children(const rn_objects_t* objects, const rn_model_object_t* object,
                         uint32_t field, rn_strbuf_t* buf) {
  for (int32_t c = object->first_child; c >= 0; c = objects->children.items[c].next)
    IN(buf, field) {
      const rn_object_child_t* child = &objects->children.items[c];
      rn_pb_put_uint(buf, rn_pb_TrackableObjectGraph_TrackableObject_ObjectReference_node_id_field,
                     (uint64_t)child->object);
      rn_pb_put_str(buf,
                    rn_pb_TrackableObjectGraph_TrackableObject_ObjectReference_local_name_field,
                    child->name);
    }
}

static rn_status_t put_object(const rn_objects_t* objects, const rn_model_object_t* object,
                              rn_strbuf_t* buf) {
  put_children(objects, object, rn_pb_SavedObject_children_field, buf);
  switch (object->kind) {
    case RN_OBJECT_PLAIN:
      put_user_object(buf, "_generic_user_object");
      break;
    case RN_OBJECT_LIST:
      put_user_object(buf, "trackable_list_wrapper");
      break;
    case RN_OBJECT_SIGNATURES:
      put_user_object(buf, "signature_map");
      break;
    case RN_OBJECT_VARIABLE:
      return put_variable(objects, object, buf);
    case RN_OBJECT_TABLE:
      IN(buf, rn_pb_SavedObject_resource_field) {}
      break;
    case RN_OBJECT_ASSET:
      IN(buf, rn_pb_SavedObject_asset_field)
      rn_pb_put_uint(buf, rn_pb_SavedAsset_asset_file_def_index_field, (uint64_t)object->item);
      break;
    case RN_OBJECT_SIGNATURE:
      put_signature(&objects->functions.items[object->item], buf);
      break;
    case RN_OBJECT_FUNCTION:
      put_function(&objects->functions.items[object->item], buf);
      break;
  }
  return RN_OK;
}

static rn_status_t put_concrete(const rn_object_function_t* function, rn_strbuf_t* buf) {
  const rn_pb_SignatureDef_t* signature = function->signature;
  rn_pb_put_str(buf, rn_pb_SavedObjectGraph_ConcreteFunctionsEntry_key_field, function->name);
  rn_status_t status = RN_OK;
  IN(buf, rn_pb_SavedObjectGraph_ConcreteFunctionsEntry_value_field) {
    for (size_t i = 0; i < function->bound.count; ++i)
      rn_pb_put_uint(buf, rn_pb_SavedConcreteFunction_bound_inputs_field,
                     (uint64_t)function->bound.items[i]);
    IN(buf, rn_pb_SavedConcreteFunction_canonicalized_input_signature_field)
    IN(buf, rn_pb_StructuredValue_tuple_value_field) {
      IN(buf, rn_pb_TupleValue_values_field) IN(buf, rn_pb_StructuredValue_tuple_value_field) {}
      status =
          put_named(buf, rn_pb_TupleValue_values_field, signature ? signature->inputs.items : NULL,
                    signature ? signature->inputs.count : 0);
    }
    if (rn_ok(status) && signature)
      // Entries of inputs and of outputs have the same layout under two type names.
      status = put_named(buf, rn_pb_SavedConcreteFunction_output_signature_field,
                         (const rn_pb_SignatureDef_InputsEntry_t*)signature->outputs.items,
                         signature->outputs.count);
    else if (rn_ok(status))
      status = put_spec(buf, rn_pb_SavedConcreteFunction_output_signature_field, RN_STR("unknown"),
                        function->result_dtype, NULL);
  }
  return status;
}

rn_status_t rn_objects_encode(const rn_objects_t* objects, rn_strbuf_t* out) {
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < objects->objects.count; ++i)
    IN(out, rn_pb_SavedObjectGraph_nodes_field)
  status = put_object(objects, &objects->objects.items[i], out);
  for (size_t i = 0; rn_ok(status) && i < objects->functions.count; ++i)
    IN(out, rn_pb_SavedObjectGraph_concrete_functions_field)
  status = put_concrete(&objects->functions.items[i], out);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

rn_status_t rn_objects_encode_tree(const rn_objects_t* objects, rn_strbuf_t* out) {
  for (size_t i = 0; i < objects->objects.count; ++i) {
    const rn_model_object_t* object = &objects->objects.items[i];
    IN(out, rn_pb_TrackableObjectGraph_nodes_field) {
      put_children(objects, object, rn_pb_TrackableObjectGraph_TrackableObject_children_field, out);
      if (object->kind != RN_OBJECT_VARIABLE) continue;
      const rn_model_variable_t* variable = &objects->variables[object->item];
      IN(out, rn_pb_TrackableObjectGraph_TrackableObject_attributes_field) {
        rn_pb_put_str(out, rn_pb_TrackableObjectGraph_TrackableObject_SerializedTensor_name_field,
                      RN_STR("VARIABLE_VALUE"));
        rn_pb_put_str(out,
                      rn_pb_TrackableObjectGraph_TrackableObject_SerializedTensor_full_name_field,
                      variable->resource);
        rn_pb_put_str(
            out, rn_pb_TrackableObjectGraph_TrackableObject_SerializedTensor_checkpoint_key_field,
            variable->name);
      }
    }
  }
  return rn_strbuf_status(out);
}
