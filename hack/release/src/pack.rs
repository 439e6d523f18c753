//! All artefacts of a release, from the built programs.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::archive::{Entry, read, read_folder, tar_gz};
use crate::bill;
use crate::chart::Chart;
use crate::digest::Digest;
use crate::formula::formula;
use crate::image::image;
use crate::krew::{Download, PLUGIN, manifest};
use crate::platform::{ImageOf, PLATFORMS, PROGRAMS, Platform, Program};
use crate::release::Release;
use crate::seal::write;

/// Folders and addresses.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The repository's root.
    pub root: PathBuf,
    /// The programs: `TARGET/PROGRAM`.
    pub programs: PathBuf,
    /// Their bills of materials: `TARGET/PROGRAM.cdx.json`.
    pub bills: PathBuf,
    /// Man pages and completions: `PROGRAM/…`.
    pub texts: PathBuf,
    /// Address of the folder from which the files will be downloaded.
    pub downloads: String,
    /// Registry and path of the images; `None` leaves the chart's default.
    pub images: Option<String>,
}

/// Writes all artefacts into an empty folder.
pub fn pack(release: &Release, inputs: &Inputs, out: &Path) -> anyhow::Result<()> {
    let mut count = 0;
    for program in &PROGRAMS {
        count += pack_program(release, inputs, program, out)?;
    }
    ensure!(
        count > 0,
        "{} has no programs: build them first",
        inputs.programs.display()
    );
    pack_chart(release, inputs, out)?;
    let folder = inputs
        .root
        .join("crates/controller-manager/deploy/kustomize");
    let name = format!(
        "statefulset-controller-manager-kustomize-{}",
        release.version
    );
    let files = read_folder(&folder)?;
    let bill = bill::of_files(release, "data", &name, &files)?;
    write(
        out,
        &format!("{name}.cdx.json"),
        format!("{bill:#}\n").as_bytes(),
    )?;
    let files: Vec<_> = files.into_iter().map(|entry| entry.below(&name)).collect();
    write(
        out,
        &format!("{name}.tar.gz"),
        &tar_gz(&files, release.seconds)?,
    )
}

/// Writes a program's archives, bills, image, formula and plugin manifest. Returns the number of
/// platforms for which it is built.
fn pack_program(
    release: &Release,
    inputs: &Inputs,
    program: &Program,
    out: &Path,
) -> anyhow::Result<usize> {
    let texts = inputs.texts.join(program.name);
    let texts = if texts.is_dir() {
        read_folder(&texts)?
    } else {
        Vec::new()
    };
    let mut archives = Vec::new();
    let mut roots = Vec::new();
    for platform in PLATFORMS {
        let file = platform.file_name(program.name);
        let built = inputs.programs.join(platform.triple).join(&file);
        if !built.is_file() {
            continue;
        }
        let name = format!("{}-{}-{}", program.name, release.version, platform.name());
        let bytes = read(&built)?;
        let bill = inputs.bills.join(platform.triple);
        let bill = read(&bill.join(format!("{}.cdx.json", program.name)))?;
        write(out, &format!("{name}.cdx.json"), &bill)?;
        let mut files = vec![
            Entry::data("LICENSE", read(&inputs.root.join("LICENSE"))?),
            Entry::program(file, bytes.clone()),
            Entry::data(format!("{}.cdx.json", program.name), bill),
        ];
        files.extend(texts.iter().cloned());
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let files: Vec<_> = files.into_iter().map(|entry| entry.below(&name)).collect();
        let archive = tar_gz(&files, release.seconds)?;
        let file = format!("{name}.tar.gz");
        write(out, &file, &archive)?;
        archives.push(Download {
            platform,
            file,
            folder: name,
            digest: Digest::of(&archive),
        });
        roots.push((platform, vec![Entry::program(program.name, bytes)]));
    }
    if archives.is_empty() {
        return Ok(0);
    }
    let paths: Vec<_> = texts.into_iter().map(|entry| entry.path).collect();
    let formula = formula(release, program, &archives, &paths, &inputs.downloads);
    write(out, &format!("{}.rb", program.name), formula.as_bytes())?;
    if program.name == "kubectl-sts" {
        let manifest = manifest(release, &archives, &inputs.downloads);
        write(
            out,
            &format!("{PLUGIN}.yaml"),
            format!("{manifest:#}\n").as_bytes(),
        )?;
    }
    if let Some(of) = program.image {
        pack_image(release, program, of, &roots, out)?;
    }
    Ok(archives.len())
}

fn pack_image(
    release: &Release,
    program: &Program,
    of: ImageOf,
    roots: &[(Platform, Vec<Entry>)],
    out: &Path,
) -> anyhow::Result<()> {
    let name = format!("{}-{}-image", program.name, release.version);
    let contents: Vec<_> = roots
        .iter()
        .flat_map(|(platform, files)| {
            let folder = platform.name();
            files.iter().map(move |file| file.clone().below(&folder))
        })
        .collect();
    let bill = bill::of_files(release, "container", program.name, &contents)?;
    write(
        out,
        &format!("{name}.cdx.json"),
        format!("{bill:#}\n").as_bytes(),
    )?;
    let image = image(release, program, of, roots)
        .with_context(|| format!("write the image of {}", program.name))?;
    let pinned = format!("{}@{}\n", program.name, image.index.prefixed());
    write(out, &format!("{name}.digest"), pinned.as_bytes())?;
    write(out, &format!("{name}.tar"), &image.archive)
}

fn pack_chart(release: &Release, inputs: &Inputs, out: &Path) -> anyhow::Result<()> {
    let folder = inputs
        .root
        .join("crates/controller-manager/deploy/helm/statefulset-controller-manager");
    let chart = Chart::package(release, &folder, inputs.images.as_deref())?;
    let name = format!("statefulset-controller-manager-{}", release.version);
    write(out, &format!("{name}.tgz"), &chart.package)?;
    write(out, &format!("{name}-chart.tar"), &chart.layout(release)?)?;
    let bill = bill::of_files(
        release,
        "data",
        "statefulset-controller-manager chart",
        &read_folder(&folder)?,
    )?;
    write(
        out,
        &format!("{name}-chart.cdx.json"),
        format!("{bill:#}\n").as_bytes(),
    )
}
