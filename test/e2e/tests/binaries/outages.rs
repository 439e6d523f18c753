//! Test of a controller whose connection to the API server fails: it logs that once, and recovers.

use crate::harness::{History, Kind, Plane, Proxy, Signal, Target, programs, set};

const REPLICAS: usize = 3;

#[test]
fn outages_are_logged_once_and_lose_nothing() {
    let plane = Plane::start(&programs(), "20ms");
    let mut history = History::begin(&plane.api);
    let proxy = Proxy::before(plane.kubeconfig());
    let kubeconfig = plane.kubeconfig_with(|kubeconfig| proxy.redirect_kubeconfig(kubeconfig));
    let mut controller = plane.controller_of(&kubeconfig, &["-v=2"]);
    controller.logged("ready: caches are filled");

    let bars = [
        (Target::Closed, "API server unreachable, trying again"),
        (
            Target::Expired,
            "no secure connection to the API server, trying again",
        ),
    ];
    for (ordinal, (target, expected)) in bars.into_iter().enumerate() {
        proxy.switch_to(target);
        let line = controller.logged(expected);
        if target == Target::Expired {
            assert!(line.contains("certificate expired"), "{line}");
        }
        // The user creates a set meanwhile.
        let name = format!("web{ordinal}");
        plane.api.create(Kind::Set, &set(&name, REPLICAS));
        proxy.switch_to(Target::Open);
        controller.logged("API server reachable again");
        // The controller must be idle before the next outage.
        controller.logged("set is in its desired state");
        history.until("the set to be complete", |history| {
            history.is_complete(&name)
        });
        let pods = history.counts(Kind::Pod, &format!("{name}-"));
        assert_eq!(pods.into_values().collect::<Vec<_>>(), [(1, 0); REPLICAS]);
    }

    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let logged: Vec<_> = finished
        .stderr
        .iter()
        .filter(|line| line.starts_with(['W', 'E']) || line.contains("reachable again"))
        .collect();
    assert_eq!(logged.len(), 2 * bars.len(), "{logged:#?}");
}
