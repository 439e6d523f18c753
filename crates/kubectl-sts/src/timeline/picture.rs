//! The picture of a timeline: one self-contained SVG.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::{Bar, Entry, Timeline};
use crate::output::{age, printable};

/// Width of the time axis and of the labels before it.
const WIDTH: i64 = 800;
const LABELS: i64 = 140;
/// Height of a row, and of title and time axis.
const ROW: i64 = 28;
const HEAD: i64 = 68;
/// Distances of ticks in seconds, and the most ticks.
const STEPS: [i64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    604_800,
];
const TICKS_MAX: i64 = 8;
/// Colours of revisions, in turn; readable by people who confuse red and green.
const COLORS: [&str; 6] = [
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
];

/// Draws the pods as rows over time, with their warnings.
pub(crate) fn draw(timeline: &Timeline) -> String {
    let first = timeline
        .entries
        .first()
        .map_or(timeline.now, |entry| entry.moment);
    let axis = Axis {
        first,
        seconds: timeline.now.duration_since(first).as_secs().max(1),
    };
    let mut bars: Vec<&Bar> = timeline.bars.iter().collect();
    bars.sort_by_key(|bar| (bar.ordinal, bar.pod.clone()));
    let revisions = timeline.revisions();
    let rows = i64::try_from(bars.len() + 1).unwrap_or(i64::MAX / ROW / 2);
    let height = HEAD + (rows + 1) * ROW + i64::try_from(revisions.len()).unwrap_or(0) * ROW;
    let width = LABELS + WIDTH + 20;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let title = format!(
        "{}/{}: the last {}, times in UTC",
        timeline.namespace,
        timeline.set,
        age(Some(first), timeline.now)
    );
    label(&mut svg, 10, 24, &title);
    axis.draw(&mut svg, height);
    row(&mut svg, &axis, timeline, "set", HEAD);
    for (bar, number) in bars.iter().zip(1..) {
        let top = HEAD + number * ROW;
        let color = revisions
            .get(bar.revision.as_str())
            .copied()
            .unwrap_or_default();
        let color = COLORS.get(color % COLORS.len()).copied().unwrap_or("gray");
        let (created, now) = (axis.at(bar.created), axis.at(timeline.now));
        rectangle(&mut svg, created, now, top + 8, color, "0.35");
        if let Some(ready) = bar.ready {
            rectangle(&mut svg, axis.at(ready), now, top + 8, color, "1");
        }
        row(&mut svg, &axis, timeline, &bar.pod, top);
    }
    let mut legend: Vec<(&str, usize)> = revisions.into_iter().collect();
    legend.sort_by_key(|(_, number)| *number);
    for ((revision, number), at) in legend.iter().zip(rows..) {
        let top = HEAD + at * ROW;
        let color = COLORS.get(number % COLORS.len()).copied().unwrap_or("gray");
        rectangle(&mut svg, LABELS, LABELS + 30, top + 8, color, "1");
        label(
            &mut svg,
            LABELS + 40,
            top + 19,
            &format!("{revision} (pale: not ready)"),
        );
    }
    svg + "</svg>\n"
}

/// The time axis.
struct Axis {
    first: Timestamp,
    seconds: i64,
}

impl Axis {
    /// Draws a line and a label at round times.
    fn draw(&self, svg: &mut String, height: i64) {
        let fits = |step: &&i64| self.seconds / **step < TICKS_MAX;
        let step = STEPS.iter().find(fits).copied();
        let step = step.unwrap_or_else(|| self.seconds / TICKS_MAX + 1);
        let begin = self.first.as_second();
        let mut second = begin + (step - begin.rem_euclid(step)) % step;
        while second <= begin + self.seconds {
            let Ok(moment) = Timestamp::from_second(second) else {
                return;
            };
            let x = self.at(moment);
            // Writing to a string never fails.
            let _ = writeln!(
                svg,
                "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{height}\" stroke=\"#dddddd\"/>",
                HEAD - 6
            );
            let text = moment.to_string();
            let part = if step < 86_400 { 11..19 } else { 5..10 };
            label(svg, x - 28, HEAD - 12, text.get(part).unwrap_or_default());
            second += step;
        }
    }

    fn at(&self, moment: Timestamp) -> i64 {
        let seconds = moment
            .duration_since(self.first)
            .as_secs()
            .clamp(0, self.seconds);
        LABELS + seconds.saturating_mul(WIDTH) / self.seconds
    }
}

/// Draws the label of a row and a mark with a tooltip for each of its entries.
fn row(svg: &mut String, axis: &Axis, timeline: &Timeline, object: &str, top: i64) {
    label(svg, 10, top + 19, object);
    let entries = timeline
        .entries
        .iter()
        .filter(|entry| entry.object == object);
    for entry in entries {
        mark(svg, axis.at(entry.moment), top, entry);
    }
}

fn mark(svg: &mut String, x: i64, top: i64, entry: &Entry) {
    let (color, radius) = if entry.is_bad {
        ("#bb0000", 5)
    } else {
        ("#333333", 2)
    };
    let text = escaped(&format!("{} {}", entry.at, entry.text));
    // Writing to a string never fails.
    let _ = writeln!(
        svg,
        "<circle cx=\"{x}\" cy=\"{}\" r=\"{radius}\" fill=\"{color}\"><title>{text}</title></circle>",
        top + 14
    );
}

fn rectangle(svg: &mut String, from: i64, to: i64, top: i64, color: &str, opacity: &str) {
    let width = (to - from).max(1);
    let _ = writeln!(
        svg,
        "<rect x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"12\" fill=\"{color}\" opacity=\"{opacity}\"/>"
    );
}

fn label(svg: &mut String, x: i64, y: i64, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(text));
}

/// A text of the cluster as content of XML.
fn escaped(text: &str) -> String {
    let text = printable(text).replace('&', "&amp;");
    text.replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_cluster_are_escaped() {
        assert_eq!(
            escaped("<a href=\"x\">&\u{0}"),
            "&lt;a href=&quot;x&quot;&gt;&amp; "
        );
    }
}
