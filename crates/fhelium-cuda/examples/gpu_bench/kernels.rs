//! The table of an operation's launches.

use fhelium_cuda::StepTime;

/// Runs of which each time is the median.
pub const RUNS: usize = 15;

/// Prints kernels, grids, times, shares and speeds.
///
/// *in turn* is what a launch adds to those before it, with the overlap and the caches of the
/// operation itself; *alone* is a run of it among runs of itself. TB/s are of the memory that the kernel
/// is given, in its time in turn: more than the memory gives means that a cache did.
pub fn print(steps: &[StepTime]) {
    let whole: f64 = steps.iter().map(|step| step.in_turn).sum();
    println!(
        "    {:<34}{:>16}{:>8}{:>8}{:>9}{:>7}{:>9}{:>9}{:>8}",
        "kernel", "grid", "threads", "shared", "in turn", "share", "alone", "MB", "TB/s"
    );
    for step in steps {
        let [x, y, z] = step.grid;
        let megabytes = step.bytes as f64 / 1e6;
        println!(
            "    {:<34}{:>16}{:>8}{:>8}{:>9.2}{:>6.1}%{:>9.2}{:>9.2}{:>8.2}",
            step.kernel,
            format!("{x} x {y} x {z}"),
            step.threads,
            step.shared,
            step.in_turn,
            100.0 * step.in_turn / whole,
            step.repeated,
            megabytes,
            // Megabytes a microsecond.
            megabytes / step.in_turn
        );
    }
    let megabytes: f64 = steps.iter().map(|step| step.bytes as f64 / 1e6).sum();
    println!(
        "    {:<34}{:>16}{:>8}{:>8}{whole:>9.2}{:>7}{:>9.2}{megabytes:>9.2}{:>8.2}",
        format!("all {} launches", steps.len()),
        "",
        "",
        "",
        "",
        steps.iter().map(|step| step.repeated).sum::<f64>(),
        megabytes / whole
    );
}
