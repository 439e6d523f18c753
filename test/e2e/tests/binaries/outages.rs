//! A controller whose way to the API server is barred says so once, and goes on by itself.

use crate::harness::{History, Kind, Plane, Proxy, Signal, Way, programs, set};

const REPLICAS: usize = 3;

#[test]
fn connections_that_break_and_certificates_that_expire_are_told_once_and_nothing_is_lost() {
    let plane = Plane::start(&programs(), "20ms");
    let mut history = History::begin(&plane.api);
    let proxy = Proxy::before(plane.kubeconfig());
    let kubeconfig = plane.kubeconfig_with(|kubeconfig| proxy.stand_before(kubeconfig));
    let mut controller = plane.controller_of(&kubeconfig, &["-v=2"]);
    controller.logged("ready: caches are filled");

    let bars = [
        (Way::Closed, "API server unreachable, trying again"),
        (
            Way::Expired,
            "no secure connection to the API server, trying again",
        ),
    ];
    for (ordinal, (way, told)) in bars.into_iter().enumerate() {
        proxy.lead_to(way);
        let line = controller.logged(told);
        if way == Way::Expired {
            assert!(line.contains("certificate expired"), "{line}");
        }
        // Meanwhile somebody wants something.
        let name = format!("web{ordinal}");
        plane.api.create(Kind::Set, &set(&name, REPLICAS));
        proxy.lead_to(Way::Open);
        controller.logged("API server reachable again");
        // The next bar shall find the controller at rest.
        controller.logged("set is in its wanted state");
        history.until("the set to be complete", |history| {
            history.is_complete(&name)
        });
        let pods = history.counts(Kind::Pod, &format!("{name}-"));
        assert_eq!(pods.into_values().collect::<Vec<_>>(), [(1, 0); REPLICAS]);
    }

    controller.signal(Signal::TERM);
    let finished = controller.wait();
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let told: Vec<_> = finished
        .stderr
        .iter()
        .filter(|line| line.starts_with(['W', 'E']) || line.contains("reachable again"))
        .collect();
    assert_eq!(told.len(), 2 * bars.len(), "{told:#?}");
}
