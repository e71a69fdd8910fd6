//! Filters on text where the engine's own are missing or differ.

use minijinja::Environment;

pub(crate) fn register(env: &mut Environment<'_>) {
    env.add_filter("wordcount", |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).count());
    env.add_filter("striptags", minijinja_contrib::filters::striptags);
    env.add_filter("filesizeformat", minijinja_contrib::filters::filesizeformat);
}
