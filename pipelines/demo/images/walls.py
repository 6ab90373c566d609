"""Walls for images: a brick courtyard, a plastered gallery, a cork board and a hedge, with frames and light. Surfaces
are scikit-image's textures, tinted and mirrored into tiles; the slanted bricks are set upright first."""

from functools import cache
from random import Random
from typing import NamedTuple

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import texture
from darkroom.pipelines.records.geometry import Box

Colour = tuple[int, int, int]
Tint = tuple[Colour, Colour, Colour]
# the joints between 12 courses of skimage's brick.png, measured at its rows 4 and 500
BRICK_QUAD = (69, 4, 8, 500, 508, 500, 425, 4)
TINTS: dict[str, list[Tint]] = {
    surface: [(tuple(dark), tuple(mid), tuple(bright)) for dark, mid, bright in tints]
    for surface, tints in data_beside(__file__).items()
}


class Backdrop(NamedTuple):
    """An empty wall, the part that can be hung with images, and whether they are pinned, not framed."""

    image: Image.Image
    area: Box
    pinned: bool


class Mounted(NamedTuple):
    """An image in its frame (RGBA), and where in it the photograph lies."""

    image: Image.Image
    photograph: Box


def backdrop(number: int, width: int, height: int, rng: Random) -> Backdrop:
    """The wall of scene ``number``; four kinds take turns."""
    return (_brick_courtyard, _plastered_gallery, _cork_board, _hedge)[number % 4](width, height, rng)


def mounted(photograph: Image.Image, rng: Random, *, pinned: bool) -> Mounted:
    """A photograph as a pinned print with a white rim, or in a wooden frame with a mat."""
    return _print(photograph, rng) if pinned else _frame(photograph, rng)


def cast_shadow(canvas: Image.Image, image: Image.Image, x: int, y: int, *, depth: int) -> None:
    """Darkens the canvas below and right of where ``image`` (RGBA) is about to lie."""
    margin = depth * 3
    shadow = Image.new("L", (image.width + 2 * margin, image.height + 2 * margin))
    shadow.paste(image.getchannel("A").point([level * 130 // 255 for level in range(256)]), (margin, margin))
    soft = shadow.filter(ImageFilter.BoxBlur(depth)).filter(ImageFilter.BoxBlur(depth))
    canvas.paste((12, 9, 8), (x - margin + depth // 2, y - margin + depth), soft)


def lit(canvas: Image.Image, rng: Random) -> Image.Image:
    """The canvas under a lamp: brightest at a seeded place near the middle, a quarter darker at the corners."""
    x = rng.randint(4, 52)
    lamp = Image.radial_gradient("L").crop((x, 36, x + 200, 240)).resize(canvas.size)
    light = lamp.point([255 - max(0, level - 40) * 80 // 215 for level in range(256)])
    return ImageChops.multiply(canvas, Image.merge("RGB", (light, light, light)))


def _tinted(grey: Image.Image, tint: Tint) -> Image.Image:
    dark, mid, bright = tint
    return ImageOps.colorize(grey, dark, bright, mid=mid)


def _tiled(tile: Image.Image, width: int, height: int) -> Image.Image:
    image = Image.new(tile.mode, (width, height))
    across, down = ImageOps.mirror(tile), ImageOps.flip(tile)
    both = ImageOps.mirror(down)
    for row in range(-(-height // tile.height)):
        for column in range(-(-width // tile.width)):
            piece = ((tile, across), (down, both))[row % 2][column % 2]
            image.paste(piece, (column * tile.width, row * tile.height))
    return image


@cache
def _upright_bricks() -> Image.Image:
    upright = texture("brick").transform((660, 1180), Image.Transform.QUAD, BRICK_QUAD, Image.Resampling.BICUBIC)
    return ImageOps.autocontrast(upright.transpose(Image.Transpose.ROTATE_90), cutoff=1)


@cache
def _grain() -> Image.Image:
    """Streaks like planed wood: a strip of grass drawn out lengthwise."""
    strip = texture("grass").crop((0, 0, 40, 512)).resize((900, 512), Image.Resampling.BICUBIC)
    return ImageOps.autocontrast(strip.filter(ImageFilter.BoxBlur((60, 0.6))), cutoff=1)


def _planks(width: int, height: int, tint: Tint, rng: Random) -> Image.Image:
    grain, image = _grain(), Image.new("RGB", (width, height))
    tall = max(24, height // 4)
    for y in range(0, height, tall):
        x = -rng.randrange(500)
        while x < width:
            top, dimmed = rng.randrange(512 - tall), rng.randint(0, 40)
            plank = _tinted(grain.crop((0, top, 900, top + tall)).point([max(0, v - dimmed) for v in range(256)]), tint)
            ImageDraw.Draw(plank).rectangle((0, 0, 899, tall), outline=tint[0])
            image.paste(plank, (x, y))
            x += 900
    return image


def _with_ground(wall: Image.Image, ground: Image.Image) -> Backdrop:
    top = wall.height - ground.height
    wall.paste(ground, (0, top))
    edge = Image.linear_gradient("L").rotate(180).resize((wall.width, 60)).point([v * 150 // 255 for v in range(256)])
    wall.paste((10, 8, 6), (0, top), edge)
    return Backdrop(wall, Box(0, 0, wall.width, top), False)


def _brick_courtyard(width: int, height: int, rng: Random) -> Backdrop:
    wall = _tiled(_tinted(_upright_bricks(), rng.choice(TINTS["brick"])), width, height)
    return _with_ground(wall, _stony_ground(width, height // 11))


def _stony_ground(width: int, height: int) -> Image.Image:
    tile = texture("gravel").resize((1100, 640), Image.Resampling.BICUBIC)
    return _tiled(_tinted(tile, TINTS["stones"][0]), width, height)


@cache
def _rough_plaster() -> Image.Image:
    coarse = texture("gravel").filter(ImageFilter.BoxBlur(5)).resize((1400, 1400), Image.Resampling.BICUBIC)
    fine = texture("grass").resize((700, 700), Image.Resampling.BICUBIC).filter(ImageFilter.BoxBlur(1))
    return Image.blend(coarse, _tiled(fine, 1400, 1400), 0.3)


def _plastered_gallery(width: int, height: int, rng: Random) -> Backdrop:
    wall = _tiled(_tinted(_rough_plaster(), rng.choice(TINTS["plaster"])), width, height)
    scene = _with_ground(wall, _planks(width, height // 11, TINTS["wood"][rng.randrange(2)], rng))
    skirting = _planks(width, 44, TINTS["wood"][3], rng).resize((width, 176)).crop((0, 0, width, 44))
    top = scene.area.y2 - skirting.height
    wall.paste(skirting, (0, top))
    ImageDraw.Draw(wall).rectangle((0, top - 1, width, top + 1), fill=(120, 114, 104))
    return scene._replace(area=scene.area._replace(y2=top))


def _cork_board(width: int, height: int, rng: Random) -> Backdrop:
    crumbs = texture("gravel").resize((330, 330), Image.Resampling.BOX).filter(ImageFilter.BoxBlur(0.6))
    board = _tiled(_tinted(crumbs, TINTS["cork"][0]), width, height)
    rail = 46
    wood = TINTS["wood"][rng.randrange(2)]
    across = _planks(width, rail * 4, wood, rng).crop((0, 0, width, rail))
    upright = _planks(height, rail * 4, wood, rng).crop((0, 0, height, rail)).transpose(Image.Transpose.ROTATE_90)
    for piece, at in ((upright, (0, 0)), (upright, (width - rail, 0)), (across, (0, 0)), (across, (0, height - rail))):
        board.paste(piece, at)
    ImageDraw.Draw(board).rectangle((rail, rail, width - rail, height - rail), outline=(52, 34, 20), width=4)
    return Backdrop(board, Box(rail, rail, width - rail, height - rail), True)


def _hedge(width: int, height: int, rng: Random) -> Backdrop:
    leaves = texture("grass").rotate(90 * rng.randrange(4)).resize((1150, 1150), Image.Resampling.BICUBIC)
    return _with_ground(_tiled(_tinted(leaves, TINTS["leaves"][0]), width, height), _stony_ground(width, height // 11))


def _print(photograph: Image.Image, rng: Random) -> Mounted:
    rim = 16
    size = photograph.width + 2 * rim, photograph.height + 2 * rim + 14
    paper = Image.new("RGBA", size, (240, 237, 228, 255))
    paper.paste(photograph, (rim, rim))
    draw = ImageDraw.Draw(paper)
    x, red = size[0] // 2 + rng.randint(-20, 20), rng.choice(((170, 36, 34), (40, 80, 150), (60, 110, 60)))
    draw.ellipse((x - 8, 3, x + 8, 19), fill=red, outline=(40, 20, 20))
    draw.ellipse((x - 4, 6, x + 1, 11), fill=(236, 220, 214))
    turned = paper.rotate(rng.uniform(-1.5, 1.5), Image.Resampling.BICUBIC, expand=True)
    x, y = (turned.width - photograph.width) // 2, (turned.height - photograph.height) // 2 - 7
    return Mounted(turned, Box(x, y, x + photograph.width, y + photograph.height))


def _frame(photograph: Image.Image, rng: Random) -> Mounted:
    wood, mat = rng.randint(15, 26), rng.randint(18, 36)
    rim = wood + mat
    width, height = photograph.width + 2 * rim, photograph.height + 2 * rim
    image = Image.new("RGB", (width, height))
    _lay_wood(image, wood, rng.choice(TINTS["wood"]))
    draw = ImageDraw.Draw(image)
    draw.rectangle((wood, wood, width - wood - 1, height - wood - 1), fill=(236, 232, 222))
    draw.line((wood, wood + 1, width - wood, wood + 1), fill=(150, 144, 134), width=4)
    draw.line((wood + 1, wood, wood + 1, height - wood), fill=(176, 170, 160), width=3)
    draw.rectangle((rim - 2, rim - 2, width - rim + 1, height - rim + 1), outline=(168, 162, 150), width=2)
    image.paste(photograph, (rim, rim))
    return Mounted(image.convert("RGBA"), Box(rim, rim, width - rim, height - rim))


def _lay_wood(image: Image.Image, wood: int, tint: Tint) -> None:
    width, height = image.size
    rail = _tinted(_grain().crop((0, 40, 900, 40 + wood)), tint).resize((max(width, height), wood))
    stile = rail.transpose(Image.Transpose.ROTATE_90)
    mitre = Image.new("L", image.size)
    draw = ImageDraw.Draw(mitre)
    draw.polygon((0, 0, width, 0, width - wood, wood, wood, wood), fill=255)
    draw.polygon((0, height, width, height, width - wood, height - wood, wood, height - wood), fill=255)
    stiles, rails = Image.new("RGB", image.size), Image.new("RGB", image.size)
    stiles.paste(stile, (0, 0))
    stiles.paste(stile, (width - wood, 0))
    rails.paste(rail, (0, 0))
    rails.paste(ImageOps.flip(rail), (0, height - wood))
    image.paste(Image.composite(rails, stiles, mitre))
    edge = ImageDraw.Draw(image)
    edge.rectangle((0, 0, width - 1, height - 1), outline=tint[0], width=1)
    edge.line((1, 1, width - 2, 1), fill=tint[2], width=2)
