// Attribute values: the parameters of a node that are fixed when it is built.
//
// A value is plain data; its pointers are borrowed from the node's arena, a decoded message or a
// static table.
#ifndef RUNNEL_FRAMEWORK_ATTR_H_
#define RUNNEL_FRAMEWORK_ATTR_H_

#include "tensor/shape.h"
#include "tensor/tensor.h"

// X(enumerator, the word in an OpDef, the number that the C API calls it by (TF_AttrType))
#define RN_ATTR_KINDS(X)           \
  X(STRING, "string", 0)           \
  X(INT, "int", 1)                 \
  X(FLOAT, "float", 2)             \
  X(BOOL, "bool", 3)               \
  X(TYPE, "type", 4)               \
  X(SHAPE, "shape", 5)             \
  X(TENSOR, "tensor", 6)           \
  X(PLACEHOLDER, "placeholder", 7) \
  X(FUNC, "func", 8)

typedef enum rn_attr_kind_t {
#define RN_ATTR_ENUM(enumerator, word, number) RN_ATTR_##enumerator = number,
  RN_ATTR_KINDS(RN_ATTR_ENUM)
#undef RN_ATTR_ENUM
} rn_attr_kind_t;

typedef struct rn_attr_t rn_attr_t;
typedef struct rn_func_attr_t rn_func_attr_t;

typedef struct rn_attr_value_t {
  uint8_t kind;  // rn_attr_kind_t; RN_ATTR_INT with count 0 for an empty list of unknown kind from
                 // a message
  bool is_list;
  int32_t count;  // of a list
  union {
    rn_str_t s;  // also the name of a placeholder
    int64_t i;
    float f;
    bool b;
    rn_dtype_t type;
    rn_shape_t shape;
    const rn_tensor_t* tensor;
    const rn_func_attr_t* func;
    const rn_str_t* list_s;
    const int64_t* list_i;
    const float* list_f;
    const bool* list_b;
    const rn_dtype_t* list_type;
    const rn_shape_t* list_shape;
    const rn_tensor_t* const* list_tensor;
    const rn_func_attr_t* const* list_func;
  };
} rn_attr_value_t;

// A named attribute.
struct rn_attr_t {
  rn_str_t name;  // NUL-terminated
  rn_attr_value_t value;
};

// The name of a function and the attributes it is instantiated with.
struct rn_func_attr_t {
  rn_str_t name;
  int32_t attr_count;
  const rn_attr_t* attrs;
};

bool rn_attr_value_eq(const rn_attr_value_t* a, const rn_attr_value_t* b);
// As in node summaries: DT_FLOAT, true, 3, [1,2], "SAME", [2,?] …
void rn_attr_value_print(rn_strbuf_t* buf, const rn_attr_value_t* value);
// Makes a deep copy, except that tensors share their buffers. |arena| does not release those: see
// rn_attr_value_clear.
RN_MUST_USE rn_status_t rn_attr_value_copy(rn_arena_t* arena, const rn_attr_value_t* value,
                                           rn_attr_value_t* out);
// Releases the tensor buffers of a copied value; its other memory is freed with the arena.
void rn_attr_value_clear(rn_attr_value_t* value);

// "int", "list(type)" …
const char* rn_attr_kind_name(rn_attr_kind_t kind, bool is_list);

#endif  // RUNNEL_FRAMEWORK_ATTR_H_
