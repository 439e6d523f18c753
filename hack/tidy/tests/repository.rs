//! Runs every check over this repository.

use std::path::PathBuf;

use tidy::{
    Findings, budgets, code_lines, commands, dependencies, docs, doubles, features, generated,
    layout, left_out,
    metadata::{self, Metadata},
    module_cycles, mutants, packaging, panics, paths, published, reachable,
    repository::{Repository, SourceFile},
    snippets, source, symbols,
    upstream::{
        map::{self, GoFunction},
        parity,
        rows::{self, Row},
        status,
    },
    words,
};

fn repository() -> Repository {
    Repository::collect().expect("the repository is readable")
}

fn rust_files() -> Vec<SourceFile> {
    repository().with_extension("rs")
}

fn go_functions() -> Vec<GoFunction<'static>> {
    map::parse(map::UPSTREAM_FUNCTIONS).expect("the list of upstream's functions is valid")
}

fn upstream_rows() -> Vec<Row<'static>> {
    rows::parse(rows::UPSTREAM_TESTS).expect("the table of upstream's tests is valid")
}

fn metadata(repository: &Repository) -> Metadata {
    Metadata::collect(&repository.root).expect("cargo metadata runs")
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
fn folders_match_the_fixed_layout() {
    assert_clean(&layout::check(&repository().paths));
}

#[test]
fn commands_of_pages_exist() {
    let repository = repository();
    let metadata = metadata(&repository);
    let members = metadata.members().into_values();
    let makefile = repository.file("Makefile").expect("there is a Makefile");
    let provided = commands::Provided {
        makefile: &makefile.text,
        paths: &repository.paths,
        packages: &members.map(|package| package.name.clone()).collect(),
    };
    assert_clean(&commands::check(
        &repository.with_extension("md"),
        &provided,
    ));
}

#[test]
fn dependencies_point_one_way() {
    assert_clean(&dependencies::check(&metadata(&repository())));
}

#[test]
fn mutant_patches_apply() {
    assert_clean(&mutants::check(&repository()));
}

#[test]
fn list_of_mutants_is_current() {
    let repository = repository();
    let seeds = repository.file(mutants::page::FIRST_SEEDS);
    let seeds = &seeds.expect("the first seeds exist").text;
    let current = mutants::page::page(&repository.with_extension("patch"), seeds);
    let current = current.expect("each simulated mutant has a first seed");
    let page = repository.file(mutants::page::PAGE);
    assert!(
        page.is_some_and(|page| page.text == current),
        "run `make fmt`; {} is out of date",
        mutants::page::PAGE
    );
}

#[test]
fn packages_are_complete() {
    let repository = repository();
    assert_clean(&packaging::check(&metadata(&repository), &repository));
}

#[test]
fn lists_of_published_packages_are_equal() {
    let repository = repository();
    let text = |path| &repository.file(path).expect("the file exists").text;
    assert_clean(&published::check(
        &metadata(&repository),
        &repository.root,
        text("Makefile"),
        text("CONTRIBUTING.md"),
    ));
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
fn shipped_binaries_contain_no_test_doubles() {
    let repository = repository();
    for (binary, features) in [
        ("statefulset-controller-manager", ""),
        ("kube-test-control-plane", "cli"),
    ] {
        let graph =
            metadata::normal_graph(&repository.root, binary, features).expect("cargo tree runs");
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
fn fakes_are_gated() {
    assert_clean(&doubles::check(&rust_files()));
}

#[test]
fn libraries_have_lints_against_panics() {
    assert_clean(&panics::check(&rust_files()));
}

#[test]
fn tests_of_the_embedded_control_plane_are_marked() {
    assert_clean(&left_out::check(&rust_files()));
}

#[test]
fn rust_files_are_compiled() {
    let repository = repository();
    let roots = reachable::roots(&metadata(&repository), &repository.root);
    assert_clean(&reachable::check(&repository.with_extension("rs"), &roots));
}

#[test]
fn modules_depend_on_each_other_one_way() {
    let repository = repository();
    let roots = reachable::crate_roots(&metadata(&repository), &repository.root);
    assert_clean(&module_cycles::check(
        &repository.with_extension("rs"),
        &roots,
    ));
}

#[test]
fn pages_have_one_title_and_no_dead_links() {
    let repository = repository();
    assert_clean(&docs::check(
        &repository.with_extension("md"),
        &repository.paths,
    ));
}

#[test]
fn pages_begin_with_their_use_and_are_short() {
    assert_clean(&docs::pages::check(&repository().with_extension("md")));
}

#[test]
fn prose_uses_the_words_of_the_glossary() {
    assert_clean(&words::check(&repository().files));
}

#[test]
fn files_contain_no_private_paths() {
    let repository = repository();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let private = paths::private_folders(&repository.root, home.as_deref());
    assert_clean(&paths::check(&repository.files, &private));
}

#[track_caller]
fn assert_line_is_current(path: &str, marker: &str, line: &str) {
    let repository = repository();
    let page = &repository.file(path).expect("the page exists").text;
    let current = generated::rewrite(page, marker, line).expect("the page has the marker");
    assert!(
        *page == current,
        "run `make fmt`; the line of {path} should be:\n{line}"
    );
}

#[test]
fn readme_status_line_is_current() {
    let line = status::line(&upstream_rows());
    assert_line_is_current("README.md", status::MARKER, &line);
}

#[test]
fn code_line_figure_is_current() {
    let line = code_lines::line(&rust_files());
    assert_line_is_current(code_lines::PAGE, code_lines::MARKER, &line);
}

#[test]
fn ported_decisions_stay_small() {
    assert_clean(&code_lines::check(&rust_files()));
}

#[test]
fn testing_page_shows_lines_of_the_tests() {
    let repository = repository();
    let page = repository.file("docs/testing.md").expect("the page exists");
    assert_clean(&snippets::check(page, &repository.with_extension("rs")));
}

#[test]
fn homes_of_ported_tests_compare_them_with_the_rows() {
    assert_clean(&parity::check_homes(&upstream_rows(), &rust_files()));
}

#[test]
fn upstream_map_is_current() {
    let repository = repository();
    let page = repository.file(map::PAGE).map(|file| file.text.as_str());
    let current = map::page(&go_functions(), &repository.with_extension("rs"));
    assert!(
        page == Some(&current),
        "run `make fmt`; {} is out of date",
        map::PAGE
    );
}

#[test]
fn ported_functions_are_found_by_their_names() {
    assert_clean(&map::check(&go_functions(), &rust_files()));
}

#[test]
fn tests_of_the_deviations_exist() {
    let repository = repository();
    let page = repository
        .file("docs/deviations.md")
        .expect("docs/deviations.md exists");
    let files = repository.with_extension("rs");
    assert_clean(&symbols::check(
        page,
        &["conformance rule", "tests"],
        &files,
    ));
    assert_clean(&symbols::check_rows(page, "reason", "tests"));
}

#[test]
fn tests_of_the_emulated_versions_exist() {
    let repository = repository();
    let page = repository
        .file("docs/versions.md")
        .expect("docs/versions.md exists");
    let files = repository.with_extension("rs");
    assert_clean(&symbols::check(page, &["tests"], &files));
}
