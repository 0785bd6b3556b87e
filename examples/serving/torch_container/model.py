"""A network of PyTorch."""

import torch
from network import Network

from runnel.serving import signature

torch.set_num_threads(1)
network = Network()
network.load_state_dict(torch.load("network.pt", weights_only=True))
network.eval()


@signature(inputs={"x": ("float32", [None, 2])}, outputs={"logits": ("float32", [None, 2])}, pure=True)
def predict(inputs):
    with torch.inference_mode():
        return {"logits": network(torch.from_numpy(inputs["x"])).numpy()}
