// Nodes of ops that have no class, for the C++ tests.
#ifndef RUNNEL_TESTS_CC_NODES_H_
#define RUNNEL_TESTS_CC_NODES_H_

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/graph/node_builder.h"

inline tensorflow::Output AddNode(const tensorflow::Scope& scope, tensorflow::NodeBuilder builder) {
  scope.UpdateBuilder(&builder);
  tensorflow::Node* node = nullptr;
  scope.UpdateStatus(builder.Finalize(scope.graph(), &node));
  return tensorflow::Output(node);
}

#endif  // RUNNEL_TESTS_CC_NODES_H_
