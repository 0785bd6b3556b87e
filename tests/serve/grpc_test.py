"""TensorFlow Serving's gRPC services, health and reflection, as Python's grpc sees them.

    grpc_test.py RUNNEL

Messages come from the server's own reflection. Where the package tensorflow_serving is installed, its stubs are
tried, too, and its descriptors compared.
"""
import importlib
import os
import sys
import tempfile
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import grpc
from google.protobuf import descriptor_pool

import serving

PREDICTION = "tensorflow.serving.PredictionService."
MODEL = "tensorflow.serving.ModelService."
REGRESS, CLASSIFY = "tensorflow/serving/regress", "tensorflow/serving/classify"


def config_of(list_type, **folders):
    config = list_type()
    for name, folder in folders.items():
        one = config.model_config_list.config.add(name=name, model_platform="tensorflow")
        one.base_path = os.path.join(serving.models_folder(), folder)
    return config


MODEL_FLAGS = ("--model_name=half_plus_two", "--model_base_path=" + os.path.join(serving.models_folder(), "half_plus_two"))


def setUpModule():
    Case.server = serving.Server(RUNNEL, *MODEL_FLAGS)
    unittest.addModuleCleanup(Case.server.stop)
    Case.api = serving.Api(Case.server.grpc)
    unittest.addModuleCleanup(Case.api.close)
    Case.api.wait_until_ready()


class Case(unittest.TestCase):
    def call(self, name, request, **options):
        return self.api.call(name, request, **options)

    def new(self, name, **fields):
        return self.api.type("tensorflow.serving." + name)(**fields)

    def refused(self, code, text, name, request, **options):
        with self.assertRaises(grpc.RpcError) as raised:
            self.call(name, request, **options)
        self.assertEqual(raised.exception.code(), code)
        self.assertIn(text, raised.exception.details())
        return raised.exception

    def predict_request(self, values=(2.0,), model="half_plus_two", signature=""):
        request = self.new("PredictRequest")
        request.model_spec.name = model
        request.model_spec.signature_name = signature
        x = request.inputs["x"]
        x.dtype = 1
        x.tensor_shape.dim.add(size=len(values))
        x.float_val.extend(values)
        return request

    def check_spec(self, spec, signature="serving_default", model="half_plus_two", version=123):
        self.assertEqual((spec.name, spec.signature_name, spec.version.value), (model, signature, version))


class PredictTest(Case):
    def test_typed_values(self):
        response = self.call(PREDICTION + "Predict", self.predict_request([2.0, 3.0, 4.0]))
        self.assertEqual(list(response.outputs), ["y"])
        y = response.outputs["y"]
        self.assertEqual((y.dtype, [dim.size for dim in y.tensor_shape.dim]), (1, [3]))
        self.assertEqual(list(y.float_val), [3.0, 3.5, 4.0])
        self.check_spec(response.model_spec)

    def test_bytes_filter_version_and_signature(self):
        import numpy
        values = numpy.arange(100000, dtype=numpy.float32)
        request = self.predict_request([0.0])
        request.model_spec.version.value = 123
        request.model_spec.signature_name = "serving_default"
        x = request.inputs["x"]
        del x.float_val[:]
        x.tensor_shape.dim[0].size = len(values)
        x.tensor_content = values.tobytes()
        request.output_filter.append("y")
        response = self.call(PREDICTION + "Predict", request)
        numpy.testing.assert_array_equal(numpy.array(response.outputs["y"].float_val, numpy.float32), values / 2 + 2)
        self.check_spec(response.model_spec)

    def test_one_value_fills_a_shape(self):
        request = self.predict_request([4.0])
        request.inputs["x"].tensor_shape.dim[0].size = 5
        response = self.call(PREDICTION + "Predict", request)
        self.assertEqual(list(response.outputs["y"].float_val), [4.0] * 5)

    def test_errors(self):
        predict = PREDICTION + "Predict"
        codes = grpc.StatusCode
        self.refused(codes.INVALID_ARGUMENT, "Missing ModelSpec", predict, self.new("PredictRequest"))
        self.refused(codes.NOT_FOUND, "Servable not found for request: Latest(other)", predict,
                     self.predict_request(model="other"))
        request = self.predict_request()
        request.model_spec.version.value = 9
        self.refused(codes.NOT_FOUND, "Servable not found for request: Specific(half_plus_two, 9)", predict, request)
        request.model_spec.version_label = "stable"
        self.refused(codes.INVALID_ARGUMENT, "Unrecognized servable version label: stable", predict, request)
        request = self.predict_request()
        request.model_spec.name = ""
        self.refused(codes.INVALID_ARGUMENT, "ModelSpec has no name specified.", predict, request)
        self.refused(codes.FAILED_PRECONDITION, 'Serving signature key "nine" not found.', predict,
                     self.predict_request(signature="nine"))
        request = self.predict_request()
        del request.inputs["x"]
        self.refused(codes.INVALID_ARGUMENT, "input size does not match signature: 0!=1 len({}) != len({x})", predict, request)
        request = self.predict_request()
        request.output_filter.append("z")
        self.refused(codes.INVALID_ARGUMENT, "output tensor alias not found in signature: z", predict, request)
        request = self.predict_request()
        request.inputs["x"].dtype = 3
        self.refused(codes.INVALID_ARGUMENT, "", predict, request)
        request = self.predict_request()
        request.inputs["x"].tensor_content = b"123"
        self.refused(codes.INVALID_ARGUMENT, "tensor parsing error: x", predict, request)

    # An answer from the cache says so.
    def test_marks(self):
        marks = []
        for _ in range(2):
            response, call = self.call(PREDICTION + "Predict", self.predict_request([17.25]), with_call=True)
            self.assertEqual(list(response.outputs["y"].float_val), [10.625])
            marks.append(dict(call.trailing_metadata()).get("runnel-marks"))
        self.assertEqual(marks, [None, "cached"])

    # A priority is a hint: whatever it says, the answer is the same.
    def test_priority(self):
        for priority in ("5", "-5", "99999999999", "high"):
            response = self.call(PREDICTION + "Predict", self.predict_request(), metadata=[("priority", priority)])
            self.assertEqual(list(response.outputs["y"].float_val), [3.0])

    def test_the_channel_survives_errors(self):
        for _ in range(20):
            self.refused(grpc.StatusCode.INVALID_ARGUMENT, "", PREDICTION + "Predict", self.new("PredictRequest"))
        self.test_typed_values()

    def test_parallel_calls(self):
        method = self.api.method(PREDICTION + "Predict")
        stub = self.api.channel.unary_unary(
            "/tensorflow.serving.PredictionService/Predict", request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=self.api.type(method.output_type.full_name).FromString)
        futures = [stub.future(self.predict_request([float(i)] * (i % 7 + 1)), timeout=60) for i in range(300)]
        for i, future in enumerate(futures):
            self.assertEqual(list(future.result().outputs["y"].float_val), [i / 2 + 2] * (i % 7 + 1))


class ExamplesTest(Case):
    def examples(self, request, *values):
        for value in values:
            request.input.example_list.examples.add().features.feature["x"].float_list.value.append(value)
        return request

    def request(self, kind, signature, *values):
        request = self.new(kind)
        request.model_spec.name = "half_plus_two"
        request.model_spec.signature_name = signature
        return self.examples(request, *values)

    def test_classify(self):
        response = self.call(PREDICTION + "Classify", self.request("ClassificationRequest", "classify_x_to_y", 2.0, 4.0))
        scores = [[(one.label, one.score) for one in row.classes] for row in response.result.classifications]
        self.assertEqual(scores, [[("", 3.0)], [("", 4.0)]])
        self.check_spec(response.model_spec, "classify_x_to_y")

    def test_regress(self):
        response = self.call(PREDICTION + "Regress", self.request("RegressionRequest", "regress_x_to_y", 2.0, 4.0))
        self.assertEqual([one.value for one in response.result.regressions], [3.0, 4.0])
        self.check_spec(response.model_spec, "regress_x_to_y")

    def test_context(self):
        request = self.new("RegressionRequest")
        request.model_spec.name = "half_plus_two"
        request.model_spec.signature_name = "regress_x_to_y"
        both = request.input.example_list_with_context
        both.examples.add()
        both.context.features.feature["x"].float_list.value.append(6.0)
        response = self.call(PREDICTION + "Regress", request)
        self.assertEqual([one.value for one in response.result.regressions], [5.0])

    def multi(self, *tasks):
        request = self.new("MultiInferenceRequest")
        for model, signature, method in tasks:
            task = request.tasks.add(method_name=method)
            task.model_spec.name = model
            task.model_spec.signature_name = signature
        return self.examples(request, 2.0)

    def test_multi_inference(self):
        response = self.call(PREDICTION + "MultiInference", self.multi(
            ("half_plus_two", "regress_x_to_y", REGRESS), ("half_plus_two", "classify_x_to_y", CLASSIFY)))
        first, second = response.results
        self.assertEqual(first.regression_result.regressions[0].value, 3.0)
        self.assertEqual(second.classification_result.classifications[0].classes[0].score, 3.0)
        self.check_spec(first.model_spec, "regress_x_to_y")
        self.check_spec(second.model_spec, "classify_x_to_y")

    def test_errors(self):
        multi = PREDICTION + "MultiInference"
        bad = grpc.StatusCode.INVALID_ARGUMENT
        one = ("half_plus_two", "regress_x_to_y", REGRESS)
        self.refused(bad, "All ModelSpecs in a MultiInferenceRequest must access the same model name.", multi,
                     self.multi(one, ("other", "classify_x_to_y", CLASSIFY)))
        self.refused(bad, "Duplicate evaluation of signature: regress_x_to_y", multi, self.multi(one, one))
        self.refused(bad, "Requested signature not found in model graph: nine", multi,
                     self.multi(("half_plus_two", "nine", REGRESS)))
        self.refused(grpc.StatusCode.UNIMPLEMENTED, "Unsupported signature method_name: guess", multi,
                     self.multi(("half_plus_two", "regress_x_to_y", "guess")))
        self.refused(bad, "ModelSpec has no name specified.", multi, self.multi())
        self.refused(bad, "Input is empty.", PREDICTION + "Classify",
                     self.request("ClassificationRequest", "classify_x_to_y"))
        self.refused(bad, "", PREDICTION + "Classify", self.request("ClassificationRequest", "serving_default", 1.0))


class ModelsTest(Case):
    def test_metadata(self):
        request = self.new("GetModelMetadataRequest", metadata_field=["signature_def"])
        request.model_spec.name = "half_plus_two"
        response = self.call(PREDICTION + "GetModelMetadata", request)
        self.assertEqual((response.model_spec.name, response.model_spec.version.value), ("half_plus_two", 123))
        self.assertEqual(list(response.metadata), ["signature_def"])
        signatures = self.new("SignatureDefMap")
        self.assertTrue(response.metadata["signature_def"].Unpack(signatures))
        self.assertIn("serving_default", signatures.signature_def)
        default = signatures.signature_def["serving_default"]
        self.assertEqual(default.method_name, "tensorflow/serving/predict")
        self.assertEqual(default.inputs["x"].dtype, 1)
        request = self.new("GetModelMetadataRequest")
        request.model_spec.name = "half_plus_two"
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "must specify at least one metadata_field",
                     PREDICTION + "GetModelMetadata", request)

    def status(self, name, **fields):
        request = self.new("GetModelStatusRequest")
        request.model_spec.name = name
        if "version" in fields:
            request.model_spec.version.value = fields["version"]
        return request

    def test_status(self):
        response = self.call(MODEL + "GetModelStatus", self.status("half_plus_two"))
        # Versions of another test may still be unloading (40), or have ended (50).
        self.assertEqual([(one.version, one.state, one.status.error_code, one.status.error_message)
                          for one in response.model_version_status if one.state < 40], [(123, 30, 0, "")])
        self.refused(grpc.StatusCode.NOT_FOUND, "Could not find version 4 of model half_plus_two",
                     MODEL + "GetModelStatus", self.status("half_plus_two", version=4))
        self.refused(grpc.StatusCode.NOT_FOUND, "Could not find any versions of model other",
                     MODEL + "GetModelStatus", self.status("other"))

    def reload(self, **folders):
        request = self.new("ReloadConfigRequest")
        request.config.CopyFrom(config_of(self.api.type("tensorflow.serving.ModelServerConfig"), **folders))
        return request

    # After the reply, the new models answer; those that are not listed do not.
    def test_reload(self):
        response = self.call(MODEL + "HandleReloadConfigRequest",
                             self.reload(half_plus_two="half_plus_two", three="half_plus_three"))
        self.assertEqual(response.status.error_code, 0)
        response = self.call(PREDICTION + "Predict", self.predict_request(model="three"))
        self.assertEqual(list(response.outputs["y"].float_val), [4.0])
        request = self.reload(half_plus_two="half_plus_two_2_versions")
        one = request.config.model_config_list.config[0]
        one.model_version_policy.specific.versions.extend([123, 124])
        self.call(MODEL + "HandleReloadConfigRequest", request)
        one.version_labels["canary"] = 124
        self.call(MODEL + "HandleReloadConfigRequest", request)
        request = self.predict_request()
        request.model_spec.version_label = "canary"
        response = self.call(PREDICTION + "Predict", request)
        self.assertEqual(response.model_spec.version.value, 124)
        self.refused(grpc.StatusCode.NOT_FOUND, "", PREDICTION + "Predict", self.predict_request(model="three"))
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "Only ModelConfigList is currently supported",
                     MODEL + "HandleReloadConfigRequest", self.new("ReloadConfigRequest"))
        self.call(MODEL + "HandleReloadConfigRequest", self.reload(half_plus_two="half_plus_two"))

    def test_session_run(self):
        request = self.new("GetModelMetadataRequest", metadata_field=["signature_def"])
        request.model_spec.name = "half_plus_two"
        signatures = self.new("SignatureDefMap")
        self.call(PREDICTION + "GetModelMetadata", request).metadata["signature_def"].Unpack(signatures)
        default = signatures.signature_def["serving_default"]
        for is_alias in (False, True):
            x, y = ("x", "y") if is_alias else (default.inputs["x"].name, default.outputs["y"].name)
            request = self.new("SessionRunRequest", fetch=[y], tensor_name_is_alias=is_alias)
            request.model_spec.name = "half_plus_two"
            feed = request.feed.add(name=x)
            feed.tensor.CopyFrom(self.predict_request([2.0, 4.0]).inputs["x"])
            response = self.call("tensorflow.serving.SessionService.SessionRun", request)
            self.assertEqual([one.name for one in response.tensor], [y])
            self.assertEqual(list(response.tensor[0].tensor.float_val), [3.0, 4.0])
            self.assertEqual(response.model_spec.version.value, 123)
        request.fetch.append("nothing:0")
        self.refused(grpc.StatusCode.NOT_FOUND, "", "tensorflow.serving.SessionService.SessionRun", request)


class RolesTest(Case):
    TOKENS = {"predict": "p" * 20, "read": "r" * 20, "admin": "a" * 20}

    @classmethod
    def setUpClass(cls):
        file = tempfile.NamedTemporaryFile("w", suffix=".tokens")
        cls.addClassCleanup(file.close)
        file.write("".join("%s %s\n" % pair for pair in cls.TOKENS.items()))
        file.flush()
        server = serving.Server(RUNNEL, *MODEL_FLAGS, "--tokens=" + file.name)
        cls.addClassCleanup(server.stop)
        cls.apis = {"none": serving.Api(server.grpc)}
        for role, token in cls.TOKENS.items():
            cls.apis[role] = serving.Api(server.grpc, [("authorization", "Bearer " + token)])
        for api in cls.apis.values():
            cls.addClassCleanup(api.close)
        cls.apis["admin"].wait_until_ready()

    # What each role may do, and the rest; health needs none.
    def test_roles(self):
        admin = self.apis["admin"]
        predict, status = self.predict_request(), ModelsTest.status(self, "half_plus_two")
        reload, health = ModelsTest.reload(self, half_plus_two="half_plus_two"), HealthTest.health(self, "")
        for calls, name, request in (("predict read admin", PREDICTION + "Predict", predict),
                                     ("read admin", MODEL + "GetModelStatus", status),
                                     ("admin", MODEL + "HandleReloadConfigRequest", reload),
                                     ("none predict read admin", "grpc.health.v1.Health.Check", health)):
            for role, api in self.apis.items():
                api.pool, api.files = admin.pool, admin.files  # reflection needs a role, too
                admin.method(name)
                if role in calls.split():
                    api.call(name, request)
                    continue
                with self.assertRaises(grpc.RpcError) as raised:
                    api.call(name, request)
                denied = grpc.StatusCode.UNAUTHENTICATED if role == "none" else grpc.StatusCode.PERMISSION_DENIED
                self.assertEqual(raised.exception.code(), denied, (role, name))


class HealthTest(Case):
    def health(self, service):
        return self.api.type("grpc.health.v1.HealthCheckRequest")(service=service)

    def test_check_and_list(self):
        for service in ("", "tensorflow.serving.PredictionService", "half_plus_two"):
            self.assertEqual(self.call("grpc.health.v1.Health.Check", self.health(service)).status, 1)
        self.refused(grpc.StatusCode.NOT_FOUND, "", "grpc.health.v1.Health.Check", self.health("other"))
        statuses = self.call("grpc.health.v1.Health.List", self.api.type("grpc.health.v1.HealthListRequest")()).statuses
        self.assertEqual(statuses[""].status, 1)

    # A watched model comes and goes.
    def test_watch(self):
        reload = ModelsTest.reload
        stream = self.call("grpc.health.v1.Health.Watch", self.health("three"))
        self.assertEqual(next(stream).status, 3)
        self.call(MODEL + "HandleReloadConfigRequest", reload(self, half_plus_two="half_plus_two", three="half_plus_three"))
        status = next(stream).status
        self.assertEqual(next(stream).status if status == 2 else status, 1)  # 2: while it loads
        self.call(MODEL + "HandleReloadConfigRequest", reload(self, half_plus_two="half_plus_two"))
        self.assertIn(next(stream).status, (2, 3))
        stream.cancel()
        stream = self.call("grpc.health.v1.Health.Watch", self.health(""), timeout=1)
        self.assertEqual(next(stream).status, 1)
        with self.assertRaises(grpc.RpcError) as raised:
            next(stream)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


class ReflectionTest(Case):
    def test_services(self):
        for version in ("v1", "v1alpha"):
            services = self.api.reflect(version, list_services="*")[0].services.service
            names = {one.name for one in services}
            self.assertLessEqual({
                "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService",
                "tensorflow.serving.SessionService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                "inference.GRPCInferenceService"}, names)
            for name in names:
                self.assertEqual(self.api.reflect(version, file_containing_symbol=name)[0].error.code, 0)

    def test_one_stream_many_questions(self):
        first, second, third, last = self.api.reflect(
            list_services="*", file_by_filename="tensor.proto",
            file_containing_symbol="tensorflow.serving.PredictionService.Predict", all_extension_numbers_of_type="a.B")
        self.assertTrue(first.services.service)
        self.assertGreater(len(second.files.file), 1)  # with its imports
        self.assertGreater(len(third.files.file), 5)
        self.assertEqual(last.error.code, 5)
        self.assertEqual(self.api.reflect(file_containing_symbol="a.B")[0].error.code, 5)

    # Of stock's descriptors, those that are installed.
    def test_descriptors_are_stocks(self):
        for module in ("tensorflow.core.protobuf.meta_graph_pb2", "tensorflow.core.protobuf.config_pb2",
                       "tensorflow.core.example.example_pb2", "tensorflow_serving.apis.prediction_service_pb2",
                       "tensorflow_serving.apis.model_service_pb2", "tensorflow_serving.apis.session_service_pb2",
                       "tensorflow_serving.apis.prediction_log_pb2", "grpc_health.v1.health_pb2"):
            try:
                importlib.import_module(module)
            except ImportError:
                pass
        for service in self.api.reflect(list_services="*")[0].services.service:
            self.api._load(service.name)
        compared = sum(self.compare(file.package, message) for file in self.api.files.values()
                       for message in file.message_type)
        self.assertGreater(compared, 300)

    def compare(self, scope, message):
        name = scope + "." + message.name
        count = sum(self.compare(name, nested) for nested in message.nested_type)
        try:
            stock = descriptor_pool.Default().FindMessageTypeByName(name)
        except KeyError:
            return count
        for field in self.api.pool.FindMessageTypeByName(name).fields:
            other = stock.fields_by_number.get(field.number)
            self.assertIsNotNone(other, name + "." + field.name)
            self.assertEqual(self.shape(field), self.shape(other))
            count += 1
        return count

    @staticmethod
    def shape(field):
        sub = field.message_type or field.enum_type
        # Stock has a file in the second version of the language, whose fields know whether they are set.
        oneof = field.containing_oneof and len(field.containing_oneof.fields) > 1 and field.containing_oneof.name
        return field.full_name, field.type, field.is_repeated, field.is_packed, oneof or None, sub and sub.full_name


class StubsTest(Case):
    """The stubs of the package tensorflow_serving, where it is installed."""

    def test_stubs(self):
        try:
            from tensorflow_serving.apis import classification_pb2, predict_pb2, prediction_service_pb2_grpc
            import tensorflow as tf
        except ImportError as error:
            self.skipTest(str(error))
        stub = prediction_service_pb2_grpc.PredictionServiceStub(self.api.channel)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "half_plus_two"
        request.inputs["x"].CopyFrom(tf.make_tensor_proto([2.0, 8.0]))
        response = stub.Predict(request, 30)
        self.assertEqual(tf.make_ndarray(response.outputs["y"]).tolist(), [3.0, 6.0])
        request = classification_pb2.ClassificationRequest()
        request.model_spec.name = "half_plus_two"
        request.model_spec.signature_name = "classify_x_to_y"
        request.input.example_list.examples.add().features.feature["x"].float_list.value.append(2.0)
        self.assertEqual(stub.Classify(request, 30).result.classifications[0].classes[0].score, 3.0)


if __name__ == "__main__":
    RUNNEL = sys.argv.pop(1)
    unittest.main()
