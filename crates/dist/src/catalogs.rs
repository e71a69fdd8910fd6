//! Entries for the catalogs of other tools, which download `weir` from the release. Pure.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::Result;
use serde_json::json;

use crate::{Architecture, Release};

const DESCRIPTION: &str = "GitOps for Kubernetes, wire-compatible with Flux and kluctl";

/// An archive with `weir`: its name and SHA-256.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Archive<'a> {
    pub(crate) name: &'a str,
    pub(crate) sha256: &'a str,
}

impl Archive<'_> {
    fn url(self, source: &str, release: &Release) -> String {
        format!("{source}/releases/download/{}/{}", release.tag(), self.name)
    }
}

/// Returns the formula of Homebrew.
pub(crate) fn formula(
    archives: &BTreeMap<Architecture, Archive<'_>>,
    source: &str,
    release: &Release,
) -> Result<String> {
    let mut downloads = String::new();
    for (architecture, archive) in archives {
        let block = match architecture {
            Architecture::Amd64 => "on_intel",
            Architecture::Arm64 => "on_arm",
        };
        let (url, sha256) = (archive.url(source, release), archive.sha256);
        writeln!(
            downloads,
            "  {block} do\n    url \"{url}\"\n    sha256 \"{sha256}\"\n  end\n"
        )?;
    }
    Ok(format!(
        r##"class Weir < Formula
  desc "{DESCRIPTION}"
  homepage "{source}"
  version "{version}"
  license "Apache-2.0"
  depends_on :linux

{downloads}  def install
    bin.install "weir"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/bash/weir"
    fish_completion.install "completions/fish/weir.fish"
    zsh_completion.install "completions/zsh/_weir"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/weir --version")
  end
end
"##,
        version = release.version()
    ))
}

/// Returns the manifest for `flux plugin install weir`, which makes `flux weir` run it. A catalog has it as `weir.yaml`.
pub(crate) fn plugin(
    archives: &BTreeMap<Architecture, Archive<'_>>,
    source: &str,
    release: &Release,
) -> String {
    let platforms = archives.iter().map(|(architecture, archive)| {
        json!({
            "os": "linux",
            "arch": architecture.to_string(),
            "url": archive.url(source, release),
            "checksum": format!("sha256:{}", archive.sha256),
            "extractPath": "weir",
        })
    });
    let manifest = json!({
        "apiVersion": "cli.fluxcd.io/v1beta1",
        "kind": "Plugin",
        "name": "weir",
        "description": DESCRIPTION,
        "homepage": source,
        "source": source,
        "bin": "flux-weir",
        "versions": [{ "version": release.version(), "platforms": platforms.collect::<Vec<_>>() }],
    });
    // JSON is YAML, and has no dialects.
    format!("{manifest:#}\n")
}
