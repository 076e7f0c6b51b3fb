//! Elements moved between places of any strides: kernels/cuda/strided.cu.

use super::{Kernel, Kernels, arguments};
use crate::device::Device;
use crate::error::Result;
use crate::queue::Queue;

/// The axes that one launch walks; `AXES` in strided.cuh.
const AXES: usize = 10;

/// The most elements of one launch, so that an index has 32 bits.
const MOST: usize = 1 << 30;

/// `Strided` in strided.cuh: axis 0 is the innermost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Strided<const OPERANDS: usize> {
    pub count: u32,
    rank: u32,
    extents: [u32; AXES],
    strides: [[i64; AXES]; OPERANDS],
}

/// `Move` in strided.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Move {
    pub source: u64,
    pub target: u64,
    pub shape: Strided<2>,
}

/// `Fill` in strided.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Fill {
    pub bits: [u8; 16],
    pub target: u64,
    pub count: u32,
    pub unused: u32,
}

arguments!(Move, 224, [source, target]);
arguments!(Fill, 32, [target]);

pub(super) const THREADS: u32 = 256;

/// An axis, and its stride in each operand.
#[derive(Clone, Copy)]
struct Axis<const OPERANDS: usize> {
    extent: usize,
    strides: [i64; OPERANDS],
}

/// Splits the indices of a shape into launches: calls `launch` with each part and its operands'
/// first places, in elements from `starts`. Of no elements there are no parts.
///
/// # Errors
/// Those of `launch`.
///
/// # Panics
/// When an operand has not as many strides as the shape has axes.
pub(crate) fn pieces<const OPERANDS: usize>(
    shape: &[usize],
    strides: [&[isize]; OPERANDS],
    starts: [i64; OPERANDS],
    launch: &mut dyn FnMut(&Strided<OPERANDS>, [i64; OPERANDS]) -> Result<()>,
) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    split(&merged(shape, strides), starts, launch)
}

/// The one part that a shape is, if one launch walks it.
///
/// # Panics
/// As [`pieces`].
pub(crate) fn single<const OPERANDS: usize>(
    shape: &[usize],
    strides: [&[isize]; OPERANDS],
) -> Option<Strided<OPERANDS>> {
    Strided::of(&merged(shape, strides))
}

/// The axes innermost first, without those of one place, and neighbours that are one run made one.
fn merged<const OPERANDS: usize>(
    shape: &[usize],
    strides: [&[isize]; OPERANDS],
) -> Vec<Axis<OPERANDS>> {
    let mut axes: Vec<Axis<OPERANDS>> = Vec::new();
    for axis in (0..shape.len()).rev().filter(|&axis| shape[axis] > 1) {
        let extent = shape[axis];
        let strides = strides.map(|strides| strides[axis] as i64);
        match axes.last_mut() {
            Some(inner)
                if inner.extent * extent <= MOST
                    && (0..OPERANDS)
                        .all(|at| strides[at] == inner.strides[at] * inner.extent as i64) =>
            {
                inner.extent *= extent;
            }
            _ => axes.push(Axis { extent, strides }),
        }
    }
    axes
}

fn split<const OPERANDS: usize>(
    axes: &[Axis<OPERANDS>],
    starts: [i64; OPERANDS],
    launch: &mut dyn FnMut(&Strided<OPERANDS>, [i64; OPERANDS]) -> Result<()>,
) -> Result<()> {
    if let Some(shape) = Strided::of(axes) {
        return launch(&shape, starts);
    }
    let moved = |axis: &Axis<OPERANDS>, places: usize| {
        std::array::from_fn(|at| starts[at] + axis.strides[at] * places as i64)
    };
    match axes.split_last() {
        Some((outer, inner)) if axes.len() > AXES => {
            (0..outer.extent).try_for_each(|place| split(inner, moved(outer, place), launch))
        }
        Some((outer, inner)) => {
            let half = outer.extent / 2;
            for (from, extent) in [(0, half), (half, outer.extent - half)] {
                let mut axes = inner.to_vec();
                if extent > 1 {
                    axes.push(Axis { extent, ..*outer });
                }
                split(&axes, moved(outer, from), launch)?;
            }
            Ok(())
        }
        // Of no axes one launch does.
        None => Ok(()),
    }
}

impl<const OPERANDS: usize> Strided<OPERANDS> {
    /// One index, at the first place of every operand.
    pub const NONE: Self = Strided {
        count: 1,
        rank: 0,
        extents: [1; AXES],
        strides: [[0; AXES]; OPERANDS],
    };

    /// Axes, innermost first, unless one launch cannot walk them.
    fn of(axes: &[Axis<OPERANDS>]) -> Option<Self> {
        let count = axes
            .iter()
            .try_fold(1usize, |count, axis| count.checked_mul(axis.extent))?;
        if count > MOST || axes.len() > AXES {
            return None;
        }
        let mut shape = Strided {
            count: count as u32,
            rank: axes.len() as u32,
            ..Self::NONE
        };
        for (place, axis) in axes.iter().enumerate() {
            shape.extents[place] = axis.extent as u32;
            for (operand, &stride) in axis.strides.iter().enumerate() {
                shape.strides[operand][place] = stride;
            }
        }
        Some(shape)
    }

    /// The grid of threads that each do one element.
    pub fn grid(&self) -> [u32; 3] {
        [self.count.div_ceil(THREADS), 1, 1]
    }
}

/// The kernels that move and repeat elements, by size.
pub(super) struct Movers {
    moves: [(usize, Kernel<Move>); 4],
    fills: [(usize, Kernel<Fill>); 4],
}

impl Movers {
    pub fn load(device: &Device) -> Result<Self> {
        fn load<A: super::Arguments>(
            device: &Device,
            family: &str,
            bytes: usize,
        ) -> Result<(usize, Kernel<A>)> {
            let name = format!("{family}_{bytes}");
            Ok((bytes, Kernel::load(device, "strided", &name, THREADS)?))
        }
        let moves = |bytes| load(device, "move", bytes);
        let fills = |bytes| load(device, "fill", bytes);
        Ok(Movers {
            moves: [moves(1)?, moves(4)?, moves(8)?, moves(16)?],
            fills: [fills(1)?, fills(4)?, fills(8)?, fills(16)?],
        })
    }
}

impl Kernels {
    /// Moves elements of so many bytes.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    ///
    /// # Panics
    /// When no element type has the size.
    pub unsafe fn move_elements(
        &self,
        queue: &Queue,
        bytes: usize,
        arguments: &Move,
    ) -> Result<()> {
        let mover = self.movers.moves.iter().find(|(size, _)| *size == bytes);
        let (_, kernel) = mover.expect("elements have 1, 4, 8 or 16 bytes");
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, arguments.shape.grid(), 0, arguments) }
    }

    /// Repeats an element of so many bytes.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    ///
    /// # Panics
    /// As [`move_elements`](Self::move_elements).
    pub unsafe fn fill_elements(
        &self,
        queue: &Queue,
        bytes: usize,
        arguments: &Fill,
    ) -> Result<()> {
        let filler = self.movers.fills.iter().find(|(size, _)| *size == bytes);
        let (_, kernel) = filler.expect("elements have 1, 4, 8 or 16 bytes");
        let grid = [arguments.count.div_ceil(THREADS), 1, 1];
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(queue, grid, 0, arguments) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of every index of every part, as `places_of` in strided.cuh finds them.
    fn walked<const OPERANDS: usize>(
        shape: &[usize],
        strides: [&[isize]; OPERANDS],
    ) -> Vec<[i64; OPERANDS]> {
        let mut all = Vec::new();
        pieces(shape, strides, [0; OPERANDS], &mut |piece, starts| {
            for index in 0..piece.count {
                let (mut rest, mut places) = (index, starts);
                for axis in 0..piece.rank as usize {
                    let last = axis + 1 == piece.rank as usize;
                    let at = if last {
                        rest
                    } else {
                        rest % piece.extents[axis]
                    };
                    rest /= piece.extents[axis];
                    for (place, strides) in places.iter_mut().zip(piece.strides) {
                        *place += i64::from(at) * strides[axis];
                    }
                }
                all.push(places);
            }
            Ok(())
        })
        .unwrap();
        all
    }

    /// Guards that no element is walked twice or never, whatever is merged or split.
    #[test]
    fn parts_cover_a_shape_in_row_major_order() {
        let empty: Vec<[i64; 1]> = Vec::new();
        assert_eq!(walked(&[3, 0, 2], [&[1, 1, 1]]), empty);
        assert_eq!(walked(&[], [&[]]), [[0]]);
        assert_eq!(
            walked(&[2, 1, 3], [&[3, 9, 1], &[-1, 0, 2]]),
            [[0, 0], [1, 2], [2, 4], [3, -1], [4, 1], [5, 3]]
        );
        // More axes than a launch walks, none of which merge.
        let shape = [2; 12];
        let strides: Vec<isize> = (0..12).map(|axis| 3isize.pow(11 - axis)).collect();
        let expected: Vec<[i64; 1]> = (0..1 << 12)
            .map(|index: i64| [(0..12).map(|bit| (index >> bit & 1) * 3i64.pow(bit)).sum()])
            .collect();
        assert_eq!(walked(&shape, [&strides]), expected);
    }

    #[test]
    fn more_elements_than_an_index_numbers_are_split() {
        let mut parts = Vec::new();
        pieces(
            &[3, MOST],
            [&[MOST as isize, 1]],
            [5],
            &mut |piece, starts| {
                parts.push((piece.count as usize, starts[0] - 5));
                Ok(())
            },
        )
        .unwrap();
        let most = MOST as i64;
        assert_eq!(parts, [(MOST, 0), (MOST, most), (MOST, 2 * most)]);
    }
}
