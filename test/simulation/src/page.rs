//! The page of a run: one HTML file that needs nothing else.
//!
//! Lanes go from left to right, time goes down. Each row is a millisecond in which something
//! happened; stretches of routine are folded.

mod entry;
mod html;
mod lanes;

use std::fmt::Write as _;
use std::time::Duration;

use entry::Entry;
use html::Text;
use lanes::{Lane, Lanes};

use crate::judges::Violation;
use crate::plan::Plan;
use crate::record::Record;

/// Number of rows of routine from which they are folded.
const FOLDED_MIN: usize = 3;

/// Time between two rows from which a gap is shown.
const GAP: Duration = Duration::from_secs(5);

/// Bars of pods, with their meaning.
const PHASES: [(&str, &str); 5] = [
    ("pending", "pending"),
    ("running", "running, not ready"),
    ("ready", "ready"),
    ("terminating", "terminating"),
    ("ended", "failed or succeeded"),
];

/// Returns the page of a run as HTML.
pub fn page(plan: &Plan, record: &Record, violations: &[Violation]) -> String {
    let Lanes { lanes, entries } = Lanes::of(record, violations);
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n");
    // Writing to a string does not fail.
    let _ = head(&mut html, plan, record, violations, &lanes);
    html.push_str("<main>\n<table>\n<thead><tr><th>time</th>");
    for Lane {
        title,
        instance,
        pod,
    } in &lanes
    {
        let number = instance.map_or(String::new(), |it| it.to_string());
        let pod = pod.as_deref().unwrap_or_default();
        let _ = write!(
            html,
            "<th data-instance=\"{number}\" data-pod=\"{}\">{}</th>",
            Text(pod),
            Text(title)
        );
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    Body::new(&lanes).write(&mut html, &entries);
    html.push_str("</tbody>\n</table>\n</main>\n<script>\n");
    html.push_str(include_str!("page/script.js"));
    html.push_str("</script>\n</body>\n</html>\n");
    html
}

/// Writes everything above the lanes.
fn head(
    html: &mut String,
    plan: &Plan,
    record: &Record,
    violations: &[Violation],
    lanes: &[Lane],
) -> std::fmt::Result {
    let seed = plan.seed;
    writeln!(html, "<head>\n<meta charset=\"utf-8\">")?;
    writeln!(html, "<title>Simulation of seed {seed}</title>\n<style>")?;
    html.push_str(include_str!("page/style.css"));
    writeln!(html, "</style>\n</head>\n<body>\n<header>")?;
    writeln!(html, "<h1>Simulation of seed {seed}</h1>")?;
    let verdict = match violations.len() {
        0 => "no rule is broken".to_owned(),
        1 => "1 violation".to_owned(),
        broken => format!("{broken} violations"),
    };
    writeln!(
        html,
        "<p>{:.0} simulated seconds, {} requests, trace {:016x}: {verdict}</p>",
        record.length.as_secs_f64(),
        record.requests_served,
        record.trace
    )?;
    if !violations.is_empty() {
        writeln!(html, "<ol>")?;
        for (number, violation) in violations.iter().enumerate() {
            let text = violation.to_string();
            writeln!(html, "<li><a href=\"#v{number}\">{}</a></li>", Text(&text))?;
        }
        writeln!(html, "</ol>")?;
    }
    let json = plan.to_json();
    let summary = "<summary>The plan</summary>";
    writeln!(
        html,
        "<details>{summary}<pre>{}</pre></details>",
        Text(&json)
    )?;
    writeln!(html, "<form>")?;
    let instances = lanes.iter().filter_map(|it| it.instance);
    let instances: Vec<String> = instances.map(|it| it.to_string()).collect();
    choice(html, "instance", &instances)?;
    let pods: Vec<String> = lanes.iter().filter_map(|it| it.pod.clone()).collect();
    choice(html, "pod", &pods)?;
    let only = "<input type=\"checkbox\" name=\"writes\"> only writes";
    writeln!(html, "<label>{only}</label>")?;
    for (class, meaning) in PHASES {
        writeln!(html, "<span class=\"key {class}\">{meaning}</span>")?;
    }
    writeln!(html, "</form>\n</header>")
}

fn choice(html: &mut String, name: &str, values: &[String]) -> std::fmt::Result {
    write!(html, "<label>{name} <select name=\"{name}\">")?;
    write!(html, "<option value=\"\">all</option>")?;
    for value in values {
        write!(html, "<option>{}</option>", Text(value))?;
    }
    writeln!(html, "</select></label>")
}

/// The rows.
struct Body<'a> {
    lanes: &'a [Lane],
    /// The phase of each lane's pod.
    phases: Vec<&'static str>,
}

impl<'a> Body<'a> {
    fn new(lanes: &'a [Lane]) -> Self {
        let phases = vec![""; lanes.len()];
        Self { lanes, phases }
    }

    /// Writes all rows, with quiet stretches folded.
    fn write(&mut self, html: &mut String, entries: &[Entry]) {
        let mut rows = entries
            .chunk_by(|one, other| one.at.as_millis() == other.at.as_millis())
            .peekable();
        let mut last = Duration::ZERO;
        while let Some(row) = rows.next() {
            let mut stretch = vec![row];
            while is_quiet(row)
                && let Some(next) = rows.next_if(|next| is_quiet(next))
            {
                stretch.push(next);
            }
            let is_folded = stretch.len() >= FOLDED_MIN;
            if is_folded {
                let requests: usize = stretch.iter().map(|row| row.len()).sum();
                let time = time_of(stretch.last()).saturating_sub(time_of(stretch.first()));
                let title = format!(
                    "<button>⋮ {:.1} s, {requests} entries</button>",
                    time.as_secs_f64()
                );
                self.bare_row(html, "fold", &title);
                html.push_str("</tbody>\n<tbody hidden>\n");
            }
            for row in &stretch {
                let at = time_of(Some(row));
                let gap = at.saturating_sub(last);
                if gap >= GAP {
                    let title = format!("⋮ {:.1} s", gap.as_secs_f64());
                    self.bare_row(html, "gap", &title);
                }
                self.row(html, row);
                last = at;
            }
            if is_folded {
                html.push_str("</tbody>\n<tbody>\n");
            }
        }
    }

    /// Writes a row without entries.
    fn bare_row(&self, html: &mut String, class: &str, title: &str) {
        let _ = write!(html, "<tr class=\"{class}\"><td>{title}</td>");
        for lane in 0..self.lanes.len() {
            let _ = write!(html, "<td class=\"{}\"></td>", self.class(lane));
        }
        html.push_str("</tr>\n");
    }

    fn row(&mut self, html: &mut String, row: &[Entry]) {
        for entry in row {
            if let (Some(phase), Some(shown)) = (entry.phase, self.phases.get_mut(entry.lane)) {
                *shown = phase;
            }
        }
        let class = if is_quiet(row) { "quiet" } else { "" };
        let at = time_of(Some(&row)).as_secs_f64();
        let _ = write!(html, "<tr class=\"{class}\"><td>{at:.3}</td>");
        for lane in 0..self.lanes.len() {
            let _ = write!(html, "<td class=\"{}\">", self.class(lane));
            for entry in row.iter().filter(|entry| entry.lane == lane) {
                let pod = match &entry.pod {
                    Some(pod) => format!(" data-pod=\"{}\"", Text(pod)),
                    None => String::new(),
                };
                let (classes, shown) = (entry.classes(), &entry.html);
                let _ = write!(html, "<div class=\"{classes}\"{pod}>{shown}</div>");
            }
            html.push_str("</td>");
        }
        html.push_str("</tr>\n");
    }

    fn class(&self, lane: usize) -> &'static str {
        match self.lanes.get(lane) {
            Some(Lane { pod: Some(_), .. }) => self.phases.get(lane).copied().unwrap_or_default(),
            _ => "wide",
        }
    }
}

fn is_quiet(row: &[Entry]) -> bool {
    row.iter().all(Entry::is_quiet)
}

fn time_of(row: Option<&&[Entry]>) -> Duration {
    let first = row.and_then(|row| row.first());
    first.map_or(Duration::ZERO, |entry| entry.at)
}

#[cfg(test)]
mod tests;
