//! Guards each operation's level, scale and part rule, and that refusals name what was found.

use fhelium_state::{Chain, CipherState, ErrorKind, PlainState, Scale};

fn chain() -> Chain {
    let scale_primes = [1_099_511_922_689u64, 1_099_510_054_913, 1_099_512_938_497];
    let mut moduli = vec![562_949_951_979_521];
    moduli.extend(scale_primes);
    Chain::new(14, moduli, vec![562_949_951_881_217], Scale::from_bits(40))
}

fn fresh() -> CipherState {
    CipherState::new(3, Scale::from_bits(40))
}

#[test]
fn a_product_multiplies_scales_and_a_rescale_divides_exactly() {
    let chain = chain();
    let product = fresh().multiply(&chain, "multiply", &fresh()).unwrap();
    assert_eq!((product.parts, product.level), (3, 3));
    assert_eq!(product.scale, Scale::from_bits(80));
    let rescaled = product.relinearize().unwrap().rescale(&chain).unwrap();
    assert_eq!((rescaled.parts, rescaled.level), (2, 2));
    assert_eq!(
        rescaled.scale,
        Scale::from_bits(80).over_prime(chain.moduli()[3])
    );
}

#[test]
fn nominally_equal_scales_add_in_either_order_with_one_result() {
    let chain = chain();
    let dropped = fresh().drop_levels(&chain, 1).unwrap();
    let rescaled = fresh()
        .multiply_plain(
            &chain,
            "multiply",
            &PlainState {
                level: 3,
                scale: Scale::from_bits(40),
            },
        )
        .unwrap()
        .rescale(&chain)
        .unwrap();
    assert_ne!(dropped.scale, rescaled.scale);
    let sum = dropped.add(&chain, "add", &rescaled).unwrap();
    assert_eq!(sum, rescaled.add(&chain, "add", &dropped).unwrap());
}

#[test]
fn sums_of_other_scales_or_levels_are_refused_with_both_named() {
    let chain = chain();
    let square = fresh().multiply(&chain, "multiply", &fresh()).unwrap();
    let error = square.add(&chain, "add", &fresh()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ScaleMismatch);
    let text = error.to_string();
    assert!(text.contains("2^80") && text.contains("2^40"), "{text}");

    let lower = fresh().drop_levels(&chain, 2).unwrap();
    let error = fresh().add(&chain, "add", &lower).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LevelMismatch);
    let text = error.to_string();
    assert!(
        text.contains("level 3") && text.contains("level 1"),
        "{text}"
    );
    assert!(text.contains("left one with drop_levels(2)"), "{text}");
}

#[test]
fn three_parts_must_be_relinearized_before_products_and_rotations() {
    let chain = chain();
    let square = fresh().multiply(&chain, "multiply", &fresh()).unwrap();
    for error in [
        square.automorphism("rotate").unwrap_err(),
        square.multiply(&chain, "multiply", &fresh()).unwrap_err(),
        fresh().multiply(&chain, "multiply", &square).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Parts);
        let text = error.to_string();
        assert!(
            text.contains("3 parts") && text.contains("relinearize"),
            "{text}"
        );
    }
    assert_eq!(fresh().relinearize().unwrap_err().kind(), ErrorKind::Parts);
}

#[test]
fn one_product_too_many_says_which_depth_would_fit() {
    let chain = chain();
    let mut x = fresh();
    for _ in 0..3 {
        x = x
            .multiply(&chain, "multiply", &x)
            .unwrap()
            .relinearize()
            .unwrap();
        x = x.rescale(&chain).unwrap();
    }
    let error = x.multiply(&chain, "multiply", &x).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LevelExhausted);
    assert!(error.to_string().contains("Parameters(depth=4)"), "{error}");
    assert_eq!(
        x.rescale(&chain).unwrap_err().kind(),
        ErrorKind::LevelExhausted
    );
}

#[test]
fn a_second_rescale_is_refused_and_never_a_huge_number() {
    let chain = chain();
    let product = fresh().multiply(&chain, "multiply", &fresh()).unwrap();
    let once = product.rescale(&chain).unwrap();
    let error = once.rescale(&chain).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ScaleMismatch);
    assert!(error.to_string().contains("rescaled already"), "{error}");
}

#[test]
fn plaintexts_of_a_higher_level_serve_and_of_a_lower_level_are_refused() {
    let chain = chain();
    let lower = fresh().drop_levels(&chain, 2).unwrap();
    let top = PlainState {
        level: 3,
        scale: Scale::from_bits(40),
    };
    let bottom = PlainState {
        level: 0,
        scale: Scale::from_bits(40),
    };
    assert_eq!(lower.add_plain(&chain, "add", &top).unwrap(), lower);
    assert!(lower.multiply_plain(&chain, "multiply", &top).is_ok());
    for error in [
        lower.add_plain(&chain, "add", &bottom).unwrap_err(),
        lower
            .multiply_plain(&chain, "multiply", &bottom)
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::LevelMismatch);
    }
}

#[test]
fn levels_and_scales_outside_the_chain_are_refused() {
    let chain = chain();
    let scale = Scale::from_bits(40);
    assert!(chain.check_encoding("encode", 3, &scale).is_ok());
    assert!(
        chain
            .check_encoding("encode", 4, &scale)
            .unwrap_err()
            .to_string()
            .contains("0 to 3")
    );
    assert!(
        chain
            .check_encoding("encode", 0, &Scale::from_bits(60))
            .is_err()
    );
    assert!(
        chain
            .check_encoding("encode", 3, &Scale::from_f64(0.25).unwrap())
            .is_err()
    );
    let error = fresh().drop_levels(&chain, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LevelExhausted);
    assert!(
        error.to_string().contains('4') && error.to_string().contains('3'),
        "{error}"
    );
}
