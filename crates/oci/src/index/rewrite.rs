//! An index as JSON: written once, chart by chart, so that memory holds one of them, and read many times.

use std::io::{self, Read, Write};

use super::{
    extract::{ChartText, Found, Trouble, Wanted},
    parse_items,
    stream::Cut,
};
use crate::{Error, Limits, version};

const PIECE: usize = 64 << 10;

/// Reads an index in YAML or JSON, and writes it as JSON: one version per line, the newest of a chart first. Invalid entries
/// are left out, as in Helm. Returns the number of versions.
///
/// # Errors
/// Fails when the index is malformed, has no `apiVersion`, or one of its charts is larger than the limit.
pub(crate) fn rewrite(
    mut index: impl Read,
    mut out: impl Write,
    url: &str,
    limits: &Limits,
) -> Result<usize, Error> {
    let failed = |trouble: Trouble| trouble.error(url.to_owned(), "one of its charts", limits);
    let mut cut = Cut::new(Wanted::Every, limits);
    let mut writer = Writer {
        out: &mut out,
        url,
        charts: 0,
        versions: 0,
    };
    let mut piece = vec![0; PIECE];
    loop {
        let len = match index.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::disk("read the index of", url)(error)),
        };
        cut.take(piece.get(..len).unwrap_or_default()).map_err(failed)?;
        writer.write_all(&cut.complete())?;
    }
    if cut.end().map_err(failed)? == Found::Nothing {
        return Err(Error::malformed(url, "it is no index: it has no entries"));
    }
    writer.write_all(&cut.complete())?;
    let fields = cut.fields();
    if fields.api_version.is_empty() {
        return Err(Error::malformed(url, "no API version specified"));
    }
    writer.finish(&fields.api_version, &fields.generated)
}

struct Writer<'a, W> {
    out: &'a mut W,
    url: &'a str,
    charts: usize,
    versions: usize,
}

impl<W: Write> Writer<'_, W> {
    fn write_all(&mut self, charts: &[ChartText]) -> Result<(), Error> {
        charts.iter().try_for_each(|chart| self.chart(chart))
    }

    fn chart(&mut self, chart: &ChartText) -> Result<(), Error> {
        let name = String::from_utf8_lossy(&chart.name);
        let items = parse_items(&chart.text, self.url)?;
        let items = items.into_iter().filter_map(|item| match item {
            yaml::Value::Map(map) if super::validation::is_valid(&map) => Some(map),
            _ => None,
        });
        let entries = items.map(|map| (super::entry(&map).version, map));
        let sorted = version::sort(entries.collect(), |(version, _)| version);
        let begin = if self.charts == 0 { "{\"entries\":{" } else { "," };
        self.charts += 1;
        let mut text = format!("{begin}\n{}:[", json(&name));
        for (at, (_, map)) in sorted.into_iter().enumerate() {
            text.push_str(if at == 0 { "\n" } else { ",\n" });
            text.push_str(&yaml::print::json(&yaml::Value::Map(map)));
            self.versions += 1;
        }
        text.push(']');
        self.write(&text)
    }

    fn finish(mut self, api_version: &[u8], generated: &[u8]) -> Result<usize, Error> {
        let begin = if self.charts == 0 { "{\"entries\":{" } else { "" };
        let (api_version, generated) = (
            String::from_utf8_lossy(api_version),
            String::from_utf8_lossy(generated),
        );
        let text = format!(
            "{begin}\n}},\"apiVersion\":{},\"generated\":{}}}\n",
            json(&api_version),
            json(&generated)
        );
        self.write(&text)?;
        Ok(self.versions)
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let written = self.out.write_all(text.as_bytes());
        written.map_err(Error::disk("write the index of", self.url))
    }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
