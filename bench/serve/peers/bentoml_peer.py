import os
import sys

import bentoml

from onnx_model import OnnxModel, arguments


@bentoml.service(workers=1)
class Service:
    def __init__(self):
        self.model = OnnxModel()

    @bentoml.api(route="/predict")
    def predict(self, instances: list) -> dict:
        return {"predictions": self.model(instances)}


if __name__ == "__main__":
    port = arguments()
    os.environ["BENTOML_DO_NOT_TRACK"] = "True"
    folder = os.path.dirname(os.path.abspath(__file__))
    os.execv(sys.executable, [sys.executable, "-m", "bentoml", "serve", "bentoml_peer:Service", "--working-dir", folder,
                              "--host", "127.0.0.1", "--port", str(port)])
