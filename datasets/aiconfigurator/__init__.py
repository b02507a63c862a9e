"""AIConfigurator's operator tables on NVIDIA data-centre GPUs, by serving stack and version."""
