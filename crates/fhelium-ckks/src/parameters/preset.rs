//! Named parameter sets.

use super::Parameters;
use std::fmt;
use std::str::FromStr;

macro_rules! presets {
    ($($(#[$doc:meta])* $name:ident = ($log_n:literal, $depth:literal, $scale_bits:literal),)*) => {
        /// Named parameter sets, all of 128-bit security with |message| < 2^8 at level 0: the ring
        /// degree's logarithm, the depth and the scale's bits make the name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Preset {
            $($(#[$doc])* $name,)*
        }

        impl Preset {
            /// All of them, smallest ring first.
            pub const ALL: &'static [Preset] = &[$(Preset::$name),*];

            /// The name, as written here.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Preset::$name => stringify!($name),)*
                }
            }

            const fn facts(self) -> (u32, usize, u32) {
                match self {
                    $(Preset::$name => ($log_n, $depth, $scale_bits),)*
                }
            }
        }
    };
}

presets! {
    /// 2048 slots, one product.
    N12Depth1Scale28 = (12, 1, 28),
    /// 4096 slots, two products, ten decimal digits.
    N13Depth2Scale45 = (13, 2, 45),
    /// 4096 slots, three products.
    N13Depth3Scale38 = (13, 3, 38),
    /// 8192 slots, the usual choice for small networks.
    N14Depth7Scale40 = (14, 7, 40),
    /// 8192 slots, high precision.
    N14Depth5Scale50 = (14, 5, 50),
    /// 8192 slots, many products of low precision.
    N14Depth9Scale32 = (14, 9, 32),
    /// 16384 slots.
    N15Depth16Scale40 = (15, 16, 40),
    /// 16384 slots, high precision.
    N15Depth12Scale50 = (15, 12, 50),
    /// 32768 slots.
    N16Depth34Scale40 = (16, 34, 40),
    /// 32768 slots, high precision.
    N16Depth27Scale50 = (16, 27, 50),
}

impl Preset {
    /// The parameters.
    pub fn parameters(self) -> Parameters {
        let (log_n, depth, scale_bits) = self.facts();
        Parameters::builder(depth, scale_bits)
            .log_n(log_n)
            .build()
            .expect("every preset is built by a test")
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = crate::CkksError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Preset::ALL
            .iter()
            .copied()
            .find(|preset| preset.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name()).collect();
            crate::CkksError::Parameter {
                argument: "preset",
                found: format!("{name:?}"),
                expected: format!("one of {}", names.join(", ")),
            }
        })
    }
}
