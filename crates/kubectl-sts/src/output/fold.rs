//! Long lines on a terminal.

/// Narrowest terminal whose lines are folded.
const WIDTH_MIN: usize = 40;
/// Indent of continued lines that have no column to continue.
const INDENT: usize = 4;
const ESCAPE: char = '\u{1b}';
/// Begin of the commands in answers.
const COMMAND: &str = "kubectl ";

/// Breaks lines at spaces so that they fit into a number of columns. The rest of a line continues
/// below its last column, if that begins in the left half. Words that are too long stay whole, and
/// so do lines with a command, which is copied from there.
pub fn fold(text: &str, width: usize) -> String {
    if width < WIDTH_MIN {
        return text.to_owned();
    }
    let mut folded = String::new();
    for line in text.lines() {
        fold_line(line, width, &mut folded);
    }
    folded
}

fn fold_line(line: &str, width: usize, out: &mut String) {
    let is_command = line.contains(COMMAND);
    let mut left = break_at(line, width).filter(|_| !is_command);
    let indent = " ".repeat(last_column(line, width / 2).unwrap_or(INDENT));
    let mut rest = line;
    while let Some(end) = left {
        let (now, later) = rest.split_at(end);
        out.push_str(now.trim_end());
        out.push('\n');
        out.push_str(&indent);
        rest = later.trim_start();
        left = break_at(rest, width - indent.len());
    }
    out.push_str(rest);
    out.push('\n');
}

/// The characters of a line with their bytes' positions and their columns. Colours take no column.
fn columns(line: &str) -> impl Iterator<Item = (usize, usize, char)> {
    let mut is_colour = false;
    let mut column = 0;
    line.char_indices().filter_map(move |(at, character)| {
        if is_colour || character == ESCAPE {
            is_colour = character != 'm';
            return None;
        }
        column += 1;
        Some((at, column - 1, character))
    })
}

/// The space at which a line breaks to fit into these columns: the last one within them, else the
/// first; none if the line fits or has no space.
fn break_at(line: &str, width: usize) -> Option<usize> {
    if columns(line).count() <= width {
        return None;
    }
    let begin = line.len() - line.trim_start().len();
    let spaces = columns(line).filter(|(at, _, character)| *character == ' ' && *at > begin);
    let (fitting, wide): (Vec<_>, Vec<_>) = spaces.partition(|(_, column, _)| *column <= width);
    let end = fitting.last().or(wide.first());
    end.map(|(at, ..)| *at)
}

/// The column after the last gap of two spaces or more that ends within these columns.
fn last_column(line: &str, width: usize) -> Option<usize> {
    let (mut found, mut spaces) = (None, 0);
    for (_, column, character) in columns(line).take_while(|(_, column, _)| *column <= width) {
        if character == ' ' {
            spaces += 1;
            continue;
        }
        if spaces >= 2 {
            found = Some(column);
        }
        spaces = 0;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_continue_below_their_last_column() {
        let text = "  evidence  event FailedScheduling: no node has room for it\nshort\n";
        let folded =
            "  evidence  event FailedScheduling: no\n            node has room for it\nshort\n";
        assert_eq!(fold(text, 40), folded);
        assert_eq!(fold(text, 80), text);
        assert_eq!(fold(text, 39), text);
    }

    #[test]
    fn lines_without_columns_are_indented() {
        let text = "stuck for 23s: pod web-2 has no node: none has labels\n";
        let folded = "stuck for 23s: pod web-2 has no node:\n    none has labels\n";
        assert_eq!(fold(text, 40), folded);
    }

    #[test]
    fn long_words_stay_whole() {
        let word = "w".repeat(60);
        assert_eq!(fold(&format!("{word}\n"), 40), format!("{word}\n"));
        let text = format!("a {word} b\n");
        assert_eq!(fold(&text, 40), format!("a\n    {word}\n    b\n"));
    }

    #[test]
    fn commands_stay_whole() {
        let text = "  resolve   kubectl -n default delete pod web-2 --wait=false\n";
        assert_eq!(fold(text, 40), text);
    }

    #[test]
    fn colours_take_no_column() {
        let text = format!("\u{1b}[31m{}\u{1b}[0m\n", "12345678 ".repeat(4).trim_end());
        assert_eq!(fold(&text, 40), text);
    }
}
