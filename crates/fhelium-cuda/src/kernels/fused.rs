//! Fused sums and multiples: kernels/cuda/fused.cu.

use super::{Basis, Core, Kernel, Kernels, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;
use fhelium_ckks::{LinearFactor, LinearProgram, LinearStep, LinearTerm, LinearValue};

const OPERANDS: usize = LinearProgram::LIMITS.operands;
const RESULTS: usize = LinearProgram::LIMITS.results;
const STEPS: usize = LinearProgram::LIMITS.steps;
const INTEGERS: usize = LinearProgram::LIMITS.integers;

/// `Fused` in fused.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Fused {
    pub primes: u64,
    pub operands: [u64; OPERANDS],
    pub results: [u64; RESULTS],
    integers: [i64; INTEGERS],
    shapes: [u32; OPERANDS],
    steps: [u32; STEPS],
    pub basis: Basis,
    result_parts: u32,
    count: u32,
    log_n: u32,
    unused: u32,
}

arguments!(Fused, 1512, [primes; operands OPERANDS, results RESULTS]);

/// Codes of actions, and of what is no operand, in fused.cu.
const SET: u32 = 0;
const ADD: u32 = 1;
const SUBTRACT: u32 = 2;
const NEGATE: u32 = 3;
const MULTIPLY: u32 = 4;
const GIVE: u32 = 5;
const REGISTER: u32 = 0x80;
const INTEGER: u32 = 0xC0;
const NONE: u32 = 0xFF;

impl Fused {
    /// The arguments of a program without its buffers.
    pub fn new(program: &LinearProgram, primes: u64, basis: Basis, log_n: u32) -> Self {
        let mut fused = Fused {
            primes,
            operands: [0; OPERANDS],
            results: [0; RESULTS],
            integers: [0; INTEGERS],
            shapes: [0; OPERANDS],
            steps: [0; STEPS],
            basis,
            result_parts: 0,
            count: program.steps().len() as u32,
            log_n,
            unused: 0,
        };
        for (place, &parts) in program.result_parts().iter().enumerate() {
            fused.result_parts |= (parts as u32) << (4 * place);
        }
        let mut integers = 0;
        for (place, &step) in program.steps().iter().enumerate() {
            fused.steps[place] = fused.step(step, &mut integers);
        }
        fused
    }

    /// Says of operand `place` how many limbs and parts it has, and whether each batch element has
    /// its own.
    pub fn shape(&mut self, place: usize, limbs: usize, parts: usize, is_batch: bool) {
        self.shapes[place] = limbs as u32 | (parts as u32) << 16 | u32::from(is_batch) << 24;
    }

    fn step(&mut self, step: LinearStep, integers: &mut usize) -> u32 {
        let (action, register, term) = match step {
            LinearStep::Set(register, term) => (SET, register, term),
            LinearStep::Add(register, term) => (ADD, register, term),
            LinearStep::Subtract(register, term) => (SUBTRACT, register, term),
            LinearStep::Negate(register) => {
                return NEGATE | u32::from(register) << 8 | NONE << 16 | NONE << 24;
            }
            LinearStep::Multiply(register, factor) => {
                let factor = self.factor(Some(factor), integers);
                return MULTIPLY | u32::from(register) << 8 | NONE << 16 | factor << 24;
            }
            LinearStep::Give(register, result) => {
                let result = u32::from(result) << 16;
                return GIVE | u32::from(register) << 8 | result | NONE << 24;
            }
        };
        let LinearTerm {
            value: read,
            factor,
        } = term;
        let factor = self.factor(factor, integers);
        action | u32::from(register) << 8 | value(read) << 16 | factor << 24
    }

    fn factor(&mut self, factor: Option<LinearFactor>, integers: &mut usize) -> u32 {
        match factor {
            None => NONE,
            Some(LinearFactor::Value(read)) => value(read),
            Some(LinearFactor::Integer(integer)) => {
                let place = *integers;
                *integers += 1;
                self.integers[place] = integer;
                INTEGER + place as u32
            }
        }
    }
}

fn value(value: LinearValue) -> u32 {
    match value {
        LinearValue::Operand(operand) => u32::from(operand),
        LinearValue::Register(register) => REGISTER + u32::from(register),
    }
}

const THREADS: u32 = 128;

/// By registers, one or all, and by parts, two or three.
pub(super) struct FusedKernels([[Kernel<Fused>; 2]; 2]);

impl FusedKernels {
    pub fn load(device: &Device, core: Core) -> Result<Self> {
        let load = |registers: usize, parts: usize| {
            let name = format!("fused_{registers}_{parts}_{}", core.suffix());
            Kernel::load(device, "fused", &name, THREADS)
        };
        let all = LinearProgram::LIMITS.registers;
        Ok(FusedKernels([
            [load(1, 2)?, load(1, 3)?],
            [load(all, 2)?, load(all, 3)?],
        ]))
    }
}

impl Kernels {
    /// Runs a program for `batch` elements; the arguments are its own.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn fused(
        &self,
        queue: &Queue,
        program: &LinearProgram,
        batch: usize,
        arguments: &Fused,
    ) -> Result<()> {
        let [one, all] = &self.fused.0;
        let by_parts = if program.registers() == 1 { one } else { all };
        let kernel = &by_parts[usize::from(program.parts() > 2)];
        let tiles = (1 << self.log_n) / (2 * THREADS);
        let grid = [tiles, arguments.basis.limbs, batch as u32];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, 0, arguments) }
    }
}
