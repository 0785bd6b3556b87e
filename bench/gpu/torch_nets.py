"""The cases of gpu_bench in PyTorch: torch_nets.py CASE [--dtype bfloat16] [--compile] [--seconds S]

Prints the figure, the peak of the GPU's memory in MiB, and in milliseconds the best step, the median one, CPU time per
step and the first step, with tabs between them. Input and labels are on the device; images are channels last. On a GPU, TF32 is on,
as it is in Runnel, and cuDNN chooses its algorithms by measuring. `--device cpu` measures on the CPU, and `--onnx FILE`
writes the network of an inference instead.
"""

import argparse
import statistics
import sys
import time

import torch_models as models
from torch_models import CLASSES

torch, F, nn = models.torch, None, None
if torch is not None:
    import torch.nn.functional as F
    from torch import nn

# Name: (network, examples, side, channels).
IMAGES = {"alexnet": (models.alexnet, 128, 224, 3), "overfeat": (models.overfeat, 128, 231, 3),
          "oxfordnet": (models.oxfordnet, 64, 224, 3), "googlenet": (models.googlenet, 128, 224, 3),
          "resnet50": (models.resnet50, 128, 224, 3), "resnet50_bias": (lambda: models.resnet50(False), 1, 224, 3),
          "mobilenet_v2": (models.mobilenet_v2, 1, 224, 3), "inception_v3": (models.inception_v3, 1, 299, 3),
          "vgg16": (models.vgg16, 1, 224, 3), "unet": (models.unet, 1, 256, 3), "lenet": (models.lenet, 64, 28, 1)}
TEXTS = {"bert": (12, 768, 12, 30522, 128, False), "gpt": (6, 512, 8, 32000, 256, True)}


class Run:
    """How a case is run: where, compiled or not, in bfloat16 or not, on how many examples."""

    def __init__(self, options):
        self.device, self.compiled, self.bfloat16 = options.device, options.compile, options.dtype == "bfloat16"
        self.batch, self.onnx = options.batch, options.onnx

    def examples(self, usual):
        return self.batch or usual

    def normal(self, *dims):
        return torch.randn(*dims, device=self.device)

    def below(self, limit, *dims):
        return torch.randint(0, limit, dims, device=self.device)

    def pictures(self, batch, side, channels):
        return self.normal(batch, channels, side, side).contiguous(memory_format=torch.channels_last)

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def cast(self):
        return torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.bfloat16)

    def train(self, net, loss_of, optimizer):
        run = torch.compile(net, dynamic=False) if self.compiled else net

        def step():
            optimizer.zero_grad(set_to_none=True)
            with self.cast():
                loss = loss_of(run)
            loss.backward()
            optimizer.step()

        return step

    def infer(self, net, x):
        net.eval()
        if self.onnx:
            export(net, x, self.onnx)
            sys.exit(0)
        mode = {"mode": "reduce-overhead"} if self.device == "cuda" else {}
        run = torch.compile(net, **mode) if self.compiled else net

        def step():
            with torch.inference_mode(), self.cast():
                run(x)

        return step


def export(net, x, path):
    """Writes the network by the exporter of traces. It needs the package onnx for operators of one's own only."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        from torch.onnx._internal.torchscript_exporter import onnx_proto_utils
        onnx_proto_utils._add_onnxscript_fn = lambda model, _: model
    torch.onnx.export(net, (x,), path, dynamo=False, input_names=["x"], output_names=["y"], opset_version=17)


def image_case(run, name):
    infer = "_infer" in name
    name, fixed = (name.split("_infer")[0], name.split("_infer_b")[1:])
    build, size, side, channels = IMAGES[name]
    net = build().to(run.device, memory_format=torch.channels_last)
    if infer:
        return run.infer(net, run.pictures(run.examples(int(fixed[0]) if fixed else 1), side, channels)), 0
    size = run.examples(size)
    x, y = run.pictures(size, side, channels), run.below(10 if name == "lenet" else CLASSES, size)
    momentum = 0.9 if name == "resnet50" else 0
    return run.train(net, lambda n: F.cross_entropy(n(x), y), torch.optim.SGD(net.parameters(), 0.01, momentum)), 0


def text_case(run, name):
    kind = name.split("_")[0]
    blocks, width, heads, words, time_steps, causal = TEXTS[kind]
    net = models.transformer(blocks, width, heads, words, time_steps, causal, name != "bert_encoder").to(run.device)
    infer = "infer" in name or name == "bert_encoder"
    ids = run.below(words, run.examples(1 if infer else {"bert": 32, "gpt": 16}[kind]), time_steps)
    if infer:
        return run.infer(net, ids), 0
    return run.train(net, lambda n: F.cross_entropy(n(ids).flatten(0, 1), ids.flatten()),
                     torch.optim.Adam(net.parameters(), 1e-4)), 0


def lstm_case(run, name):
    if name == "lstm_infer":
        batch, length, words = run.examples(1), 128, 10000
        return run.infer(models.lstm(words).to(run.device), run.below(words, length, batch)), batch * length / 1000
    net, batch, length = models.lstm().to(run.device), run.examples(128), 20
    ids, labels = run.below(40000, length, batch), run.below(40000, length * batch)
    sampled = 512 if name == "lstm_sampled" else 0
    step = run.train(net, lambda n: n(ids, labels, sampled), torch.optim.Adagrad(net.parameters(), 0.1))
    return step, batch * length / 1000


def dlrm_case(run, _):
    net, batch = models.dlrm().to(run.device), run.examples(4096)
    x, ids = run.normal(batch, 13), run.below(100_000, batch, 26)
    return run.train(net, lambda n: n(x, ids).square().mean(), torch.optim.SGD(net.parameters(), 0.1)), 0


def mlp_case(run, name):
    sizes = [784, 500, 500, 10] if name == "mlp_wide" else [784, 128, 10]
    net = nn.Sequential(*models.dense(*sizes)).to(run.device)
    if name != "mlp_infer":
        x, y = run.normal(run.examples(128), 784), run.below(10, run.examples(128))
        return run.train(net, lambda n: F.cross_entropy(n(x), y), torch.optim.SGD(net.parameters(), 0.01)), 0
    step = torch.compile(net, mode="reduce-overhead") if run.compiled else net
    host = torch.randn(1, 784)
    host = host.pin_memory() if run.device == "cuda" else host

    def feed_to_fetch():
        with torch.inference_mode():
            step(host.to(run.device, non_blocking=True)).cpu()

    return feed_to_fetch, 0


def machine_case(run, name):
    if name == "null_step":
        x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
        x.add_(1.0)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            x.add_(1.0)
        return graph.replay, 0
    if name == "matmul":
        x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16 if run.bfloat16 else torch.float32)
        y = torch.empty_like(x)
        return lambda: torch.matmul(x, x, out=y), 2e-12 * 8192**3
    if name in ("copy_in", "copy_beside", "copy_out"):
        host = torch.empty(16 << 20).pin_memory()
        card = torch.empty(16 << 20, device="cuda")
        to, source = (host, card) if name == "copy_out" else (card, host)
        return lambda: to.copy_(source, non_blocking=True), 64 / 1024
    # The bar of the elementwise chain is what the card copies.
    x = torch.randn(256 << 20, device="cuda")
    y = torch.empty_like(x)
    if not run.compiled:
        return lambda: y.copy_(x), x.numel() * 8 / 1e12

    def chain(x):
        for _ in range(4):
            x = torch.clamp(x * 0.5 + 0.25, min=-1)
        return x

    compiled = torch.compile(chain)
    return lambda: compiled(x), x.numel() * 8 / 1e12


def make(run, name):
    if name.split("_infer")[0] in IMAGES:
        return image_case(run, name)
    kind = name.split("_")[0]
    if kind in TEXTS:
        return text_case(run, name)
    return {"lstm": lstm_case, "dlrm": dlrm_case, "mlp": mlp_case}.get(kind, machine_case)(run, name)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--dtype", default="float", choices=["float", "bfloat16"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--batch", type=int, help="examples per step, instead of the case's")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--onnx", help="write the network to this file, and do not run it")
    return parser.parse_args()


def main():
    options = parse()
    if torch is None or (options.device == "cuda" and not torch.cuda.is_available()):
        raise SystemExit("no PyTorch with CUDA here")
    torch.manual_seed(0)
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    run = Run(options)
    step, work = make(run, options.case)
    start = time.perf_counter()
    step()
    run.wait()
    first, begin = time.perf_counter() - start, time.perf_counter()
    for _ in range(7):
        step()
        if options.device == "cpu" and time.perf_counter() - begin > options.seconds / 4:
            break
    run.wait()
    times, begin, cpu = [], time.perf_counter(), time.process_time()
    while len(times) < 3 or (len(times) < 4000 and time.perf_counter() - begin < options.seconds):
        start = time.perf_counter()
        step()
        run.wait()
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / len(times)
    median = statistics.median(times)
    peak = torch.cuda.max_memory_allocated() >> 20 if options.device == "cuda" else 0
    figures = [work / median if work else 1e3 * median, peak, 1e3 * min(times), 1e3 * median, 1e3 * cpu, 1e3 * first]
    print("%.4f\t%d\t%.5f\t%.5f\t%.5f\t%.3f" % tuple(figures))


if __name__ == "__main__":
    main()
