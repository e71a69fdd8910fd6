//! The families of metrics of a process. Each is collected and written by itself, so that a scrape never buffers all of them.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
    sync::Arc,
};

use parking_lot::RwLock;
use prometheus::{Encoder as _, Error, TextEncoder, core::Collector, proto::MetricFamily};

use super::objects::{self, Objects, escape};

/// The families of metrics of a process, by name; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    families: Arc<RwLock<BTreeMap<String, Vec<Family>>>>,
    per_object: bool,
    label: Label,
}

type Label = Option<(&'static str, &'static str)>;

#[derive(Debug, Clone)]
struct Family {
    label: Label,
    series: Series,
}

#[derive(Debug, Clone)]
enum Series {
    Collected(prometheus::Registry),
    Objects(objects::Family, Objects),
}

impl Registry {
    /// Creates an empty registry. With `per_object`, histograms of single objects have all their buckets.
    #[must_use]
    pub fn new(per_object: bool) -> Self {
        Self {
            per_object,
            ..Self::default()
        }
    }

    /// Returns the same registry, in which all series of families registered from now on have one more label. A family can be registered
    /// once for each value of it, and once without it.
    #[must_use]
    pub fn labelled(&self, name: &'static str, value: &'static str) -> Self {
        Self {
            label: Some((name, value)),
            ..self.clone()
        }
    }

    pub fn register(&self, collector: Box<dyn Collector>) -> Result<(), Error> {
        let name = collector.desc().first().map(|desc| desc.fq_name.clone());
        let labels = self
            .label
            .map(|(name, value)| HashMap::from([(name.to_owned(), value.to_owned())]));
        let series = prometheus::Registry::new_custom(None, labels)?;
        series.register(collector)?;
        self.add(name.unwrap_or_default(), Series::Collected(series))
    }

    pub(super) fn register_objects(&self, family: objects::Family, objects: Objects) -> Result<(), Error> {
        self.add(family.name().to_owned(), Series::Objects(family, objects))
    }

    fn add(&self, name: String, series: Series) -> Result<(), Error> {
        let mut families = self.families.write();
        let registered = families.entry(name).or_default();
        if registered.iter().any(|family| family.label == self.label) {
            return Err(Error::AlreadyReg);
        }
        let label = self.label;
        registered.push(Family { label, series });
        Ok(())
    }

    /// Returns the buckets of a histogram with series for each object: `buckets` with `--metrics-per-object`; otherwise only the infinite
    /// one, so that an object has its sum and its count.
    #[must_use]
    pub fn object_buckets(&self, buckets: Vec<f64>) -> Vec<f64> {
        if self.per_object {
            buckets
        } else {
            vec![f64::INFINITY]
        }
    }

    pub fn write(&self, out: &mut impl Write) -> Result<(), Error> {
        let families: Vec<_> = {
            let families = self.families.read();
            families.values().cloned().collect()
        };
        for family in families {
            TextEncoder::new().encode(&gather(&family), out)?;
            write_objects(&family, out)?;
        }
        Ok(())
    }

    pub fn text(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        self.write(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn gather(families: &[Family]) -> Vec<MetricFamily> {
    let mut all: Vec<MetricFamily> = Vec::new();
    let collected = families.iter().filter_map(|family| match &family.series {
        Series::Collected(registry) => Some(registry.gather()),
        Series::Objects(..) => None,
    });
    for mut found in collected.flatten() {
        match all.iter_mut().find(|family| family.name() == found.name()) {
            Some(family) => family.mut_metric().append(&mut found.take_metric()),
            None => all.push(found),
        }
    }
    all
}

fn write_objects(families: &[Family], out: &mut impl Write) -> io::Result<()> {
    let mut has_heading = false;
    for family in families {
        let Series::Objects(kind, objects) = &family.series else {
            continue;
        };
        if objects.is_empty() {
            continue;
        }
        if !std::mem::replace(&mut has_heading, true) {
            kind.write_heading(out)?;
        }
        let more = family
            .label
            .map(|(name, value)| format!(",{name}=\"{}\"", escape(value)));
        objects.write(*kind, &more.unwrap_or_default(), out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntGaugeVec, Opts};

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
    fn a_family_is_registered_once_for_each_label() {
        let registry = Registry::default();
        let labelled = registry.labelled("group", "b");
        let gauges = [&registry, &labelled].map(|registry| {
            let gauge = IntGaugeVec::new(Opts::new("a", "An a."), &["name"]).unwrap();
            registry.register(Box::new(gauge.clone())).unwrap();
            assert!(matches!(
                registry.register(Box::new(gauge.clone())),
                Err(Error::AlreadyReg)
            ));
            gauge
        });
        gauges[0].with_label_values(&["app"]).set(1);
        gauges[1].with_label_values(&["app"]).set(2);
        let text = registry.text().unwrap();
        assert_eq!(text.matches("# TYPE a gauge").count(), 1, "{text}");
        assert!(text.contains("\na{name=\"app\"} 1\n"), "{text}");
        assert!(text.contains("\na{name=\"app\",group=\"b\"} 2\n"), "{text}");
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
