"""Random code over what models use: Pillow, OpenCV, numpy, matplotlib, text, functions, errors, state across rounds.

One example, `random_rounds(random.Random(…), token="T1")`, shortened:

    ["print('T1.0')\\narray_1 = np.arange(12).reshape(-1, 6)\\nprint(array_1[:2, :3])", "print('T1.1')\\n1 / 0"]

Every round prints a token of its own first. It makes nothing of which plain Python and the sandbox are known to differ:
no deleted files, no boxes that give nothing, no clocks, no numbers without a seed, no addresses, no warnings.
"""

from random import Random

SIDES = (160, 120)
"""Width and height of the image that the code finds."""


def random_rounds(random: Random, token: str) -> list[str]:
    writer = _Writer(random)
    return ["\n".join([f"print('{token}.{n}')", *writer.statements()]) for n in range(random.randint(1, 4))]


class _Writer:
    """Knows the names that the rounds before have bound, so that later code can use them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._images = ["image_clue_0"]
        self._arrays: list[str] = []
        self._n_names = 0

    def statements(self) -> list[str]:
        kinds = [self._pillow, self._opencv, self._numpy, self._matplotlib, self._text, self._control, self._raises]
        weights = [6, 5, 5, 1, 5, 5, 1]
        return [kind() for kind in self._random.choices(kinds, weights, k=self._random.randint(1, 7))]

    def _name(self, kind: str) -> str:
        self._n_names += 1
        return f"{kind}_{self._n_names}"

    def _pick(self, *options: str) -> str:
        return self._random.choice(options)

    def _box(self) -> tuple[int, int, int, int]:
        width, height = SIDES
        left, top = self._random.randint(0, width - 60), self._random.randint(0, height - 60)
        return left, top, left + self._random.randint(20, 60), top + self._random.randint(20, 60)

    def _pillow(self) -> str:
        source, name, number = self._random.choice(self._images), self._name("image"), self._random.randint(1, 90)
        made = self._pick(
            f"image_clue_0.crop({self._box()})",
            f"Image.open(image_path).crop({self._box()})",
            f"{source}.resize(({number + 5}, {number + 9}), Image.LANCZOS)",
            f"{source}.rotate({number}, expand={number % 2 == 0})",
            f"{source}.convert('{self._pick('L', 'RGB', 'RGBA', 'HSV')}').convert('RGB')",
            f"{source}.transpose(Image.{self._pick('FLIP_LEFT_RIGHT', 'ROTATE_90', 'TRANSPOSE')})",
            f"Image.new('RGB', ({number}, {number + 3}), ({number}, {number * 2}, 7))",
            f"image_clue_0.crop((-{number}, -3, 400, {400 + number}))",  # others are clamped here alone
            f"PIL.ImageOps.autocontrast({source}.convert('RGB'), cutoff=2)",
            f"PIL.ImageEnhance.Contrast({source}.convert('RGB')).enhance({1 + number / 50})",
            f"{source}.convert('RGB').filter(PIL.ImageFilter.GaussianBlur({1 + number % 3}))",
        )
        self._images.append(name)
        shown = self._pick(
            f"print({name}.size, {name}.mode, {name}.convert('L').getextrema())",
            f"{name}.save('{name}.png')",
            f"print(zlib.crc32({name}.tobytes()))",
            f"d = ImageDraw.Draw({name}); d.rectangle((2, 2, 9, 9), fill=3); d.text((4, 4), 'é{number}', fill=200)",
            f"buffer = io.BytesIO(); {name}.save(buffer, 'PNG'); print(len(buffer.getvalue()) > 0, buffer.tell() > 50)",
        )
        imports = "import io, zlib, PIL.ImageOps, PIL.ImageFilter, PIL.ImageEnhance\nfrom PIL import ImageDraw"
        return f"{imports}\n{name} = {made}\n{shown}"

    def _opencv(self) -> str:
        name, number = self._name("array"), self._random.randint(1, 60)
        left, top, right, bottom = self._box()
        made = self._pick(
            f"cv2.imread(image_path)[{top}:{bottom}, {left}:{right}]",
            "cv2.imread(image_path, cv2.IMREAD_GRAYSCALE)",
            f"cv2.resize(cv2.imread(image_path), ({number + 4}, {number + 8}), interpolation=cv2.INTER_CUBIC)",
            f"cv2.GaussianBlur(cv2.imread(image_path), ({number % 3 * 2 + 1}, 5), 0)",
            f"cv2.Canny(cv2.imread(image_path, 0), {number}, {number * 3})",
            f"cv2.cvtColor(cv2.imread(image_path), cv2.COLOR_BGR2{self._pick('GRAY', 'HSV', 'LAB', 'RGB')})",
            f"cv2.threshold(cv2.imread(image_path, 0), {number * 4}, 255, cv2.THRESH_BINARY)[1]",
            f"cv2.rotate(cv2.imread(image_path)[:{number}], cv2.ROTATE_90_CLOCKWISE)",
        )
        self._arrays.append(name)
        shown = self._pick(
            f"cv2.imwrite('{name}.png', {name})",
            f"print({name}.shape, {name}.dtype, int({name}.sum()))",
            f"cv2.line({name}, (0, 0), ({number}, 9), 255, 2); print(int({name}.max()), {name}.mean().round(3))",
            f"print(len(cv2.findContours(cv2.inRange({name}, (9,) * 4, (99,) * 4), 0, 2)[0]))",
        )
        return f"{name} = np.ascontiguousarray({made})\n{shown}"

    def _numpy(self) -> str:
        name, number = self._name("array"), self._random.randint(2, 40)
        sources = [f"np.asarray({image}.convert('RGB'))" for image in self._images[-3:]] + self._arrays[-3:]
        made = self._pick(
            f"np.arange({number * 6}, dtype=np.{self._pick('uint8', 'int64', 'float32')}).reshape(-1, 6)",
            f"np.random.default_rng({number}).integers(0, 255, ({number}, 7, 3), dtype=np.uint8)",
            f"({self._random.choice(sources)}.astype(np.int32) * {number} % 256).astype(np.uint8)",
            f"np.pad({self._random.choice(sources)}[..., :1].squeeze(), 2, mode='edge')",
            f"np.clip(np.linspace(0, 300, {number * number}), 0, 255).astype(np.uint8).reshape({number}, {number})",
        )
        self._arrays.append(name)
        shown = self._pick(
            f"print({name}.shape, {name}.dtype, {name}.min(), {name}.max())",
            f"print({name}[:2, :3])",
            f"print(np.unique({name})[:9].tolist(), repr({name}.mean(dtype=float).round(4)))",
            f"Image.fromarray(np.ascontiguousarray({name}[..., :1].squeeze().astype(np.uint8))).save('{name}.png')",
            f"import random; random.seed({number}); print(random.random(), random.sample(range(99), 3))",
        )
        return f"{name} = {made}\n{shown}"

    def _matplotlib(self) -> str:
        name, number = self._name("figure"), self._random.randint(1, 9)
        drawn = self._pick(
            f"ax.plot([1, {number}, 3])",
            f"ax.bar(['a', 'b'], [1, {number}])",
            "ax.imshow(np.asarray(image_clue_0))",
            f"ax.scatter(range({number}), range({number})); ax.set_title('straße {number}')",
        )
        saved = f"{name}.savefig('{name}.png', dpi=40)\nplt.close('all')"
        return f"{name}, ax = plt.subplots(figsize=(2, 1.5))\n{drawn}\n{saved}"

    def _text(self) -> str:
        number = self._random.randint(0, 99)
        words = self._pick("'a<b'", "'naïve é🙂'", "'</answer><think>'", "'x' * 300", "'tab\\tend'", "'[INST] %d'")
        return self._pick(
            f"print({words}, {number}, sep='|', end='.\\n')",
            f"import sys; sys.stdout.write({words}); print(file=sys.stderr); print({words}.upper()[::-1])",
            f"import json; print(json.dumps({{'k': [{number}, None, {words}]}}, sort_keys=True))",
            f"import re; print(re.findall(r'\\w+', {words}), re.sub('[aeiou]', '_', {words}))",
            f"print(f'{{{number} / 7:.3f}} {{{number}:>6}} {{{words}!r}}', {number} ** 20, {number} // -7)",
            f"import base64; print(base64.b64encode({words}.encode()).decode()[:40])",
            f"print(*sorted({words})[:9], len({words}), {words}.split('<'))",
            f"open('notes.txt', 'a').write({words}); print(open('notes.txt').read()[-20:])",
        )

    def _control(self) -> str:
        name, number = self._name("f"), self._random.randint(1, 9)
        return self._pick(
            f"def {name}(n, *more, k={number}):\n    return n if n < 2 else {name}(n - 1) + {name}(n - 2) * k\n"
            f"print({name}({number}))",
            f"class {name}:\n    def __init__(self, v): self.v = v\n"
            f"    def __repr__(self): return f'<{name} {{self.v}}>'\n"
            f"items = [{name}(i) for i in range({number})]\nprint(items, items[-1].v)",
            f"total = globals().get('total', 0)\nfor i in range({number * 5}):\n    if i % 3 == 0: continue\n"
            "    if i > 30: break\n    total += i\nelse:\n    print('else')\nprint(total)",
            f"try:\n    print([1, 2][{number % 4}])\nexcept (IndexError, KeyError) as e:\n"
            "    print(type(e).__name__, e)\nfinally:\n    print('finally')",
            f"import itertools, collections\nprint(collections.Counter(i % {number} for i in range(50)).most_common(3),"
            f" list(itertools.islice(itertools.cycle('ab'), {number})))",
            f"def {name}():\n    for i in range({number}):\n        got = yield i * i\n"
            f"print(sum({name}()), {{i: str(i) for i in {name}()}})",
            f"from dataclasses import dataclass\n@dataclass(frozen=True)\nclass {name}:\n    a: int\n    b: str = 'x'\n"
            f"print({name}({number}), {name}(1) == {name}(1))",
            f"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as threads:\n"
            f"    print(list(threads.map(lambda i: i * {number}, range(5))))",
            f"from functools import reduce\nprint(reduce(lambda a, b: a ^ b, range({number * 9})))",
            f"with open('{name}.txt', 'w') as file:\n    file.writelines(f'{{i}}\\n' for i in range({number}))\n"
            f"print(sum(map(int, open('{name}.txt'))))",
        )

    def _raises(self) -> str:
        return self._pick(
            "1 / 0",
            "{}['missing']",
            "undefined_name",
            "int('x')",
            "[].pop()",
            "image_clue_0.nothing",
            "raise ValueError('<answer>' + 'é')",
            "assert len(image_size) == 3, image_size",
            "cv2.cvtColor(5, 6)",
            "np.zeros(3) + np.zeros(4)",
            "def late(): return late_name\nlate()",
            "raise SystemExit",
            "x = = 1",
        )
