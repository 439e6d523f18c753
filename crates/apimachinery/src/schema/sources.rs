//! The text form of the table of types.
//!
//! One block per type: a line with its name, then a line per field. An empty line separates
//! blocks. A block that begins with `#` is a comment.
//!
//! ```text
//! Pod kind=v1
//!   - kind@TypeMeta: str
//!   - apiVersion@TypeMeta: str
//!   1 metadata!: ObjectMeta
//!   2 spec!: PodSpec
//!
//! Container
//!   6 ports: []ContainerPort by=containerPort,protocol:TCP
//! ```
//!
//! A type's name is followed by `kind=` and the apiVersion if requests carry the type as a whole
//! object; its kind is the type's name without any prefix up to a slash. `package=` and a Go package
//! follow if error texts name another one than `v1`. `atomic` means that
//! server-side apply treats its objects as one value.
//!
//! A field begins with its protobuf number; `-` if protobuf lacks it or it is not known; numbers
//! with dots if Go embeds structs, whose numbers come first. After the name, `!` means that Go
//! writes the field even if it is zero, and `@Name` gives the embedded Go struct that declares it.
//! Types are `str`,
//! `i32`, `i64`, `bool`, `bytes`, `Quantity`, `IntOrString`, `Time`, `MicroTime`, `RawObject` (any
//! JSON, kept verbatim), `JSON`, `f64`, the name of another block, that with an alternative to its
//! objects (`Name|bool`, `Name|[]` for a list of them, `Name|[]str`), or a Go string type with its package
//! (`v1.PullPolicy`), wrapped in `*` (pointer), `[]` (list) or `map<…>` (with string keys; values
//! can be `[]str`).
//!
//! The remaining words define how server-side apply merges the field: `atomic`, `granular`, `set`,
//! `by=` and the keys of a list of objects, each optionally with a default after a colon. If there
//! is no word, lists are atomic, maps granular, and objects follow their type. Strategic merge
//! patches use the same word, with the first key, unless `patch=` gives another key or says
//! `replace`; they always merge objects and maps. `retainKeys` is an additional strategy.
//!
//! The last word can be `since=` and the version in which the field appeared, for fields that
//! v1.36.2 lacks.

/// Source files of the table.
const SOURCES: [&str; 31] = [
    include_str!("types/admission_policy.txt"),
    include_str!("types/api_service.txt"),
    include_str!("types/apps.txt"),
    include_str!("types/autoscaling.txt"),
    include_str!("types/batch.txt"),
    include_str!("types/certificates.txt"),
    include_str!("types/config.txt"),
    include_str!("types/container.txt"),
    include_str!("types/custom_resource.txt"),
    include_str!("types/discovery.txt"),
    include_str!("types/dynamic_resources.txt"),
    include_str!("types/event.txt"),
    include_str!("types/flow_control.txt"),
    include_str!("types/lease.txt"),
    include_str!("types/meta.txt"),
    include_str!("types/namespace.txt"),
    include_str!("types/networking.txt"),
    include_str!("types/node.txt"),
    include_str!("types/persistent_volume.txt"),
    include_str!("types/pod.txt"),
    include_str!("types/pod_status.txt"),
    include_str!("types/policy.txt"),
    include_str!("types/priority_class.txt"),
    include_str!("types/rbac.txt"),
    include_str!("types/review.txt"),
    include_str!("types/runtime_class.txt"),
    include_str!("types/service.txt"),
    include_str!("types/storage.txt"),
    include_str!("types/volume.txt"),
    include_str!("types/webhook.txt"),
    include_str!("types/webhook_review.txt"),
];

/// Returns the blocks of all types.
pub(super) fn blocks() -> impl Iterator<Item = &'static str> {
    let blocks = SOURCES.iter().flat_map(|source| source.split("\n\n"));
    blocks.filter(|block| !block.starts_with('#'))
}
