//! Options of programs: letters before and between the other arguments.

/// The arguments of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options<'a> {
    letters: Vec<(char, Option<&'a str>)>,
    pub(super) rest: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// Reads arguments. The letters of `with_value` take the rest of their argument or the next one
    /// as their value.
    pub(super) fn read(arguments: &[&'a str], with_value: &str) -> Self {
        let (mut letters, mut rest) = (Vec::new(), Vec::new());
        let mut arguments = arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            let group = match argument {
                "--" => {
                    rest.extend(arguments);
                    break;
                }
                "-" => None,
                long if long.starts_with("--") => continue,
                other => other.strip_prefix('-'),
            };
            let Some(group) = group else {
                rest.push(argument);
                continue;
            };
            for (i, letter) in group.char_indices() {
                if !with_value.contains(letter) {
                    letters.push((letter, None));
                    continue;
                }
                let inside = group.get(i + letter.len_utf8()..).unwrap_or_default();
                let value = match inside {
                    "" => arguments.next(),
                    inside => Some(inside),
                };
                letters.push((letter, value));
                break;
            }
        }
        Self { letters, rest }
    }

    pub(super) fn has(&self, letter: char) -> bool {
        self.letters.iter().any(|(found, _)| *found == letter)
    }

    /// Returns the values of a letter.
    pub(super) fn values(&self, letter: char) -> impl Iterator<Item = &'a str> + '_ {
        let of = self
            .letters
            .iter()
            .filter(move |(found, _)| *found == letter);
        of.filter_map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_separate_or_in_groups() {
        let options = Options::read(&["-rf", "a", "-n", "3", "-m5", "-", "--", "-x"], "nm");
        assert!(options.has('r') && options.has('f') && !options.has('x'));
        assert_eq!(options.values('n').next(), Some("3"));
        assert_eq!(options.values('m').next(), Some("5"));
        assert_eq!(options.rest, ["a", "-", "-x"]);
    }
}
