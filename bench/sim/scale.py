"""Training at scale, in simulation: how gradients per second depend on the number of workers, and on faults.

scale.py RUNNEL [--sizes N,N,...] [--results FILE] [--svg FILE]

Runs `runnel sim` for each size with a tenth as many parameter servers, in ten racks, and keeps the results in FILE, so
that sizes can be run one by one (1,000 workers take minutes each); then draws all results that are there.
"""

import argparse
import os
import subprocess
import time

DOWN = 20
# Name, options, and how many workers per hundred are backups.
FORMS = {
    "asynchronous": (["--mode", "async"], 0),
    "synchronous": (["--mode", "sync"], 0),
    "synchronous, 10 % backups": (["--mode", "sync"], 10),
}
RINGS = "all-reduce in racks"
FAULTS = {"rack": "a rack loses power", "rolling": "a rolling upgrade"}
COLOURS = {"asynchronous": "#1b6ca8", "synchronous": "#b8442c", "synchronous, 10 % backups": "#d98e04", RINGS: "#2f855a"}


def run(command):
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("%s: %s" % (" ".join(command), done.stderr))
    print("%6.1f s: %s" % (time.monotonic() - start, " ".join(command[1:])), flush=True)
    return [line.split() for line in done.stdout.splitlines() if line]


def measure(runnel, size):
    """Rows of results: form, fault, phase, workers, gradients per second, longest pause."""
    for form, (options, backups) in FORMS.items():
        spare = size * backups // 100
        for fault in FAULTS:
            if fault == "rolling" and form == "synchronous":
                continue  # it stands still all the time
            command = [runnel, "sim", *options, "--workers", str(size - spare), "--ps", str(max(1, size // 10)), "--racks", "10"]
            command += ["--fault", fault, "--down", str(DOWN), "--steps", "3"] + (["--backups", str(spare)] if spare else [])
            for fields in run(command):
                if fields[0] in ("before", "during", "after"):
                    yield form, fault, fields[0], size, float(fields[2]), float(fields[3])
    fields = run([runnel, "sim", "--mode", "racks", "--workers", str(size), "--racks", "10", "--steps", "10"])[-1]
    yield RINGS, "rack", "before", size, float(fields[-1]), 0.0


def read(path):
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return {(form, fault, phase, int(size)): (float(rate), float(pause)) for form, fault, phase, size, rate, pause in rows}


class Picture:
    """An SVG of panels side by side."""

    def __init__(self, panels):
        self.width, self.height = 90 + panels * 330, 330
        self.parts = []

    def text(self, x, y, text, **more):
        style = "".join(' %s="%s"' % (name.replace("_", "-"), value) for name, value in more.items())
        self.parts.append('<text x="%.1f" y="%.1f"%s>%s</text>' % (x, y, style, text.replace("&", "&amp;")))

    def line(self, points, colour, width=2, dash=""):
        places = " ".join("%.1f,%.1f" % point for point in points)
        more = ' stroke-dasharray="%s"' % dash if dash else ""
        self.parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="%s"%s/>' % (places, colour, width, more))
        if width > 1:
            self.parts += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, colour) for x, y in points]

    def write(self, path):
        head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">'
        with open(path, "w") as file:
            file.write(head % (self.width, self.height) + "\n")
            file.write('<rect width="100%" height="100%" fill="white"/>\n')
            file.write("\n".join(self.parts) + "\n</svg>\n")


def draw(results, path):
    sizes = sorted({size for _, _, _, size in results})
    picture = Picture(3)

    def place(panel, size, share):
        return 60 + panel * 330 + (sizes.index(size) * 260 / max(1, len(sizes) - 1)), 250 - share * 190

    titles = ["without a fault", *("while " + text for text in FAULTS.values())]
    for panel, title in enumerate(titles):
        picture.text(60 + panel * 330, 30, title.replace("while a rolling upgrade", "during a rolling upgrade"), font_weight="bold")
        for share in (0, 0.25, 0.5, 0.75, 1):
            left, y = place(panel, sizes[0], share)
            picture.line([(left, y), (left + 260, y)], "#ddd", 1)
            picture.text(left - 8, y + 4, "%d %%" % (share * 100), text_anchor="end", fill="#555")
        for size in sizes:
            picture.text(place(panel, size, 0)[0], 268, f"{size:,}", text_anchor="middle", fill="#555")
    # A worker alone applies one gradient per 2 s of computing.
    for form, colour in COLOURS.items():
        calm = {key[3]: rate for key, (rate, _) in results.items() if key[0] == form and key[2] == "before"}
        calm = dict(sorted(calm.items()))
        picture.line([place(0, size, min(1, rate * 2 / size)) for size, rate in calm.items()], colour)
        for panel, fault in enumerate(FAULTS, 1):
            rows = {size: results.get((form, fault, "during", size)) for size in sizes}
            before = {size: results.get((form, fault, "before", size)) for size in sizes}
            points = [place(panel, size, min(1, rows[size][0] / before[size][0])) for size in sizes if rows[size]]
            if points:
                picture.line(points, colour)
    picture.text(60, 290, "workers; of the gradients they could compute", fill="#555")
    picture.text(390, 290, "of the rate before the fault", fill="#555")
    x = 60
    for form, colour in COLOURS.items():
        picture.line([(x, 313), (x + 20, 313)], colour)
        picture.text(x + 26, 317, form)
        x += 60 + 7 * len(form)
    picture.write(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runnel")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--results", default="build/bench/scale.tsv")
    parser.add_argument("--svg")
    options = parser.parse_args()
    os.makedirs(os.path.dirname(options.results) or ".", exist_ok=True)
    for size in filter(None, options.sizes.split(",")):
        for row in measure(options.runnel, int(size)):
            with open(options.results, "a") as file:
                file.write("\t".join(str(field) for field in row) + "\n")
    results = read(options.results)
    for key, (rate, pause) in sorted(results.items()):
        print("%-28s %-8s %-7s %5d workers: %7.1f gradients/s, longest pause %5.1f s" % (*key, rate, pause))
    if options.svg:
        draw(results, options.svg)


if __name__ == "__main__":
    main()
