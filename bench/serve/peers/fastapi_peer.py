import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from onnx_model import OnnxModel, arguments


class Rows(BaseModel):
    instances: list


port = arguments()
app, model = FastAPI(), OnnxModel()


@app.post("/predict")
async def predict(body: Rows):
    return {"predictions": model(body.instances)}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
