//! The places of charts inside other charts.

use std::{cell::RefCell, rc::Rc};

/// The name of a chart, and the chart that it lies in.
///
/// Copies of a chart share the charts in it with the original, and these lie where they were put last: quirk: charts that
/// are no dependency belong to the original, not to its alias; all copies share them, and they are rendered once.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChartPath(Rc<ChartNode>);

#[derive(Debug, Default)]
struct ChartNode {
    name: String,
    above: RefCell<Option<ChartPath>>,
}

impl ChartPath {
    /// That of a chart which lies in none.
    pub(crate) fn new(name: &str) -> Self {
        Self(Rc::new(ChartNode {
            name: name.to_owned(),
            above: RefCell::default(),
        }))
    }

    /// Puts it into another one.
    pub(crate) fn put_into(&self, above: &Self) {
        self.0.above.replace(Some(above.clone()));
    }

    /// The names of all charts that it lies in, and its own, as a path.
    pub(crate) fn path(&self) -> String {
        match &*self.0.above.borrow() {
            Some(above) => format!("{}/charts/{}", above.path(), self.0.name),
            None => self.0.name.clone(),
        }
    }
}
