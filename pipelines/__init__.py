"""What happens to a row, free of any framework: records, images, ledger, sources, policies, recipes, checks, export."""

import os

# before numpy is imported: its BLAS would wait in a loop for threads on cores that other rows' checks use, and the last
# bits of a sum would depend on their number
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
