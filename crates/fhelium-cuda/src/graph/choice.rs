//! Which way of replaying is the faster: found by trying both.
//!
//! A graph starts sooner and takes the host less time, launches of their own all may overlap, and which of
//! these weighs more depends on the work, the device and the driver. So the first replays take turns,
//! each between two events that later replays look at: nobody waits for them.

use super::Replay;
use crate::error::Result;
use crate::queue::{Moment, Queue, uncaptured};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The ways of the timed replays: the sequence of Thue and Morse, so that neither what alternates in
/// the calls nor a drift of the device's clock favours one.
const TURNS: [Replay; 16] = {
    let mut turns = [Replay::Launches; 16];
    let mut turn = 0;
    while turn < turns.len() {
        if turn.count_ones() % 2 == 1 {
            turns[turn] = Replay::Graph;
        }
        turn += 1;
    }
    turns
};

/// Replays that come before and are not timed: the first of a way loads and builds.
const WARMING: [Replay; 2] = [Replay::Launches, Replay::Graph];

/// The state of the trials.
#[derive(Default)]
pub(super) struct Choice {
    chosen: Option<Replay>,
    /// Replays so far, while none is chosen.
    begun: usize,
    /// Those whose times are not read yet, in the queue's order.
    pending: VecDeque<Trial>,
    times: Times,
}

/// A timed replay.
struct Trial {
    way: Replay,
    start: Moment,
    end: Moment,
    /// The time of the host.
    host: Duration,
}

/// Microseconds of the timed replays so far.
#[derive(Default)]
struct Times {
    launches: Vec<f64>,
    graph: Vec<f64>,
}

/// What the next replay is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn {
    way: Replay,
    timed: bool,
}

impl Choice {
    /// For so many steps: where there is none, nothing is launched, and no graph of nothing.
    pub fn between(steps: usize) -> Self {
        Choice {
            chosen: (steps == 0).then_some(Replay::Launches),
            ..Choice::default()
        }
    }

    /// The way that is found to be the faster.
    pub fn chosen(&self) -> Option<Replay> {
        self.chosen
    }

    /// The way of a replay that is not to be part of the trials.
    pub fn provisional(&self) -> Replay {
        self.chosen.unwrap_or(Replay::Launches)
    }

    /// Runs the next replay by its way.
    pub fn run(&mut self, queue: &Queue, run: impl FnOnce(Replay) -> Result<()>) -> Result<()> {
        self.settle(queue);
        if let Some(chosen) = self.chosen {
            return run(chosen);
        }
        let Turn { way, timed } = turn(self.begun);
        if timed {
            let start = queue.record()?;
            let begin = Instant::now();
            run(way)?;
            let host = begin.elapsed();
            let end = queue.record()?;
            self.pending.push_back(Trial {
                way,
                start,
                end,
                host,
            });
        } else {
            run(way)?;
        }
        self.begun += 1;
        Ok(())
    }

    /// Reads the times of what has run, without waiting, and chooses when all are there.
    pub fn settle(&mut self, queue: &Queue) {
        while let Some(trial) = self.pending.front() {
            // Asking for an event would spoil a capture of this thread's.
            let time = uncaptured(|| {
                if !queue.has_passed(&trial.end)? {
                    return Ok(None);
                }
                queue.elapsed_us(&trial.start, &trial.end).map(Some)
            });
            let time = match time {
                Ok(Some(time)) => time,
                Ok(None) => return,
                // What is wrong with the device shows in the replays themselves.
                Err(_) => {
                    self.pending.clear();
                    self.chosen = Some(self.provisional());
                    return;
                }
            };
            // Where the device is behind, its own time is not all that a call takes.
            let time = time.max(trial.host.as_secs_f64() * 1e6);
            self.times.of(trial.way).push(time);
            self.pending.pop_front();
        }
        if self.times.are_complete() {
            self.chosen = Some(std::mem::take(&mut self.times).faster());
        }
    }
}

impl Times {
    fn of(&mut self, way: Replay) -> &mut Vec<f64> {
        match way {
            Replay::Launches => &mut self.launches,
            Replay::Graph => &mut self.graph,
        }
    }

    fn are_complete(&self) -> bool {
        self.launches.len() + self.graph.len() == TURNS.len()
    }

    /// The way of the lower median; a graph where they are equal, which takes the host less.
    fn faster(self) -> Replay {
        let median = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        if median(self.graph) <= median(self.launches) {
            Replay::Graph
        } else {
            Replay::Launches
        }
    }
}

/// What the replay after so many others is; behind the trials, whose times are not all known yet,
/// each is as the first of them.
fn turn(begun: usize) -> Turn {
    let trial = begun.checked_sub(WARMING.len());
    match trial.map(|trial| TURNS.get(trial)) {
        None => Turn {
            way: WARMING[begun],
            timed: false,
        },
        Some(Some(&way)) => Turn { way, timed: true },
        Some(None) => Turn {
            way: Replay::Launches,
            timed: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards that each way is warmed up before it is timed, and is timed as often as the other, in
    /// every half and quarter of the trials.
    #[test]
    fn ways_take_turns_evenly() {
        let turns: Vec<Turn> = (0..20).map(turn).collect();
        let (warming, rest) = turns.split_at(2);
        assert!(warming.iter().all(|turn| !turn.timed));
        assert_ne!(warming[0].way, warming[1].way);
        let (timed, after) = rest.split_at(16);
        assert!(timed.iter().all(|turn| turn.timed));
        for size in [2, 4, 8, 16] {
            for part in timed.chunks(size) {
                let graphs = part.iter().filter(|turn| turn.way == Replay::Graph);
                assert_eq!(graphs.count(), size / 2, "{part:?}");
            }
        }
        // Calls that are slow every second time are so for both ways alike.
        let every_second = timed.iter().step_by(2);
        let graphs = every_second.filter(|turn| turn.way == Replay::Graph);
        assert_eq!(graphs.count(), 4);
        assert!(after.iter().all(|turn| !turn.timed));
    }

    fn faster(launches: [f64; 8], graph: [f64; 8]) -> Replay {
        let mut times = Times::default();
        for (launches, graph) in launches.into_iter().zip(graph) {
            assert!(!times.are_complete());
            times.of(Replay::Launches).push(launches);
            times.of(Replay::Graph).push(graph);
        }
        assert!(times.are_complete());
        times.faster()
    }

    #[test]
    fn the_lower_median_is_chosen_whatever_single_runs_took() {
        let steady = [60.0; 8];
        let once = |time: f64| std::array::from_fn(|run| if run == 3 { 1e6 } else { time });
        assert_eq!(faster(steady, once(55.0)), Replay::Graph);
        assert_eq!(faster(once(55.0), steady), Replay::Launches);
        assert_eq!(faster(steady, steady), Replay::Graph);
    }
}
