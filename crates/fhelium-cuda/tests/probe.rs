//! Guards what a machine without a usable GPU is told: one clear error for each reason, and never a
//! panic. Stub drivers stand in for the machines.

mod host;

use fhelium_cuda::{Device, built_targets};
use std::path::Path;
use std::process::Command;

/// What a process says whose driver is the library `libcuda.so.1` in `folder`. cudarc asks for
/// `libcuda.so` first, which is no other one's then.
fn with_driver(folder: &Path) -> String {
    let (link, driver) = (folder.join("libcuda.so"), folder.join("libcuda.so.1"));
    if !link.exists() {
        std::fs::hard_link(driver, link).unwrap();
    }
    with_libraries(folder)
}

/// What a process says that looks for the driver in `folder` first.
fn with_libraries(folder: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "say_what_opening_a_device_gives",
            "--ignored",
            "--nocapture",
        ])
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn stub(defines: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host/stub_driver.c");
    let mut arguments = vec![source.to_str().unwrap(), "-Wl,-soname,libcuda.so.1"];
    arguments.extend(defines);
    host::shared_library("CC", "cc", folder.path(), "libcuda.so.1", &arguments);
    folder
}

/// The other side of [`with_driver`].
#[test]
#[ignore = "run by the other tests, in a process with another driver"]
fn say_what_opening_a_device_gives() {
    match Device::open(0) {
        Ok(device) => println!("opened {device}"),
        Err(error) => println!("{error:?}: {error}"),
    }
}

fn says(found: &str, words: &[&str]) {
    if built_targets().is_empty() {
        assert!(found.contains("BuiltWithoutKernels"), "{found}");
        return;
    }
    for word in words {
        assert!(found.contains(word), "{word:?} is missing in: {found}");
    }
}

#[test]
fn a_file_that_is_no_driver_is_no_driver() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libcuda.so.1"), "not a library").unwrap();
    says(
        &with_driver(folder.path()),
        &["NoDriver", "install the driver", "device=\"cpu\""],
    );
}

#[test]
fn a_driver_that_lacks_functions_is_said_to() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("part.c");
    std::fs::write(&source, "int cuInit(unsigned flags) { return 0; }\n").unwrap();
    let arguments = [source.to_str().unwrap()];
    host::shared_library("CC", "cc", folder.path(), "libcuda.so.1", &arguments);
    says(
        &with_driver(folder.path()),
        &["NoDriver", "not a whole driver", "cuDriverGetVersion"],
    );
}

/// As with `LD_LIBRARY_PATH=$CUDA_HOME/lib64/stubs`: the folder has only `libcuda.so`, and what is
/// inside calls itself `libcuda.so.1`.
#[test]
fn a_stub_that_hides_the_driver_is_named() {
    let (driver, stub) = (stub(&["-DFOREIGN"]), stub(&["-DSTUB"]));
    let hidden = driver.path().join("libcuda.so");
    std::fs::rename(stub.path().join("libcuda.so.1"), &hidden).unwrap();
    says(
        &with_libraries(driver.path()),
        &["StubDriver", hidden.to_str().unwrap(), "LD_LIBRARY_PATH"],
    );
}

/// The stub itself by the driver's name, as some packages of the toolkit have it.
#[test]
fn a_stub_in_the_drivers_place_is_named() {
    let stub = stub(&["-DSTUB"]);
    says(
        &with_driver(stub.path()),
        &["StubDriver", stub.path().to_str().unwrap()],
    );
}

#[test]
fn an_old_driver_is_named_with_what_is_needed() {
    says(
        &with_driver(stub(&["-DOLD"]).path()),
        &["DriverTooOld", "CUDA 11.8", "12.0", "update"],
    );
}

#[test]
fn a_driver_without_a_device_is_told_apart_from_no_driver() {
    for define in ["-DNO_DEVICE", "-DEMPTY"] {
        says(
            &with_driver(stub(&[define]).path()),
            &["NoDevice", "CUDA_VISIBLE_DEVICES"],
        );
    }
}

#[test]
fn a_device_that_no_kernel_was_built_for_is_named_with_what_was() {
    let found = with_driver(stub(&["-DFOREIGN"]).path());
    says(
        &found,
        &["NoImage", "Old Card", "5.2", &built_targets().join(", ")],
    );
}

#[test]
fn a_device_index_beyond_the_last_says_how_many_there_are() {
    if built_targets().is_empty() {
        return;
    }
    host::device();
    let error = Device::open(1000).unwrap_err().to_string();
    assert!(
        error.contains("cuda:1000") && error.contains("cuda:0"),
        "{error}"
    );
}
