"""Label Studio's routes, and the plug-in's below ``/darkroom/``."""

from core.urls import urlpatterns as studio_urlpatterns
from darkroom_studio import hits, images, overlaps, people
from django.urls import path

urlpatterns = [
    path("darkroom/people", people.people),
    path("darkroom/hits", hits.hits),
    path("darkroom/overlaps", overlaps.overlaps),
    path("darkroom/images/<str:sha256>", images.image),
    *studio_urlpatterns,
]
