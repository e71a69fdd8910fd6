//! `.Files`: the files of a chart that are neither templates nor charts.

use std::{cell::OnceCell, collections::BTreeMap, rc::Rc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use tree::Budget;

use super::{File, glob::files_pattern};
use crate::template::{FormatError, FunctionError};
use crate::{
    Dict, HelmVersion, Object, Value, sigs_yaml,
    template::{Signature, Type},
};

/// The cost in steps of reading a character of a pattern.
const PATTERN_STEPS: usize = 200;

/// The length of a printed byte with the space before it.
const LONGEST_BYTE: usize = 4;

#[derive(Debug, Clone, Default)]
pub struct Files {
    files: BTreeMap<Rc<str>, Bytes>,
    helm: HelmVersion,
    /// All files as a map, made at the first use.
    map: OnceCell<Value>,
}

impl Files {
    #[must_use]
    pub fn new(files: &[File], helm: HelmVersion) -> Self {
        let entry = |file: &File| (Rc::from(file.name.as_str()), file.data.clone());
        Self {
            files: files.iter().map(entry).collect(),
            helm,
            map: OnceCell::new(),
        }
    }

    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(Rc::new(self))
    }

    fn bytes(&self, name: &str) -> Rc<[u8]> {
        Rc::from(self.files.get(name).map(AsRef::as_ref).unwrap_or_default())
    }

    fn glob(&self, pattern: &str, budget: &Budget) -> Result<Self, FunctionError> {
        let Some(pattern) = files_pattern(pattern) else {
            return Ok(self.clone());
        };
        let mut files = BTreeMap::new();
        for (name, data) in &self.files {
            budget.step(8)?;
            let search = pattern.search(name, |visits| budget.step(visits / 8));
            if search.is_match()? {
                files.insert(name.clone(), data.clone());
            }
        }
        Ok(Self {
            files,
            helm: self.helm,
            map: OnceCell::new(),
        })
    }

    fn lines(&self, name: &str) -> Result<Value, FunctionError> {
        let Some(data) = self.files.get(name) else {
            return Ok(Value::Strings(Rc::default()));
        };
        if data.is_empty() && self.helm.is_four() {
            return Ok(Value::Strings(Rc::default()));
        }
        if data.is_empty() {
            return Err("runtime error: index out of range [-1]".into());
        }
        let lines = data
            .strip_suffix(b"\n")
            .unwrap_or(data)
            .split(|byte| *byte == b'\n');
        Ok(Value::Strings(Rc::new(lines.map(Value::bytes).collect())))
    }

    /// Returns a YAML map from file names to contents; an empty string if a file has control characters.
    fn as_yaml(&self, text: impl Fn(&[u8]) -> String) -> Value {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let entry = |(path, data): (&Rc<str>, &Bytes)| (base(path), yaml::Value::from(text(data)));
        let map: BTreeMap<String, yaml::Value> = self.files.iter().map(entry).collect();
        let text = sigs_yaml::print(yaml::Value::Map(map.into_iter().collect())).unwrap_or_default();
        Value::utf8(text.strip_suffix('\n').unwrap_or(&text))
    }

    fn config(&self) -> Value {
        self.as_yaml(go::bytes::to_string)
    }

    fn secrets(&self) -> Value {
        self.as_yaml(|data| STANDARD.encode(data))
    }
}

fn signature(name: &str) -> Option<Signature> {
    match name {
        "AsConfig" | "AsSecrets" => Some(Signature::fixed(&[])),
        "Get" | "GetBytes" | "Glob" | "Lines" => Some(Signature::fixed(&[Type::String])),
        _ => None,
    }
}

impl Object for Files {
    fn type_name(&self) -> &str {
        "engine.files"
    }

    fn kind_name(&self) -> &'static str {
        "map"
    }

    fn field(&self, name: &str) -> Option<Value> {
        if signature(name).is_some() {
            return None;
        }
        Some(Value::Bytes(self.bytes(name)))
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        signature(name)
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        signature(name)?;
        let path = match arguments {
            [Value::String(path)] => path.as_ref(),
            _ => "",
        };
        Some(match name {
            "AsConfig" => Ok(self.config()),
            "AsSecrets" => Ok(self.secrets()),
            "Get" => Ok(Value::bytes(
                self.files.get(path).map(AsRef::as_ref).unwrap_or_default(),
            )),
            "GetBytes" => Ok(Value::Bytes(self.bytes(path))),
            "Glob" => self.glob(path, &Budget::default()).map(Self::into_value),
            _ => self.lines(path),
        })
    }

    fn call_within(
        &self,
        name: &str,
        arguments: &[Value],
        budget: &Budget,
    ) -> Option<Result<Value, FunctionError>> {
        match (name, arguments) {
            ("Glob", [Value::String(pattern)]) => Some(self.glob(pattern, budget).map(Self::into_value)),
            _ => self.call(name, arguments),
        }
    }

    fn cost(&self, name: &str, arguments: &[Value]) -> u64 {
        let bytes = match (name, arguments) {
            ("AsConfig" | "AsSecrets", _) => self.files.values().map(Bytes::len).sum::<usize>() / 4,
            ("Glob", [Value::String(pattern)]) => pattern.len() * PATTERN_STEPS,
            (_, [Value::String(path)]) => self.files.get(path.as_ref()).map_or(0, Bytes::len) / 8,
            _ => 0,
        };
        bytes as u64
    }

    fn as_dict(&self) -> Option<Dict> {
        let entry = |(name, data): (&Rc<str>, &Bytes)| (name.clone(), Value::Bytes(Rc::from(data.as_ref())));
        self.map
            .get_or_init(|| Value::dict(self.files.iter().map(entry)))
            .as_dict()
    }

    fn has_any_values(&self) -> bool {
        false
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        let mut out = "map[".to_owned();
        for (index, (name, data)) in self.files.iter().enumerate() {
            budget.step(data.len() as u64 / 16 + 1)?;
            let most = data.len().saturating_mul(LONGEST_BYTE).saturating_add(name.len());
            if out.len().saturating_add(most) as u64 > budget.limits().bytes {
                return Err(FormatError::TooLong);
            }
            out.push_str(if index > 0 { " " } else { "" });
            out.push_str(name);
            out.push_str(":[");
            for (at, byte) in data.iter().enumerate() {
                out.push_str(if at > 0 { " " } else { "" });
                out.push_str(&byte.to_string());
            }
            out.push(']');
        }
        out.push(']');
        Ok(out)
    }

    fn truth(&self) -> bool {
        !self.files.is_empty()
    }
}
