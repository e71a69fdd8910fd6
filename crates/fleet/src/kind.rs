//! The kinds of objects, and the words for them on a command line.

use api::group;

#[cfg(test)]
mod tests;

/// Group of the image automation.
pub const IMAGE_GROUP: &str = "image.toolkit.fluxcd.io";
/// Group of the kinds that make artifacts of others.
pub const EXTENSIONS_GROUP: &str = "source.extensions.fluxcd.io";
/// Group of HelmReleases.
pub const HELM_GROUP: &str = "helm.toolkit.fluxcd.io";

/// A kind of objects that a controller reconciles.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub kind: &'static str,
    pub group: &'static str,
    /// All versions, the preferred one first.
    pub versions: &'static [&'static str],
    pub plural: &'static str,
    /// The command that has the word of this kind as a subcommand, such as `source` for `git`.
    pub family: Option<Family>,
    /// The word on the command line, in its singular form.
    pub word: &'static str,
    /// The word of commands that list objects.
    pub plural_word: &'static str,
    pub aliases: &'static [&'static str],
    /// The name in messages, such as `source git` or `alert provider`.
    pub noun: &'static str,
    pub features: Features,
}

/// The subcommand that groups kinds on a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Source,
    Image,
    Artifact,
}

/// The abilities of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// True if every controller writes a status. Other kinds are ready once they exist, unless their status says otherwise.
    pub has_status: bool,
    /// True if the spec has the field `suspend`.
    pub suspends: bool,
    /// True if an annotation requests a reconciliation.
    pub reconciles: bool,
}

const RECONCILED: Features = Features {
    has_status: true,
    suspends: true,
    reconciles: true,
};

pub static GIT_REPOSITORY: Kind = Kind {
    kind: "GitRepository",
    group: group::SOURCE,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "gitrepositories",
    family: Some(Family::Source),
    word: "git",
    plural_word: "git",
    aliases: &[],
    noun: "source git",
    features: RECONCILED,
};

pub static OCI_REPOSITORY: Kind = Kind {
    kind: "OCIRepository",
    group: group::SOURCE,
    versions: &["v1", "v1beta2"],
    plural: "ocirepositories",
    family: Some(Family::Source),
    word: "oci",
    plural_word: "oci",
    aliases: &[],
    noun: "source oci",
    features: RECONCILED,
};

pub static BUCKET: Kind = Kind {
    kind: "Bucket",
    group: group::SOURCE,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "buckets",
    family: Some(Family::Source),
    word: "bucket",
    plural_word: "bucket",
    aliases: &[],
    noun: "source bucket",
    features: RECONCILED,
};

pub static HELM_REPOSITORY: Kind = Kind {
    kind: "HelmRepository",
    group: group::SOURCE,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "helmrepositories",
    family: Some(Family::Source),
    word: "helm",
    plural_word: "helm",
    aliases: &[],
    noun: "source helm",
    features: RECONCILED,
};

pub static HELM_CHART: Kind = Kind {
    kind: "HelmChart",
    group: group::SOURCE,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "helmcharts",
    family: Some(Family::Source),
    word: "chart",
    plural_word: "chart",
    aliases: &[],
    noun: "source chart",
    features: RECONCILED,
};

pub static EXTERNAL_ARTIFACT: Kind = Kind {
    kind: "ExternalArtifact",
    group: group::SOURCE,
    versions: &["v1"],
    plural: "externalartifacts",
    family: Some(Family::Source),
    word: "external",
    plural_word: "external",
    aliases: &[],
    noun: "source external-artifact",
    features: Features {
        has_status: true,
        suspends: false,
        reconciles: false,
    },
};

pub static KUSTOMIZATION: Kind = Kind {
    kind: "Kustomization",
    group: group::KUSTOMIZE,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "kustomizations",
    family: None,
    word: "kustomization",
    plural_word: "kustomizations",
    aliases: &["ks"],
    noun: "kustomization",
    features: RECONCILED,
};

pub static HELM_RELEASE: Kind = Kind {
    kind: "HelmRelease",
    group: HELM_GROUP,
    versions: &["v2", "v2beta2", "v2beta1"],
    plural: "helmreleases",
    family: None,
    word: "helmrelease",
    plural_word: "helmreleases",
    aliases: &["hr"],
    noun: "helmrelease",
    features: RECONCILED,
};

/// The KluctlDeployment that has its own source.
pub static GITOPS_KLUCTL_DEPLOYMENT: Kind = Kind {
    kind: "KluctlDeployment",
    group: group::GITOPS_KLUCTL,
    versions: &["v1beta1"],
    plural: "kluctldeployments",
    family: None,
    word: "kluctldeployment",
    plural_word: "kluctldeployments",
    aliases: &["kd"],
    noun: "kluctldeployment",
    features: RECONCILED,
};

/// The KluctlDeployment that deploys from a source.
pub static FLUX_KLUCTL_DEPLOYMENT: Kind = Kind {
    kind: "KluctlDeployment",
    group: group::FLUX_KLUCTL,
    versions: &["v1alpha1"],
    plural: "kluctldeployments",
    family: None,
    word: "kluctldeployment",
    plural_word: "kluctldeployments",
    aliases: &["kd"],
    noun: "kluctldeployment",
    features: RECONCILED,
};

pub static ALERT: Kind = Kind {
    kind: "Alert",
    group: group::NOTIFICATION,
    versions: &["v1beta3", "v1beta2", "v1beta1"],
    plural: "alerts",
    family: None,
    word: "alert",
    plural_word: "alerts",
    aliases: &[],
    noun: "alert",
    features: Features {
        has_status: false,
        suspends: true,
        reconciles: false,
    },
};

pub static PROVIDER: Kind = Kind {
    kind: "Provider",
    group: group::NOTIFICATION,
    versions: &["v1beta3", "v1beta2", "v1beta1"],
    plural: "providers",
    family: None,
    word: "alert-provider",
    plural_word: "alert-providers",
    aliases: &[],
    noun: "alert provider",
    features: Features {
        has_status: false,
        suspends: true,
        reconciles: false,
    },
};

pub static RECEIVER: Kind = Kind {
    kind: "Receiver",
    group: group::NOTIFICATION,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "receivers",
    family: None,
    word: "receiver",
    plural_word: "receivers",
    aliases: &[],
    noun: "receiver",
    features: RECONCILED,
};

pub static IMAGE_REPOSITORY: Kind = Kind {
    kind: "ImageRepository",
    group: IMAGE_GROUP,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "imagerepositories",
    family: Some(Family::Image),
    word: "repository",
    plural_word: "repository",
    aliases: &["repo"],
    noun: "image repository",
    features: RECONCILED,
};

pub static IMAGE_POLICY: Kind = Kind {
    kind: "ImagePolicy",
    group: IMAGE_GROUP,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "imagepolicies",
    family: Some(Family::Image),
    word: "policy",
    plural_word: "policy",
    aliases: &[],
    noun: "image policy",
    features: RECONCILED,
};

pub static IMAGE_UPDATE_AUTOMATION: Kind = Kind {
    kind: "ImageUpdateAutomation",
    group: IMAGE_GROUP,
    versions: &["v1", "v1beta2", "v1beta1"],
    plural: "imageupdateautomations",
    family: Some(Family::Image),
    word: "update",
    plural_word: "update",
    aliases: &[],
    noun: "image update automation",
    features: RECONCILED,
};

pub static ARTIFACT_GENERATOR: Kind = Kind {
    kind: "ArtifactGenerator",
    group: EXTENSIONS_GROUP,
    versions: &["v1beta1"],
    plural: "artifactgenerators",
    family: Some(Family::Artifact),
    word: "generator",
    plural_word: "generators",
    aliases: &[],
    noun: "artifactgenerator",
    // Its controller is told by an annotation instead of the spec.
    features: Features {
        has_status: true,
        suspends: false,
        reconciles: true,
    },
};

/// All kinds, in the order in which commands print them.
pub static ALL: [&Kind; 17] = [
    &OCI_REPOSITORY,
    &BUCKET,
    &GIT_REPOSITORY,
    &HELM_REPOSITORY,
    &HELM_CHART,
    &EXTERNAL_ARTIFACT,
    &ARTIFACT_GENERATOR,
    &IMAGE_REPOSITORY,
    &IMAGE_POLICY,
    &IMAGE_UPDATE_AUTOMATION,
    &HELM_RELEASE,
    &KUSTOMIZATION,
    &GITOPS_KLUCTL_DEPLOYMENT,
    &FLUX_KLUCTL_DEPLOYMENT,
    &RECEIVER,
    &PROVIDER,
    &ALERT,
];

impl Kind {
    /// Returns the kind with this name in a group.
    #[must_use]
    pub fn find(group: &str, kind: &str) -> Option<&'static Self> {
        ALL.into_iter()
            .find(|known| known.group == group && known.kind == kind)
    }

    /// Returns the kinds with this name in any group and case. Both KluctlDeployments have one name.
    #[must_use]
    pub fn named(kind: &str) -> Vec<&'static Self> {
        let is_named = |known: &&Self| known.kind.eq_ignore_ascii_case(kind);
        ALL.into_iter().filter(is_named).collect()
    }

    /// Returns the kinds that a word means, in the singular or plural: a name, a word of the command line, or an alias.
    #[must_use]
    pub fn by_word(word: &str) -> Vec<&'static Self> {
        let word = word.to_ascii_lowercase();
        let means = |known: &&Self| {
            known.kind.eq_ignore_ascii_case(&word)
                || known.plural == word
                || known.noun == word
                || known.words().any(|own| own == word)
        };
        ALL.into_iter().filter(means).collect()
    }

    /// Returns the words for this kind below the command of its family.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        let plural = Some(self.plural_word).filter(|plural| *plural != self.word);
        std::iter::once(self.word)
            .chain(plural)
            .chain(self.aliases.iter().copied())
    }

    /// Returns the words for this kind on a command line, such as `source git`.
    #[must_use]
    pub fn command(&self) -> String {
        match self.family {
            Some(family) => format!("{} {}", family.word(), self.word),
            None => self.word.to_owned(),
        }
    }

    /// Returns the most preferred of the served versions.
    pub fn version(&self, is_served: impl Fn(&str) -> bool) -> Option<&'static str> {
        self.versions.iter().find(|version| is_served(version)).copied()
    }

    /// Returns true for kinds that publish an artifact.
    #[must_use]
    pub fn is_source(&self) -> bool {
        self.family == Some(Family::Source)
    }
}

impl Family {
    pub const ALL: [Self; 3] = [Self::Source, Self::Image, Self::Artifact];

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Image => "image",
            Self::Artifact => "artifact",
        }
    }

    /// Returns the word of commands that list objects.
    #[must_use]
    pub const fn plural_word(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Image => "images",
            Self::Artifact => "artifacts",
        }
    }
}
