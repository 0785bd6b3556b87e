// Variables by name: scopes with get-or-create, initializers, regularizers, collections.
//
//   rn_scope_t* layer = rn_variable_scope(s, "layer", .reuse = RN_REUSE_AUTO);
//   const rn_var_t* w = rn_get_variable(layer, "w", dims, 2,
//                                            .initializer = rn_init_glorot_uniform(7));
//   rn_edge_t y = rn_MatMul(layer, x, w->value);
//   rn_node_t* init = rn_initialize_variables(s, RN_GLOBAL_VARIABLES);
//
// Variables and collections belong to the graph and live as long as it does, so that a later scope
// over the same graph finds them. Only one thread at a time may make variables of a graph. The
// scope keeps the first error, as with builders: the result is then NULL, RN_NO_EDGE or nothing,
// and every function accepts such results and does nothing.
#ifndef RUNNEL_VARIABLES_H_
#define RUNNEL_VARIABLES_H_

#include "runnel/graph.h"
#include "runnel/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rn_variable_kind_t {
  RN_VARIABLE_DEFAULT,    // the variable scope's; by default resources
  RN_VARIABLE_RESOURCE,   // VarHandleOp
  RN_VARIABLE_REFERENCE,  // VariableV2
} rn_variable_kind_t;

typedef struct rn_var_t {
  const char* name;         // the node's, and that in checkpoints
  rn_edge_t handle;         // the resource, or the reference
  rn_edge_t value;          // a read of it, for computing
  rn_edge_t initial_value;  // |init| assigns it
  rn_node_t* init;
  int dtype;
  int rank;
  const int64_t* dims;
  bool is_resource;
  bool is_trainable;
} rn_var_t;

// Initializers are plain values that can be copied. For your own, set |make|, which builds the
// initial value of a variable in |scope|.
typedef struct rn_initializer_t rn_initializer_t;
typedef rn_edge_t (*rn_initialize_fn_t)(rn_scope_t* scope, const rn_initializer_t* self,
                                        const int64_t* dims, int rank, int dtype);
typedef enum rn_fan_t { RN_FAN_IN, RN_FAN_OUT, RN_FAN_AVG } rn_fan_t;
typedef enum rn_distribution_t {
  RN_TRUNCATED_NORMAL,
  RN_UNTRUNCATED_NORMAL,
  RN_UNIFORM,
} rn_distribution_t;
struct rn_initializer_t {
  rn_initialize_fn_t make;  // NULL: not set
  double a, b;              // bounds, mean and deviation, value, gain or scale
  int64_t seed;             // 0: random
  rn_fan_t fan;
  rn_distribution_t distribution;
  const void* arg;  // for |make|
};

// Initial values that are all 0, all 1, or all |value|.
RN_API rn_initializer_t rn_init_zeros(void);
RN_API rn_initializer_t rn_init_ones(void);
RN_API rn_initializer_t rn_init_constant(double value);
// |data| has the elements, in the variable's type and shape; borrowed until the variable is made.
RN_API rn_initializer_t rn_init_values(const void* data);
RN_API rn_initializer_t rn_init_uniform(double min, double max, int64_t seed);
RN_API rn_initializer_t rn_init_normal(double mean, double deviation, int64_t seed);
RN_API rn_initializer_t rn_init_truncated_normal(double mean, double deviation, int64_t seed);
RN_API rn_initializer_t rn_init_variance_scaling(double scale, rn_fan_t fan,
                                                 rn_distribution_t distribution, int64_t seed);
RN_API rn_initializer_t rn_init_glorot_uniform(int64_t seed);
RN_API rn_initializer_t rn_init_glorot_normal(int64_t seed);
RN_API rn_initializer_t rn_init_he_uniform(int64_t seed);
RN_API rn_initializer_t rn_init_he_normal(int64_t seed);
RN_API rn_initializer_t rn_init_lecun_uniform(int64_t seed);
RN_API rn_initializer_t rn_init_lecun_normal(int64_t seed);
RN_API rn_initializer_t rn_init_orthogonal(double gain, int64_t seed);
RN_API rn_initializer_t rn_init_identity(double gain);
// The value that |initializer| builds, without a variable; Glorot's if it has no |make|.
RN_API rn_edge_t rn_initial_value(rn_scope_t* scope, rn_initializer_t initializer,
                                  const int64_t* dims, int rank, int dtype);

// Regularizers compute a scalar from a variable's value, to be added to the loss.
typedef struct rn_regularizer_t rn_regularizer_t;
struct rn_regularizer_t {
  rn_edge_t (*make)(rn_scope_t* scope, const rn_regularizer_t* self, rn_edge_t value);
  double l1, l2;
  const void* arg;
};
// l1 Σ|w| + l2 Σw².
RN_API rn_regularizer_t rn_regularize(double l1, double l2);

// Collections are lists by name, in order of insertion.
#define RN_GLOBAL_VARIABLES "variables"
#define RN_LOCAL_VARIABLES "local_variables"
#define RN_TRAINABLE_VARIABLES "trainable_variables"
#define RN_MODEL_VARIABLES "model_variables"
#define RN_METRIC_VARIABLES "metric_variables"
#define RN_MOVING_AVERAGE_VARIABLES "moving_average_variables"
#define RN_REGULARIZATION_LOSSES "regularization_losses"
#define RN_LOSSES "losses"
#define RN_UPDATE_OPS "update_ops"
#define RN_GLOBAL_STEP "global_step"

typedef struct rn_collected_t {
  rn_edge_t edge;            // a tensor, or a node to run
  const rn_var_t* variable;  // NULL: no variable
} rn_collected_t;

// Appends |edge| to the collection.
RN_API void rn_collect(rn_scope_t* scope, const char* collection, rn_edge_t edge);
// Appends |variable| to the collection.
RN_API void rn_collect_variable(rn_scope_t* scope, const char* collection,
                                const rn_var_t* variable);
// The number of items; |*out| points to them until something is added.
RN_API int rn_collection(rn_scope_t* scope, const char* collection, const rn_collected_t** out);

// Whether rn_get_variable finds or makes a variable.
typedef enum rn_reuse_t {
  RN_REUSE_INHERIT,  // like the enclosing scope
  RN_REUSE_NEVER,    // it must be new (default at the root)
  RN_REUSE_ALWAYS,   // it must exist
  RN_REUSE_AUTO,     // made if it does not exist
} rn_reuse_t;

typedef struct rn_variable_scope_options_t {
  rn_reuse_t reuse;  // inside a scope that always reuses, all reuse
  int dtype;         // 0: the enclosing scope's, or float
  rn_variable_kind_t kind;
  rn_initializer_t initializer;
  rn_regularizer_t regularizer;
  bool absolute;  // |name| is the full prefix of the variables
  char unused_;   // last, for initializers in C++
} rn_variable_scope_options_t;
// A child of |parent| whose variables get the prefix "name/" as it is (for nodes it is made
// unique), and whose options are defaults for the variables inside. Destroy it like any scope.
RN_API rn_scope_t* rn_variable_scope_(rn_scope_t* parent, const char* name,
                                      rn_variable_scope_options_t options);
#define rn_variable_scope(parent, ...) \
  rn_variable_scope_((parent), RN_OPTIONS_(rn_variable_scope_options_t, __VA_ARGS__, .unused_ = 0))
// The same with the first of "name", "name_1" … that is not yet the name of a variable scope here.
RN_API rn_scope_t* rn_unique_variable_scope(rn_scope_t* parent, const char* name);

typedef struct rn_variable_options_t {
  int dtype;  // 0: that of the scope
  rn_variable_kind_t kind;
  rn_initializer_t initializer;  // none: that of the scope, or Glorot's (zeros for integers)
  rn_regularizer_t regularizer;  // none: that of the scope
  bool not_trainable;
  bool no_regularizer;     // not the scope's either
  const char* collection;  // instead of RN_GLOBAL_VARIABLES
  char unused_;            // last, for initializers in C++
} rn_variable_options_t;
// The variable |name| of the variable scope: found or made, according to the scope's reuse.
RN_API const rn_var_t* rn_get_variable_(rn_scope_t* scope, const char* name, const int64_t* dims,
                                        int rank, rn_variable_options_t options);
#define rn_get_variable(scope, name, dims, ...) \
  rn_get_variable_((scope), (name), (dims),     \
                   RN_OPTIONS_(rn_variable_options_t, __VA_ARGS__, .unused_ = 0))
// A new variable with the initial value |initial_value|, whose shape must be known; its name is
// made unique under the scope's prefix.
RN_API const rn_var_t* rn_new_variable_(rn_scope_t* scope, const char* name,
                                        rn_edge_t initial_value, rn_variable_options_t options);
#define rn_new_variable(scope, name, ...) \
  rn_new_variable_((scope), (name), RN_OPTIONS_(rn_variable_options_t, __VA_ARGS__, .unused_ = 0))
// The variable with this full name; NULL if there is none.
RN_API const rn_var_t* rn_find_variable(rn_scope_t* scope, const char* name);

// The counter of training steps, "global_step": one int64 per graph, made by the first call.
RN_API const rn_var_t* rn_global_step(rn_scope_t* scope);

// Nodes over variables of either kind.
RN_API rn_edge_t rn_var_read(rn_scope_t* scope, const rn_var_t* variable);  // its current value
RN_API rn_node_t* rn_var_assign(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t value);
RN_API rn_node_t* rn_var_add(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t value);
RN_API rn_node_t* rn_var_subtract(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t value);
// Reads the rows |indices| of the variable, or adds |rows| to them.
RN_API rn_edge_t rn_var_gather(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t indices);
RN_API rn_node_t* rn_var_scatter_add(rn_scope_t* scope, const rn_var_t* variable, rn_edge_t indices,
                                     rn_edge_t rows);
// The variable's value after |node| has run.
RN_API rn_edge_t rn_var_read_after(rn_scope_t* scope, const rn_var_t* variable, rn_node_t* node);

// A node that runs after all of |nodes|.
RN_API rn_node_t* rn_group(rn_scope_t* scope, rn_node_t* const* nodes, int count);
// A node that initializes every variable of the collection.
RN_API rn_node_t* rn_initialize_variables(rn_scope_t* scope, const char* collection);
// A node that runs everything in the collection.
RN_API rn_node_t* rn_group_collection(rn_scope_t* scope, const char* collection);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_VARIABLES_H_
