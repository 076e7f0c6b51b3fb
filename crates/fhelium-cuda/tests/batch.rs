//! Guards that sums, slices, stacks and reshapes of batches on a device give the CPU's residues,
//! shapes and refusals.

mod contexts;

use contexts::{contexts, has_kernels};
use fhelium_ckks::{
    BatchSpan, CipherState, Ciphertext, Parameters, PlainState, Plaintext, Scale, SecretId,
};
use fhelium_cuda::Context;

struct Bench {
    host: fhelium_ckks::Context,
    device: Context,
    secret: SecretId,
    made: u64,
}

impl Bench {
    /// `None` in a build without kernels.
    fn new() -> Option<Self> {
        if !has_kernels() {
            return None;
        }
        let parameters = Parameters::builder(2, 40).log_n(10).allow_insecure(true);
        let (host, device) = contexts(&parameters.build().unwrap(), None);
        let randomness = fhelium_ckks::Randomness::from_seed_for_tests(3);
        let keys = fhelium_ckks::KeyGenerator::new(&host, &randomness);
        Some(Bench {
            secret: keys.secret().unwrap().secret_id(),
            host,
            device,
            made: 0,
        })
    }

    fn residues(&mut self, level: usize, polynomials: usize) -> Vec<u64> {
        self.made += 1;
        let (moduli, n) = (self.host.parameters().moduli(), self.host.parameters().n());
        (0..polynomials * (level + 1) * n)
            .map(|at| {
                let word = (at as u64 + self.made * 0x1_0001).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                (word ^ word >> 29) % moduli[at / n % (level + 1)]
            })
            .collect()
    }

    fn ciphertext(&mut self, level: usize, parts: usize, shape: &[usize]) -> Ciphertext {
        let scale = self.host.parameters().scale().clone();
        self.ciphertext_at(level, parts, shape, scale)
    }

    fn ciphertext_at(
        &mut self,
        level: usize,
        parts: usize,
        shape: &[usize],
        scale: Scale,
    ) -> Ciphertext {
        let data = self.residues(level, shape.iter().product::<usize>() * parts);
        let state = CipherState {
            level,
            scale,
            parts,
        };
        let parameters = self.host.parameters();
        Ciphertext::from_raw(parameters, self.secret, state, shape.to_vec(), data).unwrap()
    }

    fn plaintext(&mut self, level: usize, shape: &[usize]) -> Plaintext {
        let data = self.residues(level, shape.iter().product());
        let parameters = self.host.parameters();
        let scale = parameters.scale().clone();
        let state = PlainState { level, scale };
        Plaintext::from_raw(parameters, state, shape.to_vec(), data).unwrap()
    }

    fn up(&self, ciphertext: &Ciphertext) -> fhelium_cuda::Ciphertext {
        self.device.upload(ciphertext).unwrap()
    }

    fn same(
        &self,
        host: fhelium_ckks::Result<Ciphertext>,
        device: fhelium_cuda::Result<fhelium_cuda::Ciphertext>,
    ) {
        match (host, device) {
            (Ok(host), Ok(device)) => {
                let device = self.device.download(&device).unwrap();
                assert_eq!(host.state(), device.state());
                assert_eq!(host.batch_shape(), device.batch_shape());
                assert_eq!(host.secret_id(), device.secret_id());
                assert!(host.data() == device.data(), "residues differ");
            }
            (Err(host), Err(device)) => assert_eq!(host.to_string(), device.to_string()),
            (host, device) => panic!("{host:?} and {device:?}"),
        }
    }

    fn same_plain(
        &self,
        host: fhelium_ckks::Result<Plaintext>,
        device: fhelium_cuda::Result<fhelium_cuda::Plaintext>,
    ) {
        match (host, device) {
            (Ok(host), Ok(device)) => {
                let device = self.device.download_plaintext(&device).unwrap();
                assert!(host == device, "plaintexts differ");
            }
            (Err(host), Err(device)) => assert_eq!(host.to_string(), device.to_string()),
            (host, device) => panic!("{host:?} and {device:?}"),
        }
    }
}

fn span(start: usize, size: usize, step: isize, dropped: bool) -> BatchSpan {
    BatchSpan {
        start,
        size,
        step,
        dropped,
    }
}

#[test]
fn sums_give_the_residues_of_the_cpu() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    for (shape, parts) in [(&[5][..], 2), (&[2, 3, 1], 3), (&[1, 4], 2), (&[0, 2], 2)] {
        let x = bench.ciphertext(1, parts, shape);
        let on_device = bench.up(&x);
        for axis in 0..=shape.len() {
            let host = bench.host.sum_batch(&x, axis);
            bench.same(host, bench.device.sum_batch(&on_device, axis));
        }
    }
}

#[test]
fn slices_give_the_items_of_the_cpu() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (x, p) = (bench.ciphertext(2, 3, &[3, 4]), bench.plaintext(1, &[3, 4]));
    let on_device = bench.up(&x);
    let plain_on_device = bench.device.upload_plaintext(&p).unwrap();
    for spans in [
        [span(0, 3, 1, false), span(0, 4, 1, false)],
        [span(2, 3, -1, false), span(3, 2, -2, false)],
        [span(1, 1, 1, true), span(1, 2, 2, false)],
        [span(2, 1, 1, true), span(3, 1, 1, true)],
        [span(0, 0, 1, false), span(0, 4, 1, false)],
        [span(1, 3, 1, false), span(0, 4, 1, false)],
        [span(0, 2, 1, true), span(0, 4, 1, false)],
    ] {
        let host = bench.host.slice_batch(&x, &spans);
        bench.same(host, bench.device.slice_batch(&on_device, &spans));
        let host = bench.host.slice_plain_batch(&p, &spans);
        let device = bench.device.slice_plain_batch(&plain_on_device, &spans);
        bench.same_plain(host, device);
    }
    let spans = [span(0, 3, 1, false)];
    let host = bench.host.slice_batch(&x, &spans);
    bench.same(host, bench.device.slice_batch(&on_device, &spans));
}

#[test]
fn stacks_give_the_items_of_the_cpu() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let shape = [2, 3];
    let items: [_; 3] = std::array::from_fn(|_| bench.ciphertext(1, 2, &shape));
    let plain: [_; 2] = std::array::from_fn(|_| bench.plaintext(1, &shape));
    let other_parts = bench.ciphertext(1, 3, &shape);
    let other_shape = bench.ciphertext(1, 2, &[3, 2]);
    let other_level = bench.ciphertext(2, 2, &shape);
    let two = Scale::from_bits(1);
    let doubled = bench.host.parameters().scale().times(&two);
    let other_scale = bench.ciphertext_at(1, 2, &shape, doubled);
    let one = [&items[0]];
    for all in [
        &[][..],
        &one,
        &[&items[0], &items[1], &items[2]],
        &[&items[0], &items[0]],
        &[&items[0], &other_parts],
        &[&items[0], &other_shape],
        &[&items[0], &other_level],
        &[&items[0], &other_scale],
    ] {
        let on_device: Vec<_> = all.iter().map(|x| bench.up(x)).collect();
        let on_device: Vec<_> = on_device.iter().collect();
        for axis in 0..=3 {
            let host = bench.host.stack_batch(all, axis);
            bench.same(host, bench.device.stack_batch(&on_device, axis));
        }
    }
    let on_device = plain
        .each_ref()
        .map(|p| bench.device.upload_plaintext(p).unwrap());
    for axis in 0..=3 {
        let host = bench.host.stack_plain_batch(&plain.each_ref(), axis);
        let device = bench.device.stack_plain_batch(&on_device.each_ref(), axis);
        bench.same_plain(host, device);
    }
}

#[test]
fn reshapes_share_the_residues() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (x, p) = (bench.ciphertext(1, 2, &[2, 3]), bench.plaintext(1, &[2, 3]));
    let on_device = bench.up(&x);
    let used = bench.device.memory().used;
    for shape in [vec![6], vec![3, 1, 2], vec![5], vec![usize::MAX, 2]] {
        let host = x.clone().reshape_batch(shape.clone());
        let device = on_device.clone().reshape_batch(shape.clone());
        assert_eq!(bench.device.memory().used, used);
        bench.same(host, device);
        let device = bench.device.upload_plaintext(&p).unwrap();
        bench.same_plain(
            p.clone().reshape_batch(shape.clone()),
            device.reshape_batch(shape),
        );
    }
}
