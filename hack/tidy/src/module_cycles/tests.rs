//! Tests of the checks of modules.

use super::*;

const ROOT: &str = "a/src/lib.rs";

/// The findings in a crate with these modules; `x/y` is a module in `x`, which declares it.
fn findings(modules: &[(&str, &str)]) -> Findings {
    let top = modules.iter().filter(|(name, _)| !name.contains('/'));
    let root: String = top.flat_map(|(name, _)| ["mod ", name, ";\n"]).collect();
    let mut files = vec![SourceFile::new(ROOT, &root)];
    for (name, text) in modules {
        files.push(SourceFile::new(&format!("a/src/{name}.rs"), text));
    }
    check(&files, &BTreeSet::from([ROOT.to_owned()]))
}

const LOOP: [(&str, &str); 4] = [
    ("a", "use crate::b::B;\n"),
    ("b", "fn f() { crate::c::g(); }\n"),
    ("c", "use super::{a::{A, C}, d};\n"),
    ("d", "use std::fmt;\n"),
];

#[test]
fn a_loop_is_found_with_its_files() {
    assert_eq!(
        findings(&LOOP),
        [
            "a/src/lib.rs: loop in crate: a, b, c; break a → b in a/src/a.rs, \
             b → c in a/src/b.rs, c → a in a/src/c.rs"
        ]
    );
}

#[test]
fn imports_that_point_one_way_pass() {
    assert_eq!(findings(&LOOP[1..]), Findings::new());
}

#[test]
fn a_loop_in_test_code_passes() {
    let tests = "#[cfg(test)]\nmod tests { use crate::a::A; }\n";
    let modules = [("a", "use crate::b::B;\n"), ("b", tests)];
    assert_eq!(findings(&modules), Findings::new());
}

/// A shape that a crate once had, or that the check once missed.
struct Pattern {
    name: &'static str,
    /// The modules of a crate of this shape, as for [`findings`].
    modules: &'static [(&'static str, &'static str)],
    /// The beginnings of the findings.
    findings: &'static [&'static str],
}

/// Old patterns of this repository, reduced to the lines that make them.
const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "a server whose methods stand in the modules that call them",
        modules: &[
            (
                "create",
                "use crate::server::ApiServer;\n\
                 impl ApiServer { fn create(&self) { self.decode() } }\n",
            ),
            (
                "decode",
                "use crate::server::ApiServer;\n\
                 impl ApiServer { fn decode(&self) { Self::create(self) } }\n",
            ),
            ("server", "pub struct ApiServer;\n"),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate: create, decode; break create → decode in \
             a/src/create.rs, decode → create in a/src/decode.rs",
            "a/src/create.rs: impl of ApiServer; move it to a/src/server.rs",
            "a/src/decode.rs: impl of ApiServer; move it to a/src/server.rs",
        ],
    },
    Pattern {
        name: "a call from below to a method above",
        modules: &[
            (
                "base",
                "pub struct Base;\nfn f(base: &Base) { base.rise() }\n",
            ),
            (
                "top",
                "use crate::base::Base;\nimpl Base { pub fn rise(&self) {} }\n",
            ),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate: base, top; break base → top in a/src/base.rs",
            "a/src/top.rs: impl of Base; move it to a/src/base.rs",
        ],
    },
    Pattern {
        name: "a call from below through a field of a type that the module does not name",
        modules: &[
            ("base", "pub struct Base;\n"),
            (
                "holder",
                "use crate::base::Base;\npub struct Holder { pub inner: Option<Base> }\n",
            ),
            (
                "low",
                "use crate::holder::Holder;\npub fn f(it: &Holder) { it.inner.rise() }\n",
            ),
            (
                "top",
                "use crate::base::Base;\nimpl Base { pub fn rise(&self) { crate::low::f() } }\n",
            ),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate: low, top; break low → top in a/src/low.rs, top → low \
             in a/src/top.rs",
            "a/src/top.rs: impl of Base; move it to a/src/base.rs",
        ],
    },
    Pattern {
        name: "an impl block of a type from a glob import",
        modules: &[
            ("a", "pub(crate) enum A { X }\n"),
            ("b", "use super::a::*;\nimpl A { fn f(&self) {} }\n"),
            ("c", "pub use crate::a::*;\n"),
            ("d", "use crate::c::*;\nimpl A { fn g(&self) {} }\n"),
        ],
        findings: &[
            "a/src/b.rs: impl of A; move it to a/src/a.rs",
            "a/src/d.rs: impl of A; move it to a/src/a.rs",
        ],
    },
    Pattern {
        name: "an impl block with generics outside of its type's file",
        modules: &[
            ("a", "pub struct A<T>(T);\n"),
            (
                "b",
                "use super::a::A;\nimpl<T> A<T>\nwhere\n    T: Fn() -> u8,\n\
                 {\n    fn f(&self) {}\n}\n",
            ),
        ],
        findings: &["a/src/b.rs: impl of A; move it to a/src/a.rs, or make it functions"],
    },
    Pattern {
        name: "a sync whose methods stand in three files",
        modules: &[
            (
                "control",
                "use crate::replicas::SetSync;\nimpl SetSync { fn run(&self) { self.lay_out() } }\n",
            ),
            (
                "recreate",
                "use crate::replicas::SetSync;\nimpl SetSync { fn recreate(&self) {} }\n",
            ),
            (
                "replicas",
                "pub struct SetSync;\nimpl SetSync { fn lay_out(&self) { self.recreate() } }\n",
            ),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate: recreate, replicas; break recreate → replicas",
            "a/src/control.rs: impl of SetSync; move it to a/src/replicas.rs",
            "a/src/recreate.rs: impl of SetSync; move it to a/src/replicas.rs",
        ],
    },
    Pattern {
        name: "two methods of one name on a type",
        modules: &[
            ("api", "pub trait SetControl { fn update(&self); }\n"),
            (
                "control",
                "use crate::api::SetControl;\npub struct DefaultControl;\n\
                 impl DefaultControl { fn update(&self) {} }\n\
                 impl SetControl for DefaultControl { fn update(&self) { self.update() } }\n",
            ),
        ],
        findings: &[
            "a/src/control.rs: DefaultControl and a trait have a method update each; rename",
        ],
    },
    Pattern {
        name: "a run of a pod whose methods stand in files below it",
        modules: &[
            (
                "run",
                "mod answering;\nmod ending;\npub struct PodRun;\n\
                 fn step(run: &mut PodRun) { run.end() }\n",
            ),
            (
                "run/answering",
                "use super::PodRun;\nimpl PodRun { pub fn answer(&mut self) { self.end() } }\n",
            ),
            (
                "run/ending",
                "use super::PodRun;\nimpl PodRun { pub fn end(&mut self) { self.answer() } }\n",
            ),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate::run: answering, ending, self;",
            "a/src/run/answering.rs: impl of PodRun; move it to a/src/run.rs",
            "a/src/run/ending.rs: impl of PodRun; move it to a/src/run.rs",
        ],
    },
    Pattern {
        name: "rules that name the callbacks which walk the rules",
        modules: &[
            ("validation", "mod pods;\nmod rules;\n"),
            (
                "validation/pods",
                "pub fn template() { super::rules::walk() }\n",
            ),
            (
                "validation/rules",
                "use super::pods;\nconst CALLBACKS: [fn(); 1] = [pods::template];\n\
                 pub fn walk() { CALLBACKS[0]() }\n",
            ),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate::validation: pods, rules; break pods → rules in \
             a/src/validation/pods.rs, rules → pods in a/src/validation/rules.rs",
        ],
    },
    Pattern {
        name: "a constant in the file of one of its users",
        modules: &[
            ("cluster", "mod existing;\nmod real;\n"),
            (
                "cluster/existing",
                "pub const RESPONSE_MAX: u8 = 10;\npub fn find() { super::real::start() }\n",
            ),
            (
                "cluster/real",
                "use super::existing::RESPONSE_MAX;\npub fn start() -> u8 { RESPONSE_MAX }\n",
            ),
        ],
        findings: &["a/src/lib.rs: loop in crate::cluster: existing, real;"],
    },
    Pattern {
        name: "data in the module that reads it",
        modules: &[
            ("why", "mod causes;\nmod snapshot;\n"),
            (
                "why/causes",
                "use super::snapshot::Snapshot;\npub fn find(of: &Snapshot) {}\n",
            ),
            (
                "why/snapshot",
                "pub struct Snapshot;\npub fn read() { super::causes::find(&Snapshot) }\n",
            ),
        ],
        findings: &["a/src/lib.rs: loop in crate::why: causes, snapshot;"],
    },
    Pattern {
        name: "a helper in the top room",
        modules: &[
            (
                "cel",
                "mod cost;\npub fn eval() { cost::of() }\npub fn ask() {}\n",
            ),
            ("cel/cost", "pub fn of() { super::ask() }\n"),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate::cel: cost, self; break cost → self in \
             a/src/cel/cost.rs, self → cost in a/src/cel.rs",
        ],
    },
    Pattern {
        name: "a slot that makes the pod whose storage reads the slot",
        modules: &[
            (
                "pods",
                "mod new_pod;\nmod slot;\nmod storage;\npub use slot::Slot;\n",
            ),
            (
                "pods/new_pod",
                "pub fn create() { super::storage::add() }\n",
            ),
            (
                "pods/slot",
                "pub struct Slot;\nimpl Slot { fn fill(&self) { super::new_pod::create() } }\n",
            ),
            ("pods/storage", "pub fn add(slot: &super::Slot) {}\n"),
        ],
        findings: &[
            "a/src/lib.rs: loop in crate::pods: new_pod, slot, storage; break new_pod → storage \
             in a/src/pods/new_pod.rs, storage → slot in a/src/pods/storage.rs, slot → new_pod in \
             a/src/pods/slot.rs",
        ],
    },
    Pattern {
        name: "a view that calls the engine which holds it",
        modules: &[
            ("faults", "mod engine;\nmod view;\n"),
            (
                "faults/engine",
                "use super::view::View;\npub struct Faults { view: View }\n",
            ),
            (
                "faults/view",
                "use super::engine::Faults;\npub struct View;\n\
                 impl View { fn of(faults: &Faults) -> View { View } }\n",
            ),
        ],
        findings: &["a/src/lib.rs: loop in crate::faults: engine, view;"],
    },
    Pattern {
        name: "a builder and what it builds",
        modules: &[
            (
                "plane",
                "mod builder;\nuse builder::Builder;\npub struct Plane;\n\
                 impl Plane { pub fn builder() -> Builder { Builder } }\n",
            ),
            (
                "plane/builder",
                "use super::Plane;\npub struct Builder;\n\
                 impl Builder { pub fn build() -> Plane { Plane } }\n",
            ),
        ],
        findings: &["a/src/lib.rs: loop in crate::plane: builder, self;"],
    },
    Pattern {
        name: "a type shared by a list and the parts of the list",
        modules: &[
            (
                "catalogue",
                "mod pods;\npub struct Scenario;\n\
                 fn all() -> [Scenario; 1] { pods::SCENARIOS }\n",
            ),
            (
                "catalogue/pods",
                "use super::Scenario;\npub const SCENARIOS: [Scenario; 1] = [Scenario];\n",
            ),
        ],
        findings: &["a/src/lib.rs: loop in crate::catalogue: pods, self;"],
    },
];

#[test]
fn every_old_pattern_is_found() {
    for pattern in PATTERNS {
        let found = findings(pattern.modules);
        let name = pattern.name;
        assert_eq!(found.len(), pattern.findings.len(), "{name}: {found:#?}");
        for (found, expected) in found.iter().zip(pattern.findings) {
            assert!(found.starts_with(expected), "{name}: {found}");
        }
    }
}

#[test]
fn methods_of_one_name_that_do_the_same_pass() {
    let a = "use std::fmt;\npub struct A(u8);\npub trait Named { fn name(&self) -> u8; }\n\
             impl A { pub fn name(&self) -> u8 { self.0 } }\n\
             impl Named for A { fn name(&self) -> u8 { self.0 } }\n\
             #[cfg(unix)]\nimpl A { fn end(&self) {} }\n\
             #[cfg(not(unix))]\nimpl A { fn end(&self) { abort() } }\n\
             struct B;\nimpl fmt::Display for B { fn fmt(&self) {} }\n\
             impl fmt::Debug for B { fn fmt(&self) { write() } }\n";
    assert_eq!(findings(&[("a", a)]), Findings::new());
}

#[test]
fn impls_of_traits_stand_with_the_type_or_the_trait() {
    let b = "use super::a::A;\npub trait Walk {}\nimpl Walk for A {}\n\
             impl From<A> for u8 {}\nfn walk(walk: impl Walk) -> impl Walk { walk }\n";
    let modules = [("a", "pub struct A;\nimpl Clone for A {}\n"), ("b", b)];
    assert_eq!(findings(&modules), Findings::new());
    let stray = "use super::{a::A, b::Walk};\nimpl Walk for A {}\n";
    let modules = [
        ("a", "pub struct A;\n"),
        ("b", "pub trait Walk {}\n"),
        ("c", stray),
    ];
    assert_eq!(
        findings(&modules),
        ["a/src/c.rs: impl of A; move it to a/src/a.rs, or make it functions"]
    );
}

#[test]
fn a_crowded_level_is_found() {
    let names: Vec<String> = (0..=MODULES_MAX).map(|index| format!("m{index}")).collect();
    let modules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(findings(&modules[1..]), Findings::new());
    assert_eq!(
        findings(&modules),
        ["a/src/lib.rs: 26 modules on one level, in crate; group them, 25 is the most"]
    );
}
