//! Coalesces a chart's defaults, its subcharts' defaults, and the values that override them.
//!
//! Maps are shared where Helm shares them: a chart's changes of a global map are visible to others.

use std::rc::Rc;

use super::{deep_copy_map, entries, own, table};
use crate::{Chart, Dict, Error, HelmVersion, Value};

/// The key of the values that all charts see.
const GLOBAL: &str = "global";

pub(crate) struct Coalesce<'a> {
    /// Retains nulls for a later coalescing.
    keep_nulls: bool,
    /// Moves the charts' own values, which are not used again, instead of copying them.
    last: bool,
    in_subchart: bool,
    helm: HelmVersion,
    warnings: &'a mut Vec<String>,
}

/// Merges `over` over the values of a chart and its dependencies; `over` is not changed.
pub(crate) fn coalesce_values(
    chart: &Chart,
    over: &Dict,
    helm: HelmVersion,
    warnings: &mut Vec<String>,
) -> Result<Dict, Error> {
    Coalesce::new(false, helm, warnings).over(chart, deep_copy_map(over))
}

/// Merges like [`coalesce_values`], for rendering; the charts' own values are consumed.
pub(crate) fn coalesce_last(
    chart: &Chart,
    over: &Dict,
    helm: HelmVersion,
    warnings: &mut Vec<String>,
) -> Result<Dict, Error> {
    let coalesce = Coalesce {
        last: true,
        ..Coalesce::new(false, helm, warnings)
    };
    coalesce.over(chart, deep_copy_map(over))
}

/// Merges a chart's own values, which are consumed, over the values of its dependencies.
pub(crate) fn coalesce_own(
    chart: &mut Chart,
    helm: HelmVersion,
    warnings: &mut Vec<String>,
) -> Result<Dict, Error> {
    let values = match std::mem::take(&mut chart.values) {
        Value::Dict(values) => own(&values),
        _ => table(),
    };
    Coalesce::new(true, helm, warnings).over(chart, values)
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

fn get(map: &Dict, key: &str) -> Option<Value> {
    map.borrow().get(key).cloned()
}

impl<'a> Coalesce<'a> {
    pub(crate) fn new(keep_nulls: bool, helm: HelmVersion, warnings: &'a mut Vec<String>) -> Self {
        Self {
            keep_nulls,
            last: false,
            in_subchart: false,
            helm,
            warnings,
        }
    }

    fn over(mut self, chart: &Chart, values: Dict) -> Result<Dict, Error> {
        self.chart(chart, &values, "")?;
        Ok(values)
    }

    fn chart(&mut self, chart: &Chart, into: &Dict, prefix: &str) -> Result<(), Error> {
        self.in_subchart = !prefix.is_empty();
        self.defaults(chart, into, prefix);
        for inner in &chart.dependencies {
            let values = match get(into, inner.name()) {
                None => {
                    let values = table();
                    into.borrow_mut()
                        .insert(inner.name().into(), Value::Dict(values.clone()));
                    values
                }
                Some(Value::Dict(values)) => values,
                Some(other) => return Err(mismatch(inner.name(), &other)),
            };
            let prefix = join(prefix, chart.name());
            self.globals(&values, into, &prefix);
            self.chart(inner, &values, &prefix)?;
        }
        Ok(())
    }

    fn defaults(&mut self, chart: &Chart, into: &Dict, prefix: &str) {
        let Value::Dict(defaults) = &chart.values else {
            return;
        };
        let prefix = join(prefix, chart.name());
        let defaults = if self.last {
            own(defaults)
        } else {
            deep_copy_map(defaults)
        };
        for (key, default) in entries(&defaults) {
            match (get(into, &key), default) {
                (None, default) => {
                    if self.keep_default(&default, self.keep_nulls) {
                        into.borrow_mut().insert(key, default);
                    }
                }
                (Some(Value::Nil), _) if !self.keep_nulls => {
                    into.borrow_mut().remove(&key);
                }
                (Some(Value::Dict(_)), Value::Nil) => {}
                (Some(Value::Dict(values)), Value::Dict(defaults)) => {
                    let for_chart = chart.dependencies.iter().any(|inner| inner.name() == &*key);
                    let keep = self.keep_nulls || for_chart;
                    self.clean(&defaults, keep);
                    self.tables(&values, &defaults, &join(&prefix, &key), keep);
                }
                (Some(Value::Dict(_)), _) => {
                    self.warn(format!("warning: skipped value for {prefix}.{key}: Not a table."));
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Returns false for a null that Helm 4 removes from the defaults; removes the nulls in a map.
    fn keep_default(&self, default: &Value, keep_nulls: bool) -> bool {
        if let Value::Dict(map) = default {
            self.clean(map, keep_nulls);
        }
        keep_nulls || !self.helm.is_four() || !matches!(default, Value::Nil)
    }

    /// Removes the nulls of defaults, which Helm 3 retains. Lists retain theirs.
    fn clean(&self, map: &Dict, keep_nulls: bool) {
        if self.helm.is_four() && !keep_nulls {
            map.borrow_mut().retain(|_, value| match value {
                Value::Nil => false,
                Value::Dict(inner) => {
                    self.clean(inner, false);
                    true
                }
                _ => true,
            });
        }
    }

    fn globals(&mut self, into: &Dict, from: &Dict, prefix: &str) {
        let own = match get(into, GLOBAL) {
            None => table(),
            Some(Value::Dict(own)) => own,
            Some(_) => {
                let words = "warning: skipping globals because destination global is not a table.";
                return self.warn(words.to_owned());
            }
        };
        let parents = match get(from, GLOBAL) {
            None => table(),
            Some(Value::Dict(parents)) => parents,
            Some(_) => {
                let words = "warning: skipping globals because source global is not a table.";
                return self.warn(words.to_owned());
            }
        };
        for (key, value) in entries(&parents) {
            match (value, get(&own, &key)) {
                (Value::Dict(theirs), mine) => {
                    let copy = Rc::new(std::cell::RefCell::new(theirs.borrow().clone()));
                    match mine {
                        None => {}
                        Some(Value::Dict(mine)) => self.tables(&copy, &mine, &join(prefix, &key), true),
                        Some(_) => {
                            self.warn(format!(
                                "Conflict: cannot merge map onto non-map for {key:?}. Skipping."
                            ));
                            continue;
                        }
                    }
                    own.borrow_mut().insert(key, Value::Dict(copy));
                }
                (_, Some(Value::Dict(_))) => self.warn(format!("key {key} is table. Skipping")),
                (value, _) => {
                    own.borrow_mut().insert(key, value);
                }
            }
        }
        into.borrow_mut().insert(GLOBAL.into(), Value::Dict(own));
    }

    /// Merges `below` into a map without replacing its values.
    pub(crate) fn tables(&mut self, into: &Dict, below: &Dict, prefix: &str, keep_nulls: bool) {
        if Rc::ptr_eq(into, below) {
            return;
        }
        let dropped = if keep_nulls {
            Vec::new()
        } else {
            self.drop_nulls(into, below)
        };
        for (key, value) in entries(below) {
            if dropped.contains(&key) {
                continue;
            }
            match (get(into, &key), value) {
                (None, value) => {
                    into.borrow_mut().insert(key, value);
                }
                (Some(Value::Nil), _) => {}
                (Some(Value::Dict(into)), Value::Dict(below)) => {
                    self.tables(&into, &below, &join(prefix, &key), keep_nulls);
                }
                (Some(_), Value::Dict(below)) => {
                    let below = go_text(&Value::Dict(below));
                    let key = join(prefix, &key);
                    self.warn(format!(
                        "warning: cannot overwrite table with non table for {key} ({below})"
                    ));
                }
                (Some(Value::Dict(_)), value) if !matches!(value, Value::Nil) => {
                    let (key, value) = (join(prefix, &key), go_text(&value));
                    self.warn(format!(
                        "warning: destination for {key} is a table. Ignoring non-table value ({value})"
                    ));
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Removes the nulls of a map, and returns their keys, which don't get the values below either. Nulls without a value below are retained by Helm 4, and
    /// by Helm 3 in the values of the outermost chart: 3.19.5 removes those, too, 3.19.4 retains them in subcharts as well.
    fn drop_nulls(&self, into: &Dict, below: &Dict) -> Vec<Rc<str>> {
        let is_dropped = |key: &str, value: &Value| {
            is_nil(value)
                && match below.borrow().get(key) {
                    None => self.in_subchart && !self.helm.is_four(),
                    Some(below) => !(self.helm.is_four() && is_nil(below)),
                }
        };
        let dropped: Vec<Rc<str>> = into
            .borrow()
            .iter()
            .filter(|(key, value)| is_dropped(key, value))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &dropped {
            into.borrow_mut().remove(key);
        }
        dropped
    }

    fn warn(&mut self, words: String) {
        self.warnings.push(words);
    }
}

fn is_nil(value: &Value) -> bool {
    matches!(value, Value::Nil)
}

fn go_text(value: &Value) -> String {
    crate::template::print(std::slice::from_ref(value), &tree::Budget::default()).unwrap_or_default()
}

/// Helm formats any value as if it were a boolean.
fn mismatch(name: &str, value: &Value) -> Error {
    let budget = tree::Budget::default();
    let text = crate::template::printf("%t", std::slice::from_ref(value), &budget).unwrap_or_default();
    Error::Values(format!("type mismatch on {name}: {text}"))
}
