//! Sums and means, adding in the CPU's order, which is numpy's.
//!
//! numpy walks an array in memory order, the longest strides outermost. Summed axes that are
//! innermost give runs, added pairwise; what further summed axes bring is added to that, one run
//! after the other. Axes that memory does not join numpy copies to a buffer of 8192 elements, which
//! bounds their runs. Results are added side by side, and a run of more than one leaf's elements as
//! a tree; runs of one result follow each other, so that few results of many short runs take long.

use super::Tensor;
use super::elementwise::Choice;
use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::kernels::{BLOCK, BLOCK_LEVELS, Strided, Sums, TensorKernel, pieces, single};
use fhelium_ir::layout::{inverse_order, memory_order, row_major};
use fhelium_ir::{DType, InferError};
use std::collections::BTreeSet;

/// Elements of numpy's buffer.
const BUFFER: usize = 8192;

/// An axis as the sum walks it.
#[derive(Clone, Copy)]
struct Axis {
    extent: usize,
    stride: isize,
    reduced: bool,
}

/// Where the elements of a sum are, in the order in which they are added.
struct Walk {
    /// The axes of the results.
    kept: Vec<Axis>,
    /// Axes of a result's runs, outermost first.
    sequence: Vec<Axis>,
    /// Axes of a run's elements.
    run: Vec<Axis>,
    /// Runs that follow each other along the innermost of `sequence`, and elements of the last.
    chunks: usize,
    last: usize,
}

impl Walk {
    /// Of axes in memory order, none with extent 0.
    fn new(mut axes: Vec<Axis>) -> Self {
        axes.retain(|axis| axis.extent != 1);
        // Neighbours that are one run made one.
        let mut joined: Vec<Axis> = Vec::new();
        for axis in axes {
            match joined.last_mut() {
                Some(outer)
                    if outer.reduced == axis.reduced
                        && outer.stride == axis.extent as isize * axis.stride =>
                {
                    outer.extent *= axis.extent;
                    outer.stride = axis.stride;
                }
                _ => joined.push(axis),
            }
        }
        let inner = joined.iter().rev().take_while(|axis| axis.reduced).count();
        let (outer, inner) = joined.split_at(joined.len() - inner);
        let (mut sequence, kept): (Vec<Axis>, Vec<Axis>) =
            outer.iter().partition(|axis| axis.reduced);
        // Whole axes fill the buffer as far as they fit; of the next one, as many parts as fit.
        let (mut filled, mut whole) = (1, inner.len());
        while whole > 0 && (whole == inner.len() || filled * inner[whole - 1].extent <= BUFFER) {
            whole -= 1;
            filled *= inner[whole].extent;
        }
        let mut run = inner[whole..].to_vec();
        let (mut chunks, mut last) = (1, filled);
        if let Some((&parts, outer)) = inner[..whole].split_last() {
            let size = (BUFFER / filled).max(1).min(parts.extent);
            chunks = parts.extent.div_ceil(size);
            last = (parts.extent - (chunks - 1) * size) * filled;
            sequence.extend(outer);
            sequence.push(Axis {
                extent: chunks,
                stride: parts.stride * size as isize,
                reduced: true,
            });
            run.insert(
                0,
                Axis {
                    extent: size,
                    ..parts
                },
            );
        }
        Walk {
            kept,
            sequence,
            run,
            chunks,
            last,
        }
    }
}

/// Extents and strides.
fn columns(axes: &[Axis]) -> (Vec<usize>, Vec<isize>) {
    axes.iter().map(|axis| (axis.extent, axis.stride)).unzip()
}

fn walked(name: &'static str, axes: &[Axis]) -> Result<Strided<1>> {
    let (extents, strides) = columns(axes);
    single(&extents, [&strides]).ok_or_else(|| CudaError::Tensor {
        operation: name,
        error: InferError::value(format!(
            "{} elements are summed to one in {} runs of memory; at most 2^30 in 10 are, sum one \
             axis after another",
            extents.iter().product::<usize>(),
            extents.len()
        )),
    })
}

/// A leaf's elements, and the first half of more, of an element type; `Pairwise` in tensor_sum.cu.
fn halves(dtype: DType, length: usize) -> Option<(usize, usize)> {
    let left = match dtype {
        DType::C64 | DType::C128 if length > 64 => (length - length % 8) / 2,
        DType::C64 | DType::C128 => return None,
        _ if length > 128 => length / 2 - length / 2 % 8,
        _ => return None,
    };
    Some((left, length - left))
}

/// The levels of a run's tree above its deepest leaf.
fn depth(dtype: DType, length: usize) -> u32 {
    let (mut level, mut depth) = (BTreeSet::from([length]), 0);
    loop {
        let halves = level.iter().filter_map(|&length| halves(dtype, length));
        let next: BTreeSet<usize> = halves.flat_map(|(left, right)| [left, right]).collect();
        if next.is_empty() {
            return depth;
        }
        (level, depth) = (next, depth + 1);
    }
}

impl Context {
    /// Sums over `axes`, in `dtype`, which holds every sum's terms.
    pub(super) fn sum_over(
        &self,
        name: &'static str,
        operand: &Tensor,
        axes: &[usize],
        keep: bool,
        dtype: DType,
    ) -> Result<Tensor> {
        let _turn = self.queue().lock()?;
        let operand = self.cast(name, operand, dtype)?;
        let order = memory_order(operand.shape(), &[operand.strides()]);
        let ordered: Vec<Axis> = order
            .iter()
            .map(|&axis| Axis {
                extent: operand.shape[axis],
                stride: operand.strides[axis],
                reduced: axes.contains(&axis),
            })
            .collect();
        // The results lie in the operand's order.
        let extents: Vec<usize> = ordered
            .iter()
            .map(|axis| if axis.reduced { 1 } else { axis.extent })
            .collect();
        let mut result = if operand.is_empty() {
            self.fill(dtype, &extents, [0; 16])?
        } else {
            let joined = self.join(name, &[("operand", &operand.data)])?;
            let result = self.new_tensor(dtype, &extents)?;
            self.add_up(name, &operand, &Walk::new(ordered), &result)?;
            joined.leave()?;
            result
        };
        let back = inverse_order(&order);
        result.shape = back.iter().map(|&place| extents[place]).collect();
        result.strides = back.iter().map(|&place| result.strides[place]).collect();
        if keep {
            return Ok(result);
        }
        let kept: Vec<usize> = (0..operand.ndim())
            .filter(|axis| !axes.contains(axis))
            .collect();
        Ok(result.transpose(&kept))
    }

    /// Means over `axes`, in `dtype`, which is fractional; NaN of no elements.
    pub(super) fn mean_over(
        &self,
        name: &'static str,
        operand: &Tensor,
        axes: &[usize],
        keep: bool,
        dtype: DType,
    ) -> Result<Tensor> {
        let sums = self.sum_over(name, operand, axes, keep, dtype)?;
        let count: usize = axes.iter().map(|&axis| operand.shape[axis]).product();
        // numpy divides by a 64-bit integer, hence in 64-bit floats.
        let wide = dtype.promote(DType::F64);
        let mut bits = [0; 16];
        bits[..8].copy_from_slice(&(count as f64).to_ne_bytes());
        let count = self.fill(wide, &[], bits)?;
        let sums = self.cast(name, &sums, wide)?;
        let (kernel, divide) = (
            TensorKernel::Binary(wide),
            Choice::of(super::evaluate::DIVIDE),
        );
        let shape = sums.shape().to_vec();
        // SAFETY: both operands have the kernel's type.
        let means = unsafe {
            self.elementwise::<2, 3>(name, kernel, divide, [&sums, &count], wide, &shape)?
        };
        self.cast(name, &means, dtype)
    }

    /// Writes the sums of a walk, row-major in its order, to `target`.
    fn add_up(
        &self,
        name: &'static str,
        operand: &Tensor,
        walk: &Walk,
        target: &Tensor,
    ) -> Result<()> {
        let dtype = operand.dtype;
        let (sequence, run) = (walked(name, &walk.sequence)?, walked(name, &walk.run)?);
        let (extents, strides) = columns(&walk.kept);
        let written = row_major(&extents);
        let depth = depth(dtype, run.count as usize).max(depth(dtype, walk.last));
        let bytes = dtype.size() as i64;
        let strides = [&strides[..], &written[..]];
        pieces(&extents, strides, [0; 2], &mut |results, [from, to]| {
            let mut arguments = Sums {
                source: operand.address().wrapping_add_signed(from * bytes),
                target: target.address().wrapping_add_signed(to * bytes),
                results: *results,
                sequence,
                run,
                chunks: walk.chunks as u32,
                last: walk.last as u32,
                depth,
                leaves: 1,
            };
            if depth == 0 {
                let kernel = TensorKernel::Sum(dtype);
                // SAFETY: the walk's places are the operand's, and the results' the target's.
                return unsafe { self.sums(kernel, results.grid(), 0, &arguments) };
            }
            self.add_runs(dtype, &mut arguments)
        })
    }

    /// Adds runs of more than a leaf, from the leaves up, and then the runs of each result.
    fn add_runs(&self, dtype: DType, arguments: &mut Sums) -> Result<()> {
        let target = arguments.target;
        let rows = arguments.results.count as usize * arguments.sequence.count as usize;
        // Kept until what reads them is in the queue.
        let mut given = Vec::new();
        loop {
            let above = arguments.depth.saturating_sub(BLOCK_LEVELS);
            let blocks = rows << above;
            let grid = u32::try_from(blocks).ok().filter(|&grid| grid < 1 << 31);
            let grid = grid.ok_or(CudaError::Tensor {
                operation: "tensor.sum",
                error: InferError::value(format!(
                    "{rows} runs are too many at once; sum one axis after another"
                )),
            })?;
            let sums = self.queue().allocate((blocks * dtype.size()).div_ceil(8))?;
            arguments.target = sums.address();
            let shared = BLOCK * dtype.size() as u32;
            // SAFETY: `sums` holds an element for each block, which is what the next level reads.
            unsafe { self.sums(TensorKernel::Runs(dtype), [grid, 1, 1], shared, arguments)? };
            (arguments.source, arguments.depth, arguments.leaves) = (sums.address(), above, 0);
            given.push(sums);
            if above == 0 {
                break;
            }
        }
        arguments.target = target;
        let grid = arguments.results.grid();
        // SAFETY: `given` holds an element for each run of each result.
        unsafe { self.sums(TensorKernel::Fold(dtype), grid, 0, arguments)? };
        drop(given);
        Ok(())
    }

    /// # Safety
    /// As `Kernel::launch`.
    unsafe fn sums(
        &self,
        kernel: TensorKernel,
        grid: [u32; 3],
        shared: u32,
        arguments: &Sums,
    ) -> Result<()> {
        let queue = self.queue();
        // SAFETY: the caller's promise.
        unsafe {
            self.tensor_kernels()
                .launch(queue, kernel, grid, shared, arguments)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The halves of lengths are not monotone: 143 ends in a leaf of 79, 144 in leaves of 72, so the
    /// deepest leaf is none in particular.
    #[test]
    fn trees_are_as_deep_as_their_deepest_leaf() {
        fn deepest(dtype: DType, length: usize) -> u32 {
            halves(dtype, length).map_or(0, |(a, b)| 1 + deepest(dtype, a).max(deepest(dtype, b)))
        }
        for length in (1..3000).chain([8191, 8192, 100_003, 1 << 20]) {
            for dtype in [DType::F64, DType::C64] {
                assert_eq!(depth(dtype, length), deepest(dtype, length), "{length}");
            }
        }
    }
}
