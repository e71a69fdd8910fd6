//! The options of `helm template`, as far as recorded renders use them.

use std::{
    cell::Cell,
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use helm::{Options, functions::Environment, values::ReadFileError};

/// A fixed clock and a deterministic sequence of numbers.
#[derive(Debug, Default)]
pub(crate) struct Fixed(AtomicU64);

impl Environment for Fixed {
    fn now(&self) -> (i64, u32) {
        (1_760_000_000, 0)
    }

    fn fill(&self, bytes: &mut [u8]) {
        let seed = Cell::new(self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        for byte in bytes {
            seed.set(
                seed.get()
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            );
            *byte = (seed.get() >> 33) as u8;
        }
    }
}

pub(crate) struct Line<'a> {
    pub(crate) chart: String,
    pub(crate) options: Options<'a>,
}

/// Parses the arguments after `helm template`, whose files are relative to `dir`.
pub(crate) fn parse<'a>(
    arguments: &[String],
    dir: &Path,
    environment: &'a Fixed,
    read: &'a (dyn Fn(&str) -> Result<Bytes, ReadFileError> + Sync),
) -> Result<Line<'a>, String> {
    let mut options = Options::new("release-name", environment);
    options.read_file = Some(read);
    let mut names = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if !argument.starts_with('-') {
            names.push(argument.clone());
            continue;
        }
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        match flag {
            "--include-crds" => options.include_crds = true,
            "--skip-tests" => options.skip_tests = true,
            "--no-hooks" => options.no_hooks = true,
            "--is-upgrade" => options.is_upgrade = true,
            "--skip-schema-validation" => options.skip_schema_validation = true,
            // Matters for installations only.
            "--skip-crds" => {}
            flag => {
                let value = value
                    .or_else(|| rest.next().cloned())
                    .ok_or(format!("{flag} wants a value"))?;
                with_value(&mut options, flag, value, dir)?;
            }
        }
    }
    let chart = names.pop().ok_or("no chart")?;
    if let Some(name) = names.pop() {
        options.release_name = name;
    }
    Ok(Line { chart, options })
}

fn with_value(options: &mut Options<'_>, flag: &str, value: String, dir: &Path) -> Result<(), String> {
    let values = &mut options.values;
    match flag {
        "--namespace" | "-n" => options.namespace = value,
        "--kube-version" => options.kube_version = Some(value),
        "--api-versions" | "-a" => options.api_versions.extend(value.split(',').map(str::to_owned)),
        "--name-template" => options.name_template = Some(value),
        "--show-only" | "-s" => options.show_only.push(value),
        "--values" | "-f" => {
            for name in value.split(',') {
                let text = fs::read(dir.join(name)).map_err(|error| format!("open {name}: {error}"))?;
                values.files.push((name.to_owned(), text.into()));
            }
        }
        "--set" => values.set.push(value),
        "--set-string" => values.string.push(value),
        "--set-json" => values.json.push(value),
        "--set-file" => values.file.push(value),
        "--set-literal" => values.literal.push(value),
        other => return Err(format!("option {other} is not known")),
    }
    Ok(())
}
