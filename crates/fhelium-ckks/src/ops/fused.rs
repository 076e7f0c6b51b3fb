//! Sums, differences and multiples of several ciphertexts and plaintexts at once.

use crate::arith::Limb;
use crate::context::Context;
use crate::error::{CkksError, Result};
use crate::keys::SecretId;
use crate::values::{Ciphertext, Plaintext, batch_size, checked_size};
use fhelium_state::{
    CipherState, LinearFactor, LinearProgram, LinearStep, LinearTerm, LinearValue,
};

/// An operand of a [`LinearProgram`], by the types that values have where it runs.
#[derive(Clone, Copy, Debug)]
pub enum Encoded<'a, C = Ciphertext, P = Plaintext> {
    /// A ciphertext.
    Ciphertext(&'a C),
    /// A plaintext.
    Plaintext(&'a P),
}

/// What a result of a [`LinearProgram`] is to be.
///
/// The program only says which residues are added and multiplied; level and scale follow from the
/// rules of the operations that it stands for, and are the caller's to know.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearResult {
    /// Level, scale and parts.
    pub state: CipherState,
    /// The batch axes.
    pub batch_shape: Vec<usize>,
}

/// The shape of an operand, for [`linear_shape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearOperand {
    /// Its polynomials.
    pub parts: usize,
    /// Its level.
    pub level: usize,
    /// Its batch elements.
    pub items: usize,
}

/// The limbs and batch elements that a program runs over.
///
/// # Errors
/// [`CkksError::Shape`] where operands or results are not the program's, where results differ in
/// level or number, or where an operand has a lower level or another number of batch elements, 1
/// apart.
pub fn linear_shape(
    program: &LinearProgram,
    operands: &[LinearOperand],
    results: &[LinearResult],
) -> Result<(usize, usize)> {
    let refused = |found: String, expected: String| CkksError::Shape {
        operation: "fused",
        found,
        expected,
    };
    let parts: Vec<usize> = operands.iter().map(|operand| operand.parts).collect();
    if parts != program.operand_parts() {
        return Err(refused(
            format!("operands of {parts:?} parts"),
            format!("{:?}", program.operand_parts()),
        ));
    }
    let parts: Vec<usize> = results.iter().map(|result| result.state.parts).collect();
    if parts != program.result_parts() || parts.iter().any(|&parts| parts < 2) {
        return Err(refused(
            format!("results of {parts:?} parts"),
            format!("ciphertexts of {:?} parts", program.result_parts()),
        ));
    }
    let of = |result: &LinearResult| (result.state.level, checked_size(&result.batch_shape));
    let (level, items) = of(&results[0]);
    let Some(items) = items.filter(|_| results.iter().all(|other| of(other) == (level, items)))
    else {
        return Err(refused(
            format!("{results:?}"),
            "results of one level and as many batch elements".to_owned(),
        ));
    };
    if let Some(operand) = operands
        .iter()
        .find(|operand| operand.level < level || (operand.items != items && operand.items != 1))
    {
        return Err(refused(
            format!(
                "an operand of level {} and {} items",
                operand.level, operand.items
            ),
            format!("level {level} or more, and {items} items or 1"),
        ));
    }
    Ok((level + 1, items))
}

/// Residues that go through all steps before the next ones: few enough for those of the registers to
/// stay in the second-level cache, and so many that each operand is read in long runs. Runs of a few
/// pages take memory up to twice the time.
const CHUNK: usize = 1 << 13;

/// One operand's residues.
struct Source<'a> {
    data: &'a [u64],
    limbs: usize,
    parts: usize,
    items: usize,
}

impl Context {
    /// Runs a program over every residue, in one pass over memory: the residues of its operations one
    /// by one.
    ///
    /// # Errors
    /// [`linear_shape`]'s; values of different parameters or secrets; no ciphertext among the
    /// operands.
    pub fn fused(
        &self,
        program: &LinearProgram,
        operands: &[Encoded<'_>],
        results: &[LinearResult],
    ) -> Result<Vec<Ciphertext>> {
        let secret = self.check_operands(operands)?;
        let sources: Vec<Source<'_>> = operands.iter().map(Source::of).collect();
        let shapes: Vec<LinearOperand> = sources.iter().map(Source::shape).collect();
        let (limbs, items) = linear_shape(program, &shapes, results)?;
        let n = self.n();
        let mut made = Vec::with_capacity(results.len());
        for result in results {
            let words = items * result.state.parts * limbs * n;
            made.push(Ciphertext {
                parameters: self.parameters().id(),
                secret,
                state: result.state.clone(),
                batch_shape: result.batch_shape.clone(),
                data: self.result_buffer("fused", words)?,
            });
        }
        let block = n.min(CHUNK);
        let blocks = n / block;
        // The pieces of each result's parts, by batch element, limb and block.
        let mut pieces: Vec<Vec<&mut [u64]>> = Vec::new();
        pieces.resize_with(items * limbs * blocks, Vec::new);
        for ciphertext in &mut made {
            let parts = ciphertext.state.parts;
            for (index, piece) in ciphertext.data.chunks_exact_mut(block).enumerate() {
                let (polynomial, block) = (index / blocks, index % blocks);
                let (item, limb) = (polynomial / limbs / parts, polynomial % limbs);
                pieces[(item * limbs + limb) * blocks + block].push(piece);
            }
        }
        let pieces = pieces.into_iter().enumerate().collect();
        self.each(pieces, |(index, out): (usize, Vec<&mut [u64]>)| {
            let (polynomial, piece) = (index / blocks, index % blocks);
            let (item, limb) = (polynomial / limbs, polynomial % limbs);
            let mut run = Run {
                program,
                ring: &self.limbs()[limb],
                sources: &sources,
                item,
                start: limb * n + piece * block,
                n,
                len: block,
                registers: vec![vec![0; program.parts() * block]; program.registers()],
                parts: vec![0; program.registers()],
                product: Vec::new(),
            };
            run.steps(out);
        });
        Ok(made)
    }

    fn check_operands(&self, operands: &[Encoded<'_>]) -> Result<SecretId> {
        let mut first: Option<&Ciphertext> = None;
        for operand in operands {
            match *operand {
                Encoded::Ciphertext(ciphertext) => {
                    self.check_pair("fused", first.unwrap_or(ciphertext), ciphertext)?;
                    first = first.or(Some(ciphertext));
                }
                Encoded::Plaintext(plaintext) => {
                    self.parameters()
                        .check_id("fused", "plaintext", plaintext.parameters)?;
                }
            }
        }
        first
            .map(|ciphertext| ciphertext.secret)
            .ok_or_else(|| CkksError::Shape {
                operation: "fused",
                found: "no ciphertext".to_owned(),
                expected: "one at least among the operands".to_owned(),
            })
    }
}

impl<'a> Source<'a> {
    fn of(operand: &Encoded<'a>) -> Self {
        match *operand {
            Encoded::Ciphertext(x) => Source {
                data: &x.data,
                limbs: x.state.level + 1,
                parts: x.state.parts,
                items: batch_size(&x.batch_shape),
            },
            Encoded::Plaintext(p) => Source {
                data: &p.data,
                limbs: p.state.level + 1,
                parts: 1,
                items: batch_size(&p.batch_shape),
            },
        }
    }

    fn shape(&self) -> LinearOperand {
        LinearOperand {
            parts: self.parts,
            level: self.limbs - 1,
            items: self.items,
        }
    }
}

/// A run over some residues of one limb of one batch element.
struct Run<'a> {
    program: &'a LinearProgram,
    ring: &'a Limb,
    sources: &'a [Source<'a>],
    item: usize,
    /// Words from the start of a polynomial.
    start: usize,
    n: usize,
    /// How many.
    len: usize,
    /// The parts of each register, one after the other.
    registers: Vec<Vec<u64>>,
    /// How many of them there are.
    parts: Vec<usize>,
    /// A product that is to be subtracted, once there is one.
    product: Vec<u64>,
}

/// What a step does with a term.
#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Set,
    Add,
    Subtract,
}

impl Run<'_> {
    fn steps(&mut self, mut out: Vec<&mut [u64]>) {
        let len = self.len;
        // Where the pieces of each result begin.
        let firsts: Vec<usize> = (self.program.result_parts().iter())
            .scan(0, |next, parts| {
                Some(std::mem::replace(next, *next + parts))
            })
            .collect();
        for &step in self.program.steps() {
            match step {
                LinearStep::Set(at, term) => self.term(at, Effect::Set, term),
                LinearStep::Add(at, term) => self.term(at, Effect::Add, term),
                LinearStep::Subtract(at, term) => self.term(at, Effect::Subtract, term),
                LinearStep::Negate(at) => {
                    let at = usize::from(at);
                    for part in 0..self.parts[at] {
                        let register = &mut self.registers[at][part * len..][..len];
                        self.ring.neg_assign(register);
                    }
                }
                LinearStep::Multiply(at, factor) => self.multiply(at, factor),
                LinearStep::Give(at, result) => {
                    let (at, result) = (usize::from(at), usize::from(result));
                    for part in 0..self.program.result_parts()[result] {
                        let register = &self.registers[at][part * len..][..len];
                        out[firsts[result] + part].copy_from_slice(register);
                    }
                }
            }
        }
    }

    /// The residues of a part of a value.
    fn value(&self, value: LinearValue, part: usize) -> &[u64] {
        let len = self.len;
        match value {
            LinearValue::Register(at) => &self.registers[usize::from(at)][part * len..][..len],
            LinearValue::Operand(at) => {
                let source = &self.sources[usize::from(at)];
                let item = if source.items == 1 { 0 } else { self.item };
                let polynomial = (item * source.parts + part) * source.limbs * self.n;
                &source.data[polynomial + self.start..][..len]
            }
        }
    }

    fn value_parts(&self, value: LinearValue) -> usize {
        match value {
            LinearValue::Register(at) => self.parts[usize::from(at)],
            LinearValue::Operand(at) => self.sources[usize::from(at)].parts,
        }
    }

    fn term(&mut self, at: u8, effect: Effect, term: LinearTerm) {
        let (at, len) = (usize::from(at), self.len);
        // No step changes a register by itself, so that the others are all that it reads.
        let mut register = std::mem::take(&mut self.registers[at]);
        let mut product = std::mem::take(&mut self.product);
        let parts = self.value_parts(term.value);
        for part in 0..parts {
            let out = &mut register[part * len..][..len];
            let value = self.value(term.value, part);
            if effect == Effect::Set || part >= self.parts[at] {
                // A part that the register lacks is zero.
                self.scaled(out, value, term.factor);
                if effect == Effect::Subtract {
                    self.ring.neg_assign(out);
                }
                continue;
            }
            match (effect, term.factor) {
                (Effect::Subtract, None) => self.ring.sub_assign(out, value),
                (_, None) => self.ring.add_assign(out, value),
                (effect, Some(LinearFactor::Integer(factor))) => {
                    let modulus = self.ring.modulus();
                    let factor = modulus.from_i64(factor);
                    let factor = match effect {
                        Effect::Subtract => modulus.neg(factor),
                        Effect::Set | Effect::Add => factor,
                    };
                    self.ring.mul_scalar_add_assign(out, value, factor);
                }
                (Effect::Subtract, factor) => {
                    product.resize(len, 0);
                    self.scaled(&mut product, value, factor);
                    self.ring.sub_assign(out, &product);
                }
                (_, Some(LinearFactor::Value(factor))) => {
                    let factor = self.value(factor, 0);
                    self.ring.mul_add_assign(out, value, factor);
                }
            }
        }
        self.parts[at] = match effect {
            Effect::Set => parts,
            Effect::Add | Effect::Subtract => parts.max(self.parts[at]),
        };
        self.registers[at] = register;
        self.product = product;
    }

    /// out = value, times the factor if there is one.
    fn scaled(&self, out: &mut [u64], value: &[u64], factor: Option<LinearFactor>) {
        match factor {
            None => out.copy_from_slice(value),
            Some(LinearFactor::Value(factor)) => {
                let factor = self.value(factor, 0);
                self.ring.mul(out, value, factor);
            }
            Some(LinearFactor::Integer(factor)) => {
                let factor = self.ring.modulus().from_i64(factor);
                self.ring.mul_scalar(out, value, factor);
            }
        }
    }

    fn multiply(&mut self, at: u8, factor: LinearFactor) {
        let (at, len) = (usize::from(at), self.len);
        let mut register = std::mem::take(&mut self.registers[at]);
        for part in 0..self.parts[at] {
            let out = &mut register[part * len..][..len];
            match factor {
                LinearFactor::Value(factor) => {
                    let factor = self.value(factor, 0);
                    self.ring.mul_assign(out, factor);
                }
                LinearFactor::Integer(factor) => {
                    let factor = self.ring.modulus().from_i64(factor);
                    self.ring.mul_scalar_assign(out, factor);
                }
            }
        }
        self.registers[at] = register;
    }
}
