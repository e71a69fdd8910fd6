//! The functions of random templates, with their parameters and results.

use std::sync::LazyLock;

/// The sort of an expression's value. Others occur, too: functions have to bear anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Any,
    Text,
    /// For lengths and counts.
    Small,
    /// An index within most lists.
    Index,
    Int,
    Float,
    Number,
    Bool,
    List,
    Dict,
    Scalar,
    /// A map without other references.
    Fresh,
    Key,
    Regex,
    Replacement,
    Yaml,
    Json,
    Toml,
    Version,
    Constraint,
    Path,
    Url,
    Parts,
    Time,
    /// A time that is not a number.
    Moment,
    Layout,
    Zone,
    Duration,
    Type,
    /// A password with its encrypted data.
    Password,
    Encrypted,
    Name,
    /// A string that is a template.
    Template,
}

/// Sorts that need no context.
pub(super) const PLAIN: &[Sort] = &[
    Sort::Text,
    Sort::Small,
    Sort::Bool,
    Sort::List,
    Sort::Dict,
    Sort::Int,
    Sort::Float,
    Sort::Number,
];

#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) parameters: Vec<Sort>,
    /// The last parameter may be repeated.
    pub(super) variadic: bool,
    pub(super) gives: Sort,
    /// Suffix of the pipeline that makes the result reproducible.
    pub(super) then: &'static str,
}

/// Functions whose results are random, depend on the time, or take too long.
pub(super) const LEFT_OUT: &[&str] = &[
    "ago",
    "bcrypt",
    "buildCustomCert",
    "derivePassword",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "getHostByName",
    "htpasswd",
    "now",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randBytes",
    "randInt",
    "randNumeric",
    "shuffle",
    "uuidv4",
];

/// Functions that Helm removes.
pub(super) const REFUSED: &[&str] = &["env", "expandenv"];

/// The second index of `slice` is omitted: past the end of a list, the original shows the memory behind it.
///
/// A letter for each parameter, a star after a repeatable one, and the result after the colon.
const ROWS: &str = "
trim S:S|trimAll SS:S|trimall SS:S|trimPrefix SS:S|trimSuffix SS:S|trunc JS:S|substr IIS:S|repeat IS:S|contains SS:B
hasPrefix SS:B|hasSuffix SS:B|replace SSS:S|indent IS:S|nindent IS:S|plural SSJ:S|quote A*:S|squote A*:S|cat A*:S
join SL:S|join SA:S|split SS:A|splitn SIS:A|splitList SS:L|toString A:S|toStrings A:L|sortAlpha A:L|sortAlpha L:L|upper S:S
lower S:S|title S:S|untitle S:S|swapcase S:S|nospace S:S|initials S:S|abbrev IS:S|abbrevboth IIS:S|wrap IS:S
wrapWith ISS:S|snakecase S:S|kebabcase S:S|camelcase S:S
list A*:L|tuple A*:L|append LA:L|push LA:L|mustAppend LA:L|mustPush LA:L|prepend LA:L|mustPrepend LA:L|first L:A
mustFirst L:A|last L:A|mustLast L:A|rest L:L|mustRest L:L|initial L:L|mustInitial L:L|reverse L:L|mustReverse L:L
compact L:L|mustCompact L:L|uniq L:L|mustUniq L:L|without LA*:L|mustWithout LA*:L|has AL:B|mustHas AL:B|slice Li:L
slice L:L|mustSlice Li:L|concat LL*:L|chunk IL:S|mustChunk IL:S|until I:L|untilStep III:L|seq I*:S|seq II:S
get DK:A|set FKE:D|unset FK:D|hasKey DK:B|pluck KDD*:L|keys DD*:L|values D:L|pick DK*:D|omit DK*:D|merge FF*:D
mustMerge FF*:D|mergeOverwrite FF*:D|mustMergeOverwrite FF*:D|dig KAD:A|dig KKAD:A|deepCopy A:A|mustDeepCopy A:A
deepEqual AA:B
atoi S:N|int N:I|int64 N:I|float64 N:G|toDecimal N:I|add1 N:I|add NN*:I|sub NN:I|mul NN*:I|div NN:I|mod NN:I|max NN*:I
biggest NN*:I|min NN*:I|maxf NN*:G|minf NN*:G|floor N:G|ceil N:G|round NI:G|round NIG:G|add1f N:G|addf NN*:G
subf NN*:G|mulf NN*:G|divf NN*:G|int A:I|float64 A:G|toString N:S
typeOf A:S|typeIs tA:B|typeIsLike tA:B|kindOf A:S|kindIs tA:B
default AA:A|default SS:S|empty A:B|coalesce A*:A|all A*:B|any A*:B|dict :D|ternary AAB:A|fail S:A|required SA:A|hello :S
b64enc S:S|b64dec S:S|b32enc S:S|b32dec S:S|sha1sum S:S|sha256sum S:S|sha512sum S:S|adler32sum S:S|decryptAES kc:S
date ZW:S|dateInZone ZWQ:S|date_in_zone ZWQ:S|htmlDate W:S|htmlDateInZone WQ:S|dateModify dw:w|date_modify dw:w
mustDateModify dw:w|must_date_modify dw:w|toDate ZS:w|mustToDate ZS:w|unixEpoch W:S|duration N:S|durationRound d:S
durationRound N:S
semver V:A|semverCompare CV:B
regexMatch XS:B|mustRegexMatch XS:B|regexFind XS:S|mustRegexFind XS:S|regexFindAll XSI:L|mustRegexFindAll XSI:L
regexReplaceAll XSR:S|mustRegexReplaceAll XSR:S|regexReplaceAllLiteral XSR:S|mustRegexReplaceAllLiteral XSR:S
regexSplit XSI:L|mustRegexSplit XSI:L|regexQuoteMeta S:S
urlParse U:D|urlJoin u:S|base H:S|dir H:S|clean H:S|ext H:S|isAbs H:B|osBase H:S|osDir H:S|osClean H:S|osExt H:S|osIsAbs H:B
toYaml A:S|toYaml D:S|toYamlPretty A:S|toYamlPretty D:S|fromYaml Y:D|fromYamlArray Y:L|toJson A:S|mustToJson A:S
toRawJson A:S|mustToRawJson A:S|toPrettyJson A:S|mustToPrettyJson A:S|fromJson O:D|fromJsonArray O:L|mustFromJson O:A
toToml D:S|fromToml M:S
include nA:S|tpl pA:S|lookup SSSS:D
and AA*:A|or AA*:A|not A:B|eq AAA*:B|eq SSS*:B|eq NN:B|ne AA:B|lt SS:B|le II:B|le NN:B|gt II:B|ge SS:B|lt GG:B|len A:I|len L:I|len S:I
len D:I|index A A*:A|index Li:A|index DK:A|index DK:A|print A*:S|println A*:S|html A*:S|js A*:S|urlquery A*:S|call A:A
";

fn sort(letter: char) -> Sort {
    match letter {
        'A' => Sort::Any,
        'S' => Sort::Text,
        'I' => Sort::Small,
        'i' => Sort::Index,
        'J' => Sort::Int,
        'G' => Sort::Float,
        'N' => Sort::Number,
        'B' => Sort::Bool,
        'L' => Sort::List,
        'D' => Sort::Dict,
        'E' => Sort::Scalar,
        'F' => Sort::Fresh,
        'K' => Sort::Key,
        'X' => Sort::Regex,
        'R' => Sort::Replacement,
        'Y' => Sort::Yaml,
        'O' => Sort::Json,
        'M' => Sort::Toml,
        'V' => Sort::Version,
        'C' => Sort::Constraint,
        'H' => Sort::Path,
        'U' => Sort::Url,
        'u' => Sort::Parts,
        'W' => Sort::Time,
        'w' => Sort::Moment,
        'Z' => Sort::Layout,
        'Q' => Sort::Zone,
        'd' => Sort::Duration,
        't' => Sort::Type,
        'k' => Sort::Password,
        'c' => Sort::Encrypted,
        'n' => Sort::Name,
        'p' => Sort::Template,
        other => panic!("the table has no letter {other}"),
    }
}

fn function(row: &'static str) -> Function {
    let (name, rest) = row.split_once(' ').unwrap();
    let (parameters, gives) = rest.split_once(':').unwrap();
    let letters = parameters.chars().filter(|c| !matches!(c, '*' | ' '));
    Function {
        name,
        parameters: letters.map(sort).collect(),
        variadic: parameters.ends_with('*'),
        gives: sort(gives.chars().next().unwrap()),
        then: match name {
            "keys" => " | sortAlpha",
            "values" => " | len",
            // The type of a list of lists or tables differs.
            "chunk" | "mustChunk" | "fromToml" => " | toJson",
            _ => "",
        },
    }
}

pub(super) static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let rows = ROWS.lines().flat_map(|line| line.split('|'));
    rows.filter(|row| !row.is_empty()).map(function).collect()
});
