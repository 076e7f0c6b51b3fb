//! Sums, differences and multiples of several polynomials as one straight-line program.
//!
//! The compiler makes such a program of a fused group, and the kernels of the host and of a GPU run
//! it over every residue: each operand is read once for each step that names it and nothing but
//! results is written.

use std::error::Error;
use std::fmt;

/// What a [`LinearProgram`] may hold at the most: what a GPU's kernel takes by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearLimits {
    /// Operands.
    pub operands: usize,
    /// Results.
    pub results: usize,
    /// Registers, each of which holds all parts of a value.
    pub registers: usize,
    /// Steps.
    pub steps: usize,
    /// Factors that are integers.
    pub integers: usize,
}

/// A sum of products, integer multiples and plain values of ciphertexts and plaintexts, residue by
/// residue, with intermediate values in registers.
///
/// A value has up to three parts; those that it lacks are zero. So a plaintext, which has one, is
/// added to the first part of a ciphertext, and as a factor multiplies every part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearProgram {
    operand_parts: Vec<usize>,
    result_parts: Vec<usize>,
    registers: usize,
    steps: Vec<LinearStep>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearStep {
    /// `register = term`.
    Set(u8, LinearTerm),
    /// `register += term`.
    Add(u8, LinearTerm),
    /// `register -= term`.
    Subtract(u8, LinearTerm),
    /// `register = -register`.
    Negate(u8),
    /// `register *= factor`.
    Multiply(u8, LinearFactor),
    /// A result is a register: the register, then which result.
    Give(u8, u8),
}

/// A value, or its product with a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearTerm {
    /// The value.
    pub value: LinearValue,
    /// What it is multiplied by.
    pub factor: Option<LinearFactor>,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearValue {
    /// An operand.
    Operand(u8),
    /// A register.
    Register(u8),
}

/// What a value is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearFactor {
    /// A value of one part.
    Value(LinearValue),
    /// An integer.
    Integer(i64),
}

/// Steps that are no [`LinearProgram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearError(String);

impl fmt::Display for LinearError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for LinearError {}

impl LinearTerm {
    /// A value as it is.
    pub fn of(value: LinearValue) -> Self {
        LinearTerm {
            value,
            factor: None,
        }
    }

    /// A value times a factor.
    pub fn product(value: LinearValue, factor: LinearFactor) -> Self {
        LinearTerm {
            value,
            factor: Some(factor),
        }
    }
}

impl LinearProgram {
    /// What a program may hold.
    pub const LIMITS: LinearLimits = LinearLimits {
        operands: 64,
        results: 8,
        registers: 4,
        steps: 128,
        integers: 16,
    };

    /// A program over operands of so many parts each.
    ///
    /// # Errors
    /// [`LinearError`] beyond the limits, for a register that is read before it is set or changed by
    /// itself, for an operand that is not there, for a factor of several parts, and where results are not numbered
    /// from 0, each given once.
    pub fn new(operand_parts: Vec<usize>, steps: Vec<LinearStep>) -> Result<Self, LinearError> {
        let limits = Self::LIMITS;
        let bounded = |what: &str, found: usize, most: usize| match found <= most {
            true => Ok(()),
            false => Err(LinearError(format!("{found} {what}, at most {most}"))),
        };
        bounded("operands", operand_parts.len(), limits.operands)?;
        bounded("steps", steps.len(), limits.steps)?;
        if let Some(parts) = operand_parts.iter().find(|parts| !(1..=3).contains(*parts)) {
            return Err(LinearError(format!(
                "an operand of {parts} parts, not 1 to 3"
            )));
        }
        let mut check = Check {
            operand_parts: &operand_parts,
            registers: [None; Self::LIMITS.registers],
            used: 0,
            integers: 0,
            results: [None; Self::LIMITS.results],
        };
        for &step in &steps {
            check.step(step)?;
        }
        bounded("integer factors", check.integers, limits.integers)?;
        let result_parts: Vec<usize> = check.results.iter().map_while(|parts| *parts).collect();
        let given = check.results.iter().flatten().count();
        if result_parts.is_empty() || result_parts.len() < given {
            return Err(LinearError(format!(
                "{given} results that are not numbered from 0, expected one at least"
            )));
        }
        Ok(LinearProgram {
            registers: check.used,
            result_parts,
            operand_parts,
            steps,
        })
    }

    /// The parts of each operand.
    pub fn operand_parts(&self) -> &[usize] {
        &self.operand_parts
    }

    /// The parts of each result.
    pub fn result_parts(&self) -> &[usize] {
        &self.result_parts
    }

    /// The most parts of any value.
    pub fn parts(&self) -> usize {
        let all = self.operand_parts.iter().chain(&self.result_parts);
        all.copied().max().unwrap_or(0)
    }

    /// Registers in use: those below this number.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// The steps.
    pub fn steps(&self) -> &[LinearStep] {
        &self.steps
    }
}

/// What is known after some steps.
struct Check<'a> {
    operand_parts: &'a [usize],
    /// The parts of each register that is set.
    registers: [Option<usize>; LinearProgram::LIMITS.registers],
    used: usize,
    integers: usize,
    results: [Option<usize>; LinearProgram::LIMITS.results],
}

impl Check<'_> {
    const RESULTS: usize = LinearProgram::LIMITS.results;

    fn step(&mut self, step: LinearStep) -> Result<(), LinearError> {
        let (changed, read) = match step {
            LinearStep::Set(register, term)
            | LinearStep::Add(register, term)
            | LinearStep::Subtract(register, term) => (
                register,
                [Some(LinearFactor::Value(term.value)), term.factor],
            ),
            LinearStep::Multiply(register, factor) => (register, [Some(factor), None]),
            LinearStep::Negate(register) | LinearStep::Give(register, _) => {
                (register, [None, None])
            }
        };
        let itself = LinearFactor::Value(LinearValue::Register(changed));
        if read.contains(&Some(itself)) {
            return Err(LinearError(format!(
                "a step that changes register {changed} by itself"
            )));
        }
        match step {
            LinearStep::Set(register, term) => {
                let parts = self.term(term)?;
                self.set(register, parts)
            }
            LinearStep::Add(register, term) | LinearStep::Subtract(register, term) => {
                let parts = self.term(term)?.max(self.register(register)?);
                self.set(register, parts)
            }
            LinearStep::Negate(register) => self.register(register).map(drop),
            LinearStep::Multiply(register, factor) => {
                self.register(register)?;
                self.factor(factor)
            }
            LinearStep::Give(register, result) => {
                let parts = self.register(register)?;
                let most = Self::RESULTS;
                let slot = self.results.get_mut(usize::from(result));
                let slot = slot.ok_or_else(|| {
                    LinearError(format!("no result {result}: there are at most {most}"))
                })?;
                match slot.replace(parts) {
                    None => Ok(()),
                    Some(_) => Err(LinearError(format!("result {result} is given twice"))),
                }
            }
        }
    }

    fn set(&mut self, register: u8, parts: usize) -> Result<(), LinearError> {
        let slot = self.registers.get_mut(usize::from(register));
        let slot = slot.ok_or_else(|| LinearError(format!("no register {register}")))?;
        *slot = Some(parts);
        self.used = self.used.max(usize::from(register) + 1);
        Ok(())
    }

    fn register(&self, register: u8) -> Result<usize, LinearError> {
        let known = self.registers.get(usize::from(register)).copied().flatten();
        known.ok_or_else(|| LinearError(format!("register {register} is read before it is set")))
    }

    fn value(&self, value: LinearValue) -> Result<usize, LinearError> {
        match value {
            LinearValue::Register(register) => self.register(register),
            LinearValue::Operand(operand) => {
                let known = self.operand_parts.get(usize::from(operand)).copied();
                known.ok_or_else(|| LinearError(format!("no operand {operand}")))
            }
        }
    }

    fn term(&mut self, term: LinearTerm) -> Result<usize, LinearError> {
        if let Some(factor) = term.factor {
            self.factor(factor)?;
        }
        self.value(term.value)
    }

    fn factor(&mut self, factor: LinearFactor) -> Result<(), LinearError> {
        match factor {
            LinearFactor::Integer(_) => self.integers += 1,
            LinearFactor::Value(value) => match self.value(value)? {
                1 => {}
                parts => {
                    return Err(LinearError(format!(
                        "a factor of {parts} parts, expected 1"
                    )));
                }
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: LinearValue = LinearValue::Operand(0);
    const P: LinearValue = LinearValue::Operand(1);

    fn made(steps: &[LinearStep]) -> Result<LinearProgram, LinearError> {
        LinearProgram::new(vec![2, 1, 3], steps.to_vec())
    }

    fn refusal(steps: &[LinearStep]) -> String {
        made(steps).unwrap_err().to_string()
    }

    #[test]
    fn parts_are_those_of_the_longest_term() {
        let product = LinearTerm::product(X, LinearFactor::Value(P));
        let program = made(&[
            LinearStep::Set(1, LinearTerm::of(P)),
            LinearStep::Give(1, 1),
            LinearStep::Add(1, product),
            LinearStep::Give(1, 0),
            LinearStep::Subtract(1, LinearTerm::of(LinearValue::Operand(2))),
            LinearStep::Give(1, 2),
        ])
        .unwrap();
        assert_eq!(program.result_parts(), [2, 1, 3]);
        assert_eq!((program.registers(), program.parts()), (2, 3));
    }

    #[test]
    fn what_no_kernel_can_run_is_refused() {
        let set = |register| LinearStep::Set(register, LinearTerm::of(X));
        let give = LinearStep::Give(0, 0);
        assert!(refusal(&[set(0)]).contains("0 results"));
        assert!(refusal(&[set(0), give, give]).contains("result 0 is given twice"));
        assert!(refusal(&[set(0), LinearStep::Give(0, 1)]).contains("not numbered from 0"));
        assert!(refusal(&[give]).contains("register 0 is read before it is set"));
        assert!(refusal(&[set(4), give]).contains("no register 4"));
        assert!(refusal(&vec![set(0); 129]).contains("129 steps, at most 128"));
        assert!(refusal(&[set(0), LinearStep::Give(0, 8)]).contains("no result 8"));
        let itself = LinearTerm::of(LinearValue::Register(0));
        assert!(refusal(&[set(0), LinearStep::Add(0, itself)]).contains("register 0 by itself"));
        let factor = |factor| LinearStep::Multiply(0, factor);
        let wide = factor(LinearFactor::Value(X));
        assert!(refusal(&[set(0), wide, give]).contains("a factor of 2 parts"));
        let integers: Vec<_> = [set(0)]
            .into_iter()
            .chain([factor(LinearFactor::Integer(3)); 17])
            .chain([give])
            .collect();
        assert!(refusal(&integers).contains("17 integer factors"));
        let absent = LinearStep::Set(0, LinearTerm::of(LinearValue::Operand(3)));
        assert!(refusal(&[absent, give]).contains("no operand 3"));
        let operands = LinearProgram::new(vec![2; 65], vec![set(0), give]).unwrap_err();
        assert!(operands.to_string().contains("65 operands"));
        let parts = LinearProgram::new(vec![4], vec![set(0), give]).unwrap_err();
        assert!(parts.to_string().contains("an operand of 4 parts"));
    }
}
