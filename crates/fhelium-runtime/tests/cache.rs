//! The specialization cache under real threads.
#![cfg(not(feature = "shuttle"))]

use fhelium_runtime::{
    ArgumentSignature, CallSignature, Condition, RecursivePreparation, SpecializationCache,
    StaticValue,
};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

#[derive(Debug, PartialEq, thiserror::Error)]
enum Error {
    #[error("refused")]
    Refused,
    #[error(transparent)]
    Recursive(#[from] RecursivePreparation),
}

fn signature(value: i64) -> CallSignature {
    CallSignature::new(vec![ArgumentSignature {
        name: "k".into(),
        condition: Condition::Static(StaticValue::Int(value)),
    }])
}

/// Guards that threads that miss on one signature at once prepare it once and share the result.
#[test]
fn one_miss_prepares_once() {
    let cache = SpecializationCache::<u64>::new(None);
    let (prepared, barrier) = (AtomicUsize::new(0), Barrier::new(8));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                let value = cache.get_or_prepare(&signature(1), || {
                    prepared.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(std::time::Duration::from_millis(20));
                    Ok::<_, Error>(7)
                });
                assert_eq!(value.as_deref(), Ok(&7));
            });
        }
    });
    assert_eq!(prepared.into_inner(), 1);
    let counters = cache.counters();
    assert_eq!((counters.hits, counters.misses), (7, 1));
    assert!(counters.preparation.as_millis() >= 20);
}

/// Guards that a hit does not wait for the preparation of another signature.
#[test]
fn a_hit_passes_a_preparation() {
    let cache = SpecializationCache::<u64>::new(None);
    cache.insert(&signature(1), Arc::new(1));
    let (begun, wait_begun) = mpsc::channel();
    let (finish, wait_finish) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let cache = &cache;
        scope.spawn(move || {
            cache.get_or_prepare(&signature(2), || {
                begun.send(()).unwrap();
                wait_finish.recv().unwrap();
                Ok::<_, Error>(2)
            })
        });
        wait_begun.recv().unwrap();
        // This thread alone can let the preparation end, so a hit that waited would never return.
        assert_eq!(cache.lookup(&signature(1)).as_deref(), Some(&1));
        let other = cache.get_or_prepare(&signature(3), || Ok::<_, Error>(3));
        assert_eq!(other.as_deref(), Ok(&3));
        finish.send(()).unwrap();
    });
    assert_eq!(cache.lookup(&signature(2)).as_deref(), Some(&2));
}

/// Guards that a failure is told to the caller, stores nothing and lets those who wait try.
#[test]
fn a_failure_is_not_kept() {
    let cache = SpecializationCache::<u64>::new(None);
    let attempts = AtomicUsize::new(0);
    let barrier = Barrier::new(4);
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    cache.get_or_prepare(&signature(1), || {
                        match attempts.fetch_add(1, Ordering::SeqCst) {
                            0 => Err(Error::Refused),
                            _ => Ok(5),
                        }
                    })
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
    assert_eq!(attempts.into_inner(), 2);
    assert_eq!(cache.len(), 1);
}

/// Guards that a panic in a preparation leaves the cache usable and wakes those who wait.
#[test]
fn a_panic_is_a_failure() {
    let cache = SpecializationCache::<u64>::new(None);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.get_or_prepare(&signature(1), || -> Result<u64, Error> {
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    let value = cache.get_or_prepare(&signature(1), || Ok::<_, Error>(1));
    assert_eq!(value.as_deref(), Ok(&1));
}

/// Guards that a preparation asking for itself is an error and no deadlock.
#[test]
fn recursion_is_refused() {
    let cache = SpecializationCache::<u64>::new(None);
    let value = cache.get_or_prepare(&signature(1), || {
        let inner = cache.get_or_prepare(&signature(1), || Ok::<_, Error>(1))?;
        Ok::<_, Error>(*inner + 1)
    });
    assert!(matches!(value, Err(Error::Recursive(_))));
    assert!(cache.is_empty());
}

/// Guards that a preparation begun before a clear is handed to its caller and not stored.
#[test]
fn clear_outlives_a_preparation() {
    let cache = SpecializationCache::<u64>::new(None);
    let stale = cache.get_or_prepare(&signature(1), || {
        cache.clear();
        Ok::<_, Error>(1)
    });
    assert_eq!(stale.as_deref(), Ok(&1));
    assert!(cache.is_empty());
    let fresh = cache.get_or_prepare(&signature(1), || Ok::<_, Error>(2));
    assert_eq!(fresh.as_deref(), Ok(&2));
    assert_eq!(cache.lookup(&signature(1)).as_deref(), Some(&2));
}

/// Guards the limit: the variant used longest ago goes, the order of preparation stays.
#[test]
fn the_limit_drops_the_least_recently_used() {
    let cache = SpecializationCache::<i64>::new(NonZeroUsize::new(2));
    let prepare = |value| cache.get_or_prepare(&signature(value), || Ok::<_, Error>(value));
    prepare(1).unwrap();
    prepare(2).unwrap();
    cache.lookup(&signature(1)).unwrap();
    prepare(3).unwrap();
    let kept: Vec<i64> = cache.entries().iter().map(|(_, value)| **value).collect();
    assert_eq!(kept, [1, 3]);
    assert_eq!(cache.counters().evictions, 1);
}

/// Guards calls, clears and preparations racing: every call gets its own signature's value.
#[test]
fn calls_and_clears_race_safely() {
    let cache = SpecializationCache::<i64>::new(NonZeroUsize::new(3));
    thread::scope(|scope| {
        let cache = &cache;
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..500 {
                    let value = (round * 7 + thread) % 5;
                    let found = cache.get_or_prepare(&signature(value), || Ok::<_, Error>(value));
                    assert_eq!(found.as_deref(), Ok(&value));
                    if round % 50 == thread {
                        cache.clear();
                    }
                }
            });
        }
    });
    let counters = cache.counters();
    assert_eq!(counters.hits + counters.misses, 2000);
}
