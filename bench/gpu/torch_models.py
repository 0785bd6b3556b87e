"""Networks in PyTorch, layer by layer like those of examples/network_*.c, for torch_nets.py."""

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


def resnet50(norms=True):
    def conv_norm(i, o, k, stride=1):
        if not norms:
            return [nn.Conv2d(i, o, k, stride, k // 2)]
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


def lenet():
    return nn.Sequential(*conv(1, 32, 5, 1, 2), nn.MaxPool2d(2, 2), *conv(32, 64, 5, 1, 2), nn.MaxPool2d(2, 2),
                         *dense(7 * 7 * 64, 512, 10))


def vgg16():
    layers, depth = [], 3
    for width, count in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(count):
            layers += conv(depth, width, 3, 1, 1)
            depth = width
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, *dense(512 * 7 * 7, 4096, 4096, CLASSES))


def unet():
    def twice(i, o):
        return nn.Sequential(*conv(i, o, 3, 1, 1), *conv(o, o, 3, 1, 1))

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([twice(i, o) for i, o in [(3, 64), (64, 128), (128, 256), (256, 512)]])
            self.middle, self.pool, self.out = twice(512, 1024), nn.MaxPool2d(2, 2), nn.Conv2d(64, 2, 1)
            self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, 2) for w in (512, 256, 128, 64)])
            self.after = nn.ModuleList([twice(2 * w, w) for w in (512, 256, 128, 64)])

        def forward(self, x):
            skipped = []
            for layer in self.down:
                skipped.append(layer(x))
                x = self.pool(skipped[-1])
            x = self.middle(x)
            for up, after in zip(self.up, self.after):
                x = after(torch.cat([skipped.pop(), up(x)], 1))
            return self.out(x)

    return Unet()


def mobilenet_v2():
    def conv_norm(i, o, k, stride=1, groups=1):
        return [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]

    class Inverted(nn.Module):
        def __init__(self, i, o, widening, stride):
            super().__init__()
            wide, self.short = i * widening, stride == 1 and i == o
            first = [*conv_norm(i, wide, 1), nn.ReLU6(inplace=True)] if widening > 1 else []
            self.main = nn.Sequential(*first, *conv_norm(wide, wide, 3, stride, wide), nn.ReLU6(inplace=True),
                                      *conv_norm(wide, o, 1))

        def forward(self, x):
            return x + self.main(x) if self.short else self.main(x)

    layers, depth = [*conv_norm(3, 32, 3, 2), nn.ReLU6(inplace=True)], 32
    for widening, width, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(count):
            layers.append(Inverted(depth, width, widening, stride if i == 0 else 1))
            depth = width
    return nn.Sequential(*layers, *conv_norm(320, 1280, 1), nn.ReLU6(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(1280, CLASSES))


def inception_v3():
    def part(i, o, k, stride=1, padding=None):
        size = k if isinstance(k, tuple) else (k, k)
        around = tuple(s // 2 for s in size) if padding is None and stride == 1 else 0
        return nn.Sequential(nn.Conv2d(i, o, size, stride, around, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    class Split(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.a, self.b = part(i, 384, (1, 3)), part(i, 384, (3, 1))

        def forward(self, x):
            return torch.cat([self.a(x), self.b(x)], 1)

    class Mix(nn.Module):
        def __init__(self, *branches):
            super().__init__()
            self.branches = nn.ModuleList([nn.Sequential(*branch) for branch in branches])

        def forward(self, x):
            return torch.cat([branch(x) for branch in self.branches], 1)

    def pool(i, o):
        return [nn.AvgPool2d(3, 1, 1, count_include_pad=False), part(i, o, 1)]

    layers = [part(3, 32, 3, 2), part(32, 32, 3, 1, 0), part(32, 64, 3), nn.MaxPool2d(3, 2), part(64, 80, 1),
              part(80, 192, 3, 1, 0), nn.MaxPool2d(3, 2)]
    depth = 192
    for pooled in (32, 64, 64):
        layers.append(Mix([part(depth, 64, 1)], [part(depth, 48, 1), part(48, 64, 5)],
                          [part(depth, 64, 1), part(64, 96, 3), part(96, 96, 3)], pool(depth, pooled)))
        depth = 224 + pooled
    layers.append(Mix([part(depth, 384, 3, 2)], [part(depth, 64, 1), part(64, 96, 3), part(96, 96, 3, 2)], [nn.MaxPool2d(3, 2)]))
    for c in (128, 160, 160, 192):
        layers.append(Mix([part(768, 192, 1)], [part(768, c, 1), part(c, c, (1, 7)), part(c, 192, (7, 1))],
                          [part(768, c, 1), part(c, c, (7, 1)), part(c, c, (1, 7)), part(c, c, (7, 1)), part(c, 192, (1, 7))],
                          pool(768, 192)))
    layers.append(Mix([part(768, 192, 1), part(192, 320, 3, 2)],
                      [part(768, 192, 1), part(192, 192, (1, 7)), part(192, 192, (7, 1)), part(192, 192, 3, 2)],
                      [nn.MaxPool2d(3, 2)]))
    for depth in (1280, 2048):
        layers.append(Mix([part(depth, 320, 1)], [part(depth, 384, 1), Split(384)],
                          [part(depth, 448, 1), part(448, 384, 3), Split(384)], pool(depth, 192)))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES))


def transformer(blocks, width, heads, words, time_steps, causal, head=True):
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
            self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words) if head else nn.Identity()

        def forward(self, ids):
            return self.out(self.norm(self.blocks(self.words(ids) + self.places)))

    return Transformer()


def lstm(words=40000, units=512):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.cells, self.out = nn.Embedding(words, units), nn.LSTM(units, units, 2), nn.Linear(units, words)

        def forward(self, ids, labels=None, sampled=0):
            y = self.cells(self.words(ids))[0].reshape(-1, units)
            if labels is None:
                return self.out(y)
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
