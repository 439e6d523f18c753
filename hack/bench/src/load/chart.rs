//! A chart of the medians, as SVG.

use std::fmt::Write as _;

use super::figures::{Measure, Rounds};

/// Width of a panel, in pixels.
const PANEL: f64 = 420.0;
/// Height of a panel's plot.
const PLOT: f64 = 180.0;
/// Space around the plots, for text.
const MARGIN: f64 = 40.0;
/// Colours of the programs, distinct also for the colour-blind.
const COLOURS: [&str; 2] = ["#0072b2", "#e69f00"];

/// Renders bars for each phase: processor time in the left panel, peak memory in the right one.
pub(crate) fn render(rounds: &Rounds) -> String {
    let (width, height) = (2.0 * PANEL, PLOT + 3.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" \
         fill=\"white\"/>\n"
    );
    let panels = [
        ("CPU (s)", Measure::Cpu),
        ("peak memory (MB)", Measure::Peak),
    ];
    for (number, (title, measure)) in panels.into_iter().enumerate() {
        panel(&mut svg, rounds, number as f64 * PANEL, title, &measure);
    }
    for (number, contender) in rounds.contenders.iter().enumerate() {
        let (x, y) = (MARGIN + number as f64 * PANEL, height - MARGIN / 2.0);
        let (colour, name) = (COLOURS[number % 2], escaped(&contender.program.name));
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{y}\">{name}</text>",
            y - 10.0,
            x + 16.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, rounds: &Rounds, left: f64, title: &str, measure: &Measure) {
    let phases = rounds.phases();
    let median = |place: usize, contender: usize| {
        let contender = rounds.contenders.get(contender);
        contender
            .and_then(|contender| contender.median(place, measure))
            .unwrap_or_default()
    };
    let programs = rounds.contenders.len();
    let values = (0..phases.len()).flat_map(|place| (0..programs).map(move |of| median(place, of)));
    let largest = values.fold(f64::MIN_POSITIVE, f64::max);
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"24\" font-weight=\"bold\">{title}</text>",
        left + MARGIN
    );
    let group = (PANEL - 1.5 * MARGIN) / phases.len().max(1) as f64;
    let bar = group * 0.8 / programs.max(1) as f64;
    let floor = MARGIN + PLOT;
    for (place, phase) in phases.iter().enumerate() {
        let start = left + MARGIN + place as f64 * group;
        for program in 0..programs {
            let value = median(place, program);
            let (height, x) = (PLOT * value / largest, start + program as f64 * bar);
            let (colour, top) = (COLOURS[program % 2], floor - height);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\" \
                 fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\" \
                 text-anchor=\"middle\">{value:.1}</text>",
                x + bar / 2.0,
                top - 3.0
            );
        }
        let (middle, name) = (start + group * 0.4, phase.name());
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            floor + 16.0
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::rounds;
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_figures() {
        let svg = render(&rounds());
        assert!(svg.contains("height=\"45.0\" fill=\"#0072b2\""), "{svg}");
        assert!(svg.contains("height=\"180.0\" fill=\"#e69f00\""), "{svg}");
        assert!(svg.contains(">ours</text>") && svg.contains(">theirs</text>"));
        assert_eq!(escaped("a<b&c"), "a&lt;b&amp;c");
    }
}
