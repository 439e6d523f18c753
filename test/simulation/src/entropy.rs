//! The source of randomness of a simulation's process: constant bytes.
//!
//! Hash maps and tokio's scheduler draw their seeds from the operating system; tokio wakes waiting
//! tasks in an order that depends on them. With these bytes the same plan gives the same run in
//! every process. A process that runs several plans gives each of them another order: to reproduce
//! a run, run it alone.

#![expect(
    unsafe_code,
    reason = "the standard library has no safe way to replace its source of randomness"
)]

use std::hint::black_box;

/// Every byte of the randomness.
const BYTE: u8 = 0x5a;

/// Replaces the C library's function of the same name, from which the standard library and others
/// draw.
///
/// # Safety
///
/// `buffer` points to `length` bytes, as for the C library's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller gives a buffer of this length.
    unsafe { buffer.write_bytes(BYTE, length) };
    isize::try_from(length).unwrap_or(isize::MAX)
}

/// Makes the linker use [`getrandom`].
pub(crate) fn fix() {
    black_box(getrandom as unsafe extern "C" fn(*mut u8, usize, u32) -> isize);
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, RandomState};
    use std::thread;

    #[test]
    fn hash_seeds_are_constant() {
        super::fix();
        let hash = || RandomState::new().hash_one("text");
        let in_thread = || thread::spawn(hash).join().expect("no panic");
        assert_eq!(in_thread(), in_thread());
    }
}
