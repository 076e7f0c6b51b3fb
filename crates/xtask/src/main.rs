//! Chores of this repository, run as `cargo xtask COMMAND`.

mod kernels;

use pico_args::Arguments;
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

commands:
  kernels [--check] [--targets sm_90,...] [--kernels DIR] [--output DIR]
      Compile kernels/cuda for every shipped target, or the named ones, into
      target/kernels, and print the kernels, the most registers, the bytes and
      the compile time of each image. With --check, compile everything anew and
      write nothing. The exit status says whether the kernels are free of errors
      and warnings and within kernels/cuda/budgets.txt.
";

fn main() -> ExitCode {
    match run(Arguments::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Arguments) -> Result<(), String> {
    if arguments.contains(["-h", "--help"]) {
        print!("{HELP}");
        return Ok(());
    }
    match arguments
        .subcommand()
        .map_err(|e| e.to_string())?
        .as_deref()
    {
        Some("kernels") => kernels::run(arguments),
        Some(other) => Err(format!("no command is named {other:?}\n\n{HELP}")),
        None => Err(format!("a command is missing\n\n{HELP}")),
    }
}

/// Refuses what no option took.
fn finish(arguments: Arguments) -> Result<(), String> {
    match arguments.finish().first() {
        Some(left) => Err(format!("unexpected argument {left:?}\n\n{HELP}")),
        None => Ok(()),
    }
}
