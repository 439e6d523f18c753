//! The flags there are.

use std::fmt::Write as _;
use std::str::FromStr;

use super::Flags;
use crate::logging::Format;
use crate::{PROGRAM, go_duration};

/// A flag.
pub(super) struct Flag {
    /// Its name without dashes.
    pub(super) name: &'static str,
    /// Its one-letter name.
    pub(super) letter: Option<char>,
    /// What its value is, for the help; empty for a switch, whose value may be left out.
    value: &'static str,
    /// Its default, for the help.
    default: &'static str,
    /// What it does.
    help: &'static str,
    /// Takes a value, or says what is allowed.
    pub(super) set: fn(&mut Flags, &str) -> Result<(), &'static str>,
}

impl Flag {
    /// Whether the flag is on when it is given without a value.
    pub(super) fn is_switch(&self) -> bool {
        self.value.is_empty()
    }
}

/// All flags, in the order of the help.
pub(super) const FLAGS: [Flag; 13] = [
    Flag {
        name: "kubeconfig",
        letter: None,
        value: "path",
        default: "",
        help: "File with the address of the API server and the credentials. Without it and \
               without --master the pod's service account is used.",
        set: |flags, text| put(&mut flags.kubeconfig, Some(text.to_owned()), ""),
    },
    Flag {
        name: "master",
        letter: None,
        value: "url",
        default: "",
        help: "Address of the API server; wins over the one in the kubeconfig.",
        set: |flags, text| put(&mut flags.master, Some(text.to_owned()), ""),
    },
    Flag {
        name: "leader-elect",
        letter: None,
        value: "",
        default: "true",
        help: "Run only while holding a lease. Not there yet: --leader-elect=false is required, \
               and no other StatefulSet controller may run.",
        set: |flags, text| put(&mut flags.leader_elect, parse_bool(text), BOOL),
    },
    Flag {
        name: "controllers",
        letter: None,
        value: "list",
        default: "*",
        help: "Controllers to run: '*' for all, 'name' for that one, '-name' for all but that \
               one. There is only statefulset-controller.",
        set: |flags, text| append(flags.controllers.get_or_insert_default(), text),
    },
    Flag {
        name: "concurrent-statefulset-syncs",
        letter: None,
        value: "int",
        default: "5",
        help: "How many StatefulSets are synced at once.",
        set: |flags, text| put(&mut flags.concurrent_statefulset_syncs, parse(text), INT),
    },
    Flag {
        name: "kube-api-qps",
        letter: None,
        value: "number",
        default: "20",
        help: "Requests to the API server a second, on average; negative for no limit.",
        set: |flags, text| {
            let finite = parse(text).filter(|qps: &f64| qps.is_finite());
            put(&mut flags.kube_api_qps, finite, "a number")
        },
    },
    Flag {
        name: "kube-api-burst",
        letter: None,
        value: "int",
        default: "30",
        help: "Requests to the API server at once.",
        set: |flags, text| put(&mut flags.kube_api_burst, parse(text), INT),
    },
    Flag {
        name: "min-resync-period",
        letter: None,
        value: "duration",
        default: "12h",
        help: "How often all cached objects are looked at again, stretched by a random factor of \
               up to 2; 0s for never.",
        set: |flags, text| {
            let allowed = "a duration of 0s or more, such as 12h or 1h30m";
            put(
                &mut flags.min_resync_period,
                go_duration::parse(text),
                allowed,
            )
        },
    },
    Flag {
        name: "feature-gates",
        letter: None,
        value: "list",
        default: "",
        help: "Optional behaviour, as Name=true or Name=false, separated by commas: \
               MaxUnavailableStatefulSet, StatefulSetSemanticRevisionComparison, \
               StaleControllerConsistencyStatefulSet, AllAlpha, AllBeta.",
        set: |flags, text| append(&mut flags.feature_gates, text),
    },
    Flag {
        name: "v",
        letter: Some('v'),
        value: "level",
        default: "0",
        help: "How much is logged: 0 to 3 steps, 4 decisions, 5 and more everything.",
        set: |flags, text| put(&mut flags.verbosity, parse(text), INT),
    },
    Flag {
        name: "logging-format",
        letter: None,
        value: "format",
        default: "text",
        help: "How it is logged: text or json.",
        set: |flags, text| {
            let format = match text {
                "text" => Some(Format::Text),
                "json" => Some(Format::Json),
                _ => None,
            };
            put(&mut flags.logging_format, format, "text or json")
        },
    },
    Flag {
        name: "version",
        letter: None,
        value: "",
        default: "",
        help: "Print the version.",
        set: |flags, text| put(&mut flags.version, parse_bool(text), BOOL),
    },
    Flag {
        name: "help",
        letter: Some('h'),
        value: "",
        default: "",
        help: "Print this.",
        set: |flags, text| put(&mut flags.help, parse_bool(text), BOOL),
    },
];

const BOOL: &str = "true or false";
const INT: &str = "a whole number of 32 bits";

/// Sets a value, or says what is allowed.
fn put<T>(place: &mut T, value: Option<T>, allowed: &'static str) -> Result<(), &'static str> {
    *place = value.ok_or(allowed)?;
    Ok(())
}

/// Adds to a list that may be given in several flags.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands among setters that can fail"
)]
fn append(place: &mut String, text: &str) -> Result<(), &'static str> {
    if !place.is_empty() {
        place.push(',');
    }
    place.push_str(text);
    Ok(())
}

fn parse<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// The spellings of a boolean that Go's flags accept.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// What `--help` prints.
pub(crate) fn help() -> String {
    let mut text = format!(
        "The Kubernetes StatefulSet controller as a program of its own.\n\n\
         Usage:\n  {PROGRAM} [flags]\n\nFlags:"
    );
    for flag in &FLAGS {
        let letter = flag
            .letter
            .map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
        let value = if flag.value.is_empty() { "" } else { " " };
        let default = match flag.default {
            "" => String::new(),
            default => format!(" (default {default})"),
        };
        let (name, value_name, help) = (flag.name, flag.value, flag.help);
        // Writing to a string can't fail.
        let _ = write!(
            text,
            "\n  {letter}--{name}{value}{value_name}\n        {help}{default}"
        );
    }
    text
}
