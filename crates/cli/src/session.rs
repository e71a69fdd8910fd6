//! The project of a command: its files, the render request, and the cluster of its target.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use api::GoDuration;
use cluster::{Cluster, access::LocalKubeconfig};
use engine::{EnvironmentVariables, ExternalAccess, RenderOptions};
use git::Checkout;
use kluctl::{Contexts, FixedImage, Inclusion, Rendered, Request, Target};
use results::GitInfo;
use secrets::Keys;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tree::{Budget, Disk, Limits, Tree, TreePath};
use yaml::Value;

use crate::{
    commands::ProjectCommit,
    flags::{self, ImageFlags, InclusionFlags, ProjectFlags, RenderInputFlags, TargetFlags},
    logins::Logins,
    terminal::Terminal,
};

/// Options of a command that select and configure the project.
#[derive(Clone, Copy)]
pub(crate) struct ProjectOptions<'a> {
    pub(crate) project: &'a ProjectFlags,
    pub(crate) target: &'a TargetFlags,
    pub(crate) images: Option<&'a ImageFlags>,
    pub(crate) inclusion: Option<&'a InclusionFlags>,
    pub(crate) discriminator: Option<&'a str>,
    pub(crate) offline: bool,
    /// Kubernetes version for Helm charts; `None` means the cluster's.
    pub(crate) kube_version: Option<&'a str>,
    /// True if the rendered files are needed, not only the objects.
    pub(crate) keep_files: bool,
    /// Project that is a part of the program, instead of one in a directory.
    pub(crate) embedded: Option<&'a Arc<dyn Tree>>,
}

impl<'a> ProjectOptions<'a> {
    pub(crate) fn new(input: &'a RenderInputFlags) -> Self {
        Self {
            images: Some(&input.images),
            inclusion: Some(&input.inclusion),
            ..Self::whole(&input.project, &input.target)
        }
    }

    pub(crate) fn whole(project: &'a ProjectFlags, target: &'a TargetFlags) -> Self {
        Self {
            project,
            target,
            images: None,
            inclusion: None,
            discriminator: None,
            offline: false,
            kube_version: None,
            keep_files: false,
            embedded: None,
        }
    }
}

/// Location of a project.
struct Location {
    dir: PathBuf,
    /// Directory with all files that the project may read.
    root: PathBuf,
    checkout: Option<Checkout>,
    tree: Arc<dyn Tree>,
}

impl Location {
    fn embedded(tree: &Arc<dyn Tree>) -> Self {
        Self {
            dir: "/".into(),
            root: "/".into(),
            checkout: None,
            tree: Arc::clone(tree),
        }
    }

    /// Finds the project in a directory.
    fn find(options: &ProjectOptions<'_>, terminal: &Terminal, limits: &Limits) -> Result<Self> {
        let dir = project_dir(options.project.project_dir.as_deref())?;
        let checkout = Checkout::around(&dir)?;
        if checkout.is_none() {
            terminal.warning("Failed to detect git project root. This might cause follow-up errors");
        }
        let root = match &checkout {
            Some(checkout) => checkout.root.canonicalize()?,
            None => dir.clone(),
        };
        let tree = Arc::new(Disk::open(&root, limits)?);
        Ok(Self {
            dir,
            root,
            checkout,
            tree,
        })
    }
}

pub(crate) struct Session {
    pub(crate) terminal: Terminal,
    pub(crate) runtime: Runtime,
    /// Cancelled at Ctrl-C and when `--timeout` is over.
    pub(crate) cancel: CancellationToken,
    pub(crate) checkout: Option<Checkout>,
    pub(crate) tree: Arc<dyn Tree>,
    pub(crate) request: Request,
    kubeconfig: Option<LocalKubeconfig>,
    external: ExternalAccess,
    timeout: Duration,
}

impl Session {
    /// Finds the project and reads the files that flags name.
    pub(crate) fn open(options: &ProjectOptions<'_>) -> Result<Self> {
        let terminal = options.project.terminal.terminal();
        let runtime = Runtime::new().context("start the async runtime")?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let limits = Limits::default();
        let budget = Budget::new(limits.clone());
        let Location {
            dir,
            root,
            checkout,
            tree,
        } = match options.embedded {
            Some(tree) => Location::embedded(tree),
            None => Location::find(options, &terminal, &limits)?,
        };
        let kubeconfig = match options.offline {
            true => None,
            false => LocalKubeconfig::read(options.target.kubeconfig.as_deref())?,
        };
        if kubeconfig.is_none() && !options.offline {
            if let Some(context) = &options.target.context {
                bail!("context \"{context}\" does not exist: there is no kubeconfig");
            }
            terminal.warning(
                "No valid KUBECONFIG provided, which means the Kubernetes client is not available. Depending on the command, this \
                 may or may not be a problem",
            );
        }
        let mut request = request(options, &root, &dir, &budget)?;
        request.needs_context = !options.offline;
        if let Some(kubeconfig) = &kubeconfig {
            let contexts = kubeconfig.contexts();
            request.contexts = Contexts {
                current: contexts.current,
                names: contexts.names,
            };
        }
        if checkout.is_some() {
            let history = git::History::around(&root);
            request.history = history.map(|history| Arc::new(CheckoutHistory(history)) as _);
        }
        let cancel = CancellationToken::new();
        runtime.spawn(end_early(
            cancel.clone(),
            terminal.clone(),
            options.project.timeout,
        ));
        let external = external(options.project, &terminal)?;
        Ok(Self {
            terminal,
            runtime,
            cancel,
            checkout,
            tree,
            request,
            kubeconfig,
            external,
            timeout: options.project.timeout,
        })
    }

    pub(crate) fn connect(&self) -> Result<Option<Cluster>> {
        let Some(kubeconfig) = &self.kubeconfig else {
            if self.request.needs_context {
                self.choose_target()?;
            }
            return Ok(None);
        };
        let step = self.terminal.start("Initializing k8s client");
        let target = self.choose_target()?;
        let client = self.runtime.block_on(async {
            let config = kubeconfig.config(target.context.as_deref()).await?;
            cluster::access::client(config)
        })?;
        step.done();
        Ok(Some(Cluster::new(client).until(self.cancel.clone())))
    }

    fn choose_target(&self) -> Result<Target> {
        let (tree, request) = (self.tree.clone(), self.request.clone());
        let rendering = self.rendering();
        let target = self.unless_cancelled(engine::choose_target(tree, request, &rendering));
        Ok(self.runtime.block_on(target)?)
    }

    /// Connects to the cluster of the target. Fails without a kubeconfig.
    pub(crate) fn cluster(&self) -> Result<Cluster> {
        self.connect()?
            .context("no kubeconfig found: use --kubeconfig, $KUBECONFIG or ~/.kube/config")
    }

    pub(crate) fn targets(&self) -> Result<(Value, Vec<String>)> {
        let (tree, request) = (self.tree.clone(), self.request.clone());
        let rendering = self.rendering();
        let listing = self.unless_cancelled(engine::list_targets(tree, request, &rendering));
        Ok(self.runtime.block_on(listing)?)
    }

    fn rendering(&self) -> RenderOptions {
        RenderOptions {
            name: "weir".to_owned(),
            timeout: Some(self.timeout),
            external: self.external.clone(),
            ..RenderOptions::default()
        }
    }

    async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = Result<T, engine::Error>>,
    ) -> Result<T, engine::Error> {
        let ended = self.cancel.run_until_cancelled(work).await;
        ended.unwrap_or(Err(engine::Error::Cancelled))
    }

    /// Returns the Git commit of the project; `None` outside of a Git repository.
    pub(crate) fn git_info(&self) -> Option<ProjectCommit> {
        let checkout = self.checkout.as_ref()?;
        let origin = checkout.origin.clone().unwrap_or_default();
        Some(ProjectCommit {
            info: commit_info(checkout, &self.request.project_dir),
            repo_key: kluctl::repo_key(&origin).unwrap_or_default(),
        })
    }

    pub(crate) fn render(&self, cluster: Option<&Cluster>) -> Result<Rendered> {
        let step = self.terminal.start("Rendering");
        let ambient = EnvironmentVariables::from_process().ambient();
        let rendering = RenderOptions {
            keys: Some(Arc::new(Keys::from_environment(ambient))),
            ..self.rendering()
        };
        let (tree, request) = (self.tree.clone(), self.request.clone());
        let rendered = self.runtime.block_on(async {
            match cluster {
                Some(cluster) => engine::render(cluster, tree, request, &rendering).await,
                None => {
                    let work = engine::render_offline(tree, request, &rendering);
                    self.unless_cancelled(work).await
                }
            }
        })?;
        step.done();
        for warning in &rendered.warnings {
            self.terminal.warning(warning);
        }
        Ok(rendered)
    }
}

/// Describes the commit of a checkout that contains a project.
pub(crate) fn commit_info(checkout: &Checkout, project_dir: &TreePath) -> GitInfo {
    GitInfo {
        url: api::redact(checkout.origin.as_deref().unwrap_or_default()),
        // HEAD has no reference before the first commit.
        branch: checkout
            .branch
            .clone()
            .filter(|_| checkout.commit.is_some())
            .unwrap_or_default(),
        tag: checkout.tag.clone().unwrap_or_default(),
        sub_dir: project_dir.as_str().to_owned(),
        commit: checkout.commit.clone().unwrap_or_default(),
        dirty: checkout.dirty,
    }
}

/// Git history for `load_latest_git_commit()` in templates.
#[derive(Debug)]
struct CheckoutHistory(git::History);

impl kluctl::History for CheckoutHistory {
    fn latest_commit(&self, path: &TreePath) -> Result<Option<String>, kluctl::HistoryError> {
        self.0
            .latest_commit(path.as_str())
            .map_err(kluctl::HistoryError::new)
    }
}

/// Returns the external sources of a render: everything that the user may access.
fn external(project: &ProjectFlags, terminal: &Terminal) -> Result<ExternalAccess> {
    let logins = Logins::new(&project.logins)?;
    Ok(ExternalAccess {
        overrides: project.sources.read()?,
        status: Some(Arc::new(terminal.clone())),
        ..ExternalAccess::of_user()
    }
    .with_credentials(Arc::new(logins)))
}

/// Returns the absolute path of the project directory; `None` means the current directory.
pub(crate) fn project_dir(dir: Option<&Path>) -> Result<PathBuf> {
    let dir = dir.unwrap_or(Path::new("."));
    dir.canonicalize().with_context(|| dir.display().to_string())
}

fn request(options: &ProjectOptions<'_>, root: &Path, dir: &Path, budget: &Budget) -> Result<Request> {
    let below = |path: &Path| -> Result<TreePath> {
        let inside = path.strip_prefix(root);
        let inside =
            inside.with_context(|| format!("{} is not inside of {}", path.display(), root.display()))?;
        Ok(TreePath::parse(&inside.to_string_lossy())?)
    };
    let config = options.project.project_config.as_deref();
    let config = config
        .map(|file| {
            let file = file
                .canonicalize()
                .with_context(|| format!("{} does not exist", file.display()))?;
            below(&file)
        })
        .transpose()?;
    let mut request = Request {
        project_dir: below(dir)?,
        project_file: config,
        target: options.target.target.clone(),
        target_name_override: options.target.target_name_override.clone(),
        context_override: options.target.context.clone(),
        discriminator: options.discriminator.map(str::to_owned),
        args: flags::args::read(&options.project.arg, &options.project.args_from_file, budget)?,
        images: options
            .images
            .map(|images| fixed_images(images, budget))
            .transpose()?
            .unwrap_or_default(),
        inclusion: options.inclusion.map(InclusionFlags::read).unwrap_or_default(),
        keep_files: options.keep_files,
        ..Request::default()
    };
    request.charts.kube_version = options.kube_version.map(str::to_owned);
    Ok(request)
}

/// Reads the fixed images of `--fixed-images-file`, then of `--fixed-image`.
pub(crate) fn fixed_images(images: &ImageFlags, budget: &Budget) -> Result<Vec<FixedImage>> {
    let mut all = Vec::new();
    if let Some(file) = &images.fixed_images_file {
        let display = file.display().to_string();
        let text = std::fs::read(file).with_context(|| format!("read {display}"))?;
        let name = TreePath::root().child(&file.file_name().unwrap_or_default().to_string_lossy());
        all = FixedImage::read_list(&name, &text, budget).context(display)?;
    }
    for image in &images.fixed_image {
        all.push(FixedImage::parse(image)?);
    }
    Ok(all)
}

impl InclusionFlags {
    fn read(&self) -> Inclusion {
        Inclusion {
            include_tags: self.include_tag.clone(),
            exclude_tags: self.exclude_tag.clone(),
            include_dirs: self.include_deployment_dir.clone(),
            exclude_dirs: self.exclude_deployment_dir.clone(),
        }
    }
}

/// Cancels the work at Ctrl-C or after the timeout; a second Ctrl-C ends the process.
pub(crate) async fn end_early(cancel: CancellationToken, terminal: Terminal, timeout: Duration) {
    tokio::select! {
        () = tokio::time::sleep(timeout) => {
            terminal.failure(&format!("context deadline exceeded: the command took longer than --timeout {}", GoDuration::from(timeout)));
            cancel.cancel();
        }
        Ok(()) = tokio::signal::ctrl_c() => {
            terminal.warning("Interrupted: stopping. Press Ctrl-C again to exit immediately");
            cancel.cancel();
        }
    }
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}
