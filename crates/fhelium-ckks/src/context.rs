//! Tables and threads for one parameter set.

use crate::arith::{BaseConverter, Limb, Modulus, Tier};
use crate::buffers::{Buffer, BufferPool, MemoryUse};
use crate::encoding::Embedding;
use crate::error::{CkksError, Result};
use crate::ops::UnitTimes;
use crate::parameters::Parameters;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The most threads of a context: far more would bring the machine down before they are refused.
const MAX_THREADS: usize = 1024;

/// How a [`Context`] computes; the results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextOptions {
    /// Threads; as many as the process may use by default.
    pub threads: Option<usize>,
    /// The vector instructions; the best of the machine by default, or what `FHELIUM_CPU_TIER`
    /// names.
    pub tier: Option<Tier>,
}

/// Everything that operations on values of one parameter set need, computed once: transform tables,
/// base conversions, permutations and a pool of threads. Clones share it, and all methods may be
/// called from several threads at once.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    parameters: Parameters,
    tier: Tier,
    threads: usize,
    /// None for one thread: then everything runs on the caller's.
    pool: Option<ThreadPool>,
    /// The rings of the moduli, then those of the special moduli.
    limbs: Vec<Limb>,
    embedding: Embedding,
    levels: Vec<LevelTables>,
    /// The product P of the special primes, modulo each modulus.
    special_products: Vec<u64>,
    /// -1 / P modulo each modulus.
    minus_special_inverses: Vec<u64>,
    permutations: RwLock<HashMap<usize, Arc<[u32]>>>,
    buffers: BufferPool,
    unit_times: OnceLock<UnitTimes>,
}

/// What one level needs; the base conversions are made when first used.
struct LevelTables {
    mod_up: Vec<OnceLock<BaseConverter>>,
    mod_down: OnceLock<BaseConverter>,
    /// -1 / q modulo each lower modulus, q being this level's.
    minus_inverses: Vec<u64>,
}

impl Context {
    /// Computes the tables for `parameters`.
    ///
    /// # Errors
    /// [`CkksError::Arith`] for a tier that the machine lacks, [`CkksError::Parameter`] for zero
    /// threads, [`CkksError::Threads`] when they cannot be started.
    pub fn new(parameters: &Parameters, options: ContextOptions) -> Result<Self> {
        let tier = options.tier.map_or_else(Tier::detect, Ok)?;
        let threads = match options.threads {
            Some(threads) if !(1..=MAX_THREADS).contains(&threads) => {
                return Err(CkksError::Parameter {
                    argument: "threads",
                    found: threads.to_string(),
                    expected: format!("1..={MAX_THREADS}"),
                });
            }
            Some(threads) => threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let pool = match threads {
            1 => None,
            _ => Some(
                ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(|index| format!("fhelium-{index}"))
                    .build()
                    .map_err(|error| CkksError::Threads {
                        threads,
                        reason: error.to_string(),
                    })?,
            ),
        };
        let n = parameters.n();
        let primes = parameters
            .moduli()
            .iter()
            .chain(parameters.special_moduli());
        let limbs = primes
            .map(|&prime| Limb::new(n, prime, tier))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let moduli: Vec<Modulus> = limbs[..=parameters.depth()]
            .iter()
            .map(Limb::modulus)
            .collect();
        let minus_inverse = |modulus: &Modulus, value: u64| {
            let inverse = modulus.inverse(modulus.reduce(value));
            inverse.map(|inverse| modulus.neg(inverse))
        };
        let product = |modulus: &Modulus| {
            let special = parameters.special_moduli().iter();
            special.fold(1, |product, &p| modulus.mul(product, modulus.reduce(p)))
        };
        let special_products: Vec<u64> = moduli.iter().map(product).collect();
        let minus_special_inverses = moduli
            .iter()
            .zip(&special_products)
            .map(|(modulus, &product)| minus_inverse(modulus, product))
            .collect::<std::result::Result<_, _>>()?;
        let level = |level: usize| {
            let inverse = |lower: &Modulus| minus_inverse(lower, moduli[level].value());
            let minus_inverses = moduli[..level].iter().map(inverse);
            Ok(LevelTables {
                mod_up: vec![OnceLock::new(); parameters.digits(level)],
                mod_down: OnceLock::new(),
                minus_inverses: minus_inverses.collect::<std::result::Result<_, _>>()?,
            })
        };
        let levels = (0..=parameters.depth()).map(level).collect::<Result<_>>()?;
        Ok(Context(Arc::new(Inner {
            parameters: parameters.clone(),
            tier,
            threads,
            pool,
            limbs,
            embedding: Embedding::new(n),
            levels,
            special_products,
            minus_special_inverses,
            permutations: RwLock::default(),
            buffers: BufferPool::new(kept_words(parameters)),
            unit_times: OnceLock::new(),
        })))
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.0.parameters
    }

    /// The vector instructions in use.
    pub fn tier(&self) -> Tier {
        self.0.tier
    }

    /// The threads in use.
    pub fn threads(&self) -> usize {
        self.0.threads
    }

    /// Runs `work` on the context's threads.
    ///
    /// Operations do that themselves; around several of them it saves the change of threads for
    /// each.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Calls `work` for each item, in parallel where there are several threads and items.
    pub(crate) fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(T) + Send + Sync) {
        match &self.0.pool {
            Some(pool) if items.len() > 1 => {
                pool.install(|| items.into_par_iter().with_max_len(1).for_each(work));
            }
            _ => items.into_iter().for_each(work),
        }
    }

    /// Calls `work` with the index and the slice of each limb of a buffer.
    pub(crate) fn each_limb(
        &self,
        data: &mut [u64],
        work: impl Fn(usize, &mut [u64]) + Send + Sync,
    ) {
        let limbs = data.chunks_exact_mut(self.n()).enumerate().collect();
        self.each(limbs, |(index, limb)| work(index, limb));
    }

    pub(crate) fn n(&self) -> usize {
        self.0.parameters.n()
    }

    /// The rings of the moduli, then of the special moduli.
    pub(crate) fn limbs(&self) -> &[Limb] {
        &self.0.limbs
    }

    /// How many special primes there are.
    pub(crate) fn special_count(&self) -> usize {
        self.parameters().special_moduli().len()
    }

    /// The rings that key switching at `level` works over: the first `level + 1` moduli, then the
    /// special moduli, as indices into [`limbs`](Self::limbs).
    pub(crate) fn extended_limb(&self, level: usize, index: usize) -> usize {
        if index <= level {
            index
        } else {
            index + self.parameters().depth() - level
        }
    }

    /// The special modulus P modulo a level's prime.
    pub(crate) fn special_product(&self, limb: usize) -> u64 {
        self.0.special_products[limb]
    }

    pub(crate) fn embedding(&self) -> &Embedding {
        &self.0.embedding
    }

    /// Bytes of residues that values and operations of this context use.
    pub fn memory(&self) -> MemoryUse {
        self.0.buffers.memory()
    }

    /// Has the peak of [`memory`](Self::memory) count from now on.
    pub fn reset_peak(&self) {
        self.0.buffers.reset_peak();
    }

    pub(crate) fn unit_times_cell(&self) -> &OnceLock<UnitTimes> {
        &self.0.unit_times
    }

    /// Memory whose contents are left from an earlier use: write before reading.
    pub(crate) fn buffer(&self, words: usize) -> Buffer {
        self.0.buffers.take(words)
    }

    /// The same for the result of an operation, whose size is the caller's choice of a batch: refused
    /// where memory lacks.
    pub(crate) fn result_buffer(&self, operation: &'static str, words: usize) -> Result<Buffer> {
        self.0.buffers.try_take(operation, words)
    }

    /// From the primes of a digit at a level to all others of that level and the special primes, in
    /// ascending order.
    pub(crate) fn mod_up(&self, level: usize, digit: usize) -> &BaseConverter {
        self.0.levels[level].mod_up[digit].get_or_init(|| {
            let own = self.parameters().digit_range(level, digit);
            let all = 0..level + 1 + self.special_count();
            let others: Vec<_> = all.filter(|index| !own.contains(index)).collect();
            self.converter(level, &own.collect::<Vec<_>>(), &others)
        })
    }

    /// -1 / P modulo a level's prime.
    pub(crate) fn minus_special_inverse(&self, limb: usize) -> u64 {
        self.0.minus_special_inverses[limb]
    }

    /// -1 / q modulo a lower level's prime, q being the prime of `level`.
    pub(crate) fn minus_prime_inverse(&self, level: usize, limb: usize) -> u64 {
        self.0.levels[level].minus_inverses[limb]
    }

    /// From the special primes to the primes of a level.
    pub(crate) fn mod_down(&self, level: usize) -> &BaseConverter {
        self.0.levels[level].mod_down.get_or_init(|| {
            let special: Vec<_> = (level + 1..level + 1 + self.special_count()).collect();
            self.converter(level, &special, &(0..=level).collect::<Vec<_>>())
        })
    }

    fn converter(&self, level: usize, from: &[usize], to: &[usize]) -> BaseConverter {
        let moduli = |indices: &[usize]| -> Vec<Modulus> {
            let limbs = indices
                .iter()
                .map(|&index| &self.limbs()[self.extended_limb(level, index)]);
            limbs.map(Limb::modulus).collect()
        };
        BaseConverter::new(&moduli(from), &moduli(to), self.tier())
            .expect("parameters hold distinct primes, at least one of each kind")
    }

    /// The permutation of transformed limbs under X -> X^galois.
    pub(crate) fn permutation(&self, galois: usize) -> Arc<[u32]> {
        let known = self
            .0
            .permutations
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(permutation) = known.get(&galois) {
            return permutation.clone();
        }
        drop(known);
        let made: Arc<[u32]> = self.limbs()[0]
            .automorphism_permutation(galois as u64)
            .expect("powers of five and -1 are odd")
            .into();
        let mut known = self
            .0
            .permutations
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        known.entry(galois).or_insert(made).clone()
    }
}

/// Memory that a context keeps between operations: eight fresh ciphertexts and what two key switches
/// work on.
fn kept_words(parameters: &Parameters) -> usize {
    let limbs = parameters.moduli().len();
    let extended = limbs + parameters.special_moduli().len();
    let key_switch = (parameters.digits(parameters.depth()) + 2) * extended;
    (8 * 2 * limbs + 2 * key_switch) * parameters.n()
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("parameters", self.parameters())
            .field("tier", &self.tier())
            .field("threads", &self.threads())
            .finish()
    }
}
