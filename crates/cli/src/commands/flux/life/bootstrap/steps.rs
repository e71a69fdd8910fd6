//! The steps of a bootstrap, each of which does nothing if its work is done.

use anyhow::{Context as _, Result, bail, ensure};
use api::GoDuration;
use install::{COMPONENTS_FILE, KUSTOMIZATION_FILE, Options, SYNC_FILE, Sync};
use objects::{ObjectRef, meta};
use tokio::runtime::Runtime;
use tree::{Budget, Limits, TreePath};
use yaml::Value;

use super::{
    BootstrapFlags,
    credentials::Credentials,
    follow,
    hosting::{Hosting, Team},
    repository::{Head, Repository},
    secret::SyncSecret,
};
use crate::{
    commands::flux::{
        Flux,
        life::{found, found::Installation, rollout},
    },
    usage::split_list,
};

pub(super) struct Bootstrap<'a> {
    flags: &'a BootstrapFlags,
    credentials: Credentials,
    silent: bool,
    flux: Flux,
    /// Works for the connections to the repository, which block.
    runtime: Runtime,
    repository: Repository,
    options: Options,
    sync: Sync,
    /// Directory of the three files.
    dir: String,
    /// The service that creates repository and deploy key, and true if the key is to read only.
    hosting: Option<(Hosting, bool)>,
    /// Teams that get access to the repository.
    teams: Vec<Team>,
}

impl<'a> Bootstrap<'a> {
    /// Checks the flags, and connects to the cluster.
    pub(super) fn open(flags: &'a BootstrapFlags, credentials: Credentials, silent: bool) -> Result<Self> {
        let flux = Flux::open(&flags.flux)?;
        let runtime = Runtime::new().context("start the async runtime")?;
        let options = flags.controllers.options(&flux.namespace)?;
        for needed in ["source-controller", "kustomize-controller"] {
            ensure!(
                options.has(needed),
                "--components has no {needed}, which has to follow the repository"
            );
        }
        let sync = sync(flags, &credentials, &flux.namespace)?;
        let dir = install::directory(&sync.path, &flux.namespace)?;
        let (remote, host_key) = credentials.remote(runtime.handle())?;
        if let Some(line) = host_key {
            flux.action(&format!("the SSH server has the host key {line}"));
        }
        let author = (&*flags.commit.author_name, &*flags.commit.author_email);
        let repository = Repository::new(
            runtime.handle().clone(),
            remote,
            &sync.branch,
            author,
            flags.flux.timeout,
        );
        Ok(Self {
            flags,
            credentials,
            silent,
            flux,
            runtime,
            repository,
            options,
            sync,
            dir,
            hosting: None,
            teams: Vec::new(),
        })
    }

    /// Lets a hosting service create the repository, the access of teams, and the deploy key.
    pub(super) fn at(mut self, hosting: Hosting, read_only: bool, teams: Vec<Team>) -> Self {
        self.hosting = Some((hosting, read_only));
        self.teams = teams;
        self
    }

    pub(super) fn run(&self) -> Result<()> {
        // Before the first commit, which nobody would want in another directory.
        self.flux.block_on(self.check_path())?;
        self.flux.block_on(self.check_present())?;
        self.create_repository()?;
        self.commit_components()?;
        let is_following = self.flux.block_on(self.is_following())?;
        match is_following {
            true => self.flux.success("the cluster follows the repository already"),
            false => self.install_components()?,
        }
        self.store_secret()?;
        self.commit_sync()?;
        let head = self.repository.fetch()?;
        self.flux.action("applying sync manifests");
        let objects = self.build(&head)?;
        let objects: Vec<Value> = objects
            .into_iter()
            .filter(|object| self.is_sync(object))
            .collect();
        self.flux.block_on(rollout::apply(&self.flux, &objects))?;
        self.flux.success("reconciled sync configuration");
        let id = head.id().context("the branch is gone")?;
        let revision = format!("{}@sha1:{id}", self.sync.branch);
        self.flux.block_on(self.follow(&revision))
    }

    /// Refuses to override an installation of another tool, and to remove controllers: their definitions and all objects of these would go
    /// with them.
    async fn check_present(&self) -> Result<()> {
        if self.flags.force {
            return Ok(());
        }
        let deployments = found::deployments(&self.flux.cluster, &self.flux.namespace).await?;
        let names = deployments
            .iter()
            .filter_map(|deployment| meta::text(deployment, "name"));
        let removed: Vec<&str> = names.filter(|name| !self.options.has(name)).collect();
        ensure!(
            removed.is_empty(),
            "the cluster has {}, which the commit would remove with its definitions and all their objects: name it in --components if weir has it, or use \
             --force to remove it",
            removed.join(", ")
        );
        let Some(found) = Installation::find(&self.flux.cluster).await? else {
            return Ok(());
        };
        match found.manager.as_deref() {
            None | Some("weir") => Ok(()),
            Some(manager) => bail!(
                "{} is installed in this cluster, and kept by {manager}: use --force to override it",
                found.distribution()
            ),
        }
    }

    fn create_repository(&self) -> Result<()> {
        let Some((hosting, _)) = &self.hosting else {
            return Ok(());
        };
        let url = &self.credentials.url;
        self.flux
            .action(&format!("determining if repository \"{url}\" exists"));
        match self.flux.block_on(hosting.create_repository())? {
            true => self.flux.success("repository created"),
            false => self.flux.success("repository exists"),
        }
        for team in &self.teams {
            self.flux.block_on(hosting.add_team(team))?;
            self.flux.success(&format!("{team} has access to the repository"));
        }
        Ok(())
    }

    fn commit_components(&self) -> Result<()> {
        let flux = &self.flux;
        flux.action(&format!(
            "generating component manifests for branch \"{}\" of \"{}\"",
            self.sync.branch, self.credentials.url
        ));
        let text = install::install(&self.options)?;
        let file = format!("{}/{COMPONENTS_FILE}", self.dir);
        let message = self.message(&format!("Add Weir {} component manifests", self.options.version));
        let change = |_: &Head| Ok(vec![(file.clone(), text.clone())]);
        self.report("component", self.repository.commit(&message, change)?.as_deref());
        Ok(())
    }

    fn commit_sync(&self) -> Result<()> {
        self.flux.action("generating sync manifests");
        let text = install::sync(&self.sync)?;
        let change = |head: &Head| {
            let mut files = vec![(format!("{}/{SYNC_FILE}", self.dir), text.clone())];
            let index = format!("{}/{KUSTOMIZATION_FILE}", self.dir);
            // One that is there may have patches of the user.
            if head.read(&index)?.is_none() {
                files.push((index, install::kustomization()));
            }
            Ok(files)
        };
        let message = self.message("Add Weir sync manifests");
        self.report("sync", self.repository.commit(&message, change)?.as_deref());
        Ok(())
    }

    fn report(&self, what: &str, commit: Option<&str>) {
        match commit {
            Some(id) => self.flux.success(&format!(
                "committed and pushed {what} manifests to \"{}\" (\"{id}\")",
                self.sync.branch
            )),
            None => self.flux.success(&format!("{what} manifests are up to date")),
        }
    }

    fn message(&self, subject: &str) -> String {
        match self.flags.commit.commit_message_appendix.as_str() {
            "" => subject.to_owned(),
            appendix => format!("{subject}\n\n{appendix}"),
        }
    }

    /// Returns true if the Kustomization has applied a commit: from then on, the cluster installs the manifests of the repository.
    async fn is_following(&self) -> Result<bool> {
        let live = self.flux.cluster.get(&self.reconciler()).await?;
        let applied = live
            .as_ref()
            .and_then(|live| live.pointer(&["status", "lastAppliedRevision"]));
        Ok(applied
            .and_then(Value::as_str)
            .is_some_and(|revision| !revision.is_empty()))
    }

    fn install_components(&self) -> Result<()> {
        let flux = &self.flux;
        flux.action(&format!(
            "installing components in \"{}\" namespace",
            flux.namespace
        ));
        let head = self.repository.fetch()?;
        let index = format!("{}/{KUSTOMIZATION_FILE}", self.dir);
        let objects = match head.read(&index)? {
            // With the patches of the user.
            Some(_) => {
                let built = self.build(&head)?.into_iter();
                built.filter(|object| !self.is_sync(object)).collect()
            }
            None => install::objects(&self.options)?,
        };
        flux.block_on(async {
            let targets = rollout::apply(flux, &objects).await?;
            flux.success("installed components");
            rollout::wait(flux, targets, self.flags.flux.timeout).await
        })?;
        flux.success("reconciled components");
        Ok(())
    }

    /// Builds the kustomization that the cluster will build.
    fn build(&self, head: &Head) -> Result<Vec<Value>> {
        let commit = head.commit.as_ref().context("the branch is gone")?;
        let budget = Budget::new(Limits::default());
        let options = kustomize::Options::default();
        let built = kustomize::build(commit, &TreePath::parse(&self.dir)?, &options, &budget);
        let built = built.with_context(|| format!("build {}/{KUSTOMIZATION_FILE}", self.dir))?;
        Ok(built.objects.into_iter().map(|built| built.object).collect())
    }

    /// Returns true for the source and the Kustomization of the installation.
    fn is_sync(&self, object: &Value) -> bool {
        let own = [self.source(), self.reconciler()];
        ObjectRef::of(object).is_ok_and(|reference| own.iter().any(|own| own.id() == reference.id()))
    }

    fn store_secret(&self) -> Result<()> {
        let (flux, name) = (&self.flux, &self.flags.sync.secret_name);
        let reference = reference("", "v1", "Secret", &flux.namespace, name);
        flux.action(&format!(
            "determining if source secret {} exists",
            quoted(&reference)
        ));
        let present = flux.block_on(flux.cluster.get(&reference))?;
        if present.is_some() && !self.credentials.is_given {
            flux.success("source secret is up to date");
            return Ok(());
        }
        flux.action("generating source secret");
        let secret = SyncSecret::new(&self.credentials, self.runtime.handle(), &flux.namespace, name)?;
        if let Some(key) = &secret.public_key {
            flux.success(&format!("public key: {key}"));
            self.authorize(key)?;
        }
        flux.action(&format!("applying source secret {}", quoted(&reference)));
        flux.block_on(rollout::apply(flux, &[secret.object]))?;
        flux.success("reconciled source secret");
        Ok(())
    }

    /// Gives the key access to the repository, or lets the user do it.
    fn authorize(&self, key: &str) -> Result<()> {
        let flux = &self.flux;
        if let Some((hosting, read_only)) = &self.hosting {
            let title = format!("{}-{}-{}", flux.namespace, self.sync.branch, self.dir);
            let added = flux.block_on(hosting.add_key(&title, key, *read_only))?;
            flux.success(match added {
                true => "added the deploy key to the repository",
                false => "the repository has the deploy key",
            });
            return Ok(());
        }
        let question = "Please give the key access to your repository. Does it have access?";
        ensure!(
            self.silent || flux.terminal.ask_or(question, "--silent"),
            "the cluster can't read the repository without the key"
        );
        Ok(())
    }

    /// Refuses to move an installation to another directory, where nothing of its cluster would be: all would be pruned.
    async fn check_path(&self) -> Result<()> {
        let live = self.flux.cluster.get(&self.reconciler()).await?;
        let path = live.as_ref().and_then(|live| live.pointer(&["spec", "path"]));
        let Some(path) = path.and_then(Value::as_str) else {
            return Ok(());
        };
        let is_same = install::directory(path, "").ok() == install::directory(&self.sync.path, "").ok();
        ensure!(
            is_same,
            "sync path configuration (\"{}\") does not match the path of the cluster (\"{path}\"): use --path={path}",
            self.sync.path
        );
        Ok(())
    }

    /// Waits until source and Kustomization have the commit, and the controllers are ready.
    async fn follow(&self, revision: &str) -> Result<()> {
        let flux = &self.flux;
        let artifact = ["status", "artifact", "revision"];
        follow::wait(flux, &self.source(), &artifact, revision).await?;
        let attempted = ["status", "lastAttemptedRevision"];
        follow::wait(flux, &self.reconciler(), &attempted, revision).await?;
        flux.action("confirming components are healthy");
        let deployments = found::deployments(&flux.cluster, &flux.namespace).await?;
        let targets = rollout::targets(&deployments)?;
        rollout::wait(flux, targets, self.flags.flux.timeout).await?;
        flux.success("all components are healthy");
        Ok(())
    }

    fn source(&self) -> ObjectRef {
        let (group, name) = (api::group::SOURCE, &self.flux.namespace);
        reference(group, "v1", "GitRepository", name, name)
    }

    fn reconciler(&self) -> ObjectRef {
        let (group, name) = (api::group::KUSTOMIZE, &self.flux.namespace);
        reference(group, "v1", "Kustomization", name, name)
    }
}

/// Returns the options of `gotk-sync.yaml`.
///
/// # Errors
/// If the directory of the cluster is not among those that it fetches.
pub(super) fn sync(flags: &BootstrapFlags, credentials: &Credentials, namespace: &str) -> Result<Sync> {
    let flags = &flags.sync;
    let sparse_checkout = split_list(&flags.sparse_checkout)?;
    ensure!(
        fetches(&sparse_checkout, &flags.path),
        "--sparse-checkout leaves out --path={}: the cluster could not read its own manifests",
        flags.path
    );
    Ok(Sync {
        namespace: namespace.to_owned(),
        url: credentials.sync_url.clone(),
        branch: flags.branch.clone(),
        path: flags.path.clone(),
        interval: GoDuration::from(flags.interval).to_string(),
        secret: Some(flags.secret_name.clone()),
        recurse_submodules: flags.recurse_submodules,
        sparse_checkout,
    })
}

/// Returns true if a path is in one of the directories, or there are none.
fn fetches(directories: &[String], path: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        parts.map(str::to_owned).collect()
    };
    directories.is_empty() || directories.iter().any(|dir| parts(path).starts_with(&parts(dir)))
}

fn reference(group: &str, version: &str, kind: &str, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

/// Formats namespace and name as Flux does: `"flux-system/flux-system"`.
pub(super) fn quoted(object: &ObjectRef) -> String {
    let namespace = object.namespace.as_deref().unwrap_or_default();
    format!("\"{namespace}/{}\"", object.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_the_cluster_has_to_be_fetched() {
        let list = |text: &[&str]| text.iter().map(|dir| (*dir).to_owned()).collect::<Vec<_>>();
        assert!(fetches(&[], "clusters/prod"));
        assert!(fetches(&list(&["apps", "./clusters/"]), "clusters/prod"));
        assert!(!fetches(
            &list(&["cluster", "clusters/production"]),
            "clusters/prod"
        ));
        assert!(!fetches(&list(&["apps"]), ""));
    }
}
