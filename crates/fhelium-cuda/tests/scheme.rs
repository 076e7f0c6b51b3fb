//! Guards that keys, encryption and decryption on a device are the CPU's residue for residue, under
//! the same randomness, and that encoding and decoding are the CPU's but for the rounding of the
//! transform.

mod contexts;
mod words;

use contexts::{contexts, has_kernels};
use fhelium_ckks::{
    Ciphertext, KeyKind, Message, NoiseFlooding, Parameters, Plaintext, Randomness,
};
use fhelium_cuda::{Context, Core, CudaError};
use words::complex;

const CORES: [Core; 2] = [Core::Fp64, Core::Integer];

/// A parameter set on the host and a device.
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

    /// The same randomness for both.
    fn twice(seed: u64) -> [Randomness; 2] {
        [(); 2].map(|()| Randomness::from_seed_for_tests(seed))
    }

    fn keys(&self, seed: u64) -> Keys {
        let [here, there] = Bench::twice(seed);
        let host = fhelium_ckks::KeyGenerator::new(&self.host, &here);
        let device = fhelium_cuda::KeyGenerator::new(&self.device, &there);
        let secret = host.secret().unwrap();
        let device_secret = device.secret().unwrap();
        Keys {
            public: host.public(&secret).unwrap(),
            device_public: device.public(&device_secret).unwrap(),
            secret,
            device_secret,
        }
    }

    fn encoded(&self, shape: &[usize], level: usize, seed: u64) -> Plaintext {
        let values = complex(shape.iter().product(), seed);
        let message = Message::complex(&values, shape).unwrap();
        let scale = self.host.parameters().scale();
        self.host.encode(message, level, scale).unwrap()
    }
}

struct Keys {
    secret: fhelium_ckks::SecretKey,
    public: fhelium_ckks::PublicKey,
    device_secret: fhelium_cuda::SecretKey,
    device_public: fhelium_cuda::PublicKey,
}

fn parameters(log_n: u32, depth: usize, scale_bits: u32, special: usize) -> Parameters {
    let mut builder = Parameters::builder(depth, scale_bits)
        .log_n(log_n)
        .special_primes(special)
        .allow_insecure(true);
    if scale_bits > 51 {
        builder = builder.first_bits(60);
    }
    builder.build().unwrap()
}

/// Ring degrees, digit layouts, primes just above and below powers of two, and both cores.
fn settings() -> Vec<(Parameters, Option<Core>)> {
    let both = |parameters: Parameters| CORES.map(|core| (parameters.clone(), Some(core)));
    let mut all = Vec::new();
    all.extend(both(parameters(10, 3, 40, 1)));
    all.extend(both(parameters(11, 4, 40, 2)));
    all.extend(both(parameters(12, 1, 25, 1)));
    all.push((parameters(10, 2, 20, 1), None));
    all.push((parameters(10, 2, 58, 2), None));
    all
}

#[track_caller]
fn same_residues(what: &str, host: &[u64], device: &[u64]) {
    assert_eq!(host.len(), device.len(), "{what}");
    let differing = host.iter().zip(device).filter(|(a, b)| a != b).count();
    if let Some(first) = host.iter().zip(device).position(|(a, b)| a != b) {
        panic!(
            "{what}: {differing} of {} residues differ, first {first}: {} and {}",
            host.len(),
            host[first],
            device[first]
        );
    }
}

#[test]
fn keys_come_back_as_they_were_moved() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let randomness = Randomness::from_seed_for_tests(1);
        let keys = fhelium_ckks::KeyGenerator::new(&bench.host, &randomness);
        let secret = keys.secret().unwrap();
        let device = &bench.device;
        let back = device.upload_secret(&secret).unwrap();
        let back = device.download_secret(&back).unwrap();
        assert_eq!(back.secret_id(), secret.secret_id());
        let coefficients = |key: &fhelium_ckks::SecretKey| key.coefficients(&bench.host).unwrap();
        assert!(coefficients(&back) == coefficients(&secret));

        let public = keys.public(&secret).unwrap();
        let back = device.upload_public(&public).unwrap();
        let back = device.download_public(&back).unwrap();
        assert_eq!(
            (back.secret_id(), back.seed()),
            (public.secret_id(), public.seed())
        );
        same_residues("public key", public.residues(), back.residues());

        let key = keys.rotation(&secret, -3).unwrap();
        let back = device.upload_key(&key).unwrap();
        let back = device.download_key(&back).unwrap();
        assert_eq!(
            (back.secret_id(), back.key_kind(), back.seed()),
            (key.secret_id(), key.key_kind(), key.seed())
        );
        same_residues("evaluation key", key.residues(), back.residues());
    }
}

#[test]
fn generated_keys_are_those_of_the_cpu() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let [here, there] = Bench::twice(2);
        let host = fhelium_ckks::KeyGenerator::new(&bench.host, &here);
        let device = fhelium_cuda::KeyGenerator::new(&bench.device, &there);
        let secret = host.secret().unwrap();
        let device_secret = device.secret().unwrap();
        // By its residues on the device: all limbs, the special ones too.
        let uploaded = bench.device.upload_secret(&secret).unwrap();
        let residues =
            |key: &fhelium_cuda::SecretKey| bench.device.queue().download(key.buffer()).unwrap();
        assert!(residues(&uploaded) == residues(&device_secret));
        let back = bench.device.download_secret(&device_secret).unwrap();
        assert_eq!(back.secret_id(), secret.secret_id());
        let coefficients = |key: &fhelium_ckks::SecretKey| key.coefficients(&bench.host).unwrap();
        assert!(coefficients(&back) == coefficients(&secret));

        let public = host.public(&secret).unwrap();
        let device_public = device.public(&device_secret).unwrap();
        let expanded = bench
            .device
            .queue()
            .download(device_public.buffer())
            .unwrap();
        let (b, a) = expanded.split_at(expanded.len() / 2);
        same_residues("public key", public.residues(), b);
        same_residues("public key, uniform", public.uniform(&bench.host), a);
        let back = bench.device.download_public(&device_public).unwrap();
        assert_eq!(back.seed(), public.seed());

        let slots = parameters.slots();
        for kind in [
            KeyKind::Relinearization,
            KeyKind::rotation(1, slots),
            KeyKind::rotation(-5, slots),
            KeyKind::Conjugation,
        ] {
            let key = host.key(&secret, kind).unwrap();
            let device_key = device.key(&device_secret, kind).unwrap();
            let back = bench.device.download_key(&device_key).unwrap();
            assert_eq!((back.seed(), back.key_kind()), (key.seed(), kind));
            same_residues(&kind.to_string(), key.residues(), back.residues());
            // Uploaded and generated keys are one: the uniform halves too.
            let uploaded = bench.device.upload_key(&key).unwrap();
            let words = |key: &fhelium_cuda::KeySwitchKey| {
                bench.device.queue().download(key.buffer()).unwrap()
            };
            same_residues(&kind.to_string(), &words(&uploaded), &words(&device_key));
        }
        let error = device.rotation(&device_secret, slots as i64).unwrap_err();
        assert_eq!(
            error.to_string(),
            host.rotation(&secret, slots as i64)
                .unwrap_err()
                .to_string()
        );
    }
}

#[test]
fn ciphertexts_are_those_of_the_cpu() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let keys = bench.keys(3);
        let device = &bench.device;
        for (level, shape) in [
            (parameters.depth(), &[5][..]),
            (0, &[2, 3, 4]),
            (1, &[0, 1]),
        ] {
            let plaintext = bench.encoded(shape, level, 4);
            let uploaded = device.upload_plaintext(&plaintext).unwrap();
            let [here, there] = Bench::twice(5);
            let host = bench.host.encrypt(&plaintext, &keys.public, &here).unwrap();
            let public = device
                .encrypt(&uploaded, &keys.device_public, &there)
                .unwrap();
            let back = device.download(&public).unwrap();
            assert_eq!(back.state(), host.state());
            assert_eq!(back.secret_id(), host.secret_id());
            assert_eq!(back.batch_shape(), host.batch_shape());
            same_residues("under a public key", host.data(), back.data());

            let host = bench.host.encrypt(&plaintext, &keys.secret, &here).unwrap();
            let secret = device
                .encrypt(&uploaded, &keys.device_secret, &there)
                .unwrap();
            let back = device.download(&secret).unwrap();
            assert_eq!(back.secret_id(), host.secret_id());
            same_residues("under a secret", host.data(), back.data());
        }
    }
}

#[test]
fn decryptions_and_flooded_ones_are_those_of_the_cpu() {
    for (parameters, core) in settings() {
        let Some(bench) = Bench::new(&parameters, core) else {
            return;
        };
        let keys = bench.keys(6);
        let device = &bench.device;
        let randomness = Randomness::from_seed_for_tests(7);
        let encrypt = |shape: &[usize], level: usize| -> Ciphertext {
            let plaintext = bench.encoded(shape, level, 8);
            bench
                .host
                .encrypt(&plaintext, &keys.public, &randomness)
                .unwrap()
        };
        let top = encrypt(&[2, 3], parameters.depth());
        let product = bench.host.multiply(&top, &top).unwrap();
        for ciphertext in [&top, &product, &encrypt(&[1], 0)] {
            let host = bench.host.decrypt(ciphertext, &keys.secret).unwrap();
            let uploaded = device.upload(ciphertext).unwrap();
            let plaintext = device.decrypt(&uploaded, &keys.device_secret).unwrap();
            let back = device.download_plaintext(&plaintext).unwrap();
            assert_eq!(back.state(), host.state());
            assert_eq!(back.batch_shape(), host.batch_shape());
            same_residues("decrypted", host.data(), back.data());

            // Below and beyond what a 64-bit integer holds.
            let most = parameters.chain().log_q(host.state().level) - 5.0;
            for bits in [0.5, 17.25, most] {
                let flooding = NoiseFlooding {
                    log2_standard_deviation: bits,
                };
                let [here, there] = Bench::twice(9);
                let host = bench.host.flood(host.clone(), flooding, &here).unwrap();
                let flooded = device.flood(plaintext.clone(), flooding, &there).unwrap();
                let back = device.download_plaintext(&flooded).unwrap();
                same_residues(&format!("flooded by 2^{bits}"), host.data(), back.data());
            }
        }
    }
}

/// The seeds' expansion and the kernels' order at every size; the largest take long on the host.
#[test]
fn every_ring_degree_gives_the_keys_and_ciphertexts_of_the_cpu() {
    for log_n in 12..=17 {
        for core in CORES {
            let Some(bench) = Bench::new(&parameters(log_n, 2, 40, 2), Some(core)) else {
                return;
            };
            let emulated = bench.device.device().name().starts_with("emulated");
            if emulated && (log_n > 12 || core == Core::Integer) {
                return;
            }
            let keys = bench.keys(16);
            let [here, there] = Bench::twice(17);
            let key = fhelium_ckks::KeyGenerator::new(&bench.host, &here)
                .rotation(&keys.secret, 3)
                .unwrap();
            let device_key = fhelium_cuda::KeyGenerator::new(&bench.device, &there)
                .rotation(&keys.device_secret, 3)
                .unwrap();
            let back = bench.device.download_key(&device_key).unwrap();
            same_residues("evaluation key", key.residues(), back.residues());
            let uploaded = bench.device.upload_key(&key).unwrap();
            let words = |key: &fhelium_cuda::KeySwitchKey| {
                bench.device.queue().download(key.buffer()).unwrap()
            };
            same_residues("expanded", &words(&uploaded), &words(&device_key));

            let plaintext = bench.encoded(&[2, 9], 2, 18);
            let device = &bench.device;
            let on_device = device.upload_plaintext(&plaintext).unwrap();
            let host = bench.host.encrypt(&plaintext, &keys.public, &here).unwrap();
            let back = device
                .encrypt(&on_device, &keys.device_public, &there)
                .unwrap();
            same_residues(
                "under a public key",
                host.data(),
                device.download(&back).unwrap().data(),
            );
            let host = bench.host.encrypt(&plaintext, &keys.secret, &here).unwrap();
            let back = device
                .encrypt(&on_device, &keys.device_secret, &there)
                .unwrap();
            same_residues(
                "under a secret",
                host.data(),
                device.download(&back).unwrap().data(),
            );
            let host = bench.host.decrypt(&host, &keys.secret).unwrap();
            let back = device.decrypt(&back, &keys.device_secret).unwrap();
            let back = device.download_plaintext(&back).unwrap();
            same_residues("decrypted", host.data(), back.data());
        }
    }
}

/// More values than the device samples in one round.
#[test]
fn a_secret_of_a_large_ring_is_that_of_the_cpu() {
    let Some(bench) = Bench::new(&parameters(16, 1, 40, 1), None) else {
        return;
    };
    let [here, there] = Bench::twice(19);
    let host = fhelium_ckks::KeyGenerator::new(&bench.host, &here);
    let device = fhelium_cuda::KeyGenerator::new(&bench.device, &there);
    let secret = host.secret().unwrap();
    let device_secret = device.secret().unwrap();
    let back = bench.device.download_secret(&device_secret).unwrap();
    let coefficients = |key: &fhelium_ckks::SecretKey| key.coefficients(&bench.host).unwrap();
    assert!(coefficients(&back) == coefficients(&secret));
}

#[test]
fn refusals_are_those_of_the_cpu() {
    let set = parameters(10, 2, 40, 1);
    let (Some(bench), Some(other)) = (
        Bench::new(&set, None),
        Bench::new(&parameters(10, 1, 40, 1), None),
    ) else {
        return;
    };
    let keys = bench.keys(10);
    let foreign = bench.keys(11);
    let elsewhere = other.keys(12);
    let device = &bench.device;
    let [here, there] = Bench::twice(13);
    let plaintext = bench.encoded(&[4], 2, 14);
    let uploaded = device.upload_plaintext(&plaintext).unwrap();
    let same = |host: fhelium_ckks::CkksError, device: fhelium_cuda::CudaError| {
        assert_eq!(host.to_string(), device.to_string());
    };
    same(
        bench
            .host
            .encrypt(&plaintext, &elsewhere.public, &here)
            .unwrap_err(),
        device
            .encrypt(&uploaded, &elsewhere.device_public, &there)
            .unwrap_err(),
    );
    let ciphertext = bench.host.encrypt(&plaintext, &keys.public, &here).unwrap();
    let on_device = device.upload(&ciphertext).unwrap();
    same(
        bench
            .host
            .decrypt(&ciphertext, &foreign.secret)
            .unwrap_err(),
        device
            .decrypt(&on_device, &foreign.device_secret)
            .unwrap_err(),
    );
    same(
        bench
            .host
            .decrypt(&ciphertext, &elsewhere.secret)
            .unwrap_err(),
        device
            .decrypt(&on_device, &elsewhere.device_secret)
            .unwrap_err(),
    );
    for bits in [-1.0, f64::NAN, 1e9] {
        let flooding = NoiseFlooding {
            log2_standard_deviation: bits,
        };
        same(
            bench
                .host
                .flood(plaintext.clone(), flooding, &here)
                .unwrap_err(),
            device
                .flood(uploaded.clone(), flooding, &there)
                .unwrap_err(),
        );
    }
    // A replay would draw the same masks and errors again.
    let recorded = device.capture(&[], |_: &[fhelium_cuda::Ciphertext]| {
        device
            .encrypt(&uploaded, &keys.device_public, &there)
            .map(|ciphertext| vec![ciphertext])
    });
    assert!(matches!(recorded, Err(CudaError::Capture { .. })));
    // What was refused left nothing behind.
    let used = device.memory().used;
    let _ = device.decrypt(&on_device, &foreign.device_secret);
    let _ = device.encrypt(&uploaded, &elsewhere.device_public, &there);
    assert_eq!(device.memory().used, used);
}

#[test]
fn a_secret_is_zeroed_before_its_memory_serves_again() {
    let Some(bench) = Bench::new(&parameters(10, 2, 40, 1), None) else {
        return;
    };
    let keys = bench.keys(15);
    let secret = &keys.device_secret;
    assert!(!format!("{secret:?}").contains("data"));
    let (address, words) = (secret.buffer().address(), secret.buffer().words());
    drop(keys);
    // The pool hands the same memory out again.
    let again = bench.device.queue().allocate(words).unwrap();
    assert_eq!(again.address(), address);
    let left = bench.device.queue().download(&again).unwrap();
    assert!(left.iter().all(|&word| word == 0));
}
