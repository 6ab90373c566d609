"""The programs that draw the problems of ``figures``, with slots for their numbers. Each prints what it is read by."""

AREA = """\
import matplotlib.pyplot as plt

corners = {corners}
around = corners + corners[:1]
plt.figure(figsize=(5, 5))
plt.plot([x for x, y in around], [y for x, y in around], marker="o")
plt.fill([x for x, y in corners], [y for x, y in corners], alpha=0.2)
for name, (x, y) in zip("ABCD", corners):
    plt.annotate(f"{{name}}({{x}}, {{y}})", (x, y))
plt.gca().set_aspect("equal")
plt.grid(True)
plt.show()
doubled = sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in zip(around, around[1:]))
print("area:", abs(doubled) / 2)"""

CROSSINGS = """\
import matplotlib.pyplot as plt
import numpy as np

a, b, c = {a}, {b}, {c}
slope, offset = {slope}, {offset}
middle = (slope - b) / (2 * a)
x = np.linspace(middle - 5, middle + 5, 400)
plt.figure(figsize=(5, 4))
plt.plot(x, a * x**2 + b * x + c, label="parabola")
plt.plot(x, slope * x + offset, label="line")
discriminant = (b - slope) ** 2 - 4 * a * (c - offset)
meetings = []
if discriminant >= 0:
    meetings = sorted({{middle - discriminant**0.5 / 2, middle + discriminant**0.5 / 2}})
for place in meetings:
    plt.plot(place, slope * place + offset, "ko")
plt.grid(True)
plt.legend()
plt.show()
print("discriminant:", discriminant)
print("points:", len(meetings))"""

CIRCLES = """\
import matplotlib.pyplot as plt

first, second = {first}, {second}
x, y = {x}, {y}
figure, axes = plt.subplots(figsize=(5, 5))
for centre, radius, colour in (((0, 0), first, "tab:blue"), ((x, y), second, "tab:red")):
    axes.add_patch(plt.Circle(centre, radius, fill=False, color=colour, linewidth=2))
    axes.plot(*centre, "+", color=colour)
axes.plot([0, x], [0, y], "k:")
axes.set_aspect("equal")
axes.autoscale_view()
axes.grid(True)
plt.show()
between = x**2 + y**2
print("squared distance of the centres:", between)
print("squared sum and difference of the radii:", (first + second) ** 2, (first - second) ** 2)
if (first - second) ** 2 < between < (first + second) ** 2:
    count = 2
else:
    count = int(between in ((first + second) ** 2, (first - second) ** 2))
print("common points:", count)"""

LATTICE_TRIANGLE = """\
import matplotlib.pyplot as plt

corners = {corners}
around = corners + corners[:1]


def side(p, q, r):
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])


inside = []
for x in range(0, 11):
    for y in range(0, 11):
        signs = [side(p, q, (x, y)) for p, q in zip(around, around[1:])]
        if all(sign > 0 for sign in signs) or all(sign < 0 for sign in signs):
            inside.append((x, y))
plt.figure(figsize=(5, 5))
plt.plot([x for x, y in around], [y for x, y in around], "k-")
plt.plot([x for x, y in inside], [y for x, y in inside], "ro")
plt.xticks(range(0, 11))
plt.yticks(range(0, 11))
plt.grid(True)
plt.gca().set_aspect("equal")
plt.show()
print("points inside:", len(inside))"""

LATTICE_CIRCLE = """\
import matplotlib.pyplot as plt

square = {square}
radius = square**0.5
reach = int(radius) + 1
points = [(x, y) for x in range(-reach, reach + 1) for y in range(-reach, reach + 1) if x * x + y * y <= square]
figure, axes = plt.subplots(figsize=(5, 5))
axes.add_patch(plt.Circle((0, 0), radius, fill=False, linewidth=2))
axes.scatter([x for x, y in points], [y for x, y in points], color="tab:red", zorder=3)
axes.set_xticks(range(-reach, reach + 1))
axes.set_yticks(range(-reach, reach + 1))
axes.grid(True)
axes.set_aspect("equal")
plt.show()
for x in range(-reach, reach + 1):
    print(f"x = {{x}}: {{sum(point[0] == x for point in points)}}")
print("in all:", len(points))"""

INTERVALS = """\
import matplotlib.pyplot as plt

intervals = {intervals}
plt.figure(figsize=(6, 3))
for row, (start, end) in enumerate(intervals, 1):
    plt.plot([start, end], [row, row], marker="|", linewidth=4)
covered = [unit for unit in range(0, 30) if any(start <= unit < end for start, end in intervals)]
for unit in covered:
    plt.plot([unit, unit + 1], [0, 0], color="black", linewidth=6)
plt.xticks(range(0, 26))
plt.yticks(range(0, len(intervals) + 1), ["all"] + [f"[{{start}}, {{end}}]" for start, end in intervals])
plt.grid(True, axis="x")
plt.show()
print("covered length:", len(covered))"""

MIRROR = """\
import matplotlib.pyplot as plt

x, y, c = {x}, {y}, {c}
# the foot of the perpendicular lies halfway to the image
foot_x = (x + y - c) / 2
foot_y = foot_x + c
image = (round(2 * foot_x - x), round(2 * foot_y - y))
low, high = min(x, image[0], foot_x) - 3, max(x, image[0], foot_x) + 3
plt.figure(figsize=(5, 5))
plt.plot([low, high], [low + c, high + c], "k-", label="mirror")
plt.plot([x, image[0]], [y, image[1]], "o:", label="P and its image")
plt.plot(foot_x, foot_y, "rx")
plt.gca().set_aspect("equal")
plt.grid(True)
plt.legend()
plt.show()
print("image:", image)"""

DISTANCE = """\
import matplotlib.pyplot as plt
from sympy import Rational, sqrt

a, b, c = {a}, {b}, {c}
x, y = {x}, {y}
share = Rational(a * x + b * y - c, a**2 + b**2)
foot = (x - a * share, y - b * share)
left, right = min(x, float(foot[0])) - 3, max(x, float(foot[0])) + 3
plt.figure(figsize=(5, 5))
plt.plot([left, right], [(c - a * left) / b, (c - a * right) / b], "k-", label="line")
plt.plot([x, float(foot[0])], [y, float(foot[1])], "ro--", label="distance")
plt.gca().set_aspect("equal")
plt.grid(True)
plt.legend()
plt.show()
print("foot:", foot)
print("distance:", sqrt((x - foot[0]) ** 2 + (y - foot[1]) ** 2))"""
