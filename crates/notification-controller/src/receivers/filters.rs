//! The CEL filters of a Receiver.

use std::sync::{Arc, atomic::AtomicBool};

use api::notification::ReceiverSpec;
use cel::{Allowance, EvalError, Limits, Program, Value, Variables};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use notification_specs::receiver::filter_scope;
use serde_json::json;

/// Limits of all filters of one request for all its objects: 2 s. The limits of one evaluation apply, too.
pub(super) const OF_REQUEST: Limits = Limits {
    steps: 5_000_000,
    bytes: 512 << 20,
};
/// Steps after which other requests get the thread.
const SLICE: usize = 500_000;
/// Steps of an object, apart from its evaluation.
const OBJECT: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FilterError {
    #[error("the body is not JSON")]
    Body,
    #[error("a filter does not compile")]
    Compile,
    #[error("there is no thread now")]
    Unfinished,
    #[error(transparent)]
    Limit(#[from] EvalError),
}

#[derive(Debug)]
pub(super) struct Filters {
    all: Option<Program>,
    each: Vec<Option<Program>>,
    request: Value,
    claims: Value,
}

impl Filters {
    pub(super) fn wanted(spec: &ReceiverSpec) -> bool {
        spec.common_filter().is_some()
            || spec
                .resources
                .iter()
                .any(|resource| resource.own_filter().is_some())
    }

    /// Compiles the filters for a request, within its allowance.
    pub(super) fn new(
        spec: &ReceiverSpec,
        request: Value,
        claims: Value,
        allowance: &mut Allowance,
    ) -> Result<Self, FilterError> {
        let mut compile = |text: Option<&str>| {
            let Some(text) = text else { return Ok(None) };
            allowance.spend(text.len())?;
            let program = Program::compile_bool(text, filter_scope(spec));
            program.map(Some).map_err(|_| FilterError::Compile)
        };
        Ok(Self {
            all: compile(spec.common_filter())?,
            each: spec
                .resources
                .iter()
                .map(|resource| compile(resource.own_filter()))
                .collect::<Result<_, _>>()?,
            request,
            claims,
        })
    }

    /// Returns true if the resource with this index in the spec has a filter.
    pub(super) fn judges(&self, at: usize) -> bool {
        self.all.is_some() || self.each.get(at).is_some_and(Option::is_some)
    }

    /// Returns true if an object passes the filters of the resource with this index in the spec.
    fn pass(&self, at: usize, object: Value, allowance: &mut Allowance) -> Result<bool, EvalError> {
        let variables = Variables::new()
            .with("res", object)
            .with("req", self.request.clone())
            .with("claims", self.claims.clone());
        for filter in [self.all.as_ref(), self.each.get(at).and_then(Option::as_ref)] {
            if let Some(filter) = filter
                && !filter.is_true_with(&variables, allowance)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The filters of one request, and the rest of its allowance.
#[derive(Debug)]
pub(super) struct RequestFilters {
    pub(super) filters: Filters,
    pub(super) allowance: Allowance,
}

impl RequestFilters {
    /// Returns for the first objects of `objects` if they pass the filters of a resource: at least one, until other requests should get
    /// the thread.
    pub(super) fn pass_some(
        &mut self,
        at: usize,
        kind: &ApiResource,
        objects: &[ObjectMeta],
        cancelled: &Arc<AtomicBool>,
    ) -> Vec<Result<bool, EvalError>> {
        let mut allowance = self.allowance.clone().with_cancellation(Arc::clone(cancelled));
        let before = allowance.left().steps;
        let mut passed = Vec::new();
        for object in objects {
            let result = allowance.spend(OBJECT).and_then(|()| {
                let json = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": object});
                self.filters.pass(at, Value::from_json(&json), &mut allowance)
            });
            passed.push(result);
            if before.saturating_sub(allowance.left().steps) >= SLICE {
                break;
            }
        }
        self.allowance = allowance;
        passed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    fn request(filter: &str, body: &Json) -> RequestFilters {
        let spec: ReceiverSpec = serde_json::from_value(json!({
            "type": "generic", "resourceFilter": filter, "resources": [{"kind": "GitRepository", "name": "*"}],
        }))
        .unwrap();
        let mut allowance = Allowance::new(OF_REQUEST);
        let filters = Filters::new(&spec, Value::from_json(body), Value::empty_map(), &mut allowance);
        RequestFilters {
            filters: filters.unwrap(),
            allowance,
        }
    }

    fn kind() -> ApiResource {
        ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("g", "v1", "GitRepository"))
    }

    fn objects(count: usize) -> Vec<ObjectMeta> {
        let object = |number: usize| ObjectMeta {
            name: Some(format!("a{number}")),
            ..ObjectMeta::default()
        };
        (0..count).map(object).collect()
    }

    #[test]
    fn filters_of_a_request_share_its_steps_over_all_objects() {
        let list: Vec<usize> = (0..250).collect();
        let mut request = request(
            "req.list.all(x, req.list.all(y, x + y >= 0))",
            &json!({"list": list}),
        );
        let (objects, cancelled) = (objects(150), Arc::new(AtomicBool::new(false)));
        let (mut results, mut slices) = (Vec::new(), 0);
        while results.len() < objects.len() {
            let rest = &objects[results.len()..];
            let some = request.pass_some(0, &kind(), rest, &cancelled);
            assert!(!some.is_empty());
            results.extend(some);
            slices += 1;
        }
        let passed = results.iter().filter(|result| **result == Ok(true)).count();
        assert!((5..30).contains(&passed), "{passed}");
        assert!(slices >= 5, "{slices}");
        let refused = Err(EvalError::AllSteps(OF_REQUEST.steps));
        assert_eq!(results.last(), Some(&refused));
    }

    #[test]
    fn empty_filters_are_none() {
        let spec: ReceiverSpec = serde_json::from_value(json!({
            "type": "generic", "resourceFilter": "",
            "resources": [{"kind": "GitRepository", "name": "*", "filter": ""}],
        }))
        .unwrap();
        assert!(!Filters::wanted(&spec));
        let mut allowance = Allowance::new(OF_REQUEST);
        let filters = Filters::new(&spec, Value::empty_map(), Value::empty_map(), &mut allowance).unwrap();
        assert!(!filters.judges(0));
    }

    #[test]
    fn usual_filters_pass_a_thousand_objects() {
        let body = json!({"ref": "refs/heads/main", "repository": {"name": "a7"}});
        let text = "has(req.ref) && req.ref.startsWith('refs/heads/') && res.metadata.name.contains(req.repository.name)";
        let mut request = request(text, &body);
        let (objects, cancelled) = (objects(1000), Arc::new(AtomicBool::new(false)));
        let mut results = Vec::new();
        while results.len() < objects.len() {
            results.extend(request.pass_some(0, &kind(), &objects[results.len()..], &cancelled));
        }
        let passed = results.iter().filter(|result| **result == Ok(true)).count();
        assert_eq!(passed, 111);
        assert!(results.iter().all(Result::is_ok));
    }

    #[test]
    fn cancelled_request_evaluates_nothing_more() {
        let mut request = request("req.list.all(x, x >= 0)", &json!({"list": [1]}));
        let cancelled = Arc::new(AtomicBool::new(true));
        let results = request.pass_some(0, &kind(), &objects(3), &cancelled);
        assert_eq!(results, [const { Err(EvalError::Cancelled) }; 3]);
        assert_eq!(request.allowance.left().bytes, OF_REQUEST.bytes);
    }

    #[test]
    fn compiling_is_charged_before_it_is_done() {
        let resources: Vec<_> = (0..1000)
            .map(|_| json!({"kind": "GitRepository", "name": "a", "filter": format!("true{}", " ".repeat(10_000))}))
            .collect();
        let spec: ReceiverSpec =
            serde_json::from_value(json!({"type": "generic", "resources": resources})).unwrap();
        let mut allowance = Allowance::new(OF_REQUEST);
        let filters = Filters::new(&spec, Value::empty_map(), Value::empty_map(), &mut allowance);
        assert_eq!(
            filters.err(),
            Some(FilterError::Limit(EvalError::AllSteps(OF_REQUEST.steps)))
        );
    }
}
