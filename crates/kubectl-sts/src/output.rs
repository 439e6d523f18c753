//! Output: tables, colours, JSON and YAML.

mod fold;

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::Output;
pub use fold::fold;

/// The style of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Without colours.
    #[default]
    Plain,
    /// With the colours of a terminal.
    Colored,
}

/// The meaning of a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A heading.
    Bold,
    /// Something removed or broken.
    Bad,
    /// Something added or complete.
    Good,
    /// Something that waits.
    Warn,
}

impl Style {
    /// Colours a text. Control characters from the cluster never reach the terminal.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let text = printable(text);
        let code = match tone {
            Tone::Bold => "1",
            Tone::Bad => "31",
            Tone::Good => "32",
            Tone::Warn => "33",
        };
        match self {
            Self::Plain => text,
            Self::Colored => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

/// Replaces control characters, line breaks included, by spaces.
pub fn printable(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).collect()
}

/// Renders an answer in the chosen form, with a line break at the end.
///
/// # Errors
///
/// The answer can't be encoded.
pub fn render<T: Serialize>(
    output: Output,
    answer: &T,
    text: impl FnOnce(&T) -> String,
) -> anyhow::Result<String> {
    let mut text = match output {
        Output::Text => text(answer),
        Output::Json => serde_json::to_string_pretty(answer).context("encode the answer")?,
        Output::Yaml => serde_saphyr::to_string(answer).context("encode the answer")?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Aligns the columns of rows, with two spaces between them and none at the end of a line.
pub fn table(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = printable(cell).chars().count();
            match widths.get_mut(column) {
                Some(widest) => *widest = (*widest).max(width),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{:<width$}", printable(cell)));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A number with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Cuts a text to a number of characters.
pub fn brief(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let kept = text.chars().take(length.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// The time between two moments, as kubectl prints ages; `unknown` if `since` is not known.
pub fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else {
        return "unknown".to_owned();
    };
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let (text, rest) = match seconds {
        0..120 => (format!("{seconds}s"), None),
        120..600 => (format!("{minutes}m"), Some((seconds % 60, 's'))),
        600..10_800 => (format!("{minutes}m"), None),
        10_800..28_800 => (format!("{hours}h"), Some((minutes % 60, 'm'))),
        28_800..172_800 => (format!("{hours}h"), None),
        172_800..691_200 => (format!("{days}d"), Some((hours % 24, 'h'))),
        _ => (format!("{days}d"), None),
    };
    match rest {
        Some((rest, unit)) if rest > 0 => format!("{text}{rest}{unit}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "AGE"], ["a-long-name", "1s"], ["b\u{1b}[2J", ""]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let text = "NAME         AGE\na-long-name  1s\nb [2J\n";
        assert_eq!(table(&rows), text);
    }

    #[test]
    fn ages_are_those_of_kubectl() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
        let before = |seconds: i64| {
            age(
                now.checked_sub(jiff::SignedDuration::from_secs(seconds))
                    .ok(),
                now,
            )
        };
        let ages = [
            -5, 0, 119, 120, 150, 599, 600, 7300, 10_860, 90_000, 180_000, 900_000,
        ];
        let texts = [
            "0s", "0s", "119s", "2m", "2m30s", "9m59s", "10m", "121m", "3h1m", "25h", "2d2h", "10d",
        ];
        assert_eq!(ages.map(before), texts);
        assert_eq!(age(None, now), "unknown");
    }

    #[test]
    fn control_characters_are_not_printed() {
        assert_eq!(Style::Plain.paint(Tone::Bad, "a\u{1b}[2J\nb"), "a [2J b");
        assert_eq!(
            Style::Colored.paint(Tone::Good, "ok"),
            "\u{1b}[32mok\u{1b}[0m"
        );
    }
}
