//! Output: a table that is redrawn in place on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal as _, Write};

/// Escape codes: the cursor to the first column of the line above, erase to the end of the screen,
/// and line wrapping off and on (a wrapped line would count as two).
const UP: &str = "\x1b[1F";
const ERASE_BELOW: &str = "\x1b[0J";
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// Returns true if input and output are both terminals: the table needs one, and the interrupt
/// comes from the input.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Output with a redrawn table.
pub(crate) struct Screen<W: Write> {
    out: W,
    drawn: Vec<String>,
}

impl<W: Write> Screen<W> {
    /// Creates an empty screen.
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            drawn: Vec::new(),
        }
    }

    /// Writes a permanent line, above the table if there is one.
    ///
    /// # Errors
    /// The output is closed.
    pub(crate) fn say(&mut self, line: &str) -> io::Result<()> {
        self.erase()?;
        writeln!(self.out, "{line}")?;
        let table = std::mem::take(&mut self.drawn);
        self.draw(table)
    }

    /// Replaces the table.
    ///
    /// # Errors
    /// The output is closed.
    pub(crate) fn redraw(&mut self, table: Vec<String>) -> io::Result<()> {
        if table == self.drawn {
            return Ok(());
        }
        self.erase()?;
        self.draw(table)
    }

    fn erase(&mut self) -> io::Result<()> {
        if !self.drawn.is_empty() {
            write!(self.out, "{}{ERASE_BELOW}", UP.repeat(self.drawn.len()))?;
        }
        Ok(())
    }

    fn draw(&mut self, table: Vec<String>) -> io::Result<()> {
        if !table.is_empty() {
            writeln!(self.out, "{WRAP_OFF}{}{WRAP_ON}", table.join("\n"))?;
        }
        self.drawn = table;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(use_screen: impl FnOnce(&mut Screen<&mut Vec<u8>>)) -> String {
        let mut bytes = Vec::new();
        use_screen(&mut Screen::new(&mut bytes));
        String::from_utf8(bytes).expect("only text is written")
    }

    #[test]
    fn plain_lines_carry_no_escape_codes() {
        let text = drawn(|screen| {
            screen.say("a").expect("writing to memory succeeds");
            screen.say("b").expect("writing to memory succeeds");
        });
        assert_eq!(text, "a\nb\n");
    }

    #[test]
    fn table_is_replaced_and_lines_go_above_it() {
        let text = drawn(|screen| {
            let table = vec!["r1".to_owned(), "r2".to_owned()];
            screen
                .redraw(table.clone())
                .expect("writing to memory succeeds");
            screen.redraw(table).expect("writing to memory succeeds");
            screen.say("note").expect("writing to memory succeeds");
        });
        let table = format!("{WRAP_OFF}r1\nr2{WRAP_ON}\n");
        assert_eq!(text, format!("{table}{UP}{UP}{ERASE_BELOW}note\n{table}"));
    }
}
