// Op definitions: the interface of an op, and the registry of all ops.
//
// The built-in definitions are static tables that tools/opgen.c generates from ops/*.ops; plug-ins
// add theirs at run time.
#ifndef RUNNEL_FRAMEWORK_OP_DEF_H_
#define RUNNEL_FRAMEWORK_OP_DEF_H_

#include "framework/attr.h"

typedef struct rn_shape_ctx_t rn_shape_ctx_t;
typedef struct rn_grad_t rn_grad_t;

// Infers a node's output shapes; see framework/shape_fn.h.
typedef rn_status_t (*rn_shape_fn_t)(rn_shape_ctx_t* ctx);
// Adds the gradient of a node to its graph; see framework/grad_def.h.
typedef rn_status_t (*rn_grad_fn_t)(rn_grad_t* grad);

// One argument. Its type is |type|, or the value of the attribute numbered |type_attr|, or, for a
// list of mixed types, the list in |type_list_attr|. |number_attr| gives the length of a list of
// one type. Attributes are numbered in the order of the definition; -1 for none.
typedef struct rn_arg_def_t {
  const char* name;
  rn_dtype_t type;
  int16_t type_attr;
  int16_t number_attr;
  int16_t type_list_attr;
  bool is_ref;
  const rn_str_t* full_type;  // a serialized FullTypeDef; NULL for most arguments
} rn_arg_def_t;

typedef struct rn_attr_def_t {
  const char* name;
  uint8_t kind;  // rn_attr_kind_t
  bool is_list;
  bool has_default;
  bool has_minimum;
  int32_t allowed_count;  // 0 if all values are allowed; fills a gap
  int64_t minimum;        // of an int, or of the length of a list
  rn_attr_value_t default_value;
  // Allowed values, in the order of the definition: types if |kind| is TYPE, strings if STRING.
  union {
    const rn_dtype_t* allowed_types;
    const char* const* allowed_strings;
  };
  rn_dtypes_t allowed_set;  // allowed_types as a set
} rn_attr_def_t;

enum {
  RN_OP_STATEFUL = 1 << 0,
  RN_OP_COMMUTATIVE = 1 << 1,
  RN_OP_AGGREGATE = 1 << 2,
  RN_OP_ALLOWS_UNINITIALIZED = 1 << 3,  // accepts an uninitialised variable
  RN_OP_DISTRIBUTED = 1 << 4,           // is_distributed_communication
  RN_OP_METADATA = 1 << 5,              // looks at the shape of its input, not at the bytes
  RN_OP_CALLS_FUNCTIONS = 1 << 6,       // runs functions that none of its attributes names
  RN_OP_NO_GRAD = 1 << 7,               // `grad none`: no gradient flows through it
};

// Ops that the runtime treats specially, by role instead of by name; the .ops file states the
// `role`.
typedef enum rn_op_role_t {
  RN_ROLE_PLAIN = 0,
  RN_ROLE_SWITCH,
  RN_ROLE_MERGE,
  RN_ROLE_ENTER,
  RN_ROLE_EXIT,
  RN_ROLE_NEXT_ITERATION,
  RN_ROLE_LOOP_COND,
  RN_ROLE_CONTROL_TRIGGER,
  RN_ROLE_SEND,
  RN_ROLE_RECV,
  RN_ROLE_CONSTANT,     // the value is the attribute "value"
  RN_ROLE_PLACEHOLDER,  // must be fed
  RN_ROLE_IDENTITY,     // output 0 is input 0
  RN_ROLE_NO_OP,
  RN_ROLE_VARIABLE,  // holds state of its own (ref variables, handles)
  RN_ROLE_ARG,
  RN_ROLE_RETVAL,
  RN_ROLE_COMPOSITE,  // stands for several ops, which a pass puts in its place
  RN_ROLE_FUSED,      // made by the planner only; not in the list that clients see
  RN_ROLE_CALL,       // calls the function in its attribute "f"
  RN_ROLE_FUNCTION,   // the op is itself a function of the graph's library
  RN_ROLE_IF,         // calls "then_branch" or "else_branch" by input 0
  RN_ROLE_CASE,       // calls one of "branches" by input 0
  RN_ROLE_WHILE,      // calls "body" while "cond" returns true
  RN_ROLE_GRADIENT,   // calls the gradient of the function in its attribute "f"
} rn_op_role_t;

typedef struct rn_op_def_t {
  const char* name;
  const char* summary;  // one line, our own words
  int16_t input_count;
  int16_t output_count;
  int16_t attr_count;
  uint16_t flags;
  uint8_t role;  // rn_op_role_t
  const rn_arg_def_t* inputs;
  const rn_arg_def_t* outputs;
  const rn_attr_def_t* attrs;
  int32_t deprecated_at;  // first GraphDef version that may not use it; 0 if not deprecated
  const char* deprecation;
  rn_shape_fn_t shape;  // never NULL
  rn_grad_fn_t grad;    // NULL if there is no rule
} rn_op_def_t;

// The definition of op |name|, or NULL. Definitions are never freed. Any thread.
const rn_op_def_t* rn_op_find(rn_str_t name);

// Adds a plug-in's definition, which must never be freed. ALREADY_EXISTS if another definition has
// that name.
RN_MUST_USE rn_status_t rn_op_register(const rn_op_def_t* def);

// Visits all definitions in order of name; returns the visitor's first error.
RN_MUST_USE rn_status_t rn_op_each(rn_status_t (*visit)(const rn_op_def_t* def, void* arg),
                                   void* arg);

// Number of edges of argument |arg| in a node with these attributes (in the order of the
// definition).
static inline int32_t rn_arg_length(const rn_arg_def_t* arg, const rn_attr_value_t* attrs) {
  if (arg->type_list_attr >= 0) return attrs[arg->type_list_attr].count;
  return arg->number_attr >= 0 ? (int32_t)attrs[arg->number_attr].i : 1;
}
// The type of edge |i| of argument |arg| in a node with these attributes, without the reference
// mark; RN_INVALID if the attribute that names it is not a type.
static inline rn_dtype_t rn_arg_type(const rn_arg_def_t* arg, const rn_attr_value_t* attrs,
                                     int64_t i) {
  if (arg->type_list_attr >= 0) return attrs[arg->type_list_attr].list_type[i];
  if (arg->type_attr < 0) return arg->type;
  const rn_attr_value_t* value = &attrs[arg->type_attr];
  return value->kind == RN_ATTR_TYPE && !value->is_list ? value->type : RN_INVALID;
}

// The index of attribute |name| in |def|, or -1.
int rn_op_attr_index(const rn_op_def_t* def, rn_str_t name);

// Generated by opgen: the built-in definitions, sorted by name.
extern const rn_op_def_t* const rn_builtin_ops[];
extern const int rn_builtin_op_count;

#endif  // RUNNEL_FRAMEWORK_OP_DEF_H_
