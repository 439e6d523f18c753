//! Scenarios that are not played.

/// A scenario of the catalogue that is not played.
pub struct NotPlayed {
    /// Its number.
    pub number: u32,
    /// The reason.
    pub why: &'static str,
}

/// All scenarios that are not played.
pub const NOT_PLAYED: &[NotPlayed] = &[NotPlayed {
    number: 76,
    why: "It needs the reference's binaries.",
}];
