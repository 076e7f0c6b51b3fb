//! Matrix products.

use super::Tensor;
use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::kernels::{BLOCK, Matmul, Strided, TILE, TensorKernel, pieces};
use fhelium_ir::layout::row_major;
use fhelium_ir::{DType, InferError};

/// The products of one launch.
const MOST_PRODUCTS: usize = 65535;

/// Results up to which each gets a block of its own, if its sum is long.
const FEW: usize = 4096;
/// Products of a long sum.
const LONG: usize = 256;

/// An operand as matrices: the shape and strides of the stack, and of a matrix.
struct Matrices {
    stack: Vec<usize>,
    stack_strides: Vec<isize>,
    shape: [usize; 2],
    strides: [isize; 2],
}

impl Matrices {
    /// A lone axis is a row on the left and a column on the right.
    fn new(tensor: &Tensor, is_left: bool) -> Self {
        match (tensor.shape(), tensor.strides()) {
            ([shape @ .., rows, columns], [strides @ .., down, across]) => Matrices {
                stack: shape.to_vec(),
                stack_strides: strides.to_vec(),
                shape: [*rows, *columns],
                strides: [*down, *across],
            },
            (shape, strides) => {
                let (extent, stride) = (shape[0], strides[0]);
                Matrices {
                    stack: Vec::new(),
                    stack_strides: Vec::new(),
                    shape: if is_left { [1, extent] } else { [extent, 1] },
                    strides: if is_left { [0, stride] } else { [stride, 0] },
                }
            }
        }
    }

    /// The stack's strides, repeated to a shape.
    fn spread(&self, shape: &[usize]) -> Vec<isize> {
        let missing = shape.len() - self.stack.len();
        let stride = |axis: usize| match axis.checked_sub(missing) {
            Some(own) if self.stack[own] == shape[axis] => self.stack_strides[own],
            _ => 0,
        };
        (0..shape.len()).map(stride).collect()
    }
}

impl Context {
    /// numpy's `matmul` in `dtype`: stacks of matrices broadcast, and integers wrap.
    pub(super) fn matmul(
        &self,
        name: &'static str,
        left: &Tensor,
        right: &Tensor,
        dtype: DType,
        shape: &[usize],
    ) -> Result<Tensor> {
        let _turn = self.queue().lock()?;
        let (left, right) = (
            self.cast(name, left, dtype)?,
            self.cast(name, right, dtype)?,
        );
        let joined = self.join(
            name,
            &[("left operand", &left.data), ("right operand", &right.data)],
        )?;
        let result = self.new_tensor(dtype, shape)?;
        let (a, b) = (Matrices::new(&left, true), Matrices::new(&right, false));
        let ([rows, inner], [_, columns]) = (a.shape, b.shape);
        let depth = a.stack.len().max(b.stack.len());
        let stack = &shape[..depth];
        let mut written = row_major(stack);
        for stride in &mut written {
            *stride *= (rows * columns) as isize;
        }
        let extent = |extent: usize| {
            u32::try_from(extent).map_err(|_| CudaError::Tensor {
                operation: name,
                error: InferError::value(format!(
                    "a matrix has {extent} rows or columns; fewer than 2^32 are expected"
                )),
            })
        };
        let mut arguments = Matmul {
            left: 0,
            right: 0,
            target: 0,
            left_row: a.strides[0] as i64,
            left_column: a.strides[1] as i64,
            right_row: b.strides[0] as i64,
            right_column: b.strides[1] as i64,
            rows: extent(rows)?,
            inner: extent(inner)?,
            columns: extent(columns)?,
            first: 0,
            stack: Strided::NONE,
        };
        let few = rows * columns <= FEW && inner >= LONG;
        let (kernel, [x, y], elements) = if few {
            (
                TensorKernel::Dots(dtype),
                [(rows * columns) as u32, 1],
                BLOCK,
            )
        } else {
            let tiles = [
                arguments.columns.div_ceil(TILE),
                arguments.rows.div_ceil(TILE),
            ];
            (TensorKernel::Tiles(dtype), tiles, 2 * TILE * TILE)
        };
        if y > MOST_PRODUCTS as u32 {
            return Err(CudaError::Tensor {
                operation: name,
                error: InferError::value(format!(
                    "the left matrix has {rows} rows; at most 2^20 are expected, split it"
                )),
            });
        }
        let bytes = dtype.size() as i64;
        let strides = [&a.spread(stack)[..], &b.spread(stack), &written];
        let [p, q, r] = [&left, &right, &result].map(Tensor::address);
        pieces(stack, strides, [0; 3], &mut |piece, places| {
            let [from_left, from_right, to] = places.map(|place| place * bytes);
            arguments.left = p.wrapping_add_signed(from_left);
            arguments.right = q.wrapping_add_signed(from_right);
            arguments.target = r.wrapping_add_signed(to);
            arguments.stack = *piece;
            for first in (0..piece.count).step_by(MOST_PRODUCTS) {
                arguments.first = first;
                let grid = [x, y, (piece.count - first).min(MOST_PRODUCTS as u32)];
                let shared = elements * dtype.size() as u32;
                // SAFETY: strides are those of the operands' matrices and of the result's.
                unsafe {
                    self.tensor_kernels()
                        .launch(self.queue(), kernel, grid, shared, &arguments)?
                };
            }
            Ok(())
        })?;
        joined.leave()?;
        Ok(result)
    }
}
