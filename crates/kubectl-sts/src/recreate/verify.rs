//! The comparison of the set's objects with those before the recreation.

use super::observe::{Kind, Look};
use super::record::Record;
use crate::cluster::text;
use crate::output::counted;
use crate::report::Outcome;

/// Returns a line for each kind whose objects are the same, and one for each object that isn't.
pub(super) fn compare(record: &Record, look: &Look) -> Vec<(Outcome, String)> {
    let mut lines = Vec::new();
    for kind in [Kind::Pod, Kind::Claim, Kind::Revision] {
        let recorded = kind.recorded(record);
        let mut kept = 0;
        for (name, uid) in recorded {
            match difference(record, look, kind, name, uid) {
                None => kept += 1,
                Some(line) => lines.push(line),
            }
        }
        if kept > 0 {
            let kept = counted(kept, kind.noun());
            let line = match kind {
                Kind::Pod => format!("{kept} adopted, with the same uids"),
                Kind::Claim => format!("{kept} kept, with the same uids"),
                Kind::Revision => format!("{kept} adopted"),
            };
            lines.push((Outcome::Ok, line));
        }
    }
    lines
}

/// The difference of an object, if there is one.
fn difference(
    record: &Record,
    look: &Look,
    kind: Kind,
    name: &str,
    uid: &str,
) -> Option<(Outcome, String)> {
    let noun = kind.noun();
    let is_planned = kind == Kind::Pod && record.objects.restarts.iter().any(|it| it == name);
    let found = look.dependents.get(&(kind, name.to_owned()));
    let Some(found) = found else {
        return Some(match kind {
            _ if is_planned => (Outcome::Note, format!("{noun} {name} is gone, as planned")),
            // The controller removes revisions beyond the limit of the history.
            Kind::Revision => (Outcome::Note, format!("{noun} {name} is gone")),
            Kind::Pod | Kind::Claim => (Outcome::Fail, format!("{noun} {name} is gone")),
        });
    };
    if found.uid != uid {
        let text = format!(
            "{noun} {name} was replaced: its uid was {uid}, now {}",
            found.uid
        );
        let outcome = if is_planned {
            Outcome::Note
        } else {
            Outcome::Fail
        };
        return Some((outcome, text));
    }
    if kind == Kind::Claim && found.deletion_timestamp.is_some() {
        return Some((Outcome::Fail, format!("claim {name} is being deleted")));
    }
    let owner = found.controller().filter(|_| kind != Kind::Claim)?;
    let set = look.set.as_ref()?;
    if text(owner, "/uid") == set.uid {
        return None;
    }
    let (owner, of) = (text(owner, "/kind"), text(owner, "/name"));
    Some((
        Outcome::Fail,
        format!("{noun} {name} is controlled by {owner} {of}"),
    ))
}
