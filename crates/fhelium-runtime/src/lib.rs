//! Engine, backend registry, linker, executable and specialization cache.
