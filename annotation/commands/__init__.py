"""The commands of `darkroom annotate`, in the order of a campaign; listed in ``assets/commands.yaml``."""
