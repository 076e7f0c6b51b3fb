//! `rns`: residue polynomials, the level at which operations fuse.
//!
//! A ciphertext enters as residues by `rns.residues` and leaves by `rns.ciphertext`. Every rule
//! checks bases and domains: mixed ones are refused with both named.

use super::he::{COUNT, VALUE};
use super::{
    AttributeKind as A, AxisDependence, Call, Dependence, Dialect, OpDef, OpKind, OperandKind,
    OperandSpec, attribute, call::ResiduesRef, dialect, many, operand, shape,
};
use crate::{Basis, Domain, InferError, Type};
use fhelium_state::CipherState;

const X: OperandSpec = operand("x", OperandKind::Residues);
const Y: OperandSpec = operand("y", OperandKind::Residues);
const BINARY: &[OperandSpec] = &[X, Y];
const RESIDUES: &str = "residues";

dialect! {
    /// Residue polynomials.
    Rns, "rns":
    Residues "residues" "The residues of a ciphertext's or plaintext's polynomials."
        => OpDef::new(
            &[operand("x", OperandKind::Encoded)],
            &[],
            "residues by Q, NTT domain",
            residues,
            "rns.residues %a",
        );
    Ciphertext "ciphertext" "Residues as a ciphertext of a scale."
        => OpDef::new(
            &[X],
            &[attribute("scale", A::Scale, "the ciphertext's scale")],
            "a ciphertext",
            ciphertext,
            "rns.ciphertext %r {scale = 2^40}",
        );
    Ntt "ntt" "Coefficients to NTT values."
        => OpDef::new(&[X], &[], RESIDUES, ntt, "rns.ntt %c").depending(Dependence::POSITIONS);
    Intt "intt" "NTT values to coefficients."
        => OpDef::new(&[X], &[], RESIDUES, intt, "rns.intt %r").depending(Dependence::POSITIONS);
    Add "add" "Sum, part by part; parts that one operand lacks are zero."
        => OpDef::new(BINARY, &[], RESIDUES, linear, "rns.add %r, %r");
    Sub "sub" "Difference, part by part; parts that one operand lacks are zero."
        => OpDef::new(BINARY, &[], RESIDUES, linear, "rns.sub %s, %s");
    Neg "neg" "Negative."
        => OpDef::new(&[X], &[], RESIDUES, unchanged, "rns.neg %r");
    Mul "mul" "Product of NTT values, part by part; residues of one part serve every part of the other."
        => OpDef::new(BINARY, &[], RESIDUES, mul, "rns.mul %r, %s");
    MulInteger "mul_integer" "Product with an integer."
        => OpDef::new(&[X], &[VALUE], RESIDUES, unchanged, "rns.mul_integer %r {value = 3}");
    MulAdd "mul_add" "x * y + z of NTT values, as rns.mul and rns.add."
        => OpDef::new(
            &[X, Y, operand("z", OperandKind::Residues)],
            &[],
            RESIDUES,
            mul_add,
            "rns.mul_add %r, %s, %r",
        );
    Decompose "decompose" "One digit of a polynomial: its residues by a run of primes."
        => OpDef::new(
            &[X],
            &[
                attribute("digit", A::Int, "which digit"),
                attribute("size", A::Int, "the primes of a digit; the last digit may have fewer"),
            ],
            "residues by the digit's primes",
            decompose,
            "rns.decompose %c {digit = 1, size = 2}",
        )
        .depending(Dependence::new(AxisDependence::Element, AxisDependence::Reindexed, AxisDependence::Element));
    ExtendBasis "extend_basis" "A digit lifted to all primes of its level and the special primes."
        => OpDef::new(&[X], &[], "residues by QP", extend_basis, "rns.extend_basis %digit")
            .depending(Dependence::LIMBS);
    KeyProduct "key_product" "A lifted digit times both halves of a key's part for that digit."
        => OpDef::new(
            &[X, operand("key", OperandKind::Key)],
            &[attribute("digit", A::Int, "which digit of the key")],
            "residues by QP, 2 parts",
            key_product,
            "rns.key_product %lifted, %rotation {digit = 0}",
        )
        .depending(Dependence::new(AxisDependence::Element, AxisDependence::Element, AxisDependence::Reindexed));
    ReduceBasis "reduce_basis" "Division by the special primes, rounded: QP to Q."
        => OpDef::new(&[X], &[], "residues by Q", reduce_basis, "rns.reduce_basis %lifted")
            .depending(Dependence::ALL);
    Automorphism "automorphism" "X to X^g, in either domain."
        => OpDef::new(
            &[X],
            &[attribute("galois", A::Int, "g: odd, from 1 to 2N - 1")],
            RESIDUES,
            automorphism,
            "rns.automorphism %r {galois = 5}",
        )
        .depending(Dependence::REINDEXED);
    Rescale "rescale" "Division by the level's prime, rounded: one level less."
        => OpDef::new(&[X], &[], "residues by Q", rescale, "rns.rescale %r")
            .depending(Dependence::ALL);
    DropLimbs "drop_limbs" "Residues by the primes of a lower level only."
        => OpDef::new(&[X], &[COUNT], "residues by Q", drop_limbs, "rns.drop_limbs %r {count = 1}");
    ExtractPart "extract_part" "One part."
        => OpDef::new(
            &[X],
            &[attribute("part", A::Int, "which part")],
            "residues, 1 part",
            extract_part,
            "rns.extract_part %r {part = 1}",
        )
        .depending(Dependence::new(AxisDependence::Element, AxisDependence::Element, AxisDependence::Reindexed));
    Pack "pack" "Parts together: 1 to 3 residues of one part each."
        => OpDef::new(
            &[X, many("more", OperandKind::Residues)],
            &[],
            "residues of as many parts",
            pack,
            "rns.pack %s, %s",
        )
        .depending(Dependence::new(AxisDependence::Element, AxisDependence::Element, AxisDependence::Reindexed));
    Fused "fused" "Operations that run as one: a region of rns operations that sees the operands only. \
         Ciphertexts and plaintexts enter it by rns.residues, and ciphertexts leave it by rns.ciphertext."
        => OpDef::new(
            &[many("inputs", OperandKind::RingValue)],
            &[],
            "what the region yields",
            fused,
            "rns.fused(%r, %s) { (%x, %y): %z = rns.mul %x, %y %w = rns.neg %z yield %w, %z }",
        )
        .depending(Dependence::ALL)
        .with_region();
}

type Types = Result<Vec<Type>, InferError>;

fn one(residues: ResiduesRef<'_>) -> Types {
    Ok(vec![residues.to_type()])
}

fn need_domain(x: &ResiduesRef<'_>, domain: Domain, instead: &str) -> Result<(), InferError> {
    if x.domain != domain {
        return Err(InferError::malformed(format!(
            "the operand is in the {} domain, expected the {domain} domain; {instead}",
            x.domain
        )));
    }
    Ok(())
}

/// The level of residues by Q.
fn need_q(x: &ResiduesRef<'_>) -> Result<usize, InferError> {
    match x.basis {
        Basis::Q { level } => Ok(level),
        other => Err(InferError::malformed(format!(
            "the operand has basis {other}, expected Q(level)"
        ))),
    }
}

fn need_one_part(x: &ResiduesRef<'_>) -> Result<(), InferError> {
    if x.parts != 1 {
        return Err(InferError::malformed(format!(
            "the operand has {} parts, expected 1; take one with rns.extract_part",
            x.parts
        )));
    }
    Ok(())
}

fn residues(call: &Call<'_>) -> Types {
    let known = match call.operands.first() {
        Some(Type::Ciphertext { batch, state }) => state
            .as_ref()
            .map(|state| (batch, state.level, state.parts)),
        Some(Type::Plaintext { batch, state }) => {
            state.as_ref().map(|state| (batch, state.level, 1))
        }
        _ => None,
    };
    let Some((batch, level, parts)) = known else {
        return Err(InferError::malformed(
            "the operand has no level; it must be decided before the rns level",
        ));
    };
    one(ResiduesRef {
        batch,
        parts,
        basis: Basis::Q { level },
        domain: Domain::Ntt,
    })
}

fn ciphertext(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    let level = need_q(&x)?;
    need_domain(&x, Domain::Ntt, "apply rns.ntt")?;
    if x.parts < 2 {
        return Err(InferError::malformed(
            "the operand has 1 part; a ciphertext has 2 or 3",
        ));
    }
    let scale = call.scale("scale")?.clone();
    call.chain()?
        .check_encoding("rns.ciphertext", level, &scale)?;
    let state = CipherState {
        level,
        scale,
        parts: x.parts,
    };
    Ok(vec![Type::ciphertext(x.batch, state)])
}

fn ntt(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    need_domain(&x, Domain::Coefficient, "it is transformed already")?;
    one(ResiduesRef {
        domain: Domain::Ntt,
        ..x
    })
}

fn intt(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    need_domain(&x, Domain::Ntt, "it is transformed already")?;
    one(ResiduesRef {
        domain: Domain::Coefficient,
        ..x
    })
}

/// The type of an elementwise operation: one basis and one domain; the parts as they come.
fn combine<'a>(
    x: ResiduesRef<'a>,
    y: ResiduesRef<'_>,
    batch: &'a mut Vec<usize>,
) -> Result<ResiduesRef<'a>, InferError> {
    if x.domain != y.domain {
        return Err(InferError::malformed(format!(
            "the operands are in two domains, {} and {}; transform one of them",
            x.domain, y.domain
        )));
    }
    if x.basis != y.basis {
        return Err(InferError::malformed(format!(
            "the operands have two bases, {} and {}; elementwise operations need one",
            x.basis, y.basis
        )));
    }
    *batch = shape::broadcast(x.batch, y.batch)?;
    Ok(ResiduesRef { batch, ..x })
}

/// The type of a sum: an operand of fewer parts has zeros for the others.
fn sum<'a>(
    x: ResiduesRef<'a>,
    y: ResiduesRef<'_>,
    batch: &'a mut Vec<usize>,
) -> Result<ResiduesRef<'a>, InferError> {
    let parts = x.parts.max(y.parts);
    Ok(ResiduesRef {
        parts,
        ..combine(x, y, batch)?
    })
}

fn product<'a>(
    x: ResiduesRef<'a>,
    y: ResiduesRef<'_>,
    batch: &'a mut Vec<usize>,
) -> Result<ResiduesRef<'a>, InferError> {
    if x.parts != y.parts && x.parts != 1 && y.parts != 1 {
        return Err(InferError::malformed(format!(
            "the operands have {} and {} parts, which must be equal or 1",
            x.parts, y.parts
        )));
    }
    need_domain(&x, Domain::Ntt, "products are taken of NTT values")?;
    let parts = x.parts.max(y.parts);
    Ok(ResiduesRef {
        parts,
        ..combine(x, y, batch)?
    })
}

fn linear(call: &Call<'_>) -> Types {
    one(sum(call.residues(0)?, call.residues(1)?, &mut Vec::new())?)
}

fn unchanged(call: &Call<'_>) -> Types {
    one(call.residues(0)?)
}

fn mul(call: &Call<'_>) -> Types {
    one(product(
        call.residues(0)?,
        call.residues(1)?,
        &mut Vec::new(),
    )?)
}

fn mul_add(call: &Call<'_>) -> Types {
    let mut batch = Vec::new();
    let product = product(call.residues(0)?, call.residues(1)?, &mut batch)?;
    one(sum(product, call.residues(2)?, &mut Vec::new())?)
}

fn decompose(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    need_domain(&x, Domain::Coefficient, "apply rns.intt")?;
    need_one_part(&x)?;
    let level = need_q(&x)?;
    let (digit, size) = (call.count("digit")?, call.count("size")?);
    let start = digit.saturating_mul(size);
    if size == 0 || start > level {
        return Err(InferError::value(format!(
            "digit {digit} of {size} primes does not exist among the {} primes of level {level}",
            level + 1
        )));
    }
    let end = start.saturating_add(size).min(level + 1);
    one(ResiduesRef {
        basis: Basis::Digit { level, start, end },
        ..x
    })
}

fn extend_basis(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    need_domain(&x, Domain::Coefficient, "apply rns.intt")?;
    let Basis::Digit { level, .. } = x.basis else {
        return Err(InferError::malformed(format!(
            "the operand has basis {}, expected a digit; apply rns.decompose",
            x.basis
        )));
    };
    one(ResiduesRef {
        basis: Basis::QP { level },
        ..x
    })
}

fn need_qp(x: &ResiduesRef<'_>) -> Result<usize, InferError> {
    match x.basis {
        Basis::QP { level } => Ok(level),
        other => Err(InferError::malformed(format!(
            "the operand has basis {other}, expected QP(level)"
        ))),
    }
}

fn key_product(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    need_qp(&x)?;
    need_domain(&x, Domain::Ntt, "apply rns.ntt")?;
    need_one_part(&x)?;
    call.count("digit")?;
    one(ResiduesRef { parts: 2, ..x })
}

fn reduce_basis(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    let level = need_qp(&x)?;
    one(ResiduesRef {
        basis: Basis::Q { level },
        ..x
    })
}

fn automorphism(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    let galois = call.int("galois")?;
    let bound = 2 * call.chain()?.n() as i64;
    if galois % 2 == 0 || !(1..bound).contains(&galois) {
        return Err(InferError::value(format!(
            "galois is {galois}; it must be odd and from 1 to {}",
            bound - 1
        )));
    }
    one(x)
}

fn rescale(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    let level = need_q(&x)?;
    let Some(level) = level.checked_sub(1) else {
        return Err(InferError::value(
            "the operand is at level 0, which has no prime to divide by",
        ));
    };
    one(ResiduesRef {
        basis: Basis::Q { level },
        ..x
    })
}

fn drop_limbs(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    let (level, count) = (need_q(&x)?, call.count("count")?);
    let Some(level) = level.checked_sub(count) else {
        return Err(InferError::value(format!(
            "{count} limbs cannot be dropped at level {level}: the last one stays"
        )));
    };
    one(ResiduesRef {
        basis: Basis::Q { level },
        ..x
    })
}

fn extract_part(call: &Call<'_>) -> Types {
    let x = call.residues(0)?;
    let part = call.count("part")?;
    if part >= x.parts {
        return Err(InferError::value(format!(
            "part {part} does not exist: the operand has {} parts",
            x.parts
        )));
    }
    one(ResiduesRef { parts: 1, ..x })
}

fn pack(call: &Call<'_>) -> Types {
    let first = call.residues(0)?;
    if call.operands.len() > 3 {
        return Err(InferError::malformed(format!(
            "{} operands were given; 3 parts are the most",
            call.operands.len()
        )));
    }
    for place in 0..call.operands.len() {
        let x = call.residues(place)?;
        need_one_part(&x)?;
        if (x.basis, x.domain, x.batch) != (first.basis, first.domain, first.batch) {
            return Err(InferError::malformed(format!(
                "operand {place} is {}, the first is {}; parts have one basis, domain and batch",
                x.to_type(),
                first.to_type()
            )));
        }
    }
    one(ResiduesRef {
        parts: call.operands.len(),
        ..first
    })
}

fn fused(call: &Call<'_>) -> Types {
    let Some(region) = call.region else {
        return Err(InferError::malformed("the region is missing"));
    };
    if region.arguments().len() != call.operands.len() {
        return Err(InferError::malformed(format!(
            "the region takes {} arguments, but there are {} operands",
            region.arguments().len(),
            call.operands.len()
        )));
    }
    for (argument, operand) in region.arguments().zip(call.operands) {
        if region.type_of(argument) != *operand {
            return Err(InferError::malformed(format!(
                "argument {} of the region has type {}, its operand {operand}",
                argument.index(),
                region.type_of(argument)
            )));
        }
    }
    if let Some(op) = region.ops().iter().find(|op| !may_fuse(op.kind())) {
        return Err(InferError::malformed(format!(
            "{} cannot be inside a region: only rns operations on residues and keys can",
            op.kind()
        )));
    }
    if region.results().is_empty() {
        return Err(InferError::malformed("the region yields nothing"));
    }
    let results = region.results().iter();
    Ok(results
        .map(|&value| region.type_of(value).clone())
        .collect())
}

/// Whether an operation may stand in a fused region.
fn may_fuse(kind: OpKind) -> bool {
    match kind {
        OpKind::Rns(op) => !matches!(op, Rns::Fused),
        _ => false,
    }
}
