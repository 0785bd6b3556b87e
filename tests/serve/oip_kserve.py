#!/usr/bin/env python3
"""KServe's client on a running server, for oip_test.py: oip_kserve.py PORT REST_PORT. Exits with 77 where it is not installed."""
import asyncio
import sys

try:
    import numpy as np
    from kserve import InferInput, InferRequest, InferenceGRPCClient, InferenceRESTClient
    from kserve.inference_client import RESTConfig
except ImportError as error:
    print(f"kserve is left out: {error}")
    sys.exit(77)

A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.ones((1, 16), dtype=np.int32)


def request(has_data):
    inputs = []
    for name, x in (("INPUT0", A), ("INPUT1", B)):
        inputs.append(InferInput(name=name, shape=[1, 16], datatype="INT32", data=x.flatten().tolist() if has_data else None))
        if not has_data:
            inputs[-1].set_data_from_numpy(x, binary_data=True)
    return InferRequest(model_name="simple", infer_inputs=inputs)


async def main():
    port, rest_port = sys.argv[1:3]
    rest = InferenceRESTClient(RESTConfig(protocol="v2"))
    url = f"http://127.0.0.1:{rest_port}"
    assert await rest.is_server_ready(url) and await rest.is_server_live(url) and await rest.is_model_ready(url, "simple")
    rpc = InferenceGRPCClient(f"127.0.0.1:{port}")
    assert await rpc.is_server_ready() and await rpc.is_model_ready("simple")
    for has_data in (True, False):
        reply = await rest.infer(url, request(has_data), model_name="simple")
        assert (reply.outputs[0].as_numpy() == A + B).all(), reply
        reply = await rpc.infer(request(has_data))
        assert (reply.outputs[1].as_numpy() == A - B).all(), reply


asyncio.run(main())
