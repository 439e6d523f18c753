//! Sizes of a claim, and the state of its expansion.

use std::borrow::Cow;

use kube_apimachinery::quantity::Quantity;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::or_default;

/// Sizes of a claim, and the state of its expansion. Takes 24 bytes in each cached claim.
///
/// A field that can't be read has its default, because no other decision depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimStorage {
    /// Requested size in bytes, rounded up; 0 if there is none.
    pub request: i64,
    /// Size of the volume in bytes, rounded up; 0 until the claim is bound.
    pub capacity: i64,
    /// Phase.
    pub phase: ClaimPhase,
    /// True if the volume is larger, but its file system waits for the node
    /// (`FileSystemResizePending`).
    pub awaits_node: bool,
    /// True if the last attempt to expand the volume failed (`ControllerResizeError`,
    /// `NodeResizeError`).
    pub failed: bool,
    /// True if the storage provider will never expand the volume to this size.
    pub infeasible: bool,
}

/// Phase of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimPhase {
    /// It has no volume yet.
    #[default]
    Pending,
    /// It has a volume.
    Bound,
    /// Its volume no longer exists.
    Lost,
}

impl ClaimPhase {
    /// Returns the phase as the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Bound => "Bound",
            Self::Lost => "Lost",
        }
    }
}

impl ClaimStorage {
    /// Reads the spec and the status of a claim.
    pub(super) fn of(spec: Option<&RawValue>, status: Option<&RawValue>) -> Self {
        let spec: Spec<'_> = read(spec);
        let status: Status<'_> = read(status);
        let has = |kinds: &[&str]| {
            let mut found = status.conditions.iter();
            found.any(|it| it.status == "True" && kinds.contains(&&*it.kind))
        };
        let resizing = &*status.allocated_resource_statuses.storage;
        Self {
            request: bytes(&spec.resources.requests.storage),
            capacity: bytes(&status.capacity.storage),
            phase: match &*status.phase {
                "Bound" => ClaimPhase::Bound,
                "Lost" => ClaimPhase::Lost,
                _ => ClaimPhase::Pending,
            },
            awaits_node: has(&["FileSystemResizePending"]),
            failed: has(&["ControllerResizeError", "NodeResizeError"]),
            infeasible: resizing.ends_with("ResizeInfeasible"),
        }
    }

    /// Returns true if the volume is smaller than requested.
    pub fn is_expanding(self) -> bool {
        self.phase == ClaimPhase::Bound && self.capacity < self.request
    }
}

/// Returns the default for an absent or odd value.
fn read<'a, T: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> T {
    let read = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    read.unwrap_or_default()
}

/// Returns the size in bytes of a quantity; 0 for any other text.
fn bytes(quantity: &str) -> i64 {
    let quantity = quantity.parse::<Quantity>();
    quantity.map_or(0, |quantity| quantity.value())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    resources: Resources<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resources<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    requests: Amount<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    phase: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "or_default")]
    capacity: Amount<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    allocated_resource_statuses: Amount<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    conditions: Vec<ClaimCondition<'a>>,
}

/// The entry for storage in a map of resources.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Amount<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    storage: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClaimCondition<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "or_default")]
    kind: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use statefulset_client::cache::indexer::CachedObject as _;

    use super::*;
    use crate::claim::Claim;

    fn storage(spec: &str, status: &str) -> ClaimStorage {
        let json = format!(r#"{{"metadata":{{"name":"c"}},"spec":{spec},"status":{status}}}"#);
        Claim::decode(&json).unwrap().storage
    }

    #[test]
    fn sizes_and_phase_are_read() {
        let spec = r#"{"resources":{"requests":{"storage":"2Gi"}},"accessModes":["x"]}"#;
        let found = storage(spec, r#"{"phase":"Bound","capacity":{"storage":"1Gi"}}"#);
        let expected = ClaimStorage {
            request: 2 << 30,
            capacity: 1 << 30,
            phase: ClaimPhase::Bound,
            ..ClaimStorage::default()
        };
        assert_eq!(found, expected);
        assert!(found.is_expanding());
        assert_eq!(storage("{}", r#"{"phase":"Lost"}"#).phase, ClaimPhase::Lost);
        assert!(!storage(spec, "{}").is_expanding(), "it isn't bound");
    }

    #[test]
    fn states_of_an_expansion_are_read() {
        let condition = |kind: &str, status: &str| {
            let status = format!(
                r#"{{"conditions":[{{"type":"Resizing","status":"True"}},
                {{"type":"{kind}","status":"{status}"}}]}}"#
            );
            let found = storage("{}", &status);
            [found.awaits_node, found.failed, found.infeasible]
        };
        for (kind, expected) in [
            ("FileSystemResizePending", [true, false, false]),
            ("ControllerResizeError", [false, true, false]),
            ("NodeResizeError", [false, true, false]),
            ("ModifyingVolume", [false, false, false]),
        ] {
            assert_eq!(condition(kind, "True"), expected, "{kind}");
            assert_eq!(condition(kind, "False"), [false; 3], "{kind}");
        }
        for (state, expected) in [
            ("ControllerResizeInfeasible", true),
            ("NodeResizeInfeasible", true),
            ("NodeResizePending", false),
        ] {
            let status = format!(r#"{{"allocatedResourceStatuses":{{"storage":"{state}"}}}}"#);
            assert_eq!(storage("{}", &status).infeasible, expected, "{state}");
        }
    }

    #[test]
    fn odd_values_are_passed_over() {
        let odd = [
            "null",
            "7",
            r#"{"resources":7}"#,
            r#"{"resources":{"requests":{"storage":"much"}}}"#,
        ];
        for spec in odd {
            let status = r#"{"phase":"Bound","capacity":null,"conditions":null}"#;
            let found = storage(spec, status);
            assert_eq!((found.request, found.phase), (0, ClaimPhase::Bound));
        }
        let found = storage("{}", r#"{"conditions":"none"}"#);
        assert_eq!(found, ClaimStorage::default());
        assert_eq!(
            Claim::decode(r#"{"metadata":{"name":"c"}}"#)
                .unwrap()
                .storage,
            ClaimStorage::default()
        );
    }

    #[test]
    fn cached_claims_grow_by_few_bytes() {
        assert_eq!(size_of::<ClaimStorage>(), 24);
    }
}
