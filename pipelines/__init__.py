"""What happens to a row, free of any framework: records, images, ledger, sources, policies, recipes, checks, export."""

import os

# before they are imported: numpy's BLAS and OpenCV would wait in a loop for threads on cores that other rows' checks
# use, and the last bits of a sum would depend on their number
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"} | os.environ
