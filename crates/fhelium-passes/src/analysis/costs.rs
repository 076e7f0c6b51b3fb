//! Operation counts and a machine-independent cost.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::AddAssign;

use fhelium_ir::{Body, Ckks, Domain, He, Op, OpKind, Program, Rns, Type, ValueId};
use fhelium_state::Chain;

use crate::analysis::limbs;

/// Work counted in units that take the same time on one machine and ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number-theoretic transforms of one polynomial by one prime, either direction.
    pub transforms: u64,
    /// Products, or products with a sum, of one polynomial by one prime, coefficient by
    /// coefficient; base conversions count one for each pair of primes.
    pub products: u64,
    /// Key switches: relinearizations, rotations and conjugations.
    pub key_switches: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.transforms = self.transforms.saturating_add(other.transforms);
        self.products = self.products.saturating_add(other.products);
        self.key_switches = self.key_switches.saturating_add(other.key_switches);
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), |mut sum, cost| {
            sum += cost;
            sum
        })
    }
}

impl Cost {
    fn times(self, count: u64) -> Cost {
        Cost {
            transforms: self.transforms.saturating_mul(count),
            products: self.products.saturating_mul(count),
            key_switches: self.key_switches.saturating_mul(count),
        }
    }

    fn and(mut self, other: Cost) -> Cost {
        self += other;
        self
    }
}

/// What a Program does, by operation and in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// How many operations of each name there are, and what they cost together.
    pub operations: BTreeMap<&'static str, (usize, Cost)>,
    /// The sum.
    pub total: Cost,
}

impl Costs {
    /// How many operations of a name there are.
    pub fn count(&self, operation: &str) -> usize {
        self.operations
            .get(operation)
            .map_or(0, |&(count, _)| count)
    }
}

/// Counts a Program's operations and what they cost.
///
/// Operations whose operands have no level yet are counted and cost nothing here.
pub fn costs(program: &Program) -> Costs {
    let mut costs = Costs::default();
    let chain = program.chain().map(AsRef::as_ref);
    for op in program.body().ops() {
        let cost = operation_cost(op, program.body(), chain);
        let entry = costs.operations.entry(op.kind().name()).or_default();
        entry.0 += 1;
        entry.1 += cost;
        costs.total += cost;
    }
    costs
}

/// What one operation costs, all batch elements together.
///
/// An `he` operation costs what its `ckks` counterpart does. Hybrid key switching (Han and Ki,
/// "Better bootstrapping for approximate homomorphic encryption", 2020, section 3) is counted with
/// digits of [`Chain::digit_size`] primes.
pub fn operation_cost(op: &Op, body: &Body, chain: Option<&Chain>) -> Cost {
    let Some(chain) = chain else {
        return Cost::default();
    };
    let Some(shape) = op
        .results()
        .first()
        .and_then(|&value| Shape::of(body, value, chain))
    else {
        return Cost::default();
    };
    let operand = op
        .operands()
        .first()
        .and_then(|&value| Shape::of(body, value, chain));
    let kind = op.kind();
    if let OpKind::Rns(rns) = kind {
        return match op.region() {
            Some(region) => {
                let inner = region.ops().iter();
                inner
                    .map(|op| operation_cost(op, region, Some(chain)))
                    .sum()
            }
            None => rns_cost(rns, shape, operand.unwrap_or(shape)),
        };
    }
    let limbs = shape.limbs;
    let per_part = shape.parts;
    let switch = KeySwitch {
        limbs,
        special: chain.special_moduli().len() as u64,
        // A chain that allows no key switch has none to count.
        digit: chain.digit_size().unwrap_or(1) as u64,
    };
    let has_plaintext = op
        .operands()
        .iter()
        .any(|&value| matches!(body.type_of(value), Type::Plaintext { .. }));
    let steps = || {
        let steps = op.attributes().ints("steps").unwrap_or(&[]);
        steps.iter().filter(|&&step| step != 0).count() as u64
    };
    let pointwise = |products: u64| Cost {
        products,
        ..Cost::default()
    };
    let one = match kind {
        OpKind::He(He::Mul) if has_plaintext => pointwise(per_part * limbs),
        OpKind::Ckks(Ckks::MulPlain | Ckks::MulInteger) | OpKind::He(He::MulInteger) => {
            pointwise(per_part * limbs)
        }
        OpKind::He(He::Mul) | OpKind::Ckks(Ckks::Mul) => pointwise(4 * limbs),
        OpKind::He(He::Square) | OpKind::Ckks(Ckks::Square) => pointwise(3 * limbs),
        OpKind::Ckks(Ckks::MulRelin) => pointwise(4 * limbs).and(switch.cost(1)),
        OpKind::Ckks(Ckks::SquareRelin) => pointwise(3 * limbs).and(switch.cost(1)),
        OpKind::Ckks(
            joined @ (Ckks::RelinearizeRescale | Ckks::MulRelinRescale | Ckks::SquareRelinRescale),
        ) => {
            // The result's limbs are one fewer than the product's. The level's prime joins the
            // special ones in one division, so its rescale adds no transform.
            let limbs = limbs + 1;
            let product = match joined {
                Ckks::MulRelinRescale => 4 * limbs,
                Ckks::SquareRelinRescale => 3 * limbs,
                _ => 0,
            };
            let switch = KeySwitch { limbs, ..switch };
            pointwise(product + 2 * limbs).and(switch.cost(1))
        }
        OpKind::He(He::Rotate) if op.attributes().int("step") == Some(0) => Cost::default(),
        OpKind::He(He::Relinearize | He::Rotate | He::Conjugate)
        | OpKind::Ckks(Ckks::Relinearize | Ckks::Rotate | Ckks::Conjugate) => switch.cost(1),
        OpKind::Ckks(Ckks::RotateHoisted) => switch.cost(steps()),
        // The dropped limb leaves the NTT domain and returns by each prime that stays.
        OpKind::He(He::Rescale) | OpKind::Ckks(Ckks::Rescale) => Cost {
            transforms: per_part * (1 + limbs),
            products: per_part * limbs,
            key_switches: 0,
        },
        OpKind::He(He::Encode) | OpKind::Ckks(Ckks::Encode) => Cost {
            transforms: limbs,
            ..Cost::default()
        },
        _ => Cost::default(),
    };
    one.times(shape.batch)
}

/// Counts of a value of residues.
#[derive(Clone, Copy)]
struct Shape {
    batch: u64,
    parts: u64,
    limbs: u64,
    domain: Domain,
}

impl Shape {
    fn of(body: &Body, value: ValueId, chain: &Chain) -> Option<Shape> {
        let ty = body.type_of(value);
        let (parts, limbs, domain) = match ty {
            Type::Ciphertext { state, .. } => {
                let state = state.as_ref()?;
                (state.parts, state.level + 1, Domain::Ntt)
            }
            Type::Plaintext { state, .. } => (1, state.as_ref()?.level + 1, Domain::Ntt),
            Type::Residues {
                parts,
                basis,
                domain,
                ..
            } => (*parts, limbs(*basis, chain), *domain),
            Type::Tensor { .. } | Type::Key(_) => return None,
        };
        Some(Shape {
            batch: ty
                .batch()
                .iter()
                .fold(1, |product, &extent| product.saturating_mul(extent as u64)),
            parts: parts as u64,
            limbs: limbs as u64,
            domain,
        })
    }

    /// Polynomials by one prime, all together.
    fn polynomials(self) -> u64 {
        self.batch.saturating_mul(self.parts * self.limbs)
    }
}

/// A key switch of one polynomial.
struct KeySwitch {
    limbs: u64,
    special: u64,
    digit: u64,
}

impl KeySwitch {
    /// One decomposition, then an inner product and a division by the special primes for each of
    /// `count` keys.
    fn cost(&self, count: u64) -> Cost {
        if count == 0 {
            return Cost::default();
        }
        let (limbs, special) = (self.limbs, self.special);
        let extended = limbs + special;
        let digits = limbs.div_ceil(self.digit);
        let sizes = (0..digits).map(|digit| self.digit.min(limbs - digit * self.digit));
        // Every limb is inverted; each digit is then missing all primes but its own.
        let decomposition = Cost {
            transforms: digits * extended,
            products: sizes.map(|size| size * (extended - size)).sum(),
            key_switches: 0,
        };
        let each = Cost {
            transforms: 2 * extended,
            products: 2 * digits * extended + 2 * (special * limbs + limbs),
            key_switches: 1,
        };
        decomposition.and(each.times(count))
    }
}

fn rns_cost(op: Rns, result: Shape, operand: Shape) -> Cost {
    let transforms = |transforms: u64| Cost {
        transforms,
        ..Cost::default()
    };
    let products = |products: u64| Cost {
        products,
        ..Cost::default()
    };
    // Division by primes takes the residues by these through coefficients, if they are NTT values.
    let through_coefficients = match operand.domain {
        Domain::Ntt => operand.polynomials(),
        Domain::Coefficient => 0,
    };
    match op {
        Rns::Ntt | Rns::Intt => transforms(result.polynomials()),
        Rns::Mul | Rns::MulAdd | Rns::MulInteger | Rns::KeyProduct => {
            products(result.polynomials())
        }
        Rns::ExtendBasis => products(operand.polynomials().saturating_mul(result.limbs)),
        Rns::ReduceBasis => {
            let special = operand.limbs.saturating_sub(result.limbs);
            Cost {
                transforms: through_coefficients,
                products: result.polynomials().saturating_mul(special + 1),
                key_switches: 0,
            }
        }
        Rns::Rescale => Cost {
            transforms: through_coefficients,
            products: result.polynomials(),
            key_switches: 0,
        },
        _ => Cost::default(),
    }
}
