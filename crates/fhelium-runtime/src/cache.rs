//! The table of prepared specializations of one compiled function.
//!
//! A hit takes a read lock for the length of one hash look-up. A preparation runs outside every
//! lock, so that calls of other signatures go on; calls of the same signature wait for it. A
//! preparation that fails, or panics, stores nothing and wakes those who wait: the next of them
//! tries itself.

use crate::CallSignature;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, RwLock, ThreadId, current_thread};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// A cache of what is prepared for each signature.
#[derive(Debug)]
pub struct SpecializationCache<V> {
    table: RwLock<Table<V>>,
    preparing: Mutex<HashMap<CallSignature, Arc<Preparation<V>>>>,
    limit: Option<NonZeroUsize>,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    preparation_nanos: AtomicU64,
}

#[derive(Debug)]
struct Table<V> {
    /// In the order of preparation.
    entries: IndexMap<CallSignature, Entry<V>>,
    /// Counts the clears, so that a preparation begun before one is not stored after it.
    generation: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    last_used: AtomicU64,
}

/// A preparation under way.
#[derive(Debug)]
struct Preparation<V> {
    owner: ThreadId,
    state: Mutex<State<V>>,
    ended: Condvar,
}

#[derive(Debug)]
enum State<V> {
    Running,
    Ready(Arc<V>),
    Failed,
}

/// What a cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Calls served by a finished preparation, one that they waited for included.
    pub hits: u64,
    /// Calls that prepared, or were refused where none may be prepared.
    pub misses: u64,
    /// Variants dropped because of the limit.
    pub evictions: u64,
    /// Time spent in preparations, failed ones included.
    pub preparation: Duration,
}

/// A preparation that asks, in the same thread, for what it is preparing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the function calls itself with the same arguments {signature} while it is being compiled; a \
     compiled function cannot be recursive"
)]
pub struct RecursivePreparation {
    /// The signature.
    pub signature: CallSignature,
}

impl<V> SpecializationCache<V> {
    /// A cache that keeps at most `limit` variants, dropping the one used longest ago; `None`
    /// keeps all.
    pub fn new(limit: Option<NonZeroUsize>) -> Self {
        SpecializationCache {
            table: RwLock::new(Table {
                entries: IndexMap::new(),
                generation: 0,
            }),
            preparing: Mutex::new(HashMap::new()),
            limit,
            clock: AtomicU64::new(1),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            preparation_nanos: AtomicU64::new(0),
        }
    }

    /// The most variants kept; `None` for all.
    pub fn limit(&self) -> Option<NonZeroUsize> {
        self.limit
    }

    /// What is prepared for the signature; counted as a hit where there is something.
    pub fn lookup(&self, signature: &CallSignature) -> Option<Arc<V>> {
        let found = self.find(signature)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// What is prepared for the signature, without counting.
    pub fn peek(&self, signature: &CallSignature) -> Option<Arc<V>> {
        let table = read(&self.table);
        table
            .entries
            .get(signature)
            .map(|entry| entry.value.clone())
    }

    fn find(&self, signature: &CallSignature) -> Option<Arc<V>> {
        let table = read(&self.table);
        let entry = table.entries.get(signature)?;
        if self.limit.is_some() {
            entry.last_used.store(self.tick(), Ordering::Relaxed);
        }
        Some(entry.value.clone())
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a call that was refused because nothing was prepared for it.
    pub fn count_refusal(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// What is prepared for the signature, else the result of `prepare`, which is then stored.
    ///
    /// Of several threads that ask for one signature at once, one prepares and the others wait
    /// for it.
    ///
    /// # Errors
    /// What `prepare` returns; or [`RecursivePreparation`] if this thread is preparing the same
    /// signature already.
    pub fn get_or_prepare<E: From<RecursivePreparation>>(
        &self,
        signature: &CallSignature,
        prepare: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        loop {
            if let Some(found) = self.lookup(signature) {
                return Ok(found);
            }
            let (preparation, generation) = match self.join(signature) {
                Joined::Owner {
                    preparation,
                    generation,
                } => (preparation, generation),
                Joined::Waiter(preparation) => {
                    if preparation.owner == current_thread() {
                        return Err(RecursivePreparation {
                            signature: signature.clone(),
                        }
                        .into());
                    }
                    match preparation.wait() {
                        Some(value) => {
                            self.hits.fetch_add(1, Ordering::Relaxed);
                            return Ok(value);
                        }
                        None => continue,
                    }
                }
                // Stored between the look-up and the join.
                Joined::Stored => continue,
            };
            self.misses.fetch_add(1, Ordering::Relaxed);
            let started = Instant::now();
            let ending = Ending {
                cache: self,
                signature,
                preparation: &preparation,
                started,
            };
            let value = Arc::new(prepare()?);
            self.store(signature, &value, Some(generation));
            *lock(&preparation.state) = State::Ready(value.clone());
            drop(ending);
            return Ok(value);
        }
    }

    /// Joins the preparation of the signature, beginning it where there is none.
    fn join(&self, signature: &CallSignature) -> Joined<V> {
        let mut preparing = lock(&self.preparing);
        if let Some(preparation) = preparing.get(signature) {
            return Joined::Waiter(preparation.clone());
        }
        // A preparation leaves `preparing` after its result is in the table, so this look-up
        // under the lock sees every result that ended before.
        let table = read(&self.table);
        if table.entries.contains_key(signature) {
            return Joined::Stored;
        }
        let preparation = Arc::new(Preparation {
            owner: current_thread(),
            state: Mutex::new(State::Running),
            ended: Condvar::new(),
        });
        preparing.insert(signature.clone(), preparation.clone());
        Joined::Owner {
            preparation,
            generation: table.generation,
        }
    }

    /// Stores a variant that was prepared elsewhere, unless one is there already.
    pub fn insert(&self, signature: &CallSignature, value: Arc<V>) {
        self.store(signature, &value, None);
    }

    fn store(&self, signature: &CallSignature, value: &Arc<V>, generation: Option<u64>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if generation.is_some_and(|generation| generation != table.generation)
            || table.entries.contains_key(signature)
        {
            return;
        }
        if let Some(limit) = self.limit {
            while table.entries.len() >= limit.get() {
                let oldest = table
                    .entries
                    .values()
                    .enumerate()
                    .min_by_key(|(_, entry)| entry.last_used.load(Ordering::Relaxed));
                let Some((position, _)) = oldest else { break };
                table.entries.shift_remove_index(position);
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
        let entry = Entry {
            value: value.clone(),
            last_used: AtomicU64::new(self.tick()),
        };
        table.entries.insert(signature.clone(), entry);
    }

    /// Drops every variant. Preparations under way end for those who wait for them and are not
    /// stored; counters stay.
    pub fn clear(&self) {
        // Both locks together: a call after the clear neither finds an entry nor joins a
        // preparation from before it.
        let mut preparing = lock(&self.preparing);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        preparing.clear();
        table.generation += 1;
        let entries = std::mem::take(&mut table.entries);
        drop(table);
        drop(preparing);
        drop(entries);
    }

    /// The variants, in the order of their preparation.
    pub fn entries(&self) -> Vec<(CallSignature, Arc<V>)> {
        read(&self.table)
            .entries
            .iter()
            .map(|(signature, entry)| (signature.clone(), entry.value.clone()))
            .collect()
    }

    /// Calls `see` for each variant, or for none where the table is being written to: for
    /// somebody who must not wait.
    pub fn visit(&self, mut see: impl FnMut(&V)) {
        if let Ok(table) = self.table.try_read() {
            table.entries.values().for_each(|entry| see(&entry.value));
        }
    }

    /// How many variants there are.
    pub fn len(&self) -> usize {
        read(&self.table).entries.len()
    }

    /// Whether there is no variant.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the cache has done so far.
    pub fn counters(&self) -> CacheCounters {
        CacheCounters {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            preparation: Duration::from_nanos(self.preparation_nanos.load(Ordering::Relaxed)),
        }
    }
}

impl<V> Default for SpecializationCache<V> {
    fn default() -> Self {
        SpecializationCache::new(None)
    }
}

enum Joined<V> {
    Owner {
        preparation: Arc<Preparation<V>>,
        generation: u64,
    },
    Waiter(Arc<Preparation<V>>),
    Stored,
}

impl<V> Preparation<V> {
    /// The result, or `None` if the preparation failed.
    fn wait(&self) -> Option<Arc<V>> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                State::Ready(value) => return Some(value.clone()),
                State::Failed => return None,
                State::Running => {}
            }
            state = self
                .ended
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Ends a preparation however it ends: by a result, an error or a panic.
struct Ending<'a, V> {
    cache: &'a SpecializationCache<V>,
    signature: &'a CallSignature,
    preparation: &'a Arc<Preparation<V>>,
    started: Instant,
}

impl<V> Drop for Ending<'_, V> {
    fn drop(&mut self) {
        let mut preparing = lock(&self.cache.preparing);
        // After a clear, the entry may be another thread's new preparation.
        if preparing
            .get(self.signature)
            .is_some_and(|current| Arc::ptr_eq(current, self.preparation))
        {
            preparing.remove(self.signature);
        }
        drop(preparing);
        let mut state = lock(&self.preparation.state);
        if matches!(*state, State::Running) {
            *state = State::Failed;
        }
        drop(state);
        self.preparation.ended.notify_all();
        let nanos = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.cache
            .preparation_nanos
            .fetch_add(nanos, Ordering::Relaxed);
    }
}

// Each guarded state is whole at every point where a panic can leave it, so poisoning says
// nothing here.
fn lock<T>(mutex: &Mutex<T>) -> crate::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(table: &RwLock<T>) -> crate::sync::RwLockReadGuard<'_, T> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}
