//! Errors about immutable fields: only deleting and creating the object can help.

use cluster::Cluster;
use objects::ObjectRef;
use yaml::Value;

use crate::{
    ApplyError, Owner, disguise,
    object::{Attempt, Flags, apply},
};

const WORDS: [&str; 2] = ["is immutable", "immutable field"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Immutability {
    Named,
    /// A change was refused; the manifest itself may be invalid, too.
    Possible,
    Unrelated,
}

/// Returns true if an object can't be changed to its manifest, but can be created anew: an invalid manifest never deletes an object.
/// Asks the API server in a dry run, under a free name, if the error alone does not tell.
pub(crate) async fn needs_recreation(
    cluster: &Cluster,
    owner: &Owner,
    (manifest, reference): (&Value, &ObjectRef),
    error: &ApplyError,
) -> bool {
    match immutability(error) {
        Immutability::Named => true,
        Immutability::Possible => is_creatable(cluster, owner, manifest, reference).await,
        Immutability::Unrelated => false,
    }
}

fn immutability(error: &ApplyError) -> Immutability {
    let ApplyError::Cluster(error @ cluster::Error::Api(api)) = error else {
        return Immutability::Unrelated;
    };
    let is_about_it = |text: &str| WORDS.iter().any(|words| text.contains(words));
    // Other causes say that the manifest is invalid, too.
    let is_only_cause = !api.causes.is_empty() && api.causes.iter().all(|cause| is_about_it(&cause.message));
    if is_about_it(&api.message) && (api.code != 422 || is_only_cause) {
        return Immutability::Named;
    }
    match api.code {
        // Causes that concern Secrets are left out, and some kinds have words of their own.
        422 => Immutability::Possible,
        409 if error.field_conflicts().is_none() && api.reason != "Conflict" => Immutability::Possible,
        _ => Immutability::Unrelated,
    }
}

async fn is_creatable(cluster: &Cluster, owner: &Owner, manifest: &Value, reference: &ObjectRef) -> bool {
    let disguised = disguise::disguise(manifest, reference, false);
    let Ok(other) = ObjectRef::of(&disguised) else {
        return false;
    };
    let attempt = Attempt {
        manifest: &disguised,
        reference: &other,
        rules: &[],
        live: None,
    };
    let flags = Flags {
        dry_run: true,
        force: true,
    };
    apply(cluster, owner, attempt, flags).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::ApiError;
    use objects::conflict::Cause;

    #[test]
    fn errors_are_about_immutable_fields_by_their_words_or_perhaps_by_their_status() {
        use Immutability::{Named, Possible, Unrelated};
        let cause = |message: &str| Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: message.to_owned(),
            field: "spec".to_owned(),
        };
        let fixed = || cause("Invalid value: {}: field is immutable");
        let conflict = Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: "conflict with \"a\"".to_owned(),
            field: ".data.a".to_owned(),
        };
        for (code, reason, message, causes, expected) in [
            (
                422,
                "Invalid",
                "spec.selector: Invalid value: {}: field is immutable",
                vec![fixed(), fixed()],
                Named,
            ),
            (
                422,
                "Invalid",
                "[spec.selector: Invalid value: {}: field is immutable, spec.x: Required value]",
                vec![fixed(), cause("Required value")],
                Possible,
            ),
            (
                403,
                "Forbidden",
                "admission webhook \"x\" denied it: name is immutable",
                vec![],
                Named,
            ),
            (
                422,
                "Invalid",
                "the API server refused the Secret because of data (field is immutable)",
                vec![],
                Possible,
            ),
            (403, "Forbidden", "cannot change immutable field a", vec![], Named),
            (
                422,
                "Invalid",
                "spec: Forbidden: updates to statefulset spec are forbidden",
                vec![],
                Possible,
            ),
            (
                422,
                "Invalid",
                "the API server refused the Secret",
                vec![],
                Possible,
            ),
            (409, "AlreadyExists", "it exists", vec![], Possible),
            (409, "Conflict", "the object has been modified", vec![], Unrelated),
            (
                409,
                "Conflict",
                "Apply failed with 1 conflict",
                vec![conflict],
                Unrelated,
            ),
            (
                403,
                "Forbidden",
                "configmaps is forbidden: User \"u\"",
                vec![],
                Unrelated,
            ),
            (400, "BadRequest", "strict decoding error", vec![], Unrelated),
        ] {
            let error = ApplyError::Cluster(cluster::Error::Api(ApiError {
                code,
                reason: reason.to_owned(),
                message: message.to_owned(),
                causes,
            }));
            assert_eq!(immutability(&error), expected, "{code} {message}");
        }
        assert_eq!(immutability(&ApplyError::Contended), Unrelated);
    }
}
