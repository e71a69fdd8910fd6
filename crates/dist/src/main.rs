//! Writes the files of a release, for `make dist`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use api::Secret;
use clap::{Args, Parser, Subcommand};
use dist::{Options, Release, SigningKey};
use net::AddressPolicy;
use oci::{Access, Client, Credentials, Limits};
use tokio::runtime::Runtime;

/// Write and publish the files of a release
#[derive(Debug, Parser)]
#[command(name = "dist")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write archives, images, manifests, chart, bills of materials and checksums into a folder
    Build(BuildArgs),
    /// Push the images, manifests and chart in a folder to a registry, and print their references
    ///
    /// $REGISTRY_USERNAME and $REGISTRY_PASSWORD are the credentials.
    Push(PushArgs),
    /// Sign the checksums in a folder: write checksums.txt.sig beside them
    Sign(SignArgs),
    /// Unpack the images in a folder, and print the folders of their files: OUT/PROGRAM/ARCHITECTURE
    Unpack(UnpackArgs),
}

#[derive(Debug, Args)]
struct BuildArgs {
    /// Folder with the programs for an architecture. Can be repeated
    #[arg(long, value_name = "DIR", required = true)]
    programs: Vec<PathBuf>,
    /// Program that prints completions and manual pages; defaults to the one for this machine
    #[arg(long, value_name = "PROGRAM")]
    weir: Option<PathBuf>,
    /// Folder of the files, empty or new
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Accept programs that need a dynamic loader; their images don't run
    #[arg(long)]
    allow_dynamic: bool,
    /// Certificates of public authorities in PEM format, for the images
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/ssl/certs/ca-certificates.crt"
    )]
    certificates: PathBuf,
    /// Registry and path of the images, without the name of the controller
    #[arg(long, default_value = "weir")]
    registry: String,
    /// URL of the repository with the source, a label of images
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Commit of the source, a label of images
    #[arg(long, value_name = "COMMIT")]
    revision: Option<String>,
    /// Level of compression of programs and images, from 0 (none) to 9
    #[arg(long, value_name = "LEVEL", default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=9))]
    compression: u32,
    /// Time of all files in archives and images, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    time: u64,
}

#[derive(Debug, Args)]
struct PushArgs {
    /// Folder with the files of a release
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Registry and path of the images, such as ghcr.io/example/weir
    #[arg(long)]
    registry: String,
    /// Private key that signs everything: ECDSA P-256 in PEM format (PKCS #8)
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Use HTTP
    #[arg(long)]
    plain_http: bool,
}

#[derive(Debug, Args)]
struct SignArgs {
    /// Folder with the files of a release
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Private key: ECDSA P-256 in PEM format (PKCS #8)
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Debug, Args)]
struct UnpackArgs {
    /// Folder with the files of a release
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Folder for the files of the images
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[expect(clippy::print_stdout, reason = "the result of a command for people")]
fn main() -> Result<ExitCode> {
    match Arguments::parse().command {
        Command::Build(args) => {
            for name in dist::build(&options(args))? {
                println!("{name}");
            }
        }
        Command::Push(args) => {
            for reference in push(&args)? {
                println!("{reference}");
            }
        }
        Command::Unpack(args) => {
            for folder in dist::unpack(&args.dir, &args.out)? {
                println!("{}", folder.display());
            }
        }
        Command::Sign(args) => println!("{}", dist::sign_checksums(&key(&args.key)?, &args.dir)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn push(args: &PushArgs) -> Result<Vec<String>> {
    let variable = |name| {
        std::env::var(name)
            .ok()
            .filter(|value: &String| !value.is_empty())
    };
    let credentials = match (variable("REGISTRY_USERNAME"), variable("REGISTRY_PASSWORD")) {
        (Some(username), Some(password)) => Some(Credentials::Basic {
            username,
            password: Secret::new(password),
        }),
        (None, None) => None,
        _ => bail!("set both REGISTRY_USERNAME and REGISTRY_PASSWORD, or neither"),
    };
    let access = Access {
        credentials,
        plain_http: args.plain_http,
        ..Access::default()
    };
    let client = Client::new(access, Limits::default(), AddressPolicy::command_line())?;
    let key = args.key.as_deref().map(key).transpose()?;
    let runtime = Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(dist::push(&client, &args.dir, &args.registry, key.as_ref()))
}

fn key(path: &Path) -> Result<SigningKey> {
    let pem = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    SigningKey::from_pem(&pem).with_context(|| format!("cannot use {}", path.display()))
}

fn options(args: BuildArgs) -> Options {
    Options {
        root: root(),
        programs: args.programs,
        weir: args.weir,
        allow_dynamic: args.allow_dynamic,
        certificates: args.certificates,
        out: args.out,
        release: Release {
            registry: args.registry,
            source: args.source,
            revision: args.revision,
            compression: args.compression,
            time: args.time,
        },
    }
}

/// Returns the root of the repository that this program was built in.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
