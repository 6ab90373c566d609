"""A frame is refined to a fraction of a pixel, and stays as it was where the pixels lead nowhere."""

import cv2
import numpy as np
import pytest

from darkroom.pipelines.vision.registration import details, refined


@pytest.fixture(scope="module")
def clouds() -> np.ndarray:
    noise = np.random.default_rng(5).integers(0, 255, (30, 40), dtype=np.uint8)
    return np.asarray(cv2.resize(noise, (240, 180), interpolation=cv2.INTER_CUBIC))


def test_a_shift_is_found_to_a_fraction_of_a_pixel(clouds: np.ndarray) -> None:
    true = np.array([[1.0, 0, 3.4], [0, 1.0, -2.3]])
    beside = cv2.warpAffine(clouds, true, (240, 180), borderMode=cv2.BORDER_REPLICATE)
    rough = np.array([[1.0, 0, 2], [0, 1.0, -1]])
    found = refined(clouds, beside, rough, n_steps=60, epsilon=1e-5)
    assert np.abs(found - true).max() < 0.2 < np.abs(rough - true).max()


def test_a_frame_stays_where_the_pixels_lead_nowhere() -> None:
    plain, frame = np.full((60, 80), 200, np.uint8), np.eye(2, 3)
    assert (refined(plain, plain, frame, n_steps=20, epsilon=1e-3) == frame).all()


def test_shading_is_no_detail(clouds: np.ndarray) -> None:
    shading = np.tile(np.linspace(0, 200, 240), (180, 1)).astype(np.uint8)
    assert details(shading)[:, 20:-20].std() < 0.5
    assert details(clouds).std() > 10 * details(shading)[:, 20:-20].std()
