"""Asks three applications, tells them the true answers, and draws how often they were right: python3 play.py FOLDER PORT OUT.svg

FOLDER is that of make_models.py; a server with its models and with apps.pbtxt listens at PORT. A third of the way in, the best
model breaks; at two thirds it is repaired.
"""

import http.client
import json
import os
import sys

import numpy as np

APPS = ("fixed", "exp3", "exp4")
COLOURS = ("#888888", "#d9822b", "#2b6cb0")


def play(folder, port, count):
    """For each application, whether each answer was right."""
    data = np.load(os.path.join(folder, "queries.npz"))
    broken = os.path.join(folder, "all_features", "1", "broken")
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def post(path, body):
        connection.request("POST", path, json.dumps(body))
        reply = connection.getresponse()
        text = reply.read()
        if reply.status != 200:
            raise SystemExit("%s: %d %s" % (path, reply.status, text.decode()))
        return text

    right = {app: np.zeros(count) for app in APPS}
    for i in range(count):
        if i == count // 3:
            open(broken, "w").close()
        if i == 2 * count // 3:
            os.remove(broken)
        for app in APPS:
            answer = json.loads(post("/%s/predict" % app, {"input": data["x"][i].tolist()}))
            label = int(data["labels"][i])
            right[app][i] = answer["output"] == label
            post("/%s/update" % app, {"query_id": answer["query_id"], "label": label})
    return right


def draw(right, path):
    """Accuracy over the last twentieth of the queries, as a picture."""
    count = len(right[APPS[0]])
    window, width, height = max(1, count // 20), 720, 360

    def line(values):
        mean = np.convolve(values, np.ones(window) / window, "valid")
        step = max(1, len(mean) // 360)
        points = ("%.1f,%.1f" % (60 + (i + window) / count * (width - 80), height - 40 - mean[i] * (height - 60))
                  for i in range(0, len(mean), step))
        return " ".join(points)

    with open(path, "w") as out:
        out.write('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">\n' % (width, height))
        out.write('<rect width="100%" height="100%" fill="white"/>\n')
        for share in (0, 0.25, 0.5, 0.75, 1):
            y = height - 40 - share * (height - 60)
            out.write('<path d="M60 %.1f H%d" stroke="#dddddd"/><text x="20" y="%.1f">%d %%</text>\n' % (y, width - 20, y + 4, 100 * share))
        for third, text in ((1, "breaks"), (2, "repaired")):
            x = 60 + third / 3 * (width - 80)
            out.write('<path d="M%.1f 20 V%d" stroke="#bb4444" stroke-dasharray="4"/>' % (x, height - 40))
            out.write('<text x="%.1f" y="%d">best model %s</text>\n' % (x - 40, height - 22, text))
        for i, app in enumerate(APPS):
            out.write('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>\n' % (COLOURS[i], line(right[app])))
            out.write('<text x="%d" y="14" fill="%s">%s: %.1f %%</text>\n' % (70 + 160 * i, COLOURS[i], app, 100 * right[app].mean()))
        out.write("</svg>\n")


if __name__ == "__main__":
    results = play(sys.argv[1], int(sys.argv[2]), int(sys.argv[4]) if len(sys.argv) > 4 else 6000)
    draw(results, sys.argv[3])
    for name, answers in results.items():
        thirds = np.array_split(answers, 3)
        print("%-6s" % name, " ".join("%5.1f %%" % (100 * part.mean()) for part in thirds))
