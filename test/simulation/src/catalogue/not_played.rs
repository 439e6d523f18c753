//! Scenarios that are not played.

/// A scenario of the catalogue that is not played.
pub struct NotPlayed {
    /// Its number.
    pub number: u32,
    /// The reason.
    pub why: &'static str,
}

/// All scenarios that are not played.
pub const NOT_PLAYED: &[NotPlayed] = &[
    NotPlayed {
        number: 72,
        why: "It needs two releases of the controller. Scenario 71 alternates processes of one \
              release.",
    },
    NotPlayed {
        number: 73,
        why: "The recorded clusters come from one version, and have namespaces and labels of their \
              own, while a run starts with an empty cluster. test/conformance replays them in the \
              shapes of other versions: settled_clusters_of_other_versions_cause_no_write and \
              settled_clusters_of_a_v1_33_server_cause_no_write.",
    },
    NotPlayed {
        number: 74,
        why: "The judges compare templates as they are stored, so they take the defaulted one for \
              another. test/conformance plays it: \
              new_member_in_a_settled_template_causes_no_write.",
    },
    NotPlayed {
        number: 76,
        why: "It needs the reference's binaries.",
    },
];
