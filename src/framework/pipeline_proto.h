// The messages in which pipelines of datasets are described: graphs, functions, options.
#ifndef RUNNEL_FRAMEWORK_PIPELINE_PROTO_H_
#define RUNNEL_FRAMEWORK_PIPELINE_PROTO_H_

#include "proto/dataset_options.pb.h"
#include "proto/function.pb.h"
#include "proto/graph.pb.h"

#endif  // RUNNEL_FRAMEWORK_PIPELINE_PROTO_H_
