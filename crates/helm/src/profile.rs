//! The versions of Helm that renders copy.

use std::str::FromStr;

/// The version of Helm that a render copies; default: 4, as in Flux since 2.8 and kluctl since 2.28.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HelmVersion {
    V3,
    #[default]
    V4,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a supported version of Helm: use \"3\" or \"4\"")]
pub struct HelmVersionError(String);

impl FromStr for HelmVersion {
    type Err = HelmVersionError;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        match given {
            "3" => Ok(Self::V3),
            "4" => Ok(Self::V4),
            _ => Err(HelmVersionError(given.to_owned())),
        }
    }
}

impl HelmVersion {
    /// Returns the release, which templates see in `.Capabilities.HelmVersion`.
    pub(crate) fn release(self) -> &'static str {
        match self {
            Self::V3 => "v3.19.4",
            Self::V4 => "v4.3.1",
        }
    }

    /// Returns the version of Kubernetes without a cluster and `--kube-version`. Since Helm 4, it belongs to the client library.
    pub(crate) fn kube_version(self) -> &'static str {
        match self {
            Self::V3 => "1.20.0",
            Self::V4 => "1.37.0",
        }
    }

    /// Selects between a value of Helm 3 and one of Helm 4.
    pub(crate) fn pick<T>(self, three: T, four: T) -> T {
        match self {
            Self::V3 => three,
            Self::V4 => four,
        }
    }

    pub(crate) fn is_four(self) -> bool {
        self == Self::V4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helm_versions_are_three_and_four() {
        assert_eq!("3".parse(), Ok(HelmVersion::V3));
        assert_eq!("4".parse(), Ok(HelmVersion::V4));
        for wrong in ["", "2", "v4", "3.19", "four"] {
            let error = wrong.parse::<HelmVersion>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!("{wrong:?} is not a supported version of Helm: use \"3\" or \"4\"")
            );
        }
    }
}
