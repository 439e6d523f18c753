//! Feature gate flags.

use super::values::{self, Strings};

/// Upstream: `ComponentGlobalsRegistry`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Generic flags")]
#[expect(clippy::doc_markdown, reason = "the text is that of the help")]
pub(crate) struct FeatureFlags {
    /// Feature gates to turn on or off, as Name=bool or kube:Name=bool, separated by commas
    #[arg(long, value_name = "mapStringBool", default_value = "")]
    pub(crate) feature_gates: String,

    /// The Kubernetes version to emulate, from 1.33 to 1.37: event messages, the form of new
    /// revisions, update strategies, and the feature gates of that version. The default is 1.36;
    /// 1.37 adds the gates StatefulSetRecreateStrategy and PreviewParallelScaleDownFirst. Changing
    /// the version restarts no pods, except that 1.37 rolls out earlier changes of fields new in it
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) emulated_version: Strings,

    /// The oldest Kubernetes version of other components, from 1.32 to the emulated one; by default
    /// the version before the emulated one. Checked, but otherwise unused
    #[arg(long, value_name = "strings", default_value = "", value_parser = values::strings)]
    pub(crate) min_compatibility_version: Strings,
}
