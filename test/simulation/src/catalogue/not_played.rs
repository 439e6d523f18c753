//! Scenarios that are not played.

/// A scenario of the catalogue that is not played, or not as a whole.
pub struct NotPlayed {
    /// Its number.
    pub number: u32,
    /// The reason.
    pub why: &'static str,
}

/// All scenarios that are not played, or not as a whole.
pub const NOT_PLAYED: &[NotPlayed] = &[
    NotPlayed {
        number: 50,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 51,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 52,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 53,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 54,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 55,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 56,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 57,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 58,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 59,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 60,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 61,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 62,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 63,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 64,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 65,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 66,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 67,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 68,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 69,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 70,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 71,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 72,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 73,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 74,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 75,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 76,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 77,
        why: "It is not written yet.",
    },
    NotPlayed {
        number: 78,
        why: "It is not written yet.",
    },
];
