//! Reads the layer table of ARCHITECTURE.md.

use std::collections::BTreeMap;

const HEADING: &str = "## Layers";

/// The layer of a crate. A crate may use lower layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    L0,
    L1,
    L2,
    L3,
    L4,
    T,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) layer: Layer,
    pub(crate) may_use: Vec<String>,
}

pub(crate) fn parse(page: &str) -> (BTreeMap<String, Row>, Vec<String>) {
    let (mut rows, mut findings) = (BTreeMap::new(), Vec::new());
    let below = page.lines().skip_while(|line| line.trim() != HEADING).skip(1);
    let lines = below
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    for line in lines.skip(2) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let parsed = match cells.as_slice() {
            [name, layer, may_use] => layer_of(layer).map(|layer| (name, layer, names(may_use))),
            _ => None,
        };
        match parsed {
            Some((name, layer, may_use)) => {
                rows.insert(name.trim_matches('`').to_owned(), Row { layer, may_use });
            }
            None => findings.push(format!(
                "ARCHITECTURE.md: the row `{line}` is not | `crate` | layer | `may use` |"
            )),
        }
    }
    if rows.is_empty() {
        findings.push(format!("ARCHITECTURE.md: there is no table below `{HEADING}`"));
    }
    (rows, findings)
}

fn layer_of(text: &str) -> Option<Layer> {
    Some(match text {
        "L0" => Layer::L0,
        "L1" => Layer::L1,
        "L2" => Layer::L2,
        "L3" => Layer::L3,
        "L4" => Layer::L4,
        "T" => Layer::T,
        _ => return None,
    })
}

fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
