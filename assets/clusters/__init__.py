"""Places where runs go: this machine, Ray, Slurm or Kubernetes; the queue before them, and lost runs."""
