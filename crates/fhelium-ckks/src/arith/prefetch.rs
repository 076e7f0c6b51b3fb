//! A hint to the cache.

/// Asks for the cache line that holds element `index` of a slice; an index past the end is allowed
/// and asks for what lies there.
///
/// Key rows are read once, from many places in step, which is more streams than a hardware
/// prefetcher follows.
#[inline(always)]
pub(super) fn prefetch(slice: &[u64], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = slice.as_ptr().wrapping_add(index).cast();
        // SAFETY: a prefetch reads nothing and faults on no address; every x86-64 CPU has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
