import litserve

from onnx_model import OnnxModel, arguments


class Api(litserve.LitAPI):
    def setup(self, device):
        self.model = OnnxModel()

    def decode_request(self, request):
        return request["instances"]

    def predict(self, rows):
        return self.model(rows)

    def encode_response(self, output):
        return {"predictions": output}


if __name__ == "__main__":
    port = arguments()
    litserve.LitServer(Api(), accelerator="cpu").run(host="127.0.0.1", port=port, log_level="warning",
                                                     generate_client_file=False)
