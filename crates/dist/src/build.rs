//! Writes the files of a release.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use install::Options as InstallOptions;

use crate::{
    Architecture, Files, Release,
    catalogs::{self, Archive},
    chart,
    crates::Crates,
    files, image,
    layout::{self, LAYOUT},
    output::Output,
    programs::{self, Programs, WEIR},
    sbom, shell,
};

/// The inputs of a release.
#[derive(Debug, Clone)]
pub struct Options {
    /// Root of the repository.
    pub root: PathBuf,
    /// Folders with programs, one per architecture.
    pub programs: Vec<PathBuf>,
    /// Program that prints completions and manual pages, if none in `programs` is for this machine.
    pub weir: Option<PathBuf>,
    /// Accepts programs that need a dynamic loader. Images of them don't run.
    pub allow_dynamic: bool,
    /// Certificates of public authorities (PEM), for the images.
    pub certificates: PathBuf,
    /// Folder of the files.
    pub out: PathBuf,
    pub release: Release,
}

/// Writes all files of a release, and returns their names.
///
/// # Errors
/// If a program is missing or not static, or a file can't be written.
pub fn build(options: &Options) -> Result<Vec<String>> {
    let release = &options.release;
    release.check()?;
    let all = Programs::find_all(&options.programs, options.allow_dynamic)?;
    let license = read(&options.root.join("LICENSE"))?;
    let mut shared = Files::default();
    shell::add(&mut shared, &weir(options, &all)?)?;
    let certificates = read(&options.certificates)?;
    let crates = Crates::read(&options.root)?;
    let mut out = Output::create(&options.out)?;
    write_archives(&mut out, &all, &crates, &shared, &license, release)?;
    write_catalogs(&mut out, &all, release)?;
    write_images(&mut out, &all, &crates, &certificates, release)?;
    let install = manifests(release)?;
    let mut files = Files::default();
    files.add("install.yaml", install.as_bytes());
    let artifact = image::artifact(&files, "manifests", release)?;
    write_layout(&mut out, "manifests", &artifact, release.tag(), release)?;
    out.write("install.yaml", install.as_bytes())?;
    out.write(
        "crd-schemas.tar.gz",
        &schemas(&options.root)?.tar_gz(release.time)?,
    )?;
    write_bills(&mut out, &crates, release)?;
    let packed = chart::files(&options.root, release)?.tar_gz(release.time)?;
    out.write(&format!("{}-{}.tgz", chart::NAME, release.version()), &packed)?;
    let artifact = chart::artifact(packed, release)?;
    let name = format!("{}-chart", chart::NAME);
    write_layout(&mut out, &name, &artifact, release.version(), release)?;
    out.finish()
}

fn write_archives(
    out: &mut Output,
    all: &[Programs],
    crates: &Crates,
    shared: &Files,
    license: &[u8],
    release: &Release,
) -> Result<()> {
    for programs in all {
        for name in programs::names() {
            let program = programs.program(name, crates)?;
            let mut files = if name == WEIR {
                shared.clone()
            } else {
                Files::default()
            };
            files.add("LICENSE", license);
            files.add_program(program.name, program.content);
            let archive = files::gzip(&files.tar(release.time)?, release.compression)?;
            out.write(&archive_name(name, programs.architecture, release), &archive)?;
        }
    }
    Ok(())
}

fn write_images(
    out: &mut Output,
    all: &[Programs],
    crates: &Crates,
    certificates: &[u8],
    release: &Release,
) -> Result<()> {
    for name in programs::names() {
        let mut images = Vec::new();
        for programs in all {
            let content = programs.program(name, crates)?.content;
            let image = image::program(name, content, programs.architecture, certificates, release)?;
            images.push((programs.architecture, image));
        }
        write_layout(out, name, &image::index(images), release.tag(), release)?;
    }
    Ok(())
}

/// Writes the entries for catalogs, if it is known where the archives will be.
fn write_catalogs(out: &mut Output, all: &[Programs], release: &Release) -> Result<()> {
    let Some(source) = &release.source else {
        return Ok(());
    };
    let names = all.iter().map(|programs| {
        let architecture = programs.architecture;
        (architecture, archive_name(WEIR, architecture, release))
    });
    let names: BTreeMap<Architecture, String> = names.collect();
    let archives = names.iter().map(|(architecture, name)| {
        let sha256 = out.digest(name).context("an archive is missing")?;
        Ok((*architecture, Archive { name, sha256 }))
    });
    let archives: BTreeMap<_, _> = archives.collect::<Result<_>>()?;
    let formula = catalogs::formula(&archives, source, release)?;
    let plugin = catalogs::plugin(&archives, source, release);
    out.write("weir.rb", formula.as_bytes())?;
    out.write("weir.yaml", plugin.as_bytes())
}

fn write_bills(out: &mut Output, crates: &Crates, release: &Release) -> Result<()> {
    for name in programs::names() {
        let bill = serde_json::to_vec_pretty(&sbom::bill(name, &crates.parts(name)?, release)?)?;
        out.write(&format!("{name}_{}.cdx.json", release.version()), &bill)?;
    }
    Ok(())
}

fn write_layout(
    out: &mut Output,
    name: &str,
    manifest: &image::Manifest,
    tag: &str,
    release: &Release,
) -> Result<()> {
    let file = format!("{name}_{}{LAYOUT}", release.version());
    out.write(&file, &layout::pack(manifest, tag, release.time)?)
}

fn archive_name(program: &str, architecture: Architecture, release: &Release) -> String {
    format!("{program}_{}_linux_{architecture}.tar.gz", release.version())
}

/// Finds a `weir` that runs here.
fn weir(options: &Options, all: &[Programs]) -> Result<PathBuf> {
    let native = |programs: &&Programs| Some(programs.architecture) == Architecture::native();
    let own = || Some(all.iter().find(native)?.path(WEIR));
    let found = options.weir.clone().or_else(own);
    found.context("no programs are for this machine: name a weir that prints the completions")
}

/// Returns the manifests of an installation with the images of the release.
fn manifests(release: &Release) -> Result<String> {
    let options = InstallOptions {
        registry: release.registry.clone(),
        ..InstallOptions::default()
    };
    Ok(install::install(&options)?)
}

/// Returns the JSON schemas of the resources.
fn schemas(root: &Path) -> Result<Files> {
    let dir = root.join("crds/schemas");
    let mut files = Files::default();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| name.ends_with(".json")) {
            files.add(name, read(&path)?);
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
