#!/bin/sh
# Check that cargo is there, new enough for this workspace, and has a linker; else say what is missing.
set -eu
cd "$(dirname "$0")/.."

needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

if ! command -v cargo >/dev/null 2>&1; then
    {
        echo "error: cargo was not found. fhelium needs Rust $needed or newer."
        echo "       Get it from https://rustup.rs (or, where it is installed, run: . \"\$HOME/.cargo/env\")"
    } >&2
    exit 1
fi

# The compiler decides, not cargo: a toolchain override may pair them differently.
found=$(rustc --version | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
oldest=$(printf '%s\n%s\n' "$needed" "${found:-0}" | sort -V | head -n 1)
if [ "$oldest" != "$needed" ]; then
    {
        echo "error: Rust ${found:-of an unknown version} was found, and fhelium needs $needed or newer."
        echo "       Update it with: rustup update stable"
    } >&2
    exit 1
fi

if ! command -v cc >/dev/null 2>&1; then
    {
        echo "error: no C compiler named cc was found; Rust links with it."
        echo "       On Debian and Ubuntu: apt install gcc libc6-dev. On macOS: xcode-select --install"
    } >&2
    exit 1
fi
