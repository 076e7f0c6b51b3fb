//! CUDA device, memory, kernel modules, launches and graphs.
