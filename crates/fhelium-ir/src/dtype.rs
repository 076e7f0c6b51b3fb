//! Element types of clear tensors and numpy's rules for combining them.

use std::fmt;
use std::str::FromStr;

/// The element type of a clear tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Truth values.
    Bool,
    /// 32-bit signed integers.
    I32,
    /// 64-bit signed integers.
    I64,
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
    /// Complex numbers of two 32-bit floats.
    C64,
    /// Complex numbers of two 64-bit floats.
    C128,
}

use DType::{Bool, C64, C128, F32, F64, I32, I64};

impl DType {
    /// Every element type.
    pub const ALL: [DType; 7] = [Bool, I32, I64, F32, F64, C64, C128];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I32 => "i32",
            I64 => "i64",
            F32 => "f32",
            F64 => "f64",
            C64 => "c64",
            C128 => "c128",
        }
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Bool => 1,
            I32 | F32 => 4,
            I64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    /// Whether this is `i32` or `i64`.
    pub fn is_integer(self) -> bool {
        matches!(self, I32 | I64)
    }

    /// Whether this is `c64` or `c128`.
    pub fn is_complex(self) -> bool {
        matches!(self, C64 | C128)
    }

    /// The element type of an expression on both, by numpy's promotion of arrays.
    pub fn promote(self, other: DType) -> DType {
        let (low, high) = if self <= other {
            (self, other)
        } else {
            (other, self)
        };
        match (low, high) {
            // A 32-bit float cannot hold every integer, so numpy widens.
            (I32 | I64, F32) => F64,
            (I32 | I64 | F64, C64) => C128,
            _ => high,
        }
    }

    /// The element type of a function with fractional values: floats stay, the rest becomes f64.
    ///
    /// numpy gives a 16-bit float for booleans; fhelium has none and gives f64.
    pub fn to_inexact(self) -> DType {
        match self {
            Bool | I32 | I64 => F64,
            inexact => inexact,
        }
    }

    /// The element type of one part of a complex number; real types stay.
    pub fn to_real(self) -> DType {
        match self {
            C64 => F32,
            C128 => F64,
            real => real,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.name() == text)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards the promotion table against numpy's (`numpy.result_type` of arrays).
    #[test]
    fn promotion_follows_numpy() {
        let table = [
            [Bool, I32, I64, F32, F64, C64, C128],
            [I32, I32, I64, F64, F64, C128, C128],
            [I64, I64, I64, F64, F64, C128, C128],
            [F32, F64, F64, F32, F64, C64, C128],
            [F64, F64, F64, F64, F64, C128, C128],
            [C64, C128, C128, C64, C128, C64, C128],
            [C128, C128, C128, C128, C128, C128, C128],
        ];
        for (row, left) in table.iter().zip(DType::ALL) {
            for (expected, right) in row.iter().zip(DType::ALL) {
                assert_eq!(left.promote(right), *expected, "{left} with {right}");
            }
        }
    }
}
