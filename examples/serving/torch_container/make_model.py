"""Trains a network on two rings of points and writes version 1 of a model: python3 make_model.py FOLDER"""

import math
import os
import shutil
import sys

import torch
from network import Network

here = os.path.dirname(os.path.abspath(__file__))
version = os.path.join(sys.argv[1], "1")
os.makedirs(version)
torch.manual_seed(1)
angle = torch.rand(512) * 2 * math.pi
ring = torch.arange(512) % 2
radius = 1 + ring + 0.1 * torch.randn(512)
x = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], 1)
network = Network()
optimizer = torch.optim.Adam(network.parameters(), 0.02)
for _ in range(200):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(x), ring).backward()
    optimizer.step()
torch.save(network.state_dict(), os.path.join(version, "network.pt"))
for name in ("network.py", "model.py", "container.pbtxt"):  # the server looks for the last
    shutil.copy(os.path.join(here, name), version)
