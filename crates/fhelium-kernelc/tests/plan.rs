//! Guards what a build does about CUDA on each platform, with and without NVRTC.

use fhelium_kernelc::{Error, PIP_LINE, Plan, Platform, Target};
use std::path::PathBuf;

const LINUX: Platform = Platform {
    os: "linux",
    arch: "x86_64",
};
const ARM: Platform = Platform {
    os: "linux",
    arch: "aarch64",
};
const MAC: Platform = Platform {
    os: "macos",
    arch: "aarch64",
};

fn found() -> Result<PathBuf, Error> {
    Ok(PathBuf::from("libnvrtc.so.12"))
}

fn missing() -> Result<PathBuf, Error> {
    Err(Error::NotFound {
        looked_at: "the packages of python3".to_owned(),
    })
}

fn broken() -> Result<PathBuf, Error> {
    Err(Error::Library {
        path: PathBuf::from("libnvrtc.so.12"),
        reason: "cut short".to_owned(),
    })
}

fn never() -> Result<PathBuf, Error> {
    panic!("nothing was to be looked for")
}

fn warning(plan: Plan) -> String {
    match plan {
        Plan::CpuOnly { warning } => warning.expect("a warning"),
        Plan::Compile { nvrtc } => panic!("compiles with {}", nvrtc.display()),
    }
}

#[test]
fn kernels_are_compiled_wherever_nvrtc_is() {
    let compile = Plan::Compile {
        nvrtc: found().unwrap(),
    };
    for (request, platform) in [
        (None, LINUX),
        (None, ARM),
        (Some(""), LINUX),
        (Some("on"), MAC),
    ] {
        let plan = Plan::decide(request, platform, found).unwrap();
        assert_eq!(plan, compile, "{request:?} {platform:?}");
    }
}

#[test]
fn linux_on_x86_64_stops_without_nvrtc_and_says_both_ways_out() {
    let error = Plan::decide(None, LINUX, missing).unwrap_err().to_string();
    for words in [PIP_LINE, "FHELIUM_CUDA=off", "python3"] {
        assert!(error.contains(words), "{words:?} is missing in: {error}");
    }
}

#[test]
fn off_is_for_the_cpu_only_without_a_word_and_without_a_look() {
    for platform in [LINUX, ARM, MAC] {
        assert_eq!(
            Plan::decide(Some("off"), platform, never).unwrap(),
            Plan::CpuOnly { warning: None }
        );
    }
}

#[test]
fn other_platforms_go_on_for_the_cpu_only_and_say_so() {
    let mac = warning(Plan::decide(None, MAC, never).unwrap());
    assert!(mac.contains("macos") && mac.contains("CPU only"), "{mac}");
    let arm = warning(Plan::decide(None, ARM, missing).unwrap());
    assert!(arm.contains("python3") && arm.contains("aarch64"), "{arm}");
}

#[test]
fn on_stops_everywhere_without_nvrtc() {
    for platform in [LINUX, ARM, MAC] {
        let error = Plan::decide(Some("on"), platform, missing).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
}

#[test]
fn a_broken_library_stops_every_build_that_looked_for_one() {
    for platform in [LINUX, ARM] {
        let error = Plan::decide(None, platform, broken).unwrap_err();
        assert!(matches!(error, Error::Library { .. }), "{error}");
    }
}

#[test]
fn another_request_is_named_with_what_was_expected() {
    let error = Plan::decide(Some("no"), LINUX, never)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"no\"") && error.contains("\"off\""),
        "{error}"
    );
}

#[test]
fn targets_go_by_the_compilers_names() {
    assert_eq!(
        Target::named("compute_80, sm_90").unwrap(),
        [Target::Cubin(90), Target::Ptx(80)]
    );
    let error = Target::named("sm_90,sm_91").unwrap_err().to_string();
    assert!(
        error.contains("\"sm_91\"") && error.contains("sm_120"),
        "{error}"
    );
}
