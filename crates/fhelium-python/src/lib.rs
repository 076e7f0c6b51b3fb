//! The Python extension module fhelium._native.
