//! The catalogue of scenarios: named plans, each with an expectation.
//!
//! Each scenario is a situation that went wrong in a StatefulSet controller or in an operator. Its
//! plans run under all judges. It also names the required situation, so that it can't pass
//! without it, and the required result.

mod api_faults;
mod check;
mod crash_points;
mod environment;
mod issues;
mod leadership;
mod migration;
mod not_played;
mod opt_ins;
mod ownership;
mod pods;
mod rollouts;
mod run_view;
mod scale;
mod scenario;
mod staleness;
mod unobserved;
mod volumes;

pub use check::Check;
pub use issues::{ISSUES, IssueStatus};
pub use not_played::{NOT_PLAYED, NotPlayed};
pub use run_view::RunView;
pub use scenario::Scenario;

/// All scenarios that are played, in the order of their numbers.
pub fn scenarios() -> Vec<&'static Scenario> {
    let sections: [&[Scenario]; 12] = [
        staleness::SCENARIOS,
        crash_points::SCENARIOS,
        unobserved::SCENARIOS,
        api_faults::SCENARIOS,
        rollouts::SCENARIOS,
        pods::SCENARIOS,
        volumes::SCENARIOS,
        ownership::SCENARIOS,
        leadership::SCENARIOS,
        migration::SCENARIOS,
        scale::SCENARIOS,
        opt_ins::SCENARIOS,
    ];
    sections.into_iter().flatten().collect()
}

/// Returns the scenario with this number.
pub fn scenario(number: u32) -> Option<&'static Scenario> {
    scenarios().into_iter().find(|it| it.number == number)
}
