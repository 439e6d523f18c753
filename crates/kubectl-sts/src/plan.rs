//! The effects of a change of a set, before it is made.
//!
//! The cluster's server decides about the change by a dry run ([`decision`]). The set's objects are
//! loaded into an embedded control plane ([`world`]), and the shipped controller runs there on the
//! changed set, in virtual time, until nothing changes. The answer lists its writes ([`steps`]) and
//! the claims that go ([`loss`]) with the end of their data ([`volumes`]).

mod change;
mod decision;
mod ending;
mod loss;
mod outcome;
mod owners;
mod recreation;
mod situation;
mod steps;
mod subject;
mod text;
mod virtual_time;
mod volumes;
mod world;

use crate::Session;
use crate::cli::PlanArguments;
use crate::server::Server;
pub(crate) use change::new_set;
use loss::{Desired, losses, risks};
use outcome::ClaimAtRisk;
pub(crate) use outcome::Plan;
pub(crate) use recreation::{Recreation, combined, normal, recreation};
use situation::Situation;
pub(crate) use subject::Subject;
pub(crate) use text::{effects, text};
use virtual_time::in_virtual_time;
use world::{Course, Start};

/// Plans a change.
///
/// # Errors
///
/// The set can't be read, the change is invalid, or the API server would refuse it.
pub(crate) async fn plan(
    server: &Server,
    session: &Session,
    arguments: &PlanArguments,
) -> anyhow::Result<Plan> {
    let subject = Subject::read(server, session, arguments.clone()).await?;
    let situation = subject.situation();
    let parts = change::parts(&situation)?;
    if situation.is_ending() {
        return ending::plan(server, &situation).await;
    }
    let changed = decision::changed(server, &situation, &parts).await?;
    let course = run(server, &situation, Start::Changed(&changed)).await?;
    Ok(course.plan)
}

/// Runs the controller from this start, and adds the claims that go.
async fn run(
    server: &Server,
    situation: &Situation<'_>,
    start: Start<'_>,
) -> anyhow::Result<Course> {
    let mut course = in_virtual_time(|| world::run(situation, start, true))?;
    if let Some(rejected) = course.rejected.take() {
        let decided = decision::about_rejected(server, situation, &rejected).await?;
        match decided {
            None => course = in_virtual_time(|| world::run(situation, start, false))?,
            Some(reason) => course.plan.ends_with = Some(reason),
        }
    }
    let desired = Desired {
        set: &course.set,
        is_built_in: situation.snapshot.is_built_in(),
    };
    let lost = losses(situation, &desired, &course.ending);
    let at_risk = risks(situation, &lost).into_iter();
    course.plan.claims_at_risk = at_risk
        .map(|risk| ClaimAtRisk {
            name: risk.claim,
            holder: risk.holder,
        })
        .collect();
    course.plan.claims_deleted = volumes::ends(server, situation.snapshot, lost).await;
    Ok(course)
}
