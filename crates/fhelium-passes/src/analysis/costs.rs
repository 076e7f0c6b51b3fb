//! Operation counts and a machine-independent cost.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::AddAssign;

use fhelium_ir::{Body, Ckks, Domain, He, Op, OpKind, Program, Rns, Type, ValueId};
use fhelium_state::Chain;

use crate::analysis::limbs;

/// Work counted in units that take the same time on one machine and ring.
///
/// "A limb" is one polynomial by one prime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number-theoretic transforms of one limb, either direction.
    pub transforms: u64,
    /// Products, or products with a sum, of one limb, coefficient by coefficient.
    pub products: u64,
    /// Sums, sign changes, copies and permutations of one limb.
    pub sums: u64,
    /// Base conversions of one limb by one prime to another prime.
    pub conversions: u64,
    /// Products of one limb of a digit with both halves of an evaluation key.
    pub key_products: u64,
    /// Messages taken to coefficients, before their transforms.
    pub encodings: u64,
    /// Rounds of parallel work, each of which waits for the one before it.
    pub rounds: u64,
    /// The same where a round takes a whole batch at once, and the keys of all rotations of one value.
    pub batch_rounds: u64,
    /// Limbs of digits, which a decomposition converts and transforms: their transforms and conversions
    /// are counted above, too.
    pub digit_limbs: u64,
    /// Key switches: relinearizations, rotations and conjugations.
    pub key_switches: u64,
}

impl Cost {
    /// Each count of two costs, combined.
    fn zip(self, other: Cost, combine: impl Fn(u64, u64) -> u64) -> Cost {
        Cost {
            transforms: combine(self.transforms, other.transforms),
            products: combine(self.products, other.products),
            sums: combine(self.sums, other.sums),
            conversions: combine(self.conversions, other.conversions),
            key_products: combine(self.key_products, other.key_products),
            encodings: combine(self.encodings, other.encodings),
            rounds: combine(self.rounds, other.rounds),
            batch_rounds: combine(self.batch_rounds, other.batch_rounds),
            digit_limbs: combine(self.digit_limbs, other.digit_limbs),
            key_switches: combine(self.key_switches, other.key_switches),
        }
    }

    /// The rounds of one operation, whatever their work.
    fn in_rounds(rounds: u64) -> Cost {
        Cost {
            rounds,
            batch_rounds: rounds,
            ..Cost::default()
        }
    }

    /// The cost of so many of the same, each round of which all may share.
    fn side_by_side(self, count: u64) -> Cost {
        Cost {
            batch_rounds: self.batch_rounds,
            ..self.times(count)
        }
    }

    fn times(self, count: u64) -> Cost {
        self.zip(self, |own, _| own.saturating_mul(count))
    }

    fn and(self, other: Cost) -> Cost {
        self.zip(other, u64::saturating_add)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = self.and(other);
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), Cost::and)
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
            // One pass over memory does the work of all.
            Some(region) => {
                let inner = region.ops().iter();
                let work: Cost = inner
                    .map(|op| operation_cost(op, region, Some(chain)))
                    .sum();
                Cost {
                    rounds: work.rounds.min(1),
                    batch_rounds: work.batch_rounds.min(1),
                    ..work
                }
            }
            None => rns_cost(rns, shape, operand.unwrap_or(shape)),
        };
    }
    let limbs = shape.limbs;
    let polynomials = shape.parts * limbs;
    let switch = KeySwitch {
        limbs,
        special: chain.special_moduli().len() as u64,
        // A chain that allows no key switch has none to count.
        digit: chain.digit_size().unwrap_or(1) as u64,
    };
    let of = |is: fn(&Type) -> bool| {
        let mut types = op.operands().iter().map(|&value| body.type_of(value));
        types.any(is)
    };
    let has_plaintext = of(|ty| matches!(ty, Type::Plaintext { .. }));
    let is_scalar = of(|ty| matches!(ty, Type::Tensor { shape, .. } if shape.is_empty()));
    let steps = || {
        let steps = op.attributes().ints("steps").unwrap_or(&[]);
        steps.iter().filter(|&&step| step != 0).count() as u64
    };
    let products = |products: u64| Cost {
        products,
        ..Cost::in_rounds(1)
    };
    let sums = |sums: u64| Cost {
        sums,
        ..Cost::in_rounds(1)
    };
    // The sum with what needed no key, and the permutation of both parts.
    let rotations = |count: u64| match count {
        0 => Cost::default(),
        _ => switch.cost(count).and(sums(3 * limbs).side_by_side(count)),
    };
    let relinearization = switch.cost(1).and(sums(2 * limbs));
    let one = match kind {
        OpKind::He(He::Add | He::Sub | He::Neg | He::DropLevels | He::BatchSlice)
        | OpKind::He(He::StackBatch)
        | OpKind::Ckks(
            Ckks::Add
            | Ckks::Sub
            | Ckks::AddPlain
            | Ckks::SubPlain
            | Ckks::PlainSub
            | Ckks::Neg
            | Ckks::DropLevels
            | Ckks::BatchSlice
            | Ckks::StackBatch,
        ) => sums(polynomials),
        OpKind::He(He::SumBatch) | OpKind::Ckks(Ckks::SumBatch) => {
            let summed = operand.map_or(1, |operand| operand.batch / shape.batch.max(1));
            sums(polynomials * summed)
        }
        OpKind::He(He::Mul) if has_plaintext => products(polynomials),
        OpKind::Ckks(Ckks::MulPlain | Ckks::MulInteger) | OpKind::He(He::MulInteger) => {
            products(polynomials)
        }
        OpKind::He(He::Mul) | OpKind::Ckks(Ckks::Mul) => products(4 * limbs),
        OpKind::He(He::Square) | OpKind::Ckks(Ckks::Square) => products(3 * limbs),
        OpKind::Ckks(Ckks::MulRelin) => products(4 * limbs).and(relinearization),
        OpKind::Ckks(Ckks::SquareRelin) => products(3 * limbs).and(relinearization),
        OpKind::Ckks(
            joined @ (Ckks::RelinearizeRescale | Ckks::MulRelinRescale | Ckks::SquareRelinRescale),
        ) => {
            // The result's limbs are one fewer than the product's. The level's prime joins the
            // special ones in one division, so its rescale adds no transform.
            let limbs = limbs + 1;
            let product = match joined {
                Ckks::MulRelinRescale => products(4 * limbs),
                Ckks::SquareRelinRescale => products(3 * limbs),
                _ => Cost::default(),
            };
            let switch = KeySwitch { limbs, ..switch };
            product.and(products(2 * limbs)).and(switch.cost(1))
        }
        OpKind::He(He::Rotate) if op.attributes().int("step") == Some(0) => Cost::default(),
        OpKind::He(He::Rotate | He::Conjugate) | OpKind::Ckks(Ckks::Rotate | Ckks::Conjugate) => {
            rotations(1)
        }
        OpKind::He(He::Relinearize) | OpKind::Ckks(Ckks::Relinearize) => relinearization,
        OpKind::Ckks(Ckks::RotateHoisted) => rotations(steps()),
        // The dropped limb leaves the NTT domain and returns by each prime that stays.
        OpKind::He(He::Rescale) | OpKind::Ckks(Ckks::Rescale) => Cost {
            transforms: shape.parts * (1 + limbs),
            products: polynomials,
            ..Cost::in_rounds(2)
        },
        // A constant needs no transform.
        OpKind::He(He::Encode) | OpKind::Ckks(Ckks::Encode) if is_scalar => sums(limbs),
        OpKind::He(He::Encode) | OpKind::Ckks(Ckks::Encode) => Cost {
            transforms: limbs,
            encodings: 1,
            ..Cost::in_rounds(2)
        },
        _ => Cost::default(),
    };
    one.side_by_side(shape.batch)
}

/// Counts of a value of residues.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub batch: u64,
    pub parts: u64,
    pub limbs: u64,
    domain: Domain,
}

impl Shape {
    pub fn of(body: &Body, value: ValueId, chain: &Chain) -> Option<Shape> {
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
            digit_limbs: digits * extended,
            conversions: sizes.map(|size| size * (extended - size)).sum(),
            ..Cost::in_rounds(3)
        };
        let each = Cost {
            transforms: 2 * extended,
            key_products: digits * extended,
            conversions: 2 * special * limbs,
            products: 2 * limbs,
            key_switches: 1,
            ..Cost::in_rounds(3)
        };
        decomposition.and(each.side_by_side(count))
    }
}

fn rns_cost(op: Rns, result: Shape, operand: Shape) -> Cost {
    // Division by primes takes the residues by these through coefficients, if they are NTT values.
    let through_coefficients = match operand.domain {
        Domain::Ntt => operand.polynomials(),
        Domain::Coefficient => 0,
    };
    let none = Cost::in_rounds(1);
    match op {
        Rns::Ntt | Rns::Intt => Cost {
            transforms: result.polynomials(),
            ..none
        },
        Rns::Mul | Rns::MulAdd | Rns::MulInteger => Cost {
            products: result.polynomials(),
            ..none
        },
        Rns::Add | Rns::Sub | Rns::Neg | Rns::Automorphism => Cost {
            sums: result.polynomials(),
            ..none
        },
        Rns::KeyProduct => Cost {
            key_products: operand.polynomials(),
            ..none
        },
        Rns::ExtendBasis => Cost {
            conversions: operand.polynomials().saturating_mul(result.limbs),
            ..none
        },
        Rns::ReduceBasis => {
            let special = operand.limbs.saturating_sub(result.limbs);
            Cost {
                transforms: through_coefficients,
                conversions: result.polynomials().saturating_mul(special),
                products: result.polynomials(),
                ..none
            }
        }
        Rns::Rescale => Cost {
            transforms: through_coefficients,
            products: result.polynomials(),
            ..none
        },
        _ => Cost::default(),
    }
}
