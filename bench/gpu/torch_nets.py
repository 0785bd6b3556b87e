"""The cases of gpu_bench in PyTorch: torch_nets.py CASE [--dtype bfloat16] [--compile] [--seconds S]

Prints the figure, its unit and the peak of the GPU's memory in MiB, with tabs between them. Input and labels are on the
card; TF32 is on, as it is in Runnel; images are channels last; cuDNN chooses its algorithms by measuring. Transformers
and nets are built layer by layer like those of examples/network_*.c.
"""

import argparse
import statistics
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    torch = None

CLASSES = 1000


def conv(i, o, k, stride=1, padding=0):
    return [nn.Conv2d(i, o, k, stride, padding), nn.ReLU(inplace=True)]


def dense(*sizes):
    layers = [nn.Flatten()]
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return layers[:-1]


def alexnet():
    return nn.Sequential(
        *conv(3, 64, 11, 4, 2), nn.MaxPool2d(3, 2), *conv(64, 192, 5, 1, 2), nn.MaxPool2d(3, 2), *conv(192, 384, 3, 1, 1),
        *conv(384, 256, 3, 1, 1), *conv(256, 256, 3, 1, 1), nn.MaxPool2d(3, 2), *dense(256 * 6 * 6, 4096, 4096, CLASSES))


def overfeat():
    return nn.Sequential(
        *conv(3, 96, 11, 4), nn.MaxPool2d(2, 2), *conv(96, 256, 5), nn.MaxPool2d(2, 2), *conv(256, 512, 3, 1, 1),
        *conv(512, 1024, 3, 1, 1), *conv(1024, 1024, 3, 1, 1), nn.MaxPool2d(2, 2), *dense(1024 * 6 * 6, 3072, 4096, CLASSES))


def oxfordnet():
    layers, depth = [], 3
    for width in [64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0]:
        layers += conv(depth, width, 3, 1, 1) if width else [nn.MaxPool2d(2, 2)]
        depth = width or depth
    return nn.Sequential(*layers, *dense(512 * 7 * 7, 4096, 4096, CLASSES))


def googlenet():
    class Inception(nn.Module):
        def __init__(self, depth, one, three_in, three, five_in, five, pooled):
            super().__init__()
            self.parts = nn.ModuleList([
                nn.Sequential(*conv(depth, one, 1)), nn.Sequential(*conv(depth, three_in, 1), *conv(three_in, three, 3, 1, 1)),
                nn.Sequential(*conv(depth, five_in, 1), *conv(five_in, five, 5, 1, 2)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), *conv(depth, pooled, 1))])

        def forward(self, x):
            return torch.cat([part(x) for part in self.parts], 1)

    layers = [*conv(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1), *conv(64, 64, 1), *conv(64, 192, 3, 1, 1), nn.MaxPool2d(3, 2, 1)]
    depth = 192
    for row in [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64),
                (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
                (256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)]:
        layers.append(Inception(depth, *row) if row else nn.MaxPool2d(3, 2, 1))
        depth = row[0] + row[2] + row[4] + row[5] if row else depth
    return nn.Sequential(*layers, nn.AvgPool2d(7), nn.Flatten(), nn.Linear(1024, CLASSES))


def resnet50():
    def conv_norm(i, o, k, stride=1):
        return [nn.Conv2d(i, o, k, stride, k // 2, bias=False), nn.BatchNorm2d(o)]

    class Bottleneck(nn.Module):
        def __init__(self, depth, width, stride):
            super().__init__()
            self.main = nn.Sequential(*conv_norm(depth, width, 1), nn.ReLU(inplace=True), *conv_norm(width, width, 3, stride),
                                      nn.ReLU(inplace=True), *conv_norm(width, 4 * width, 1))
            short = depth == 4 * width and stride == 1
            self.short = nn.Identity() if short else nn.Sequential(*conv_norm(depth, 4 * width, 1, stride))

        def forward(self, x):
            return F.relu(self.main(x) + self.short(x), inplace=True)

    layers, depth = [*conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate([3, 4, 6, 3]):
        for i in range(count):
            layers.append(Bottleneck(depth, 64 << stage, 2 if i == 0 and stage else 1))
            depth = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES))


def transformer(blocks, width, heads, words, time_steps, causal):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(time_steps, width))
            self.blocks = nn.Sequential(*[Block() for _ in range(blocks)])
            self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words)

        def forward(self, ids):
            return self.out(self.norm(self.blocks(self.words(ids) + self.places)))

    return Transformer()


def lstm(words=40000, units=512):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.cells, self.out = nn.Embedding(words, units), nn.LSTM(units, units, 2), nn.Linear(units, words)

        def forward(self, ids, labels, sampled):
            y = self.cells(self.words(ids))[0].reshape(-1, units)
            if not sampled:
                return F.cross_entropy(self.out(y), labels)
            other = torch.randint(0, words, (sampled,), device=y.device)
            others = y @ self.out.weight[other].t() + self.out.bias[other]
            true = (y * self.out.weight[labels]).sum(1, keepdim=True) + self.out.bias[labels][:, None]
            return F.cross_entropy(torch.cat([true, others], 1), torch.zeros_like(labels))

    return Model()


def dlrm():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList([nn.EmbeddingBag(100_000, 64, mode="sum") for _ in range(26)])
            self.low = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(27 * 64, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))

        def forward(self, x, ids):
            rows = [table(ids[:, i:i + 1]) for i, table in enumerate(self.tables)]
            return self.top(torch.cat([self.low(x)] + rows, 1))

    return Model()


IMAGES = {"alexnet": (alexnet, 128, 224), "overfeat": (overfeat, 128, 231), "oxfordnet": (oxfordnet, 64, 224),
          "googlenet": (googlenet, 128, 224), "resnet50": (resnet50, 128, 224)}
TEXTS = {"bert": (12, 768, 12, 30522, 128, False), "gpt": (6, 512, 8, 32000, 256, True)}


class Run:
    """How a case is run: compiled or not, in bfloat16 or not."""

    def __init__(self, options):
        self.compiled, self.bfloat16 = options.compile, options.dtype == "bfloat16"

    def cast(self):
        return torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.bfloat16)

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
        run = torch.compile(net, mode="reduce-overhead") if self.compiled else net

        def step():
            with torch.inference_mode(), self.cast():
                run(x)

        return step


def pictures(batch, side):
    return torch.randn(batch, 3, side, side, device="cuda").contiguous(memory_format=torch.channels_last)


def image_case(run, name):
    name, infer, batch = (name.split("_infer_b") + [""])[0], "_infer_b" in name, name.split("_infer_b")[-1]
    build, size, side = IMAGES[name]
    net = build().to("cuda", memory_format=torch.channels_last)
    if infer:
        return run.infer(net, pictures(int(batch), side)), 0
    x, y = pictures(size, side), torch.randint(0, CLASSES, (size,), device="cuda")
    momentum = 0.9 if name == "resnet50" else 0
    return run.train(net, lambda n: F.cross_entropy(n(x), y), torch.optim.SGD(net.parameters(), 0.01, momentum)), 0


def text_case(run, name):
    kind = name.split("_")[0]
    blocks, width, heads, words, time_steps, causal = TEXTS[kind]
    net = transformer(blocks, width, heads, words, time_steps, causal).cuda()
    batch = 1 if "infer" in name else {"bert": 32, "gpt": 16}[kind]
    ids = torch.randint(0, words, (batch, time_steps), device="cuda")
    if "infer" in name:
        return run.infer(net, ids), 0
    return run.train(net, lambda n: F.cross_entropy(n(ids).flatten(0, 1), ids.flatten()),
                     torch.optim.Adam(net.parameters(), 1e-4)), 0


def lstm_case(run, name):
    net, batch, length = lstm().cuda(), 128, 20
    ids = torch.randint(0, 40000, (length, batch), device="cuda")
    labels = torch.randint(0, 40000, (length * batch,), device="cuda")
    sampled = 512 if name == "lstm_sampled" else 0
    step = run.train(net, lambda n: n(ids, labels, sampled), torch.optim.Adagrad(net.parameters(), 0.1))
    return step, batch * length / 1000


def dlrm_case(run, _):
    net = dlrm().cuda()
    x, ids = torch.randn(4096, 13, device="cuda"), torch.randint(0, 100_000, (4096, 26), device="cuda")
    return run.train(net, lambda n: n(x, ids).square().mean(), torch.optim.SGD(net.parameters(), 0.1)), 0


def mlp_case(run, name):
    net = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    if name == "mlp_train":
        x, y = torch.randn(128, 784, device="cuda"), torch.randint(0, 10, (128,), device="cuda")
        return run.train(net, lambda n: F.cross_entropy(n(x), y), torch.optim.SGD(net.parameters(), 0.01)), 0
    step = torch.compile(net, mode="reduce-overhead") if run.compiled else net
    host = torch.randn(1, 784).pin_memory()

    def feed_to_fetch():
        with torch.inference_mode():
            step(host.to("cuda", non_blocking=True)).cpu()

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
    kind = name.split("_")[0]
    if kind in IMAGES:
        return image_case(run, name)
    if kind in TEXTS:
        return text_case(run, name)
    return {"lstm": lstm_case, "dlrm": dlrm_case, "mlp": mlp_case}.get(kind, machine_case)(run, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--dtype", default="float", choices=["float", "bfloat16"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    if torch is None or not torch.cuda.is_available():
        raise SystemExit("no PyTorch with CUDA here")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    step, work = make(Run(options), options.case)
    for _ in range(8):
        step()
    torch.cuda.synchronize()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or (len(times) < 4000 and time.perf_counter() - begin < options.seconds):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    median = statistics.median(times)
    print("%.4f\t%d" % (work / median if work else 1e3 * median, torch.cuda.max_memory_allocated() >> 20))


if __name__ == "__main__":
    main()
