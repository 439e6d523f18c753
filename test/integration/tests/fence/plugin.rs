//! The commands of the kubectl plugin about the fence.

use clap::Parser as _;
use http::Method;
use jiff::Timestamp;
use kubectl_sts::cli::Cli;
use kubectl_sts::output::Style;
use kubectl_sts::{Session, run};
use serde_json::{Value, json};
use statefulset_fence::names::{BUILT_IN_USER, FENCE, USER_DEFAULT};

use crate::served::World;
use crate::support::{OTHER, SERVED};

/// The output of a command, and the exit code.
async fn sts(world: &World, command: &str) -> (String, u8) {
    let words = ["kubectl-sts", "fence"]
        .into_iter()
        .chain(command.split(' '));
    let cli = Cli::try_parse_from(words).unwrap();
    let session = Session {
        client: world.admin.client(),
        namespace: "default".to_owned(),
        now: Timestamp::UNIX_EPOCH,
        style: Style::Plain,
    };
    match run(&cli, &session).await {
        Ok(reply) => (reply.text, reply.verdict.exit_code()),
        Err(error) => (format!("error: {error:#}\n"), 1),
    }
}

/// The lines without the part that names policies and users.
fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[tokio::test(start_paused = true)]
async fn fence_is_installed_repaired_and_removed() {
    let world = World::new().await;
    let (text, code) = sts(&world, "status").await;
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("does not exist; repair it with: kubectl sts fence install"));

    let (text, code) = sts(&world, "install").await;
    assert_eq!((lines(&text).len(), code), (5, 0), "{text}");
    assert!(text.starts_with("done    created ValidatingAdmissionPolicy "));
    let (text, code) = sts(&world, "status").await;
    assert_eq!(code, 0, "{text}");
    assert!(
        text.ends_with("no namespace has the label statefulset-controller-manager/served=true\n")
    );

    let path = format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{FENCE}");
    let open = json!({"spec": {"failurePolicy": "Ignore"}});
    world.admin.ask(Method::PATCH, &path, &open).await.unwrap();
    let (text, code) = sts(&world, "status").await;
    assert_eq!(code, 2);
    assert!(text.contains("spec.failurePolicy differs"), "{text}");
    let (text, _) = sts(&world, "install").await;
    let replaced = lines(&text);
    assert_eq!(
        replaced[2],
        format!("done    replaced the spec of ValidatingAdmissionPolicy {FENCE}")
    );
    assert_eq!(sts(&world, "status").await.1, 0);

    let (text, code) = sts(&world, "uninstall").await;
    assert_eq!((lines(&text).len(), code), (5, 0), "{text}");
    let gone = world.admin.ask(Method::GET, &path, &Value::Null).await;
    assert!(gone.is_err());
}

#[tokio::test(start_paused = true)]
async fn account_of_the_built_in_controller_is_refused() {
    let world = World::new().await;
    let account = "install --account kube-system:statefulset-controller";
    let (text, code) = sts(&world, account).await;
    assert_eq!(code, 1);
    assert!(text.contains("give it its own account"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn proof_shows_that_one_controller_acts_and_cleans_up() {
    let world = World::running().await;
    let (text, code) = sts(&world, "prove served").await;
    assert_eq!(code, 0, "{text}");
    assert_eq!(
        lines(&text)[1..],
        [
            "ok      the mirror is in force in namespace kube-system",
            "ok      the fence is in force in namespace served",
            "done    created the probe namespaces statefulset-controller-manager-probe-unfenced-0 \
             and statefulset-controller-manager-probe-fenced-0",
            "ok      the built-in controller acts on a set without the label",
            "ok      the built-in controller leaves the set with the label alone",
            "done    deleted the probe namespaces",
            "proved: the fence gives namespace served one writer",
        ]
    );
    world.settle().await;
    let namespaces = world
        .admin
        .ask(Method::GET, "/api/v1/namespaces", &Value::Null);
    let namespaces = namespaces.await.unwrap().to_string();
    assert!(!namespaces.contains("-probe-"), "{namespaces}");
    let (text, code) = sts(&world, "prove other").await;
    assert_eq!(code, 0, "{text}");
    let label = "kubectl label namespace other statefulset-controller-manager/served=true\n";
    assert!(text.ends_with(label), "{text}");
    assert_eq!(sts(&world, "prove kube-system").await.1, 2);
    assert_eq!(sts(&world, "prove missing").await.1, 1);
}

#[tokio::test(start_paused = true)]
async fn proof_fails_where_controllers_share_a_user() {
    let mut world = World::new().await;
    world.run_as("system:kube-controller-manager");
    sts(&world, "install").await;
    world.create_namespace(SERVED, Some("true")).await;
    let (text, code) = sts(&world, "prove served").await;
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("acts on a set with the label, too"), "{text}");
    assert!(text.ends_with("not proved: do not label namespaces\n"));
}

#[tokio::test(start_paused = true)]
async fn proof_fails_without_a_built_in_controller() {
    let world = World::new().await;
    sts(&world, "install").await;
    world.create_namespace(SERVED, Some("true")).await;
    let (text, code) = sts(&world, "prove served").await;
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("no built-in controller acts"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn release_hands_back_and_wakes_the_built_in_controller() {
    let world = World::running().await;
    // The built-in controller has backed off for a long time.
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    let (text, code) = sts(&world, "uninstall").await;
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("kubectl sts fence release served"), "{text}");
    let before = world.pods(SERVED).await;
    world.scale(SERVED, 3).await;
    world.settle().await;
    world.clear();
    let began = tokio::time::Instant::now();
    let (text, code) = sts(&world, "release served").await;
    assert_eq!(code, 0, "{text}");
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
    world.scale(SERVED, 4).await;
    world.settle().await;
    assert_eq!(world.stored(USER_DEFAULT, SERVED), [""; 0]);
    assert_ne!(world.stored(BUILT_IN_USER, SERVED), [""; 0]);
    let after = world.pods(SERVED).await;
    assert_eq!(after.len(), 4);
    assert_eq!(after[..2], before);
    let set = "/apis/apps/v1/namespaces/served/statefulsets/web";
    let set = world
        .admin
        .ask(Method::GET, set, &Value::Null)
        .await
        .unwrap();
    let annotations = set["metadata"].get("annotations");
    assert!(annotations.is_none_or(|it| *it == json!({})), "{set}");
    assert_eq!(sts(&world, "release other").await.1, 0);
    assert_eq!(world.pods(OTHER).await.len(), 2);
    assert_eq!(sts(&world, "uninstall").await.1, 0);
}
