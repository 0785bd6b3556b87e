import os

import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

from onnx_model import MODEL, OnnxModel, arguments

port = arguments()


@serve.deployment
class Deployed:
    def __init__(self):
        self.model = OnnxModel()

    async def __call__(self, request: Request):
        return JSONResponse({"predictions": self.model((await request.json())["instances"])})


here = os.path.dirname(os.path.abspath(__file__))
ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1",
         runtime_env={"env_vars": {MODEL: os.environ[MODEL], "PYTHONPATH": here}})
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(Deployed.bind(), route_prefix="/predict", blocking=True)
