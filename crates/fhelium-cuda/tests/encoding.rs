//! Guards that a device encodes and decodes as the CPU does: integers and lifts exactly, the
//! complex transform within its stated bound of rounding.

mod contexts;
mod words;

use contexts::{contexts, has_kernels};
use fhelium_ckks::{Complex64, Message, Parameters, PlainState, Plaintext, Randomness, Scale};
use fhelium_cuda::{Context, Core, CudaError};
use num_bigint::BigInt;
use words::{complex, reals, word};

struct Bench {
    host: fhelium_ckks::Context,
    device: Context,
}

impl Bench {
    /// None in a build without kernels.
    fn new(parameters: &Parameters, core: Option<Core>) -> Option<Self> {
        if !has_kernels() {
            return None;
        }
        let (host, device) = contexts(parameters, core);
        Some(Bench { host, device })
    }

    fn log_slots(&self) -> f64 {
        f64::from(self.host.parameters().log_n() - 1)
    }

    /// The coefficients' integers, centred, of one plaintext: by the Chinese remainder theorem.
    fn integers(&self, plaintext: &Plaintext) -> Vec<BigInt> {
        let parameters = self.host.parameters();
        let (n, level) = (parameters.n(), plaintext.state().level);
        let moduli = &parameters.moduli()[..=level];
        let product: BigInt = moduli.iter().map(|&q| BigInt::from(q)).product();
        let mut sums = vec![BigInt::from(0); plaintext.data().len() / moduli.len()];
        for (index, limb) in plaintext.data().chunks_exact(n).enumerate() {
            let (item, q) = (index / moduli.len(), moduli[index % moduli.len()]);
            let mut limb = limb.to_vec();
            fhelium_ckks::arith::Limb::new(n, q, self.host.tier())
                .unwrap()
                .inverse(&mut limb);
            let cofactor = &product / q;
            let inverse = (&cofactor % q).modpow(&BigInt::from(q - 2), &BigInt::from(q));
            let factor = cofactor * inverse;
            for (sum, residue) in sums[item * n..].iter_mut().zip(limb) {
                *sum += &factor * residue;
            }
        }
        let centred = |sum: BigInt| {
            let value = sum % &product;
            if &value * 2 > product {
                value - &product
            } else {
                value
            }
        };
        sums.into_iter().map(centred).collect()
    }
}

impl Bench {
    /// Both are within the transform's bound, and then rounded to the nearest integer.
    #[track_caller]
    fn same_encoding(&self, host: &Plaintext, device: &Plaintext, magnitude: f64) {
        let PlainState { level, scale } = host.state();
        let bound = (13.0 * self.log_slots() + 38.0) * 2f64.powi(-53);
        let limit = 2.0 * bound * magnitude * scale.to_f64() + 1.0;
        let mut differing = 0;
        for (a, b) in self.integers(host).iter().zip(self.integers(device)) {
            let difference: f64 = (a - b).to_string().parse().unwrap();
            assert!(
                difference.abs() <= limit,
                "at scale {scale} and level {level}: {difference} of {limit}"
            );
            differing += usize::from(difference != 0.0);
        }
        // Values that are far from a tie round the same way.
        if limit < 1.01 {
            assert!(differing <= 1 + host.data().len() / 32, "{differing}");
        }
    }

    #[track_caller]
    fn same_messages(&self, host: &[Complex64], device: &[Complex64]) {
        assert_eq!(host.len(), device.len());
        let slots = self.host.parameters().slots();
        let bound = 2.0 * (13.0 * self.log_slots() + 37.0) * 2f64.powi(-53);
        for (host, device) in host.chunks_exact(slots).zip(device.chunks_exact(slots)) {
            let norm = host.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
            for (a, b) in host.iter().zip(device) {
                assert!((a - b).norm() <= bound * norm, "{a} and {b}");
            }
        }
    }
}

fn parameters(log_n: u32, depth: usize, scale_bits: u32) -> Parameters {
    let mut builder = Parameters::builder(depth, scale_bits)
        .log_n(log_n)
        .special_primes(1)
        .allow_insecure(true);
    if scale_bits > 51 {
        builder = builder.first_bits(60);
    }
    builder.build().unwrap()
}

/// Both parities of the transform's layers, both cores, small and large primes.
fn settings() -> Vec<(Parameters, Option<Core>)> {
    vec![
        (parameters(10, 4, 40), Some(Core::Fp64)),
        (parameters(10, 4, 40), Some(Core::Integer)),
        (parameters(11, 3, 58), None),
        (parameters(12, 1, 22), None),
    ]
}

/// Scales that a level holds, from the smallest on: below and beyond what 64 bits hold.
fn scales(parameters: &Parameters, level: usize) -> Vec<Scale> {
    let most = parameters.chain().log_q(level) - 3.0;
    let odd = parameters.scale().times(&Scale::from_bits(3));
    let mut scales: Vec<_> = [20u32, 33, 52, 59, 62, 64, 80, 130, 200]
        .into_iter()
        .filter(|&bits| f64::from(bits) <= most)
        .map(Scale::from_bits)
        .collect();
    scales.extend((odd.log2() <= most).then_some(odd));
    scales
}

#[test]
fn encodings_are_those_of_the_cpu_within_the_transforms_rounding() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let slots = parameters.slots();
        for level in [0, parameters.depth()] {
            for (case, scale) in scales(&parameters, level).into_iter().enumerate() {
                let shapes: [&[usize]; 4] = [&[slots], &[1], &[2, slots / 2 + 3], &[0, 5]];
                let shape = shapes[case % 4];
                let count = shape.iter().product();
                let size = [1.0, 0.3, 1e-6][case % 3];
                let seed = case as u64;
                let real: Vec<_> = reals(count, seed).iter().map(|v| v * size).collect();
                let pairs: Vec<_> = complex(count, seed).iter().map(|v| v * size).collect();
                let message = if case % 2 == 0 {
                    Message::complex(&pairs, shape).unwrap()
                } else {
                    Message::real(&real, shape).unwrap()
                };
                let host = bench.host.encode(message, level, &scale).unwrap();
                let device = bench.device.encode(message, level, &scale).unwrap();
                let device = bench.device.download_plaintext(&device).unwrap();
                assert_eq!(host.state(), device.state());
                assert_eq!(host.batch_shape(), device.batch_shape());
                bench.same_encoding(&host, &device, message.magnitude());
            }
        }
    }
}

#[test]
fn constants_are_those_of_the_cpu() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        for level in 0..=parameters.depth() {
            for scale in scales(&parameters, level) {
                for value in [
                    Complex64::new(0.0, 0.0),
                    Complex64::new(-0.7, 0.0),
                    Complex64::new(0.25, -1.0 / 3.0),
                ] {
                    let values = [value];
                    let message = Message::complex(&values, &[]).unwrap();
                    let host = bench.host.encode(message, level, &scale).unwrap();
                    let device = bench.device.encode(message, level, &scale).unwrap();
                    let device = bench.device.download_plaintext(&device).unwrap();
                    assert!(host == device, "{value} at scale {scale}, level {level}");
                }
            }
        }
    }
}

/// A constant polynomial's slots are its constant without rounding: what is left is the lift.
#[test]
fn lifted_integers_are_those_of_the_cpu() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let (n, slots) = (parameters.n(), parameters.slots());
        for level in [0, parameters.depth()] {
            let moduli = &parameters.moduli()[..=level];
            let product: BigInt = moduli.iter().map(|&q| BigInt::from(q)).product();
            let half: BigInt = &product / 2;
            // Near zero, around one and two primes and a float's mantissa, near the ends, anywhere.
            let mut integers = vec![BigInt::from(0), half.clone(), -&half, &half - 1];
            for bits in [1, 24, 39, 52, 53, 54, 63, 64, 65, 79, 100, 127, 129, 180] {
                let power: BigInt = BigInt::from(1) << bits;
                integers.extend([power.clone() - 1, power.clone(), -power - 1]);
            }
            for index in 0..8 {
                let random = BigInt::from(word(7, index)) << 150 | BigInt::from(word(8, index));
                integers.push((random >> (8 * index as usize)) - (&half >> (10 * index as usize)));
            }
            integers.retain(|integer| integer <= &half && integer >= &-&half);
            let residue = |integer: &BigInt, q: u64| {
                let q = BigInt::from(q);
                u64::try_from(((integer % &q) + &q) % &q).unwrap()
            };
            let data = integers
                .iter()
                .flat_map(|integer| moduli.iter().map(move |&q| residue(integer, q)))
                .flat_map(|residue| std::iter::repeat_n(residue, n));
            let data: Vec<u64> = data.collect();
            for scale in scales(&parameters, level).into_iter().step_by(5) {
                let state = PlainState { level, scale };
                let shape = vec![integers.len()];
                let plaintext =
                    Plaintext::from_raw(&parameters, state, shape, data.clone()).unwrap();
                let host = bench.host.decode_real(&plaintext).unwrap();
                let uploaded = bench.device.upload_plaintext(&plaintext).unwrap();
                let device = bench.device.decode_real(&uploaded).unwrap();
                for (index, integer) in integers.iter().enumerate() {
                    assert_eq!(
                        host[index * slots],
                        device[index * slots],
                        "{integer} at scale {} and level {level}",
                        plaintext.state().scale
                    );
                }
                assert!(host == device);
            }
        }
    }
}

#[test]
fn decoded_messages_are_those_of_the_cpu_within_the_transforms_rounding() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let slots = parameters.slots();
        for level in 0..=parameters.depth() {
            for (case, scale) in scales(&parameters, level).into_iter().enumerate() {
                let values = complex(3 * slots, case as u64 + 20);
                let shape = [3, 1, slots];
                let message = Message::complex(&values, &shape).unwrap();
                let plaintext = bench.host.encode(message, level, &scale).unwrap();
                let uploaded = bench.device.upload_plaintext(&plaintext).unwrap();
                let host = bench.host.decode(&plaintext).unwrap();
                let device = bench.device.decode(&uploaded).unwrap();
                let real = bench.device.decode_real(&uploaded).unwrap();
                bench.same_messages(&host, &device);
                assert!(device.iter().map(|value| value.re).eq(real));
            }
        }
    }
}

/// The passes of every size; those of the largest take long on the host.
#[test]
fn every_ring_degree_encodes_and_decodes_as_the_cpu_does() {
    for log_n in 12..=17 {
        for core in [Core::Fp64, Core::Integer] {
            let Some(bench) = Bench::new(&parameters(log_n, 1, 40), Some(core)) else {
                return;
            };
            let emulated = bench.device.device().name().starts_with("emulated");
            if emulated && (log_n > 13 || core == Core::Integer) {
                return;
            }
            let (slots, scale) = (1 << (log_n - 1), bench.host.parameters().scale().clone());
            let values = complex(slots, log_n.into());
            let shape = [slots];
            let message = Message::complex(&values, &shape).unwrap();
            let host = bench.host.encode(message, 1, &scale).unwrap();
            let device = bench.device.encode(message, 1, &scale).unwrap();
            let back = bench.device.download_plaintext(&device).unwrap();
            bench.same_encoding(&host, &back, message.magnitude());
            let found = bench.device.decode(&device).unwrap();
            bench.same_messages(&bench.host.decode(&back).unwrap(), &found);
        }
    }
}

#[test]
fn messages_come_back_from_the_device() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let device = &bench.device;
        let randomness = Randomness::from_seed_for_tests(1);
        let keys = fhelium_cuda::KeyGenerator::new(device, &randomness);
        let secret = keys.secret().unwrap();
        let public = keys.public(&secret).unwrap();
        let values = reals(2 * 7, 3);
        let message = Message::real(&values, &[2, 7]).unwrap();
        let used = device.memory().used;
        for level in 0..=parameters.depth() {
            let plaintext = device.encode(message, level, parameters.scale()).unwrap();
            let ciphertext = device.encrypt(&plaintext, &public, &randomness).unwrap();
            let back = device.decrypt(&ciphertext, &secret).unwrap();
            let found = device.decode_real(&back).unwrap();
            let noise = parameters.noise();
            let fresh = noise.encrypt_public(&noise.encode(level, parameters.scale(), 1.0));
            let limit = noise.decode(&fresh);
            for (item, found) in found.chunks_exact(parameters.slots()).enumerate() {
                for (slot, value) in found.iter().enumerate() {
                    let expected = if slot < 7 {
                        values[7 * item + slot]
                    } else {
                        0.0
                    };
                    assert!((value - expected).abs() <= limit, "{value} for {expected}");
                }
            }
        }
        // Nothing that an operation took stays taken.
        assert_eq!(device.memory().used, used);
    }
}

#[test]
fn refusals_are_those_of_the_cpu() {
    let set = parameters(10, 2, 40);
    let (Some(bench), Some(other)) = (
        Bench::new(&set, None),
        Bench::new(&parameters(10, 1, 40), None),
    ) else {
        return;
    };
    let slots = set.slots();
    let many = vec![0.5; slots + 1];
    let huge = bench.host.message_bound(0, set.scale()) * 1.01;
    let cases: Vec<(Vec<f64>, Vec<usize>, usize)> = vec![
        (vec![1.0, f64::NAN], vec![2], 1),
        (vec![f64::NEG_INFINITY], vec![], 1),
        (vec![0.0, 0.0, -huge], vec![3, 1], 0),
        (vec![huge], vec![], 0),
        (many, vec![slots + 1], 2),
        (vec![], vec![2, 0], 2),
        (vec![0.5], vec![1], 3),
    ];
    for (values, shape, level) in cases {
        let message = Message::real(&values, &shape).unwrap();
        let host = bench.host.encode(message, level, set.scale()).unwrap_err();
        let device = bench
            .device
            .encode(message, level, set.scale())
            .unwrap_err();
        assert_eq!(host.to_string(), device.to_string());
    }
    let values = [0.5];
    let message = Message::real(&values, &[]).unwrap();
    let foreign = other.host.encode(message, 0, set.scale()).unwrap();
    let on_device = other.device.encode(message, 0, set.scale()).unwrap();
    assert_eq!(
        bench.host.decode(&foreign).unwrap_err().to_string(),
        bench.device.decode(&on_device).unwrap_err().to_string()
    );
    // A replay would encode the same message again.
    let recorded = bench.device.capture(&[], |_: &[fhelium_cuda::Ciphertext]| {
        bench.device.encode(message, 0, set.scale())?;
        Ok::<_, CudaError>(Vec::new())
    });
    assert!(matches!(recorded, Err(CudaError::Capture { .. })));
}
