"""TensorFlow Serving's end-to-end tests, restated: the same flags, models, requests and answers.

    end_to_end_test.py RUNNEL

Its tests of TensorFlow Lite, of the profiler and of TensorFlow Text are not among them.
"""
import contextlib
import json
import os
import sys
import tempfile
import time
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import grpc

import serving

PREDICTION = "tensorflow.serving.PredictionService."
MODEL = "tensorflow.serving.ModelService."
TWO = os.path.join(serving.models_folder(), "half_plus_two")
THREE = os.path.join(serving.models_folder(), "half_plus_three")
CONFIG = 'config: {{ name: "{}", base_path: "{}", model_platform: "tensorflow" }}\n'
VERSION = 123

servers = {}
folders = contextlib.ExitStack()


def tearDownModule():
    for server, api in servers.values():
        if api:
            api.close()
        server.stop()
    folders.close()


def start(*flags, is_ready=True):
    """A server and its API; the same one for the same flags."""
    if flags not in servers:
        server = serving.Server(RUNNEL, *flags)
        servers[flags] = server, None
        if is_ready:
            servers[flags] = server, serving.Api(server.grpc)
            servers[flags][1].wait_until_ready()
    return servers[flags]


def start_model(folder, *flags):
    return start("--model_name=default", "--model_base_path=" + folder, *flags)


def temporary():
    return folders.enter_context(tempfile.TemporaryDirectory())


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


class Case(unittest.TestCase):
    def predict(self, api, expected, model="default", output=True, signature="serving_default", batch=False, version=VERSION):
        """One value, 2.0, in and |expected| out."""
        request = api.type("tensorflow.serving.PredictRequest")()
        request.model_spec.name = model
        request.model_spec.signature_name = signature
        x = request.inputs["x"]
        x.dtype = 1
        x.float_val.append(2.0)
        x.tensor_shape.dim.add(size=1)
        if batch:
            x.tensor_shape.dim.add(size=1)
        if output:
            request.output_filter.append("y")
        response = api.call(PREDICTION + "Predict", request)
        self.assertEqual(list(response.outputs), ["y"])
        self.assertEqual(response.outputs["y"].dtype, 1)
        self.assertEqual(list(response.outputs["y"].float_val), [expected])
        self.check_spec(response.model_spec, model, signature, version)

    def check_spec(self, spec, model, signature, version=VERSION):
        self.assertEqual((spec.name, spec.signature_name, spec.version.value), (model, signature, version))

    def post(self, folder, verb, body):
        server, _ = start_model(folder)
        code, text = serving.rest(server.rest, "/v1/models/default" + verb, body and json.dumps(body).encode())
        self.assertEqual(code, 200, text)
        return json.loads(text)


class GrpcTest(Case):
    folder = TWO

    def test_status(self):
        _, api = start_model(self.folder)
        request = api.type("tensorflow.serving.GetModelStatusRequest")()
        request.model_spec.name = "default"
        response = api.call(MODEL + "GetModelStatus", request)
        self.assertEqual([(one.version, one.status.error_code) for one in response.model_version_status], [(VERSION, 0)])

    def test_metadata(self):
        _, api = start_model(self.folder)
        request = api.type("tensorflow.serving.GetModelMetadataRequest")(metadata_field=["signature_def"])
        request.model_spec.name = "default"
        response = api.call(PREDICTION + "GetModelMetadata", request)
        self.assertEqual((response.model_spec.name, response.model_spec.version.value), ("default", VERSION))
        self.assertEqual(list(response.metadata), ["signature_def"])

    def infer(self, kind, method, signature):
        _, api = start_model(self.folder)
        request = api.type("tensorflow.serving." + kind)()
        request.model_spec.name = "default"
        request.model_spec.signature_name = signature
        request.input.example_list.examples.add().features.feature["x"].float_list.value.append(2.0)
        response = api.call(PREDICTION + method, request)
        self.check_spec(response.model_spec, "default", signature)
        return response.result

    def test_classify(self):
        result = self.infer("ClassificationRequest", "Classify", "classify_x_to_y")
        self.assertEqual([[one.score for one in row.classes] for row in result.classifications], [[3.0]])

    def test_regress(self):
        result = self.infer("RegressionRequest", "Regress", "regress_x_to_y")
        self.assertEqual([one.value for one in result.regressions], [3.0])

    def test_multi_inference(self):
        _, api = start_model(self.folder)
        request = api.type("tensorflow.serving.MultiInferenceRequest")()
        signatures = ["regress_x_to_y", "classify_x_to_y"]
        for signature in signatures:
            task = request.tasks.add(method_name="tensorflow/serving/" + signature.split("_")[0])
            task.model_spec.name = "default"
            task.model_spec.signature_name = signature
        request.input.example_list.examples.add().features.feature["x"].float_list.value.append(2.0)
        response = api.call(PREDICTION + "MultiInference", request)
        self.assertEqual(response.results[0].regression_result.regressions[0].value, 3.0)
        self.assertEqual(response.results[1].classification_result.classifications[0].classes[0].score, 3.0)
        for result, signature in zip(response.results, signatures):
            self.check_spec(result.model_spec, "default", signature)

    def test_predict(self):
        _, api = start_model(self.folder)
        self.predict(api, 3.0)
        self.predict(api, 3.0, output=False)

    def test_channel_arguments(self):
        _, api = start_model(self.folder, "--grpc_channel_arguments=grpc.max_connection_age_ms=2000,grpc.lb_policy_name=grpclb")
        self.predict(api, 3.0, output=False)

    def test_unix_socket(self):
        path = os.path.join(temporary(), "socket")
        start_model(self.folder, "--grpc_socket_path=" + path)
        api = serving.Api("unix:" + path)
        self.predict(api, 3.0, output=False)
        api.close()


class Tf2Test(Case):
    """Models of TensorFlow 2, made here."""
    infer = GrpcTest.infer
    test_classify = GrpcTest.test_classify
    test_regress = GrpcTest.test_regress
    test_multi_inference = GrpcTest.test_multi_inference

    @classmethod
    def setUpClass(cls):
        import tensorflow as tf
        cls.tf = tf
        cls.folder = temporary()
        module = tf.Module()
        module.a, module.b = tf.Variable(0.5), tf.Variable(2.0)

        def parsed(examples):
            return module.a * tf.io.parse_example(examples, {"x": tf.io.FixedLenFeature([1], tf.float32)})["x"] + module.b

        strings = [tf.TensorSpec([None], tf.string, "inputs")]
        module.predict = tf.function(lambda x: {"y": module.a * x + module.b}, [tf.TensorSpec([None, 1], tf.float32, "x")])
        module.regress = tf.function(lambda inputs: {"outputs": parsed(inputs)}, strings)
        module.classify = tf.function(lambda inputs: {"scores": parsed(inputs)}, strings)
        tf.saved_model.save(module, os.path.join(cls.folder, "00000123"), {
            "serving_default": module.predict, "regress_x_to_y": module.regress, "classify_x_to_y": module.classify})

    def test_checkpoint(self):
        root = self.tf.train.Checkpoint()
        root.v1, root.v2 = self.tf.Variable(3.0), self.tf.Variable(2.0)
        root.f = self.tf.function(lambda x: {"y": root.v1 * root.v2 * x})
        folder = temporary()
        self.tf.saved_model.save(root, os.path.join(folder, "00000123"),
                                 root.f.get_concrete_function(self.tf.TensorSpec(None, self.tf.float32)))
        _, api = start_model(folder)
        self.predict(api, 12.0, output=False)

    def test_devices_that_are_not_here(self):
        """A model that was written where there was a GPU."""
        root = self.tf.train.Checkpoint()
        root.f = self.tf.function(lambda x: {"y": 3.0 * x})
        folder = os.path.join(temporary(), "00000123")
        self.tf.saved_model.save(root, folder, root.f.get_concrete_function(self.tf.TensorSpec(None, self.tf.float32)))
        path = os.path.join(folder, "saved_model.pb")
        from tensorflow.core.protobuf import saved_model_pb2
        with open(path, "rb") as file:
            model = saved_model_pb2.SavedModel.FromString(file.read())
        graph = model.meta_graphs[0].graph_def
        for node in (node for function in graph.library.function for node in function.node_def):
            node.device = "/device:GPU:0"
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
        _, api = start_model(os.path.dirname(folder))
        self.predict(api, 6.0, output=False)

    def test_several_signatures(self):
        root = self.tf.train.Checkpoint()
        spec = [self.tf.TensorSpec(None, self.tf.float32, "x")]
        root.f = self.tf.function(lambda x: {"y": self.tf.constant([1.0])}, spec)
        root.g = self.tf.function(lambda x: {"y": self.tf.constant([2.0])}, spec)
        folder = temporary()
        self.tf.saved_model.save(root, os.path.join(folder, "00000123"), {
            "serving_default": root.f, "custom_signature_key": root.g})
        _, api = start_model(folder)
        self.predict(api, 2.0, signature="custom_signature_key")
        self.predict(api, 1.0)

    def keras(self, *layers):
        model = self.tf.keras.models.Sequential(
            [self.tf.keras.layers.Input(dtype="float32", shape=(1,), name="x"), *layers,
             self.tf.keras.layers.Lambda(lambda x: x, name="y")])
        folder = temporary()
        archive = self.tf.keras.export.ExportArchive()
        archive.track(model)
        archive.add_endpoint("serving_default", lambda x: {"y": model(x)}, [self.tf.TensorSpec([None, 1], self.tf.float32, "x")])
        archive.write_out(os.path.join(folder, "00000123"), verbose=False)
        _, api = start_model(folder)
        self.predict(api, 2.0, output=False, batch=True)

    def test_keras(self):
        self.keras()

    def test_keras_with_variables(self):
        strategy = self.tf.distribute.MirroredStrategy(devices=("/cpu:0",))
        with strategy.scope():
            self.keras(self.tf.keras.layers.Dense(1, kernel_initializer="ones", bias_initializer="zeros"))


class ConfigTest(Case):
    def config(self, *models):
        return "model_config_list: {\n" + "".join(CONFIG.format(*model) for model in models) + "}\n"

    def test_good(self):
        path = write(os.path.join(temporary(), "good.conf"), self.config(("half_plus_two", TWO), ("half_plus_three", THREE)))
        _, api = start("--model_config_file=" + path)
        for output in (True, False):
            self.predict(api, 3.0, model="half_plus_two", output=output)
            self.predict(api, 4.0, model="half_plus_three", output=output)

    def test_bad(self):
        path = write(os.path.join(temporary(), "bad.conf"), "improperly formatted file\n")
        server, _ = start("--model_config_file=" + path, is_ready=False)
        server.wait_for("Error parsing text-format tensorflow.serving.ModelServerConfig")
        self.assertNotEqual(server.stop(), 0)

    def reloaded(self, seconds):
        path = os.path.join(temporary(), "model.conf")
        write(path, self.config(("half_plus_two", TWO)))
        _, api = start("--model_config_file=" + path, "--model_config_file_poll_wait_seconds=%d" % seconds)
        self.predict(api, 3.0, model="half_plus_two", output=False)
        write(path + ".new", self.config(("half_plus_three", THREE)))
        os.replace(path + ".new", path)
        return api

    def test_reload(self):
        api = self.reloaded(1)
        for _ in range(600):
            try:
                return self.predict(api, 4.0, model="half_plus_three", output=False)
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND)
                time.sleep(0.1)
        self.fail("the new file was not read")

    def test_no_reload(self):
        api = self.reloaded(0)
        time.sleep(1)
        self.predict(api, 3.0, model="half_plus_two", output=False)

    def test_batching_parameters(self):
        path = write(os.path.join(temporary(), "batching.conf"),
                     "max_batch_size { value: 64 }\nbatch_timeout_micros { value: 1000 }\n"
                     "max_enqueued_batches { value: 100 }\nnum_batch_threads { value: 2 }\n"
                     'thread_pool_name: { value: "batch" }\nallowed_batch_sizes: [8, 64]\n')
        _, api = start_model(TWO, "--enable_batching", "--batching_parameters_file=" + path)
        self.predict(api, 3.0, batch=True)


class RestTest(Case):
    def test_classify(self):
        body = {"signature_name": "classify_x_to_y", "examples": [{"x": 2.0}]}
        self.assertEqual(self.post(TWO, ":classify", body), {"results": [[["", 3.0]]]})

    def test_regress(self):
        body = {"signature_name": "regress_x_to_y", "examples": [{"x": 2.0}]}
        self.assertEqual(self.post(TWO, ":regress", body), {"results": [3.0]})

    def test_predict(self):
        self.assertEqual(self.post(TWO, ":predict", {"instances": [2.0, 3.0, 4.0]}), {"predictions": [3.0, 3.5, 4.0]})

    def test_predict_columns(self):
        self.assertEqual(self.post(TWO, ":predict", {"inputs": [2.0, 3.0, 4.0]}), {"outputs": [3.0, 3.5, 4.0]})

    def test_status(self):
        self.assertEqual(self.post(TWO, "", None), {"model_version_status": [
            {"version": "123", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]})

    def test_metadata(self):
        metadata = self.post(TWO, "/metadata", None)
        self.assertEqual(metadata["model_spec"], {"name": "default", "signature_name": "", "version": "123"})
        signatures = metadata["metadata"]["signature_def"]["signature_def"]
        self.assertEqual(set(signatures), {
            "serving_default", "classify_x_to_y", "regress_x_to_y", "regress_x_to_y2", "regress_x2_to_y3"})
        self.assertEqual(signatures["serving_default"]["inputs"]["x"], {
            "dtype": "DT_FLOAT", "name": "x:0", "tensor_shape": {
                "dim": [{"name": "", "size": "-1"}, {"name": "", "size": "1"}], "unknown_rank": False}})

    def test_metrics(self):
        path = write(os.path.join(temporary(), "monitoring.conf"),
                     'prometheus_config { enable: true, path: "/monitoring/prometheus/metrics" }\n')
        server, api = start_model(TWO, "--monitoring_config_file=" + path)
        self.predict(api, 3.0)
        code, text = serving.rest(server.rest, "/monitoring/prometheus/metrics")
        self.assertEqual(code, 200)
        self.assertIn("# TYPE :tensorflow:serving:request_count counter", text)
        self.assertIn(':tensorflow:serving:request_count{model_name="default",status="OK"} 1', text)


if __name__ == "__main__":
    RUNNEL = sys.argv.pop(1)
    unittest.main()
