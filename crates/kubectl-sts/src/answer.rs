//! Answers to the questions of the command line.

use anyhow::anyhow;

use crate::cli::{self, Cli, Command, RolloutArguments};
use crate::opt_ins::Rollout;
use crate::output::render;
use crate::server::Server;
use crate::session::{Reply, Session, Verdict};
use crate::{
    diff, fence, history, opt_ins, plan, preflight, recreate, revisions, shadow_report, timeline,
    wait, watch, why,
};

/// Answers a question.
///
/// # Errors
///
/// The cluster can't be reached, a permission is missing, or an object doesn't exist.
pub async fn run(cli: &Cli, session: &Session) -> anyhow::Result<Reply> {
    follow(cli, session, &mut |_| {}).await
}

/// Answers a question, and reports each change during a wait as a line.
///
/// # Errors
///
/// The cluster can't be reached, a permission is missing, or an object doesn't exist.
pub async fn follow(
    cli: &Cli,
    session: &Session,
    report: &mut dyn FnMut(&str),
) -> anyhow::Result<Reply> {
    let reply = answer(cli, session, report).await;
    let recreations = recreate::under_way(session, &cli.command.sets()).await;
    match reply {
        Ok(mut reply) => {
            reply.notes.extend(recreations);
            Ok(reply)
        }
        Err(error) if recreations.is_empty() => Err(error),
        // The set may not exist because of its recreation.
        Err(error) => Err(anyhow!("{error:#}; {}", recreations.join("; "))),
    }
}

async fn answer(
    cli: &Cli,
    session: &Session,
    report: &mut dyn FnMut(&str),
) -> anyhow::Result<Reply> {
    let server = Server::new(session.client.clone());
    let (mut verdict, mut is_settled) = (Verdict::Clear, false);
    let text = match &cli.command {
        Command::History { name } => {
            let found = revisions::read(&server, &session.namespace, name).await?;
            let history = history::History::new(&found);
            render(cli.output, &history, |history| history.text(session))
        }
        Command::Diff { name, from, to } => {
            let found = revisions::read(&server, &session.namespace, name).await?;
            let diff = diff::Diff::new(&found, from.as_deref(), to.as_deref())?;
            render(cli.output, &diff, |diff| diff.text(session.style))
        }
        Command::Why {
            names,
            all_namespaces,
        } => {
            let why = why(&server, session, names, *all_namespaces).await?;
            render(cli.output, &why, |why| why.text(session.style))
        }
        Command::Plan(arguments) => {
            let plan = plan::plan(&server, session, arguments).await?;
            verdict = Verdict::of(plan.is_dangerous());
            render(cli.output, &plan, |plan| plan::text(plan, session.style))
        }
        Command::Timeline { name, svg } => {
            let timeline = timeline::timeline(&server, session, name).await?;
            match svg {
                true => Ok(timeline::draw(&timeline)),
                false => render(cli.output, &timeline, |it| it.text(session.style)),
            }
        }
        Command::Watch { name, .. } => {
            let status = watch::status(&server, session, name).await?;
            is_settled = status.is_settled();
            render(cli.output, &status, |status| status.text(session.style))
        }
        Command::Wait {
            name,
            goal,
            timeout,
        } => {
            let question = wait::Question::new(name, *goal, *timeout);
            let wait = wait::wait(&server, session, &question, report).await?;
            verdict = wait.verdict();
            render(cli.output, &wait, |wait| wait.text(session.style))
        }
        Command::Preflight { to } => {
            let checklist = match to {
                Some(to) => preflight::upgrade(&server, session, *to).await,
                None => preflight::preflight(&server, session).await,
            };
            verdict = Verdict::of(checklist.has_findings());
            render(cli.output, &checklist, |list| list.text(session.style))
        }
        Command::ShadowReport { file } => {
            let report = shadow_report::read(&server, session, file.as_deref()).await?;
            verdict = Verdict::of(report.has_findings());
            render(cli.output, &report, |report| report.text(session.style))
        }
        Command::Fence(command) => {
            let report = fence::run(session, command).await?;
            verdict = Verdict::of(report.has_findings());
            render(cli.output, &report, |report| report.text(session.style))
        }
        Command::Pause(set) => {
            change(&server, cli, session, set, Rollout::Pause, &mut verdict).await
        }
        Command::Resume(set) => {
            change(&server, cli, session, set, Rollout::Resume, &mut verdict).await
        }
        Command::Step { set, by } => {
            let step = Rollout::Step(*by);
            change(&server, cli, session, set, step, &mut verdict).await
        }
        Command::Resize(arguments) => {
            let resized = opt_ins::resize(&server, session, arguments, report).await?;
            verdict = resized.verdict();
            render(cli.output, &resized, opt_ins::Resized::text)
        }
        Command::Clean { names, annotations } => {
            let report = opt_ins::clean(session, names, *annotations).await?;
            render(cli.output, &report, |report| report.text(session.style))
        }
        Command::Recreate(arguments) => {
            let recreated = recreate::recreate(&server, session, arguments, report).await?;
            verdict = Verdict::of(recreated.has_findings());
            render(cli.output, &recreated, recreate::Recreated::text)
        }
        Command::Completion { shell } => Ok(cli::completion(*shell)),
        Command::Man { folder } => cli::man(folder).map(|()| String::new()),
    }?;
    Ok(Reply {
        text,
        notes: server.take_notes().into_iter().collect(),
        verdict,
        is_settled,
    })
}

/// Explains these sets, or all that aren't settled, with the recreations that haven't ended.
async fn why(
    server: &Server,
    session: &Session,
    names: &[String],
    everywhere: bool,
) -> anyhow::Result<why::Why> {
    let mut why = why::why(server, session, names, everywhere).await?;
    if names.is_empty() {
        let namespace = (!everywhere).then_some(session.namespace.as_str());
        why.add_recreations(recreate::all_under_way(session, namespace).await);
    }
    Ok(why)
}

/// Changes a rollout.
async fn change(
    server: &Server,
    cli: &Cli,
    session: &Session,
    set: &RolloutArguments,
    rollout: Rollout,
    verdict: &mut Verdict,
) -> anyhow::Result<String> {
    let change = opt_ins::change(server, session, set, rollout).await?;
    *verdict = Verdict::of(change.is_dangerous());
    render(cli.output, &change, |change| change.text(session.style))
}
