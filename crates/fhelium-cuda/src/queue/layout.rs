//! Where what recorded work keeps for a while lies: what is needed at different times shares memory.

/// The alignment of the driver's allocations.
pub(super) const ALIGNMENT: u64 = 256;

/// Memory that is needed from one moment to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    pub bytes: u64,
    pub from: usize,
    /// The first moment at which it is not needed any more; later than `from`.
    pub until: usize,
}

/// Where everything lies.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    /// The bytes before each, in the order given.
    pub starts: Vec<u64>,
    /// Bytes of all together.
    pub bytes: u64,
}

/// What has a place already, to be looked up by time.
#[derive(Default)]
struct Placed(Vec<Stretch>);

/// What is needed during a part of some consecutive moments.
#[derive(Default)]
struct Stretch {
    /// From one of them on.
    begun: Vec<Occupied>,
    /// From before them on.
    going_on: Vec<Occupied>,
}

/// Where something lies, and when.
#[derive(Clone, Copy)]
struct Occupied {
    start: u64,
    lifetime: Lifetime,
}

/// Moments of a stretch.
const STRETCH: usize = 64;

impl Placed {
    fn put(&mut self, start: u64, lifetime: Lifetime) {
        let (first, last) = (lifetime.from / STRETCH, (lifetime.until - 1) / STRETCH);
        if self.0.len() <= last {
            self.0.resize_with(last + 1, Stretch::default);
        }
        let occupied = Occupied { start, lifetime };
        self.0[first].begun.push(occupied);
        for stretch in &mut self.0[first + 1..=last] {
            stretch.going_on.push(occupied);
        }
    }

    /// What is needed at a moment at which the other is: each once, however long that is.
    fn beside(&self, wanted: Lifetime) -> impl Iterator<Item = &Occupied> {
        let (first, last) = (wanted.from / STRETCH, (wanted.until - 1) / STRETCH);
        let going_on = self.0.get(first).map_or(&[][..], |first| &first.going_on);
        let touched = self.0.iter().take(last + 1).skip(first);
        let begun = touched.flat_map(|stretch| &stretch.begun);
        going_on.iter().chain(begun).filter(move |other| {
            other.lifetime.from < wanted.until && wanted.from < other.lifetime.until
        })
    }

    /// The start of the smallest gap that is free all the time and holds as much; else of what is free
    /// above all.
    fn best_start(&self, wanted: Lifetime, taken: &mut Vec<(u64, u64)>) -> u64 {
        taken.clear();
        let beside = self.beside(wanted);
        taken.extend(beside.map(|other| (other.start, other.start + other.lifetime.bytes)));
        taken.sort_unstable();
        let (mut above, mut best) = (0, None);
        for &(start, end) in &*taken {
            if let Some(gap) = start.checked_sub(above)
                && gap >= wanted.bytes
                && best.is_none_or(|(smallest, _)| gap < smallest)
            {
                best = Some((gap, above));
            }
            above = above.max(end);
        }
        best.map_or(above, |(_, start)| start)
    }
}

/// Gives everything a place, such that nothing lies where something else is needed at the same moment.
///
/// The largest come first, since what is small fits between them: for what programs need, that takes
/// hardly more than is needed at once (Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep
/// Neural Net Inference", 2020, "greedy by size").
pub(super) fn lay_out(lifetimes: &[Lifetime]) -> Layout {
    let aligned = |&lifetime: &Lifetime| Lifetime {
        bytes: lifetime.bytes.next_multiple_of(ALIGNMENT),
        ..lifetime
    };
    let aligned: Vec<Lifetime> = lifetimes.iter().map(aligned).collect();
    let mut order: Vec<usize> = (0..aligned.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(aligned[index].bytes), aligned[index].from));
    let mut layout = Layout {
        starts: vec![0; aligned.len()],
        bytes: 0,
    };
    let (mut placed, mut taken) = (Placed::default(), Vec::new());
    for index in order {
        let lifetime = aligned[index];
        let start = placed.best_start(lifetime, &mut taken);
        placed.put(start, lifetime);
        layout.starts[index] = start;
        layout.bytes = layout.bytes.max(start + lifetime.bytes);
    }
    layout
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// The lifetimes of what is taken and, if its turn comes, given back.
    fn lifetimes(sizes: &[u64], choices: &[(bool, usize)]) -> Vec<Lifetime> {
        let (mut all, mut live) = (Vec::<Lifetime>::new(), Vec::new());
        for (from, &(takes, which)) in choices.iter().enumerate() {
            if takes && let Some(&bytes) = sizes.get(all.len()) {
                live.push(all.len());
                let until = choices.len();
                all.push(Lifetime { bytes, from, until });
            } else if !live.is_empty() {
                all[live.swap_remove(which % live.len())].until = from;
            }
        }
        all
    }

    /// The most bytes that are needed at once.
    fn most(lifetimes: &[Lifetime]) -> u64 {
        let needed = |now: usize| {
            let here = lifetimes
                .iter()
                .filter(|other| other.from <= now && now < other.until);
            here.map(|other| other.bytes.next_multiple_of(ALIGNMENT))
                .sum()
        };
        let moments = lifetimes.iter().map(|lifetime| needed(lifetime.from));
        moments.max().unwrap_or(0)
    }

    /// What is taken where only what was given back in the same size serves again.
    fn by_size(lifetimes: &[Lifetime]) -> u64 {
        let mut sizes: HashMap<u64, Vec<Lifetime>> = HashMap::new();
        for &lifetime in lifetimes {
            sizes.entry(lifetime.bytes).or_default().push(lifetime);
        }
        sizes.values().map(|of_size| most(of_size)).sum()
    }

    proptest! {
        /// Guards that nothing lies where something else is needed, whatever is taken and given back.
        #[test]
        fn what_is_needed_at_once_never_overlaps(
            sizes in prop::collection::vec(0u64..3000, 0..80),
            choices in prop::collection::vec((any::<bool>(), any::<usize>()), 0..400),
        ) {
            let all = lifetimes(&sizes, &choices);
            let layout = lay_out(&all);
            prop_assert!(layout.bytes >= most(&all));
            for (index, (one, &start)) in all.iter().zip(&layout.starts).enumerate() {
                prop_assert_eq!(start % ALIGNMENT, 0);
                prop_assert!(start + one.bytes <= layout.bytes);
                for (other, &other_start) in all.iter().zip(&layout.starts).take(index) {
                    let at_once = one.from < other.until && other.from < one.until;
                    let apart = start + one.bytes <= other_start
                        || other_start + other.bytes <= start;
                    prop_assert!(!at_once || apart, "{one:?} at {start}, {other:?} at {other_start}");
                }
            }
        }
    }

    proptest! {
        /// Guards that what lies beside something is looked at once, over however many stretches it is
        /// needed: else a layout of much that is needed for long takes minutes.
        #[test]
        fn what_is_beside_is_looked_at_once(
            ends in prop::collection::vec((0usize..6 * STRETCH, 1usize..6 * STRETCH), 1..60),
        ) {
            let lifetime = |&(from, moments)| Lifetime { bytes: 1, from, until: from + moments };
            let all: Vec<Lifetime> = ends.iter().map(lifetime).collect();
            let mut placed = Placed::default();
            (0..).zip(&all).for_each(|(start, &one)| placed.put(start, one));
            for wanted in &all {
                let mut found: Vec<u64> = placed.beside(*wanted).map(|other| other.start).collect();
                found.sort_unstable();
                let is_beside = |other: &Lifetime| {
                    other.from < wanted.until && wanted.from < other.until
                };
                let beside = (0..).zip(&all).filter(|(_, other)| is_beside(other));
                let expected: Vec<u64> = beside.map(|(start, _)| start).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// Guards that a layout takes hardly more than is needed at once, and no more than where only what
    /// has the same size shares memory.
    #[test]
    fn a_layout_takes_hardly_more_than_is_needed_at_once() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % below
        };
        let (mut taken, mut needed) = (0, 0);
        for _ in 0..200 {
            let sizes: Vec<u64> = (0..60).map(|_| 256 * (1 + next(14))).collect();
            let choices: Vec<_> = (0..160)
                .map(|_| (next(20) < 11, next(1 << 20) as usize))
                .collect();
            let all = lifetimes(&sizes, &choices);
            let layout = lay_out(&all);
            assert!(layout.bytes <= by_size(&all), "{all:?}");
            taken += layout.bytes;
            needed += most(&all);
        }
        assert!(taken * 100 <= needed * 105, "{taken} for {needed}");
    }
}
