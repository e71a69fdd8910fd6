//! The families of metrics of a process. Each is collected and written by itself, so that a scrape never holds all of them.

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{Arc, PoisonError, RwLock},
};

use prometheus::{Encoder as _, Error, TextEncoder, core::Collector};

/// The families of metrics of a process, by name; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    families: Arc<RwLock<BTreeMap<String, prometheus::Registry>>>,
    per_object: bool,
}

impl Registry {
    /// Makes an empty registry. With `per_object`, histograms of single objects have all their buckets.
    #[must_use]
    pub fn new(per_object: bool) -> Self {
        Self {
            families: Arc::default(),
            per_object,
        }
    }

    /// Registers the families of a collector.
    ///
    /// # Errors
    /// Fails when one of the same name is registered.
    pub fn register(&self, collector: Box<dyn Collector>) -> Result<(), Error> {
        let name = collector.desc().first().map(|desc| desc.fq_name.clone());
        let name = name.unwrap_or_default();
        let mut families = self.families.write().unwrap_or_else(PoisonError::into_inner);
        if families.contains_key(&name) {
            return Err(Error::AlreadyReg);
        }
        let family = prometheus::Registry::new();
        family.register(collector)?;
        families.insert(name, family);
        Ok(())
    }

    /// Returns the buckets of a histogram with series for each object: `buckets` with `--metrics-per-object`; otherwise none but the
    /// infinite one, so that an object has its sum and its count.
    #[must_use]
    pub fn object_buckets(&self, buckets: Vec<f64>) -> Vec<f64> {
        if self.per_object {
            buckets
        } else {
            vec![f64::INFINITY]
        }
    }

    /// Writes all families in the text format of Prometheus, one after the other.
    ///
    /// # Errors
    /// Fails when a write fails, or a family can't be encoded.
    pub fn write(&self, out: &mut impl Write) -> Result<(), Error> {
        let families: Vec<_> = {
            let families = self.families.read().unwrap_or_else(PoisonError::into_inner);
            families.values().cloned().collect()
        };
        for family in families {
            TextEncoder::new().encode(&family.gather(), out)?;
        }
        Ok(())
    }

    /// Returns the text of all families, for tests.
    ///
    /// # Errors
    /// Fails when a family can't be encoded.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        self.write(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounter};

    use super::*;

    #[test]
    fn a_family_is_registered_once() {
        let registry = Registry::default();
        let counter = IntCounter::new("a", "An a.").unwrap();
        registry.register(Box::new(counter.clone())).unwrap();
        assert!(matches!(
            registry.register(Box::new(counter)),
            Err(Error::AlreadyReg)
        ));
        assert_eq!(registry.text().unwrap().matches("\na 0").count(), 1);
    }

    #[test]
    fn objects_have_buckets_on_request() {
        for (per_object, buckets) in [(false, 1), (true, 3)] {
            let registry = Registry::new(per_object);
            let options = HistogramOpts::new("h", "An h.").buckets(registry.object_buckets(vec![1.0, 2.0]));
            let histogram = HistogramVec::new(options, &["name"]).unwrap();
            registry.register(Box::new(histogram.clone())).unwrap();
            histogram.with_label_values(&["app"]).observe(1.5);
            let text = registry.text().unwrap();
            assert_eq!(text.matches("h_bucket{").count(), buckets, "{text}");
            for line in [
                "h_sum{name=\"app\"} 1.5",
                "h_count{name=\"app\"} 1",
                "le=\"+Inf\"} 1",
            ] {
                assert!(text.contains(line), "{text}");
            }
        }
    }
}
