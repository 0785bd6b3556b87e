"""Charts as SVG text: panels side by side, each with axes and lines, points, bars or a grid of colours."""

import base64
import math
import struct
import zlib
from html import escape

COLOURS = ["#1f6fb4", "#d9622b", "#2f9a4d", "#8a55b5", "#c23b3b", "#7a6a53"]
_LEFT, _TOP, _BOTTOM, _RIGHT = 46, 30, 36, 12


def png(pixels):
    """Returns the bytes of a PNG file, given rows of (red, green, blue)."""
    height, width = len(pixels), len(pixels[0])
    rows = b"".join(b"\0" + bytes(int(v) for pixel in row for v in pixel) for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def diverging(value):
    """Returns a colour from blue (-1) through white (0) to orange (1)."""
    value = max(-1.0, min(1.0, float(value)))
    end = (217, 98, 43) if value > 0 else (31, 111, 180)
    return [255 + (c - 255) * abs(value) for c in end]


def ink(value):
    """Returns a colour from white (0) to black (1)."""
    return [255 * (1 - max(0.0, min(1.0, float(value))))] * 3


def blue(value):
    """Returns a colour from white (0) to blue (1)."""
    return diverging(-max(0.0, float(value)))


def _ticks(low, high, most):
    """Returns at most `most` round numbers between `low` and `high`."""
    step = 10 ** math.floor(math.log10((high - low) / most))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= most)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Panel:
    """A part of a picture. Plots take coordinates on its axes, which `axes` sets; by default both are 0 to 1."""

    def __init__(self, width, height, title=""):
        self.width, self.height, self.out = width, height, []
        self.x, self.y, self.log = (0.0, 1.0), (0.0, 1.0), False
        self.frame = (2, 24 if title else 2, width - 4, height - (28 if title else 4))
        if title:
            self.text(width / 2, 15, title, "middle", 12.5, "#222222", "600")

    def text(self, x, y, text, anchor="start", size=11, colour="#444444", weight="400"):
        self.out.append('<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%s" fill="%s" font-weight="%s">%s</text>' % (
            x, y, anchor, size, colour, weight, escape(str(text))))

    def axes(self, x, y, x_label="", log=False, names=None):
        """Draws axes from x[0] to x[1] and from y[0] to y[1]; with `log`, y is logarithmic. `names` is {x: label below it}."""
        self.x, self.y, self.log = x, y, log
        left, top = _LEFT, _TOP + 4
        self.frame = (left, top, self.width - left - _RIGHT, self.height - top - _BOTTOM)
        _, _, wide, high = self.frame
        if log:
            ticks = [10.0 ** i * m for i in range(-6, 7) for m in (1, 2, 5) if y[0] * 0.999 <= 10.0 ** i * m <= y[1] * 1.001]
            ticks = ticks if len(ticks) <= 7 else [t for t in ticks if math.log10(t) % 1 < 1e-6]
        else:
            ticks = _ticks(*y, 5)
        for tick in ticks:
            _, at = self.at(x[0], tick)
            self.out.append('<path d="M%d %.1fh%.1f" stroke="#e4e4e4"/>' % (left, at, wide))
            self.text(left - 5, at + 4, "%g" % round(tick, 9), "end", 10)
        for tick, text in (names or {t: f"{round(t, 9):,g}" for t in _ticks(*x, 6)}).items():
            self.text(self.at(tick, y[0])[0], top + high + 14, text, "middle", 10)
        self.out.append('<path d="M%d %dv%dh%d" stroke="#888888" fill="none"/>' % (left, top, high, wide))
        self.text(left + wide / 2, self.height - 5, x_label, "middle")
        return self

    def at(self, x, y):
        """Converts a point on the axes to a point in the panel."""
        left, top, wide, high = self.frame
        low, up = self.y
        share = (math.log(y / low) / math.log(up / low)) if self.log else (y - low) / (up - low)
        return left + (x - self.x[0]) / (self.x[1] - self.x[0]) * wide, top + (1 - share) * high

    def _clip(self, x, y):
        return self.at(x, max(self.y[0], min(self.y[1], float(y))))

    def line(self, xs, ys, colour=COLOURS[0], width=1.8, dash="", opacity=1):
        points = "L".join("%.1f %.1f" % self._clip(x, y) for x, y in zip(xs, ys))
        self.out.append('<path d="M%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round" stroke-dasharray="%s" opacity="%s"/>' % (
            points, colour, width, dash, opacity))

    def points(self, xs, ys, colour=COLOURS[0], radius=3.0, opacity=1.0, edge="none"):
        for x, y in zip(xs, ys):
            self.out.append('<circle cx="%.1f" cy="%.1f" r="%s" fill="%s" opacity="%s" stroke="%s"/>' % (
                *self._clip(x, y), radius, colour, opacity, edge))

    def bars(self, xs, ys, wide, colour=COLOURS[0], opacity=1.0):
        """Draws bars of width `wide`, each starting at its x."""
        for x, y in zip(xs, ys):
            (x1, y1), (x2, y2) = self.at(x, y), self.at(x + wide, self.y[0])
            self.out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" opacity="%s"/>' % (
                x1, y1, x2 - x1, max(0, y2 - y1), colour, opacity))

    def legend(self, *names, column=0, colours=COLOURS, row=0):
        """Draws names in their colours, from the upper right corner down."""
        left, top, wide, _ = self.frame
        for i, name in enumerate(names):
            self.text(left + wide - 4 - column, top + 13 + 15 * (i + row), name, "end", 11, colours[i], "600")

    def note(self, x, y, text, colour="#222222", anchor="middle", size=11):
        """Draws text at a point of the axes."""
        self.text(*self.at(x, y), text, anchor, size, colour)

    def image(self, rows, colour, x=0.0, y=0.0, width=None, height=None):
        """Draws a grid of numbers as colours, at a place in the panel's frame; by default over the whole frame."""
        left, top, wide, high = self.frame
        data = base64.b64encode(png([[colour(v) for v in row] for row in rows])).decode()
        wide, high = width or wide, height or high
        self.out.append('<image x="%.1f" y="%.1f" width="%.1f" height="%.1f" preserveAspectRatio="none" style="image-rendering:pixelated" '
                        'href="data:image/png;base64,%s"/>' % (left + x, top + y, wide, high, data))
        self.out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#cccccc"/>' % (left + x, top + y, wide, high))


def picture(*rows):
    """Returns the SVG text of rows of panels."""
    pad, y, out, width = 8, 8, [], 0
    for row in rows:
        x = pad
        for panel in row:
            out.append('<g transform="translate(%d %d)">%s</g>' % (x, y, "\n".join(panel.out)))
            x += panel.width + pad
        width = max(width, x)
        y += max(panel.height for panel in row) + pad
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif">\n'
            '<rect width="100%%" height="100%%" fill="#ffffff"/>\n%s\n</svg>\n' % (width, y, width, y, "\n".join(out)))
