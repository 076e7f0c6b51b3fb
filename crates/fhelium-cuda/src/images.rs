//! The compiled kernels that this build holds.

/// One kernel file compiled for one target.
#[derive(Debug)]
pub(crate) struct Image {
    /// The source file's name without its ending.
    pub stem: &'static str,
    /// Ten times the major compute capability plus the minor.
    pub capability: u32,
    /// Text that the driver compiles, for this capability and every later one; else machine code,
    /// for devices of the same major capability from this minor on.
    pub ptx: bool,
    /// The image.
    pub bytes: &'static [u8],
}

impl Image {
    /// Whether its kernels wait for the launch before themselves, where they may start while that runs: as
    /// `griddepcontrol` in launch.cuh has it, what was compiled for older devices does not, wherever it runs.
    pub fn overlaps_launches(&self) -> bool {
        self.capability >= 90
    }
}

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// The targets that this build's kernels were compiled for: empty for a build without CUDA.
pub fn built_targets() -> Vec<String> {
    let Some(first) = IMAGES.first() else {
        return Vec::new();
    };
    let name = |image: &Image| {
        let kind = if image.ptx { "compute" } else { "sm" };
        format!("{kind}_{}", image.capability)
    };
    IMAGES
        .iter()
        .filter(|image| image.stem == first.stem)
        .map(name)
        .collect()
}

/// The image of a kernel file that serves a device best.
pub(crate) fn select(stem: &str, capability: u32) -> Option<&'static Image> {
    let of_stem = || IMAGES.iter().filter(|image| image.stem == stem);
    choose(of_stem(), capability)
}

fn choose<'a>(
    images: impl Iterator<Item = &'a Image> + Clone,
    capability: u32,
) -> Option<&'a Image> {
    let machine = images.clone().filter(|image| {
        !image.ptx && image.capability / 10 == capability / 10 && image.capability <= capability
    });
    let text = images.filter(|image| image.ptx && image.capability <= capability);
    machine
        .max_by_key(|image| image.capability)
        .or_else(|| text.max_by_key(|image| image.capability))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cubin runs on its own major capability only, PTX on later ones; nothing on older ones.
    #[test]
    fn a_device_gets_the_nearest_image_that_runs_on_it() {
        let image = |capability, ptx| Image {
            stem: "ntt",
            capability,
            ptx,
            bytes: b"",
        };
        let images = [
            image(80, false),
            image(86, false),
            image(90, false),
            image(80, true),
        ];
        let chosen = |capability| {
            choose(images.iter(), capability).map(|image| (image.capability, image.ptx))
        };
        assert_eq!(chosen(80), Some((80, false)));
        assert_eq!(chosen(87), Some((86, false)));
        assert_eq!(chosen(89), Some((86, false)));
        assert_eq!(chosen(90), Some((90, false)));
        assert_eq!(chosen(100), Some((80, true)));
        assert_eq!(chosen(75), None);
        // By the image, not by the device: this one has text for an older one.
        let overlaps = |capability| {
            choose(images.iter(), capability)
                .unwrap()
                .overlaps_launches()
        };
        assert!(overlaps(90) && !overlaps(89) && !overlaps(110));
    }
}
