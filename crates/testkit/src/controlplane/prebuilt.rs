//! Programs of the control plane that others have built: on `PATH`, or published by their projects.
//!
//! Downloads are verified with the SHA-256 that the project publishes beside them. Nothing here fails: a program that can't be had is
//! compiled.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::{gobuild::version, progress::say};

/// If set, everything is compiled.
const FROM_SOURCE: &str = "WEIR_BUILD_CONTROL_PLANE";

/// The servers of the published programs.
struct Publishers {
    kubernetes: String,
    etcd: String,
    /// Allowed protocols, as curl's option `--proto` has them.
    protocols: &'static str,
}

impl Default for Publishers {
    fn default() -> Self {
        Self {
            kubernetes: "https://dl.k8s.io".to_owned(),
            etcd: "https://github.com/etcd-io/etcd/releases/download".to_owned(),
            protocols: "=https",
        }
    }
}

/// Puts the programs into a folder that are on `PATH` in the pinned minor version, or that can be downloaded.
pub(super) fn provide(dir: &Path, programs: &[&str]) {
    if std::env::var_os(FROM_SOURCE).is_some_and(|value| !value.is_empty()) {
        return;
    }
    let missing: Vec<&str> = programs
        .iter()
        .filter(|program| !link(dir, program).unwrap_or(false))
        .copied()
        .collect();
    if let Err(error) = download_all(dir, &missing, &Publishers::default()) {
        say(format_args!("compiling what can't be downloaded: {error:#}"));
    }
}

/// Returns the version that the Go modules pin, as `v1.35.4`; `None` for a program without published builds.
fn pinned(program: &str) -> Option<String> {
    match program {
        "etcd" => version("controlplane", "go.etcd.io/etcd/server/v3").ok(),
        "kube-apiserver" | "kube-controller-manager" | "kube-scheduler" | "kubectl" => {
            version("controlplane", "k8s.io/kubernetes").ok()
        }
        _ => None,
    }
}

/// Links to a program on `PATH` of the pinned minor version; returns false without one.
fn link(dir: &Path, program: &str) -> Result<bool> {
    let (Some(pinned), Some(path)) = (pinned(program), on_path(program)) else {
        return Ok(false);
    };
    let asked: &[&str] = if program == "kubectl" {
        &["version", "--client"]
    } else {
        &["--version"]
    };
    let output = Command::new(&path).args(asked).stdin(Stdio::null()).output()?;
    if !is_minor(&pinned, &String::from_utf8_lossy(&output.stdout)) {
        return Ok(false);
    }
    let target = dir.join(program);
    // A link to a program that was removed since.
    let _ = fs::remove_file(&target);
    std::os::unix::fs::symlink(&path, target)?;
    say(format_args!("using {}", path.display()));
    Ok(true)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Returns true if the first version in the output of a program has the same minor version as the pinned one.
fn is_minor(pinned: &str, output: &str) -> bool {
    let parts = |version: &str| {
        let mut parts = version.trim_start_matches('v').split('.').map(str::to_owned);
        Some((parts.next()?, parts.next()?, parts.next()?))
    };
    let found = output.split_ascii_whitespace().find_map(|word| {
        let is_number = word
            .trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit());
        parts(word).filter(|_| is_number)
    });
    matches!((parts(pinned), found), (Some(pinned), Some(found)) if (&pinned.0, &pinned.1) == (&found.0, &found.1))
}

fn download_all(dir: &Path, programs: &[&str], publishers: &Publishers) -> Result<()> {
    for program in programs {
        let Some(version) = pinned(program).filter(|_| cfg!(target_os = "linux")) else {
            continue;
        };
        download(dir, program, &version, publishers)
            .with_context(|| format!("{program} {version} can't be downloaded"))?;
    }
    Ok(())
}

fn download(dir: &Path, program: &str, version: &str, publishers: &Publishers) -> Result<()> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let work = tempfile::tempdir_in(dir)?;
    let get = |url: &str| curl(url, &work.path().join("file"), publishers.protocols);
    let content = if program == "etcd" {
        let base = format!("{}/{version}", publishers.etcd);
        let name = format!("etcd-{version}-linux-{arch}");
        let sums = get(&format!("{base}/SHA256SUMS"))?;
        say(format_args!("downloading {program} {version}"));
        let archive = get(&format!("{base}/{name}.tar.gz"))?;
        verify(&archive, &sum_of(&sums, &format!("{name}.tar.gz"))?)?;
        entry(&archive, &format!("{name}/{program}"))?
    } else {
        let url = format!("{}/{version}/bin/linux/{arch}/{program}", publishers.kubernetes);
        let sum = get(&format!("{url}.sha256"))?;
        say(format_args!("downloading {program} {version}"));
        let content = get(&url)?;
        verify(&content, String::from_utf8_lossy(&sum).trim())?;
        content
    };
    let file = work.path().join(program);
    fs::write(&file, content)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    Ok(fs::rename(file, dir.join(program))?)
}

/// Reads a URL by curl, which knows the proxies and authorities of this machine.
fn curl(url: &str, file: &Path, protocols: &str) -> Result<Vec<u8>> {
    let output = Command::new("curl")
        .args([
            "--fail",
            "--silent",
            "--show-error",
            "--location",
            "--proto",
            protocols,
        ])
        .args(["--connect-timeout", "5", "--max-time", "900", "--output"])
        .arg(file)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .context("there is no curl")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{url}: {}", error.trim_end());
    Ok(fs::read(file)?)
}

fn sum_of(sums: &[u8], name: &str) -> Result<String> {
    let sums = String::from_utf8_lossy(sums);
    let sum = sums
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .find(|(_, file)| file.trim() == name);
    Ok(sum
        .with_context(|| format!("there is no checksum of {name}"))?
        .0
        .to_owned())
}

fn verify(content: &[u8], sum: &str) -> Result<()> {
    let found = hex::encode(Sha256::digest(content));
    ensure!(found == sum, "its SHA-256 is {found}, not {sum}");
    Ok(())
}

fn entry(archive: &[u8], name: &str) -> Result<Vec<u8>> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.path()?.as_ref() == Path::new(name) {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            return Ok(content);
        }
    }
    anyhow::bail!("the archive has no {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WebServer, archive::tar_gz, web::Page};

    fn publisher(server: &WebServer) -> Publishers {
        Publishers {
            kubernetes: server.url("/k"),
            etcd: server.url("/e"),
            protocols: "=http",
        }
    }

    fn arch() -> &'static str {
        if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        }
    }

    #[test]
    fn downloads_are_verified_and_executable() {
        let (server, dir) = (WebServer::start().unwrap(), tempfile::tempdir().unwrap());
        let page = |path: &str, content: &[u8]| server.page(path, Page::Content(content.to_vec().into()));
        let sum = |content: &[u8]| hex::encode(Sha256::digest(content));
        let name = format!("etcd-v3.6.5-linux-{}", arch());
        let archive = tar_gz(&[
            (&format!("{name}/README.md"), b"no"),
            (&format!("{name}/etcd"), b"etcd!"),
        ]);
        page(&format!("/e/v3.6.5/{name}.tar.gz"), &archive);
        let sums = format!("{}  other.tar.gz\n{}  {name}.tar.gz\n", sum(b"x"), sum(&archive));
        page("/e/v3.6.5/SHA256SUMS", sums.as_bytes());
        let kubectl = format!("/k/v1.35.4/bin/linux/{}/kubectl", arch());
        page(&kubectl, b"kubectl!");
        page(&format!("{kubectl}.sha256"), sum(b"kubectl!").as_bytes());
        download(dir.path(), "etcd", "v3.6.5", &publisher(&server)).unwrap();
        download(dir.path(), "kubectl", "v1.35.4", &publisher(&server)).unwrap();
        assert_eq!(fs::read(dir.path().join("etcd")).unwrap(), b"etcd!");
        let mode = fs::metadata(dir.path().join("kubectl"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_download_with_another_sum_is_refused() {
        let (server, dir) = (WebServer::start().unwrap(), tempfile::tempdir().unwrap());
        let kubectl = format!("/k/v1.35.4/bin/linux/{}/kubectl", arch());
        server.page(&kubectl, Page::Content("kubectl!".into()));
        server.page(&format!("{kubectl}.sha256"), Page::Content("0123".into()));
        let error = download(dir.path(), "kubectl", "v1.35.4", &publisher(&server)).unwrap_err();
        assert!(format!("{error:#}").contains("its SHA-256 is"), "{error:#}");
        let error = download(dir.path(), "kubectl", "v1.35.5", &publisher(&server)).unwrap_err();
        assert!(format!("{error:#}").contains("404"), "{error:#}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn programs_of_the_pinned_minor_version_are_accepted() {
        assert!(is_minor("v1.35.4", "Kubernetes v1.35.1\n"));
        assert!(is_minor("v3.6.5", "etcd Version: 3.6.0\nGit SHA: 1\n"));
        assert!(is_minor(
            "v1.35.4",
            "Client Version: v1.35.9-x.1\nKustomize Version: v5.5.0\n"
        ));
        assert!(!is_minor(
            "v1.35.4",
            "Client Version: v1.32.4\nKustomize Version: v1.35.0\n"
        ));
        assert!(!is_minor("v1.35.4", "1"));
    }
}
