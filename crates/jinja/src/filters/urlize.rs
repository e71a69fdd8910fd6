//! `urlize`: addresses in a string become links.

use std::sync::LazyLock;

use regex::Regex;

use crate::{
    eval::context::Cx,
    exc::{R, raise},
    format::{escape, repr},
    text::is_space,
    value::{
        Str, Value,
        args::{Args, Bound, to_text},
        char_count, iter,
    },
};

/// Matches web addresses: with a scheme or `www.` any domain, otherwise one of the oldest top-level domains.
static WEB: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = r"(?:[\w%-]+\.)";
    let any = format!(r"(?:https?://|www\.){label}*(?:[a-z]{{2,63}}|xn--[\w%]{{2,59}})");
    let known = r"(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)";
    let number = r"https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:]*:[\da-f:]*\])";
    Regex::new(&format!(
        r"(?i)^(?:{any}|{known}|{number})(?::\d{{1,5}})?(?:[/?#]\S*)?$"
    ))
    .ok()
});

static MAIL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\S+@\w[\w.-]*\.\w+$").ok());

fn matches(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

struct Links {
    limit: Option<usize>,
    attributes: String,
    schemes: Vec<Str>,
}

pub(super) fn urlize(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let names = ["trim_url_limit", "nofollow", "target", "rel", "extra_schemes"];
    let args = args.bind("do_urlize", names, 0)?;
    let links = links(cx, &args)?;
    let text = cx.text_of(&value)?;
    let mut safe = String::new();
    match value {
        Value::Markup(_) => safe.push_str(&text),
        _ => escape::escape(cx.rt, &text, &mut safe)?,
    }
    cx.rt.step(safe.len() as u64)?;
    let mut out = String::new();
    let mut rest = safe.as_str();
    while !rest.is_empty() {
        let space = rest.len() - rest.trim_start_matches(is_space).len();
        out.push_str(rest.get(..space).unwrap_or_default());
        rest = rest.get(space..).unwrap_or_default();
        let end = rest.find(is_space).unwrap_or(rest.len());
        cx.rt.product(links.schemes.len(), 1 + end / 64)?;
        links.word(rest.get(..end).unwrap_or_default(), &mut out);
        rest = rest.get(end..).unwrap_or_default();
        cx.rt.fits(out.len())?;
    }
    let made = cx.rt.made(out)?;
    Ok(if cx.rt.escapes.get() {
        Value::Markup(made)
    } else {
        Value::Str(made)
    })
}

fn links(cx: &Cx<'_>, args: &Bound<5>) -> R<Links> {
    let limit = args
        .optional_int(0)?
        .map(|limit| usize::try_from(limit).unwrap_or(0));
    let given = args.optional_text(3)?.unwrap_or_else(|| "".into());
    let mut rel: Vec<&str> = given.split_whitespace().chain(["noopener"]).collect();
    if args.flag(1, false)? {
        rel.push("nofollow");
    }
    rel.sort_unstable();
    rel.dedup();
    let mut attributes = String::from(" rel=\"");
    escape::escape(cx.rt, &rel.join(" "), &mut attributes)?;
    attributes.push('"');
    if let Some(target) = args.optional_text(2)?.filter(|target| !target.is_empty()) {
        attributes.push_str(" target=\"");
        escape::escape(cx.rt, &target, &mut attributes)?;
        attributes.push('"');
    }
    Ok(Links {
        limit,
        attributes,
        schemes: schemes(cx, args)?,
    })
}

fn schemes(cx: &Cx<'_>, args: &Bound<5>) -> R<Vec<Str>> {
    let mut schemes = Vec::new();
    if let Some(given) = args.get(4).filter(|given| !matches!(given, Value::None)) {
        for scheme in iter::collect(cx.rt, given)? {
            let scheme = to_text(&scheme)?;
            let valid = scheme
                .strip_suffix("//")
                .unwrap_or(&scheme)
                .strip_suffix(':')
                .is_some_and(|name| {
                    name.len() > 1
                        && name
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
                });
            if !valid {
                let message = format!("{} is not a valid URI scheme prefix.", repr::quoted(&scheme));
                return raise("FilterArgumentError", message);
            }
            schemes.push(scheme);
        }
    }
    Ok(schemes)
}

impl Links {
    fn word(&self, word: &str, out: &mut String) {
        let mut middle = word;
        while let Some(rest) = ["(", "<", "&lt;"]
            .iter()
            .find_map(|open| middle.strip_prefix(open))
        {
            middle = rest;
        }
        let head = word.len() - middle.len();
        let ends = [")", ">", ".", ",", "&gt;"];
        let whole = middle;
        while let Some(rest) = ends.iter().find_map(|end| middle.strip_suffix(end)) {
            middle = rest;
        }
        let mut tail = whole.get(middle.len()..).unwrap_or_default();
        for (open, close) in [("(", ")"), ("<", ">"), ("&lt;", "&gt;")] {
            let opened = middle.matches(open).count();
            if opened <= middle.matches(close).count() {
                continue;
            }
            for _ in 0..opened.min(tail.matches(close).count()) {
                let end = tail.find(close).map_or(0, |at| at + close.len());
                middle = whole.get(..middle.len() + end).unwrap_or(middle);
                tail = tail.get(end..).unwrap_or_default();
            }
        }
        out.push_str(word.get(..head).unwrap_or_default());
        self.link(middle, out);
        out.push_str(tail);
    }

    fn link(&self, text: &str, out: &mut String) {
        let attributes = &self.attributes;
        let scheme = self
            .schemes
            .iter()
            .any(|scheme| text != &**scheme && text.starts_with(&**scheme));
        let mail = text
            .strip_prefix("mailto:")
            .filter(|address| matches(&MAIL, address));
        let link = if matches(&WEB, text) {
            let web = text.starts_with("https://") || text.starts_with("http://");
            let prefix = if web { "" } else { "https://" };
            format!(
                "<a href=\"{prefix}{text}\"{attributes}>{}</a>",
                self.trimmed(text)
            )
        } else if let Some(address) = mail {
            format!("<a href=\"{text}\">{address}</a>")
        } else if text.contains('@')
            && !text.starts_with("www.")
            && !text.starts_with('@')
            && !text.contains(':')
            && matches(&MAIL, text)
        {
            format!("<a href=\"mailto:{text}\">{text}</a>")
        } else if scheme {
            format!("<a href=\"{text}\"{attributes}>{text}</a>")
        } else {
            text.to_owned()
        };
        out.push_str(&link);
    }

    fn trimmed(&self, text: &str) -> String {
        match self.limit {
            Some(limit) if char_count(text) > limit => {
                let cut: String = text.chars().take(limit).collect();
                cut + "..."
            }
            _ => text.to_owned(),
        }
    }
}
