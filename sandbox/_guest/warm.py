"""Imports what the code will find and uses each path once: what a session would build anew is paid only here."""

import base64
import importlib
import importlib.util
import io
import json
import math
import os
import random
import re
from typing import Any

import autopep8
import cv2
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

_IMPORTED = """
numpy.random numpy.linalg numpy.fft PIL.ImageDraw PIL.ImageFilter PIL.ImageEnhance PIL.ImageOps PIL.ImageFont sympy
scipy.ndimage scipy.optimize scipy.signal scipy.stats scipy.spatial scipy.interpolate scipy.linalg
skimage.io skimage.color skimage.exposure skimage.filters skimage.measure skimage.morphology skimage.transform
skimage.segmentation skimage.feature skimage.draw skimage.util skimage.metrics
itertools collections statistics fractions decimal datetime shutil glob pathlib base64 time string functools tempfile
"""
PREPARED: dict[str, Any] = {"np": np, "numpy": np, "cv2": cv2, "plt": plt, "Image": Image, "os": os, "math": math}
PREPARED |= {"random": random, "re": re, "json": json, "io": io, "base64": base64, "matplotlib": matplotlib}
"""The modules that the code finds without importing them."""


def import_libraries() -> None:
    for name in _IMPORTED.split():
        if not name.startswith("skimage.") or importlib.util.find_spec("skimage"):  # an extra brings it
            importlib.import_module(name)
    np.random.seed(0)
    np.random.default_rng(0).random(3)
    np.linalg.svd(np.eye(3))
    cv2.setNumThreads(1)
    cv2.setRNGSeed(0)
    black = np.zeros((64, 64, 3), np.uint8)
    for suffix in (".jpg", ".png"):
        cv2.imdecode(cv2.imencode(suffix, black)[1], cv2.IMREAD_COLOR)
    cv2.resize(black, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    cv2.cvtColor(black, cv2.COLOR_BGR2GRAY)
    use_pillow()
    plt.figure(figsize=(1, 1))
    plt.plot([0, 1])
    plt.title("warm")
    plt.gcf().canvas.draw()
    plt.close("all")
    autopep8.fix_code("if 1:\n   x=1\n")


def use_pillow() -> None:
    Image.init()
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, "JPEG")
    Image.open(file).load()
