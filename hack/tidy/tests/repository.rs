//! Runs every check over this repository.

use std::path::PathBuf;

use tidy::{
    Findings, budgets, dependencies, docs, doubles, features, layout, left_out, licenses,
    metadata::{self, Metadata},
    module_loops, mutants, panics, parity, paths, reachable,
    repository::{Repository, SourceFile},
    source, status, symbols, upstream_map, upstream_rows,
};

fn repository() -> Repository {
    Repository::collect().expect("the repository is readable")
}

fn rust_files() -> Vec<SourceFile> {
    repository().with_extension("rs")
}

fn metadata(repository: &Repository) -> Metadata {
    Metadata::collect(&repository.root).expect("cargo metadata answers")
}

#[track_caller]
fn assert_clean(findings: &Findings) {
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn the_folders_are_those_of_the_design() {
    assert_clean(&layout::check(&repository().paths));
}

#[test]
fn dependencies_point_one_way() {
    assert_clean(&dependencies::check(&metadata(&repository())));
}

#[test]
fn mistakes_made_on_purpose_fit_the_code() {
    assert_clean(&mutants::check(&repository()));
}

#[test]
fn every_licence_is_allowed() {
    let repository = repository();
    let deny = repository
        .file(".deny.toml")
        .expect(".deny.toml holds the list of licences");
    let allowed = licenses::allow_list(&deny.text);
    assert_clean(&licenses::check(&metadata(&repository), &allowed));
}

#[test]
fn libraries_leave_the_api_version_open() {
    let repository = repository();
    assert_clean(&features::check_api_version(
        &metadata(&repository),
        &repository.root,
    ));
}

#[test]
fn serde_json_sorts_keys_and_keeps_raw_values() {
    assert_clean(&features::check_serde_json(&metadata(&repository())));
}

#[test]
fn the_shipped_binaries_hold_no_test_doubles() {
    let repository = repository();
    for (binary, features) in [
        ("statefulset-controller-manager", ""),
        ("kube-test-control-plane", "cli"),
    ] {
        let graph =
            metadata::normal_graph(&repository.root, binary, features).expect("cargo tree answers");
        assert_clean(&features::check_binary_graph(binary, &graph));
    }
}

#[test]
fn files_stay_small() {
    assert_clean(&budgets::check(&rust_files()));
}

#[test]
fn sources_keep_the_rules() {
    assert_clean(&source::check(&rust_files()));
}

#[test]
fn control_plane_modules_form_no_loops() {
    assert_clean(&module_loops::check(&rust_files()));
}

#[test]
fn fakes_are_gated() {
    assert_clean(&doubles::check(&rust_files()));
}

#[test]
fn no_library_may_panic() {
    assert_clean(&panics::check(&rust_files()));
}

#[test]
fn tests_of_the_embedded_control_plane_say_so() {
    assert_clean(&left_out::check(&rust_files()));
}

#[test]
fn every_file_is_compiled() {
    let repository = repository();
    let roots = reachable::roots(&metadata(&repository), &repository.root);
    assert_clean(&reachable::check(&repository.with_extension("rs"), &roots));
}

#[test]
fn pages_have_one_title_and_links_that_work() {
    let repository = repository();
    assert_clean(&docs::check(
        &repository.with_extension("md"),
        &repository.paths,
    ));
}

#[test]
fn no_file_names_a_path_of_a_machine() {
    let repository = repository();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let private = paths::private_folders(&repository.root, home.as_deref());
    assert_clean(&paths::check(&repository.files, &private));
}

#[test]
fn the_status_line_of_the_readme_is_current() {
    let repository = repository();
    let readme = &repository
        .file("README.md")
        .expect("there is a README")
        .text;
    let line = status::line(
        upstream_rows::UPSTREAM_TESTS,
        &repository.with_extension("rs"),
    )
    .expect("the list of upstream tests is well formed");
    let current = status::rewrite(readme, &line).expect("the README has a status marker");
    assert!(
        *readme == current,
        "run `make fmt`; the status line should be:\n{line}"
    );
}

#[test]
fn every_row_of_upstream_has_its_test_and_every_port_its_row() {
    let rows = upstream_rows::parse(upstream_rows::UPSTREAM_TESTS)
        .expect("the table of upstream's tests is well formed");
    assert_clean(&parity::check(&rows, &rust_files()));
}

#[test]
fn the_upstream_map_is_current() {
    let repository = repository();
    let page = repository
        .file(upstream_map::PAGE)
        .map(|file| file.text.as_str());
    let current = upstream_map::page(&repository.with_extension("rs"));
    assert!(
        page == Some(&current),
        "run `make fmt`; {} is out of date",
        upstream_map::PAGE
    );
}

#[test]
fn the_tests_of_the_deviations_exist() {
    let repository = repository();
    let page = repository
        .file("docs/deviations.md")
        .expect("there is a table of deviations");
    assert_clean(&symbols::check(page, 3, &repository.with_extension("rs")));
}
