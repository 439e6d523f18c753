//! Rendering: a table for terminals, one line per object elsewhere.

use std::collections::BTreeMap;

use crate::{
    waiting::waits_for,
    world::{Key, Member, Observed, Set},
};

/// Maximum pods of one set in the table: a redrawn table must fit the screen.
const ROWS_MAX: usize = 20;

const TITLES: [&str; 6] = ["ORDINAL", "POD", "REVISION", "PHASE", "READY", "CLAIMS"];

/// A pod, or a missing one.
struct Row {
    ordinal: Option<i64>,
    pod: String,
    revision: String,
    phase: String,
    ready: bool,
    claims: String,
}

/// Tables of all sets, line by line.
pub(crate) fn table(world: &Observed) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, set) in &world.sets {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let state = waits_for(key, world)
            .map_or_else(|| "complete".to_owned(), |wait| format!("waiting: {wait}"));
        lines.push(format!("{key}  {}  {state}", summary(set)));
        let rows = rows(key, set, world);
        let hidden = rows.len().saturating_sub(ROWS_MAX);
        let mut cells = vec![TITLES.map(str::to_owned)];
        cells.extend(rows.into_iter().take(ROWS_MAX).map(|row| {
            let ordinal = row
                .ordinal
                .map_or_else(|| "-".to_owned(), |ordinal| ordinal.to_string());
            let ready = if row.ready { "yes" } else { "no" };
            [
                ordinal,
                row.pod,
                row.revision,
                row.phase,
                ready.to_owned(),
                row.claims,
            ]
        }));
        lines.extend(align(&cells));
        if hidden > 0 {
            lines.push(format!("  and {hidden} more"));
        }
    }
    lines
}

/// One line per set and pod, by kind and key.
pub(crate) fn lines(world: &Observed) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for (key, set) in &world.sets {
        lines.insert(format!("set {key}"), summary(set));
        for row in rows(key, set, world)
            .into_iter()
            .filter(|row| row.phase != MISSING)
        {
            let ready = if row.ready { "ready" } else { "not ready" };
            let claims = if row.claims.is_empty() {
                String::new()
            } else {
                format!(", {}", row.claims)
            };
            let text = format!("{}, {ready}, revision {}{claims}", row.phase, row.revision);
            lines.insert(format!("pod {}/{}", key.namespace, row.pod), text);
        }
    }
    lines
}

/// Lines of the objects added, changed or removed in `now`.
pub(crate) fn changes(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<String> {
    let changed = now
        .iter()
        .filter(|(object, text)| before.get(*object) != Some(text))
        .map(|(object, text)| format!("{object}: {text}"));
    let gone = before.keys().filter(|object| !now.contains_key(*object));
    changed
        .chain(gone.map(|object| format!("{object}: gone")))
        .collect()
}

/// Phase of a row without a pod.
const MISSING: &str = "-";

fn summary(set: &Set) -> String {
    let revision = match (set.current_revision.as_str(), set.update_revision.as_str()) {
        ("", "") => String::new(),
        (current, update) if current == update => format!(", revision {update}"),
        (current, update) => format!(", revision {current} to {update}"),
    };
    format!(
        "{} of {} ready, {} available, {} updated{revision}",
        set.ready, set.replicas, set.available, set.updated
    )
}

/// Rows of the desired ordinals and of surplus pods, in order.
fn rows(key: &Key, set: &Set, world: &Observed) -> Vec<Row> {
    let mut rows: BTreeMap<(Option<i64>, String), Row> = BTreeMap::new();
    // A set may have too many replicas for the screen; the rest is counted, not shown.
    for ordinal in set.ordinals().take(ROWS_MAX) {
        let pod = format!("{}-{ordinal}", key.name);
        let row = Row {
            ordinal: Some(ordinal),
            claims: claims(key, set, &pod, world),
            pod: pod.clone(),
            revision: MISSING.to_owned(),
            phase: MISSING.to_owned(),
            ready: false,
        };
        rows.insert((Some(ordinal), pod), row);
    }
    for (pod, member) in world.members(key, set) {
        let row = Row {
            ordinal: member.ordinal,
            pod: pod.name.clone(),
            revision: member.revision.clone(),
            phase: phase(member),
            ready: member.ready,
            claims: claims(key, set, &pod.name, world),
        };
        rows.insert((member.ordinal, pod.name.clone()), row);
    }
    rows.into_values().collect()
}

fn phase(member: &Member) -> String {
    if member.deleting {
        "Terminating".to_owned()
    } else {
        member.phase.clone()
    }
}

fn claims(key: &Key, set: &Set, pod: &str, world: &Observed) -> String {
    let claims = set.claim_templates.iter().filter_map(|template| {
        let name = format!("{template}-{pod}");
        let phase = world.claims.get(&Key::new(&key.namespace, &name))?;
        Some(format!("{name} {phase}"))
    });
    claims.collect::<Vec<_>>().join(", ")
}

/// Pads columns to the widest cell.
fn align(rows: &[[String; 6]]) -> Vec<String> {
    let mut widths = [0; 6];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("  {}", cells.join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::tests::{complete, key};

    #[test]
    fn table_shows_existing_missing_and_surplus_pods() {
        let mut world = complete();
        let mut surplus = world.pods[&Key::new("n", "web-3")].clone();
        surplus.ordinal = Some(9);
        surplus.deleting = true;
        world.pods.insert(Key::new("n", "web-9"), surplus);
        world.pods.remove(&Key::new("n", "web-4"));
        assert_eq!(
            table(&world),
            [
                "n/web  2 of 2 ready, 2 available, 2 updated, revision web-b  waiting: pod web-4 does \
                 not exist",
                "  ORDINAL  POD    REVISION  PHASE        READY  CLAIMS",
                "  3        web-3  web-b     Running      yes    www-web-3 Bound",
                "  4        web-4  -         -            no     www-web-4 Bound",
                "  9        web-9  web-b     Terminating  yes",
            ]
        );
    }

    #[test]
    fn long_tables_are_cut() {
        let mut world = complete();
        let member = world.pods[&Key::new("n", "web-3")].clone();
        for ordinal in 0..50 {
            let member = Member {
                ordinal: Some(ordinal),
                ..member.clone()
            };
            world
                .pods
                .insert(Key::new("n", &format!("web-{ordinal}")), member);
        }
        let lines = table(&world);
        assert_eq!(lines.len(), 2 + ROWS_MAX + 1);
        assert_eq!(lines.last().map(String::as_str), Some("  and 30 more"));
    }

    #[test]
    fn changes_are_one_line() {
        let mut world = complete();
        let before = lines(&world);
        assert_eq!(
            changes(&BTreeMap::new(), &before),
            [
                "pod n/web-3: Running, ready, revision web-b, www-web-3 Bound",
                "pod n/web-4: Running, ready, revision web-b, www-web-4 Bound",
                "set n/web: 2 of 2 ready, 2 available, 2 updated, revision web-b",
            ]
        );
        world.pods.remove(&Key::new("n", "web-4"));
        world
            .sets
            .get_mut(&key())
            .expect("the set exists")
            .update_revision = "web-c".to_owned();
        let now = lines(&world);
        assert_eq!(
            changes(&before, &now),
            [
                "set n/web: 2 of 2 ready, 2 available, 2 updated, revision web-b to web-c",
                "pod n/web-4: gone",
            ]
        );
        assert_eq!(changes(&now, &now), Vec::<String>::new());
    }
}
