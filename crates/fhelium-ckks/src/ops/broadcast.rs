//! Batch shapes of two operands as one.

use crate::error::{CkksError, Result};

/// How two batches combine, as numpy's shapes do.
pub struct Broadcast {
    /// The result's batch shape.
    pub shape: Vec<usize>,
    left: Vec<usize>,
    right: Vec<usize>,
}

impl Broadcast {
    /// Axes are aligned from the right; each pair must be equal or have a 1.
    ///
    /// # Errors
    /// [`CkksError::Broadcast`].
    pub fn new(operation: &'static str, left: &[usize], right: &[usize]) -> Result<Self> {
        let rank = left.len().max(right.len());
        let axis = |shape: &[usize], axis: usize| {
            (axis + shape.len())
                .checked_sub(rank)
                .map_or(1, |index| shape[index])
        };
        let mut shape = Vec::with_capacity(rank);
        for index in 0..rank {
            shape.push(match (axis(left, index), axis(right, index)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => {
                    return Err(CkksError::Broadcast {
                        operation,
                        left: left.to_vec(),
                        right: right.to_vec(),
                    });
                }
            });
        }
        // Distance between items along each axis of the result; 0 where the operand repeats.
        let strides = |operand: &[usize]| {
            let mut strides = vec![0; rank];
            let mut items = 1;
            for index in (0..rank).rev() {
                if axis(operand, index) != 1 {
                    strides[index] = items;
                }
                items *= axis(operand, index);
            }
            strides
        };
        let (left, right) = (strides(left), strides(right));
        Ok(Broadcast { shape, left, right })
    }

    /// Items of the result.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// The operands' items that meet in an item of the result.
    pub fn items(&self, item: usize) -> (usize, usize) {
        let (mut left, mut right, mut rest) = (0, 0, item);
        for (index, &axis) in self.shape.iter().enumerate().rev() {
            let position = rest % axis;
            rest /= axis;
            left += position * self.left[index];
            right += position * self.right[index];
        }
        (left, right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(left: &[usize], right: &[usize]) -> (Vec<usize>, Vec<(usize, usize)>) {
        let broadcast = Broadcast::new("add", left, right).unwrap();
        let items = (0..broadcast.size())
            .map(|item| broadcast.items(item))
            .collect();
        (broadcast.shape, items)
    }

    #[test]
    fn shapes_combine_as_numpys_do() {
        assert_eq!(pairs(&[], &[]), (vec![], vec![(0, 0)]));
        assert_eq!(pairs(&[3], &[]), (vec![3], vec![(0, 0), (1, 0), (2, 0)]));
        assert_eq!(
            pairs(&[2, 1], &[3]),
            (
                vec![2, 3],
                vec![(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
            )
        );
        assert_eq!(pairs(&[1, 2], &[2]), (vec![1, 2], vec![(0, 0), (1, 1)]));
        assert_eq!(pairs(&[0], &[1]), (vec![0], vec![]));
        assert!(Broadcast::new("add", &[2], &[3]).is_err());
        assert!(Broadcast::new("add", &[2, 3], &[2]).is_err());
    }
}
