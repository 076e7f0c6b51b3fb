//! The specialization cache under random schedules of its locks.
//! Run with `cargo test -p fhelium-runtime --features shuttle --test cache_shuttle`.
#![cfg(feature = "shuttle")]

use fhelium_runtime::{
    ArgumentSignature, CallSignature, Condition, RecursivePreparation, SpecializationCache,
    StaticValue,
};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

#[derive(Debug)]
enum Error {
    Refused,
    Recursive,
}

impl From<RecursivePreparation> for Error {
    fn from(_: RecursivePreparation) -> Self {
        Error::Recursive
    }
}

fn signature(value: i64) -> CallSignature {
    CallSignature::new(vec![ArgumentSignature {
        name: "k".into(),
        condition: Condition::Static(StaticValue::Int(value)),
    }])
}

/// Guards that no schedule prepares a signature twice, deadlocks or mixes signatures up.
#[test]
fn one_miss_prepares_once() {
    let schedules = || {
        let cache = Arc::new(SpecializationCache::<i64>::new(None));
        let prepared = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (cache, prepared) = (cache.clone(), prepared.clone());
                thread::spawn(move || {
                    let value = thread % 2;
                    let found = cache.get_or_prepare(&signature(value), || {
                        prepared[value as usize].fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        Ok::<_, Error>(value)
                    });
                    assert_eq!(*found.unwrap(), value);
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        for count in prepared.iter() {
            assert_eq!(count.load(Ordering::SeqCst), 1);
        }
    };
    shuttle::check_random(schedules, 2000);
}

/// Guards that failures, clears and waiting calls end under every schedule: a call returns its
/// own signature's value or the failure of its own preparation.
#[test]
fn failures_and_clears_end() {
    let schedules = || {
        let cache = Arc::new(SpecializationCache::<i64>::new(None));
        let attempts = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let (cache, attempts) = (cache.clone(), attempts.clone());
                thread::spawn(move || {
                    cache
                        .get_or_prepare(&signature(1), || {
                            match attempts.fetch_add(1, Ordering::SeqCst) {
                                0 => Err(Error::Refused),
                                _ => Ok(1),
                            }
                        })
                        .is_err()
                })
            })
            .collect();
        let clearing = {
            let cache = cache.clone();
            thread::spawn(move || cache.clear())
        };
        let failed = callers.into_iter().map(|caller| caller.join().unwrap());
        assert_eq!(failed.filter(|&failed| failed).count(), 1);
        clearing.join().unwrap();
        assert!(cache.len() <= 1);
    };
    shuttle::check_random(schedules, 2000);
}
