//! `weir create image`: objects of Flux's image automation.

use anyhow::{Result, ensure};
use api::GoDuration;
use clap::{Args, Subcommand};
use fleet::{
    Kind,
    kind::{GIT_REPOSITORY, IMAGE_POLICY, IMAGE_REPOSITORY, IMAGE_UPDATE_AUTOMATION},
};
use go::regexp::Regexp;
use yaml::Value;

use super::{
    flags::{CreateFlags, IntervalFlag},
    store::{Creation, export},
};
use crate::{
    commands::flux::steer::fields::{Fields, Identity},
    deferred::Deferred,
    usage::boolean_flag,
};

/// Subcommands of `weir create image`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create or update an ImageRepository
    Repository(Deferred<RepositoryArgs>),
    /// Create or update an ImagePolicy
    Policy(Deferred<PolicyArgs>),
    /// Create or update an ImageUpdateAutomation
    Update(Deferred<UpdateArgs>),
}

pub(super) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Repository(args) => create(&args.create, &IMAGE_REPOSITORY, |of| args.object(of)),
        Command::Policy(args) => create(&args.create, &IMAGE_POLICY, |of| args.object(of)),
        Command::Update(args) => create(&args.create, &IMAGE_UPDATE_AUTOMATION, |of| args.object(of)),
    }
}

fn create(
    create: &CreateFlags,
    kind: &'static Kind,
    build: impl FnOnce(&Identity<'_>) -> Result<Value>,
) -> Result<()> {
    let object = create.build(build)?;
    if create.export {
        return export(&object);
    }
    let flux = create.open()?;
    flux.generated(&format!("generating {}", kind.kind));
    Creation::of(kind.kind).run(&flux, kind, &object)?;
    flux.success(&format!("{} reconciliation completed", kind.kind));
    Ok(())
}

const REPOSITORY_EXAMPLES: &str = "Examples:
  # A public image
  weir create image repository app-repo --image registry.example.com/image/app --interval 5m

  # A private one
  weir create image repository app-repo \\
    --image registry.example.com/image/app \\
    --secret-ref app-repo-secret \\
    --scan-timeout 10s

  # A registry with client certificates
  weir create image repository app-repo --cert-ref client-cert --image registry.example.com/image/app";

/// Create or update an ImageRepository: an image whose tags are listed
///
/// Weir has no image-reflector-controller: the one of Flux reconciles the object.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = REPOSITORY_EXAMPLES)]
pub(crate) struct RepositoryArgs {
    /// Name of the image, without a tag
    #[arg(long, value_name = "IMAGE", default_value = "", hide_default_value = true)]
    image: String,
    /// Name of an existing Secret of the type kubernetes.io/dockerconfigjson
    #[arg(long, value_name = "NAME")]
    secret_ref: Option<String>,
    /// Name of an existing Secret with TLS certificates
    #[arg(long, value_name = "NAME")]
    cert_ref: Option<String>,
    /// Timeout of a scan; defaults to the interval
    #[arg(long, value_name = "DURATION")]
    scan_timeout: Option<GoDuration>,
    #[command(flatten)]
    create: CreateFlags,
    #[command(flatten)]
    interval: IntervalFlag,
}

impl RepositoryArgs {
    fn object(&self, identity: &Identity<'_>) -> Result<Value> {
        ensure!(
            !self.image.is_empty(),
            "an image repository (--image) is required"
        );
        check_image(&self.image)?;
        let timeout = self.scan_timeout.map(|timeout| timeout.to_string());
        let spec = Fields::default()
            .set("image", &*self.image)
            .duration("interval", self.interval.interval)
            .optional("timeout", timeout)
            .reference("secretRef", self.secret_ref.as_deref())
            .reference("certSecretRef", self.cert_ref.as_deref());
        Ok(identity.object(&IMAGE_REPOSITORY, spec))
    }
}

/// Refuses a name that is a URL, or has a tag or a digest.
fn check_image(image: &str) -> Result<()> {
    let (_, last) = image.rsplit_once('/').unwrap_or(("", image));
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
    ensure!(
        !last.is_empty() && last.chars().all(is_name) && !image.contains("://") && !image.contains('@'),
        "unable to parse image value: {image:?} is not the name of an image without scheme, tag and digest, such as library/alpine"
    );
    Ok(())
}

const POLICY_EXAMPLES: &str = "Examples:
  # The newest version of a range
  weir create image policy podinfo --image-ref podinfo --select-semver '1.0.x'

  # The newest build of a branch
  weir create image policy podinfo \\
    --image-ref podinfo \\
    --select-numeric asc \\
    --filter-regex '^main-[a-f0-9]+-(?P<ts>[0-9]+)' \\
    --filter-extract '$ts'";

/// Create or update an ImagePolicy: the choice of a tag
///
/// Weir has no image-reflector-controller: the one of Flux reconciles the object.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = POLICY_EXAMPLES)]
pub(crate) struct PolicyArgs {
    /// Name of the ImageRepository in the same namespace
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    image_ref: String,
    /// Choose the highest version of a range, such as 1.x
    #[arg(long, value_name = "RANGE", default_value = "", hide_default_value = true)]
    select_semver: String,
    /// Choose by the alphabet: asc means the last tag, desc the first
    #[arg(long, value_name = "ORDER", default_value = "", hide_default_value = true)]
    select_alpha: String,
    /// Choose by number: asc means the last tag, desc the first
    #[arg(long, value_name = "ORDER", default_value = "", hide_default_value = true)]
    select_numeric: String,
    /// Regular expression that tags have to match
    #[arg(long, value_name = "REGEX", default_value = "", hide_default_value = true)]
    filter_regex: String,
    /// Replacement of the tag for the choice, with groups of --filter-regex, such as $ts
    #[arg(long, value_name = "TEMPLATE", default_value = "", hide_default_value = true)]
    filter_extract: String,
    /// Record the digest of the tag: Never, IfNotPresent or Always
    #[arg(long, value_name = "POLICY", default_value = "", hide_default_value = true)]
    reflect_digest: String,
    /// Interval of checks for new digests, with --reflect-digest=Always
    #[arg(long, value_name = "DURATION")]
    interval: Option<GoDuration>,
    #[command(flatten)]
    create: CreateFlags,
}

impl PolicyArgs {
    fn object(&self, identity: &Identity<'_>) -> Result<Value> {
        ensure!(
            !self.image_ref.is_empty(),
            "the name of an ImageRepository in the namespace is required (--image-ref)"
        );
        let reflects = &*self.reflect_digest;
        ensure!(
            ["", "Never", "IfNotPresent", "Always"].contains(&reflects),
            "invalid digest reflection policy {reflects:?}: use Never, IfNotPresent or Always"
        );
        ensure!(
            (reflects == "Always") == self.interval.is_some(),
            "--interval belongs to --reflect-digest=Always, which needs it"
        );
        let interval = self.interval.map(|interval| interval.to_string());
        let spec = Fields::default()
            .reference("imageRepositoryRef", Some(&self.image_ref))
            .map("filterTags", self.filter()?)
            .set("policy", self.choice()?)
            .text("digestReflectionPolicy", reflects)
            .optional("interval", interval);
        Ok(identity.object(&IMAGE_POLICY, spec))
    }

    fn choice(&self) -> Result<Fields> {
        let given = [
            ("semver", "range", &self.select_semver),
            ("alphabetical", "order", &self.select_alpha),
            ("numerical", "order", &self.select_numeric),
        ];
        let given: Vec<_> = given.iter().filter(|(.., value)| !value.is_empty()).collect();
        let [(policy, field, value)] = given.as_slice() else {
            ensure!(
                given.is_empty(),
                "only one of --select-semver, --select-alpha or --select-numeric can be specified"
            );
            anyhow::bail!(
                "a policy must be provided with --select-semver, --select-alpha or --select-numeric"
            );
        };
        ensure!(
            *field == "range" || ["asc", "desc"].contains(&value.as_str()),
            "--select-alpha and --select-numeric must be one of [\"asc\", \"desc\"]"
        );
        Ok(Fields::default().set(policy, Fields::default().set(field, value.as_str())))
    }

    fn filter(&self) -> Result<Fields> {
        ensure!(
            self.filter_extract.is_empty() || !self.filter_regex.is_empty(),
            "cannot specify --filter-extract without specifying --filter-regex"
        );
        if let Err(error) = Regexp::compile(&self.filter_regex) {
            anyhow::bail!("--filter-regex is an invalid regex pattern: {error}");
        }
        Ok(Fields::default()
            .text("pattern", &self.filter_regex)
            .text("extract", &self.filter_extract))
    }
}

const UPDATE_EXAMPLES: &str = "Examples:
  # Commit new tags to the branch of the manifests
  weir create image update flux-system \\
    --git-repo-ref=flux-system \\
    --git-repo-path=\"./clusters/my-cluster\" \\
    --checkout-branch=main \\
    --author-name=flux \\
    --author-email=flux@example.com

  # Commit them to another branch
  weir create image update flux-system \\
    --git-repo-ref=flux-system \\
    --checkout-branch=main \\
    --push-branch=image-updates \\
    --author-name=flux \\
    --author-email=flux@example.com \\
    --commit-template=\"{{range .Changed.Changes}}{{.OldValue}}{{end}}\"";

/// Create or update an ImageUpdateAutomation: commits of chosen tags to a repository
///
/// Weir has no image-automation-controller: the one of Flux reconciles the object.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = UPDATE_EXAMPLES)]
pub(crate) struct UpdateArgs {
    /// Name of the GitRepository with the manifests
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    git_repo_ref: String,
    /// Namespace of the GitRepository; defaults to the object's own
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true)]
    git_repo_namespace: String,
    /// Directory with the manifests; defaults to the root of the repository
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    git_repo_path: String,
    /// Branch to read
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    checkout_branch: String,
    /// Branch to write; defaults to the one that is read
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    push_branch: String,
    /// Template of commit messages
    #[arg(long, value_name = "TEMPLATE", default_value = "", hide_default_value = true)]
    commit_template: String,
    /// Name of the author of commits
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    author_name: String,
    /// Email address of the author of commits
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    author_email: String,
    #[command(flatten)]
    create: CreateFlags,
    #[command(flatten)]
    interval: IntervalFlag,
}

impl UpdateArgs {
    fn object(&self, identity: &Identity<'_>) -> Result<Value> {
        for (value, message) in [
            (
                &self.git_repo_ref,
                "a reference to a GitRepository is required (--git-repo-ref)",
            ),
            (
                &self.checkout_branch,
                "the Git repository branch is required (--checkout-branch)",
            ),
            (&self.author_name, "the author name is required (--author-name)"),
            (
                &self.author_email,
                "the author email is required (--author-email)",
            ),
        ] {
            ensure!(!value.is_empty(), message);
        }
        let source = Fields::default()
            .set("kind", GIT_REPOSITORY.kind)
            .set("name", &*self.git_repo_ref)
            .text("namespace", &self.git_repo_namespace);
        let author = Fields::default()
            .set("email", &*self.author_email)
            .set("name", &*self.author_name);
        let commit = Fields::default()
            .set("author", author)
            .text("messageTemplate", &self.commit_template);
        let reference = Fields::default().set("branch", &*self.checkout_branch);
        let git = Fields::default()
            .set("checkout", Fields::default().set("ref", reference))
            .set("commit", commit)
            .map("push", Fields::default().text("branch", &self.push_branch));
        let update = match &*self.git_repo_path {
            "" => Fields::default(),
            path => Fields::default().set("path", path).set("strategy", "Setters"),
        };
        let spec = Fields::default()
            .duration("interval", self.interval.interval)
            .set("sourceRef", source)
            .set("git", git)
            .map("update", update);
        Ok(identity.object(&IMAGE_UPDATE_AUTOMATION, spec))
    }
}
