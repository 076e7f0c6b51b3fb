//! The kernels of one limb, each tier of this machine: `cargo bench -p fhelium-ckks --bench ntt`.
#![allow(missing_docs)] // criterion's macros make an undocumented function

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fhelium_ckks::arith::primes::primes_below;
use fhelium_ckks::arith::{BaseConverter, Limb, Modulus, Tier};

/// Primes just below 2^49 that suit every benchmarked degree.
fn primes(count: usize) -> Vec<u64> {
    primes_below(1 << 49, 17).take(count).collect()
}

fn residues(n: usize, p: u64, seed: u64) -> Vec<u64> {
    let mixed = |i: usize| (i as u64 ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..n).map(|i| mixed(i) % p).collect()
}

fn transforms(c: &mut Criterion) {
    let p = primes(1)[0];
    for log_n in 12..=16 {
        let n = 1 << log_n;
        let mut group = c.benchmark_group(format!("transform/2^{log_n}"));
        for tier in Tier::available() {
            let limb = Limb::new(n, p, tier).unwrap();
            let mut a = residues(n, p, 1);
            group.bench_function(BenchmarkId::new("forward", tier), |b| {
                b.iter(|| limb.forward(black_box(&mut a)));
            });
            group.bench_function(BenchmarkId::new("inverse", tier), |b| {
                b.iter(|| limb.inverse(black_box(&mut a)));
            });
        }
    }
}

fn pointwise(c: &mut Criterion) {
    let (n, p) = (1 << 14, primes(1)[0]);
    let mut group = c.benchmark_group("pointwise/2^14");
    for tier in Tier::available() {
        let limb = Limb::new(n, p, tier).unwrap();
        let [a0, a1, b0, b1] = [1, 2, 3, 4].map(|seed| residues(n, p, seed));
        let [mut c0, mut c1, mut c2] = [5, 6, 7].map(|seed| residues(n, p, seed));
        group.bench_function(BenchmarkId::new("add", tier), |b| {
            b.iter(|| limb.add(black_box(&mut c0), &a0, &b0));
        });
        group.bench_function(BenchmarkId::new("mul", tier), |b| {
            b.iter(|| limb.mul(black_box(&mut c0), &a0, &b0));
        });
        group.bench_function(BenchmarkId::new("mul_add_assign", tier), |b| {
            b.iter(|| limb.mul_add_assign(black_box(&mut c0), &a0, &b0));
        });
        group.bench_function(BenchmarkId::new("mul_scalar_assign", tier), |b| {
            b.iter(|| limb.mul_scalar_assign(black_box(&mut c0), 12345));
        });
        group.bench_function(BenchmarkId::new("sub_mul_scalar_assign", tier), |b| {
            b.iter(|| limb.sub_mul_scalar_assign(black_box(&mut c0), &a0, 12345));
        });
        group.bench_function(BenchmarkId::new("tensor", tier), |b| {
            b.iter(|| limb.tensor(black_box(&mut c0), &mut c1, &mut c2, &a0, &a1, &b0, &b1));
        });
        let q = Modulus::new(primes(2)[1]).unwrap();
        group.bench_function(BenchmarkId::new("reduce_into", tier), |b| {
            b.iter(|| limb.reduce_into(black_box(&mut c0), &a0, q));
        });
        group.bench_function(BenchmarkId::new("rescale_into", tier), |b| {
            b.iter(|| limb.rescale_into(black_box(&mut c0), &a0, q, &a1, 12345));
        });
        let reals: Vec<f64> = (0..n).map(|i| (i as f64 * 0.37).sin()).collect();
        group.bench_function(BenchmarkId::new("round_into", tier), |b| {
            b.iter(|| limb.round_into(black_box(&mut c0), &reals, f64::exp2(40.0)));
        });
        let permutation = limb.automorphism_permutation(5).unwrap();
        group.bench_function(BenchmarkId::new("permute", tier), |b| {
            b.iter(|| limb.permute(black_box(&mut c0), &a0, &permutation));
        });
        group.bench_function(
            BenchmarkId::new("inner_product_pair, 4 digits", tier),
            |b| {
                let digits = [&a0[..], &a1, &b0, &b1];
                let keys = [&b1[..], &b0, &a1, &a0];
                b.iter(|| {
                    limb.inner_product_pair(black_box(&mut c0), &mut c1, &digits, &keys, &digits)
                });
            },
        );
    }
}

fn base_conversion(c: &mut Criterion) {
    let n = 1 << 14;
    let moduli: Vec<_> = primes(16)
        .into_iter()
        .map(|p| Modulus::new(p).unwrap())
        .collect();
    let mut group = c.benchmark_group("base conversion/2^14");
    for (sources, targets) in [(3, 9), (8, 8)] {
        let (from, to) = (
            &moduli[..sources],
            &moduli[sources..][..targets.min(16 - sources)],
        );
        for tier in Tier::available() {
            let converter = BaseConverter::new(from, to, tier).unwrap();
            let limbs: Vec<_> = from.iter().map(|q| residues(n, q.value(), 1)).collect();
            let limbs: Vec<_> = limbs.iter().map(|limb| &limb[..]).collect();
            let mut out = vec![vec![0; n]; to.len()];
            group.bench_function(
                BenchmarkId::new(format!("{sources} to {targets}"), tier),
                |b| {
                    let mut out: Vec<_> = out.iter_mut().map(|limb| &mut limb[..]).collect();
                    b.iter(|| converter.convert(black_box(&limbs), &mut out));
                },
            );
        }
    }
}

criterion_group! {
    name = kernels;
    config = Criterion::default().without_plots().sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(500));
    targets = transforms, pointwise, base_conversion
}
criterion_main!(kernels);
